//! What the model promises of a core's current bases: the largest gain over all that a process may come to hold.
//!
//! The model is asked a little at a time, by whoever has only some tens of microseconds. It decides nothing.

use crate::class::UnitLines;
use crate::heap::Heap;
use crate::model::{Prediction, predict};
use crate::policy::{Mode, Policy};
use crate::wish::{CurrentBases, Wish};

/// A gain that is printed as 1.00.
const NO_GAIN: f32 = 1.005;
/// Amounts of live memory that are asked for in each doubling.
const STEPS: u32 = 2;

/// The answers so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Promise {
    asked: u32,
    /// The prediction of the largest gain.
    best: Option<Prediction>,
    /// The model could not say.
    is_unknown: bool,
}

impl Promise {
    /// Asks for one unit size and one amount of live memory more: from half of a second-level cache to all of the
    /// last-level one, since beyond that nothing of what was predicted was ever seen. True once all were asked for.
    pub fn ask(&mut self, heap: &Heap<'_>, current: &CurrentBases) -> bool {
        let units = UnitLines::ALL;
        let (amount, unit) = (self.asked / 3, self.asked % 3);
        let Some(live_bytes) = live_bytes(&heap.policy, amount) else { return true };
        self.asked += 1;
        let Policy { near, llc_bytes, l2_bytes, tlb_bytes, .. } = heap.policy;
        // Other lines, for an experiment, are worth as much as what they are compared with.
        let wish = Wish { mode: Mode::Aware, near, live_bytes, llc_bytes, l2_bytes, tlb_bytes };
        match predict(heap.bins, units[unit as usize % units.len()], current, &wish, None) {
            Some(found) if self.best.is_none_or(|best| found.gain() > best.gain()) => {
                self.best = Some(found);
            }
            Some(_) => {}
            None => self.is_unknown = true,
        }
        false
    }

    /// The one of two that promises more.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let more = |a: &Self| (a.is_unknown, a.gain_of(1.0));
        if more(&other) > more(&self) { other } else { self }
    }

    /// Whether there is something to be gained, as far as the model was asked; also where it could not say.
    #[must_use]
    pub fn gains(&self) -> bool {
        self.is_unknown || self.gain_of(1.0) >= NO_GAIN
    }

    /// The same where only this share of what is taken is near.
    #[must_use]
    pub fn gains_with(&self, near_share: f32) -> bool {
        self.is_unknown || self.gain_of(near_share) >= NO_GAIN
    }

    /// The largest gain where this share is near and the rest is taken without regard to distance.
    fn gain_of(&self, near_share: f32) -> f32 {
        self.best.map_or(1.0, |best| {
            let (near, any) = (best.cycles, best.oblivious_cycles);
            any / (near_share * near + (1.0 - near_share) * any)
        })
    }
}

/// Amounts of live memory in turn, bytes; `None` behind the last.
fn live_bytes(policy: &Policy, amount: u32) -> Option<u64> {
    let least = (policy.l2_bytes / 2).max(1);
    let doubled =
        least.checked_shl(amount / STEPS).filter(|bytes| bytes >> (amount / STEPS) == least)?;
    let bytes = doubled.checked_mul(u64::from(STEPS + amount % STEPS))? / u64::from(STEPS);
    (bytes <= policy.llc_bytes.max(least)).then_some(bytes)
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::bins::Bins;
    use crate::rig::{Rig, current_bases};
    use isochrone_atlas::{PatternTable, Period};
    use std::vec::Vec;

    fn asked(heap: &Heap<'_>, current: &CurrentBases) -> Promise {
        let mut promise = Promise::default();
        for _ in 0..1000 {
            if promise.ask(heap, current) {
                return promise;
            }
        }
        panic!("it never ends: {promise:?}");
    }

    #[test]
    fn lines_that_differ_promise_something() {
        let rig = Rig::new(1);
        let heap = rig.heap(Policy::default());
        let promise = asked(&heap, &current_bases(0));
        assert!(promise.gains() && promise.gains_with(0.5), "{promise:?}");
        assert!(!promise.gains_with(0.0), "nothing of it is near: {promise:?}");
        assert!(promise.gain_of(1.0) > promise.gain_of(0.5) && promise.gain_of(0.5) > 1.0);
    }

    #[test]
    fn lines_that_are_alike_promise_nothing() {
        let flat = |cycles: f32| {
            PatternTable::new(Period::Lines64, [[cycles; 64].as_slice()]).expect("a table")
        };
        let bins = Bins::new([flat(40.0)].into_iter(), [flat(340.0)].into_iter());
        let rig = Rig::with_bins(1, 1, bins);
        let heap = rig.heap(Policy::default());
        let current = CurrentBases::of(Some(&flat(40.0)), Some(&flat(340.0)));
        let promise = asked(&heap, &current);
        assert!(!promise.gains() && !promise.gains_with(1.0), "{promise:?}");
    }

    #[test]
    fn what_the_model_cannot_say_ends_nothing() {
        let rig = Rig::new(1);
        let heap = rig.heap(Policy::default());
        let promise = asked(&heap, &CurrentBases::default());
        assert!(promise.gains() && promise.gains_with(0.0));
    }

    #[test]
    fn amounts_go_from_half_of_one_cache_to_all_of_the_other() {
        let policy = Policy { l2_bytes: 1 << 20, llc_bytes: 4 << 20, ..Policy::default() };
        let kib: Vec<u64> =
            (0..).map_while(|at| live_bytes(&policy, at)).map(|b| b >> 10).collect();
        assert_eq!(kib, [512, 768, 1024, 1536, 2048, 3072, 4096]);
        let odd = Policy { l2_bytes: u64::MAX, llc_bytes: 0, ..policy };
        assert_eq!((0..).map_while(|at| live_bytes(&odd, at)).count(), 1);
        let none = Policy { l2_bytes: 0, llc_bytes: u64::MAX, ..policy };
        assert!((0..).map_while(|at| live_bytes(&none, at)).count() < 200);
    }
}
