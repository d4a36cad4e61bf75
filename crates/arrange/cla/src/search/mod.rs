//! The search for the best tree.
//!
//! A level costs what the recorded graph of the program that is really run says ([`Levels`]). On one class
//! of cores a recurrence is exact ([`Recurrence`]), on two a dynamic programme over class counts
//! ([`best`]), on more clusters the same among the trees that enter each once
//! ([`best_entering_once`]), and where costs have no such form [`improved`] goes on from there; they are held
//! against the enumeration of all rooted trees ([`RootedTrees`]).

mod choose;
mod classes;
mod clusters;
mod corners;
mod enumerate;
mod level;
mod local;
mod recurrence;
mod shape;
#[cfg(test)]
mod tests;

pub use choose::{Candidate, Choice, ChooseError, Objective, Question, State};
pub use classes::{Best, best, best_entering_once, lower_bound_ns};
pub use clusters::{clusters, transfer_costs};
pub use enumerate::{RootedTrees, parents};
pub use level::{CLASSES, Counts, Level, LevelError, Levels, Priced, Pricing};
pub use local::improved;
pub use recurrence::Recurrence;
pub use shape::Shape;
