//! What a residual costs, in nats: the noise of timed loads as a table.
//!
//! Where nothing is known the table is Huber's function up to a cap. Where residuals were seen
//! while learning it is their density: samples of DRAM are skewed, with a sharp left edge, and
//! the density then needs a quarter of the loads that a symmetric one does.

use crate::model::ModelError;

/// Entries of a penalty table; the middle one is for a residual of 0.
pub const PENALTY_ENTRIES: usize = 256;
/// The entry of a residual of 0.
pub(crate) const MIDDLE: f32 = 128.0;

/// How single samples scatter around their line's mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Standard deviation of one sample, cycles.
    pub sd_cycles: f32,
    /// Residual, in standard deviations, beyond which the penalty grows linearly.
    pub huber: f32,
    /// Largest penalty of one sample, in nats: no sample moves the odds by more than this.
    pub cap: f32,
}

impl Noise {
    /// Noise of timed loads: Gaussian in the middle (Huber's constant 1.345 keeps 95 % of the
    /// efficiency under Gaussian noise; Huber, Robust Statistics, 1981, table 4.1), tails capped
    /// at 5 nats.
    #[must_use]
    pub const fn heavy_tailed(sd_cycles: f32) -> Self {
        Self { sd_cycles, huber: 1.345, cap: 5.0 }
    }

    /// The residual, in cycles, at which the cap is reached.
    fn reach_cycles(&self) -> f32 {
        self.sd_cycles * (self.cap / self.huber + 0.5 * self.huber)
    }

    fn penalty(&self, residual_cycles: f32) -> f32 {
        let distance = (residual_cycles / self.sd_cycles).abs();
        let inner = if distance < self.huber { distance } else { self.huber };
        let penalty = inner * (distance - 0.5 * inner);
        if penalty < self.cap { penalty } else { self.cap }
    }
}

/// A penalty table: entry 128 is a residual of 0, entries are `step_cycles` apart, and the ends
/// stand for all that lies beyond.
#[derive(Clone, Debug, PartialEq)]
pub struct Penalties {
    /// Cycles between entries.
    pub step_cycles: f32,
    /// Nats; only differences matter.
    pub nats: [f32; PENALTY_ENTRIES],
}

/// The penalty entry of a residual counted in steps.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is clamped to 0..=255; truncation rounds, since a half was added"
)]
pub(crate) const fn entry(residual_steps: f32) -> usize {
    ((residual_steps + MIDDLE + 0.5).clamp(0.0, 255.0) as u8) as usize
}

impl From<Noise> for Penalties {
    fn from(noise: Noise) -> Self {
        let step_cycles = noise.reach_cycles() / MIDDLE;
        let mut nats = [0.0; PENALTY_ENTRIES];
        for (entry, value) in (0_u16..).zip(&mut nats) {
            *value = noise.penalty((f32::from(entry) - MIDDLE) * step_cycles);
        }
        Self { step_cycles, nats }
    }
}

impl Penalties {
    /// The entry of a residual counted in steps; the ends stand for all that lies beyond.
    #[must_use]
    pub const fn entry(residual_steps: f32) -> usize {
        entry(residual_steps)
    }

    /// What a residual costs, nats.
    #[must_use]
    pub fn at(&self, residual_cycles: f32) -> f32 {
        self.nats[entry(residual_cycles / self.step_cycles)]
    }

    /// Checks that decoding can use it.
    ///
    /// # Errors
    /// [`ModelError::NotFinite`] for a step that is not positive, or a penalty that is no number.
    pub fn check(&self) -> Result<(), ModelError> {
        let fine = self.step_cycles > 0.0
            && self.step_cycles.is_finite()
            && self.nats.iter().all(|nats| nats.is_finite());
        if fine { Ok(()) } else { Err(ModelError::NotFinite) }
    }
}
