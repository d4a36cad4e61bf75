//! Signals of the program's: handlers that touch the area while their thread is in the middle of a fault of its
//! own, and the program's handler of `SIGBUS`, which is back when the area is gone.

use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use isochrone_os::process::signal_thread;
use isochrone_tier::live::far::{Compressed, Lz4, Memory};
use isochrone_tier::live::{Config, Ended, Mapped, Mode, Tables, Team};
use isochrone_tier::pager::Advice;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::gettid;

use super::errors::Flaky;
use super::{Case, case};

pub(super) const CASES: &[Case] = &[
    case("handlers_touch_the_area_in_the_middle_of_a_workers_faults", in_a_worker),
    case("handlers_touch_the_area_in_the_middle_of_a_guests_faults", in_a_guest),
    case("threads_of_a_worker_touch_the_area_while_it_does", beside_a_worker),
    case("the_programs_handler_is_back_when_the_area_is_gone", back),
    case("a_handler_that_hands_on_to_ours_does_not_go_round", not_round),
    case("a_second_area_is_refused_and_the_first_goes_on", one_area),
];

const PAGE_WORDS: usize = 512;
const PAGES: usize = 64;
/// How often a handler touches the area before it is enough.
const TOUCHES: u64 = 300;

/// What handlers touch, while there is something, and how often they did.
static AREA: AtomicPtr<AtomicU64> = AtomicPtr::new(core::ptr::null_mut());
static TOUCHED: AtomicU64 = AtomicU64::new(0);

fn config() -> Config {
    let mut config = Config::new(PAGES << 12, 16 << 12, 1);
    config.plan.batch = 4;
    config
}

fn far() -> Box<Memory> {
    Box::new(Memory::new(PAGES << 12, None).expect("addresses"))
}

/// Counts in the area: on another page each time.
extern "C" fn touch(_: i32) {
    let area = AREA.load(Ordering::Acquire);
    if area.is_null() {
        return;
    }
    let times = TOUCHED.load(Ordering::Relaxed);
    let page = usize::try_from(times).unwrap_or(0) * 29 % PAGES;
    // SAFETY: whoever stores the area takes it away before it goes; all of it are atomic words.
    let word = unsafe { &*area.wrapping_add(page * PAGE_WORDS + 1) };
    word.fetch_add(1, Ordering::Relaxed);
    TOUCHED.store(times + 1, Ordering::Release);
}

fn install(signal: Signal, handler: extern "C" fn(i32), flags: SaFlags) {
    let action = SigAction::new(SigHandler::Handler(handler), flags, SigSet::empty());
    // SAFETY: the handlers of this test touch nothing but atomics and the area.
    unsafe { sigaction(signal, &action) }.expect("a handler");
}

/// Lets `act` run in this thread, again and again, while another sends it signals. Then the area holds what both
/// have added.
fn disturbed(words: &[AtomicU64], act: impl Fn() -> Result<(), String>) -> Result<u64, String> {
    let (me, done) = (gettid().as_raw(), AtomicBool::new(false));
    AREA.store(words.as_ptr().cast_mut(), Ordering::Release);
    let sweeps = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                signal_thread(me, Signal::SIGUSR1 as i32);
                std::thread::sleep(Duration::from_micros(20));
            }
        });
        let mut sweeps = 0;
        let mut result = Ok(());
        while result.is_ok() && TOUCHED.load(Ordering::Acquire) < TOUCHES {
            for word in words.iter().step_by(PAGE_WORDS) {
                word.fetch_add(1, Ordering::Relaxed);
            }
            sweeps += 1;
            result = act();
        }
        done.store(true, Ordering::Release);
        result.map(|()| sweeps)
    });
    AREA.store(core::ptr::null_mut(), Ordering::Release);
    let sweeps = sweeps?;
    let wrong = words.iter().step_by(PAGE_WORDS);
    let wrong = wrong.filter(|word| word.load(Ordering::Relaxed) != sweeps).count();
    let touched = words.iter().skip(1).step_by(PAGE_WORDS);
    let touched: u64 = touched.map(|word| word.load(Ordering::Relaxed)).sum();
    if wrong > 0 || touched != TOUCHED.load(Ordering::Acquire) {
        return Err(format!("{wrong} pages are wrong, {touched} touches of handlers are there"));
    }
    Ok(touched)
}

