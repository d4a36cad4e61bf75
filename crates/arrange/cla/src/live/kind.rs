//! The collectives by name alone, as a team's channels are kept.

use crate::collectives::Collective;
use crate::program::{Combine, Element};

/// A collective without its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "they are those of `Collective`")]
pub enum Kind {
    Broadcast,
    Barrier,
    Reduce,
    Allreduce,
    Scatter,
    Gather,
    Allgather,
}

impl Kind {
    /// How many there are.
    pub const COUNT: usize = 7;
    /// All of them.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Broadcast,
        Self::Barrier,
        Self::Reduce,
        Self::Allreduce,
        Self::Scatter,
        Self::Gather,
        Self::Allgather,
    ];

    /// The name that commands and figures use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.collective(Combine::Sum(Element::I64)).name()
    }

    /// The same with a reduction, where there is one.
    #[must_use]
    pub const fn collective(self, combine: Combine) -> Collective {
        match self {
            Self::Broadcast => Collective::Broadcast,
            Self::Barrier => Collective::Barrier,
            Self::Reduce => Collective::Reduce(combine),
            Self::Allreduce => Collective::Allreduce(combine),
            Self::Scatter => Collective::Scatter,
            Self::Gather => Collective::Gather,
            Self::Allgather => Collective::Allgather,
        }
    }
}
