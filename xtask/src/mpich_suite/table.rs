//! What was found: a table for people, and the same as JSON.

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::json;

use crate::ci::say;

/// Of which MPI and folder programs are, and how many ranks they have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Place {
    pub(super) mpi: String,
    pub(super) part: String,
    pub(super) ranks: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<8} {:<13} {:>2}", self.mpi, self.part, self.ranks)
    }
}

/// How many programs of a place there were of each kind.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Row {
    pub(super) same: usize,
    /// Of those, with calls in lines.
    pub(super) in_lines: usize,
    /// Of the same, too late with and without.
    pub(super) late: usize,
    pub(super) differs: usize,
    /// Other than without the library, where the suite expects a failure.
    pub(super) excused: usize,
    /// Not the same each time without the library.
    pub(super) unsteady: usize,
    /// Not built with this MPI.
    pub(super) missing: usize,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { same, in_lines, late, differs, excused, unsteady, missing } = self;
        write!(
            f,
            "{same:>5} {in_lines:>8} {late:>5} {differs:>7} {excused:>7} {unsteady:>8} {missing:>9}"
        )
    }
}

/// A program that does something else with the library.
#[derive(Debug, Serialize)]
pub(super) struct Difference {
    pub(super) place: Place,
    /// With its arguments.
    pub(super) program: String,
    pub(super) how: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.place, self.program, self.how)
    }
}

/// All that was found.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) rows: Vec<(Place, Row)>,
    pub(super) differences: Vec<Difference>,
}

impl Table {
    /// Programs that were run, each for a number of ranks.
    pub(super) fn runs(&self) -> usize {
        self.rows.iter().map(|(_, row)| row.same + row.differs + row.excused + row.unsteady).sum()
    }

    pub(super) fn say(&self) {
        self.differences.iter().for_each(|found| say(&found.to_string()));
        say("MPI      folder     ranks  same in lines  late differs excused unsteady not built");
        self.rows.iter().for_each(|(place, row)| say(&format!("{place} {row}")));
    }

    /// Writes it as JSON, where a place is given.
    pub(super) fn write(&self, path: Option<&Path>) -> Result<()> {
        let Some(path) = path else { return Ok(()) };
        let rows: Vec<_> = self
            .rows
            .iter()
            .map(|(place, row)| json!({ "place": place, "programs": row }))
            .collect();
        let all = json!({ "rows": rows, "differences": self.differences });
        std::fs::write(path, serde_json::to_string_pretty(&all)? + "\n")
            .with_context(|| path.display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_counted_and_written() {
        let place = Place { mpi: "mpich".to_owned(), part: "errors/coll".to_owned(), ranks: 4 };
        let row =
            Row { same: 7, in_lines: 5, late: 1, differs: 1, excused: 1, unsteady: 2, missing: 3 };
        let how = "with alone: no".to_owned();
        let found = Difference { place: place.clone(), program: "red 1".to_owned(), how };
        let table = Table { rows: vec![(place, row)], differences: vec![found] };
        assert_eq!(table.runs(), 11);
        assert_eq!(
            table.differences[0].to_string(),
            "mpich    errors/coll    4 red 1: with alone: no"
        );
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("found.json");
        table.write(Some(&path)).expect("room");
        let text = std::fs::read_to_string(&path).expect("written");
        let read: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(read["rows"][0]["programs"]["in_lines"], 5);
        assert_eq!(read["differences"][0]["place"]["ranks"], 4);
        assert!(table.write(Some(Path::new("/no/such/folder/found.json"))).is_err());
    }
}
