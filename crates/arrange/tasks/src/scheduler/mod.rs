//! Decides which worker runs which task and when. A passive object: it never blocks, reads no clock and
//! knows no thread. A driver registers tasks with [`Scheduler::submit`], asks [`Scheduler::next`] what a
//! worker shall do, and says with [`Scheduler::finish`] that it is done; live and simulated drivers call
//! the same object.

mod children;
pub(crate) mod counts;
pub(crate) mod crowd;
pub(crate) mod fate;
mod finish;
pub(crate) mod followed;
mod following;
mod goal;
mod held_back;
mod nest;
mod next;
mod outbox;
mod rank;
pub(crate) mod rest;
mod state;
mod submit;
mod tokens;
mod traced;
mod window;
pub(crate) mod worker;

pub(crate) use children::Children;
pub(crate) use goal::{Goal, Next, Wake};
pub(crate) use state::Scheduler;
pub(crate) use submit::{How, Submitted, refused};
