//! Which tree, which chunks: what a team asks before it opens a channel.

use crate::collectives::{Collective, Options, Tree};
use crate::program::Rank;
use std::fmt::Debug;

/// Says how a collective is done. All ranks of a team must be told the same.
pub trait Choose: Debug + Send + Sync {
    /// Options for messages up to `bytes` bytes.
    fn options(&self, collective: Collective, ranks: u16, root: Rank, bytes: u32) -> Options;
}

/// What is done without measurements: exchanges among few, flat trees among few, trees of degree four
/// among many.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usual;

impl Usual {
    /// Ranks up to which everybody talks to everybody.
    const FEW: u16 = 8;
    /// Children of a rank among many.
    const DEGREE: u16 = 4;
}

impl Choose for Usual {
    fn options(&self, collective: Collective, ranks: u16, root: Rank, bytes: u32) -> Options {
        let exchange = match collective {
            Collective::Barrier | Collective::Allreduce(_) => true,
            Collective::Allgather => ranks <= Self::FEW,
            _ => false,
        };
        if exchange {
            return Options::exchange(bytes);
        }
        // Scatter and gather move each block once, whatever the tree.
        let flat = matches!(collective, Collective::Scatter | Collective::Gather);
        let tree = if flat || ranks <= Self::FEW {
            Tree::flat(ranks, root)
        } else {
            Tree::regular(ranks, root, Self::DEGREE)
        };
        Options::tree(tree, bytes)
    }
}
