//! One play: actors over a model machine, a scheduler that draws who is next, and the final account.

use core::sync::atomic::AtomicU32;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::model::{Machine, move_pages, step};
use crate::directory::State;
use crate::names::{Access, Actor, Group, Space};
use crate::pager::{Caller, Habit, Mover, Outcome, Pager, Plan, Shape};
use crate::pages::{Event, Trouble};

/// Steps of the scheduler after which nobody can be on the way any more.
const PATIENCE: u64 = 2_000_000;

#[derive(Clone, Debug)]
pub(super) struct Play {
    pub(super) shape: Shape,
    pub(super) plan: Plan,
    pub(super) habit: Habit,
    pub(super) movers: u16,
    /// Accesses of each worker.
    pub(super) steps: u32,
    /// One in this many operations of the far tier fails; 0 for none.
    pub(super) failures: u32,
    /// Actors killed.
    pub(super) kills: u32,
    pub(super) seed: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Report {
    /// What must not be.
    pub(super) wrong: Vec<String>,
    /// Accesses that were told of an error.
    pub(super) failed: u32,
    /// Frames that nobody has in the end.
    pub(super) frames_lost: i64,
    pub(super) events: BTreeMap<Event, u64>,
    /// Groups that were read while something else left.
    pub(super) read_ahead: u64,
}

/// What workers know of what they did.
#[derive(Default)]
struct Account {
    written: BTreeMap<Group, u64>,
    failed: u32,
    wrong: Vec<String>,
}

type Task<'t> = (Actor, Pin<Box<dyn Future<Output = ()> + 't>>);

impl Play {
    fn caller(&self, worker: u16) -> Caller {
        let space = Space(worker % self.shape.spaces);
        Caller { actor: Actor(worker), space, worker: u32::from(worker) }
    }

    fn words(&self) -> Vec<AtomicU32> {
        (0..self.shape.words()).map(|_| AtomicU32::new(0)).collect()
    }

    pub(super) fn run(&self) -> Report {
        let words = self.words();
        let pager = Pager::new(&words, self.shape, self.plan);
        pager.format();
        let patience = if self.kills > 0 { 400 } else { u64::MAX };
        let machine = Machine::new(self.seed, self.failures, patience);
        let account = RefCell::new(Account::default());
        let mut tasks: Vec<Task<'_>> = Vec::new();
        for worker in 0..self.shape.workers {
            tasks.push((Actor(worker), Box::pin(self.work(worker, &pager, &machine, &account))));
        }
        for mover in 0..self.movers {
            let actor = Actor(self.shape.workers + mover);
            let mover = Mover::new(actor, self.habit, &pager);
            tasks.push((actor, Box::pin(move_pages(mover, &pager, &machine, self.shape.spaces))));
        }
        self.schedule(&mut tasks, &machine, &account, &pager);
        drop(tasks);
        self.settle(&pager, &machine, account.into_inner())
    }

    /// A worker's program: increments and looks, each page a counter that never falls.
    async fn work(
        &self,
        worker: u16,
        pager: &Pager<'_>,
        machine: &Machine,
        account: &RefCell<Account>,
    ) {
        let caller = self.caller(worker);
        let mut seen: BTreeMap<Group, u64> = BTreeMap::new();
        for number in 0..self.steps {
            let sequential = machine.random().is_multiple_of(2);
            let any = u32::try_from(machine.random() % u64::from(self.shape.groups)).unwrap_or(0);
            let group = Group(if sequential { number % self.shape.groups } else { any });
            let access =
                if machine.random().is_multiple_of(3) { Access::Read } else { Access::Write };
            step().await;
            loop {
                if let Some(value) = machine.access(caller.space, group, access) {
                    let mut account = account.borrow_mut();
                    if seen.insert(group, value).is_some_and(|before| before > value) {
                        account.wrong.push(format!("{group} fell to {value}"));
                    }
                    if access == Access::Write {
                        *account.written.entry(group).or_default() += 1;
                    }
                    break;
                }
                if pager.fault(&machine, caller, group, access).await.is_err() {
                    account.borrow_mut().failed += 1;
                    break;
                }
                step().await;
            }
        }
    }

    fn schedule(
        &self,
        tasks: &mut Vec<Task<'_>>,
        machine: &Machine,
        account: &RefCell<Account>,
        pager: &Pager<'_>,
    ) {
        let mut context = Context::from_waker(Waker::noop());
        let mut kills = self.kills;
        let (mut idle, mut progress) = (0_u64, 0);
        while !tasks.is_empty() {
            machine.over.set(tasks.iter().all(|(actor, _)| actor.0 >= self.shape.workers));
            if kills > 0 && tasks.len() > 1 && machine.random().is_multiple_of(400) {
                kills -= 1;
                self.kill(tasks, machine, pager);
                continue;
            }
            let count = u64::try_from(tasks.len()).unwrap_or(1);
            let next = usize::try_from(machine.random() % count).unwrap_or(0);
            if tasks[next].1.as_mut().poll(&mut context).is_ready() {
                drop(tasks.swap_remove(next));
            }
            idle = if machine.progress.get() == progress { idle + 1 } else { 0 };
            progress = machine.progress.get();
            if idle > PATIENCE {
                account.borrow_mut().wrong.push("everybody sleeps".to_owned());
                return;
            }
        }
    }

