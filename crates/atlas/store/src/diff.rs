//! What changed between two atlases of a machine.
//!
//! A difference is one only beyond what measuring again would show: bases are the same if their
//! patterns correlate at 0.98 or more up to a key, cells are the same if their intervals overlap.
//! So two maps with unchanged bases differ in nothing. It compares; it never says who is right.

mod bases;
mod cells;

use crate::contents::{Contents, LevelMap};
use serde::{Deserialize, Serialize};

pub use bases::BaseChange;
pub use cells::CellChange;

/// Frames whose codes differ beyond this share have moved; fewer are decoding errors.
const MOVED_SHARE: f64 = 0.10;

/// Pages that both atlases know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PageChange {
    /// The level.
    pub level: String,
    /// Pages in both.
    pub common: u64,
    /// Of these, pages with another code (up to equivalent ones and one key for all).
    pub differing: u64,
}

impl PageChange {
    /// True if more pages differ than decoding errors explain.
    #[must_use]
    pub fn moved(&self) -> bool {
        share(self.differing, self.common) > MOVED_SHARE
    }
}

fn share(part: u64, whole: u64) -> f64 {
    let number = |count: u64| u32::try_from(count).map_or(f64::from(u32::MAX), f64::from);
    number(part) / number(whole).max(1.0)
}

/// Everything that two atlases differ in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Diff {
    /// Words of the machines' fingerprints that only one has: `"- old"`, `"+ new"`. With any, the
    /// two are different machines and the rest says little.
    pub machine: Vec<String>,
    /// Fields of the machine's state that changed, load averages left out.
    pub state: Vec<String>,
    /// What is described otherwise now: forms, classes, periods, or only in one of the two.
    pub description: Vec<String>,
    /// For each core and level whose base changed, what became of it.
    pub bases: Vec<BaseChange>,
    /// Cells whose intervals do not overlap.
    pub cells: Vec<CellChange>,
    /// Cells that both have.
    pub cells_compared: u64,
    /// Pages that both have, by level.
    pub pages: Vec<PageChange>,
    /// New cost of the timer minus the old one, cycles; not a difference, since it is subtracted.
    pub clock_overhead_cycles: f64,
    /// What is worth knowing and no difference.
    pub notes: Vec<String>,
}

impl Diff {
    /// True if nothing differs beyond what measuring again would show.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.machine.is_empty()
            && self.state.is_empty()
            && self.description.is_empty()
            && self.bases.is_empty()
            && self.cells.is_empty()
            && !self.pages.iter().any(PageChange::moved)
    }

    /// The differences in words, one a line, most important first; then notes.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.machine.iter().map(|words| format!("machine: {words}")).collect();
        lines.extend(self.description.iter().cloned());
        lines.extend(self.bases.iter().map(ToString::to_string));
        lines.extend(self.cells.iter().map(ToString::to_string));
        for pages in self.pages.iter().filter(|pages| pages.moved()) {
            lines.push(format!(
                "{}: {} of {} common pages have another code: their frames were replaced",
                pages.level, pages.differing, pages.common
            ));
        }
        lines.extend(self.state.iter().map(|words| format!("state: {words}")));
        if lines.is_empty() {
            lines.push(format!("no difference ({} cells compared)", self.cells_compared));
        }
        lines.extend(self.notes.iter().map(|note| format!("note: {note}")));
        lines
    }
}

/// Compares two atlases, the older one first.
#[must_use]
pub fn diff(old: &Contents, new: &Contents) -> Diff {
    let mut diff = Diff {
        machine: fingerprint_words(old, new),
        state: state_changes(old, new),
        clock_overhead_cycles: new.clock.overhead_cycles - old.clock.overhead_cycles,
        ..Diff::default()
    };
    if old.reading != new.reading {
        diff.description.push(format!("one is {}, the other {}", old.reading, new.reading));
    }
    for (name, contents) in [("the first", old), ("the second", new)] {
        if !contents.complete {
            diff.notes.push(format!("{name} atlas is incomplete: its run was interrupted"));
        }
    }
    for level in &old.levels {
        match new.levels.iter().find(|other| other.level == level.level) {
            Some(other) => compare_level(old, level, new, other, &mut diff),
            None => diff.description.push(format!("{}: no longer measured", level.level)),
        }
    }
    for level in &new.levels {
        if !old.levels.iter().any(|other| other.level == level.level) {
            diff.description.push(format!("{}: measured now", level.level));
        }
    }
    let cells = cells::compare(old, new);
    (diff.cells, diff.cells_compared) = (cells.changes, cells.compared);
    diff.notes.extend(cells.notes);
    let overhead = diff.clock_overhead_cycles;
    if overhead != 0.0 {
        diff.notes.push(format!("the timer costs {overhead:+.1} cycles; already taken off"));
    }
    diff
}

