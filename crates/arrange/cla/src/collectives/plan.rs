//! A collective with its shape: how many lines it needs and what each rank does.

use super::kind::{Amount, Collective, Kind};
use super::layout::Layout;
use super::member::{AnyWay, Member};
use super::options::{Options, Shape};
use super::way::Ranks;
use crate::program::{Combine, Element, Rank, Recorded, record};

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
    #[error("{0} has a root and needs a tree; an exchange does {exchanges}", exchanges = exchanges())]
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

/// What an exchange does, in words.
fn exchanges() -> String {
    let does = |kind: &Kind| AnyWay::of(*kind, &Shape::Exchange).is_some();
    let names: Vec<&str> = Kind::ALL.into_iter().filter(does).map(Kind::name).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    }
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
            Shape::Exchange if self.way().is_none() => {
                return Err(PlanError::Exchange(self.collective.name()));
            }
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
        let least = self.way().map_or(1, |way| way.ring_least);
        if !ring.is_power_of_two() || ring < least {
            return Err(PlanError::Ring { ring, what: self.collective.name(), least });
        }
        Ok(())
    }

    /// How it is done; none where nothing goes over this shape, which is refused as a plan is made.
    fn way(&self) -> Option<AnyWay> {
        AnyWay::of(self.collective.kind(), &self.options.shape)
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
        self.layout().lines()
    }

    /// Lines that must lie together in memory, as first number and count: the slots of rings whose
    /// chunks have several lines. All other lines may lie anywhere.
    #[must_use]
    pub fn runs(&self) -> Vec<(u32, u32)> {
        self.layout().runs()
    }

    /// What `rank` does.
    ///
    /// # Panics
    /// If `rank` is not one of the plan's.
    #[must_use]
    pub fn member(&self, rank: Rank) -> Member {
        assert!(rank.0 < self.ranks, "{rank} is not one of {} ranks", self.ranks);
        self.member_of(&self.layout(), rank)
    }

    /// What each rank does, rank 0 first.
    #[must_use]
    pub fn members(&self) -> Vec<Member> {
        let layout = self.layout();
        (0..self.ranks).map(|rank| self.member_of(&layout, Rank(rank))).collect()
    }

    /// The numbers of all lines: they follow from what each rank needs.
    fn layout(&self) -> Layout {
        let (way, ranks) = (self.known_way(), self.ranks_of());
        Layout::new(&self.options, (0..self.ranks).map(|rank| (way.needs)(&ranks, Rank(rank))))
    }

    fn member_of(&self, layout: &Layout, rank: Rank) -> Member {
        Member {
            bytes: self.bytes,
            chunk: self.options.chunk_bytes(),
            // Collectives that combine nothing never look at it.
            combine: self.collective.combine().unwrap_or(Combine::Sum(Element::I32)),
            part: (self.known_way().part)(&self.ranks_of(), layout, rank),
        }
    }

    const fn ranks_of(&self) -> Ranks<'_> {
        Ranks { count: self.ranks, options: &self.options }
    }

    fn known_way(&self) -> AnyWay {
        match self.way() {
            Some(way) => way,
            None => unreachable!("refused by `Plan::new`"),
        }
    }

    /// Whether `Send` and `Receive` of a rank may be the same memory (in allgather: whether `Send` may be
    /// the rank's own block of `Receive`).
    #[must_use]
    pub fn in_place(&self) -> bool {
        self.known_way().in_place
    }

    /// Bytes of the `Send` buffer of `rank` that the program reads, and of its `Receive` buffer that it
    /// writes.
    #[must_use]
    pub fn buffers(&self, rank: Rank) -> (u32, u32) {
        let touched = self.collective.kind().touched(rank == self.root);
        let bytes = |amount: Amount| amount.bytes(self.bytes, self.ranks);
        (bytes(touched.send), bytes(touched.receive))
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
