//! A synthetic memory as plain data: everything that its truth and its noise follow from.
//!
//! A spec holds no state and draws nothing; [`super::SyntheticMemory::new`] checks it and runs
//! it. Ready-made specs are in [`super::presets`].

use isochrone_units::{CoreId, PAGE_BYTES, RegionId};

use crate::number::wide;
use crate::synthetic::{
    AddressHash, Arena, Event, Neighbour, Noise, Scheduled, SyntheticMachine, Timer, TransferCosts,
};

/// Everything about a synthetic memory.
#[derive(Clone, Debug, PartialEq)]
pub struct SyntheticSpec {
    /// What it is called in tables.
    pub name: String,
    /// Seed of frames and noise. Hashes have their own.
    pub seed: u64,
    /// Geometry and base costs.
    pub machine: SyntheticMachine,
    /// The physical core that each logical core wears at the start; its length is the number of
    /// logical cores.
    pub wears: Vec<u16>,
    /// Which slices and controllers serve which region's memory.
    pub regions: Vec<RegionUnits>,
    /// From physical line to one of the region's slices.
    pub slice_hash: AddressHash,
    /// From physical line to one of the region's controllers.
    pub controller_hash: AddressHash,
    /// Lines after which the truth repeats up to a key: 64 or 256.
    pub period_lines: u16,
    /// The memory that is measured.
    pub arena: Arena,
    /// The clock.
    pub timer: Timer,
    /// The noise.
    pub noise: Noise,
    /// Who else uses the cores.
    pub neighbours: Vec<Neighbour>,
    /// What measuring costs beside the timed load.
    pub costs: Costs,
    /// What line transfers and bandwidth cost.
    pub transfers: TransferCosts,
    /// What changes when.
    pub schedule: Vec<Scheduled>,
}

/// The units behind one region's memory, as indices into the machine's.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionUnits {
    /// Slices or directories.
    pub slices: Vec<u16>,
    /// Memory controllers.
    pub controllers: Vec<u16>,
    /// What its memory can move, 10^9 bytes a second; [`TransferCosts::region_gb_per_s`] where it is not given.
    pub gb_per_s: Option<f64>,
}

/// Virtual time spent beside the timed load, in cycles.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// For each batch.
    pub batch_cycles: f64,
    /// For each sample: loop and fences.
    pub sample_cycles: f64,
    /// For each sample: putting the line into the LLC (demotion, or its share of an eviction).
    pub llc_prepare_cycles: f64,
    /// For each sample: flushing the line.
    pub dram_prepare_cycles: f64,
}

/// Why a spec makes no machine. Messages say what to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The geometry contradicts itself.
    #[error("the geometry does not fit together: {0}")]
    Machine(String),
    /// A logical core wears no physical one.
    #[error("logical core {core} wears physical core {physical} of {cores}; give a smaller one")]
    Core {
        /// The logical core.
        core: usize,
        /// What it should wear.
        physical: u16,
        /// Physical cores of the machine.
        cores: usize,
    },
    /// There is nothing to measure from or to.
    #[error("give at least one {0}")]
    Missing(&'static str),
    /// A region names a unit that the machine lacks, or none.
    #[error("region {} needs slices below {slices} and controllers below {controllers}", region.0)]
    Region {
        /// The region.
        region: RegionId,
        /// Slices of the machine.
        slices: usize,
        /// Controllers of the machine.
        controllers: usize,
    },
    /// A hash cannot address a region's units.
    #[error("the hash for {units} of region {}: {why}", region.0)]
    Hash {
        /// `"slices"` or `"controllers"`.
        units: &'static str,
        /// The region.
        region: RegionId,
        /// What to do.
        why: String,
    },
    /// Period neither 64 nor 256.
    #[error("a period of {0} lines has no one-byte key; give 64 or 256")]
    Period(u16),
    /// The arena does not fit.
    #[error("the arena: {0}")]
    Arena(String),
    /// A number is outside its range.
    #[error("{what} is {value}; give {range}")]
    Range {
        /// The field.
        what: &'static str,
        /// Its value.
        value: String,
        /// The range.
        range: &'static str,
    },
    /// An event concerns something that is not there.
    #[error("event {event:?} concerns a core or page that the machine lacks; name one it has")]
    Event {
        /// The event.
        event: Event,
    },
}

impl SyntheticSpec {
    /// The same with another arena size.
    #[must_use]
    pub fn with_pages(mut self, pages: u64) -> Self {
        self.arena.pages = pages;
        self
    }

