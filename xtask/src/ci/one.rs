//! One step, from its beginning to its end.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail};

use super::again;
use super::command::run_and_count;
use super::count::Tests;
use super::steps::{Again, Step};

/// Runs a step and looks at what has to be looked at then. Errors: it failed, and again where it is run again.
pub(super) fn one(root: &Path, step: &Step, tests: &mut Tests) -> Result<()> {
    let Step { name, then, again, .. } = step;
    let begin = Instant::now();
    tests.say(&format!("== {name}: {}", step.words()));
    let known = tests.names.len();
    let status = run_and_count(root, step, &[], tests)?;
    if !status.success() {
        match again {
            Again::Nothing => bail!("{name} failed ({status}); run `{}` alone", step.words()),
            Again::FewTests => again::alone(root, step, tests, known)?,
            Again::Whole => again::whole(root, step, tests)?,
        }
    }
    then(root)?;
    tests.say(&format!("== {name}: passed in {:.0} s", begin.elapsed().as_secs_f64()));
    Ok(())
}
