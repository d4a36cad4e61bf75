//! What a line takes from one process of a job to the other, now: the costs that bands are made of.
//!
//! Two ranks of an MPI job make a team of their own beside what is compared, on lines chosen as the library
//! chooses them, and load each other's. No call that is compared is looked at.

use anyhow::{Context, Result};
use isochrone_cla::live::{Kind, Loads, Nearness, Place, Settings, Team};
use isochrone_cla::program::Rank;
use isochrone_mpi::Process;
use isochrone_os::clock::Clock;
use isochrone_stats::median;
use serde::{Deserialize, Serialize};

use super::rank::mpi;

/// A transfer over the lines that were looked at, ns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Transfer {
    pub(crate) least_ns: f64,
    pub(crate) median_ns: f64,
    pub(crate) most_ns: f64,
    /// A cycle of the clock.
    pub(crate) cycle_ns: f64,
}

/// Two rounds differ by less than this where no core was moved in between.
const MOVED: f64 = 0.08;

impl Transfer {
    /// Whether the cores lie as they did.
    pub(crate) fn stayed(before: &Self, after: &Self) -> bool {
        (after.median_ns / before.median_ns - 1.0).abs() <= MOVED
    }
}

/// Loads of each line.
const REPEATS: u32 = 15;

/// The team.
pub(super) struct Yardstick(Team);

impl Yardstick {
    /// All ranks of the job call this.
    pub(super) fn new(process: &Process) -> Result<Self> {
        let (me, ranks) = (Rank(process.rank()), process.ranks());
        let mut place = [0_u64; 2];
        let mut team = None;
        if me == Rank(0) {
            let (made, at) = Team::found(ranks, me, Settings::default())?;
            place = [at.process.into(), at.descriptor.into()];
            team = Some(made);
        }
        process.tell(&mut place).map_err(mpi)?;
        let [process, descriptor] = place.map(|n| u32::try_from(n).unwrap_or(0));
        let mut team = match team {
            Some(team) => team,
            None => Team::join(Place { process, descriptor }, me, Settings::default())?,
        };
        let _round_trips = team.choose_lines(Nearness::Nearest)?;
        Ok(Self(team))
    }

    /// What a line takes between ranks 0 and 1. All ranks call this; rank 0 knows afterwards.
    pub(super) fn transfer(&mut self, process: &Process, clock: &Clock) -> Result<Transfer> {
        let mut mine = [0.0_f64; 3];
        for (owner, asker) in [(Rank(0), Rank(1)), (Rank(1), Rank(0))] {
            let loads = Loads {
                kind: Kind::Broadcast,
                root: Rank(0),
                bytes: 8,
                owner,
                asker,
                repeats: REPEATS,
            };
            let cycles = self.0.load_cycles(loads)?;
            if !cycles.is_empty() {
                let end = |pick: fn(f64, f64) -> f64| cycles.iter().copied().reduce(pick);
                let middle = median(&cycles).context("no line was timed")?;
                mine = [end(f64::min), Some(middle), end(f64::max)]
                    .map(|cycles| clock.ns(cycles.unwrap_or(f64::NAN)));
            }
        }
        let all = process.collect(&mine.map(f64::to_bits)).map_err(mpi)?;
        let of = |n: usize| -> Vec<f64> {
            all.chunks(mine.len()).take(2).map(|rank| f64::from_bits(rank[n])).collect()
        };
        let least_ns = of(0).into_iter().fold(f64::INFINITY, f64::min);
        let most_ns = of(2).into_iter().fold(0.0, f64::max);
        Ok(Transfer {
            least_ns,
            median_ns: median(&of(1)).unwrap_or(f64::NAN),
            most_ns,
            cycle_ns: clock.ns(1.0),
        })
    }
}
