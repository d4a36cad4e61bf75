//! Tests of all binaries, counted by what they print.

use super::say::say;
use super::watch::Process;

/// Tests of all binaries so far.
#[derive(Debug, Default)]
pub(super) struct Tests {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) ignored: u64,
    /// Those that failed, in the order in which they did.
    pub(super) names: Vec<String>,
    /// Those that have run for over a minute and have not ended.
    pub(super) running: Vec<String>,
    /// Test binaries that had to be ended.
    pub(super) ended: Vec<Process>,
    /// What was said, where it is kept until all is over.
    pub(super) kept: Option<String>,
}

impl Tests {
    /// Of a step that runs beside another one: what is said is kept.
    pub(super) fn beside() -> Self {
        Self { kept: Some(String::new()), ..Self::default() }
    }

    /// Says a line, now or when all is over.
    pub(super) fn say(&mut self, line: &str) {
        match &mut self.kept {
            Some(kept) => *kept += &format!("{line}\n"),
            None => say(line),
        }
    }

    /// Adds those of a step that ran beside, and says what it said.
    pub(super) fn join(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.names.extend(other.names);
        say(other.kept.unwrap_or_default().trim_end());
    }

    /// Adds a closing line of a test binary, `test result: ok. 3 passed; 0 failed; ...`, or what a
    /// line says of one test.
    pub(super) fn count(&mut self, line: &str) {
        if let Some(test) = line.strip_prefix("test ") {
            self.one(test);
        }
        let Some(result) = line.strip_prefix("test result: ") else { return };
        for part in result.split([';', '.']) {
            let mut words = part.split_whitespace();
            let number = words.next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
            match words.next() {
                Some("passed") => self.passed += number,
                Some("failed") => self.failed += number,
                Some("ignored") => self.ignored += number,
                _ => {}
            }
        }
    }

    fn one(&mut self, test: &str) {
        if let Some((name, _)) = test.split_once(" has been running for over") {
            self.running.push(name.to_owned());
        } else if let Some((name, outcome)) = test.split_once(" ... ") {
            self.running.retain(|running| running != name);
            if outcome == "FAILED" {
                self.names.push(name.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_add_up() {
        let mut tests = Tests::default();
        tests.count("test result: ok. 18 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out");
        tests.count(
            "test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out",
        );
        tests.count("test a_test ... ok");
        tests.count("test a::b ... FAILED");
        assert_eq!((tests.passed, tests.failed, tests.ignored), (20, 3, 1));
        assert_eq!(tests.names, ["a::b"]);
    }

    #[test]
    fn what_ran_beside_is_counted_and_said_afterwards() {
        let mut beside = Tests::beside();
        beside.count("test result: ok. 2 passed; 0 failed");
        beside.say("a line");
        beside.say("another");
        assert_eq!(beside.kept.as_deref(), Some("a line\nanother\n"));
        let mut tests = Tests { passed: 1, names: vec!["a".to_owned()], ..Tests::default() };
        tests.join(Tests { names: vec!["b".to_owned()], ..beside });
        assert_eq!((tests.passed, tests.names.len(), tests.kept), (3, 2, None));
    }

    #[test]
    fn a_test_runs_until_its_outcome_is_printed() {
        let mut tests = Tests::default();
        tests.count("test a::b has been running for over 60 seconds");
        tests.count("test c has been running for over 60 seconds");
        tests.count("test a::b ... ok");
        assert_eq!(tests.running, ["c"]);
        assert!(tests.names.is_empty());
    }
}
