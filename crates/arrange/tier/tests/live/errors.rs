//! A far tier that is full or fails: the error reaches the program at the access that needs the page, and
//! other data stay as they are.

use core::sync::atomic::{AtomicU32, Ordering};

use isochrone_os::area::Words;
use isochrone_os::process::end;
use isochrone_tier::live::far::{Compressed, Far, File, Lz4, Memory, Part, Scratch};
use isochrone_tier::live::{Config, Ended, Mode, Tables, Team};
use isochrone_tier::pages::Trouble;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use super::{Case, case};

pub(super) const CASES: &[Case] = &[
    case("a_full_far_tier_ends_who_needs_room_and_nobody_else", full),
    case("a_page_that_cannot_be_read_ends_who_touches_it", unreadable),
    case("a_page_that_cannot_be_read_ends_a_blocked_worker_too", unreadable_blocking),
    case("a_program_with_a_handler_of_its_own_is_told", own_handler),
    case("an_error_that_passes_loses_nothing", passing),
    case("a_far_tier_in_a_file_loses_nothing", file),
    case("a_far_file_that_is_cut_from_outside_is_an_error_and_never_zeros", cut),
    case("a_compressed_far_tier_loses_nothing", compressed),
    case("a_compressed_far_tier_that_is_full_says_so", compressed_full),
];

const PAGE_WORDS: usize = 512;

/// Memory that fails by a rule.
#[derive(Debug)]
pub(super) struct Flaky {
    inner: Memory,
    /// Writes that still go well, of all processes together.
    writes: Words,
    /// Reads of this page fail.
    unreadable: Option<usize>,
    /// Each of so many calls fails, if not 0.
    every: u32,
}

impl Flaky {
    pub(super) fn new(writes: u32, unreadable: Option<usize>, every: u32) -> Self {
        let words = Words::new(2).expect("shared words");
        words.as_slice()[0].store(writes, Ordering::Relaxed);
        let inner = Memory::new(256 << 12, None).expect("addresses");
        Self { inner, writes: words, unreadable, every }
    }

    fn fails(&self) -> bool {
        let calls = self.writes.as_slice()[1].fetch_add(1, Ordering::Relaxed);
        self.every > 0 && calls.is_multiple_of(self.every)
    }
}

impl Far for Flaky {
    fn name(&self) -> &'static str {
        "flaky"
    }

    fn read(&self, part: &Part, to: &mut [u8], scratch: &mut Scratch) -> Result<(), Trouble> {
        let bad = |page: usize| (part.at()..part.at() + part.bytes()).contains(&(page << 12));
        if self.unreadable.is_some_and(bad) || self.fails() {
            return Err(Trouble::Far(5));
        }
        self.inner.read(part, to, scratch)
    }

    fn write(&self, part: &Part, from: &[u8], scratch: &mut Scratch) -> Result<(), Trouble> {
        let left = &self.writes.as_slice()[0];
        let pages = u32::try_from(part.bytes() >> 12).unwrap_or(1);
        let take = |left: u32| left.checked_sub(pages);
        if left.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).is_err() || self.fails() {
            return Err(Trouble::Full);
        }
        self.inner.write(part, from, scratch)
    }

    fn exchange(
        &self,
        out: &Part,
        from: &[u8],
        part: &Part,
        to: &mut [u8],
        scratch: &mut Scratch,
    ) -> (Result<(), Trouble>, bool) {
        let bad = |page: usize| (part.at()..part.at() + part.bytes()).contains(&(page << 12));
        let read = !self.unreadable.is_some_and(bad);
        let read = read && self.inner.read(part, to, scratch).is_ok();
        (self.write(out, from, scratch), read)
    }
}

fn config(workers: u16) -> Config {
    let mut config = Config::new(256 << 12, 64 << 12, workers);
    config.plan.batch = 8;
    config
}

