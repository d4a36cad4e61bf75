//! What a run was, as it is written and told.

use isochrone_console::run::record::ProcessRecord;
use isochrone_console::run::setup;
use serde::Serialize;

use super::compare::Comparison;
use super::judge::Judgement;

/// What a run was and what its processes left.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RunRecord {
    pub(super) command: Vec<String>,
    pub(super) code: u8,
    pub(super) mode: &'static str,
    pub(super) near: String,
    pub(super) pin: &'static str,
    /// What the order of cores to which threads were bound goes by; nothing where they were not.
    pub(super) pinned_by: Option<setup::By>,
    /// What the atlas promised; nothing where that was not asked (`--force`, `--aside`).
    pub(super) judgement: Option<Judgement>,
    /// Why the program was run without the library, if it was.
    pub(super) nothing_placed: Option<String>,
    /// What is to be said of the allocator that the program brings, if it shows one.
    pub(super) own_allocator: Option<&'static str>,
    /// From the program's start to its end; nothing where it was run more than once.
    pub(super) seconds: Option<f64>,
    /// Objects that all processes asked `malloc` and its like for, in each of these seconds. Nothing where there was no
    /// library to count them, and where a process left everything to the next allocator for good: what it asks for
    /// then is not counted.
    pub(super) malloc_calls_per_s: Option<f64>,
    pub(super) processes: Vec<ProcessRecord>,
    pub(super) compare: Option<Comparison>,
}
