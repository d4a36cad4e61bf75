//! A modelled machine's bandwidth: what its cores can move, limited by what the region can, with
//! noise, in virtual time.
//!
//! What limits the region is shared by the cores that run: while somebody else has one of them, the others have more.

use isochrone_sim::synthetic::SyntheticMemory;
use isochrone_stats::{Xoshiro256PlusPlus, normal, rng};
use isochrone_units::{CoreId, RegionId};

use super::run::TriadTarget;
use super::track::{Piece, Track};
use crate::target::TargetError;

/// Bytes of a piece: as many as a live core moves in one.
const PIECE_BYTES: u64 = 24 << 15;
/// Arrays of a core that is given none of its own: as large as those of a core with a cache of 48 MB.
const ARRAYS_BYTES: u64 = 244 * PIECE_BYTES;
/// No piece is faster than this share of its expected time, whatever the noise.
const FASTEST: f64 = 0.1;

/// The bandwidth of a synthetic memory.
#[derive(Debug)]
pub struct ModelTriad {
    memory: SyntheticMemory,
    sd: f64,
    random: Xoshiro256PlusPlus,
    seconds: f64,
}

/// A core at work.
struct Working {
    core: CoreId,
    /// Pieces that it has yet to do.
    left: u64,
    track: Track,
    now_s: f64,
    /// Somebody else has it until then.
    held_until_s: f64,
    /// How fast it is in this run, over what is expected.
    pace: f64,
}

impl ModelTriad {
    /// Runs with a relative standard deviation of a core's pace.
    #[must_use]
    pub fn new(memory: SyntheticMemory, sd: f64, seed: u64) -> Self {
        Self { memory, sd, random: rng(seed), seconds: 0.0 }
    }

    /// The next piece of a core, of `running` that share the region.
    fn piece(
        &mut self,
        working: &mut Working,
        running: &[CoreId],
        region: RegionId,
    ) -> Result<(), TargetError> {
        let truth = self.memory.truth_bandwidth(running, region).ok_or_else(|| {
            TargetError::Unsupported(format!("there is no {region}; plan for those that are there"))
        })?;
        let each: f64 = truth / running.iter().map(|_| 1.0).sum::<f64>();
        let seconds = bytes_of(PIECE_BYTES) / (each * working.pace * 1e9);
        let held = self.memory.held_up_s(working.core, working.now_s, seconds);
        working.now_s += seconds + held;
        working.held_until_s = if held > 0.0 { working.now_s } else { 0.0 };
        working.left -= 1;
        working.track.pieces.push(Piece { end_s: working.now_s, bytes: PIECE_BYTES });
        Ok(())
    }
}

impl ModelTriad {
    /// Runs `passes` passes of arrays of these bytes on each of `cores` at once, each core its own, of
    /// 1 byte at least: what each did.
    ///
    /// # Errors
    /// [`TargetError::Unsupported`] where there is no such region.
    pub fn sized(
        &mut self,
        cores: &[CoreId],
        region: RegionId,
        passes: u32,
        bytes: &[u64],
    ) -> Result<Vec<Track>, TargetError> {
        let mut working = self.begin(cores, passes, bytes);
        let is_even = working.windows(2).all(|two| two[0].left == two[1].left);
        if !(is_even && self.memory.spec().neighbours.is_empty()) {
            return self.beside_others(working, region);
        }
        // Nobody takes a core away: all do the same.
        let Some(mut one) = working.pop() else { return Ok(Vec::new()) };
        while one.left > 0 {
            self.piece(&mut one, cores, region)?;
        }
        self.seconds = one.now_s;
        Ok(vec![one.track; cores.len()])
    }

    fn begin(&mut self, cores: &[CoreId], passes: u32, bytes: &[u64]) -> Vec<Working> {
        // The run's noise is common to its cores, as that of a shared channel is.
        let pace = (1.0 + self.sd * normal(&mut self.random)).max(FASTEST);
        let begin_s = self.seconds;
        let each = cores.iter().zip(bytes).map(|(core, bytes)| Working {
            core: *core,
            left: bytes.div_ceil(PIECE_BYTES) * u64::from(passes),
            track: Track { start_s: begin_s, pieces: Vec::new() },
            now_s: begin_s,
            held_until_s: 0.0,
            pace,
        });
        each.collect()
    }

    /// Each core its next piece, whoever is first.
    fn beside_others(
        &mut self,
        mut working: Vec<Working>,
        region: RegionId,
    ) -> Result<Vec<Track>, TargetError> {
        let mut done = Vec::new();
        while let Some(first) =
            (0..working.len()).min_by(|a, b| working[*a].now_s.total_cmp(&working[*b].now_s))
        {
            let now_s = working[first].now_s;
            let runs = |other: &&Working| other.held_until_s <= now_s;
            let running: Vec<CoreId> =
                working.iter().filter(runs).map(|other| other.core).collect();
            self.piece(&mut working[first], &running, region)?;
            if working[first].left == 0 {
                done.push(working.swap_remove(first));
            }
        }
        self.seconds = done.iter().map(|one| one.now_s).fold(self.seconds, f64::max);
        Ok(done.into_iter().map(|one| one.track).collect())
    }
}

impl TriadTarget for ModelTriad {
    fn triad(
        &mut self,
        cores: &[CoreId],
        region: RegionId,
        passes: u32,
    ) -> Result<Vec<Track>, TargetError> {
        self.sized(cores, region, passes, &vec![ARRAYS_BYTES; cores.len()])
    }

    fn seconds(&mut self) -> f64 {
        self.seconds
    }
}

/// Bytes of a piece as a number.
#[allow(clippy::cast_precision_loss, reason = "far below 2^53")]
fn bytes_of(count: u64) -> f64 {
    count as f64
}
