//! What ranks say of a call before they make it, and how those who differ find out.
//!
//! Each rank counts its calls and says of each which one it is and how many bytes it has. Nobody reads that while
//! calls go as they should. The flag of a message has a [`Tag`] in it, of its writer's call and bytes, so whoever
//! reads it knows at once that they are not its own. A rank whose bytes are of another class waits on other lines, in
//! vain: after a while it looks by itself. Either way it then finds what others said of the same call. Nothing is sent
//! here.

use super::classes::class;
use super::kind::Kind;
use super::layout::{RANKS_MAX, SAID};
use crate::program::Rank;

/// What is told of a call beside the count of chunks in a flag: its number and its bytes, mixed. Of tags that are alike
/// one of 65,535 may be another's; where the bytes alone or the numbers alone differ, by less, none is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag(u16);

impl Tag {
    /// Bits of a flag that it takes. What is left counts 2^48 chunks: at 50 ns for each, a channel has done after 160
    /// days.
    pub(super) const BITS: u32 = u16::BITS;
    /// Of a message that is known to be wrong.
    pub(super) const WRONG: Self = Self(u16::MAX);

    /// Of this call.
    #[inline]
    pub(super) const fn of(said: Said) -> Self {
        const MIXED: u64 = 0x9e37;
        let call = said.0 >> Said::ALL;
        let mixed = (call & u32::MAX as u64) * MIXED + said.told().word();
        #[allow(clippy::cast_possible_truncation, reason = "a remainder by 65,535")]
        Self((mixed % u16::MAX as u64) as u16)
    }

    /// The one in a flag.
    #[allow(clippy::cast_possible_truncation, reason = "the low bits")]
    pub(super) const fn in_flag(flag: u64) -> Self {
        Self(flag as u16)
    }

    pub(super) const fn word(self) -> u64 {
        self.0 as u64
    }
}

/// The bytes of a call, as they are said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told(u32);

impl Told {
    /// Bits of a word that it takes.
    pub(super) const BITS: u32 = 17;
    /// These bits.
    pub(super) const MASK: u64 = (1 << Self::BITS) - 1;
    /// Said of a call that is done by other means.
    pub(super) const NONE: Self = Self((1 << Self::BITS) - 1);
    /// More bytes than can be told.
    const MORE: Self = Self((1 << Self::BITS) - 2);
    /// Said of a call whose bytes are copied from rank to rank: what goes through lines is where they are.
    pub(super) const SINGLE: Self = Self((1 << Self::BITS) - 3);
    /// Bytes that are told at most; of more it is only known that they are more.
    pub(super) const MOST: u32 = Self::SINGLE.0 - 1;

    pub(super) const fn of(bytes: usize) -> Self {
        if bytes > Self::MOST as usize { Self::MORE } else { Self::small(bytes) }
    }

    #[allow(clippy::cast_possible_truncation, reason = "no more than can be told")]
    const fn small(bytes: usize) -> Self {
        Self(bytes as u32)
    }

    /// The low bits of a word.
    #[allow(clippy::cast_possible_truncation, reason = "so many bits are left")]
    pub(super) const fn in_word(word: u64) -> Self {
        Self((word & Self::MASK) as u32)
    }

    pub(super) const fn word(self) -> u64 {
        self.0 as u64
    }

    /// The bytes, where they are known.
    pub(super) const fn bytes(self) -> Option<u32> {
        if self.0 > Self::MOST { None } else { Some(self.0) }
    }

    /// Whether what the call gives goes through lines, and not what tells where it is.
    pub(super) const fn is_in_lines(self) -> bool {
        !matches!(self, Self::NONE | Self::SINGLE)
    }

    /// Whether calls of these bytes go by the same lines in as many chunks. Of calls of several chunks only the
    /// same bytes are sure to.
    pub(super) fn goes_with(self, other: Self) -> bool {
        match (self.bytes(), other.bytes()) {
            _ if self == other => true,
            (Some(mine), Some(theirs)) => {
                let (mine, theirs) = (class(mine as usize), class(theirs as usize));
                mine == theirs && mine < 2
            }
            _ => false,
        }
    }
}

/// What a rank says of one call, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Said(u64);

impl Said {
    /// Bits of a root.
    const ROOT: u32 = RANKS_MAX.trailing_zeros();
    /// Bits of a collective.
    const KIND: u32 = 4;
    /// Bits before the call's number.
    const ALL: u32 = Told::BITS + Self::ROOT + Self::KIND;

    pub(super) const fn new(call: u64, kind: Kind, root: Rank, told: Told) -> Self {
        let which = (kind as u64) << Self::ROOT | root.0 as u64;
        Self((call << (Self::KIND + Self::ROOT) | which) << Told::BITS | told.word())
    }

    pub(super) const fn of_word(word: u64) -> Self {
        Self(word)
    }

    pub(super) const fn word(self) -> u64 {
        self.0
    }

    pub(super) const fn told(self) -> Told {
        Told::in_word(self.0)
    }

    pub(super) fn kind(self) -> Kind {
        let kind = (self.0 >> (Told::BITS + Self::ROOT)) as usize & ((1 << Self::KIND) - 1);
        Kind::ALL[kind.min(Kind::COUNT - 1)]
    }

