//! What `bench cholesky --peers` found: GFLOP/s, and ours over the best peer.

use isochrone_report::json::Format;
use std::collections::BTreeMap;

use isochrone_console::turns::{Ratio, Series};
use isochrone_report::fmt;
use isochrone_report::table::{Cell, Table};
use isochrone_workloads::dataflow::cholesky::flops;
use serde::Serialize;

use crate::bench::findings::Findings;

/// Ours a second time.
const AGAIN: &str = "again";

/// The figures.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(in crate::bench) struct Figures {
    rows: u32,
    threads: usize,
    /// What OpenBLAS takes the cores for, and what it was told to.
    openblas_core: Option<String>,
    openblas_coretype: Option<String>,
    /// Every run was checked; a wrong one is an error.
    verified: bool,
    /// The largest of all runs, in units of rounding.
    residual: f64,
    systems: Vec<SystemFigures>,
    /// Our fastest over the fastest of all others, both by the median of blocks.
    best_ours: Option<String>,
    best_peer: Option<String>,
    over_best_peer: Option<Controlled>,
    series: Option<Series>,
}

/// One system.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct SystemFigures {
    pub(super) name: String,
    pub(super) ours: bool,
    tile: u32,
    /// Seconds of one run each, by tile.
    sweep_seconds: BTreeMap<u32, f64>,
    seconds: Option<f64>,
    gflops: Option<f64>,
    /// How many times faster than the best peer.
    over_best_peer: Option<Ratio>,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Controlled {
    #[serde(flatten)]
    ratio: Ratio,
    control: Option<Ratio>,
}

impl SystemFigures {
    pub(super) fn new(name: &str, ours: bool, tile: u32, tried: Vec<(u32, f64)>) -> Self {
        Self {
            name: name.to_owned(),
            ours,
            tile,
            sweep_seconds: tried.into_iter().collect(),
            seconds: None,
            gflops: None,
            over_best_peer: None,
        }
    }

    /// Seconds of its best tile in the sweep.
    pub(super) fn best(&self) -> f64 {
        self.sweep_seconds.values().copied().fold(f64::INFINITY, f64::min)
    }
}

/// What all systems were asked for.
pub(super) struct Asked {
    pub(super) rows: u32,
    pub(super) threads: usize,
    /// Of the resampling of ratios.
    pub(super) seed: u64,
    /// The core that OpenBLAS takes this one for, and the one that it was told.
    pub(super) core: Option<String>,
    pub(super) core_type: Option<String>,
}

impl Figures {
    pub(super) fn new(
        asked: Asked,
        mut systems: Vec<SystemFigures>,
        residual: f64,
        series: Series,
    ) -> Self {
        for system in &mut systems {
            let means = series.arm(&system.name).map(|arm| series.block_means(arm));
            system.seconds = means.as_deref().and_then(isochrone_stats::median);
            // Rounded up to whole tiles, which is what was factored.
            let rows = asked.rows.next_multiple_of(system.tile);
            system.gflops = system.seconds.map(|seconds| flops(rows as usize) / seconds / 1e9);
        }
        let best = |ours: bool| {
            let all = systems.iter().filter(|system| system.ours == ours);
            let all = all.filter_map(|system| Some((system.seconds?, system.name.clone())));
            all.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
        };
        let (best_ours, best_peer) = (best(true), best(false));
        let ratio = |arm: &str, base: &str| Ratio::of(&series, arm, base, asked.seed);
        let over = best_ours.as_deref().zip(best_peer.as_deref()).and_then(|(ours, peer)| {
            // The arm that was repeated is the one that was best in the sweep.
            let control = ratio(AGAIN, ours);
            ratio(ours, peer).map(|ratio| Controlled { ratio, control })
        });
        for system in &mut systems {
            let peer = best_peer.as_deref().filter(|peer| *peer != system.name);
            system.over_best_peer = peer.and_then(|peer| ratio(&system.name, peer));
        }
        Self {
            rows: asked.rows,
            threads: asked.threads,
            openblas_core: asked.core,
            openblas_coretype: asked.core_type,
            verified: true,
            residual,
            systems,
            best_ours,
            best_peer,
            over_best_peer: over,
            series: (!series.blocks.is_empty()).then_some(series),
        }
    }
}

impl Findings for Figures {
    const FORMAT: Format = Format::BenchCholesky;

    fn text(&self, width: u16) -> String {
        let mut table =
            Table::new(["system", "tile", "time", "GFLOP/s", "over best peer"]).keyed(2);
        let three = |x: f64| fmt::significant(x, 3);
        for system in &self.systems {
            let over = system.over_best_peer;
            table.row([
                Cell::text(&system.name),
                Cell::number(f64::from(system.tile), system.tile.to_string()),
                Cell::maybe(system.seconds, fmt::seconds),
                Cell::maybe(system.gflops, three),
                over.map_or_else(Cell::missing, |r| Cell::number(r.median, r.to_string())),
            ]);
        }
        let told = match &self.openblas_coretype {
            Some(told) => format!(" (told: {told})"),
            None => String::new(),
        };
        let core = self.openblas_core.as_deref().unwrap_or("not there");
        let verdict = match (&self.best_ours, &self.best_peer, self.over_best_peer) {
            (Some(ours), Some(peer), Some(over)) => format!(
                "{ours}: {} of {peer}; over itself {}",
                over.ratio,
                over.control.map_or_else(|| "-".to_owned(), |control| control.to_string())
            ),
            _ => "no ratio".to_owned(),
        };
        format!(
            "cholesky, {} rows, {} threads; OpenBLAS's core: {core}{told}\n{}\n{verdict}\nverified: residual \
             {} at most",
            self.rows,
            self.threads,
            table.to_terminal(width),
            three(self.residual),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fixtures::{fits, ratio};

    #[test]
    fn tables_fit_a_terminal() {
        let mut system = SystemFigures::new("libgomp, OpenBLAS kernels", false, 512, Vec::new());
        (system.seconds, system.gflops) = (Some(1.234), Some(123.4));
        system.over_best_peer = ratio();
        fits(&Figures {
            rows: 8192,
            threads: 16,
            openblas_core: Some("SkylakeX".to_owned()),
            openblas_coretype: None,
            verified: true,
            residual: 0.5,
            systems: vec![system],
            best_ours: None,
            best_peer: None,
            over_best_peer: None,
            series: None,
        });
    }
}
