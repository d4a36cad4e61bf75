//! A lock that is taken in turn by those who ask, and on whose line they spin meanwhile.

use std::collections::{BTreeMap, VecDeque};

use isochrone_sim::paging::Hardware;

/// A lock.
#[derive(Clone, Debug, Default)]
pub(super) struct Lock {
    /// When it is free, if nobody else asks.
    free: f64,
    /// When the turns of those begin who spin, in order, and whose caches they have.
    turns: VecDeque<(f64, usize)>,
    /// How many spin with these caches.
    spinning: BTreeMap<usize, u32>,
}

impl Lock {
    /// A thread asks for a turn of so many cycles; when it begins. Who lets go writes a line that the caches of all who
    /// spin have (`HandOff`); siblings have the same caches, so they are one owner of it. They are counted when a turn
    /// is asked for.
    pub(super) fn turn(&mut self, hardware: &Hardware, thread: usize, held: f64) -> f64 {
        let now = hardware.now();
        while let Some((_, caches)) = self.turns.pop_front_if(|(begin, _)| *begin <= now) {
            self.stops(caches);
        }
        if self.free <= now {
            self.free = now + held;
            return now;
        }
        let caches = hardware.caches_of(thread);
        *self.spinning.entry(caches).or_default() += 1;
        let begin = self.free + hardware.spec().hand_off(self.spinning.len());
        self.turns.push_back((begin, caches));
        self.free = begin + held;
        begin
    }

    fn stops(&mut self, caches: usize) {
        if let Some(threads) = self.spinning.get_mut(&caches) {
            *threads -= 1;
            if *threads == 0 {
                self.spinning.remove(&caches);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use isochrone_sim::paging::{HandOff, InOrderCore, Spec};

    use super::*;

    /// A card whose threads sit there, and on which nothing but lines costs anything.
    fn card(line: f64, hand_off: HandOff, places: &[usize]) -> Hardware {
        let spec = Spec {
            core: InOrderCore::BY_ISSUE,
            siblings: true,
            polls: true,
            send: 0.0,
            deliver: 0.0,
            service: 0.0,
            engines: 1,
            each_way: true,
            setup: 0.0,
            transfer: 0.0,
            latency: 0.0,
            line,
            hand_off,
            translations: 1,
        };
        Hardware::new(spec, places)
    }

    /// When the turns of all threads begin, who ask at once for 100 cycles.
    fn turns(card: &Hardware, threads: usize) -> Vec<f64> {
        let mut lock = Lock::default();
        (0..threads).map(|thread| lock.turn(card, thread, 100.0)).collect()
    }

    #[test]
    fn a_hand_off_takes_a_transfer_for_each_core_that_spins() {
        // Nobody spins for the first; one for the second, two for the third.
        assert_eq!(turns(&card(10.0, HandOff::Owners, &[0, 1, 2]), 3), [0.0, 110.0, 230.0]);
        let mut lock = Lock::default();
        let mut card = card(10.0, HandOff::Owners, &[0, 1, 2, 3]);
        for thread in 0..3 {
            lock.turn(&card, thread, 100.0);
        }
        // At 120 the second has its turn, so the third and this one spin.
        card.tell_at(120.0, 0, 0);
        card.next();
        assert_eq!(lock.turn(&card, 3, 100.0), 350.0);
        card.tell_at(1000.0, 0, 0);
        card.next();
        assert_eq!(lock.turn(&card, 0, 100.0), 1000.0, "free again");
    }

    #[test]
    fn siblings_that_spin_are_one_owner_until_the_last_has_its_turn() {
        // One core has the line, whichever of its threads spins.
        let core = card(10.0, HandOff::Owners, &[0; 4]);
        assert_eq!(turns(&core, 4), [0.0, 110.0, 220.0, 330.0]);
        let mut spec = *core.spec();
        spec.siblings = false;
        let own = Hardware::new(spec, &[0; 4]);
        assert_eq!(turns(&own, 4), [0.0, 110.0, 230.0, 360.0], "a core for each");
    }

    #[test]
    fn a_line_for_each_takes_one_transfer_and_half_of_the_owners_half() {
        let places = [0, 1, 2, 3, 4];
        let of = |hand_off| turns(&card(10.0, hand_off, &places), 5);
        assert_eq!(of(HandOff::OneLine), [0.0, 110.0, 220.0, 330.0, 440.0]);
        assert_eq!(of(HandOff::HalfOwners), [0.0, 110.0, 220.0, 335.0, 455.0]);
        assert_eq!(turns(&card(0.0, HandOff::Owners, &places), 3), [0.0, 100.0, 200.0]);
    }
}
