//! How a team is set up, and how much its ranks share. It makes no team.

use super::choose::{Choose, Usual};
use super::patience::Patience;
use crate::program::Line;
use isochrone_distance::Distances;
use std::fmt;
use std::sync::Arc;

/// How a team is set up. All its ranks must be given the same, apart from distances.
#[derive(Clone)]
pub struct Settings {
    /// Bytes of shared memory for lines; none: what fits the number of ranks. Where a call finds too few lines
    /// left, all ranks wait for each other and have those of earlier collectives again.
    pub bytes: Option<usize>,
    /// How patiently ranks wait; none: what fits ranks and cores.
    pub patience: Option<Patience>,
    /// Flags by locked instructions, as the paper writes them.
    pub locked: bool,
    /// Who else is there; none: nobody. Where other ranks work meanwhile, a team may have no cores of its own.
    pub crowd: Option<Crowd>,
    /// Which trees and chunks, where distances do not say otherwise.
    pub choose: Arc<dyn Choose>,
    /// What is known of the machine, such as an atlas: by it the rank that makes the team chooses shapes that
    /// gain more than the model may be wrong by ([`crate::choice`]). What other ranks are given does not matter,
    /// and with none, or two ranks, all go by `choose`.
    pub distances: Option<Arc<dyn Distances + Send + Sync>>,
    /// Bytes from or to each rank from which on a call that only moves them has them copied once, from rank to rank,
    /// where the ranks were found to [reach each other's memory](super::Team::try_reach); none: never.
    pub single_copy_bytes: Option<usize>,
}

/// Ranks that run on a machine, a team's among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// How many.
    pub ranks: usize,
    /// Cores that the machine has.
    pub cores: usize,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("bytes", &self.bytes)
            .field("patience", &self.patience)
            .field("locked", &self.locked)
            .field("crowd", &self.crowd)
            .field("choose", &self.choose)
            .field("distances", &self.distances.is_some())
            .field("single_copy_bytes", &self.single_copy_bytes)
            .finish()
    }
}

impl Default for Settings {
    fn default() -> Self {
        let choose = Arc::new(Usual);
        Self {
            bytes: None,
            patience: None,
            locked: false,
            crowd: None,
            choose,
            distances: None,
            single_copy_bytes: None,
        }
    }
}

impl Settings {
    /// Bytes from which on calls are copied once, where ranks reach each other's memory.
    pub(super) fn single_from(&self) -> usize {
        // Whoever has no byte has nothing to copy.
        self.single_copy_bytes.map_or(usize::MAX, |bytes| bytes.max(1))
    }

    /// Lines for `ranks` ranks. Ranks have rings for each other, so that all roots of a collective together need
    /// lines as the square of the ranks: few ranks get so many that none is taken back, for many that were too
    /// much memory (50 GiB for 1024).
    pub(super) fn lines(&self, ranks: u16) -> usize {
        let each = if ranks > Usual::FEW {
            512 << 10
        } else {
            // Rings of long messages among few, which have larger chunks.
            (512 << 10).max(usize::from(ranks) * (200 << 10))
        };
        let usual = (5 << 18) + usize::from(ranks) * each;
        self.bytes.unwrap_or(usual) / Line::BYTES as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::Plan;
    use crate::live::choose::channel_plan;
    use crate::live::classes::CLASSES;
    use crate::live::kind::Kind;
    use crate::live::supply::Supply;
    use crate::program::Rank;

    /// What a root may be asked for; 0 stands for the root where there is none.
    fn plans(ranks: u16, root: Rank) -> impl Iterator<Item = Plan> {
        let each = |kind| CLASSES.iter().map(move |bytes| (kind, *bytes as usize));
        Kind::ALL
            .into_iter()
            .flat_map(each)
            .map(move |(kind, bytes)| {
                channel_plan(&Usual, kind, ranks, root, bytes).expect("the usual choice fits")
            })
            .filter(move |plan| plan.collective().rooted() || root == Rank(0))
    }

    #[test]
    fn few_ranks_have_lines_for_every_collective_size_and_root_at_once() {
        for ranks in 1..=Usual::FEW {
            let mut supply = Supply::new(0..Settings::default().lines(ranks), None);
            for plan in (0..ranks).flat_map(|root| plans(ranks, Rank(root))) {
                let taken = supply.take(&plan);
                assert!(taken.is_ok(), "{ranks} ranks, {:?}: {taken:?}", plan.collective());
            }
        }
    }

    #[test]
    fn a_team_of_any_size_has_lines_for_each_collective_alone() {
        let sizes =
            (1..=64).chain([65, 100, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1023, 1024]);
        for ranks in sizes {
            let supply = Supply::new(0..Settings::default().lines(ranks), None);
            for plan in
                [0, ranks / 2, ranks - 1].into_iter().flat_map(|root| plans(ranks, Rank(root)))
            {
                assert_eq!(supply.holds(&plan), Ok(()), "{ranks} ranks, {:?}", plan.collective());
            }
        }
    }
}