/// Worker 0 keeps to pages that are in memory; worker 1 touches all.
fn full() {
    let far = Flaky::new(100, None, 0);
    let team = Team::new(config(2), Box::new(far)).expect("a team");
    let report = team
        .run(|worker| {
            let words = worker.words();
            let word = |page: usize| &words[page * PAGE_WORDS + usize::from(worker.index())];
            let pages = if worker.index() == 0 { 0..16 } else { 16..256 };
            for round in 1..50 {
                for page in pages.clone() {
                    let before = word(page).fetch_add(1, Ordering::Relaxed);
                    if before != round - 1 {
                        return Err(format!("page {page} holds {before} in round {round}"));
                    }
                }
            }
            Ok(1)
        })
        .expect("a run");
    assert_eq!(report.workers[1], Ended::Killed(7), "there is no room for its pages");
    assert!(
        matches!(report.workers[0], Ended::Value(1) | Ended::Killed(7)),
        "{:?}: it works or is told, but never sees other data",
        report.workers[0]
    );
}

/// Worker 1 touches page 3 again, which cannot be read any more.
fn touch_unreadable(mode: Option<Mode>) {
    for tables in [Tables::Separated, Tables::Shared] {
        if tables == Tables::Shared && mode.is_none() {
            // A signal ends all threads: nobody is left to be looked at.
            continue;
        }
        let far = Flaky::new(u32::MAX, Some(3), 0);
        let config = Config { tables: Tables::Separated, mode, ..config(2) };
        let team = Team::new(config, Box::new(far)).expect("a team");
        let report = team
            .run(|worker| {
                let words = worker.words();
                if worker.index() == 0 {
                    (0..256).for_each(|page| words[page * PAGE_WORDS].store(7, Ordering::Relaxed));
                }
                worker.barrier().map_err(|gone| gone.to_string())?;
                let skipped = if worker.index() == 0 { 3 } else { 256 };
                let pages = (0..256).filter(|page| *page != skipped);
                Ok(pages.map(|page| words[page * PAGE_WORDS].load(Ordering::Relaxed)).sum())
            })
            .expect("a run");
        assert_eq!(report.workers, [Ended::Value(255 * 7), Ended::Killed(7)]);
    }
}

fn unreadable() {
    touch_unreadable(None);
}

fn unreadable_blocking() {
    touch_unreadable(Some(Mode::Blocking));
}

static TOLD: AtomicU32 = AtomicU32::new(0);

extern "C" fn leave(_: i32) {
    end(77);
}

extern "C" fn again(_: i32) {
    TOLD.fetch_add(1, Ordering::Relaxed);
}

fn handler(handler: extern "C" fn(i32)) {
    let action = SigAction::new(SigHandler::Handler(handler), SaFlags::SA_ONSTACK, SigSet::empty());
    // SAFETY: the handlers of this test count, or end the process.
    unsafe { sigaction(Signal::SIGBUS, &action) }.expect("a handler");
}

fn own_handler() {
    handler(leave);
    let team = Team::new(config(1), Box::new(Flaky::new(u32::MAX, Some(3), 0))).expect("a team");
    let report = team
        .run(|worker| {
            let words = worker.words();
            (0..256).for_each(|page| words[page * PAGE_WORDS].store(7, Ordering::Relaxed));
            Ok(words[3 * PAGE_WORDS].load(Ordering::Relaxed))
        })
        .expect("a run");
    assert_eq!(report.workers, [Ended::Silent(77)]);
}

/// Calls fail now and then; the program's handler lets each access be tried again.
fn passing() {
    handler(again);
    for tables in [Tables::Separated, Tables::Shared] {
        let config = Config { tables, ..config(3) };
        let team = Team::new(config, Box::new(Flaky::new(u32::MAX, None, 7))).expect("a team");
        let report = team
            .run(|worker| {
                let words = worker.words();
                let mine = usize::from(worker.index());
                for _ in 0..20 {
                    for page in 0..256 {
                        words[page * PAGE_WORDS + mine].fetch_add(1, Ordering::Relaxed);
                    }
                }
                let all = (0..256).map(|page| &words[page * PAGE_WORDS + mine]);
                let right = all.filter(|word| word.load(Ordering::Relaxed) == 20).count();
                Ok(right as u64 * 1_000_000 + u64::from(TOLD.load(Ordering::Relaxed)))
            })
            .expect("a run");
        for value in report.values().expect("nobody ends") {
            assert_eq!(value / 1_000_000, 256, "{tables:?}");
            assert!(value % 1_000_000 > 0, "no call failed");
        }
    }
}

