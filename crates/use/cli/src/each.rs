//! When each thread of a call is done, as `predict` and `cla` say it beside the band of the whole.

use isochrone_cla::predicted::Prediction;
use serde_json::{Value, json};

/// When each thread is done, ns after the common beginning.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Done(pub(crate) Vec<f64>);

impl Done {
    /// Of a prediction, every operation at its cheapest.
    pub(crate) fn cheapest(prediction: &Prediction) -> Self {
        let mut done = vec![0.0_f64; prediction.graph.ranks()];
        for (node, end) in prediction.graph.nodes().iter().zip(&prediction.min.end_ns) {
            let rank = &mut done[node.rank.index()];
            *rank = rank.max(*end);
        }
        Self(done)
    }

    pub(crate) fn mean_ns(&self) -> Option<f64> {
        isochrone_stats::mean(&self.0)
    }

    pub(crate) fn last_ns(&self) -> Option<f64> {
        self.0.iter().copied().reduce(f64::max)
    }

    pub(crate) fn json(&self) -> Value {
        json!({ "threads_ns": self.0, "mean_ns": self.mean_ns(), "last_ns": self.last_ns() })
    }

    /// In lines of so many letters at most.
    pub(crate) fn words(&self, what: &str, room: usize) -> Vec<String> {
        let (Some(mean), Some(last)) = (self.mean_ns(), self.last_ns()) else { return Vec::new() };
        let mut lines = vec![format!("{what}: mean {mean:.1}, last {last:.1} ns; each thread:")];
        let mut line = String::new();
        for ns in &self.0 {
            let word = format!(" {ns:.1}");
            if line.len() + word.len() + 1 > room {
                lines.push(std::mem::take(&mut line));
            }
            if line.is_empty() {
                line.push(' ');
            }
            line += &word;
        }
        lines.push(line);
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_stand_in_lines_that_fit() {
        let done = Done((0..40).map(|thread| f64::from(thread) * 10.25).collect());
        let lines = done.words("T_min", 60);
        assert_eq!(lines[0], "T_min: mean 199.9, last 399.8 ns; each thread:");
        assert!(lines.len() > 4 && lines.iter().all(|line| line.len() <= 60), "{lines:?}");
        let words: usize = lines[1..].iter().map(|line| line.split_whitespace().count()).sum();
        assert_eq!(words, 40);
        assert_eq!(Done::default().words("T_min", 60), Vec::<String>::new());
        assert_eq!(Done::default().json()["last_ns"], Value::Null);
    }
}
