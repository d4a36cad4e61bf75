//! Looks at a running program from outside, by `/proc`: without root, without counters, and without a word to the
//! program. How often is decided by what a look takes, so that all of them together take a hundredth of the time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

use isochrone_os::clock::thread_cpu_ns;
use serde::Serialize;

use super::proc::{Pages, Stat, by_region, numbers, text};
use super::tree::Tree;

/// How often it is asked whether a look is due.
pub(super) const ASKED: Duration = Duration::from_millis(10);
/// A look at threads, and one at pages, is made at most so often, however little it takes.
const THREADS_EVERY: Duration = Duration::from_millis(20);
const PAGES_EVERY: Duration = Duration::from_millis(200);
/// After a look it waits so many times as long as the look took of a core: of the two kinds each takes half a
/// hundredth of the time, and two thirds of the 3 % that a watched run may cost are left for what a look holds up in
/// the program.
const WAITS: u32 = 200;
/// When referenced bits are cleared first. Then they are read after half of the time that the program had run by then,
/// and cleared again when that has doubled: the last look that is complete lies around the middle of a run.
const CLEARED_FIRST: Duration = Duration::from_millis(500);

/// What looks saw.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Looks {
    /// Looks at threads, and at pages.
    pub(crate) threads_looks: usize,
    pub(crate) pages_looks: usize,
    /// The longest time between two looks at pages, and between two at threads, seconds.
    pub(crate) pages_every_s: f64,
    pub(crate) threads_every_s: f64,
    /// What all looks took of a core, seconds.
    pub(crate) took_s: f64,
    /// Most at once.
    pub(crate) processes: usize,
    pub(crate) threads: usize,
    /// On which cores they ran.
    pub(crate) cores: Vec<u16>,
    /// Times that a thread was seen on another core than before; there may be more.
    pub(crate) moves: u64,
    /// Where the pages of all processes lay when most were resident; nothing where no look came in time or was
    /// allowed.
    pub(crate) pages: Option<Pages>,
    pub(crate) working_set: Option<WorkingSet>,
}

/// Pages that were touched within a time, by referenced bits that were cleared before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct WorkingSet {
    /// Pages that several processes touched count in each.
    pub(crate) bytes: u64,
    /// The time within which they were touched, seconds.
    pub(crate) within_s: f64,
    /// When that time began, seconds after the program.
    pub(crate) from_s: f64,
    /// How often the bits were cleared.
    pub(crate) cleared: usize,
}

/// Processor time of this thread since then: a look that others keep from a core takes nothing of the program's time.
fn since(begin_ns: u64) -> Duration {
    Duration::from_nanos(thread_cpu_ns().saturating_sub(begin_ns))
}

/// When the next look of a kind is due.
#[derive(Debug)]
struct Pace {
    every: Duration,
    next: Instant,
    before: Option<Instant>,
    longest: Duration,
}

impl Pace {
    fn new(every: Duration, begin: Instant) -> Self {
        Self { every, next: begin, before: None, longest: Duration::ZERO }
    }

    /// Times a look, if one is due, and sets when the next one is. What it took; nothing where none is due.
    fn look(&mut self, look: impl FnOnce()) -> Option<Duration> {
        let now = Instant::now();
        if now < self.next {
            return None;
        }
        let begin = thread_cpu_ns();
        look();
        let took = since(begin);
        self.longest = self.longest.max(self.before.map_or(Duration::ZERO, |before| now - before));
        self.before = Some(now);
        self.next = now + self.every.max(took * WAITS);
        Some(took)
    }
}

/// A program that is looked at.
#[derive(Debug)]
pub(super) struct Watch {
    begin: Instant,
    tree: Option<Tree>,
    threads_pace: Pace,
    pages_pace: Pace,
    /// Each thread's ticks and core when it was looked at last.
    threads: BTreeMap<i32, Stat>,
    cores: BTreeSet<u16>,
    looks: Looks,
    /// Whether pages are asked for by region.
    by_region: bool,
    /// When referenced bits are to be cleared next, and when they were; nothing where nobody asked for it.
    clear: Option<Clear>,
}

#[derive(Debug)]
struct Clear {
    at: Duration,
    cleared: Option<Duration>,
    times: usize,
}

impl Watch {
    pub(super) fn new(by_region: bool, working_set: bool) -> Self {
        let begin = Instant::now();
        Self {
            begin,
            tree: None,
            threads_pace: Pace::new(THREADS_EVERY, begin),
            pages_pace: Pace::new(PAGES_EVERY, begin),
            threads: BTreeMap::new(),
            cores: BTreeSet::new(),
            looks: Looks::default(),
            by_region,
            clear: working_set.then_some(Clear { at: CLEARED_FIRST, cleared: None, times: 0 }),
        }
    }

    /// Looks, where that is due.
    pub(super) fn look(&mut self, root: i32) {
        let Self { tree, threads_pace, pages_pace, threads, cores, looks, .. } = self;
        let tree = tree.get_or_insert_with(|| Tree::of(root));
        let mut members = None;
        let took = threads_pace.look(|| {
            let all = tree.look();
            look_at_threads(&all, threads, cores, looks);
            members = Some(all);
        });
        // Pages are asked for of those who were there just now.
        let Some(members) = members else { return };
        let by_region = self.by_region;
        let pages_took = pages_pace.look(|| look_at_pages(&members, by_region, looks));
        let took = took.unwrap_or_default() + pages_took.unwrap_or_default();
        looks.took_s += took.as_secs_f64();
        if self.clear.is_some() {
            self.look_at_working_set(&members);
        }
    }

