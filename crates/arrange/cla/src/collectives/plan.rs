//! A collective with its shape: how many lines it needs and what each rank does.

use super::layout::Layout;
use super::member::Member;
use super::options::{Options, Shape};
use crate::program::{Combine, Element, Rank, Recorded, record};

/// What is done together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Collective {
    /// The root's `Send` arrives in everybody else's `Receive`.
    Broadcast,
    /// Nobody leaves before all have come.
    Barrier,
    /// The root's `Receive` is the combination of everybody's `Send`. In a tree each rank combines its
    /// own elements with those of its children in the order in which they are served, so a result
    /// depends on the tree and on nothing else: equal calls give equal bits.
    Reduce(Combine),
    /// As `Reduce`, and everybody gets the result, with the same bits. In an exchange, lower ranks are
    /// the left operands.
    Allreduce(Combine),
    /// Rank `r` receives bytes `r * bytes ..` of the root's `Send`.
    Scatter,
    /// Rank `r`'s `Send` arrives at bytes `r * bytes ..` of the root's `Receive`.
    Gather,
    /// Rank `r`'s `Send` arrives at bytes `r * bytes ..` of everybody's `Receive`.
    Allgather,
}

impl Collective {
    /// All of them; those that combine do so by `combine`.
    #[must_use]
    pub const fn all(combine: Combine) -> [Self; 7] {
        [
            Self::Broadcast,
            Self::Barrier,
            Self::Reduce(combine),
            Self::Allreduce(combine),
            Self::Scatter,
            Self::Gather,
            Self::Allgather,
        ]
    }

    /// Whether one rank gives or gets what the others do not.
    #[must_use]
    pub const fn rooted(self) -> bool {
        matches!(self, Self::Broadcast | Self::Reduce(_) | Self::Scatter | Self::Gather)
    }

    /// How elements are combined, if they are.
    #[must_use]
    pub const fn combine(self) -> Option<Combine> {
        match self {
            Self::Reduce(combine) | Self::Allreduce(combine) => Some(combine),
            _ => None,
        }
    }

    /// The name that commands and figures use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Broadcast => "bcast",
            Self::Barrier => "barrier",
            Self::Reduce(_) => "reduce",
            Self::Allreduce(_) => "allreduce",
            Self::Scatter => "scatter",
            Self::Gather => "gather",
            Self::Allgather => "allgather",
        }
    }
}

/// Why there is no such plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A root that is no rank.
    #[error("root {root} is not one of {ranks} ranks; roots are 0 to {}", ranks.saturating_sub(1))]
    Root {
        /// The root asked for.
        root: u16,
        /// How many ranks.
        ranks: u16,
    },
    /// Nobody takes part.
    #[error("a collective of no rank; give at least one")]
    Nobody,
    /// A tree of other ranks.
    #[error("the tree has {tree} ranks and the collective {ranks}; make the tree for {ranks}")]
    TreeRanks {
        /// Ranks of the tree.
        tree: u16,
        /// Ranks of the collective.
        ranks: u16,
    },
    /// A tree with another root.
    #[error("the tree begins at {tree}, the collective at {root}; make the tree for {root}")]
    TreeRoot {
        /// Root of the tree.
        tree: Rank,
        /// Root of the collective.
        root: Rank,
    },
    /// No exchange does this.
    #[error("{0} has a root and needs a tree; an exchange does barrier, allreduce and allgather")]
    Exchange(&'static str),
    /// Bytes that are no whole elements.
    #[error("{bytes} bytes are no whole number of elements of {element} bytes")]
    Elements {
        /// Bytes asked for.
        bytes: u32,
        /// Bytes of an element.
        element: u32,
    },
    /// Bits of floating-point numbers.
    #[error("and, or and exclusive or combine integers, not {0:?}")]
    Bits(Element),
    /// A ring that cannot be gone round.
    #[error("a ring of {ring} slots; {what} needs a power of two, at least {least}")]
    Ring {
        /// Slots asked for.
        ring: u32,
        /// Which collective.
        what: &'static str,
        /// Slots at least.
        least: u32,
    },
    /// Groups for other ranks.
    #[error("{groups} groups for {ranks} ranks; give one for each, or none")]
    Groups {
        /// Groups given.
        groups: usize,
        /// How many ranks.
        ranks: u16,
    },
    /// More than a program can address.
    #[error("{ranks} ranks with {bytes} bytes each are more than 4 GiB; split the message")]
    Size {
        /// How many ranks.
        ranks: u16,
        /// Bytes of each.
        bytes: u32,
    },
    /// Chunks of nothing, or of more than a program can address.
    #[error("{lines} lines a chunk in {ring} slots; both are at least 1, together at most 2^20")]
    Chunk {
        /// Lines asked for.
        lines: u32,
        /// Slots asked for.
        ring: u32,
    },
}

/// A collective with its shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    collective: Collective,
    ranks: u16,
    root: Rank,
    bytes: u32,
    options: Options,
}

impl Plan {
    /// Lines of all slots of one ring at most.
    const RING_LINES_MAX: u64 = 1 << 20;

    /// `collective` of `ranks` ranks with `bytes` bytes from or to each. `root` matters to those that
    /// have one.
    ///
    /// # Errors
    /// [`PlanError`] when root, sizes and options do not fit together.
    pub fn new(
        collective: Collective,
        ranks: u16,
        root: Rank,
        bytes: u32,
        options: Options,
    ) -> Result<Self, PlanError> {
        let plan = Self { collective, ranks, root, bytes, options };
        plan.participants()?;
        plan.elements()?;
        plan.slots()?;
        Ok(plan)
    }