fn lossless(far: impl Far + 'static, config: Config) {
    let name = far.name();
    let team = Team::new(config, Box::new(far)).expect("a team");
    let report = team
        .run(|worker| {
            let words = worker.words();
            let mine = usize::from(worker.index());
            for _ in 0..10 {
                for word in words[mine..].iter().step_by(8) {
                    word.fetch_add(mine as u64 + 1, Ordering::Relaxed);
                }
            }
            let wrong = words[mine..].iter().step_by(8);
            Ok(wrong.filter(|word| word.load(Ordering::Relaxed) != 10 * (mine as u64 + 1)).count()
                as u64)
        })
        .expect("a run");
    assert_eq!(report.values(), Ok(vec![0; 3]), "{name}");
}

fn file() {
    let folder = std::env::temp_dir();
    let file = || File::new(&folder, 256 << 12).expect("a file");
    lossless(file(), Config { movers: 1, ..config(3) });
    // Without movers workers read groups while they write others.
    let mut alone = Config { group_pages: 2, ..config(3) };
    (alone.plan.batch, alone.plan.cluster) = (4, 4);
    lossless(file(), alone);
}

/// Worker 1 cuts the file, and writes pages until it is as long as before. Worker 0 does not see zeros.
fn cut() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = File::new(folder.path(), 256 << 12).expect("a file");
    let is_ours =
        |path: &std::path::Path| std::fs::read_link(path).is_ok_and(|to| to.starts_with(&folder));
    let open = std::fs::read_dir("/proc/self/fd").expect("proc").filter_map(Result::ok);
    let name = open.map(|entry| entry.path()).find(|path| is_ours(path)).expect("it is open");
    let team = Team::new(config(2), Box::new(file)).expect("a team");
    let report = team.run(|worker| {
        let words = worker.words();
        let (mine, others) = words.split_at(128 * PAGE_WORDS);
        if worker.index() == 0 {
            mine.iter().for_each(|word| word.store(1, Ordering::Relaxed));
        }
        worker.barrier().map_err(|gone| gone.to_string())?;
        if worker.index() == 1 {
            let name = name.to_string_lossy().into_owned();
            std::fs::OpenOptions::new().write(true).truncate(true).open(name).expect("a cut");
            others.iter().for_each(|word| word.store(1, Ordering::Relaxed));
        }
        worker.barrier().map_err(|gone| gone.to_string())?;
        if worker.index() == 0 {
            let sum: u64 = mine.iter().map(|word| word.load(Ordering::Relaxed)).sum();
            return Err(format!("it read all of it: {sum}"));
        }
        Ok(7)
    });
    assert_eq!(report.expect("a run").workers, [Ended::Killed(7), Ended::Value(7)]);
}

fn compressed() {
    let far = Compressed::new(&Lz4, 256 << 12, 4096, 256 << 12).expect("memory");
    lossless(far, Config { movers: 1, ..config(3) });
}

fn compressed_full() {
    let far = Compressed::new(&Lz4, 256 << 12, 4096, 16 << 12).expect("memory");
    let team = Team::new(config(1), Box::new(far)).expect("a team");
    let report = team
        .run(|worker| {
            // Words that do not compress.
            let mut x = 88_172_645_463_325_252_u64;
            for word in worker.words() {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                word.store(x, Ordering::Relaxed);
            }
            Ok(0)
        })
        .expect("a run");
    assert_eq!(report.workers, [Ended::Killed(7)]);
}
