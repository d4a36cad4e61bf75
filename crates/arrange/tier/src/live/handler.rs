//! The handler of `SIGBUS`: in this mode of userfaultfd the kernel sends the signal to the thread that
//! touched a page it does not map, and the thread resolves its own fault. No other thread is asked.
//!
//! It runs on a stack of its own and calls nothing that allocates or takes a lock of the program's. Signals that are
//! sent to its thread wait until it is done, so a handler of the program's may touch the area: before it or after
//! it, never in the middle. What drivers do outside of it holds signals back for the same reason
//! ([`isochrone_os::signal::hold`]).

use core::cell::Cell;
use core::fmt::Write;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use isochrone_os::OsError;
use isochrone_os::futex::{self, Scope};
use isochrone_os::signal::{
    Caught, Interrupted, SharedStack, Stack, Verdict, catch_bus, say, somebody_was_there,
};

use super::acting::at_once;
use super::common::Timed;
use super::context::Context;
use super::process::{Process, timed};
use crate::names::Access;
use crate::pages::Trouble;

/// Room for what the processor saves (11 KiB with AMX) and for the drivers, many times over.
const STACK_BYTES: usize = 256 << 10;

/// The process whose faults are resolved, while there is a team.
static PROCESS: AtomicPtr<Process> = AtomicPtr::new(ptr::null_mut());
/// By what faults of threads that are no workers are resolved, and how many threads look at it now.
static GUESTS: AtomicPtr<Guests<'static>> = AtomicPtr::new(ptr::null_mut());
static INSIDE: AtomicUsize = AtomicUsize::new(0);
/// The program was told by a line already.
static COMPLAINED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static CURRENT: Cell<*const Context<'static>> = const { Cell::new(ptr::null()) };
    /// The seat that a guest had last: what it needs is in this thread's caches.
    static SEAT: Cell<usize> = const { Cell::new(0) };
}

/// This thread resolves its own faults for as long as the value lives.
#[derive(Debug)]
pub(super) struct Resolving<'c> {
    _context: &'c Context<'c>,
    _caught: Caught,
    _stack: Stack,
}

impl<'c> Resolving<'c> {
    /// Sets this thread up, and the process if it is the first. The team has claimed its faults ([`claim`]).
    pub(super) fn start(context: &'c Context<'c>) -> Result<Self, OsError> {
        let stack = Stack::new(STACK_BYTES)?;
        let caught = catch_bus(on_bus)?;
        CURRENT.set(ptr::from_ref(context).cast());
        Ok(Self { _context: context, _caught: caught, _stack: stack })
    }
}

impl Drop for Resolving<'_> {
    fn drop(&mut self) {
        CURRENT.set(ptr::null());
    }
}

/// Catches `SIGBUS` for this process, for threads that have no [`Resolving`].
pub(super) fn catch() -> Result<Caught, OsError> {
    catch_bus(on_bus)
}

/// Threads that are no workers may touch the area too, as long as the value lives. Each takes a seat for a fault: a
/// context, and a stack, since the thread's own alternate one is whatever made the thread gave it. Who finds none
/// sleeps until one is free.
#[derive(Debug)]
pub(super) struct Guests<'c> {
    seats: Box<[Seat<'c>]>,
    /// Goes up with every seat that is given back.
    given: AtomicU32,
    sleepers: AtomicU32,
}

#[derive(Debug)]
struct Seat<'c> {
    taken: AtomicBool,
    context: Context<'c>,
    stack: SharedStack,
}

/// A guest that sleeps looks again by itself after this.
const SLEEP_NS: u64 = 20_000_000;

impl<'c> Guests<'c> {
    /// At a place of its own, where handlers find it.
    pub(super) fn serve(contexts: Vec<Context<'c>>) -> Result<Box<Self>, OsError> {
        let seat = |context| {
            let stack = SharedStack::new(STACK_BYTES)?;
            Ok::<_, OsError>(Seat { taken: AtomicBool::new(false), context, stack })
        };
        let seats = contexts.into_iter().map(seat).collect::<Result<_, _>>()?;
        let (given, sleepers) = (AtomicU32::new(0), AtomicU32::new(0));
        let guests = Box::new(Self { seats, given, sleepers });
        GUESTS.store(ptr::from_ref(&*guests).cast_mut().cast(), Ordering::SeqCst);
        Ok(guests)
    }

    /// Works in a seat.
    fn seated<T>(&self, work: impl FnOnce(&Context<'_>) -> T) -> T {
        let seat = self.take();
        // SAFETY: the seat is this thread's, and no fault happens while one is resolved.
        let result = unsafe { seat.stack.run(|| work(&seat.context)) };
        seat.taken.store(false, Ordering::SeqCst);
        // SeqCst: partner of `take`. Either this sees the sleeper, or the sleeper sees that the word has changed.
        self.given.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            let _ = futex::wake(&self.given, 1, Scope::Process);
        }
        result
    }

