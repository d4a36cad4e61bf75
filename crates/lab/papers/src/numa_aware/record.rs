//! One simulated run as a line of a results file: what was run, and everything that was counted. All
//! figures are worked out from this, so a table made from a file is the one made from runs.

use isochrone_machine::Machine;
use isochrone_os::clock::thread_cpu_ns;
use isochrone_sim::coherence::{Class, Direction, MessageBytes, NumaSpec};
use isochrone_tasks::{Regime, Schedule};
use isochrone_units::Reading;
use isochrone_workloads::numa::{Bench, Case, Outcome, Size, Variant, run};
use serde::{Deserialize, Serialize};

use crate::args::SizeChoice;

/// What is run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Key {
    /// The benchmark.
    pub(crate) bench: String,
    /// The machine's name.
    pub(crate) machine: String,
    /// The regime.
    pub(crate) regime: String,
    /// What was changed, joined by `+`; empty if nothing was.
    pub(crate) variant: String,
    /// Workers.
    pub(crate) threads: u16,
    /// Seed of every random choice.
    pub(crate) seed: u64,
    /// Whether the input is the paper's.
    pub(crate) paper_size: bool,
}

impl Key {
    /// A run of the paper's input with nothing changed.
    pub(crate) fn new(machine: &str, bench: Bench, regime: Regime, threads: u16) -> Self {
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
    pub(crate) fn with(mut self, variants: &[Variant]) -> Self {
        let names: Vec<&str> = variants.iter().map(|variant| variant.name()).collect();
        self.variant = names.join("+");
        self
    }

    /// With this seed.
    pub(crate) const fn seeded(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// In words.
    pub(crate) fn words(&self) -> String {
        let Self { bench, regime, variant, threads, seed, .. } = self;
        let changed = if variant.is_empty() { String::new() } else { format!(" {variant}") };
        format!("{bench} {regime}{changed}, {threads} threads, seed {seed}")
    }
}

/// The run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    #[serde(flatten)]
    pub(crate) key: Key,
    /// What numbers these are.
    pub(crate) reading: Reading,
    /// Whether all tasks ran, data out are data in, and no answer came without a question.
    pub(crate) verified: bool,
    /// The benchmark itself, without setting its data up; virtual.
    pub(crate) seconds: f64,
    pub(crate) setup_seconds: f64,
    pub(crate) tasks: u64,
    /// Of each module's switch: DWB, DTC, HREQ, SNP, HRSP, NDR, each in and out, in messages.
    pub(crate) messages: Vec<[[u64; 2]; 6]>,
    /// Bytes of a message without a line and with one.
    pub(crate) message_bytes: (f64, f64),
    /// Lines that passed between sockets of a module, by the node they came from.
    pub(crate) near_lines: Vec<u64>,
    /// Lines read from, and written to, each node's memory.
    pub(crate) memory_reads: Vec<u64>,
    pub(crate) memory_writes: Vec<u64>,
    /// Lines that another cache delivered.
    pub(crate) from_caches: u64,
    /// Lines of data by the node that has their memory.
    pub(crate) homes: Vec<u64>,
    /// Directory of each module: lines listed at the end, most lines, lines evicted.
    pub(crate) directories: Vec<(u64, u64, u64)>,
    /// Time of all workers, ns: arithmetic, lines as if alone, first touches, and everything.
    pub(crate) compute_ns: f64,
    pub(crate) lines_ns: f64,
    pub(crate) fault_ns: f64,
    pub(crate) task_ns: f64,
    /// Energy of memory, of near and of far links, J.
    pub(crate) energy_j: (f64, f64, f64),
    /// Bytes that tasks declared, by distance: own region, nearest, and so on; and interleaved ones.
    pub(crate) declared_bytes: Vec<u64>,
    pub(crate) spread_bytes: u64,
    /// Tasks taken from other regions.
    pub(crate) steals: u64,
    /// Values that were assumed instead of computed, the first of them, and how many there were.
    pub(crate) assumed: Vec<String>,
    pub(crate) assumptions: u64,
    /// What the simulation itself took; seconds are those of one core.
    pub(crate) touches: u64,
    pub(crate) solved: u64,
    pub(crate) host_seconds: f64,
    pub(crate) data_bytes: u64,
    pub(crate) state_bytes: u64,
    /// What partitions of the task graph took, s of one core of this machine: measured.
    #[serde(default)]
    pub(crate) partition_seconds: f64,
}

/// Bytes of a line.
const LINE: f64 = 64.0;

#[allow(clippy::cast_precision_loss, reason = "counts of a run are far below 2^53")]
pub(crate) const fn real(n: u64) -> f64 {
    n as f64
}

impl Record {
    /// Runs a case.
    pub(crate) fn make(
        machine: &Machine,
        spec: &NumaSpec,
        key: &Key,
    ) -> Result<Self, anyhow::Error> {
        Self::followed(machine, spec, key, |_| ()).map(|(record, _)| record)
    }

