//! Cache coherence line by line, message by message, in virtual time.
//!
//! [`Engine`] runs a [`Program`], one list of steps for each core, on cores whose lines cost what a
//! [`LineCosts`](isochrone_machine::LineCosts) table says. Every access goes through the protocol
//! ([`Protocol`], [`Lookup`]): a request to the line's home, snoops, answers, data. A core that polls a
//! line sleeps until its copy is taken away, as a spinning core's loop does, and then fetches it again.
//!
//! Three layers:
//!
//! * the protocol of one line, without time: `message`, `copies` (the cores' side), `home` (the other),
//!   `line` (both);
//! * all lines and cores, without time: `program`, `world`;
//! * time: `legs` (what each message takes), `links` (lines that go one by one), `engine`.
//!
//! The tests take the first two through every order of events that there is.
//!
//! What is left out: capacity (nothing is evicted unless a step says so), stores that retire before the
//! line has come, and the second thread of a core.

mod copies;
mod engine;
mod home;
mod legs;
mod line;
mod links;
mod message;
mod program;
mod queue;
mod rules;
mod traffic;
mod world;

#[cfg(test)]
mod tests;

pub use engine::{Engine, Jitter, Run, Stuck};
pub use message::Change;
pub use program::{Program, Step, Touch, Touches, Until};
pub use rules::{Lookup, Protocol};
pub use traffic::Traffic;
