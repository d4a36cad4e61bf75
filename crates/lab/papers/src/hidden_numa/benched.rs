//! What `isochrone bench astar` wrote, as far as it stands beside Figure 4.

use anyhow::{Context, Result, ensure};
use isochrone_units::Reading;
use serde::Deserialize;

/// A ratio with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub(crate) struct Interval {
    pub(crate) median: f64,
    pub(crate) lo: f64,
    pub(crate) hi: f64,
}

/// One line of the benchmark.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct BenchedRun {
    pub(crate) shape: String,
    pub(crate) cores: Vec<u16>,
    pub(crate) budget: usize,
    pub(crate) mib: f64,
    pub(crate) nodes_per_s: Option<f64>,
    pub(crate) aware_over_oblivious: Option<Interval>,
    pub(crate) oracle_over_oblivious: Option<Interval>,
    pub(crate) aa_control: Option<Interval>,
}

/// The file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Benched {
    bench: String,
    pub(crate) reading: Reading,
    pub(crate) complete: bool,
    pub(crate) machine: String,
    pub(crate) runs: Vec<BenchedRun>,
}

impl Benched {
    /// How to come by a file.
    pub const ADVICE: &'static str = "write one with `isochrone bench astar --json FILE`";

    /// The text of a file that `isochrone bench astar --json` wrote; errors say its name.
    ///
    /// # Errors
    /// When the text is of another benchmark, or of none.
    pub fn of(text: &str, name: &str) -> Result<Self> {
        let advice = Self::ADVICE;
        let benched: Self = serde_json::from_str(text)
            .with_context(|| format!("{name} is no result of that benchmark; {advice}"))?;
        ensure!(benched.bench == "astar", "{name} is of bench {}; {advice}", benched.bench);
        Ok(benched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_benchmark_is_refused() {
        let text = |bench: &str| {
            format!(
                r#"{{"bench": "{bench}", "reading": "measured", "complete": true, "machine": "m",
                "other": 1, "runs": [{{"shape": "hashed", "cores": [0], "budget": 9, "mib": 1.5,
                "nodes_per_s": null, "aware_over_oblivious": {{"median": 1.0, "lo": 0.9, "hi": 1.1}},
                "oracle_over_oblivious": null, "aa_control": null}}]}}"#
            )
        };
        let benched = Benched::of(&text("astar"), "b.json").unwrap();
        assert_eq!(benched.runs[0].aware_over_oblivious.map(|r| r.hi), Some(1.1));
        let refusal = |text: &str| Benched::of(text, "b.json").unwrap_err().to_string();
        assert!(refusal(&text("chase")).starts_with("b.json is of bench chase"));
        assert!(refusal("{}").starts_with("b.json is no result"));
    }
}
