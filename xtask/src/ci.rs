//! The gate, step by step; each step is a command that a developer can run alone. It ends with what each step took.

mod again;
mod beside;
mod command;
mod count;
mod full;
mod needs;
mod one;
mod say;
mod sizes;
mod steps;
mod times;
mod watch;

use std::path::Path;

use anyhow::{Result, bail};

use super::schemas;
use count::Tests;
use one::one;
pub(crate) use say::say;
use steps::Step;
use times::Times;
pub(crate) use watch::Mark;

/// How much is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// What every change must pass.
    Usual,
    /// Everything: what must have passed before a piece of work is called done.
    Full,
    /// What `Full` has beyond `Usual`: for a tree of which the usual steps have passed.
    Longer,
}

impl Extent {
    fn of(mut words: impl Iterator<Item = String>) -> Result<Self> {
        match (words.next().as_deref(), words.next()) {
            (None, _) => Ok(Self::Usual),
            (Some("--full"), None) => Ok(Self::Full),
            (Some("--longer"), None) => Ok(Self::Longer),
            (Some(other), _) => bail!("unknown word {other:?}: cargo xtask ci [--full | --longer]"),
        }
    }

    /// What every change must pass, where it is part of this.
    fn usual(self) -> &'static [Step] {
        if self == Self::Longer { &[] } else { steps::STEPS }
    }

    /// What is run after the usual steps.
    fn longer(self) -> &'static [Step] {
        if self == Self::Usual { &[] } else { full::STEPS }
    }
}

/// Runs every step in order. Of the usual ones it stops at the first that fails; those that take longer are all run,
/// so that a run of hours tells everything; what they need of the machine is asked for before anything is run. The last
/// line counts the tests of all binaries together.
pub(crate) fn run(root: &Path, words: impl Iterator<Item = String>) -> Result<()> {
    let extent = Extent::of(words)?;
    if extent != Extent::Usual {
        needs::all_there()?;
    }
    let mut tests = Tests::default();
    let mut times = Times::default();
    let outcome = all(root, extent, &mut tests, &mut times);
    say(&times.table());
    outcome?;
    if extent == Extent::Usual {
        say("a subset: `cargo xtask ci --full` runs what takes longer as well (CONTRIBUTING.md)");
    }
    say(&format!("{} passed, {} failed, {} skipped", tests.passed, tests.failed, tests.ignored));
    if !tests.names.is_empty() {
        say(&format!("failed first, and passed when run again: {}", tests.names.join(", ")));
    }
    Ok(())
}

fn all(root: &Path, extent: Extent, tests: &mut Tests, times: &mut Times) -> Result<()> {
    times.of("rules of the house", || super::tidy::run(root, std::iter::empty()))?;
    schemas::forget()?;
    for step in extent.usual() {
        let (outcome, others) =
            beside::run(root, step.beside, || times.of(step.name, || one(root, step, tests)));
        let others = others.into_iter().map(|other| other.join(tests, times));
        others.fold(outcome, |all, other| all.and(other))?;
    }
    let mut failed = Vec::new();
    for step in extent.longer() {
        if let Err(error) = times.of(step.name, || one(root, step, tests)) {
            say(&format!("== {error:#}"));
            failed.push(step.name);
        }
    }
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extent_is_the_usual_one_or_full() {
        let of = |words: &[&str]| Extent::of(words.iter().map(|word| (*word).to_owned()));
        assert_eq!(of(&[]).expect("usual"), Extent::Usual);
        assert_eq!(of(&["--full"]).expect("full"), Extent::Full);
        assert_eq!(of(&["--longer"]).expect("longer"), Extent::Longer);
        assert!(of(&["--ful"]).is_err() && of(&["--full", "x"]).is_err());
        assert!(Extent::Usual.longer().is_empty() && !Extent::Usual.usual().is_empty());
        assert!(!Extent::Full.longer().is_empty() && !Extent::Full.usual().is_empty());
        assert!(!Extent::Longer.longer().is_empty() && Extent::Longer.usual().is_empty());
    }
}