fn compare_level(
    old: &Contents,
    old_level: &LevelMap,
    new: &Contents,
    new_level: &LevelMap,
    diff: &mut Diff,
) {
    let name = &old_level.level;
    let mut word = |what: &str, before: String, after: String| {
        if before != after {
            diff.description.push(format!("{name}: {what} was {before}, is {after}"));
        }
    };
    word("form", form(old_level), form(new_level));
    word("period", old_level.period.to_string(), new_level.period.to_string());
    word("number of classes", old_level.classes.to_string(), new_level.classes.to_string());
    word("method", old_level.method.clone(), new_level.method.clone());
    let comparable = old_level.period == new_level.period && old_level.classes == new_level.classes;
    if comparable {
        let bases = bases::compare(old, old_level, new, new_level);
        diff.bases.extend(bases.changes);
        diff.notes.extend(bases.notes);
        if let Some(pages) = compare_pages(old, old_level, new, new_level) {
            diff.pages.push(pages);
        }
    }
}

fn form(level: &LevelMap) -> String {
    match level.form {
        crate::contents::Form::Pattern => "pattern",
        crate::contents::Form::Flat => "flat",
        crate::contents::Form::PerLine => "per line",
    }
    .to_owned()
}

/// Codes of common frames. A class's pattern and its pages' keys may both be turned by one key, and
/// classes may be numbered otherwise, without any change of latency; so for each class the most
/// frequent pair of new class and turn counts as no change.
fn compare_pages(
    old: &Contents,
    old_level: &LevelMap,
    new: &Contents,
    new_level: &LevelMap,
) -> Option<PageChange> {
    if old.pages_keyed_by != new.pages_keyed_by {
        return None;
    }
    let period = usize::from(old_level.period);
    let classes = usize::from(old_level.classes);
    // Class and key of a code, one class more for what is not known.
    let stands = |level: &LevelMap, code: u16| -> (usize, usize) {
        let (class, key) = (usize::from(code) / period, usize::from(code) % period);
        let stands = level.canonical_key.get(key).map_or(key, |key| usize::from(*key));
        if class < classes { (class, stands) } else { (classes, 0) }
    };
    let mut turns = vec![0_u64; (classes + 1) * (classes + 1) * period];
    for block in &old.pages {
        let Some(other) = new.pages.iter().find(|b| b.first_frame == block.first_frame) else {
            continue;
        };
        let (before, after) = match old_level.level.as_str() {
            "llc" => (&block.llc, &other.llc),
            _ => (&block.dram, &other.dram),
        };
        for (&before, &after) in before.iter().zip(after.iter()) {
            let (before, after) = (stands(old_level, before), stands(new_level, after));
            turns[(before.0 * (classes + 1) + after.0) * period + (before.1 ^ after.1)] += 1;
        }
    }
    let common: u64 = turns.iter().sum();
    let of_class = |turns: &[u64]| turns.iter().copied().max().unwrap_or(0);
    let same: u64 = turns.chunks_exact((classes + 1) * period).map(of_class).sum();
    let level = old_level.level.clone();
    (common > 0).then_some(PageChange { level, common, differing: common - same })
}

fn fingerprint_words(old: &Contents, new: &Contents) -> Vec<String> {
    if old.fingerprint.hash == new.fingerprint.hash {
        return Vec::new();
    }
    let only = |these: &[String], those: &[String], sign: &str| -> Vec<String> {
        let words = these.iter().filter(|word| !those.contains(word));
        words.map(|word| format!("{sign} {word}")).collect()
    };
    let (before, after) = (&old.fingerprint.words, &new.fingerprint.words);
    let mut words = only(before, after, "-");
    words.extend(only(after, before, "+"));
    if words.is_empty() {
        words.push("fingerprints differ, though their words do not".to_owned());
    }
    words
}

/// Compares the states field by field as their text form has them.
fn state_changes(old: &Contents, new: &Contents) -> Vec<String> {
    let fields = |contents: &Contents| match serde_json::to_value(&contents.state) {
        Ok(serde_json::Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let (before, after) = (fields(old), fields(new));
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let none = serde_json::Value::Null;
    let mut changes = Vec::new();
    for name in names.into_iter().filter(|name| *name != "loadavg") {
        let was = before.get(name).unwrap_or(&none);
        let is = after.get(name).unwrap_or(&none);
        // Free huge pages come and go with whoever runs.
        if was != is && name != "huge_pages" {
            changes.push(format!("{name} was {was}, is {is}"));
        }
    }
    changes
}

#[cfg(test)]
mod tests;
