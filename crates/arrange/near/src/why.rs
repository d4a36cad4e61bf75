//! Why a placement places nothing, one line each.

use isochrone_malloc::{InstanceError, Over};

/// Why nothing is placed; all memory is the ordinary allocator's then.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WhyNot {
    /// There is no atlas at any of the places.
    #[error("nothing is placed: no atlas of this machine: run `isochrone map`")]
    NoAtlas,
    /// The atlas that was named, or the last of those that were there, cannot be used: in words.
    #[error("nothing is placed: {0}")]
    Atlas(String),
    /// The atlas knows none of the cores.
    #[error(
        "nothing is placed: the atlas knows none of the cores: measure them with `isochrone map`"
    )]
    NoCore,
    /// The model predicts that near lines gain nothing here.
    #[error("nothing is placed: the atlas predicts a gain of {0:.2}")]
    NoGain(f32),
    /// The atlas's distances of lines are graded unusable.
    #[error(
        "nothing is placed: how far lines are is graded unusable in this atlas: measure again with `isochrone map`"
    )]
    Unusable,
    /// The system or the atlas does not allow it.
    #[error("nothing is placed: {0}")]
    Refused(InstanceError),
    /// No base of the atlas was recognised in what the cores see: their host has moved them.
    #[error(
        "nothing is placed any more: no base of the atlas is recognised: measure anew with `isochrone map`"
    )]
    UnknownBase,
    /// This is a child of `fork`, and its parent opened the placement.
    #[error("nothing is placed any more: this is a child of fork: open another placement")]
    Forked,
}

impl From<Over> for WhyNot {
    fn from(over: Over) -> Self {
        match over {
            Over::UnknownBase => Self::UnknownBase,
            Over::Forked => Self::Forked,
        }
    }
}
