//! The threads that resolve faults: each reads them from the descriptor, which they alone have, and does what is asked
//! through the bell. They allocate nothing, take no lock of the program's, and use nothing that is thread-local
//! ([`isochrone_os::thread`]).

use core::ffi::{c_int, c_void};
use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};

use isochrone_os::OsError;
use isochrone_os::area::{Told, Window};
use isochrone_os::futex::{self, Scope};
use isochrone_os::process::signal_thread;
use isochrone_os::thread::{give_way, say_apart, settle, start_apart};
use isochrone_os::userfault::{Fault, Features, Notice};
use isochrone_units::PAGE_BYTES;

use super::actor::Hand;
use super::book::Marks;
use super::errno;
use super::look;
use super::orders::{Order, run_of};
use super::places::Moved;
use super::record::Word;
use crate::directory::State;
use crate::live::acting::at_once;
use crate::live::handler::complain_by;
use crate::live::operations::ZEROS;
use crate::names::{Access, Group, Run};
use crate::pager::Pager;
use crate::pages::Trouble;

/// How long a handler sleeps in the kernel until it is told of a fault, in milliseconds: for ever.
const FOR_EVER: i32 = -1;
/// Looks for a fault before sleeping.
const SPINS: u32 = 30;
/// Tries to make room before a frame is lent.
const TRIES: u32 = 4;
/// Frames that a fault gives back while there is a debt.
const INSTALMENT: u32 = 64;
/// Groups that leave by one step where all of a run is to leave.
const STEP: u32 = 32;
/// `SIGBUS` (signal(7), x86-64 and AArch64).
const SIGBUS: i32 = 7;

/// Handlers that are ready.
static READY: AtomicU32 = AtomicU32::new(0);
/// Whether those that are ready are to serve.
static DECISION: AtomicU32 = AtomicU32::new(OPEN);
const OPEN: u32 = 0;
const SERVE: u32 = 1;
const LEAVE: u32 = 2;

/// Starts a handler, which waits for [`decide`].
pub(super) fn start(hand: &'static Hand) -> Result<(), OsError> {
    let hand = std::ptr::from_ref(hand).cast_mut().cast::<c_void>();
    // SAFETY: the work uses what it is given, which lives as long as the process, by shared references, and no other
    // thread uses this hand.
    unsafe { start_apart(work, hand) }
}

/// Lets so many handlers serve for ever, once each has descriptors of its own; or all that were started leave.
pub(super) fn decide(serve: Option<u32>) {
    if let Some(handlers) = serve {
        until(&READY, |ready| ready >= handlers);
    }
    DECISION.store(if serve.is_some() { SERVE } else { LEAVE }, Ordering::Release);
    let _ = futex::wake(&DECISION, u32::MAX >> 1, Scope::Process);
}

/// Sleeps until a word has such a value.
fn until(word: &AtomicU32, is_it: impl Fn(u32) -> bool) -> u32 {
    loop {
        let seen = word.load(Ordering::Acquire);
        if is_it(seen) {
            return seen;
        }
        let _ = futex::wait(word, seen, None, Scope::Process);
    }
}

extern "C" fn work(hand: *mut c_void) -> c_int {
    // SAFETY: `start` gave a hand that lives as long as the process.
    let hand = unsafe { &*hand.cast::<Hand>() };
    let ground = &hand.ground;
    let number = ground.table.number();
    settle(c"isochrone-fault", &[number, ground.far.descriptor().unwrap_or(number)]);
    READY.fetch_add(1, Ordering::AcqRel);
    let _ = futex::wake(&READY, u32::MAX >> 1, Scope::Process);
    if until(&DECISION, |decision| decision != OPEN) == LEAVE {
        return 0;
    }
    loop {
        next(hand, FOR_EVER);
    }
}

/// Resolves the next fault, if there is one within so many milliseconds.
pub(super) fn next(hand: &Hand, milliseconds: i32) {
    if hand.ground.places.are_put_off() {
        look::again(hand);
    }
    // Where more is told than faults nobody moves pages while a handler looks.
    let looks = if hand.ground.places.are_told() { 1 } else { SPINS };
    match (0..looks).find_map(|_| hand.hear()) {
        Some(Notice::Fault(fault)) => answer(hand, fault),
        Some(Notice::Unmapped(range)) => forget(hand, &hand.ground.places.pages_of(&range)),
        Some(Notice::Moved { range, .. }) => send_on(hand, &hand.ground.places.pages_of(&range)),
        // Noted, and looked at next.
        Some(Notice::Emptied(_)) => {}
        None => hand.ground.table.wait(milliseconds),
    }
}

