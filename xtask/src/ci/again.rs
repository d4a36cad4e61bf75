//! A few tests that failed are run once more, each alone, and so is a step of emulated machines; they are named if
//! they pass.
//!
//! Many tests drive programs that measure the machine that they run on. On a shared host one of
//! two thousand now and then meets a second in which another guest takes the cores. A change that
//! broke something fails alone as well.

use std::path::Path;

use anyhow::{Context, Result, bail};

use super::command::{run_and_count, to_its_end};
use super::count::Tests;
use super::say::say;
use super::steps::Step;

/// More failures than these are not a disturbance.
const FEW: usize = 3;

/// Runs those of `tests` from the one at `known` on that failed in `step`, and the test binaries
/// that had to be ended, one after another without any others. Errors: there are none or too many,
/// one that failed has no name (its program died), or one fails again.
pub(super) fn alone(root: &Path, step: &Step, tests: &mut Tests, known: usize) -> Result<()> {
    let names = tests.names.split_off(known);
    let ended = std::mem::take(&mut tests.ended);
    let failed = format!("{} failed; run `{}` alone", step.name, step.words());
    let count = names.len() + ended.len();
    if count == 0 || count > FEW || tests.failed != names.len() as u64 {
        bail!("{failed}");
    }
    if !names.is_empty() {
        by_name(root, step, &names).context(failed.clone())?;
    }
    tests.passed += tests.failed;
    tests.failed = 0;
    tests.names.extend(names);
    for binary in ended {
        say(&format!("== {}: once more, alone:\n{}", step.name, binary.line()));
        if !to_its_end(binary.command(), step, tests)?.success() {
            bail!("{failed}: a test binary that had to be ended failed alone, too");
        }
        tests.names.push(binary.line());
    }
    Ok(())
}

fn by_name(root: &Path, step: &Step, names: &[String]) -> Result<()> {
    say(&format!("== {}: once more, alone: {}", step.name, names.join(", ")));
    let mut second = Tests::default();
    let words = ["--", "--exact", "--test-threads=1"].map(str::to_owned);
    let words: Vec<_> = words.into_iter().chain(names.iter().cloned()).collect();
    let status = run_and_count(root, step, &words, &mut second)?;
    if !status.success() || second.passed < names.len() as u64 {
        bail!("{} failed alone, too", second.names.join(", "));
    }
    Ok(())
}

/// Runs of a step that is run again as a whole.
const AGAIN: usize = 2;

/// Runs all of `step` again, at most [`AGAIN`] times. Errors: it fails each time.
pub(super) fn whole(root: &Path, step: &Step, tests: &mut Tests) -> Result<()> {
    for _ in 0..AGAIN {
        tests.say(&format!("== {}: once more", step.name));
        if run_and_count(root, step, &[], &mut Tests::default())?.success() {
            tests.names.push(step.name.to_owned());
            return Ok(());
        }
    }
    bail!("{} failed {} times; run `{}` alone", step.name, AGAIN + 1, step.words());
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSES: &[&str] = &["-c", "echo 'test result: ok. 2 passed; 0 failed'"];
    const FAILS: &[&str] = &["-c", "echo 'test b ... FAILED'; exit 101"];
    const FINDS_NONE: &[&str] = &["-c", "echo 'test result: ok. 0 passed; 0 failed'"];

    /// What becomes of the tests `names`, of which `failed` were counted, where the second run is
    /// the script of `arguments`.
    fn after(names: &[&str], failed: u64, arguments: &'static [&'static str]) -> Option<Tests> {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let mut tests = Tests { failed, names, ..Tests::default() };
        let step = Step { name: "tests", program: "sh", arguments, ..Step::CARGO };
        alone(Path::new("."), &step, &mut tests, 0).ok().map(|()| tests)
    }

    #[test]
    fn a_few_that_pass_alone_are_no_failure_and_are_named() {
        let tests = after(&["a", "b"], 2, PASSES).expect("both pass");
        assert_eq!((tests.passed, tests.failed), (2, 0));
        assert_eq!(tests.names, ["a", "b"]);
    }

    #[test]
    fn a_step_that_passes_the_second_time_is_named() {
        let mut tests = Tests::default();
        let step = |arguments| Step { name: "boots", program: "sh", arguments, ..Step::CARGO };
        assert!(whole(Path::new("."), &step(FAILS), &mut tests).is_err());
        assert!(tests.names.is_empty());
        assert!(whole(Path::new("."), &step(PASSES), &mut tests).is_ok());
        assert_eq!(tests.names, ["boots"]);
    }

    #[test]
    fn what_fails_again_or_is_not_found_or_has_no_name_fails() {
        assert!(after(&["a", "b"], 2, FAILS).is_none());
        assert!(after(&["a", "b"], 2, FINDS_NONE).is_none());
        assert!(after(&["a"], 2, PASSES).is_none(), "one died without a name");
        assert!(after(&[], 0, PASSES).is_none(), "it did not build");
        assert!(after(&["a", "b", "c", "d"], 4, PASSES).is_none(), "too many");
    }
}
