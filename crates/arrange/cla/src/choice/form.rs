//! The forms that trees of the shortlist have.

use crate::collectives::Tree;
use crate::program::Rank;

/// A family of trees, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// What the usual rule does: everybody below the root among few, degree four among many.
    Usual,
    /// Everybody below the root.
    Flat,
    /// The binomial tree.
    Binomial,
    /// So many children at most, 2 to 8.
    Degree(u16),
    /// Everybody to everybody, in allgather among many.
    Exchange,
}

/// Ranks up to which the usual rule has everybody below the root.
pub(crate) const FEW: u16 = 8;
/// Children of a rank among many by the usual rule.
pub(crate) const DEGREE: u16 = 4;
/// Degrees of the shortlist.
pub(super) const DEGREES: std::ops::RangeInclusive<u16> = 2..=8;

impl Form {
    pub(super) fn number(self) -> u16 {
        match self {
            Self::Usual => 0,
            Self::Flat => 1,
            Self::Binomial => 2,
            Self::Degree(degree) => degree + 1,
            Self::Exchange => Self::EXCHANGE,
        }
    }

    /// Behind the largest degree.
    const EXCHANGE: u16 = 10;

    pub(super) fn of_number(number: u16) -> Option<Self> {
        match number {
            0 => Some(Self::Usual),
            1 => Some(Self::Flat),
            2 => Some(Self::Binomial),
            Self::EXCHANGE => Some(Self::Exchange),
            more => DEGREES.contains(&(more - 1)).then_some(Self::Degree(more - 1)),
        }
    }

    /// The tree of `ranks` ranks in this form.
    pub(super) fn tree(self, ranks: u16, root: Rank) -> Tree {
        match self {
            Self::Usual if ranks > FEW => Tree::regular(ranks, root, DEGREE),
            Self::Usual | Self::Flat | Self::Exchange => Tree::flat(ranks, root),
            Self::Binomial => Tree::binomial(ranks, root),
            Self::Degree(degree) => Tree::regular(ranks, root, degree),
        }
    }

    /// The place below which a place of such a tree of `ranks` ranks hangs; place 0 is the root.
    pub(super) fn parent(self, ranks: u16, place: u16) -> u16 {
        match self {
            Self::Usual if ranks > FEW => (place - 1) / DEGREE,
            Self::Usual | Self::Flat | Self::Exchange => 0,
            Self::Binomial => place & (place - 1),
            Self::Degree(degree) => (place - 1) / degree,
        }
    }
}