    /// Clears referenced bits, or reads which were set since.
    fn look_at_working_set(&mut self, members: &[i32]) {
        let (now, begin) = (self.begin.elapsed(), thread_cpu_ns());
        let Some(clear) = &mut self.clear else { return };
        match clear.cleared {
            None if now >= clear.at => {
                let is_done =
                    |process: &&i32| fs::write(format!("/proc/{process}/clear_refs"), "1").is_ok();
                if members.iter().filter(is_done).count() > 0 {
                    clear.times += 1;
                    clear.cleared = Some(now);
                }
                // As for looks: what takes long is done seldom.
                clear.at = (2 * now).max(now + since(begin) * WAITS);
            }
            Some(from) if now >= from + from / 2 => {
                let bytes = pages_of(members, false).map_or(0, |pages| pages.referenced);
                self.looks.working_set = Some(WorkingSet {
                    bytes,
                    within_s: (now - from).as_secs_f64(),
                    from_s: from.as_secs_f64(),
                    cleared: clear.times,
                });
                clear.cleared = None;
            }
            _ => return,
        }
        self.looks.took_s += since(begin).as_secs_f64();
    }

    /// What was seen, and how many processes are left that the program did not wait for.
    pub(super) fn end(self) -> (Looks, usize) {
        let left = self.tree.map_or(0, |tree| tree.left());
        let looks = Looks {
            cores: self.cores.into_iter().collect(),
            threads_every_s: self.threads_pace.longest.as_secs_f64(),
            pages_every_s: self.pages_pace.longest.as_secs_f64(),
            ..self.looks
        };
        (looks, left)
    }
}

fn look_at_threads(
    members: &[i32],
    before: &mut BTreeMap<i32, Stat>,
    cores: &mut BTreeSet<u16>,
    looks: &mut Looks,
) {
    let mut now = BTreeMap::new();
    for process in members {
        for thread in numbers(&format!("/proc/{process}/task")) {
            let stat = text(*process, &format!("task/{thread}/stat"));
            let Some(stat) = stat.and_then(|text| Stat::parse(&text)) else { continue };
            let was = before.get(&thread).filter(|was| was.started == stat.started);
            // One that slept says where it ran long ago.
            if was.is_none_or(|was| was.ticks != stat.ticks) {
                cores.insert(stat.core);
            }
            looks.moves += u64::from(was.is_some_and(|was| was.core != stat.core));
            now.insert(thread, stat);
        }
    }
    looks.threads_looks += 1;
    looks.threads = looks.threads.max(now.len());
    looks.processes = looks.processes.max(members.len());
    *before = now;
}

fn look_at_pages(members: &[i32], by_region: bool, looks: &mut Looks) {
    let Some(pages) = pages_of(members, by_region) else { return };
    looks.pages_looks += 1;
    if looks.pages.as_ref().is_none_or(|before| before.resident() < pages.resident()) {
        looks.pages = Some(pages);
    }
}

/// Pages of all of them; nothing where none may be seen.
fn pages_of(members: &[i32], regions: bool) -> Option<Pages> {
    let mut all: Option<Pages> = None;
    for process in members {
        let rollup = text(*process, "smaps_rollup");
        let Some(mut pages) = rollup.and_then(|text| Pages::of_rollup(&text)) else { continue };
        if regions {
            pages.by_region =
                text(*process, "numa_maps").map_or_else(BTreeMap::new, |text| by_region(&text));
        }
        all.get_or_insert_with(Pages::default).add(&pages);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_takes_long_is_made_seldom() {
        let begin = Instant::now();
        let mut pace = Pace::new(Duration::ZERO, begin);
        let works = |ns: u64| {
            let from = thread_cpu_ns();
            while thread_cpu_ns() < from + ns {}
        };
        let took = pace.look(|| works(3_000_000)).unwrap();
        assert!(took >= Duration::from_millis(3));
        assert!(pace.next >= begin + took * WAITS, "{pace:?}");
        assert_eq!(pace.look(|| panic!("it is not due")), None);
    }

    #[test]
    fn this_process_is_seen_with_its_threads_and_pages() {
        let own = i32::try_from(std::process::id()).unwrap();
        let (said, hears) = std::sync::mpsc::channel::<()>();
        let waits = std::thread::spawn(move || hears.recv().is_err());
        let mut watch = Watch::new(true, false);
        watch.look(own);
        let (looks, left) = watch.end();
        assert!(looks.threads >= 2 && looks.processes >= 1 && left >= 1, "{looks:?}");
        assert!(!looks.cores.is_empty() && (looks.threads_looks, looks.pages_looks) == (1, 1));
        let pages = looks.pages.unwrap();
        assert!(pages.resident() > 0 && looks.took_s > 0.0);
        // A kernel without regions has no such file.
        assert!(pages.by_region.is_empty() || pages.by_region.values().sum::<u64>() > 0);
        drop(said);
        assert!(waits.join().unwrap());
    }
}
