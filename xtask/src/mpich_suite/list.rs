//! The programs of a folder of the suite, with their arguments: what its `testlist` says.

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};

/// One program with its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) arguments: Vec<String>,
    /// Variables of its environment, as `NAME=VALUE`.
    pub(super) variables: Vec<String>,
    /// Whether the suite itself expects it to fail.
    pub(super) may_fail: bool,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {argument}"))
    }
}

/// All of a folder, each once: the list is in the sources, or was made from one of them.
pub(super) fn cases(sources: &Path, built: &Path) -> Result<Vec<Case>> {
    let places = [built.join("testlist"), sources.join("testlist"), sources.join("testlist.in")];
    let place = places.iter().find(|place| place.is_file());
    let place = place.with_context(|| format!("{}: no testlist", sources.display()))?;
    Ok(parsed(&std::fs::read_to_string(place)?))
}

fn parsed(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else { continue };
        // Comments, and what is left open when the suite is made ready.
        if name.starts_with('#') || name.contains('@') {
            continue;
        }
        let mut case = Case { name: name.to_owned(), ..Case::default() };
        for word in words {
            match word.split_once('=') {
                Some(("arg", value)) => case.arguments.push(value.to_owned()),
                Some(("env", value)) => case.variables.push(value.to_owned()),
                Some(("xfail", _)) => case.may_fail = true,
                // Ranks are ours to say, and so is how long it may take.
                _ => {}
            }
        }
        if !cases.contains(&case) {
            cases.push(case);
        }
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_each_program_once_for_its_arguments() {
        let text = "# a comment\nallred 4 arg=-count=10\nallred 7 arg=-count=10\nallred 4 arg=-count=100\n\n\
                    @nbc@ 2\nred3 10 timeLimit=300\nx 2 env=A=b arg=1 arg=2\ny 4 xfail=ticket1\n";
        let cases = parsed(text);
        let words: Vec<String> = cases.iter().map(ToString::to_string).collect();
        assert_eq!(words, ["allred -count=10", "allred -count=100", "red3", "x 1 2", "y"]);
        assert_eq!(cases[3].variables, ["A=b"]);
        assert!(cases[4].may_fail && !cases[3].may_fail);
    }
}