    #[allow(clippy::cast_possible_truncation, reason = "so many bits are left")]
    pub(super) const fn root(self) -> Rank {
        Rank((self.0 >> Told::BITS) as u16 & ((1 << Self::ROOT) - 1))
    }

    /// Which of a rank's places has it.
    pub(super) const fn place(self) -> usize {
        (self.0 >> Self::ALL) as usize & (SAID - 1)
    }

    /// Whether both are of the same call.
    pub(super) const fn of_the_call(self, other: Self) -> bool {
        self.0 >> Self::ALL == other.0 >> Self::ALL
    }

    /// Whether it was said of the other's call or of a later one.
    pub(super) const fn has_come_to(self, other: Self) -> bool {
        (self.0 >> Self::ALL).wrapping_sub(other.0 >> Self::ALL) << Self::ALL >> 63 == 0
    }

    /// Whether it was said of this call or of a later one.
    pub(super) const fn has_reached(self, call: u64) -> bool {
        (self.0 >> Self::ALL).wrapping_sub(call) << Self::ALL >> 63 == 0
    }

    /// Whether both are the same collective with the same root.
    pub(super) const fn same_collective(self, other: Self) -> bool {
        (self.0 ^ other.0) << (64 - Self::ALL) >> (64 - Self::ALL + Told::BITS) == 0
    }
}

const _: () = assert!(Kind::COUNT <= 1 << Said::KIND && RANKS_MAX.is_power_of_two());
const _: () = assert!(SAID.is_power_of_two());

/// Whether ranks other than the root go by the root's bytes, whatever their own are: they only hear from it.
pub(super) const fn root_decides(kind: Kind) -> bool {
    matches!(kind, Kind::Broadcast | Kind::Scatter)
}

/// Whether the root alone hears from the others, who give and go on.
pub(super) const fn root_hears(kind: Kind) -> bool {
    matches!(kind, Kind::Gather | Kind::Reduce)
}

/// Whether no rank is done with such a call before all others have given their part of it.
pub(super) const fn all_hear_all(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Barrier | Kind::Allreduce | Kind::Allgather | Kind::Alltoall | Kind::ReduceScatter
    )
}

/// Whether ranks give in such a call and go on, though others of it have said something else.
pub(super) const fn goes_on(kind: Kind) -> bool {
    !root_decides(kind) && !all_hear_all(kind)
}

/// Whether such a call only moves bytes, as one that is copied once must.
pub(super) const fn moves(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Broadcast | Kind::Scatter | Kind::Gather | Kind::Allgather | Kind::Alltoall
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(call: u64, kind: Kind, root: u16, bytes: usize) -> Said {
        Said::new(call, kind, Rank(root), Told::of(bytes))
    }

    #[test]
    fn a_word_holds_what_is_said() {
        let mine = said(77, Kind::Gather, 1023, 131_000);
        assert_eq!(mine.told().bytes(), Some(131_000));
        assert_eq!(mine.place(), 77 % SAID);
        assert!(mine.same_collective(said(5, Kind::Gather, 1023, 0)));
        assert!(!mine.same_collective(said(77, Kind::Gather, 1022, 131_000)));
        assert!(!mine.same_collective(said(77, Kind::Scatter, 1023, 131_000)));
        assert!(mine.of_the_call(said(77, Kind::Barrier, 0, 0)));
        assert!(!mine.of_the_call(said(77 + SAID as u64, Kind::Gather, 1023, 131_000)));
    }

    #[test]
    fn who_has_come_is_told_from_who_has_not() {
        let at = |call| said(call, Kind::Barrier, 0, 0);
        assert!(at(40).has_come_to(at(40)) && at(41).has_come_to(at(40)));
        assert!(!at(39).has_come_to(at(40)) && !Said::of_word(0).has_come_to(at(32)));
        let most = u64::MAX >> Said::ALL;
        assert!(at(0).has_come_to(at(most)) && !at(most).has_come_to(at(0)), "counts go round");
        assert!(at(40).has_reached(40) && at(41).has_reached(40) && !at(39).has_reached(40));
        assert!(at(most + 1).has_reached(most) && !at(most).has_reached(most + 1));
    }

    #[test]
    fn bytes_of_one_class_go_the_same_way_and_others_do_not() {
        let goes = |mine, theirs| Told::of(mine).goes_with(Told::of(theirs));
        assert!(goes(4, 40) && goes(0, 56) && goes(57, 504) && goes(4096, 4096));
        assert!(!goes(56, 57) && !goes(504, 505) && !goes(4096, 4104));
        assert!(goes(1 << 20, 1 << 21), "more than can be told is the same");
        assert!(!Told::NONE.goes_with(Told::of(1 << 20)));
        assert!(Told::SINGLE.goes_with(Told::SINGLE) && !Told::SINGLE.goes_with(Told::of(1 << 20)));
        assert_eq!(Told::of(Told::MOST as usize).bytes(), Some(Told::MOST));
        assert_eq!(Told::of(Told::MOST as usize + 1).bytes(), None);
    }
}
