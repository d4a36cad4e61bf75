//! README against what was recorded: each claim says what its file says, and no other number stands there.

use std::collections::BTreeMap;
use std::path::Path;

use super::list::{Claim, List};
use super::numbers::numbers;
use super::source::Recorded;

/// What is wrong, a line each, in the order of the list; numbers that nothing claims come last.
pub(super) fn check(readme: &str, list: &List, results: &Path) -> Vec<String> {
    let mut files = BTreeMap::new();
    for name in list.files() {
        files.insert(
            name,
            Recorded::read(&results.join(name)).map_err(|error| format!("{error:#}")),
        );
    }
    let mut wrong = Vec::new();
    let mut lines: Vec<String> = prose(readme);
    for claim in &list.claims {
        let recorded = match &files[claim.file.as_str()] {
            Ok(recorded) => recorded.of(claim).map_err(|error| format!("{error:#}")),
            Err(why) => Err(why.clone()),
        };
        wrong.extend(differs(claim, recorded));
        wrong.extend(taken_out(claim, &mut lines));
    }
    for plain in &list.plain {
        let mut is_there = false;
        for line in &mut lines {
            is_there |= line.contains(&plain.text);
            *line = line.replace(&plain.text, " ");
        }
        if !is_there {
            wrong
                .push(format!("README has no {:?} any more, which is listed as plain", plain.text));
        }
    }
    wrong.extend(unclaimed(&lines));
    wrong
}

/// Where a claim's text has another number than its file.
fn differs(claim: &Claim, recorded: Result<Vec<f64>, String>) -> Option<String> {
    let Claim { text, line, file, .. } = claim;
    let recorded = match recorded {
        Ok(recorded) => recorded,
        Err(why) => return Some(format!("{line:?}, {text:?}: {file}: {why}")),
    };
    let same = numbers(text).iter().zip(&recorded).all(|(said, recorded)| said.is(*recorded));
    let all: Vec<String> = recorded.iter().map(|number| format!("{number:.5}")).collect();
    (!same).then(|| format!("{line:?}: README says {text:?}, and {file} has {}", all.join(", ")))
}

/// Takes a claim's text out of its line, or says that it does not stand there.
fn taken_out(claim: &Claim, lines: &mut [String]) -> Option<String> {
    let Claim { text, line: words, .. } = claim;
    let mut of = lines.iter_mut().filter(|line| line.contains(words.as_str()));
    let (first, second) = (of.next(), of.next());
    let (Some(line), None) = (first, second) else {
        return Some(format!("README has not one line with {words:?}"));
    };
    let mut cells: Vec<String> = line.split('|').map(str::to_owned).collect();
    let at = claim.column.unwrap_or(0);
    let cell = if claim.column.is_some() { cells.get_mut(at) } else { None };
    let holder = match cell {
        Some(cell) => cell,
        None if claim.column.is_none() => {
            let taken = line.contains(text.as_str());
            *line = line.replacen(text.as_str(), TAKEN, 1);
            return (!taken).then(|| format!("{words:?}: README does not say {text:?} there"));
        }
        None => return Some(format!("{words:?}: there is no column {at}")),
    };
    let taken = holder.contains(text.as_str());
    *holder = holder.replacen(text.as_str(), TAKEN, 1);
    *line = cells.join("|");
    (!taken).then(|| format!("{words:?}: README does not say {text:?} in column {at}"))
}

/// What stands where a figure was taken out: no number, and no words of a line.
const TAKEN: &str = "\u{2026}";

/// The lines of a page without what is code, or where a link leads to.
fn prose(page: &str) -> Vec<String> {
    let mut is_code = false;
    let mut lines = Vec::new();
    for line in page.lines() {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        lines.push(if is_code || is_fence { String::new() } else { without_code(line) });
    }
    lines
}

/// A line without `code` and the targets of links.
fn without_code(line: &str) -> String {
    let spoken = line.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let mut parts = spoken.split("](");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let behind = part.split_once(')').map_or("", |(_, behind)| behind);
        out.push_str("] ");
        out.push_str(behind);
    }
    out
}

/// Numbers that are left in a page when all that is claimed was taken out.
fn unclaimed(lines: &[String]) -> Vec<String> {
    let has = |line: &&String| line.chars().any(|c| c.is_ascii_digit());
    let said = |line: &String| {
        let words: Vec<&str> = line
            .split_whitespace()
            .filter(|word| word.chars().any(|c| c.is_ascii_digit()))
            .collect();
        let begin: String = line.trim().chars().take(60).collect();
        format!("README: {} in {begin:?} is claimed by nothing", words.join(", "))
    };
    lines.iter().filter(has).map(said).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_targets_of_links_hold_no_figures() {
        let page = "a `1.5` b [c 2](d-3.md) e\n```sh\nrun --n 4\n```\nlast 5";
        assert_eq!(prose(page), ["a   b [c 2]  e", "", "", "", "last 5"]);
    }

    #[test]
    fn what_is_left_is_named() {
        let lines = ["nothing", "so 1.5 times, 2"].map(str::to_owned);
        assert_eq!(
            unclaimed(&lines),
            ["README: 1.5, 2 in \"so 1.5 times, 2\" is claimed by nothing"]
        );
    }
}
