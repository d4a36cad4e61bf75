//! One thread that drives all workers and movers of a run.

use core::sync::atomic::AtomicU32;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::actor::Thread;
use super::case::{Case, Outcome};
use super::program::sweep_all;
use super::world::World;
use crate::names::{Actor, Space};
use crate::pager::{Mover, Pager};
use crate::pages::{Event, Trouble};

/// Why a run has no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stuck {
    /// Nobody will ever go on: a defect of the drivers.
    #[error("everybody sleeps: this is a defect of the pager")]
    Asleep,
    /// A page could not be had.
    #[error(transparent)]
    Trouble(#[from] Trouble),
}

type Life<'t> = Pin<Box<dyn Future<Output = ()> + 't>>;

/// Runs a case.
///
/// # Errors
/// [`Stuck`] if it has no end.
pub fn run(case: &Case) -> Result<Outcome, Stuck> {
    let shape = case.shape();
    let words: Vec<AtomicU32> = (0..shape.words()).map(|_| AtomicU32::new(0)).collect();
    let pager = Pager::new(&words, shape, case.plan);
    pager.format();
    let world = RefCell::new(World::new(case));
    let (left, trouble) = (Cell::new(case.workers), Cell::new(None));
    let threads: Vec<Thread<'_>> =
        (0..case.places.len()).map(|number| Thread::new(&world, case, number)).collect();
    let (workers, movers) = threads.split_at(usize::from(case.workers));
    let mut lives: Vec<Life<'_>> = Vec::new();
    for thread in workers {
        let (pager, left, trouble) = (&pager, &left, &trouble);
        lives.push(Box::pin(async move {
            if let Err(error) = sweep_all(thread, pager).await {
                trouble.set(Some(error));
            }
            left.set(left.get() - 1);
        }));
    }
    for (number, thread) in (case.workers..).zip(movers) {
        let mut mover = Mover::new(Actor(number), case.habit, &pager);
        let (pager, separated) = (&pager, case.separated);
        let space_of =
            move |worker| Space(if separated { u16::try_from(worker).unwrap_or(0) } else { 0 });
        lives.push(Box::pin(async move { mover.run(pager, thread, thread, space_of).await }));
    }
    drive(&world, &mut lives, &left)?;
    drop(lives);
    match trouble.take() {
        Some(trouble) => Err(trouble.into()),
        None => Ok(account(case, &world.borrow())),
    }
}

/// Lets everybody go on whose time has come, until no worker is left.
fn drive(world: &RefCell<World>, lives: &mut [Life<'_>], left: &Cell<u16>) -> Result<(), Stuck> {
    let mut context = Context::from_waker(Waker::noop());
    let mut ended: Vec<bool> = Vec::new();
    for life in lives.iter_mut() {
        ended.push(life.as_mut().poll(&mut context).is_ready());
    }
    while left.get() > 0 {
        let next = world.borrow_mut().next();
        let thread = next.ok_or(Stuck::Asleep)?;
        if !ended[thread] && lives[thread].as_mut().poll(&mut context) == Poll::Ready(()) {
            ended[thread] = true;
        }
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss, reason = "counts of a run are far below 2^53")]
const fn real(count: u64) -> f64 {
    count as f64
}

fn account(case: &Case, world: &World) -> Outcome {
    let (cycles, busy, interrupts) = world.since();
    let sweeps = f64::from(case.sweeps);
    let events = |event: Event| real(world.account.events[event.index()]);
    let of_a_worker = |event| events(event) / sweeps / f64::from(case.workers);
    let missing = events(Event::Missing);
    let each = |part: f64| if missing > 0.0 { part / missing } else { 0.0 };
    let engines = f64::from(case.spec.all_engines().max(1));
    let evicted = events(Event::Evicted);
    Outcome {
        sweep: cycles / sweeps,
        faults: of_a_worker(Event::Missing),
        minor: of_a_worker(Event::Minor),
        late: of_a_worker(Event::Late),
        prefetched: (events(Event::Prefetched) + events(Event::Marked)) / sweeps,
        parts: world.account.parts.map(each),
        engines_busy: busy / engines / cycles,
        interrupts: if evicted > 0.0 { real(interrupts) / evicted } else { 0.0 },
        stale: world.tables.stale(),
    }
}
