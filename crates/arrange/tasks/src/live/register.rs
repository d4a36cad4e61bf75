//! Registering tasks and waiting for them, from the program or from inside of a task.

use core::cell::RefCell;

use isochrone_os::race;

use super::closure;
use super::env::run_task;
use super::mem::Mem;
use super::shared::{Shared, block_on};
use super::table::{Erased, Table};
use super::task::Task;
use crate::arena::ROOT;
use crate::arena::slot::{CHILDREN, TaskRef};
use crate::driver::{Env as _, Stuck, work};
use crate::error::TaskError;
use crate::failure::Failure;
use crate::footprint::{Footprint, Mode};
use crate::kernel::{Kernel, KindOf};
use crate::range::Range;
use crate::scheduler::fate::Fate;
use crate::scheduler::worker::Worker;
use crate::scheduler::{Children, Goal, How, Scheduler, Submitted};
use crate::sync::Ordering;

/// Tasks inside of one another on one worker's stack beyond which it runs nothing but its own: whatever
/// else it ran would only make the stack deeper.
const DEPTH_MAX: u32 = 48;

/// Tasks that are run where there is no room, before one looks again.
const TURN: u64 = 16;

/// How often a task that finds no room for a child looks again. Others give room when they end; where all
/// are deep inside of tasks, none does.
const TRIES_MAX: u32 = 20_000;

/// How likely it is that who waits waits for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doubt {
    Children = 1,
    Range = 2,
    Task = 3,
}

/// Registers a task; runs others first where there is no room, or more are ready than is good.
#[inline]
pub(super) fn register<K: Kernel>(
    shared: &Shared,
    worker: &RefCell<Worker>,
    children: &mut Children,
    kernel: K,
    named: bool,
) -> Result<Task, TaskError> {
    const { KindOf::<K>::FITS };
    let declare = |footprint: &mut Footprint| kernel.declare(footprint);
    // SAFETY: the table is that of the arguments' type.
    unsafe { enter(shared, worker, children, declare, kernel, named, Erased::<K>::TABLE) }
}

/// Registers a closure.
pub(super) fn register_fn<F>(
    shared: &Shared,
    worker: &RefCell<Worker>,
    children: &mut Children,
    declare: impl FnOnce(&mut Footprint),
    run: F,
) -> Result<Task, TaskError>
where
    F: FnOnce(&Mem<'_>) -> Result<(), Failure> + Send + 'static,
{
    if shared.scope == isochrone_os::futex::Scope::Shared {
        return Err(TaskError::Config(
            "a closure cannot be run by another process; write a Kernel".to_owned(),
        ));
    }
    let mut footprint = Footprint::new();
    declare(&mut footprint);
    let declare = |out: &mut Footprint| out.assign(&footprint);
    let boxed = closure::boxed(run);
    // SAFETY: the table is that of the box's type.
    let outcome =
        unsafe { enter(shared, worker, children, declare, boxed, true, closure::table::<F>()) };
    if outcome.is_err() {
        closure::unbox::<F>(boxed);
    }
    outcome
}

/// Registers a task.
///
/// # Safety
/// `table` runs arguments of type `A`.
#[inline]
pub(super) unsafe fn enter<A: Copy + 'static>(
    shared: &Shared,
    worker: &RefCell<Worker>,
    children: &mut Children,
    declare: impl Fn(&mut Footprint),
    arguments: A,
    named: bool,
    table: &'static Table,
) -> Result<Task, TaskError> {
    let scheduler = &shared.scheduler;
    let mut tries = 0;
    loop {
        let mut own = worker.borrow_mut();
        let Some((task, how)) = place(scheduler, &mut own) else {
            // The program lets tasks run until there is room; a task may run its own only, since whatever
            // else it ran might want room as well.
            tries += 1;
            if let Some(lost) = shared.lost() {
                return Err(lost);
            }
            if own.depth > 0 && tries > TRIES_MAX {
                return Err(TaskError::TooDeep);
            }
            let (ancestor, only) = (own.task, own.only);
            if own.depth > 0 {
                scheduler.restrict(&mut own, ancestor, shared);
            }
            scheduler.close_window(&mut own, children, shared);
            drop(own);
            turn(shared, worker);
            worker.borrow_mut().only = only;
            continue;
        };
        let slot = scheduler.arena.slot(task);
        // SAFETY: the slot was free and is this worker's now.
        unsafe { slot.arguments.put(arguments) };
        let age = crate::arena::age(slot.successors.load(Ordering::Relaxed));
        own.footprint.clear();
        declare(&mut own.footprint);
        own.named = named;
        match scheduler.submit(&mut own, children, task, table.kind(), how, shared) {
            Ok(Submitted::Done) => drop(own),
            Ok(Submitted::Short(before)) => {
                scheduler.close_window(&mut own, children, shared);
                drop(own);
                connect(shared, worker, task, before);
            }
            Ok(Submitted::Full) => {
                scheduler.vacate(&mut own, task, slot);
                scheduler.close_window(&mut own, children, shared);
                drop(own);
                turn(shared, worker);
                continue;
            }
            Err(error) => {
                scheduler.vacate(&mut own, task, slot);
                return Err(error);
            }
        }
        if how == How::AtOnce {
            run_at_once(shared, worker, task)?;
        } else {
            relieve(shared, worker);
        }
        return Ok(Task(task, age));
    }
}

