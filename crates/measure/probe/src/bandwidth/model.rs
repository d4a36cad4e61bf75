//! A modelled machine's bandwidth: what its cores can move, limited by what the region can, with
//! noise, in virtual time.

use isochrone_sim::synthetic::SyntheticMemory;
use isochrone_stats::{Xoshiro256PlusPlus, normal, rng};
use isochrone_units::{CoreId, RegionId};

use super::run::TriadTarget;
use crate::target::TargetError;

/// Bytes that each core moves in a pass: as many as a live core does by default.
const PASS_GB: f64 = 0.192;

/// The bandwidth of a synthetic memory.
#[derive(Debug)]
pub struct ModelTriad<'m> {
    memory: &'m SyntheticMemory,
    sd: f64,
    random: Xoshiro256PlusPlus,
    seconds: f64,
}

impl<'m> ModelTriad<'m> {
    /// Runs with a relative standard deviation.
    #[must_use]
    pub fn new(memory: &'m SyntheticMemory, sd: f64, seed: u64) -> Self {
        Self { memory, sd, random: rng(seed), seconds: 0.0 }
    }
}

impl TriadTarget for ModelTriad<'_> {
    fn triad(
        &mut self,
        cores: &[CoreId],
        region: RegionId,
        passes: u32,
    ) -> Result<f64, TargetError> {
        let truth = self.memory.truth_bandwidth(cores, region).ok_or_else(|| {
            TargetError::Unsupported(format!("there is no {region}; plan for those that are there"))
        })?;
        let found = truth * (1.0 + self.sd * normal(&mut self.random));
        let moved = cores.iter().map(|_| PASS_GB).sum::<f64>() * f64::from(passes);
        self.seconds += moved / found;
        Ok(found)
    }

    fn seconds(&mut self) -> f64 {
        self.seconds
    }
}
