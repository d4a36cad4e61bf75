//! Random operations on a heap of the allocator, with a model beside it: no slot is held twice,
//! none is lost, misuse is refused. `crates/arrange/alloc/tests/corpus.rs` replays the stored corpus with
//! the same reading of the bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/arrange/alloc/tests/operations/mod.rs"]
mod operations;

fuzz_target!(|bytes: &[u8]| {
    operations::run(bytes);
});
