//! Everything an atlas holds, as plain records: the contract between measuring (`probe`) and
//! using (`cli`, `report`, later the arrangers).
//!
//! Records are what the file stores, so they use plain numbers with the unit in the name.
//! A missing value is `None`, never 0. Latencies have the cost of the timer already taken off.

mod cell;
mod matrices;

pub use cell::Cell;
pub use matrices::{Matrix, PairStratum, RegionMap, TransferMap};

use crate::Experiment;
use isochrone_atlas::Penalties;
use isochrone_machine::{Machine, MachineState};
use isochrone_units::{Grade, Reading};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The clock that timed the samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Clock {
    /// Rate of the time-stamp counter.
    pub hz: f64,
    /// Smallest step that the counter makes, in cycles (26 on Zen 4 at 2.6 GHz, 1 or 2 on Intel).
    pub tick_cycles: u32,
    /// Cycles that an empty timed region takes; already subtracted everywhere.
    pub overhead_cycles: f64,
}

impl Clock {
    /// Cycles as nanoseconds.
    #[must_use]
    pub fn ns(&self, cycles: f64) -> f64 {
        cycles * 1e9 / self.hz
    }
}

/// How a level's latencies are described.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// `latency(core, page, i) = base[core][class(page)][i ^ key(page)]` holds.
    Pattern,
    /// No difference between lines beyond the noise.
    Flat,
    /// Lines differ, but not by the form: they are measured one by one.
    PerLine,
}

/// One base: what a core that "wears" it sees, in cycles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Base {
    /// The core on which it was learnt.
    pub core: u16,
    /// `[class][canonical line index]`, each inner vector `period` long, in cycles.
    pub patterns: Vec<Vec<f32>>,
    /// Rounds of measurement that stand behind it.
    pub rounds: u32,
}

/// How well a level's form predicts pages that were not used to learn it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Quality {
    /// Share of the variance of held-out pages explained: the code decoded from the probe
    /// lines, the prediction scored on a second, full pass over the page.
    pub r2_heldout: Option<f64>,
    /// The best share that a second pass could explain, given its own noise.
    pub r2_ceiling: Option<f64>,
    /// Share of the variance of the training pages explained.
    pub r2_train: Option<f64>,
    /// Distinct lines read to decode one page.
    pub lines_per_page: Option<f64>,
    /// Timed loads spent to decode one page (a line may be read more than once).
    pub samples_per_page: Option<f64>,
    /// Wall time to decode one page over the whole memory pass, in microseconds.
    pub us_per_page: Option<f64>,
    /// Cores that decoded pages at the same time, or in turns where none of them can alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decoding_cores: Option<u32>,
    /// Where `us_per_page` goes: named shares in microseconds.
    pub us_breakdown: Vec<(String, f64)>,
    /// Share of held-out pages whose decoded code is the one that the full pass gives, or one
    /// whose pattern correlates with it at 0.98 or more.
    pub key_accuracy: Option<f64>,
    /// Mean latency of the lines that the decoded codes call the nearest quarter, over that of
    /// the true nearest quarter, as a share of the distance from near to mean.
    pub near_regret: Option<f64>,
    /// 90th over 10th percentile of line latency, as a ratio.
    pub spread_p90_p10: Option<f64>,
    /// Mean latency of all lines, nanoseconds.
    pub mean_ns: Option<f64>,
    /// Mean latency of the nearest quarter of the lines, nanoseconds.
    pub near_quarter_ns: Option<f64>,
    /// Pages decoded in the memory pass.
    pub decoded_pages: u64,
    /// Pages held out.
    pub heldout_pages: u32,
    /// Latencies of single lines (means over repeats), cycles, for the histogram. At most 4096.
    pub histogram_cycles: Vec<f32>,
    /// How the core is known where it was not learnt in full but verified by a few loads. `mean_ns` is
    /// the mean of these then, and what is scored on held-out pages is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
}

