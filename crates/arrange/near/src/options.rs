//! What a placement is asked for.

use std::time::Duration;

use isochrone_places::Places;
use isochrone_units::CoreId;

/// By which level's latencies lines are ranked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mix {
    /// By both, as accesses reach them when what is live is used evenly: the last-level cache as far as it goes.
    #[default]
    ByUse,
    /// By the last-level cache alone: for objects that are used so often that they stay there, among others that do
    /// not.
    Cache,
    /// By memory alone: for objects that are seldom found in any cache.
    Memory,
}

/// Which lines are near for a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lists {
    /// The nearest ones, at least [`Options::near`] of all.
    #[default]
    Nearest,
    /// Those that are nearer to it than to any other core on which the program was seen
    /// ([`isochrone_alloc::Mode::NearestParticipant`]): for programs that use most cores.
    NearestParticipant,
}

/// What a placement is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Where the atlas may lie; nowhere by default, and then nothing is placed.
    pub places: Places,
    /// The cores that will use the memory; none for all cores of the atlas that this thread may run on.
    pub cores: Vec<CoreId>,
    /// The share of lines that counts as near for a core, above 0 and at most 1.
    pub near: f32,
    /// Memory that nearness may cost beyond what is live, as a share of that.
    pub waste: f32,
    /// By which level lines are ranked.
    pub mix: Mix,
    /// Which lines are near for a core.
    pub lists: Lists,
    /// The most memory to place in, bytes; `None` for a quarter of what there is.
    pub bytes_max: Option<u64>,
    /// Memory that is learnt before anything is handed out, bytes of objects; see [`crate::Placement::prepare`].
    pub prepare_bytes: usize,
    /// The time that this may take.
    pub prepare_within: Option<Duration>,
    /// Places although the atlas predicts no gain.
    pub force: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            places: Places::default(),
            cores: Vec::new(),
            near: 0.25,
            waste: 0.25,
            mix: Mix::ByUse,
            lists: Lists::Nearest,
            bytes_max: None,
            prepare_bytes: 0,
            prepare_within: None,
            force: false,
        }
    }
}

/// An option that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum OptionsError {
    /// The share of near lines.
    #[error("a share of {0} of all lines cannot be near; give more than 0 and at most 1")]
    Near(f32),
    /// The share of memory that may be wasted.
    #[error("{0} of what is live cannot be wasted; give 0 or more")]
    Waste(f32),
}

impl Options {
    /// Whether all options make sense.
    pub(crate) fn check(&self) -> Result<(), OptionsError> {
        if !(self.near > 0.0 && self.near <= 1.0) {
            return Err(OptionsError::Near(self.near));
        }
        if !(self.waste >= 0.0 && self.waste.is_finite()) {
            return Err(OptionsError::Waste(self.waste));
        }
        Ok(())
    }
}
