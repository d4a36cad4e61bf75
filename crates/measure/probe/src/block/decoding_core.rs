//! Who decodes, and what the memory pass needs to know of them and of the form. Pure data.

use isochrone_atlas::Penalties;
use isochrone_units::{CoreId, Level};

use super::base::References;
use super::learn::Learnt;

/// A core that takes part in decoding, and its current base.
#[derive(Clone, Debug)]
pub struct DecodingCore {
    /// The core that asks.
    pub core: CoreId,
    /// `[class][canonical index]`, cycles.
    pub patterns: Vec<Vec<f64>>,
}

/// What the memory pass needs to know.
#[derive(Debug)]
pub struct DecodePlan<'a> {
    /// Who asks; rounds go to them in turn.
    pub decoding_cores: &'a [DecodingCore],
    /// All who decode some of the pages: a class that one of them can tell is one.
    pub tellers: &'a [DecodingCore],
    /// Which part of the references is timed: this one of so many, where others decode at the same time.
    pub part: (usize, usize),
    /// Current bases of the other cores: they will use the codes.
    pub others: &'a [Vec<Vec<f64>>],
    /// Where lines are put.
    pub level: Level,
    /// The form.
    pub learnt: &'a Learnt,
    /// Probe lines, best first.
    pub lines: &'a [u8],
    /// Noise of one timed load, cycles.
    pub noise: f64,
    /// What residuals cost.
    pub penalties: &'a Penalties,
    /// Pages with known codes.
    pub references: &'a References,
    /// Seed of the orders.
    pub seed: u64,
    /// Pages in the window.
    pub window: usize,
}
