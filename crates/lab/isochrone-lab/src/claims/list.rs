//! The list of claims: what README says, where, and which recorded numbers that is.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::numbers::numbers;

/// All of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    #[serde(rename = "machine")]
    pub(super) machines: Vec<Machine>,
    #[serde(rename = "claim")]
    pub(super) claims: Vec<Claim>,
    /// Numbers of README that are no figures.
    #[serde(rename = "plain")]
    pub(super) plain: Vec<Plain>,
}

/// A machine on which figures were taken.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Machine {
    pub(super) name: String,
    /// Words of its fingerprint, as `isochrone machine` and recorded files have them.
    pub(super) fingerprint: Vec<String>,
}

/// A figure of README.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Claim {
    /// Words that the line of README holds, and no other line.
    pub(super) line: String,
    /// The cell of that line, from 1, where it is a row of a table.
    pub(super) column: Option<usize>,
    /// As it stands there.
    pub(super) text: String,
    pub(super) machine: Option<String>,
    /// When it was taken.
    pub(super) date: String,
    /// The recorded file.
    pub(super) file: String,
    /// Where the numbers of the text stand in it, in their order; they are rounded to as many digits as the text has.
    pub(super) values: Vec<Value>,
    /// How values become the numbers of the text.
    #[serde(default)]
    pub(super) fold: Fold,
    /// The command of the laboratory whose `--json` is that file.
    pub(super) made_by: Option<Vec<String>>,
}

/// How values become the numbers of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fold {
    /// One for each.
    #[default]
    Each,
    /// The least and the most of them.
    Range,
}

/// A recorded number.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Value {
    /// By its place in a JSON file: `/sizes/0/mib`.
    pub(super) json: Option<String>,
    /// What it is divided by, in the same file.
    pub(super) over: Option<String>,
    /// By the text before it, which stands in the file once.
    pub(super) after: Option<String>,
    /// Whether README has one over it: a speed, of a time.
    #[serde(default)]
    pub(super) inverse: bool,
}

/// Words with numbers that are names, or sizes that were asked for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plain {
    pub(super) text: String,
    /// Why it is no figure.
    pub(super) why: String,
}

impl List {
    /// Reads it.
    ///
    /// # Errors
    /// Where it is no such list, or a claim has other numbers than places.
    pub(super) fn read(text: &str) -> Result<Self> {
        let list: Self = toml::from_str(text).context("it is no list of claims")?;
        list.claims.iter().try_for_each(|claim| claim.is_sound(&list.machines))?;
        ensure!(list.plain.iter().all(|plain| !plain.why.is_empty()), "a plain text without a why");
        Ok(list)
    }

    /// The files that claims are of.
    pub(super) fn files(&self) -> BTreeSet<&str> {
        self.claims.iter().map(|claim| claim.file.as_str()).collect()
    }
}

impl Claim {
    fn is_sound(&self, machines: &[Machine]) -> Result<()> {
        let Self { text, line, .. } = self;
        let wanted = if self.fold == Fold::Range { 2 } else { self.values.len() };
        let has = numbers(text).len();
        ensure!(has == wanted, "{line:?}: {text:?} has {has} numbers, and {wanted} are given");
        let known = |name: &String| machines.iter().any(|machine| machine.name == *name);
        ensure!(self.machine.as_ref().is_none_or(known), "{line:?}: of no machine of the list");
        let one = |value: &Value| value.json.is_some() != value.after.is_some();
        ensure!(self.values.iter().all(one), "{line:?}: a value is either `json` or `after`");
        Ok(())
    }
}
