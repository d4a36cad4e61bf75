//! One simulated run as a line of a results file: what was run, and everything that was counted. All
//! figures are worked out from this, so a table made from a file is the one made from runs.

use isochrone_sim::coherence::{Class, Direction, MessageBytes, NumaSpec};
use isochrone_tasks::Regime;
use isochrone_units::Reading;
use isochrone_workloads::numa::{Bench, Case, Outcome, Size, Variant};
use serde::{Deserialize, Serialize};

/// What is run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Key {
    /// The benchmark.
    pub bench: String,
    /// The machine's name.
    pub machine: String,
    /// The regime.
    pub regime: String,
    /// What was changed, joined by `+`; empty if nothing was.
    pub variant: String,
    /// How many workers.
    pub threads: u16,
    /// Seed of every random choice.
    pub seed: u64,
    /// Whether the input is the paper's.
    pub paper_size: bool,
}

impl Key {
    /// A run of the paper's input with nothing changed.
    pub fn new(machine: &str, bench: Bench, regime: Regime, threads: u16) -> Self {
        Self {
            bench: bench.name().to_owned(),
            machine: machine.to_owned(),
            regime: regime.name().to_owned(),
            variant: String::new(),
            threads,
            seed: 1,
            paper_size: true,
        }
    }

    /// With these changes.
    pub fn with(mut self, variants: &[Variant]) -> Self {
        let names: Vec<&str> = variants.iter().map(|variant| variant.name()).collect();
        self.variant = names.join("+");
        self
    }

    /// With this seed.
    pub const fn seeded(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The run on a machine, and the machine, as the variants leave them.
    ///
    /// # Errors
    /// When a word of the key names no benchmark, regime or variant.
    pub fn ready(&self, spec: &NumaSpec) -> Result<Ready, anyhow::Error> {
        let bench: Bench = self.bench.parse().map_err(anyhow::Error::msg)?;
        let regime: Regime = self.regime.parse().map_err(anyhow::Error::msg)?;
        let case = Case::new(bench, regime, usize::from(self.threads), self.seed);
        let mut ready = Ready { case, spec: spec.clone() };
        if !self.paper_size {
            ready.case.size = Size::small(bench);
        }
        for variant in parse_variants(&self.variant)? {
            variant.apply(&mut ready.case, &mut ready.spec);
        }
        Ok(ready)
    }

    /// In words.
    pub fn words(&self) -> String {
        let Self { bench, regime, variant, threads, seed, .. } = self;
        let changed = if variant.is_empty() { String::new() } else { format!(" {variant}") };
        format!("{bench} {regime}{changed}, {threads} threads, seed {seed}")
    }
}

/// A run that may begin.
#[derive(Clone, Debug)]
pub struct Ready {
    /// What is run.
    pub case: Case,
    /// On which machine.
    pub spec: NumaSpec,
}

/// A finished run, and everything that was counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Record {
    /// What was run.
    #[serde(flatten)]
    pub key: Key,
    /// What numbers these are.
    pub reading: Reading,
    /// Whether all tasks ran, data out are data in, and no answer came without a question.
    pub verified: bool,
    /// The benchmark itself, without setting its data up; virtual.
    pub seconds: f64,
    /// Setting the data up; virtual.
    pub setup_seconds: f64,
    /// Tasks that ran.
    pub tasks: u64,
    /// Of each module's switch: DWB, DTC, HREQ, SNP, HRSP, NDR, each in and out, in messages.
    pub messages: Vec<[[u64; 2]; 6]>,
    /// Bytes of a message without a line and with one.
    pub message_bytes: (f64, f64),
    /// Lines that passed between sockets of a module, by the node they came from.
    pub near_lines: Vec<u64>,
    /// Lines read from each node's memory.
    pub memory_reads: Vec<u64>,
    /// Lines written to each node's memory.
    pub memory_writes: Vec<u64>,
    /// Lines that another cache delivered.
    pub from_caches: u64,
    /// Lines of data by the node that has their memory.
    pub homes: Vec<u64>,
    /// Directory of each module: lines listed at the end, most lines, lines evicted.
    pub directories: Vec<(u64, u64, u64)>,
    /// Arithmetic of all workers together, ns.
    pub compute_ns: f64,
    /// Lines of all workers, as if each worker were alone, ns.
    pub lines_ns: f64,
    /// First touches of all workers, ns.
    pub fault_ns: f64,
    /// Tasks of all workers, everything in them, ns.
    pub task_ns: f64,
    /// The runtime's own lines and its waits for locks, ns; 0 where they are not simulated.
    #[serde(default)]
    pub runtime_ns: f64,
    /// Energy of memory, of near and of far links, J.
    pub energy_j: (f64, f64, f64),
    /// Bytes that tasks declared, by distance: own region, nearest, and so on.
    pub declared_bytes: Vec<u64>,
    /// Bytes that tasks declared of memory that is interleaved.
    pub spread_bytes: u64,
    /// Tasks taken from other regions.
    pub steals: u64,
    /// The first of the values that were assumed instead of computed, in words.
    pub assumed: Vec<String>,
    /// How many values were assumed.
    pub assumptions: u64,
    /// Touches of lines that were simulated.
    pub touches: u64,
    /// Events that were solved.
    pub solved: u64,
    /// What the simulation took, s of one core of this machine: measured.
    pub host_seconds: f64,
    /// Bytes of the data that exist in the simulation alone.
    pub data_bytes: u64,
    /// Bytes of this machine's memory that the simulation kept.
    pub state_bytes: u64,
    /// What partitions of the task graph took, s of one core of this machine: measured.
    #[serde(default)]
    pub partition_seconds: f64,
}