    /// Kills one actor where it stands. With one table for all, a process that dies takes all workers
    /// along: then only movers are killed.
    fn kill(&self, tasks: &mut Vec<Task<'_>>, machine: &Machine, _: &Pager<'_>) {
        let separated = self.shape.spaces == self.shape.workers;
        let workers = tasks.iter().filter(|(actor, _)| actor.0 < self.shape.workers).count();
        let may_die = |actor: Actor| actor.0 >= self.shape.workers || (separated && workers > 1);
        let victims: Vec<usize> =
            (0..tasks.len()).filter(|place| may_die(tasks[*place].0)).collect();
        if victims.is_empty() {
            return;
        }
        let count = u64::try_from(victims.len()).unwrap_or(1);
        let victim = victims[usize::try_from(machine.random() % count).unwrap_or(0)];
        let (actor, task) = tasks.swap_remove(victim);
        drop(task);
        machine.dead.borrow_mut().push(actor);
        if actor.0 < self.shape.workers {
            machine.bury(self.caller(actor.0).space);
        }
    }

    /// Reads every page once more, and counts frames.
    fn settle(&self, pager: &Pager<'_>, machine: &Machine, account: Account) -> Report {
        let mut wrong = account.wrong;
        let directory = pager.directory();
        for group in (0..self.shape.groups).map(Group) {
            let cached = machine.cache.borrow().get(&group).copied();
            let far = machine.far.borrow().get(&group).copied();
            let word = directory.look(group);
            let state = word.state();
            if state == State::Absent && cached.is_some() && self.kills == 0 {
                wrong.push(format!("{group} is absent but in memory"));
            }
            if state == State::Resident && cached.is_none() {
                wrong.push(format!("{group} is resident but gone"));
            }
            if word.flags().clean && cached.is_some() && cached != far.or(Some(0)) {
                wrong.push(format!("{group} is clean but differs from its copy"));
            }
            let value = cached.or(far.filter(|_| word.flags().stored)).unwrap_or(0);
            let written = account.written.get(&group).copied().unwrap_or(0);
            if value != written {
                wrong.push(format!("{group} holds {value} and not {written} ({word:?})"));
            }
        }
        let used = machine.cache.borrow().len();
        if used > self.shape.frames as usize && self.kills == 0 {
            wrong.push(format!("{used} groups in memory"));
        }
        let known = i64::from(pager.free()) + i64::try_from(used).unwrap_or(0);
        Report {
            wrong,
            failed: account.failed,
            frames_lost: i64::from(self.shape.frames) - known,
            events: machine.events.take(),
            read_ahead: machine.ahead_used.get(),
        }
    }

    /// Everything in memory is being evicted by somebody who does not move on: who asks for a frame waits,
    /// until that one goes on, or until it is known to be dead.
    pub(super) fn waits_for_who_is_stopped(&self, dies: bool) -> bool {
        let words = self.words();
        let pager = Pager::new(&words, self.shape, self.plan);
        pager.format();
        let machine = Machine::new(1, 0, 3);
        let mut context = Context::from_waker(Waker::noop());
        let directory = pager.directory();
        let frames = || (0..self.shape.frames).map(Group);
        type Fault<'f> = Pin<Box<dyn Future<Output = Result<Outcome, Trouble>> + 'f>>;
        let fault = |group| -> Fault<'_> {
            let (pager, machine, caller) = (&pager, &machine, self.caller(0));
            Box::pin(async move { pager.fault(&machine, caller, group, Access::Write).await })
        };
        let ends = |task: &mut Fault<'_>, context: &mut Context<'_>, polls: u32| {
            (0..polls).find_map(|_| match task.as_mut().poll(context) {
                Poll::Ready(result) => Some(result),
                Poll::Pending => None,
            })
        };
        for group in frames() {
            assert!(ends(&mut fault(group), &mut context, 1000).is_some_and(|r| r.is_ok()));
            let seen = directory.look(group);
            directory.claim(group, seen, State::Evicting, Actor(1)).expect("nobody else is there");
        }
        let mut waiting = fault(Group(self.shape.frames));
        if ends(&mut waiting, &mut context, 100_000).is_some() {
            return false;
        }
        if dies {
            machine.dead.borrow_mut().push(Actor(1));
        } else {
            for group in frames() {
                pager.rest(&&machine, group, State::Resident, directory.look(group).flags());
            }
        }
        ends(&mut waiting, &mut context, 100_000).is_some_and(|result| result.is_ok())
    }

    /// Pins every frame and asks for one more.
    pub(super) fn pinned_is_an_error(&self) -> bool {
        let words = self.words();
        let pager = Pager::new(&words, self.shape, self.plan);
        pager.format();
        let machine = Machine::new(1, 0, 3);
        let mut context = Context::from_waker(Waker::noop());
        let mut fault = |group| {
            let mut task = Box::pin(async {
                pager.fault(&&machine, self.caller(0), group, Access::Write).await
            });
            loop {
                if let Poll::Ready(result) = task.as_mut().poll(&mut context) {
                    return result;
                }
            }
        };
        for group in (0..self.shape.frames).map(Group) {
            assert!(fault(group).is_ok());
            pager.directory().pin(group);
        }
        let era = pager.directory().era(Group(0));
        let last = Group(self.shape.frames);
        let refused = fault(last) == Err(crate::pages::Trouble::Pinned);
        refused
            && pager.directory().unpin(Group(0), era)
            && fault(last).is_ok()
            && pager.directory().look(Group(0)).state() == State::Absent
    }
}
