//! What the runs of a side-by-side comparison gave, run by run: the raw series that is kept.

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::Value;

use isochrone_host::Disturbance;

/// One fresh process of `isochrone map --only transfer`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Ours {
    /// From start to exit of the process.
    pub(crate) seconds: f64,
    /// Median over lines, and its 95 % interval.
    pub(crate) median_ns: f64,
    pub(crate) lo_ns: f64,
    pub(crate) hi_ns: f64,
    /// Percentiles over lines.
    pub(crate) p5_ns: f64,
    pub(crate) p95_ns: f64,
    pub(crate) lines: u64,
    /// Changes of base that the run noticed while it swapped.
    pub(crate) base_changes: u64,
}

/// One fresh process of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Peer {
    /// From start to exit of the process.
    pub(crate) seconds: f64,
    /// Its mean over samples of its one line.
    pub(crate) mean_ns: f64,
}

/// Four runs next to one another: ours, peer, peer, ours.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Block {
    pub(crate) ours: [Ours; 2],
    pub(crate) peer: [Peer; 2],
    pub(crate) disturbance: Disturbance,
}

/// Four runs of ours next to one another; the first and the last are arm A, the others arm B.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Control {
    pub(crate) ours: [Ours; 4],
    pub(crate) disturbance: Disturbance,
}

/// All of it, in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Series {
    pub(crate) blocks: Vec<Block>,
    /// The i-th control ran after block `2 * i + 1`.
    pub(crate) controls: Vec<Control>,
}

impl Ours {
    /// From what `map --json` printed.
    pub(crate) fn parse(text: &str, seconds: f64) -> Result<Self> {
        let figures: Value = serde_json::from_str(text).context("map --json printed no JSON")?;
        ensure!(figures["complete"] == true, "the map was interrupted");
        let transfer = &figures["line_transfer"];
        ensure!(transfer["state"] == "cas", "the map has no compare-and-swap transfers");
        let number = |name: &str| {
            transfer[name].as_f64().with_context(|| format!("line_transfer.{name} is missing"))
        };
        let events = figures["drift_events"].as_array().map_or(&[][..], Vec::as_slice);
        let swapping = |event: &&Value| event["what"].as_str().is_some_and(|w| w.contains("(cas)"));
        Ok(Self {
            seconds,
            median_ns: number("median_ns")?,
            lo_ns: number("lo_ns")?,
            hi_ns: number("hi_ns")?,
            p5_ns: number("p5_ns")?,
            p95_ns: number("p95_ns")?,
            lines: transfer["lines"].as_u64().context("line_transfer.lines is missing")?,
            base_changes: events.iter().filter(swapping).count() as u64,
        })
    }
}

impl Peer {
    /// From what `core-to-core-latency --csv` printed for two cores: a triangular matrix of means
    /// with one cell.
    pub(crate) fn parse(text: &str, seconds: f64) -> Result<Self> {
        let cells: Vec<&str> =
            text.lines().flat_map(|l| l.split(',')).filter(|c| !c.is_empty()).collect();
        let [cell] = cells[..] else {
            anyhow::bail!("the peer printed {} cells for one pair of cores: {text:?}", cells.len());
        };
        let mean_ns: f64 = cell.trim().parse().with_context(|| format!("{cell:?} is no number"))?;
        ensure!(mean_ns.is_finite() && mean_ns > 0.0, "{mean_ns} ns is no latency");
        Ok(Self { seconds, mean_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peers_one_cell_is_found() {
        let parsed = Peer::parse(",\n27.40760333333333,\n", 0.02).unwrap();
        assert_eq!(parsed, Peer { seconds: 0.02, mean_ns: 27.40760333333333 });
        assert!(Peer::parse(",,\n1,,\n2,3,\n", 0.02).is_err(), "three cores");
        assert!(Peer::parse("", 0.02).is_err());
        assert!(Peer::parse(",\nNaN,\n", 0.02).is_err());
    }

    #[test]
    fn our_figures_are_found_and_half_a_map_is_refused() {
        let text = |complete: bool, state: &str| {
            format!(
                r#"{{"complete": {complete}, "line_transfer": {{"state": "{state}", "median_ns": 27.0,
                "lo_ns": 26.9, "hi_ns": 27.1, "p5_ns": 26.0, "p95_ns": 28.0, "lines": 64}},
                "drift_events": [{{"what": "the pair's latencies (cas) moved"}}, {{"what": "(modified)"}}]}}"#
            )
        };
        let parsed = Ours::parse(&text(true, "cas"), 0.4).unwrap();
        assert_eq!((parsed.median_ns, parsed.lines, parsed.base_changes), (27.0, 64, 1));
        assert!(Ours::parse(&text(false, "cas"), 0.4).is_err());
        assert!(Ours::parse(&text(true, "modified"), 0.4).is_err());
        assert!(Ours::parse("", 0.4).is_err());
    }
}