/// What the program unmapped needs no frames, and no room in the far tier. What it moved is still to be sent on.
fn forget(hand: &Hand, pages: &Range<usize>) {
    let ground = &hand.ground;
    // A fault that began before may bring some of them.
    ground.quiesce();
    let mut rest = pages.clone();
    while !rest.is_empty() {
        let (moved, end) = ground.places.alike(&rest);
        if !moved {
            // Nothing is done to their addresses, so the kernel refuses nothing.
            let run = run_of(&(rest.start..end));
            let _ = at_once(ground.pager(1).give_up(hand, hand.caller, run));
        }
        rest.start = end;
    }
}

/// What the program moved comes whole to where it is now, and is the program's alone from then on. Who touches it
/// before waits.
fn send_on(hand: &Hand, pages: &Range<usize>) {
    let ground = &hand.ground;
    let Some(Moved { to, .. }) = ground.places.on_its_way(pages) else { return };
    let (run, bytes) = (run_of(pages), pages.len() * PAGE_BYTES);
    lend(hand, &ground.pager(1), run.groups);
    // Who began before may still evict.
    ground.quiesce();
    look::forget_of(hand, run);
    for group in run.iter() {
        let Err(trouble) = every(hand, Run::of(group)) else { continue };
        let page = to + (group.index() - pages.start) * PAGE_BYTES;
        complain_by(say_apart, page, trouble);
        let _ = ground.table.poison(page, PAGE_BYTES);
    }
    let _ = ground.table.unregister(to, bytes);
    if let Some(first) = NonNull::new(std::ptr::with_exposed_provenance_mut::<u8>(to)) {
        // SAFETY: what children get of it is as it was before it was adopted; where it is unmapped by now that is
        // refused.
        let _ = unsafe { Window::over(first, bytes) }.tell(0, bytes, Told::Fork);
    }
    ground.places.arrived(pages);
    let _ = at_once(ground.pager(1).give_up(hand, hand.caller, run));
    ground.debt.fetch_add(run.groups, Ordering::AcqRel);
    pay(hand, u32::MAX);
}

fn answer(hand: &Hand, fault: Fault) {
    let ground = &hand.ground;
    if let Some(group) = ground.group_at(fault.address) {
        return resolve(hand, fault, group);
    }
    let page = fault.address / PAGE_BYTES * PAGE_BYTES;
    if ground.places.is_awaited(page) {
        return;
    }
    if page == ground.mail.bell() {
        ground.mail.answer(|order, run| obey(hand, order, run));
    }
    // SAFETY: a page of zeros, behind the area.
    let _ = unsafe { ground.table.copy(page, ZEROS.as_ptr(), PAGE_BYTES, false) };
    let _ = ground.table.wake(page, PAGE_BYTES);
}

fn resolve(hand: &Hand, fault: Fault, group: Group) {
    let ground = &hand.ground;
    if ground.book.of(group.index()).has(Marks::EMPTIED) && !look::at(hand, group) {
        // It is there, or another handler is at it: who touched it tries again.
        give_way();
        let _ = ground.table.wake(ground.address_of(group), PAGE_BYTES);
        return;
    }
    ground.tally.add(Word::Faults, 1);
    let access = if fault.write { Access::Write } else { Access::Read };
    let done = {
        let _resolving = ground.resolving();
        ground.patience.pay();
        if !ground.patience.is_lost() {
            pay(hand, INSTALMENT);
        }
        fetch(hand, group, access, ground.cluster_of(group))
    };
    ground.note_peak();
    let page = ground.address_of(group);
    if let Err(trouble) = done {
        complain_by(say_apart, fault.address, trouble);
        let poison = || {
            let can = ground.table.features().has(Features::POISON);
            can && ground.table.poison(page, PAGE_BYTES).is_ok()
        };
        // Where another handler brought it meanwhile the access is tried again.
        if ground.pager(1).while_absent(hand, hand.caller, group, poison) == Some(false) {
            signal_thread(fault.thread, SIGBUS);
        }
    }
    let _ = ground.table.wake(page, PAGE_BYTES);
}