    fn take(&self) -> &Seat<'c> {
        let first = SEAT.get();
        loop {
            let given = self.given.load(Ordering::SeqCst);
            for at in (first..first + self.seats.len()).map(|at| at % self.seats.len()) {
                let seat = &self.seats[at];
                if !seat.taken.load(Ordering::Relaxed) && !seat.taken.swap(true, Ordering::Acquire)
                {
                    SEAT.set(at);
                    return seat;
                }
            }
            self.sleepers.fetch_add(1, Ordering::SeqCst);
            let _ = futex::wait(&self.given, given, Some(SLEEP_NS), Scope::Process);
            self.sleepers.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Drop for Guests<'_> {
    fn drop(&mut self) {
        let mine = ptr::from_mut(self).cast();
        // Of a team that came after, it is that one's.
        let _ = GUESTS.compare_exchange(mine, ptr::null_mut(), Ordering::SeqCst, Ordering::Relaxed);
        // Whoever found it is in there now.
        while INSIDE.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
    }
}

/// Works as a guest; `None` where there is no place for any.
fn as_guest<T>(work: impl FnOnce(&Context<'_>) -> T) -> Option<T> {
    INSIDE.fetch_add(1, Ordering::SeqCst);
    let guests = GUESTS.load(Ordering::SeqCst);
    // SAFETY: it clears the pointer, and waits until nobody who may have found it is inside, before it is dropped.
    let result = unsafe { guests.as_ref() }.map(|guests| guests.seated(work));
    INSIDE.fetch_sub(1, Ordering::SeqCst);
    result
}

/// In a process that was forked while there was an area: nothing of it is here, and faults are nobody's.
pub(super) fn abandon() {
    GUESTS.store(ptr::null_mut(), Ordering::SeqCst);
    INSIDE.store(0, Ordering::SeqCst);
    forget();
}

/// Faults of this process are those of this area from now on, until [`forget`]; false where they are another's.
pub(super) fn claim(process: &Process) -> bool {
    let mine = ptr::from_ref(process).cast_mut();
    let (nobody, order) = (ptr::null_mut(), (Ordering::AcqRel, Ordering::Relaxed));
    PROCESS.compare_exchange(nobody, mine, order.0, order.1).is_ok()
}

/// Faults are nobody's any more: the team is over.
pub(super) fn forget() {
    PROCESS.store(ptr::null_mut(), Ordering::Release);
}

fn on_bus(interrupted: &Interrupted) -> Verdict {
    let process = PROCESS.load(Ordering::Acquire);
    // SAFETY: whoever stores a process here clears it before the process is dropped (`forget`).
    let Some(process) = (unsafe { process.as_ref() }) else { return Verdict::HandOn };
    let address = interrupted.address();
    let Some(group) = process.area.group_at(address) else { return Verdict::HandOn };
    let access = if interrupted.is_write() { Access::Write } else { Access::Read };
    let current = CURRENT.get();
    // SAFETY: a thread's own context lives until it clears the pointer.
    let mine = unsafe { current.as_ref() };
    let resolve = |context: &Context<'_>| {
        let (result, cycles) = timed(|| {
            let pager = process.pager_at(group);
            at_once(pager.fault(context, context.caller, group, access))
        });
        process.common.time(context.caller.actor, Timed::Fault, cycles);
        result
    };
    let result = match mine {
        Some(context) => resolve(context),
        None => match as_guest(resolve) {
            Some(result) => result,
            None => return Verdict::HandOn,
        },
    };
    match result {
        Ok(_) => Verdict::Resume,
        Err(trouble) => {
            // Rust's own runtime is there before, too, and says nothing: so it is said once in any case.
            if !COMPLAINED.swap(true, Ordering::Relaxed) || !somebody_was_there() {
                complain(address, trouble);
            }
            Verdict::HandOn
        }
    }
}

/// One line on standard error, made without memory.
pub(super) fn complain(address: usize, trouble: Trouble) {
    complain_by(say, address, trouble);
}

/// The same by who says it.
pub(super) fn complain_by(say: fn(&[u8]), address: usize, trouble: Trouble) {
    say_line(say, format_args!("isochrone: no page at {address:#x}: {trouble}"));
}

/// One line, made without memory.
pub(super) fn say_line(say: fn(&[u8]), words: core::fmt::Arguments<'_>) {
    let mut line = Line { bytes: [0; 256], len: 0 };
    let _ = writeln!(line, "{words}");
    say(&line.bytes[..line.len]);
}

struct Line {
    bytes: [u8; 256],
    len: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        for byte in text.bytes().take(self.bytes.len() - self.len) {
            self.bytes[self.len] = byte;
            self.len += 1;
        }
        Ok(())
    }
}
