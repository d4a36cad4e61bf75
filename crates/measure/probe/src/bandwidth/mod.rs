//! Bandwidth of groups of cores to memory regions, by the triad.
//!
//! [`plan`] says which groups, [`run`](mod@run) runs them on a [`TriadTarget`]: [`live`] threads
//! or a [`model`]. What a run's pieces say is told in [`track`].

mod interval;
pub mod live;
pub mod model;
pub mod plan;
pub mod run;
pub mod track;

pub use live::LiveTriad;
pub use model::ModelTriad;
pub use plan::{ArraySizes, BandwidthOptions, BandwidthPlan, budget_s, first_rounds_s};
pub use run::{BandwidthReport, TriadTarget, run};
pub use track::{Piece, Track};