    /// The same with 4 KiB frames instead of huge ones.
    #[must_use]
    pub fn with_small_pages(mut self) -> Self {
        self.arena.huge = false;
        self
    }

    /// The same with other noise.
    #[must_use]
    pub fn with_noise(mut self, noise: Noise) -> Self {
        self.noise = noise;
        self
    }

    /// The same with somebody else's work beside it, on each of these cores: for a share of the time, in slices of
    /// 1 to 10 ms after which the core's lines are gone.
    #[must_use]
    pub fn with_neighbours(mut self, cores: impl IntoIterator<Item = CoreId>, share: f64) -> Self {
        let slice_s = (1e-3, 10e-3);
        self.neighbours.extend(cores.into_iter().map(|core| Neighbour {
            core,
            share,
            slice_s,
            evicts: true,
        }));
        self
    }

    /// The same where everything takes longer all the time, by this share: beside a busy sibling, or at a lower
    /// clock. The truth that is told stays that of the quiet machine.
    #[must_use]
    pub fn slower_by(mut self, share: f64) -> Self {
        self.noise.slower_by = share;
        self
    }

    /// The same with a last-level cache (or without), whose hit costs this beside its hops.
    #[must_use]
    pub fn with_llc(mut self, base_cycles: Option<f64>) -> Self {
        self.machine.llc_base_cycles = base_cycles;
        self
    }

    /// The same with these events added.
    #[must_use]
    pub fn with_events(mut self, events: impl IntoIterator<Item = Scheduled>) -> Self {
        self.schedule.extend(events);
        self
    }

    /// The same where logical core `i` wears physical core `i`, for the first `cores`.
    #[must_use]
    pub fn with_cores(mut self, cores: u16) -> Self {
        self.wears = (0..cores).collect();
        self
    }

    /// The same without noise and with a timer that rounds to the nearest cycle.
    #[must_use]
    pub fn noiseless(mut self) -> Self {
        self.noise = Noise::none();
        self.transfers.sd_cycles = 0.0;
        self.timer.tick_cycles = 1;
        self.timer.random_phase = false;
        self
    }

    /// Size of the arena.
    #[must_use]
    pub fn arena_bytes(&self) -> u64 {
        self.arena.pages * wide(PAGE_BYTES)
    }

    /// Checks that the parts fit together.
    ///
    /// # Errors
    /// The first thing that does not, and what to give instead.
    pub fn validate(&self) -> Result<(), SpecError> {
        if let Some(why) = self.machine.defect() {
            return Err(SpecError::Machine(why));
        }
        self.validate_cores()?;
        self.validate_regions()?;
        if self.period_lines != 64 && self.period_lines != 256 {
            return Err(SpecError::Period(self.period_lines));
        }
        if let Some(why) = self.arena.defect(self.regions.len()) {
            return Err(SpecError::Arena(why));
        }
        self.validate_numbers()?;
        self.schedule.iter().try_for_each(|scheduled| self.validate_event(scheduled.event))
    }

    fn validate_cores(&self) -> Result<(), SpecError> {
        if self.wears.is_empty() {
            return Err(SpecError::Missing("logical core"));
        }
        if self.wears.len() > usize::from(u16::MAX) {
            let value = self.wears.len().to_string();
            return Err(SpecError::Range { what: "wears.len()", value, range: "65535 or fewer" });
        }
        let cores = self.machine.cores();
        match self.wears.iter().enumerate().find(|(_, p)| usize::from(**p) >= cores) {
            Some((core, &physical)) => Err(SpecError::Core { core, physical, cores }),
            None => Ok(()),
        }
    }

    fn validate_regions(&self) -> Result<(), SpecError> {
        let (slices, controllers) = (self.machine.slices(), self.machine.controllers());
        let fits = |units: &[u16], ways| {
            !units.is_empty() && units.iter().all(|unit| usize::from(*unit) < ways)
        };
        if matches!(self.slice_hash, AddressHash::PerPage { .. }) {
            let why = "slices are chosen by line; use PerPage for controllers only".to_owned();
            return Err(SpecError::Hash { units: "slices", region: RegionId(0), why });
        }
        if self.regions.is_empty() {
            return Err(SpecError::Missing("region"));
        }
        for (region, units) in (0..).map(RegionId).zip(&self.regions) {
            if !fits(&units.slices, slices) || !fits(&units.controllers, controllers) {
                return Err(SpecError::Region { region, slices, controllers });
            }
            if let Some(why) = self.slice_hash.defect(units.slices.len()) {
                return Err(SpecError::Hash { units: "slices", region, why });
            }
            if let Some(why) = self.controller_hash.defect(units.controllers.len()) {
                return Err(SpecError::Hash { units: "controllers", region, why });
            }
        }
        Ok(())
    }

