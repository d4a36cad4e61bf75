//! Who may use a run: the thread that started it, outside of its own calls, in the process in which it did. Others are
//! told, since what they would do to the run is undefined.

use crate::status::{Failure, Status};
use isochrone_os::process::{count_forks, forks};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    /// Functions of tasks inside of which this thread is. Its address is the thread's name as well.
    static INSIDE: Cell<u32> = const { Cell::new(0) };
}

/// The thread that started a run.
#[derive(Debug)]
pub(super) struct User {
    thread: usize,
    forks: u32,
    /// It is inside of a call now.
    busy: AtomicBool,
}

/// A call on a run, as long as it lasts.
#[derive(Debug)]
pub(super) struct Call<'a>(&'a User);

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.busy.store(false, Ordering::Relaxed);
    }
}

impl User {
    /// This thread.
    pub(super) fn new() -> Result<Self, Failure> {
        let forks = count_forks()
            .map_err(|error| Failure { status: Status::Memory, words: error.to_string() })?;
        Ok(Self { thread: this_thread(), forks, busy: AtomicBool::new(false) })
    }

    /// Whether this is the process that started the run.
    pub(super) fn is_here(&self) -> Result<(), Failure> {
        if self.forks == forks() {
            return Ok(());
        }
        Err(Failure {
            status: Status::Gone,
            words: "this process was forked from the one that started the run, and has no worker of it: start one here"
                .to_owned(),
        })
    }

    /// The thread begins a call.
    #[inline]
    pub(super) fn call(&self) -> Result<Call<'_>, Failure> {
        self.is_here()?;
        if self.thread != this_thread() {
            return Err(Failure::state(
                "a run is used by the thread that started it alone; functions of its tasks use isochrone_task_submit \
                 and isochrone_task_wait",
            ));
        }
        self.begin()
    }

    /// Some thread begins the last call: the one that started the run may have ended.
    pub(super) fn last_call(&self) -> Result<Call<'_>, Failure> {
        self.is_here()?;
        if self.thread != this_thread() && INSIDE.get() > 0 {
            return Err(Failure::state("the function of a task ends no run but its own"));
        }
        self.begin()
    }

    fn begin(&self) -> Result<Call<'_>, Failure> {
        if self.busy.load(Ordering::Relaxed) {
            return Err(Failure::state(
                "the run is inside of another call now: functions of its tasks use isochrone_task_submit and \
                 isochrone_task_wait",
            ));
        }
        self.busy.store(true, Ordering::Relaxed);
        Ok(Call(self))
    }
}

/// Another number for each thread that lives.
#[inline]
fn this_thread() -> usize {
    INSIDE.with(|inside| ptr::from_ref(inside).addr())
}

/// This thread is inside of the function of a task while this lives: which does not leave the thread.
#[derive(Debug)]
pub(super) struct Inside(*const Cell<u32>);

impl Inside {
    #[inline]
    pub(super) fn begin() -> Self {
        INSIDE.with(|inside| {
            inside.set(inside.get() + 1);
            Self(ptr::from_ref(inside))
        })
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: it is this thread's, which has not ended; nothing is to be done where the thread ends, so it stays.
        let inside = unsafe { &*self.0 };
        inside.set(inside.get() - 1);
    }
}
