//! The coherence protocol for one line, message by message: home-snoop MESIF with a directory in memory,
//! and a switch in each module that holds a second directory, of modules.
//!
//! See `README.md` beside this file for the states, the recipes and the races. [`Line`] holds all agents
//! and every message under way; whoever owns it chooses which message arrives next, so the same code is
//! explored in all orders, driven at random, and timed.

mod agents;
mod cache;
mod explore;
mod home;
mod invariants;
mod line;
mod message;
mod switch;
mod timed;

#[cfg(test)]
mod tests;

pub use agents::State;
pub use explore::{Broken, Explored, Step, explore};
pub use invariants::Violation;
pub(super) use line::Choices;
pub use line::{Access, Line};
pub use message::{Agent, Found, Grant, Message, SnoopKind, Want, Word};
pub use timed::{Leg, Timed};