fn in_a_worker() {
    for flags in [SaFlags::SA_RESTART, SaFlags::SA_RESTART | SaFlags::SA_ONSTACK] {
        install(Signal::SIGUSR1, touch, flags);
        for mode in [Mode::Signal, Mode::Blocking] {
            let team = Team::new(Config { mode: Some(mode), ..config() }, far()).expect("a team");
            let report = team.run(|worker| {
                disturbed(worker.words(), || {
                    // What a worker asks for is not found half done either.
                    worker.pin(3 << 12, 4 << 12).map_err(|trouble| trouble.to_string())?;
                    let cold = worker.advise(0..PAGES << 12, Advice::Cold);
                    cold.map_err(|trouble| trouble.to_string())?;
                    worker.unpin(3 << 12, 4 << 12).map_err(|trouble| trouble.to_string())
                })
            });
            let values = report.expect("a run").values().expect("nobody ends");
            assert!(values[0] >= TOUCHES, "{mode:?}: {values:?}");
        }
    }
}

fn words_of(array: &Mapped) -> &[AtomicU64] {
    let first = array.as_ptr().cast::<AtomicU64>();
    // SAFETY: the array is that long, aligned to pages, readable and writable while `array` lives, and nobody has
    // anything but these atomic words of it.
    unsafe { std::slice::from_raw_parts(first, array.len() / 8) }
}

fn in_a_guest() {
    install(Signal::SIGUSR1, touch, SaFlags::SA_RESTART);
    let array = Mapped::new(config(), far()).expect("an array");
    let touched = disturbed(words_of(&array), || {
        let cold = array.advise(0..PAGES << 12, Advice::Cold);
        cold.map_err(|trouble| trouble.to_string())
    });
    assert!(touched.expect("nobody ends") >= TOUCHES);
}

/// A worker in a process of its own has threads of its own, and goes on itself meanwhile.
fn beside_a_worker() {
    for mode in [Mode::Signal, Mode::Blocking] {
        // Of those that need buffers.
        let far = Compressed::new(&Lz4, PAGES << 12, 4096, (2 * PAGES) << 12).expect("memory");
        let config = Config { mode: Some(mode), ..config() };
        let team = Team::new(config, Box::new(far)).expect("a team");
        let report = team.run(|worker| {
            let words = worker.words();
            let sweep = |place: usize| {
                for word in (0..20).flat_map(|_| words.iter().skip(place).step_by(PAGE_WORDS)) {
                    word.fetch_add(1, Ordering::Relaxed);
                }
            };
            std::thread::scope(|scope| {
                scope.spawn(|| sweep(1));
                scope.spawn(|| sweep(2));
                sweep(0);
            });
            let all = (0..3).flat_map(|place| words.iter().skip(place).step_by(PAGE_WORDS));
            Ok(all.filter(|word| word.load(Ordering::Relaxed) == 20).count() as u64)
        });
        assert_eq!(report.expect("a run").values(), Ok(vec![3 * PAGES as u64]), "{mode:?}");
    }
}

extern "C" fn first(_: i32) {}
extern "C" fn second(_: i32) {}

fn own(handler: extern "C" fn(i32)) {
    install(Signal::SIGBUS, handler, SaFlags::SA_ONSTACK);
}

/// Whether this handler is there; it is there again afterwards.
fn is_own(handler: extern "C" fn(i32)) -> bool {
    // SAFETY: it is put back at once.
    let now = unsafe { sigaction(Signal::SIGBUS, &default()) }.expect("what is there");
    // SAFETY: it was there before.
    unsafe { sigaction(Signal::SIGBUS, &now) }.expect("put back");
    matches!(now.handler(), SigHandler::Handler(there) if there as usize == handler as usize)
}

