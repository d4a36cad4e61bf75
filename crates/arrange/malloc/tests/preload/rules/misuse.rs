//! Rule 4: a mistake of the program ends it as loudly as under the next malloc: by the same signal, and in words. What
//! is placed is looked at by its mark, so it ends at more mistakes than that, mimalloc's release builds among them.

use std::os::unix::process::ExitStatusExt;
use std::process::Output;

use super::{Way, ways};
use crate::support::{Rig, rule};

const SIGABRT: i32 = 6;

/// Mistakes with an object of the allocator, and what is said of them where the object was placed.
const PLACED: [(&str, &str); 13] = [
    ("double", DOUBLE),
    ("between", DOUBLE),
    ("moved", DOUBLE),
    ("grown", DOUBLE),
    ("aligned", DOUBLE),
    ("zeroed", DOUBLE),
    ("thread", DOUBLE),
    ("threads", DOUBLE),
    ("odd", POINTER),
    ("foreign", POINTER),
    ("inside", POINTER),
    ("realloc", REALLOC),
    ("realloc-inside", REALLOC),
];
const DOUBLE: &str = "free(): double free detected\n";
const POINTER: &str = "free(): invalid pointer\n";
const REALLOC: &str = "realloc(): invalid pointer\n";

/// Mistakes with memory that no allocator gave.
const FOREIGN: [&str; 3] = ["stack", "static", "static-odd"];
/// Mistakes that leave the next malloc in a state that does not depend on addresses.
const UNPLACED: [&str; 6] = ["double", "between", "inside", "odd", "zeroed", "realloc-inside"];

/// How a program ends on a mistake with an object of `size` bytes, without the library and with it.
fn ended(way: &Way, mistake: &str, size: usize) -> [Output; 2] {
    let program = rule("misuse");
    [way.plain(&program), way.placed(&program)]
        .map(|mut command| command.args([mistake, &size.to_string()]).output().expect("it runs"))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn rule_4_misuse_of_what_is_placed_ends_the_process_in_words() {
    let checked = Way {
        name: "checked",
        rig: Rig::new().with(|config| config.policy.checked = true),
        below: None,
    };
    for way in ways().into_iter().chain([checked]) {
        for (mistake, words) in PLACED {
            for size in [16, 64, 256] {
                let [plain, placed] = ended(&way, mistake, size);
                let what = format!("{}, {mistake} of {size} bytes: {placed:?}", way.name);
                assert_eq!(placed.status.signal(), Some(SIGABRT), "{what}");
                assert!(placed.stdout.is_empty(), "{what}");
                // An object of 16 bytes has a neighbour where others have their inside.
                assert!(said(&placed) == words || size == 16, "{what}");
                if plain.status.signal() == Some(SIGABRT) {
                    assert!(!said(&plain).is_empty(), "it says so in words as well");
                }
            }
        }
    }
}

#[test]
fn rule_4_misuse_of_what_is_not_placed_is_the_next_mallocs_to_find() {
    for way in ways() {
        for mistake in UNPLACED {
            let [plain, placed] = ended(&way, mistake, 1000);
            let what = format!("{}, {mistake}: {plain:?} {placed:?}", way.name);
            assert_eq!(placed, plain, "{what}");
        }
        // What mimalloc makes of foreign memory depends on addresses.
        for mistake in FOREIGN.iter().filter(|_| way.below.is_none()) {
            let [plain, placed] = ended(&way, mistake, 64);
            assert_eq!(placed, plain, "{}, {mistake}", way.name);
            assert_eq!((placed.status.signal(), said(&placed)), (Some(SIGABRT), POINTER.into()));
        }
    }
}

#[test]
fn rule_4_a_right_program_goes_on() {
    super::succeeds("misuse", &["none"], 10_000);
}
