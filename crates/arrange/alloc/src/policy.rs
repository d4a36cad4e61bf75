//! What the caller wants: which lines are preferred, how many count as near, and how much memory
//! that may cost.

/// Which lines a core is given first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The nearest ones.
    #[default]
    Aware,
    /// Any ones: the same pools, in the same proportions, of lines chosen without regard to
    /// their distance. The baseline.
    Oblivious,
    /// Those that are nearer to it than to any other core that takes part, and of these the nearest: each line is
    /// on the list of one core, as in the Euro-Par paper (section 4). Lines that are equally near to several are on
    /// the lists of all of them. How many are near follows from the cores, not from [`Policy::near`].
    NearestParticipant,
    /// The farthest ones, to show what is at stake: for experiments.
    #[cfg(feature = "arms")]
    Adversarial,
    /// The nearest ones as measured line by line: for experiments.
    #[cfg(feature = "arms")]
    Oracle,
}

impl Mode {
    /// Lower-case name, as JSON and arguments write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Aware => "aware",
            Self::Oblivious => "oblivious",
            Self::NearestParticipant => "nearest-participant",
            #[cfg(feature = "arms")]
            Self::Adversarial => "adversarial",
            #[cfg(feature = "arms")]
            Self::Oracle => "oracle",
        }
    }

    /// Whether lines go by what was measured of each; never without the feature `arms`, so that nothing of it is left.
    #[inline]
    #[must_use]
    pub const fn is_oracle(self) -> bool {
        #[cfg(feature = "arms")]
        return matches!(self, Self::Oracle);
        #[cfg(not(feature = "arms"))]
        false
    }

    /// Whether far lines go first; as [`Self::is_oracle`].
    pub(crate) const fn is_adversarial(self) -> bool {
        #[cfg(feature = "arms")]
        return matches!(self, Self::Adversarial);
        #[cfg(not(feature = "arms"))]
        false
    }
}

/// How a heap chooses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// Which lines come first.
    pub mode: Mode,
    /// The share of units that count as near for a core.
    pub near: f32,
    /// Memory beyond the live bytes that preference may cost, as a share of them.
    pub waste: f32,
    /// Memory that preference may always cost.
    pub slack_bytes: u64,
    /// The last-level cache; what is live beyond it is expected to miss.
    pub llc_bytes: u64,
    /// One core's second-level cache; lines are timed beyond it, and what fits it gains nothing.
    pub l2_bytes: u64,
    /// The memory whose translations a core holds, beyond which near lines must not be spread; 0
    /// where that is not known.
    pub tlb_bytes: u64,
    /// Seed of every choice that is random on purpose.
    pub seed: u64,
    /// True to mark each slot while it is live, so that a double free is found at once.
    pub checked: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            mode: Mode::Aware,
            near: 0.25,
            waste: 0.25,
            slack_bytes: 1 << 20,
            llc_bytes: 32 << 20,
            l2_bytes: 1 << 20,
            tlb_bytes: 0,
            seed: 0,
            checked: false,
        }
    }
}

/// A share of a byte count; nothing for a share that is no number or negative.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a limit needs no more than 52 bits, and casts of floats saturate"
)]
pub(crate) fn scaled(bytes: u64, share: f32) -> u64 {
    (bytes as f64 * f64::from(share)) as u64
}