/// Bytes of a line.
const LINE: f64 = 64.0;

/// A count as a number to divide by.
#[allow(clippy::cast_precision_loss, reason = "counts of a run are far below 2^53")]
pub const fn real(n: u64) -> f64 {
    n as f64
}

impl Record {
    /// The record of a finished run, with what it took of one core of this machine, s.
    pub fn of(key: Key, spec: &NumaSpec, outcome: Outcome, host_seconds: f64) -> Self {
        let messages: Vec<[[u64; 2]; 6]> = outcome
            .traffic
            .iter()
            .map(|one| Class::ALL.map(|class| Direction::ALL.map(|way| one[(class, way)])))
            .collect();
        let MessageBytes { control, data } = spec.bytes;
        let mut record = Self {
            key,
            reading: Reading::Simulated,
            verified: false,
            seconds: outcome.seconds,
            setup_seconds: outcome.setup_s,
            tasks: outcome.report.tasks,
            messages,
            message_bytes: (control, data),
            near_lines: outcome.moved.near,
            memory_reads: outcome.moved.memory_reads,
            memory_writes: outcome.moved.memory_writes,
            from_caches: outcome.moved.from_caches,
            homes: outcome.homes,
            directories: outcome.directories,
            compute_ns: outcome.spent.compute_ns,
            lines_ns: outcome.spent.lines_ns,
            fault_ns: outcome.spent.fault_ns,
            task_ns: outcome.spent.task_ns,
            runtime_ns: outcome.spent.runtime_ns,
            energy_j: (0.0, 0.0, 0.0),
            declared_bytes: outcome.report.bytes,
            spread_bytes: outcome.report.spread_bytes,
            steals: outcome.report.steals.iter().sum(),
            assumed: outcome.assumed.0.into_iter().take(3).collect(),
            assumptions: outcome.assumed.1,
            touches: outcome.touches,
            solved: outcome.solved,
            host_seconds,
            data_bytes: outcome.bytes.0,
            state_bytes: outcome.bytes.1 as u64,
            partition_seconds: outcome.partition_s,
        };
        let pj = |bytes: f64, each: f64| bytes * each / 1e12;
        record.energy_j = (
            pj(record.memory_bytes(), spec.energy.memory),
            pj(record.near_bytes(), spec.energy.near),
            // A message that crosses the system enters one switch and leaves another.
            pj(record.movement(None) / 2.0, spec.energy.far),
        );
        record.verified = record.verify(outcome.report.left_out);
        record
    }

    fn verify(&self, left_out: u64) -> bool {
        let lines = |way| self.count(&[Class::Dwb, Class::Dtc], way);
        let (asked, answered) =
            (self.count(&[Class::Snp], Direction::Out), self.count(&[Class::Hrsp], Direction::In));
        left_out == 0
            && self.tasks > 0
            && self.seconds > 0.0
            && lines(Direction::In) == lines(Direction::Out)
            && answered <= asked
    }

