//! What stands between a latency and its sample: the timer and the noise.
//!
//! Each disturbance is one that was seen on a real machine, and each can be left out. Nothing
//! here knows lines or cores.

use isochrone_units::{Cycles, Level};

use crate::number::whole_ticks;
use crate::random::Random;

/// Exponent of the outliers' tail: half as many are 1.41 times as large.
const TAIL_EXPONENT: f64 = 2.0;

/// The largest outlier, in multiples of the smallest: keeps one sample from lasting for ever.
const TAIL_LIMIT: f64 = 1000.0;

/// The clock that times samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Timer {
    /// Cycles a second.
    pub hz: f64,
    /// Smallest step, cycles.
    pub tick_cycles: u32,
    /// What timing nothing takes on average; every sample includes it.
    pub overhead_cycles: f64,
    /// Whether a sample starts at a random point between two ticks. If not, a sample is the
    /// duration rounded to the nearest tick.
    pub random_phase: bool,
}

/// How samples are disturbed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Noise {
    /// Standard deviation of a load that hits the LLC.
    pub llc_sd_cycles: f64,
    /// Standard deviation of a load from DRAM.
    pub dram_sd_cycles: f64,
    /// Share of samples that something else lengthens (refresh, interrupt, another tenant).
    pub outlier_probability: f64,
    /// Smallest lengthening; the larger ones follow a Pareto tail with exponent 2.
    pub outlier_cycles: f64,
    /// Share of LLC samples whose line was no longer there and came from DRAM.
    pub llc_miss_probability: f64,
    /// What lines of one page do to one another.
    pub disturbance: Option<Disturbance>,
    /// A slow change of frequency, common to all latencies.
    pub frequency: Option<FrequencyDrift>,
    /// The share by which everything takes longer all the time: a busy sibling, a lower clock.
    pub slower_by: f64,
}

/// A line is timed shortly after another one of its page, and the prefetcher has brought it
/// nearer in the meantime.
#[derive(Clone, Debug, PartialEq)]
pub struct Disturbance {
    /// How many samples back in the batch a line of the same page still disturbs.
    pub window: usize,
    /// How often it does.
    pub probability: f64,
    /// Latency of the line where it was brought.
    pub found_at_cycles: f64,
}

/// Latencies are multiplied by `1 + amplitude * sin(2 pi t / period)`.
#[derive(Clone, Debug, PartialEq)]
pub struct FrequencyDrift {
    /// Largest relative change.
    pub amplitude: f64,
    /// Seconds of virtual time for one swing.
    pub period_s: f64,
}

impl Timer {
    /// The reading of a timed operation that took `cycles`.
    pub(crate) fn reading(&self, cycles: f64, random: &mut Random) -> Cycles {
        Cycles(u32::try_from(self.long_reading(cycles, random)).unwrap_or(u32::MAX))
    }

    /// The same for operations that may take longer than 2^32 cycles.
    pub(crate) fn long_reading(&self, cycles: f64, random: &mut Random) -> u64 {
        let phase = if self.random_phase { random.uniform() } else { 0.5 };
        let start = phase * f64::from(self.tick_cycles);
        whole_ticks(start + self.overhead_cycles + cycles, self.tick_cycles)
    }
}

impl Noise {
    /// No noise at all.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Standard deviation of a load at a level.
    pub(crate) fn sd_cycles(&self, level: Level) -> f64 {
        match level {
            Level::Llc => self.llc_sd_cycles,
            Level::Dram => self.dram_sd_cycles,
        }
    }

    /// How long an operation that truly takes `cycles` takes this time, at `seconds` of virtual
    /// time.
    pub(crate) fn disturb(&self, cycles: f64, sd: f64, seconds: f64, random: &mut Random) -> f64 {
        let mut duration = cycles * self.frequency_factor(seconds);
        if sd > 0.0 {
            duration += sd * random.normal();
        }
        if random.chance(self.outlier_probability) {
            duration += self.outlier_cycles * pareto(random);
        }
        duration.max(0.0)
    }

    /// By how much everything is slower at `seconds` of virtual time.
    pub(crate) fn frequency_factor(&self, seconds: f64) -> f64 {
        let swing = self.frequency.as_ref().map_or(1.0, |drift| {
            let angle = core::f64::consts::TAU * seconds / drift.period_s;
            1.0 + drift.amplitude * libm::sin(angle)
        });
        swing * (1.0 + self.slower_by)
    }
}

fn pareto(random: &mut Random) -> f64 {
    libm::pow(1.0 - random.uniform(), -1.0 / TAIL_EXPONENT).min(TAIL_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn timer(random_phase: bool) -> Timer {
        Timer { hz: 2.6e9, tick_cycles: 26, overhead_cycles: 60.0, random_phase }
    }

    #[test]
    fn readings_are_whole_ticks_and_their_mean_is_the_duration() {
        let mut random = Random::new(1, Stream::Noise);
        let readings: Vec<u32> =
            (0..20_000).map(|_| timer(true).reading(44.3, &mut random).0).collect();
        assert!(
            readings.iter().all(|r| *r == 104 || *r == 130 || *r == 78),
            "{:?}",
            &readings[..9]
        );
        let mean = readings.iter().map(|r| f64::from(*r)).sum::<f64>() / 20_000.0;
        assert!((mean - 104.3).abs() < 0.3, "dithering recovers the mean: {mean}");
    }

    #[test]
    fn without_a_phase_the_nearest_tick_is_read() {
        let mut random = Random::new(1, Stream::Noise);
        assert_eq!(timer(false).reading(0.0, &mut random), Cycles(52));
        assert_eq!(timer(false).reading(6.0, &mut random), Cycles(78));
    }

    #[test]
    fn deviation_and_outliers_are_as_stated() {
        let noise = Noise {
            dram_sd_cycles: 45.0,
            outlier_probability: 0.02,
            outlier_cycles: 1000.0,
            ..Noise::none()
        };
        let mut random = Random::new(2, Stream::Noise);
        let draws: Vec<f64> = (0..50_000)
            .map(|_| noise.disturb(360.0, noise.sd_cycles(Level::Dram), 0.0, &mut random))
            .collect();
        let (bulk, tail): (Vec<f64>, Vec<f64>) = draws.iter().partition(|d| **d < 900.0);
        let mean = bulk.iter().sum::<f64>() / crate::number::float(bulk.len());
        let sd = (bulk.iter().map(|d| (d - mean).powi(2)).sum::<f64>()
            / crate::number::float(bulk.len()))
        .sqrt();
        assert!((mean - 360.0).abs() < 1.0 && (sd - 45.0).abs() < 1.0, "{mean} {sd}");
        assert!((850..1150).contains(&tail.len()), "{}", tail.len());
        let double = tail.iter().filter(|d| **d > 2360.0).count();
        assert!((180..320).contains(&double), "a quarter is twice the smallest: {double}");
        assert!(noise.disturb(44.0, noise.sd_cycles(Level::Llc), 0.0, &mut random) >= 44.0);
    }

    #[test]
    fn frequency_swings_about_one() {
        let noise = Noise {
            frequency: Some(FrequencyDrift { amplitude: 0.1, period_s: 4.0 }),
            ..Noise::none()
        };
        assert!((noise.frequency_factor(1.0) - 1.1).abs() < 1e-12);
        assert!((noise.frequency_factor(3.0) - 0.9).abs() < 1e-12);
        assert!((noise.frequency_factor(2.0) - 1.0).abs() < 1e-12);
        let shifted = Noise { slower_by: 0.3, ..noise };
        assert!((shifted.frequency_factor(2.0) - 1.3).abs() < 1e-12);
    }
}
