//! What the model of the CLa paper leaves out: each cost as the difference between two scenes on the same
//! lines, one with what the term is about and one without.
//!
//! [`plan`] says what each core does in both, [`run`](mod@run) plays them on a stage of
//! [`transfer`](crate::transfer). Needs no stage of its own, and never says what a model does with a term.

pub mod plan;
pub mod run;

pub use plan::{Remote, Term, TermsOptions, TermsPlan};
pub use run::{TermsReport, run};