    /// Messages of these classes, one way, over all switches.
    pub fn count(&self, classes: &[Class], way: Direction) -> u64 {
        let of = |module: &[[u64; 2]; 6]| {
            classes.iter().map(|class| module[*class as usize][way as usize]).sum::<u64>()
        };
        self.messages.iter().map(of).sum()
    }

    const fn size(&self, class: Class) -> f64 {
        if class.is_data() { self.message_bytes.1 } else { self.message_bytes.0 }
    }

    /// Bytes of one class at one module's switch, one way.
    pub fn bytes(&self, module: usize, class: Class, way: Direction) -> f64 {
        real(self.messages[module][class as usize][way as usize]) * self.size(class)
    }

    /// Bytes of one class over all switches, one way.
    pub fn class_bytes(&self, class: Class, way: Direction) -> f64 {
        (0..self.messages.len()).map(|module| self.bytes(module, class, way)).sum()
    }

    /// Coherence movement, in and out, of the classes given; of all for `None`.
    pub fn movement(&self, classes: Option<&[Class]>) -> f64 {
        let classes = classes.unwrap_or(&Class::ALL);
        let ways = |class: &Class| Direction::ALL.map(|way| self.class_bytes(*class, way));
        classes.iter().flat_map(ways).sum()
    }

    /// Movement at each module's switch, one way.
    pub fn by_module(&self, way: Direction) -> Vec<f64> {
        let of = |module| Class::ALL.iter().map(|class| self.bytes(module, *class, way)).sum();
        (0..self.messages.len()).map(of).collect()
    }

    /// Coherence bandwidth, GB/s, in and out.
    pub fn bandwidth(&self) -> f64 {
        self.movement(None) / self.seconds / 1e9
    }

    /// Bytes to and from memory.
    pub fn memory_bytes(&self) -> f64 {
        let lines: u64 = self.memory_reads.iter().chain(&self.memory_writes).sum();
        real(lines) * LINE
    }

    /// Bytes between sockets of one module, as messages with lines.
    pub fn near_bytes(&self) -> f64 {
        real(self.near_lines.iter().sum()) * self.message_bytes.1
    }

    /// Most over median of the modules' movement; `None` where next to nothing moved.
    pub fn skew(&self) -> Option<f64> {
        let ways = Direction::ALL.map(|way| self.by_module(way));
        let all: Vec<f64> = ways[0].iter().zip(&ways[1]).map(|(a, b)| a + b).collect();
        skew(&all)
    }

    /// The part of the benchmark's lines that crossed between modules.
    pub fn far_share(&self) -> f64 {
        let reads = real(self.memory_reads.iter().sum::<u64>() + self.from_caches);
        if reads > 0.0 { real(self.count(&[Class::Dtc], Direction::Out)) / reads } else { 0.0 }
    }

    /// Which of the paper's three modes of behaviour this run shows, and by what.
    pub fn mode(&self) -> (u8, &'static str) {
        let memory: Vec<f64> = self
            .memory_reads
            .iter()
            .zip(&self.memory_writes)
            .map(|(read, written)| real(read + written))
            .collect();
        // As many lines as would cross if data lay anywhere, halved.
        let modules = real(self.messages.len() as u64);
        let anywhere = (modules - 1.0) / modules / 2.0;
        if skew(&memory).is_some_and(|skew| skew > UNEVEN) {
            (1, "non-uniform utilisation of the machine")
        } else if self.messages.len() > 1 && self.far_share() > anywhere {
            (2, "uniform, but energy-inefficient utilisation")
        } else {
            (3, "uniform and energy-efficient utilisation")
        }
    }
}

/// Most over median above which resources count as unevenly used (the judging list's number for Figure 7).
pub const UNEVEN: f64 = 3.0;

/// Most over median.
pub fn skew(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (middle, last) = (sorted.len() / 2, sorted.last().copied()?);
    let median = match sorted.len() % 2 {
        0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
        _ => sorted[middle],
    };
    (last > 0.0).then(|| if median > 0.0 { last / median } else { f64::INFINITY })
}

/// `a+b` as variants.
pub fn parse_variants(text: &str) -> Result<Vec<Variant>, anyhow::Error> {
    let parts = text.split('+').filter(|part| !part.is_empty() && *part != "plain");
    parts.map(|part| part.parse().map_err(anyhow::Error::msg)).collect()
}