/// A core that was verified by a few loads of pages whose codes other cores learnt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verified {
    /// Whether its base was measured from its own loads of such pages; else another core was seen in it, or in its
    /// pattern at another distance.
    pub own_base: bool,
    /// Share of what repeats between two loads of the same lines that the base and the codes explain,
    /// on loads that were not used to find the base; `None` where nothing repeats beyond the noise.
    pub explained: Option<f64>,
    /// Standard error of that share.
    pub error: Option<f64>,
    /// Timed loads behind it.
    pub loads: u64,
}

/// One level (LLC or DRAM) of the block experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LevelMap {
    /// `"llc"` or `"dram"`.
    pub level: String,
    /// Whether and how the form holds.
    pub form: Form,
    /// One sentence: why `form` was chosen, with the figure that decided.
    pub reason: String,
    /// How lines were put into the level: `"cldemote"`, `"eviction"`, `"clflush"`, `"dc civac"`.
    pub method: String,
    /// Lines after which the pattern repeats up to a key: 64 or 256.
    pub period: u16,
    /// Page classes (1 where all pages share one pattern up to a key), at most 16 of 64 lines.
    pub classes: u8,
    /// For every key the smallest key whose pattern correlates with it at 0.98 or more.
    pub canonical_key: Vec<u8>,
    /// Dictionary of the bases seen.
    pub bases: Vec<Base>,
    /// For each core of the machine (in its order) the index of the base it wore last.
    pub core_base: Vec<Option<u16>>,
    /// Lines to probe, in the order in which they tell the codes apart best.
    pub probe_lines: Vec<u8>,
    /// Standard deviation of one timed load around its line's mean, cycles.
    pub noise_cycles: f64,
    /// Share of training pages per code `class * period + key`.
    pub code_share: Vec<f32>,
    /// How well it predicts; one per core, in the machine's order.
    pub quality: Vec<Quality>,
    /// Where `form` is [`Form::PerLine`]: measured lines, `(frame, core, 64 latencies in cycles)`; a line that was not
    /// timed often enough is no number, in JSON null.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<(u64, u16, Vec<Option<f32>>)>"))]
    pub lines: Vec<(u64, u16, Vec<f32>)>,
    /// What residuals of single loads cost, from their density; `None` where none was kept. Not
    /// part of the JSON text.
    #[serde(skip)]
    pub penalties: Option<Penalties>,
}

/// Codes of 512 consecutive pages (2 MiB).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageBlock {
    /// First frame, a multiple of 512.
    pub first_frame: u64,
    /// LLC codes, `class * period + key`; 65535 where a page was not decoded.
    pub llc: Box<[u16; 512]>,
    /// DRAM codes.
    pub dram: Box<[u16; 512]>,
}

/// Equation (1) of the CLa paper, T = q + oN + cnN, fitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MultiLineFit {
    /// Which cores: `"core 0 -> core 1"`.
    pub what: String,
    /// Start-up cost `(value, lo, hi)`, ns.
    pub q_ns: (f64, f64, f64),
    /// Cost a line, ns.
    pub o_ns: (f64, f64, f64),
    /// Congestion cost a line and a reader, ns; `None` where only one reader was possible.
    pub c_ns: Option<(f64, f64, f64)>,
    /// Share of variance explained.
    pub r2: f64,
    /// `(lines, readers, median ns)`.
    pub points: Vec<(u32, u32, f64)>,
}

/// One interaction of section 2 of the CLa paper, for one number of participants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interaction {
    /// `"contention"`, `"congestion"`, `"n-readers"`, `"n-writers"`, `"rfo-shared"`.
    pub kind: String,
    /// Participants beside the owner or poller.
    pub n: u32,
    /// Nanoseconds an operation; `None` with the reason in `note` where cores are too few.
    pub ns: Option<Cell>,
    /// What it is or why it is missing.
    pub note: String,
}

