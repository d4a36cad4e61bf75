//! A recorded number, out of its file.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use isochrone_console::output::read_text;

use super::list::{Claim, Fold, Value};
use super::numbers::numbers;

/// The largest recorded file: a paper's with all of its cells.
const RECORDED_MAX: u64 = 64 << 20;

/// A recorded file.
pub(super) struct Recorded {
    text: String,
    json: Option<serde_json::Value>,
}

impl Recorded {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = read_text(path, RECORDED_MAX)?;
        let is_json = path.extension().is_some_and(|end| end == "json");
        let json = is_json.then(|| serde_json::from_str(&text)).transpose();
        Ok(Self { json: json.with_context(|| path.display().to_string())?, text })
    }

    /// The numbers that a claim has, as they are recorded.
    pub(super) fn of(&self, claim: &Claim) -> Result<Vec<f64>> {
        let all: Vec<f64> =
            claim.values.iter().map(|value| self.value(value)).collect::<Result<_>>()?;
        Ok(match claim.fold {
            Fold::Each => all,
            Fold::Range => {
                let end = |pick: fn(f64, f64) -> f64| all.iter().copied().reduce(pick);
                [end(f64::min), end(f64::max)].into_iter().flatten().collect()
            }
        })
    }

    fn value(&self, value: &Value) -> Result<f64> {
        let found = match (&value.json, &value.after) {
            (Some(place), None) => self.at(place)?,
            (None, Some(words)) => self.after(words)?,
            _ => bail!("a value is either `json` or `after`"),
        };
        let found = match &value.over {
            Some(place) => found / self.at(place)?,
            None => found,
        };
        Ok(if value.inverse { 1.0 / found } else { found })
    }

    fn at(&self, place: &str) -> Result<f64> {
        let json = self.json.as_ref().context("it is no JSON")?;
        let found = json.pointer(place).with_context(|| format!("nothing at {place}"))?;
        found.as_f64().with_context(|| format!("no number at {place}: {found}"))
    }

    /// The first number after words that stand in it once.
    fn after(&self, words: &str) -> Result<f64> {
        let mut parts = self.text.split(words).skip(1);
        let behind = parts.next().with_context(|| format!("nothing says {words:?}"))?;
        ensure!(parts.next().is_none(), "{words:?} stands there more than once");
        let first = numbers(behind.lines().next().unwrap_or_default()).first().copied();
        Ok(first.with_context(|| format!("no number follows {words:?}"))?.value)
    }
}