    fn participants(&self) -> Result<(), PlanError> {
        let ranks = self.ranks;
        if ranks == 0 {
            return Err(PlanError::Nobody);
        }
        if self.root.0 >= ranks {
            return Err(PlanError::Root { root: self.root.0, ranks });
        }
        let rooted = self.collective.rooted();
        match &self.options.shape {
            Shape::Exchange if rooted => return Err(PlanError::Exchange(self.collective.name())),
            Shape::Exchange => {}
            Shape::Tree(tree) if tree.ranks() != ranks => {
                return Err(PlanError::TreeRanks { tree: tree.ranks(), ranks });
            }
            Shape::Tree(tree) if rooted && tree.root() != self.root => {
                return Err(PlanError::TreeRoot { tree: tree.root(), root: self.root });
            }
            Shape::Tree(_) => {}
        }
        let groups = self.options.groups.len();
        if groups != 0 && groups != usize::from(ranks) {
            return Err(PlanError::Groups { groups, ranks });
        }
        Ok(())
    }

    fn elements(&self) -> Result<(), PlanError> {
        let (ranks, bytes) = (self.ranks, self.bytes);
        if u64::from(ranks) * u64::from(bytes) > u64::from(u32::MAX) {
            return Err(PlanError::Size { ranks, bytes });
        }
        let Some(combine) = self.collective.combine() else { return Ok(()) };
        let element = combine.element();
        if !bytes.is_multiple_of(element.bytes()) {
            return Err(PlanError::Elements { bytes, element: element.bytes() });
        }
        if combine.is_bitwise() && element.is_float() {
            return Err(PlanError::Bits(element));
        }
        Ok(())
    }

    fn slots(&self) -> Result<(), PlanError> {
        let (lines, ring) = (self.options.chunk_lines, self.options.ring);
        if lines == 0 || u64::from(lines) * u64::from(ring) > Self::RING_LINES_MAX {
            return Err(PlanError::Chunk { lines, ring });
        }
        // Without acknowledgements a slot is free when everybody has begun the chunk after the next.
        let least = match (self.collective, &self.options.shape) {
            (Collective::Allreduce(_), Shape::Exchange) | (Collective::Allgather, _) => 2,
            _ => 1,
        };
        if !ring.is_power_of_two() || ring < least {
            return Err(PlanError::Ring { ring, what: self.collective.name(), least });
        }
        Ok(())
    }

    /// What is done.
    #[must_use]
    pub const fn collective(&self) -> Collective {
        self.collective
    }

    /// How many ranks.
    #[must_use]
    pub const fn ranks(&self) -> u16 {
        self.ranks
    }

    /// The root.
    #[must_use]
    pub const fn root(&self) -> Rank {
        self.root
    }

    /// Bytes from or to each rank.
    #[must_use]
    pub const fn bytes(&self) -> u32 {
        self.bytes
    }

    /// What was chosen.
    #[must_use]
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// How many shared lines the program needs, all zero before the first call.
    #[must_use]
    pub fn lines(&self) -> u32 {
        Layout::new(self).lines()
    }

    /// Lines that must lie together in memory, as first number and count: the slots of rings whose
    /// chunks have several lines. All other lines may lie anywhere.
    #[must_use]
    pub fn runs(&self) -> Vec<(u32, u32)> {
        Layout::new(self).runs()
    }

    /// What `rank` does.
    ///
    /// # Panics
    /// If `rank` is not one of the plan's.
    #[must_use]
    pub fn member(&self, rank: Rank) -> Member {
        assert!(rank.0 < self.ranks, "{rank} is not one of {} ranks", self.ranks);
        Member::new(self, &Layout::new(self), rank)
    }

    /// What each rank does, rank 0 first.
    #[must_use]
    pub fn members(&self) -> Vec<Member> {
        let layout = Layout::new(self);
        (0..self.ranks).map(|rank| Member::new(self, &layout, Rank(rank))).collect()
    }

    /// Whether `Send` and `Receive` of a rank may be the same memory (in allgather: whether `Send` may be
    /// the rank's own block of `Receive`).
    #[must_use]
    pub const fn in_place(&self) -> bool {
        !matches!(
            (self.collective, &self.options.shape),
            (Collective::Allreduce(_), Shape::Exchange)
        )
    }

    /// Bytes of the `Send` buffer of `rank` that the program reads, and of its `Receive` buffer that it
    /// writes.
    #[must_use]
    pub fn buffers(&self, rank: Rank) -> (u32, u32) {
        let all = self.bytes * u32::from(self.ranks);
        let root = rank == self.root;
        match self.collective {
            Collective::Barrier => (0, 0),
            Collective::Broadcast if root => (self.bytes, 0),
            Collective::Broadcast => (0, self.bytes),
            Collective::Reduce(_) if root => (self.bytes, self.bytes),
            Collective::Reduce(_) => (self.bytes, 0),
            Collective::Allreduce(_) => (self.bytes, self.bytes),
            Collective::Scatter if root => (all, self.bytes),
            Collective::Scatter => (0, self.bytes),
            Collective::Gather if root => (self.bytes, all),
            Collective::Gather => (self.bytes, 0),
            Collective::Allgather => (self.bytes, all),
        }
    }

    /// The program of epochs `from..to` written down.
    #[must_use]
    pub fn record(&self, from: u64, to: u64) -> Recorded {
        let members = self.members();
        record(self.ranks, |lines, rank| {
            (from..to).try_for_each(|epoch| members[rank.index()].run(lines, epoch))
        })
    }
}