fn default() -> SigAction {
    SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty())
}

/// An area that is used, and goes.
fn used(tables: Option<Tables>) {
    let sweep = |words: &[AtomicU64]| {
        words.iter().step_by(PAGE_WORDS).for_each(|word| word.store(1, Ordering::Relaxed));
    };
    let Some(tables) = tables else {
        return sweep(words_of(&Mapped::new(config(), far()).expect("an array")));
    };
    let config = Config { tables, parent_works: true, ..config() };
    let report = Team::new(config, far()).expect("a team").run(|worker| {
        sweep(worker.words());
        Ok(0)
    });
    assert_eq!(report.expect("a run").values(), Ok(vec![0]));
}

fn back() {
    for area in [None, Some(Tables::Shared), Some(Tables::Separated)] {
        own(first);
        used(area);
        assert!(is_own(first), "{area:?}: after the first");
        used(area);
        assert!(is_own(first), "{area:?}: after the second");
        own(second);
        used(area);
        assert!(is_own(second), "{area:?}: after one that came between");
    }
    let array = Mapped::new(config(), far()).expect("an array");
    own(first);
    drop(array);
    assert!(is_own(first), "one that came in our place stays there");
}

/// What was there when [`handing`] came.
static BEFORE: AtomicUsize = AtomicUsize::new(0);

extern "C" fn handing(
    signal: i32,
    info: *mut nix::libc::siginfo_t,
    context: *mut core::ffi::c_void,
) {
    type Full = extern "C" fn(i32, *mut nix::libc::siginfo_t, *mut core::ffi::c_void);
    // SAFETY: this was installed as such a handler.
    let before = unsafe { core::mem::transmute::<usize, Full>(BEFORE.load(Ordering::Relaxed)) };
    before(signal, info, context);
}

/// One that came in our place and hands on to us is still there when the next area comes.
fn not_round() {
    let array = Mapped::new(config(), far()).expect("an array");
    let action =
        SigAction::new(SigHandler::SigAction(handing), SaFlags::SA_ONSTACK, SigSet::empty());
    // SAFETY: it does nothing but hand on.
    let ours = unsafe { sigaction(Signal::SIGBUS, &action) }.expect("a handler");
    let SigHandler::SigAction(ours) = ours.handler() else { panic!("{ours:?}") };
    BEFORE.store(ours as usize, Ordering::Relaxed);
    words_of(&array).iter().step_by(PAGE_WORDS).for_each(|word| word.store(1, Ordering::Relaxed));
    drop(array);
    let team = Team::new(config(), Box::new(Flaky::new(u32::MAX, Some(3), 0))).expect("a team");
    let report = team.run(|worker| {
        let words = worker.words();
        (0..PAGES).for_each(|page| words[page * PAGE_WORDS].store(7, Ordering::Relaxed));
        Ok(words[3 * PAGE_WORDS].load(Ordering::Relaxed))
    });
    assert_eq!(report.expect("a run").workers, [Ended::Killed(7)]);
}

fn one_area() {
    let array = Mapped::new(config(), far()).expect("an array");
    let words = words_of(&array);
    let sweep = || {
        words.iter().step_by(PAGE_WORDS).for_each(|word| {
            word.fetch_add(1, Ordering::Relaxed);
        });
    };
    sweep();
    let team = Team::new(Config { tables: Tables::Shared, ..config() }, far()).expect("a team");
    let refused = team.run(|_| Ok(0)).expect_err("a second area").to_string();
    assert!(refused.contains("one area at a time"), "{refused}");
    sweep();
    let sum: u64 = words.iter().step_by(PAGE_WORDS).map(|word| word.load(Ordering::Relaxed)).sum();
    assert_eq!(sum, 2 * PAGES as u64);
}
