//! The parser of CLa programs on arbitrary text: it returns a program or an error, and what it accepts
//! can be recorded or refused, without a panic or a hang. `crates/arrange/cla/src/language/tests.rs` replays the
//! stored corpus.

#![no_main]

use isochrone_cla::collectives::Tree;
use isochrone_cla::language::{Setting, parse};
use isochrone_cla::program::Rank;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(program) = parse("fuzz.cla", text) {
        let values = program.values().into_iter().map(|name| (name.to_owned(), 2)).collect();
        let setting = Setting { tree: Tree::regular(3, Rank(0), 1), values };
        let _recorded = program.record(&setting, 0, 2);
    }
});
