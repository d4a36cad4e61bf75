//! Transfers of many lines and of contended ones: equation (1) and the interactions of section 2
//! of the CLa paper.
//!
//! [`plan`] says what each core does, [`run`](mod@run) plays it on a stage of
//! [`transfer`](crate::transfer) and fits. Needs no stage of its own.

pub mod plan;
pub mod run;

pub use plan::{Item, Measure, MultilineOptions, MultilinePlan};
pub use run::{MultilineReport, run};
