//! Steps that run one after another beside another one.

use std::path::Path;
use std::thread::scope;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::count::Tests;
use super::one::one;
use super::steps::Step;
use super::times::Times;

/// What came of a step that ran beside another one.
pub(super) struct Ran {
    name: &'static str,
    outcome: Result<()>,
    tests: Tests,
    took: Duration,
}

impl Ran {
    /// Says what it said, and adds its tests and its time to those of the others.
    pub(super) fn join(self, tests: &mut Tests, times: &mut Times) -> Result<()> {
        tests.join(self.tests);
        times.add(self.name, self.took);
        self.outcome
    }
}

/// Calls `step` while `others` run: what came of both. After one that failed, no other is begun.
pub(super) fn run<T>(
    root: &Path,
    others: &'static [Step],
    step: impl FnOnce() -> T,
) -> (T, Vec<Ran>) {
    let all = || {
        let mut ran: Vec<Ran> = Vec::new();
        for step in others {
            if ran.iter().all(|before| before.outcome.is_ok()) {
                ran.push(apart(root, step));
            }
        }
        ran
    };
    scope(|scope| {
        let beside = scope.spawn(all);
        let outcome = step();
        let ran = beside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (outcome, ran)
    })
}

fn apart(root: &Path, step: &Step) -> Ran {
    let mut tests = Tests::beside();
    let begin = Instant::now();
    let outcome = one(root, step, &mut tests);
    Ran { name: step.name, outcome, tests, took: begin.elapsed() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHERS: &[Step] = &[
        Step {
            name: "one",
            program: "sh",
            arguments: &["-c", "echo 'test result: ok. 2 passed; 0 failed'; echo words >&2"],
            ..Step::CARGO
        },
        Step { name: "two", program: "false", ..Step::CARGO },
        Step { name: "three", program: "true", ..Step::CARGO },
    ];

    #[test]
    fn others_are_counted_and_timed_and_the_first_that_fails_is_the_last() {
        let (seven, ran) = run(Path::new("."), OTHERS, || 7);
        assert_eq!((seven, ran.len()), (7, 2));
        assert!(ran[0].tests.kept.as_ref().is_some_and(|kept| kept.contains("\nwords\n")));
        let mut tests = Tests::default();
        let mut times = Times::default();
        let outcomes = ran.into_iter().map(|ran| ran.join(&mut tests, &mut times).is_ok());
        assert_eq!(outcomes.collect::<Vec<_>>(), [true, false]);
        assert_eq!(tests.passed, 2);
        let table = times.table();
        assert!(table.starts_with("one ") && table.contains("\ntwo "), "{table}");
    }
}
