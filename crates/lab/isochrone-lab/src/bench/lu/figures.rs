//! What `bench lu` found: GFLOP/s, and each peer's time over ours.

use isochrone_console::turns::Series;
use isochrone_report::fmt;
use isochrone_report::json::Format;
use isochrone_report::table::{Cell, Table};
use isochrone_workloads::dataflow::lu::flops;
use serde::Serialize;

use crate::bench::beside_peers::{BesidePeer, Ours, Sense, cell};
use crate::bench::findings::Findings;

/// Ours, and ours a second time.
pub(super) const OURS: &str = "isochrone";
pub(super) const AGAIN: &str = "again";

/// The figures.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(in crate::bench) struct Figures {
    /// Rounded up to whole tiles, which is what was factored.
    rows: u32,
    tile: u32,
    /// Of one factorisation.
    tasks: u64,
    threads: usize,
    /// More threads than cores: times say nothing of either system alone.
    oversubscribed: bool,
    /// Every run was checked; a wrong one is an error.
    verified: bool,
    /// The largest of all runs, in units of rounding.
    residual: f64,
    systems: Vec<SystemFigures>,
    over_peers: Vec<BesidePeer>,
    series: Option<Series>,
}

/// One system.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SystemFigures {
    name: String,
    seconds: Option<f64>,
    gflops: Option<f64>,
}

/// What was factored, and by how many.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) tiles: u32,
    pub(super) width: u32,
    pub(super) threads: usize,
    pub(super) cores: usize,
    pub(super) seed: u64,
}

impl Asked {
    pub(super) const fn rows(self) -> u32 {
        self.tiles * self.width
    }

    /// `n` factors, two solves for each tile beside one, and a product for each in what is left.
    fn tasks(self) -> u64 {
        (0..u64::from(self.tiles)).map(|left| 1 + 2 * left + left * left).sum()
    }
}

impl Figures {
    pub(super) fn new(asked: Asked, residual: f64, series: Series) -> Self {
        let seconds = |name: &str| {
            let means = series.arm(name).map(|arm| series.block_means(arm));
            means.as_deref().and_then(isochrone_stats::median)
        };
        let work = flops(asked.rows() as usize);
        let systems = series.arms.iter().filter(|name| *name != AGAIN);
        let systems = systems.map(|name| {
            let seconds = seconds(name);
            let gflops = seconds.map(|seconds| work / seconds / 1e9);
            SystemFigures { name: name.clone(), seconds, gflops }
        });
        let blocks = series
            .arms
            .iter()
            .filter_map(|name| Some((name.as_str(), series.block_means(series.arm(name)?))));
        let both = Ours { first: OURS, again: AGAIN };
        let over_peers = BesidePeer::all(&blocks.collect(), both, Sense::PeerOverOurs, asked.seed);
        Self {
            rows: asked.rows(),
            tile: asked.width,
            tasks: asked.tasks(),
            threads: asked.threads,
            oversubscribed: asked.threads > asked.cores,
            verified: !series.blocks.is_empty(),
            residual,
            systems: systems.collect(),
            over_peers,
            series: (!series.blocks.is_empty()).then_some(series),
        }
    }
}

impl Findings for Figures {
    const FORMAT: Format = Format::BenchLu;

    fn text(&self, width: u16) -> String {
        let three = |x: f64| fmt::significant(x, 3);
        let mut table = Table::new(["system", "time", "GFLOP/s", "peer / ours", "control"]);
        for system in &self.systems {
            let over = self.over_peers.iter().find(|over| over.peer == system.name);
            table.row([
                Cell::text(&system.name),
                Cell::maybe(system.seconds, fmt::seconds),
                Cell::maybe(system.gflops, three),
                cell(over.map(|over| &over.ratio)),
                cell(over.and_then(|over| over.control.as_ref())),
            ]);
        }
        let crowded = if self.oversubscribed { ", which are more than cores" } else { "" };
        let verified = match self.verified {
            true => format!("verified: residual {} at most", three(self.residual)),
            false => "no run came to its end, and nothing is verified".to_owned(),
        };
        format!(
            "LU without pivots, {} rows in tiles of {}, {} tasks, {} threads{crowded}; the same kernels in all \
             systems\n{}\n{}\n{verified}",
            self.rows,
            self.tile,
            fmt::count(self.tasks),
            self.threads,
            table.to_terminal(width),
            Sense::PeerOverOurs.words(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fixtures::{fits, series};
    use isochrone_workloads::dataflow::lu::steps;

    fn asked(tiles: u32) -> Asked {
        Asked { tiles, width: 64, threads: 16, cores: 2, seed: 1 }
    }

    #[test]
    fn tables_fit_a_terminal_and_a_ratio_above_one_is_for_us() {
        let series = series(&[OURS, "libgomp", "libomp", AGAIN], 6);
        let figures = Figures::new(asked(32), 0.5, series);
        let over: Vec<f64> = figures.over_peers.iter().map(|over| over.ratio.median).collect();
        assert!((over[0] - 1.1).abs() < 1e-9 && (over[1] - 1.2).abs() < 1e-9, "{over:?}");
        let control = figures.over_peers[0].control.expect("ours was repeated");
        assert!((control.median - 1.3).abs() < 1e-9, "{control}");
        assert_eq!(figures.systems.len(), 3);
        fits(&figures);
    }

    #[test]
    fn tasks_are_counted_as_they_are_made() {
        for tiles in [1, 2, 5, 32] {
            let mut made = 0;
            steps(tiles, |_| {
                made += 1;
                Ok::<(), ()>(())
            })
            .expect("nothing fails");
            assert_eq!(asked(tiles).tasks(), made, "{tiles}");
        }
    }
}
