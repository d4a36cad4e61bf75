//! The search for the best tree.
//!
//! A level costs what the recorded graph of the program that is really run says ([`Levels`]). On one class
//! of cores a recurrence is exact ([`Recurrence`]), on two a dynamic programme over class counts
//! ([`best`]); both are held against the enumeration of all rooted trees ([`RootedTrees`]).

mod classes;
mod enumerate;
mod level;
mod recurrence;
mod shape;
#[cfg(test)]
mod tests;

pub use classes::{Best, best};
pub use enumerate::{RootedTrees, parents};
pub use level::{CLASSES, Counts, Level, LevelError, Levels, Priced, Pricing};
pub use recurrence::Recurrence;
pub use shape::Shape;
