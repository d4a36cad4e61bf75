//! Line transfers between every pair of cores, by coherence state and by compare-and-swap.
//!
//! [`plan`] says who exchanges which lines in which round, [`run`](mod@run) runs that on a
//! [`Stage`], and a stage is either [`live`] threads or a model. How a cell comes about is told
//! in [`series`]; whether parallel rounds may stand for serial ones is tried in [`agreement`].

pub mod agreement;
pub mod live;
mod meeting;
pub mod model;
pub mod plan;
pub mod run;
pub mod scene;
pub mod series;
pub mod tournament;
pub mod watch;

#[cfg(test)]
mod tests;

pub use agreement::Agreement;
pub use live::LiveStage;
pub use model::ModelStage;
pub use plan::{CAS_TRIPS, Exchange, Kind, Options, PlanError, Schedule, TransferPlan};
pub use run::{TransferReport, run};
pub use scene::{Act, Operation, Part, Samples, Scene, Stage};
pub use series::PairSeries;
