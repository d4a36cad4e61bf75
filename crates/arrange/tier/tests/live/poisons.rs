//! Pages that could not be had, where threads of ours resolve faults: each is a `SIGBUS` at the access, and is tried
//! again at the next when there is room, or when somebody else has brought it.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::io::{Read, Write, pipe};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::Duration;

use isochrone_os::area::Words;
use isochrone_os::process::end;
use isochrone_tier::live::far::{Far, Memory, Part, Scratch};
use isochrone_tier::live::{Config, Ended, Mapped, Mode, Tables, Team};
use isochrone_tier::pager::Advice;
use isochrone_tier::pages::Trouble;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use super::{Case, case};

pub(super) const CASES: &[Case] = &[
    case("what_a_full_medium_refused_is_had_when_there_is_room", room_later),
    case("what_the_program_gives_back_is_room_at_once", room_at_once),
    case("more_pages_that_cannot_be_had_than_are_remembered", many),
    case("a_page_that_another_worker_brought_meanwhile_is_mapped", brought_meanwhile),
];

const PAGE_WORDS: usize = 512;
const PAGES: usize = 256;
const FAST: usize = 64;
/// What handlers go by, while there is something.
static GATE: AtomicPtr<AtomicU32> = AtomicPtr::new(core::ptr::null_mut());
/// Signals that this process had.
static TOLD: AtomicU32 = AtomicU32::new(0);
/// As many as no case needs.
const TOLD_MOST: u32 = 5000;
const NEVER_AGAIN: i32 = 88;

/// Words of a gate, which all processes share.
const SHUT: usize = 0;
const UNREADABLE: usize = 1;
const REFUSED: usize = 2;
const DONE: usize = 3;

/// Memory behind a gate: while it is shut nothing can be written, and reads of page 3 fail so often.
#[derive(Debug)]
struct Gated {
    inner: Memory,
    words: Arc<Words>,
}

fn gated() -> (Box<Gated>, Arc<Words>) {
    let words = Arc::new(Words::new(16).expect("shared words"));
    let inner = Memory::new(PAGES << 12, None).expect("addresses");
    GATE.store(words.as_slice().as_ptr().cast_mut(), Ordering::Release);
    (Box::new(Gated { inner, words: words.clone() }), words)
}

impl Far for Gated {
    fn name(&self) -> &'static str {
        "gated"
    }

    fn read(&self, part: &Part, to: &mut [u8], scratch: &mut Scratch) -> Result<(), Trouble> {
        let words = self.words.as_slice();
        let is_it = (part.at()..part.at() + part.bytes()).contains(&(3 << 12));
        let fails = |left: u32| left.checked_sub(1);
        let counted = words[UNREADABLE].fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| {
            if is_it { fails(left) } else { None }
        });
        if counted.is_ok() {
            words[REFUSED].fetch_add(1, Ordering::AcqRel);
            return Err(Trouble::Far(5));
        }
        self.inner.read(part, to, scratch)
    }

    fn write(&self, part: &Part, from: &[u8], scratch: &mut Scratch) -> Result<(), Trouble> {
        if self.words.as_slice()[SHUT].load(Ordering::Acquire) != 0 {
            return Err(Trouble::Full);
        }
        self.inner.write(part, from, scratch)
    }
}

fn config(tables: Tables, workers: u16) -> Config {
    let mut config = Config::new(PAGES << 12, FAST << 12, workers);
    (config.tables, config.mode) = (tables, Some(Mode::Blocking));
    // What a fault brings is one page.
    config.follow = false;
    config.plan.batch = 4;
    config
}

fn handler(handler: extern "C" fn(i32)) {
    let action = SigAction::new(SigHandler::Handler(handler), SaFlags::empty(), SigSet::empty());
    // SAFETY: the handlers of this test use words that are there for as long as the process, sleep, or end it.
    unsafe { sigaction(Signal::SIGBUS, &action) }.expect("a handler");
}

/// One more signal; the process ends where there is no end of them.
fn told() -> u32 {
    let times = TOLD.fetch_add(1, Ordering::AcqRel) + 1;
    if times > TOLD_MOST {
        end(NEVER_AGAIN);
    }
    times
}

fn gate(word: usize) -> &'static AtomicU32 {
    // SAFETY: `gated` put words there that nobody gives back before the process ends.
    unsafe { &*GATE.load(Ordering::Acquire).wrapping_add(word) }
}

/// There is room after some times.
extern "C" fn open_later(_: i32) {
    if told() == 20 {
        gate(SHUT).store(0, Ordering::Release);
    }
    std::thread::sleep(Duration::from_millis(1));
}

fn room_later() {
    handler(open_later);
    for tables in [Tables::Separated, Tables::Shared] {
        let (far, words) = gated();
        TOLD.store(0, Ordering::Release);
        let team = Team::new(config(tables, 1), far).expect("a team");
        let report = team.run(|worker| {
            let area = worker.words();
            for page in 0..PAGES {
                if page == 100 {
                    words.as_slice()[SHUT].store(1, Ordering::Release);
                }
                area[page * PAGE_WORDS].store(page as u64 + 1, Ordering::Relaxed);
            }
            let right =
                |page: &usize| area[page * PAGE_WORDS].load(Ordering::Relaxed) == *page as u64 + 1;
            Ok((0..PAGES).filter(right).count() as u64 * 10_000
                + u64::from(TOLD.load(Ordering::Acquire)))
        });
        let values = report.expect("a run").values().expect("it goes on");
        assert_eq!(values[0] / 10_000, PAGES as u64, "{tables:?}");
        assert!(values[0] % 10_000 >= 20, "{tables:?}: it was not told");
        std::mem::forget(words);
    }
}

