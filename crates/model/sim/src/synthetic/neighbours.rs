//! Somebody else's work on the cores of a machine: they are taken away for a slice of time now and again,
//! and what the slice's work touched has pushed lines out of the core's caches.
//!
//! Which core is taken when follows from the spec and its seed alone, so a disturbed run can be replayed and
//! compared with the quiet one.

use isochrone_units::CoreId;

use crate::random::{Random, Stream};

/// Work beside the measurement on one core.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbour {
    /// The core that it shares.
    pub core: CoreId,
    /// Share of the core's time that it takes, 0 to less than 1.
    pub share: f64,
    /// Seconds of a slice: the shortest and the longest, drawn uniformly.
    pub slice_s: (f64, f64),
    /// Whether lines are gone from the core's caches after a slice.
    pub evicts: bool,
}

/// Slices of a neighbour before virtual time begins.
const BEFORE: f64 = 4.0;

/// A neighbour's next slice, or the one under way.
#[derive(Clone, Debug)]
struct Slice {
    begin_s: f64,
    end_s: f64,
    /// What it pushed out was counted.
    counted: bool,
}

/// A neighbour at work.
#[derive(Clone, Debug)]
struct Busy {
    neighbour: Neighbour,
    slice: Slice,
    random: Random,
}

/// When each core is taken away.
#[derive(Clone, Debug)]
pub(crate) struct Timetable {
    busy: Vec<Busy>,
    /// Slices that have pushed lines out, by logical core.
    evictions: Vec<u64>,
}

impl Timetable {
    pub(crate) fn new(neighbours: &[Neighbour], cores: usize, seed: u64) -> Self {
        let begun = |neighbour: &Neighbour| {
            let mut random = Random::new(seed ^ u64::from(neighbour.core.0), Stream::Neighbours);
            // At work for a while already, so that the first slice may be under way.
            let before_s = neighbour.period_s() * (BEFORE + random.uniform());
            let slice = neighbour.next(-before_s, &mut random);
            let mut busy = Busy { neighbour: neighbour.clone(), slice, random };
            while busy.slice.end_s <= 0.0 {
                busy.go_on();
            }
            busy
        };
        let active = neighbours.iter().filter(|neighbour| neighbour.share > 0.0);
        Self { busy: active.map(begun).collect(), evictions: vec![0; cores] }
    }

    /// Slices after which a core's lines were gone, until `now_s`.
    pub(crate) fn evictions(&mut self, core: CoreId, now_s: f64) -> u64 {
        let Some(count) = self.evictions.get_mut(usize::from(core.0)) else { return 0 };
        for busy in self.busy.iter_mut().filter(|busy| busy.neighbour.core == core) {
            while busy.slice.begin_s < now_s {
                busy.count(count);
                if busy.slice.end_s > now_s {
                    break;
                }
                busy.go_on();
            }
        }
        *count
    }

    /// Seconds for which something on `core` that begins at `begin_s` and would take `seconds` is held up.
    /// Slices that were over before it began have passed unseen, apart from what they pushed out.
    pub(crate) fn hold_up(&mut self, core: CoreId, begin_s: f64, seconds: f64) -> f64 {
        let mut held = 0.0;
        let Some(count) = self.evictions.get_mut(usize::from(core.0)) else { return 0.0 };
        for busy in self.busy.iter_mut().filter(|busy| busy.neighbour.core == core) {
            while busy.slice.begin_s < begin_s + seconds + held {
                busy.count(count);
                let Slice { begin_s: from_s, end_s, .. } = busy.slice;
                held += (end_s - from_s.max(begin_s + held)).max(0.0);
                busy.go_on();
            }
        }
        held
    }
}

impl Busy {
    /// Counts what the slice pushes out, once.
    fn count(&mut self, evictions: &mut u64) {
        *evictions += u64::from(self.neighbour.evicts && !self.slice.counted);
        self.slice.counted = true;
    }

    fn go_on(&mut self) {
        self.slice = self.neighbour.next(self.slice.end_s, &mut self.random);
    }
}

impl Neighbour {
    /// From one slice to the next on average, seconds.
    fn period_s(&self) -> f64 {
        0.5 * (self.slice_s.0 + self.slice_s.1) / self.share
    }

    /// The first slice that begins after `after_s`: between two slices the core is free for as long as the share
    /// leaves on average, half as long to one and a half times.
    fn next(&self, after_s: f64, random: &mut Random) -> Slice {
        let (least, most) = self.slice_s;
        let seconds = least + (most - least) * random.uniform();
        let free = self.period_s() * (1.0 - self.share);
        let begin_s = after_s + free * (0.5 + random.uniform());
        Slice { begin_s, end_s: begin_s + seconds, counted: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(share: f64) -> Timetable {
        let neighbour = Neighbour { core: CoreId(1), share, slice_s: (1e-3, 10e-3), evicts: true };
        Timetable::new(&[neighbour], 2, 7)
    }

    #[test]
    fn a_neighbour_takes_its_share() {
        for share in [0.1, 0.5, 0.9] {
            let mut table = table(share);
            let (mut now, mut held) = (0.0, 0.0);
            while now < 60.0 {
                let extra = table.hold_up(CoreId(1), now, 10e-6);
                (now, held) = (now + 10e-6 + extra, held + extra);
            }
            assert!((held / now - share).abs() < 0.03, "{share}: {}", held / now);
            assert!(table.evictions(CoreId(1), now) > 100);
        }
    }

    #[test]
    fn other_cores_and_quiet_ones_are_left_alone() {
        let mut table = table(0.9);
        assert_eq!(table.hold_up(CoreId(0), 0.0, 10.0), 0.0);
        assert_eq!(table.evictions(CoreId(0), 10.0), 0);
        let mut quiet = self::table(0.0);
        assert_eq!(quiet.hold_up(CoreId(1), 0.0, 10.0), 0.0);
    }

    #[test]
    fn at_the_start_a_core_may_be_taken() {
        let taken = |seed| {
            let slice_s = (1e-3, 10e-3);
            let neighbour = Neighbour { core: CoreId(1), share: 0.5, slice_s, evicts: true };
            Timetable::new(&[neighbour], 2, seed).hold_up(CoreId(1), 0.0, 0.0) > 0.0
        };
        let count = (0..400).filter(|seed| taken(*seed)).count();
        assert!((150..250).contains(&count), "{count}");
    }

    #[test]
    fn what_passed_meanwhile_is_not_waited_for() {
        let mut table = table(0.5);
        let held = table.hold_up(CoreId(1), 30.0, 1e-6);
        assert!(held <= 10e-3, "{held}");
        assert!(table.evictions(CoreId(1), 30.0) > 1000, "but lines are gone");
    }
}
