//! The reader of machine descriptions on arbitrary text: it returns a machine or an error, and
//! never panics, hangs or takes memory out of proportion. `crates/ground/host/tests/bad_files.rs`
//! replays the stored corpus.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(machine) = isochrone_host::machine_from_toml(text, "fuzz.toml") {
        let _caveats = machine.caveats();
    }
});
