//! What a worker that shares its core looks for while it sleeps: work that those who are awake there do not get to,
//! since they block in a task, or are the program and do something else. Nobody wakes it for such work.

/// Time between two looks of those that share a core, each of whom looks in its turn. A look takes some microseconds.
const EACH_NS: u64 = 1_000_000;
/// The time between the looks of a worker is doubled while there is no work, so many times: the program may be long
/// about something else.
const DOUBLED_MAX: u32 = 3;

/// What it looks at.
pub(super) trait Sight {
    /// Whether there is work that the worker might take.
    fn work(&self) -> bool;
    /// Tasks that have begun on workers of its queue.
    fn begun(&self) -> u64;
    /// Whether a seat is awake.
    fn is_awake(&self, seat: u32) -> bool;
    /// How long the worker in a seat has had a core so far; `None` where that is not known, as of other processes.
    fn cpu_ns(&self, seat: u32) -> Option<u64>;
}

/// What a worker saw when it looked last.
#[derive(Debug)]
pub(super) struct Watch<'a> {
    /// Those that share its cores, and how many cores.
    seats: &'a [u32],
    cores: u32,
    at: u64,
    /// When it looks next.
    next: u64,
    doubled: u32,
    /// Tasks that had begun.
    begun: u64,
    /// Who was awake where there was work, and the time for which each had had a core.
    awake: Vec<(u32, Option<u64>)>,
}

impl<'a> Watch<'a> {
    /// From `now` on.
    pub(super) fn new(seats: &'a [u32], cores: u32, now: u64, sight: &impl Sight) -> Self {
        let begun = sight.begun();
        let watch = Self { seats, cores, at: now, next: now, doubled: 0, begun, awake: Vec::new() };
        Self { next: now + watch.each_ns(), ..watch }
    }

    fn each_ns(&self) -> u64 {
        EACH_NS.saturating_mul(self.seats.len() as u64)
    }

    /// How long it sleeps until it looks again.
    pub(super) fn apart_ns(&self) -> u64 {
        self.next - self.at
    }

    /// Whether there is work that the worker should get up for; it looks only when it is time to.
    pub(super) fn sees_work(&mut self, now: u64, sight: &impl Sight) -> bool {
        if now < self.next {
            return false;
        }
        let (work, begun) = (sight.work(), sight.begun());
        if work && (begun == self.begun || self.are_blocked(now - self.at, sight)) {
            return true;
        }
        self.awake.clear();
        if work {
            let awake = self.seats.iter().filter(|seat| sight.is_awake(**seat));
            self.awake.extend(awake.map(|seat| (*seat, sight.cpu_ns(*seat))));
        }
        self.doubled = if work { 0 } else { (self.doubled + 1).min(DOUBLED_MAX) };
        (self.at, self.begun) = (now, begun);
        self.next = now + (self.each_ns() << self.doubled);
        false
    }

    /// Whether those who were awake, and still are, used less than half of their cores in this time; also where that
    /// is not known.
    fn are_blocked(&self, passed: u64, sight: &impl Sight) -> bool {
        let (mut count, mut used) = (0, 0);
        for (seat, before) in self.awake.iter().filter(|(seat, _)| sight.is_awake(*seat)) {
            let Some((before, now)) = before.zip(sight.cpu_ns(*seat)) else { return true };
            count += 1;
            used += now.saturating_sub(before);
        }
        2 * used < passed.saturating_mul(u64::from(self.cores.min(count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A core of three workers, of which the first is awake.
    const SEATS: [u32; 3] = [4, 7, 8];
    const LOOK: u64 = 3 * EACH_NS;

    #[derive(Clone, Copy)]
    struct Seen {
        work: bool,
        begun: u64,
        cpu_ns: Option<u64>,
    }

    impl Sight for Seen {
        fn work(&self) -> bool {
            self.work
        }

        fn begun(&self) -> u64 {
            self.begun
        }

        fn is_awake(&self, seat: u32) -> bool {
            seat == SEATS[0]
        }

        fn cpu_ns(&self, _: u32) -> Option<u64> {
            self.cpu_ns
        }
    }

    const BUSY: Seen = Seen { work: true, begun: 5, cpu_ns: Some(0) };

    #[test]
    fn work_is_left_to_who_begins_tasks_and_uses_the_core() {
        let mut watch = Watch::new(&SEATS, 1, 0, &Seen { begun: 0, ..BUSY });
        for look in 1..9 {
            let seen = Seen { begun: look, cpu_ns: Some(look * LOOK), ..BUSY };
            assert!(!watch.sees_work(look * LOOK - 1, &seen), "it is not time to look");
            assert!(!watch.sees_work(look * LOOK, &seen));
            assert_eq!(watch.apart_ns(), LOOK);
        }
    }

    #[test]
    fn work_is_taken_where_nobody_begins_any() {
        let mut watch = Watch::new(&SEATS, 1, 0, &BUSY);
        assert!(watch.sees_work(LOOK, &Seen { cpu_ns: Some(LOOK), ..BUSY }));
        assert!(!watch.sees_work(LOOK, &Seen { work: false, ..BUSY }), "there is none");
    }

    #[test]
    fn work_is_taken_from_who_blocks_or_is_not_known() {
        for (used, taken) in [(Some(LOOK / 2), false), (Some(LOOK / 2 - 1), true), (None, true)] {
            let mut watch = Watch::new(&SEATS, 1, 0, &BUSY);
            assert!(
                !watch.sees_work(LOOK, &Seen { begun: 6, ..BUSY }),
                "it looked at nobody before"
            );
            let seen = Seen { begun: 7, cpu_ns: used, ..BUSY };
            assert_eq!(watch.sees_work(2 * LOOK, &seen), taken, "{used:?}");
        }
    }

    #[test]
    fn looks_are_rare_while_there_is_no_work() {
        let none = Seen { work: false, ..BUSY };
        let mut watch = Watch::new(&SEATS, 1, 0, &none);
        let mut apart = Vec::new();
        for _ in 0..5 {
            let now = watch.at + watch.apart_ns();
            assert!(!watch.sees_work(now, &none));
            apart.push(watch.apart_ns() / LOOK);
        }
        assert_eq!(apart, [2, 4, 8, 8, 8]);
        assert!(!watch.sees_work(watch.next, &Seen { begun: 6, ..BUSY }));
        assert_eq!(watch.apart_ns(), LOOK, "there is work again");
    }
}
