//! What has been done in a folder of results: a record of each part, kept in one file that is always whole.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::battery::PARTS;

/// The file of all records.
const FILE: &str = "summary.json";

/// How a part ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// Its figures are there.
    Done,
    /// It ended without, or was ended.
    Failed,
    /// There was no time left for it.
    Late,
}

/// One part that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) name: String,
    /// Program and words.
    pub(super) command: Vec<String>,
    pub(super) state: State,
    /// The program's exit code; `None` where a signal ended it, or it was not started.
    pub(super) code: Option<i32>,
    /// Why it failed.
    pub(super) why: Option<String>,
    /// What it took.
    pub(super) seconds: f64,
    /// Load average over a minute when it began.
    pub(super) load: Option<f64>,
    /// When it began.
    pub(super) started_unix_s: u64,
}

/// The folder of results.
#[derive(Debug)]
pub(super) struct Results {
    pub(super) folder: PathBuf,
    pub(super) records: Vec<Record>,
}

impl Results {
    /// What is there; nothing in a new folder.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let folder = folder.canonicalize()?;
        let records = match fs::read_to_string(folder.join(FILE)) {
            Ok(text) => serde_json::from_str(&text)
                .with_context(|| format!("{FILE} is of another program: name a new --out"))?,
            Err(_) => Vec::new(),
        };
        Ok(Self { folder, records })
    }

    /// Where a part's figures are.
    pub(super) fn json(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.json"))
    }

    /// Whether a part is done: it says so, and its figures are whole.
    pub(super) fn is_done(&self, name: &str) -> bool {
        let said = self.records.iter().any(|one| one.name == name && one.state == State::Done);
        said && is_whole(&self.json(name))
    }

    /// What the parts that are done took.
    pub(super) fn seconds(&self) -> f64 {
        self.records.iter().filter(|one| self.is_done(&one.name)).map(|one| one.seconds).sum()
    }

    /// Keeps a record, instead of an older one of the same part.
    pub(super) fn keep(&mut self, record: Record) -> Result<()> {
        self.records.retain(|one| one.name != record.name);
        self.records.push(record);
        let place = |name: &str| PARTS.iter().position(|part| part.name == name);
        self.records.sort_by_key(|one| place(&one.name));
        write(&self.folder.join(FILE), &(serde_json::to_string_pretty(&self.records)? + "\n"))
    }

    /// A line for each part.
    pub(super) fn table(&self) -> String {
        let line = |one: &Record| {
            let state = match one.state {
                State::Done => "done",
                State::Failed => "failed",
                State::Late => "no time",
            };
            let code = one.code.map_or_else(|| "-".to_owned(), |code| code.to_string());
            let why = one.why.as_deref().unwrap_or_default();
            format!("{:<12} {state:<8} {:>7.1} s  code {code:<4} {why}", one.name, one.seconds)
        };
        let sum: f64 = self.records.iter().map(|one| one.seconds).sum();
        let lines: Vec<String> =
            self.records.iter().map(|one| line(one).trim_end().to_owned()).collect();
        format!("{}\n{:<21} {sum:>7.1} s\n", lines.join("\n"), "all")
    }
}

/// Whether a file is whole JSON.
pub(super) fn is_whole(path: &Path) -> bool {
    let text = fs::read(path).unwrap_or_default();
    serde_json::from_slice::<Value>(&text).is_ok()
}

/// Writes beside the place and renames, so that no half of a file is ever there.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    let beside = path.with_extension("new");
    fs::write(&beside, text).with_context(|| beside.display().to_string())?;
    fs::rename(&beside, path).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &str, state: State, seconds: f64) -> Record {
        Record {
            name: name.to_owned(),
            command: Vec::new(),
            state,
            code: (state == State::Done).then_some(0),
            why: (state == State::Failed).then(|| "it was killed".to_owned()),
            seconds,
            load: None,
            started_unix_s: 1,
        }
    }

    #[test]
    fn what_is_done_stays_done_and_what_is_half_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let mut results = Results::open(&folder.path().join("new")).unwrap();
        for (name, text) in [("map", "{}"), ("quick", "{"), ("chase", "{}")] {
            fs::write(results.json(name), text).unwrap();
        }
        results.keep(record("map", State::Done, 3.0)).unwrap();
        results.keep(record("quick", State::Done, 5.0)).unwrap();
        results.keep(record("chase", State::Failed, 7.0)).unwrap();
        let again = Results::open(&results.folder).unwrap();
        assert_eq!(again.records, results.records);
        let done = ["map", "quick", "chase", "coll"].map(|name| again.is_done(name));
        assert_eq!(done, [true, false, false, false]);
        assert!((again.seconds() - 3.0).abs() < 1e-9);
        let names: Vec<&str> = again.records.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["quick", "map", "chase"], "in the order of the battery");
        results.keep(record("chase", State::Done, 1.0)).unwrap();
        assert!(results.is_done("chase") && results.records.len() == 3);
        let table = results.table();
        assert!(table.contains("chase        done") && table.contains("9.0 s"), "{table}");
    }
}