/// The other thread makes room while this one is told: then it is not told again.
extern "C" fn wait_for_room(_: i32) {
    told();
    gate(REFUSED).store(1, Ordering::Release);
    while gate(DONE).load(Ordering::Acquire) == 0 {
        std::hint::spin_loop();
    }
}

fn until(word: &AtomicU32) {
    while word.load(Ordering::Acquire) == 0 {
        std::thread::yield_now();
    }
}

fn room_at_once() {
    handler(wait_for_room);
    let (far, words) = gated();
    let array = Mapped::new(config(Tables::Shared, 1), far).expect("an array");
    let area: &[AtomicU64] = array.words();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            until(gate(REFUSED));
            // What lies there is worth nothing, so nothing need be written for the page that is wanted. That
            // one is not among them: its poison has to go by itself.
            array.advise(0..FAST << 12, Advice::Discard).expect("it can be forgotten");
            gate(DONE).store(1, Ordering::Release);
        });
        words.as_slice()[SHUT].store(1, Ordering::Release);
        (0..=FAST).for_each(|page| area[page * PAGE_WORDS].store(7, Ordering::Relaxed));
    });
    assert_eq!(area[FAST * PAGE_WORDS].load(Ordering::Relaxed), 7);
    assert_eq!(TOLD.load(Ordering::Acquire), 1, "it was told once, and then there was room");
    drop(array);
    std::mem::forget(words);
}

/// More threads than are remembered pages wait for room, each on a page of its own.
fn many() {
    handler(open_much_later);
    let (far, words) = gated();
    let array = Mapped::new(config(Tables::Shared, 1), far).expect("an array");
    let area: &[AtomicU64] = array.words();
    (0..FAST).for_each(|page| area[page * PAGE_WORDS].store(1, Ordering::Relaxed));
    words.as_slice()[SHUT].store(1, Ordering::Release);
    std::thread::scope(|scope| {
        for page in FAST..FAST + 100 {
            scope.spawn(move || area[page * PAGE_WORDS].store(1, Ordering::Relaxed));
        }
    });
    let there = |page: &usize| area[page * PAGE_WORDS].load(Ordering::Relaxed) == 1;
    assert_eq!((0..FAST + 100).filter(there).count(), FAST + 100);
    assert!(TOLD.load(Ordering::Acquire) >= 100, "each is told");
    drop(array);
    std::mem::forget(words);
}

extern "C" fn open_much_later(_: i32) {
    if told() == 200 {
        gate(SHUT).store(0, Ordering::Release);
    }
    std::thread::sleep(Duration::from_millis(1));
}

extern "C" fn leave(_: i32) {
    end(77);
}

unsafe extern "C" {
    /// As of the system: the second number is the first's file from then on.
    fn dup2(from: i32, to: i32) -> i32;
}

/// The thread that serves worker 0 could not read page 3 and says so to a pipe that is full. Before somebody reads
/// there worker 1 has brought the page: it is in memory then, and in no table of worker 0.
fn brought_meanwhile() {
    handler(leave);
    let (far, words) = gated();
    let team = Team::new(config(Tables::Separated, 2), far).expect("a team");
    let report = team.run(|worker| {
        let area = worker.words();
        let words = words.as_slice();
        if worker.index() == 1 {
            (0..PAGES).for_each(|page| area[page * PAGE_WORDS].store(7, Ordering::Relaxed));
            words[UNREADABLE].store(1, Ordering::Release);
        }
        worker.barrier().map_err(|gone| gone.to_string())?;
        if worker.index() == 1 {
            until(&words[REFUSED]);
            let seen = area[3 * PAGE_WORDS].load(Ordering::Relaxed);
            words[DONE].store(1, Ordering::Release);
            return Ok(seen);
        }
        let (mut reader, mut writer) = pipe().map_err(|error| error.to_string())?;
        let is_full = |writer: &std::io::PipeWriter| {
            let mut waiting = [PollFd::new(writer.as_fd(), PollFlags::POLLOUT)];
            poll(&mut waiting, PollTimeout::ZERO) == Ok(0)
        };
        while !is_full(&writer) {
            writer.write_all(&[b'.'; 4096]).map_err(|error| error.to_string())?;
        }
        // SAFETY: two descriptors of this process, of which the second is for lines alone.
        assert_eq!(unsafe { dup2(writer.as_raw_fd(), 2) }, 2);
        std::thread::scope(|scope| {
            let touch = scope.spawn(|| area[3 * PAGE_WORDS].load(Ordering::Relaxed));
            until(&words[DONE]);
            let mut some = [0; 1 << 16];
            reader.read(&mut some).map_err(|error| error.to_string())?;
            touch.join().map_err(|_| "it panicked".to_owned())
        })
    });
    assert_eq!(report.expect("a run").workers, [Ended::Value(7), Ended::Value(7)]);
}
