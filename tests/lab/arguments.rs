//! Arguments of every command of the laboratory, by one seed: read, and refused without a panic.

use crate::words::read_all;

#[test]
fn no_line_ends_the_parser() {
    read_all(isochrone_lab::command(), isochrone_lab::read, 2000);
}

/// The same for some minutes.
#[test]
#[ignore = "takes minutes: cargo test -p isochrone-lab --test lab arguments -- --ignored"]
fn no_line_of_very_many_ends_the_parser() {
    read_all(isochrone_lab::command(), isochrone_lab::read, 100_000);
}
