//! Line transfers between every pair of cores, by coherence state and by compare-and-swap.
//!
//! [`plan`] says who exchanges which lines in which round, [`run`](mod@run) runs that on a
//! [`Stage`], and a stage is either [`live`] threads or a model. How a cell comes about is told
//! in [`series`]; whether parallel rounds may stand for serial ones is tried in [`agreement`], and whether they
//! save any time in `crowd`. Where time does not hold everything, [`effort`] says how much is measured of a pair,
//! [`sample`] which pairs come first, and [`strata`] what they say of the others.

pub mod agreement;
mod crowd;
pub mod effort;
pub mod lanes;
pub mod live;
mod meeting;
pub mod model;
pub mod plan;
mod player;
pub mod run;
mod runner;
pub mod sample;
pub mod scene;
pub mod series;
pub mod strata;
pub mod tournament;
pub mod watch;

#[cfg(test)]
mod tests;

pub use agreement::Agreement;
pub use live::LiveStage;
pub use model::ModelStage;
pub use plan::{CAS_TRIPS, Exchange, Kind, Options, PlanError, Schedule, TransferPlan, budget_s};
pub use run::{TransferReport, run};
pub use scene::{Act, Operation, Part, Samples, Scene, Stage};
pub use series::PairSeries;
