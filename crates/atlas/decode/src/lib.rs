//! One decoder of pages: the codes of many pages, each from a few timed loads of its lines.
//!
//! One engine serves the map of a machine and a live allocator. It keeps its state between calls,
//! so that it can be put aside at any look at the clock; it works in tables that the caller gives
//! ([`Tables`]); and it asks the caller for pages, bases, chance and time ([`Pages`], [`Loads`]).
//! Nothing here allocates, reads a clock, knows an operating system, or panics on any input.
//!
//! The way of a page: it is opened, some lines of it are timed in every [`Engine::advance`]d round
//! together with lines of other pages ([`batch`](Loads)), what loads have in common is taken off
//! by pages whose codes are known (`offset`), what is left is weighed ([`rows`]), the next lines are
//! chosen for the page or as they come ([`Choice`]), and it leaves with a verdict ([`Decided`]).

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod batch;
mod choose;
mod engine;
mod loads;
mod number;
mod offset;
mod pages;
mod patterns;
pub mod rows;
mod tables;
mod walsh;

pub use batch::{Batch, Progress};
pub use choose::{Choice, SAFE_ERROR};
pub use engine::{Engine, Step};
pub use loads::Loads;
pub use offset::{Known, Trust, Window, keep_window};
pub use pages::{Decided, Pages, Reference};
pub use patterns::Patterns;
pub use rows::{CLOSE, Rows, Units, Verdict, arrangements};
pub use tables::{Form, Layout, Open, Pace, Room, Slot, Tables};
pub use walsh::transform;