    fn validate_numbers(&self) -> Result<(), SpecError> {
        let range = |what, value: f64, holds: bool, range| {
            if holds {
                return Ok(());
            }
            Err(SpecError::Range { what, value: value.to_string(), range })
        };
        let probability = |what, value: f64| {
            range(what, value, (0.0..=1.0).contains(&value), "a probability from 0 to 1")
        };
        range("timer.hz", self.timer.hz, self.timer.hz > 0.0, "more than 0")?;
        let tick = f64::from(self.timer.tick_cycles);
        range("timer.tick_cycles", tick, tick >= 1.0, "1 or more")?;
        probability("noise.outlier_probability", self.noise.outlier_probability)?;
        probability("noise.llc_miss_probability", self.noise.llc_miss_probability)?;
        let slower_by = self.noise.slower_by;
        range("noise.slower_by", slower_by, slower_by > -1.0, "more than -1")?;
        if let Some(disturbance) = &self.noise.disturbance {
            probability("noise.disturbance.probability", disturbance.probability)?;
        }
        for neighbour in &self.neighbours {
            let Neighbour { share, slice_s: (least, most), .. } = *neighbour;
            range("neighbour.share", share, (0.0..1.0).contains(&share), "0 to less than 1")?;
            let ordered = least > 0.0 && least <= most;
            range("neighbour.slice_s", least, ordered, "more than 0, the shorter first")?;
        }
        if let Some(frequency) = &self.noise.frequency {
            let period_s = frequency.period_s;
            range("noise.frequency.period_s", period_s, period_s > 0.0, "more than 0")?;
        }
        Ok(())
    }

    pub(super) fn validate_event(&self, event: Event) -> Result<(), SpecError> {
        let exists = match event {
            Event::CoreMoves { core, to } => {
                usize::from(core.0) < self.wears.len() && usize::from(to) < self.machine.cores()
            }
            Event::PageMigrates { page } => page.0 < self.arena.pages,
            // The thread may be found where nobody asked it to be.
            Event::ThreadMoves { .. } => true,
        };
        if exists { Ok(()) } else { Err(SpecError::Event { event }) }
    }
}

#[cfg(test)]
mod tests {
    use isochrone_units::PageAddr;

    use super::*;
    use crate::synthetic::When;

    fn refused(change: impl FnOnce(&mut SyntheticSpec)) -> String {
        let mut spec = SyntheticSpec::genoa_like(1).with_pages(64);
        spec.validate().expect("the preset is sound");
        change(&mut spec);
        spec.validate().expect_err("the changed one is not").to_string()
    }

    #[test]
    fn each_contradiction_is_refused_with_what_to_give() {
        assert!(refused(|s| s.wears = vec![]).contains("at least one logical core"));
        assert!(refused(|s| s.wears = vec![0; 70_000]).contains("65535 or fewer"));
        assert!(refused(|s| s.wears[1] = 99).contains("wears physical core 99 of 8"));
        assert!(refused(|s| s.regions.clear()).contains("at least one region"));
        assert!(refused(|s| s.regions[0].slices.push(8)).contains("slices below 8"));
        assert!(refused(|s| s.slice_hash = AddressHash::Xor { masks: vec![1] }).contains("XOR"));
        assert!(refused(|s| s.period_lines = 128).contains("64 or 256"));
        assert!(refused(|s| s.arena.pages = 0).contains("at least one page"));
        assert!(refused(|s| s.timer.tick_cycles = 0).contains("1 or more"));
        assert!(refused(|s| s.noise.llc_miss_probability = 1.5).contains("probability"));
    }

    #[test]
    fn events_must_concern_what_is_there() {
        let at = When::Samples(1);
        let moves = |core, to| Scheduled::core_moves(at, CoreId(core), to);
        assert!(refused(|s| s.schedule.push(moves(2, 0))).contains("lacks"));
        assert!(refused(|s| s.schedule.push(moves(0, 8))).contains("lacks"));
        let page = PageAddr(64);
        assert!(refused(|s| s.schedule.push(Scheduled::page_migrates(at, page))).contains("lacks"));
    }
}
