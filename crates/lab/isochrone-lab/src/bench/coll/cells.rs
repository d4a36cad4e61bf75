//! What is timed in a job, and what a job gives: the cells of the table, and times by cell and arm.

use std::collections::BTreeMap;

use isochrone_cla::live::Kind;
use isochrone_mpi::By;
use isochrone_stats::{rng, shuffle};
use serde::{Deserialize, Serialize};

use super::yardstick::{SIZES, Transfer};

/// How calls follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// Each call begins at a time stamp of its own; roots take turns.
    Isolated,
    /// Call after call; roots take turns, so nobody runs ahead.
    Alternating,
    /// Call after call from one root, which may run ahead.
    Steady,
}

/// What is timed in one kind of block.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Cell {
    /// `bcast`, `barrier`, ...
    pub(crate) op: String,
    pub(crate) bytes: usize,
    pub(crate) mode: Mode,
}

/// Who did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum Arm {
    Ours,
    /// Ours once more: how far an arm is from itself.
    Control,
    Peer,
}

impl Arm {
    pub(crate) const ALL: [Self; 3] = [Self::Ours, Self::Control, Self::Peer];

    pub(super) const fn by(self) -> By {
        match self {
            Self::Peer => By::Mpi,
            _ => By::Lines,
        }
    }
}

/// The figures of one job.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Job {
    pub(crate) mpi: String,
    pub(crate) cells: Vec<CellTimes>,
    pub(crate) samples: u64,
    /// Samples for which a rank came late.
    pub(crate) late: u64,
    /// From when on after its moment a rank was late, ns: the longest that any rank measured.
    #[serde(default)]
    pub(crate) late_ns: f64,
    /// What a line takes from one rank to the other, before each round and after it.
    #[serde(default)]
    pub(crate) rounds: Vec<[Transfer; 2]>,
}

/// The times of one cell in one job.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CellTimes {
    pub(crate) cell: Cell,
    /// Nanoseconds of a call, the median of each block, by arm, in the order of blocks; null where no call of a
    /// block began in time.
    pub(crate) block_ns: BTreeMap<Arm, Vec<Option<f64>>>,
    /// Single calls of ours, isolated, a few of each round.
    pub(crate) samples: Vec<Samples>,
}

/// Single calls of ours in one round.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Samples {
    /// Which round.
    pub(crate) round: usize,
    pub(crate) ns: Vec<f64>,
    /// For each which call of its channel it was, from 0: that decides who acknowledges.
    pub(crate) calls: Vec<u64>,
    /// Calls that were left out because the ranks began apart.
    pub(crate) apart: usize,
    /// What a call takes a rank by itself in this round, through the MPI's interface.
    pub(crate) call_ns: f64,
}

/// The collectives of the table.
pub(crate) const KINDS: [Kind; 6] =
    [Kind::Broadcast, Kind::Barrier, Kind::Reduce, Kind::Allreduce, Kind::Scatter, Kind::Gather];
/// All cells, a barrier once.
pub(crate) fn cells() -> Vec<(Kind, Cell)> {
    let mut cells = Vec::new();
    for kind in KINDS {
        let sizes: &[usize] = if kind == Kind::Barrier { &[0] } else { &SIZES };
        // Where nobody can run ahead, turns of roots change nothing.
        let modes: &[Mode] = if kind.rooted() {
            &[Mode::Isolated, Mode::Alternating, Mode::Steady]
        } else {
            &[Mode::Isolated, Mode::Steady]
        };
        for &bytes in sizes {
            for &mode in modes {
                cells.push((kind, Cell { op: kind.name().to_owned(), bytes, mode }));
            }
        }
    }
    cells
}

/// The blocks of a round in random order; `by_cell`: those of a cell after one another, so that where time is over
/// every arm has what one has.
pub(crate) fn order(cells: &[usize], seed: u64, by_cell: bool) -> Vec<(usize, Arm)> {
    let mut random = rng(seed);
    let mut order: Vec<(usize, Arm)> =
        cells.iter().flat_map(|&cell| Arm::ALL.map(|arm| (cell, arm))).collect();
    shuffle(&mut order, &mut random);
    if by_cell {
        let mut turns = cells.to_vec();
        shuffle(&mut turns, &mut random);
        order.sort_by_key(|(cell, _)| turns.iter().position(|turn| turn == cell));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_by_cell_has_all_arms_of_a_cell_before_the_next() {
        let cells: Vec<usize> = (3..27).collect();
        let by_cell = order(&cells, 7, true);
        let mut seen: Vec<usize> = Vec::new();
        for arms in by_cell.chunks(Arm::ALL.len()) {
            assert!(arms.iter().all(|(cell, _)| *cell == arms[0].0), "{by_cell:?}");
            seen.push(arms[0].0);
        }
        assert!(!seen.is_sorted() && by_cell.iter().any(|(_, arm)| *arm != Arm::Ours));
        for mut blocks in [by_cell, order(&cells, 7, false)] {
            blocks.sort();
            blocks.dedup();
            assert_eq!(blocks.len(), 24 * Arm::ALL.len(), "each once");
        }
    }
}