/// A slot for a task, and how it comes to run: a task runs its child at once where there is no room for
/// more that wait. So do tasks that run at once themselves: they take from what is spared, and must be
/// over when they return.
#[inline]
fn place(scheduler: &Scheduler, own: &mut Worker) -> Option<(u32, How)> {
    if !own.at_once
        && let Some(task) = scheduler.slot_for(own)
    {
        return Some((task, How::Queued));
    }
    let task = (own.depth > 0).then(|| scheduler.spare_slot(own)).flatten();
    task.map(|task| (task, How::AtOnce))
}

/// Runs some tasks where more are ready than is good.
#[inline]
fn relieve(shared: &Shared, worker: &RefCell<Worker>) {
    let (most, ready) = {
        let own = worker.borrow();
        (shared.scheduler.backlog(&own), shared.scheduler.arena.ready(own.queue).len())
    };
    if ready > most && worker.borrow().depth == 0 {
        help(shared, worker, Goal::Backlog(most / 2));
    }
}

/// Runs a task on top of the one that registers it, when it waits for nothing.
#[cold]
fn run_at_once(shared: &Shared, worker: &RefCell<Worker>, task: u32) -> Result<(), TaskError> {
    wait(shared, worker, Goal::Ready(task), Doubt::Range, "a task's child")?;
    let scheduler = &shared.scheduler;
    scheduler
        .arena
        .slot(task)
        .flags
        .fetch_and(!crate::arena::slot::flag::SENTINEL, Ordering::Relaxed);
    let spawned = if scheduler.is_void(task) {
        scheduler.leave_out(&worker.borrow(), task);
        0
    } else {
        let begun = scheduler.begin(&mut worker.borrow_mut(), task, || shared.now());
        let spawned = run_task(shared, worker, task, How::AtOnce);
        if let Some(begun) = begun {
            begun.end(&scheduler.arena, worker.borrow().seat, shared.now());
        }
        spawned
    };
    scheduler.finish(&mut worker.borrow_mut(), task, spawned, shared);
    Ok(())
}

/// Runs some tasks, or lets others run.
#[cold]
fn turn(shared: &Shared, worker: &RefCell<Worker>) {
    let turns = worker.borrow().turns + TURN;
    help(shared, worker, Goal::Turn(turns));
}

/// Runs tasks until the goal is reached.
#[cold]
fn help(shared: &Shared, worker: &RefCell<Worker>, goal: Goal) {
    let _ = block_on(work(&shared.scheduler, shared, worker, goal));
}

/// Connects a task with those it waits for, when there are edges again.
#[cold]
fn connect(shared: &Shared, worker: &RefCell<Worker>, task: u32, mut before: Vec<TaskRef>) {
    loop {
        turn(shared, worker);
        let mut own = worker.borrow_mut();
        own.before = before;
        match shared.scheduler.connect(&mut own, task, shared) {
            Submitted::Short(rest) => before = rest,
            Submitted::Done | Submitted::Full => return,
        }
    }
}

/// Waits for all children.
pub(super) fn wait_children(
    shared: &Shared,
    worker: &RefCell<Worker>,
    children: &mut Children,
    who: &'static str,
) -> Result<(), TaskError> {
    let scheduler = &shared.scheduler;
    scheduler.close_window(&mut worker.borrow_mut(), children, shared);
    let slot = scheduler.arena.slot(children.parent);
    if children.spawned > 0 {
        slot.waiter.store(worker.borrow().seat + 1, Ordering::SeqCst);
        slot.target.store(CHILDREN - children.spawned, Ordering::SeqCst);
        let goal = Goal::Children(children.parent, children.spawned);
        wait(shared, worker, goal, Doubt::Children, who)?;
        // Whoever told of the last child may see either target, and wakes at most once too often. Whoever tells of a
        // child to come got it from here, so sees both.
        slot.target.store(0, Ordering::Release);
        race::acquire(&slot.children);
        slot.children.store(CHILDREN, Ordering::Release);
        children.spawned = 0;
        if children.parent == ROOT {
            scheduler.is_over();
        }
    }
    report(shared, worker, children, who)
}