/// A cost that the model of the CLa paper leaves out: what something costs with it, and without it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CostTerm {
    /// `"first-remote-reader"`, `"overlapped-ack"`, `"rfo-sharer"`, `"adjacent-line"`, `"adjacent-write"`,
    /// `"left-shared"`, `"left-read"`.
    pub name: String,
    /// What is timed, with and without.
    pub what: String,
    /// Nanoseconds with it, over lines.
    pub with_ns: Option<Cell>,
    /// Nanoseconds without it, on the same lines.
    pub without_ns: Option<Cell>,
    /// The term: what a line costs more with it, ns. Below 0 where it costs less.
    pub ns: Option<Cell>,
    /// Why it could not be measured, where it could not.
    pub missing: Option<String>,
}

/// Triad bandwidth of a group of cores to one region.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bandwidth {
    /// Cores that ran together.
    pub cores: Vec<u16>,
    /// The region whose memory they read and wrote.
    pub region: u16,
    /// 10^9 bytes a second (read and written, write-allocate not counted).
    pub gb_per_s: Cell,
}

/// Where cores and controllers seem to sit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Placement {
    /// `"ring"`, `"grid"` or `"cannot tell"`.
    pub shape: String,
    /// Why, in one sentence.
    pub reason: String,
    /// `(label, x, y)` of every item placed.
    pub places: Vec<(String, f64, f64)>,
    /// How the mirror images and rotations leave it undetermined.
    pub symmetries: String,
    /// Spearman correlation between fitted distances and latencies.
    pub rank_correlation: Option<f64>,
}

/// A vCPU that moved, a page whose frame was replaced, a thread moved behind our back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DriftEvent {
    /// Seconds since the start of the run.
    pub at_s: f64,
    /// The core concerned.
    pub core: u16,
    /// `"base changed"`, `"thread moved"`, `"frame replaced"`.
    pub kind: String,
    /// What was seen and what was done, in one sentence.
    pub what: String,
    /// Timed loads dropped and done again.
    pub dropped_samples: u64,
    /// Milliseconds until the right base was known again.
    pub repaired_ms: Option<f64>,
}

/// How the atlas came to be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Provenance {
    /// Version of the program.
    pub version: String,
    /// Seed of every random order.
    pub seed: u64,
    /// Seconds since the epoch at the start.
    pub started_unix_s: u64,
    /// Seconds the measuring took.
    pub seconds: f64,
    /// The options in words, as given.
    pub options: Vec<String>,
    /// One line for each thing that was missing and what was done instead.
    pub missing: Vec<String>,
}

/// How much of the last-level cache a core really gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LlcShare {
    /// The core.
    pub core: u16,
    /// Bytes around which a random chase finds half of its lines in memory; `None` without two
    /// plateaus.
    pub bytes: Option<u64>,
    /// The curve behind it: bytes of the ring, nanoseconds a load.
    pub curve_ns: Vec<(u64, f64)>,
}

/// What identifies the machine that was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fingerprint {
    /// CPU model, core count, caches, hypervisor, memory.
    pub words: Vec<String>,
    /// FNV-1a hash of the words without the core count; in older atlases, of all words.
    pub hash: u64,
}

/// How far an experiment may be believed, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Graded {
    /// How far.
    pub grade: Grade,
    /// One sentence: what the machine did meanwhile, with the figure that decided.
    pub reason: String,
}

