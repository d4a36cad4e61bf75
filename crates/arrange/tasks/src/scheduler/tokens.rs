//! Ranges that one task at a time may use, whatever the order: a task takes all tokens it needs before
//! it begins, or none, and waits in the list of one that it could not get.

use isochrone_os::race;

use super::goal::Wake;
use super::state::Scheduler;
use super::worker::Worker;
use crate::arena::Token;
use crate::arena::slot::NONE;
use crate::footprint::Mode;
use crate::sync::Ordering;

impl Scheduler {
    /// The token with this number, which counts from 1.
    pub(crate) fn token(&self, plus_one: u16) -> Option<&Token> {
        usize::from(plus_one).checked_sub(1).and_then(|at| self.arena.tokens.get(at))
    }

    fn tokens_of(&self, task: u32) -> impl Iterator<Item = &Token> {
        let commutative = |mode| mode == Mode::Commutative;
        let accesses = self.arena.accesses(task).filter(move |access| commutative(access.mode));
        accesses.filter_map(|access| self.token(access.token))
    }

    /// Takes every token of a task; false if it must wait, and then it is in a list from which
    /// [`Self::give_tokens`] makes it ready.
    #[cold]
    pub(super) fn take_tokens(&self, task: u32) -> bool {
        'again: loop {
            for (taken, token) in self.tokens_of(task).enumerate() {
                if Self::try_hold(token, task) {
                    continue;
                }
                // Never two locks at once, and nothing held while waiting.
                self.tokens_of(task).take(taken).for_each(|held| Self::leave(held, task));
                let guard = token.lock.hold();
                if token.holder.load(Ordering::Relaxed) == NONE {
                    continue 'again;
                }
                // Under the lock: who gives the token back finds the task here.
                self.append(token, task);
                drop(guard);
                return false;
            }
            return true;
        }
    }

    fn try_hold(token: &Token, task: u32) -> bool {
        let _guard = token.lock.hold();
        let holder = token.holder.load(Ordering::Relaxed);
        if holder == NONE {
            token.holder.store(task, Ordering::Relaxed);
        }
        holder == NONE || holder == task
    }

    /// Gives a token up that was taken in vain. Who waits for it meanwhile is made ready when the task
    /// that waits now has run; to wait there is right, since it will take the token again.
    fn leave(token: &Token, task: u32) {
        let _guard = token.lock.hold();
        if token.holder.load(Ordering::Relaxed) == task {
            token.holder.store(NONE, Ordering::Relaxed);
        }
    }

    fn append(&self, token: &Token, task: u32) {
        self.arena.slot(task).next.store(NONE, Ordering::Relaxed);
        let last = token.last.load(Ordering::Relaxed);
        if last == NONE {
            token.first.store(task, Ordering::Relaxed);
        } else {
            self.arena.slot(last).next.store(task, Ordering::Relaxed);
        }
        token.last.store(task, Ordering::Relaxed);
    }

    /// Gives the tokens of a task back, and makes one that waits for each ready.
    #[cold]
    pub(super) fn give_tokens(&self, worker: &mut Worker, task: u32, wake: &impl Wake) {
        for token in self.tokens_of(task) {
            let guard = token.lock.hold();
            if token.holder.load(Ordering::Relaxed) != task {
                continue;
            }
            token.holder.store(NONE, Ordering::Relaxed);
            let first = token.first.load(Ordering::Relaxed);
            if first != NONE {
                let next = self.arena.slot(first).next.load(Ordering::Relaxed);
                token.first.store(next, Ordering::Relaxed);
                if next == NONE {
                    token.last.store(NONE, Ordering::Relaxed);
                }
            }
            drop(guard);
            if first != NONE {
                self.make_ready(worker, first, false, wake);
            }
        }
    }

    /// Holds the lock of a reducing range while values are combined into it.
    pub(crate) fn with_token<R>(&self, plus_one: u16, combine: impl FnOnce() -> R) -> R {
        let token = self.token(plus_one);
        let _guard = token.map(|token| token.lock.hold());
        token.inspect(|token| race::acquire(*token));
        let result = combine();
        token.inspect(|token| race::release(*token));
        result
    }
}
