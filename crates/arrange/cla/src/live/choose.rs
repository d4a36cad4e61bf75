//! Which tree, which chunks: what a team asks before it opens a channel.

use super::classes::{CLASSES, class};
use super::kind::Kind;
use crate::choice;
use crate::collectives::{Collective, Options, Plan, PlanError, Tree};
use crate::program::{Combine, Element, Line, Rank};
use std::fmt::Debug;

/// Says how a collective is done. All ranks of a team must be told the same.
pub trait Choose: Debug + Send + Sync {
    /// Options for messages up to `bytes` bytes.
    fn options(&self, collective: Collective, ranks: u16, root: Rank, bytes: u32) -> Options;
}

/// The plan of a team's channel for such calls: that of the largest message of their class. A call of the
/// plan's members takes fewer bytes as well.
///
/// # Errors
/// [`PlanError`] for a root that is no rank.
pub fn channel_plan(
    choose: &dyn Choose,
    kind: Kind,
    ranks: u16,
    root: Rank,
    bytes: usize,
) -> Result<Plan, PlanError> {
    // A channel serves any reduction: only its chunks matter here.
    let collective = kind.collective(Combine::Sum(Element::I32));
    let bytes = CLASSES[class(bytes)].min(u32::MAX / u32::from(ranks.max(1))) & !7;
    let options = choose.options(collective, ranks, root, bytes);
    Plan::new(collective, ranks, root, bytes, options)
}

/// What is done without measurements: exchanges among few, flat trees among few, trees of degree four
/// among many.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usual;

impl Usual {
    /// Ranks up to which everybody talks to everybody.
    pub(super) const FEW: u16 = choice::FEW;
    /// Children of a rank among many.
    const DEGREE: u16 = choice::DEGREE;
    /// Lines of a chunk of long messages among few: a flag and 4 KiB. Measured with 4 KiB between two
    /// cores: one chunk of 65 lines took 835 ns, and 376 ns in a stream; chunks of 8 lines 994 and 831.
    const LONG_LINES: u32 = 65;
    /// Slots of their rings: enough for the writer to be ahead.
    const LONG_RING: u32 = 8;

    /// Lines of all rings of a rank that writes to every other one, at most: 256 KiB.
    const PAIRED_LINES: u32 = 4096;

    /// For ways that have a ring for each pair of ranks: among many these are short.
    fn in_pairs(ranks: u16, bytes: u32) -> Options {
        let usual = Self::shaped(ranks, bytes, Options::exchange(bytes));
        let (mut chunk_lines, mut ring) = (usual.chunk_lines, usual.ring);
        let fits = |lines, ring| lines * ring * u32::from(ranks - 1) <= Self::PAIRED_LINES;
        while ranks > Self::FEW && ring > 2 && !fits(chunk_lines, ring) {
            ring /= 2;
        }
        while ranks > Self::FEW && chunk_lines > 1 && !fits(chunk_lines, ring) {
            chunk_lines -= 1;
        }
        Options { chunk_lines, ring, ..usual }
    }

    fn shaped(ranks: u16, bytes: u32, options: Options) -> Options {
        if ranks > Self::FEW || bytes < Self::LONG_LINES * Line::BYTES - Line::WORD_BYTES {
            return options;
        }
        Options { chunk_lines: Self::LONG_LINES, ring: Self::LONG_RING, ..options }
    }
}

impl Choose for Usual {
    fn options(&self, collective: Collective, ranks: u16, root: Rank, bytes: u32) -> Options {
        let exchange = match collective {
            Collective::Barrier | Collective::Allreduce(_) => true,
            Collective::Allgather => ranks <= Self::FEW,
            Collective::Alltoall | Collective::ReduceScatter(_) => {
                return Self::in_pairs(ranks, bytes);
            }
            Collective::Scan(_) | Collective::Exscan(_) => true,
            _ => false,
        };
        if exchange {
            return Self::shaped(ranks, bytes, Options::exchange(bytes));
        }
        // Scatter and gather move each block once, whatever the tree.
        let flat = matches!(collective, Collective::Scatter | Collective::Gather);
        let tree = if flat || ranks <= Self::FEW {
            Tree::flat(ranks, root)
        } else {
            Tree::regular(ranks, root, Self::DEGREE)
        };
        Self::shaped(ranks, bytes, Options::tree(tree, bytes))
    }
}