/// A whole atlas in memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Contents {
    /// Measured or simulated; an atlas of another reading is neither written nor read.
    pub reading: Reading,
    /// False if the run was interrupted.
    pub complete: bool,
    /// The machine as described by its system (or its text file).
    pub machine: Machine,
    /// The machine's state while it was measured; `None` for a simulated one.
    pub state: Option<MachineState>,
    /// Which machine it is.
    pub fingerprint: Fingerprint,
    /// The clock behind the cycles.
    pub clock: Clock,
    /// Block latency by level.
    pub levels: Vec<LevelMap>,
    /// `"host frames"`, `"guest frames"` or `"none"`: what the page table is keyed by.
    pub pages_keyed_by: String,
    /// Decoded pages; not part of the JSON text.
    #[serde(skip)]
    pub pages: Vec<PageBlock>,
    /// Core-to-region latency, one entry a mode.
    pub regions: Vec<RegionMap>,
    /// Core-to-core line transfers, one entry a state.
    pub transfers: Vec<TransferMap>,
    /// Multi-line transfer fits.
    pub multiline: Vec<MultiLineFit>,
    /// Contention, congestion, stealing, RFO.
    pub interactions: Vec<Interaction>,
    /// What the model of the CLa paper leaves out; empty where it was not measured.
    #[serde(default)]
    pub terms: Vec<CostTerm>,
    /// Bandwidth by core group and region.
    pub bandwidth: Vec<Bandwidth>,
    /// Share of the last-level cache that each core gets; empty where it was not measured.
    #[serde(default)]
    pub llc_shares: Vec<LlcShare>,
    /// Inferred floor plan.
    pub placement: Option<Placement>,
    /// How far each experiment may be believed; nothing of those that nobody graded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quality: BTreeMap<Experiment, Graded>,
    /// Drift that was noticed.
    pub drift: Vec<DriftEvent>,
    /// How it was made.
    pub provenance: Provenance,
}

impl Contents {
    /// An atlas in which nothing has been measured yet: not complete, no page keyed by a frame, of a machine
    /// whose fingerprint is empty.
    #[must_use]
    pub fn begun(reading: Reading, machine: Machine, clock: Clock) -> Self {
        Self {
            reading,
            complete: false,
            machine,
            state: None,
            fingerprint: Fingerprint { words: Vec::new(), hash: 0 },
            clock,
            levels: Vec::new(),
            pages_keyed_by: "none".to_owned(),
            pages: Vec::new(),
            regions: Vec::new(),
            transfers: Vec::new(),
            multiline: Vec::new(),
            interactions: Vec::new(),
            terms: Vec::new(),
            bandwidth: Vec::new(),
            llc_shares: Vec::new(),
            placement: None,
            quality: BTreeMap::new(),
            drift: Vec::new(),
            provenance: Provenance::default(),
        }
    }

    /// What was measured, in words: each level, each state of a line transfer, and the other experiments by the
    /// names that `isochrone map --only` has for them. Nothing of which there is no number.
    #[must_use]
    pub fn measured(&self) -> Vec<String> {
        Experiment::SHOWN.into_iter().flat_map(|experiment| self.measured_by(experiment)).collect()
    }

    /// Whether there is a number of what this experiment measures.
    #[must_use]
    pub fn has(&self, experiment: Experiment) -> bool {
        !self.measured_by(experiment).is_empty()
    }

    fn measured_by(&self, experiment: Experiment) -> Vec<String> {
        let has_cells = |matrix: &Matrix| matrix.cells.iter().any(Option::is_some);
        let title = experiment.title();
        let there = match experiment {
            Experiment::Block => {
                return self.levels.iter().map(|map| format!("{title} ({})", map.level)).collect();
            }
            Experiment::Transfer => {
                let maps = self.transfers.iter().filter(|map| has_cells(&map.latency_ns));
                return maps.map(|map| format!("{title} ({})", map.state)).collect();
            }
            Experiment::Region => self.regions.iter().any(|map| has_cells(&map.latency_ns)),
            Experiment::Multiline => {
                !self.multiline.is_empty() || self.interactions.iter().any(|i| i.ns.is_some())
            }
            Experiment::Terms => self.terms.iter().any(|term| term.ns.is_some()),
            Experiment::Bandwidth => !self.bandwidth.is_empty(),
            // Inferred from what is named already.
            Experiment::Placement => false,
        };
        there.then(|| experiment.name().to_owned()).into_iter().collect()
    }
}