/// Waits for those children that a use of `range` must wait for.
pub(super) fn wait_range(
    shared: &Shared,
    worker: &RefCell<Worker>,
    children: &mut Children,
    range: Range,
    mode: Mode,
    who: &'static str,
) -> Result<(), TaskError> {
    let scheduler = &shared.scheduler;
    scheduler.close_window(&mut worker.borrow_mut(), children, shared);
    let mut before = Vec::new();
    children.domain.look(range, mode, &mut before);
    before.retain(|task| scheduler.arena.is_live(*task));
    if !before.is_empty() {
        wait_tasks(shared, worker, before, Doubt::Range, who)?;
    }
    report(shared, worker, children, who)?;
    match scheduler.arena.undone().of(range) {
        Some((undone, kernel)) if !mode.writes() => {
            let name = scheduler.arena.kernel(kernel).map_or("of another run", |kind| kind.name);
            Err(TaskError::Undone { kernel: name.to_owned(), range: undone })
        }
        _ => Ok(()),
    }
}

/// Waits for one task, whoever's child it is.
pub(super) fn wait_task(
    shared: &Shared,
    worker: &RefCell<Worker>,
    task: Task,
    who: &'static str,
) -> Result<(), TaskError> {
    let before = TaskRef { slot: task.0, age: task.1 };
    if (before.slot as usize) < shared.scheduler.arena.slots.len()
        && shared.scheduler.arena.is_live(before)
    {
        wait_tasks(shared, worker, vec![before], Doubt::Task, who)?;
    }
    Ok(())
}

/// Waits until all of some tasks are over.
fn wait_tasks(
    shared: &Shared,
    worker: &RefCell<Worker>,
    before: Vec<TaskRef>,
    doubt: Doubt,
    who: &'static str,
) -> Result<(), TaskError> {
    let scheduler = &shared.scheduler;
    let sentinel = loop {
        let slot = scheduler.spare_slot(&mut worker.borrow_mut());
        match slot {
            Some(slot) => break slot,
            None => turn(shared, worker),
        }
    };
    let submitted = {
        let mut own = worker.borrow_mut();
        own.before = before;
        scheduler.sentinel(&mut own, sentinel, shared)
    };
    if let Submitted::Short(before) = submitted {
        connect(shared, worker, sentinel, before);
    }
    wait(shared, worker, Goal::Ready(sentinel), doubt, who)?;
    race::acquire(&scheduler.arena.slot(sentinel).pending);
    scheduler.retire(&mut worker.borrow_mut(), sentinel);
    Ok(())
}

/// Works until a goal is reached, which may turn out never to be.
fn wait(
    shared: &Shared,
    worker: &RefCell<Worker>,
    goal: Goal,
    doubt: Doubt,
    who: &'static str,
) -> Result<(), TaskError> {
    let (seat, depth, task, only) = {
        let own = worker.borrow();
        (own.seat, own.depth, own.task, own.only)
    };
    let inside = &shared.scheduler.arena.seats[seat as usize].inside;
    let outer = inside.load(Ordering::Relaxed);
    if depth > 0 {
        inside.store(outer.max(doubt as u32), Ordering::SeqCst);
    }
    if depth > DEPTH_MAX || (depth > 0 && shared.scheduler.is_low()) {
        shared.scheduler.restrict(&mut worker.borrow_mut(), task, shared);
    }
    let outcome = block_on(work(&shared.scheduler, shared, worker, goal));
    worker.borrow_mut().only = only;
    inside.store(outer, Ordering::SeqCst);
    outcome.map_err(|Stuck| {
        shared.scheduler.unstick();
        shared.lost().unwrap_or_else(|| TaskError::Deadlock { kernel: who.to_owned() })
    })
}

/// The first failure among the children, once.
pub(super) fn report(
    shared: &Shared,
    worker: &RefCell<Worker>,
    children: &mut Children,
    who: &'static str,
) -> Result<(), TaskError> {
    match shared.scheduler.take_fate(children.parent, children.spawned == 0) {
        Fate::Well => Ok(()),
        Fate::StillCancelled => wait_children(shared, worker, children, who),
        Fate::Cancelled => Err(TaskError::Cancelled),
        Fate::Failed(Some((kernel, text))) => {
            Err(TaskError::Failed { kernel: kernel.to_owned(), text })
        }
        Fate::Failed(None) => Err(TaskError::Failed {
            kernel: "of several".to_owned(),
            text: "others failed at the same time, and the first of them has the words".to_owned(),
        }),
    }
}
