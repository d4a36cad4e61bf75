//! Distances: the door between measuring and using. Arrangers (collectives, tasks, tier, pinning) ask
//! here what lines, regions and far memories cost, which cores are equally far, and in which order to
//! fill cores. They know neither experiments nor file formats.
//!
//! The answers come from an atlas ([`isochrone_atlas::Atlas`]) or from a machine that is described by
//! text ([`Described`]). What is not known is `None`: an arranger then goes by its rule without
//! distances, and says so. Near lines and the base that a core sees now need timing and stay with
//! decoding. Nothing here allocates, times, or reads a file.
//!
//! ```
//! use isochrone_distance::{Distances, Unknown, Fill, order};
//! use isochrone_units::CoreId;
//!
//! // A machine of which nothing is known: the order is that of the numbers.
//! let mut cores = [CoreId(2), CoreId(0), CoreId(1)];
//! assert!(Unknown.line_costs(CoreId(0), CoreId(1)).is_none());
//! order(&Unknown, Fill::Compact, &mut cores);
//! assert_eq!(cores, [CoreId(0), CoreId(1), CoreId(2)]);
//! ```

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod costs;
mod described;
mod groups;
mod measured;
mod order;
mod suits;

pub use costs::{
    Cost, Distances, Experiment, FarCosts, FarKind, Grade, LineCosts, RegionCosts, Term, Unknown,
};
pub use described::{CostNames, Described, OTHER_PACKAGE, SAME_PACKAGE};
pub use groups::{common_level, groups};
pub use order::{Fill, order};
pub use suits::{Memory, Pages, Step, bandwidth_of, latency_of, memory, steps, steps_with_turns};
