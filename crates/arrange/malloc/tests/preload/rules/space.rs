//! Rule 5: where address space or memory is short, the program has it.

use super::{held, number};
use crate::support::rule;

/// Runs the program under a limit of so many MiB beyond what it starts with. With the library it gets at least two
/// thirds of what it gets without: an arena takes a sixteenth, and mimalloc takes and loses 32 MiB at a time.
fn keeps_most(what: &str, mib: &str) {
    held(
        &rule("space"),
        |command| _ = command.args([what, mib]),
        |way, [plain, placed], _| {
            let (without, with) = (number(plain), number(placed));
            assert!(3 * with >= 2 * without, "{}, {what} {mib}: {with} of {without}", way.name);
        },
    );
}

#[test]
fn rule_5_a_process_has_the_address_space_that_it_may_have() {
    for mib in ["64", "256"] {
        keeps_most("objects", mib);
        keeps_most("large", mib);
    }
}

#[test]
fn rule_5_a_process_that_may_lock_little_has_that() {
    keeps_most("lockable", "64");
}