/// Fetches a group with some that follow it. Where nothing can leave, the limit is exceeded rather than the program
/// ended: what is in memory may be under a device or its medium full, and will leave later. That is not found out at
/// every fault ([`super::patience`]).
fn fetch(hand: &Hand, group: Group, access: Access, cluster: u32) -> Result<(), Trouble> {
    let ground = &hand.ground;
    let marks = ground.book.of(group.index());
    if !marks.is_ours() || marks.has(Marks::EMPTIED) {
        // It is on its way back to us: whoever touches it is told by the kernel, soon.
        return Ok(());
    }
    let pager = ground.pager(1);
    let try_once =
        |pager: &Pager<'_>| at_once(pager.fault(hand, hand.caller, group, access)).map(|_| ());
    let mut done = Err(Trouble::Full);
    if !ground.patience.is_lost() {
        done = try_once(&ground.pager(cluster));
        for _ in 1..TRIES {
            match done {
                Ok(()) => return done,
                // A medium says the same again.
                Err(Trouble::Full | Trouble::Far(_)) => break,
                Err(_) => done = try_once(&pager),
            }
        }
    }
    // Another handler may take what was lent.
    for _ in 0..TRIES {
        if done.is_ok() {
            break;
        }
        if pager.free() == 0 {
            lend_one(hand, &pager);
        }
        done = try_once(&pager);
    }
    done
}

/// Lends a frame to a fault, which is to be given back.
fn lend_one(hand: &Hand, pager: &Pager<'_>) {
    lend(hand, pager, 1);
    hand.ground.debt.fetch_add(1, Ordering::AcqRel);
    hand.ground.tally.add(Word::Lent, 1);
}

fn lend(hand: &Hand, pager: &Pager<'_>, frames: u32) {
    hand.ground.lent.fetch_add(frames, Ordering::AcqRel);
    pager.lend(hand, frames);
}

/// Gives back up to so many of the frames that are owed.
fn pay(hand: &Hand, most: u32) {
    let ground = &hand.ground;
    let mut owed = ground.debt.load(Ordering::Acquire);
    let part = loop {
        let part = owed.min(most);
        if part == 0 {
            return;
        }
        let swapped =
            ground.debt.compare_exchange(owed, owed - part, Ordering::AcqRel, Ordering::Acquire);
        match swapped {
            Ok(_) => break part,
            Err(other) => owed = other,
        }
    };
    let repaid = at_once(ground.pager(1).repay(hand, hand.caller, part));
    ground.lent.fetch_sub(repaid, Ordering::AcqRel);
    ground.debt.fetch_add(part - repaid, Ordering::AcqRel);
}

/// Does what a thread of the program asks for.
fn obey(hand: &Hand, order: Order, run: Run) -> Result<(), i32> {
    let ground = &hand.ground;
    let pager = ground.pager(1);
    let number = |trouble: Trouble| match trouble {
        Trouble::Kernel { errno, .. } | Trouble::Far(errno) => errno,
        Trouble::Altered => errno::EIO,
        _ => errno::ENOMEM,
    };
    match order {
        Order::Discard => {
            // A fault that began before may bring a neighbour of its own group.
            ground.quiesce();
            at_once(pager.give_up(hand, hand.caller, run)).map_err(number)
        }
        Order::Cool => {
            for first in (0..run.groups).step_by(STEP as usize) {
                let groups = STEP.min(run.groups - first);
                let part = Run { first: Group(run.first.0 + first), groups };
                // What cannot leave now is kept by who asked.
                let _ = at_once(pager.advise(hand, hand.caller, part, crate::pager::Advice::Cold));
            }
            Ok(())
        }
        Order::Fetch => every(hand, run).map_err(number),
        Order::Take => {
            // What is there stays as it is when it is brought, and others leave for it.
            run.iter()
                .try_for_each(|group| fetch(hand, group, Access::Write, 1))
                .map_err(number)?;
            ground.note_peak();
            Ok(())
        }
        Order::Hold => {
            run.iter().for_each(|group| _ = pager.directory().pin(group));
            every(hand, run).map_err(number)
        }
        Order::Keep => {
            run.iter().for_each(|group| _ = pager.directory().pin(group));
            Ok(())
        }
        Order::Release => {
            let directory = pager.directory();
            run.iter().for_each(|group| pager.unpin(hand, group, directory.era(group)));
            Ok(())
        }
        Order::Lend => {
            lend(hand, &pager, run.groups);
            // Who began before may still evict.
            ground.quiesce();
            Ok(())
        }
        Order::Repay => {
            ground.debt.fetch_add(run.groups, Ordering::AcqRel);
            pay(hand, u32::MAX);
            Ok(())
        }
    }
}

/// Fetches all of a run that the far tier has; what is new comes when it is touched.
fn every(hand: &Hand, run: Run) -> Result<(), Trouble> {
    let pager = hand.ground.pager(1);
    for group in run.iter() {
        let seen = pager.directory().look(group);
        if seen.state() == State::Absent && !seen.flags().stored || seen.state() == State::Resident
        {
            continue;
        }
        at_once(pager.fault(hand, hand.caller, group, Access::Write))?;
    }
    hand.ground.note_peak();
    Ok(())
}