    /// Runs a case after a last change to it; its schedule as well, where the change asks for it.
    pub(crate) fn followed(
        machine: &Machine,
        spec: &NumaSpec,
        key: &Key,
        change: impl FnOnce(&mut Case),
    ) -> Result<(Self, Option<Schedule>), anyhow::Error> {
        let bench: Bench = key.bench.parse().map_err(anyhow::Error::msg)?;
        let regime: Regime = key.regime.parse().map_err(anyhow::Error::msg)?;
        let variants = parse_variants(&key.variant)?;
        let mut spec = spec.clone();
        let mut case = Case::new(bench, regime, usize::from(key.threads), key.seed);
        if !key.paper_size {
            case.size = Size::small(bench);
        }
        for variant in variants {
            variant.apply(&mut case, &mut spec);
        }
        change(&mut case);
        spec.validate()?;
        let begin = thread_cpu_ns();
        let mut outcome = run(machine, &spec, &case)?;
        let host_seconds = real(thread_cpu_ns() - begin) / 1e9;
        let schedule = outcome.schedule.take();
        Ok((Self::of(key.clone(), &spec, outcome, host_seconds), schedule))
    }

    fn of(key: Key, spec: &NumaSpec, outcome: Outcome, host_seconds: f64) -> Self {
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
    pub(crate) fn count(&self, classes: &[Class], way: Direction) -> u64 {
        let of = |module: &[[u64; 2]; 6]| {
            classes.iter().map(|class| module[*class as usize][way as usize]).sum::<u64>()
        };
        self.messages.iter().map(of).sum()
    }

    const fn size(&self, class: Class) -> f64 {
        if class.is_data() { self.message_bytes.1 } else { self.message_bytes.0 }
    }

    /// Bytes of one class at one module's switch, one way.
    pub(crate) fn bytes(&self, module: usize, class: Class, way: Direction) -> f64 {
        real(self.messages[module][class as usize][way as usize]) * self.size(class)
    }

    /// Bytes of one class over all switches, one way.
    pub(crate) fn class_bytes(&self, class: Class, way: Direction) -> f64 {
        (0..self.messages.len()).map(|module| self.bytes(module, class, way)).sum()
    }

    /// Coherence movement, in and out, of the classes given; of all for `None`.
    pub(crate) fn movement(&self, classes: Option<&[Class]>) -> f64 {
        let classes = classes.unwrap_or(&Class::ALL);
        let ways = |class: &Class| Direction::ALL.map(|way| self.class_bytes(*class, way));
        classes.iter().flat_map(ways).sum()
    }

    /// Movement at each module's switch, one way.
    pub(crate) fn by_module(&self, way: Direction) -> Vec<f64> {
        let of = |module| Class::ALL.iter().map(|class| self.bytes(module, *class, way)).sum();
        (0..self.messages.len()).map(of).collect()
    }

    /// Coherence bandwidth, GB/s, in and out.
    pub(crate) fn bandwidth(&self) -> f64 {
        self.movement(None) / self.seconds / 1e9
    }

    /// Bytes to and from memory.
    pub(crate) fn memory_bytes(&self) -> f64 {
        let lines: u64 = self.memory_reads.iter().chain(&self.memory_writes).sum();
        real(lines) * LINE
    }

    /// Bytes between sockets of one module, as messages with lines.
    pub(crate) fn near_bytes(&self) -> f64 {
        real(self.near_lines.iter().sum()) * self.message_bytes.1
    }

    /// Most over median of the modules' movement; `None` where next to nothing moved.
    pub(crate) fn skew(&self) -> Option<f64> {
        let ways = Direction::ALL.map(|way| self.by_module(way));
        let all: Vec<f64> = ways[0].iter().zip(&ways[1]).map(|(a, b)| a + b).collect();
        skew(&all)
    }

    /// The part of the benchmark's lines that crossed between modules.
    pub(crate) fn far_share(&self) -> f64 {
        let reads = real(self.memory_reads.iter().sum::<u64>() + self.from_caches);
        if reads > 0.0 { real(self.count(&[Class::Dtc], Direction::Out)) / reads } else { 0.0 }
    }

    /// Which of the paper's three modes of behaviour this run shows, and by what.
    pub(crate) fn mode(&self) -> (u8, &'static str) {
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
pub(crate) const UNEVEN: f64 = 3.0;

/// Most over median.
pub(crate) fn skew(values: &[f64]) -> Option<f64> {
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
pub(crate) fn parse_variants(text: &str) -> Result<Vec<Variant>, anyhow::Error> {
    let parts = text.split('+').filter(|part| !part.is_empty() && *part != "plain");
    parts.map(|part| part.parse().map_err(anyhow::Error::msg)).collect()
}

/// Whether a size is the paper's.
pub(crate) const fn is_paper(size: SizeChoice) -> bool {
    matches!(size, SizeChoice::Paper)
}
