//! What the ranks of a communicator say when they agree on it: the least of all, number by number.
//!
//! One allreduce of the MPI tells everything: what any rank has against it, whether all were told the same, and what
//! the first rank alone knows, which the others leave open.

use crate::arenas::Told;
use crate::why::Why;
use isochrone_cla::live::Piece;
use std::ffi::c_int;

/// How many numbers.
pub(crate) const TERMS: usize = 8;

/// What is said, or the least of what all said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms(pub(crate) [c_int; TERMS]);

/// Said of what another rank says.
const OPEN: c_int = c_int::MAX;
/// Bits of an arena's number in one of ours.
const BITS: u32 = 31;

impl Terms {
    /// What a rank says: what it has against it, and by what number it tells what it was told.
    pub(crate) const fn new(fit: Result<(), Why>, told: c_int) -> Self {
        Self([Why::said(fit), told, -told, OPEN, OPEN, OPEN, OPEN, OPEN])
    }

    /// The same of the first rank: the microseconds that calls must have been expected to save, where shared memory is
    /// to be made first, and the piece that it took in memory that is there.
    pub(crate) fn of_first(self, cost_us: u64, offer: Option<Told>) -> Self {
        let Self([fit, told, untold, ..]) = self;
        let cost = c_int::try_from(cost_us).unwrap_or(OPEN);
        let [low, high, first, team] = offer.map_or([OPEN; 4], numbers);
        Self([fit, told, untold, cost, low, high, first, team])
    }

    /// Of the least of all: why it is the MPI's, if any rank says so.
    pub(crate) fn agreed(&self) -> Result<(), Why> {
        let Self([fit, told, untold, ..]) = *self;
        Why::agreed(Some(fit))?;
        if told == -untold { Ok(()) } else { Err(Why::Told) }
    }

    /// What calls must have been expected to save, us.
    pub(crate) fn cost_us(&self) -> u64 {
        u64::try_from(self.0[3]).unwrap_or(0)
    }

    /// The piece that the first rank offers.
    pub(crate) fn offer(&self) -> Option<Told> {
        let [.., low, high, first, team] = self.0;
        of_numbers([low, high, first, team])
    }
}

/// An offer as numbers, none of them negative.
pub(crate) fn numbers(told: Told) -> [c_int; 4] {
    let small = |number: u64| c_int::try_from(number & (OPEN as u64)).unwrap_or(0);
    let [first, team] = told.piece.numbers();
    [small(told.number), small(told.number >> BITS), small(first.into()), small(team.into())]
}

/// An offer of numbers; none where it is left open.
pub(crate) fn of_numbers(numbers: [c_int; 4]) -> Option<Told> {
    let [low, high, first, team] = numbers.map(|number| u32::try_from(number).unwrap_or(0));
    // A team's number is never left open: it is above 0 and below this.
    if numbers[3] == OPEN || team == 0 {
        return None;
    }
    let number = u64::from(high) << BITS | u64::from(low);
    Some(Told { number, piece: Piece::of_numbers([first, team]) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn least(all: &[Terms]) -> Terms {
        Terms(std::array::from_fn(|n| all.iter().map(|terms| terms.0[n]).min().expect("some")))
    }

    #[test]
    fn what_the_first_rank_says_reaches_all_and_one_reason_is_enough() {
        let piece = Piece::of_numbers([17, 5]);
        let offer = Told { number: 0x2fff_ffff_1234_5678, piece };
        let first = Terms::new(Ok(()), 77).of_first(2500, Some(offer));
        let other = Terms::new(Ok(()), 77);
        let all = least(&[other, first, other]);
        assert_eq!((all.agreed(), all.cost_us(), all.offer()), (Ok(()), 2500, Some(offer)));
        let none = least(&[first.of_first(0, None), other]);
        assert_eq!((none.agreed(), none.cost_us(), none.offer()), (Ok(()), 0, None));
        let off = least(&[first, Terms::new(Err(Why::Off), 77)]);
        assert_eq!(off.agreed(), Err(Why::Off));
        for differs in [76, 78] {
            assert_eq!(least(&[first, Terms::new(Ok(()), differs)]).agreed(), Err(Why::Told));
        }
    }
}
