//! What jobs measured, cell by cell: ours, each MPI, their ratio, and the goals.

use isochrone_report::json::Format;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Result;
use isochrone_cla::predicted::Band;
use isochrone_console::turns::{BLOCKS_LEAST, Costs, Ratio, Verdict};
use isochrone_report::fmt;
use isochrone_report::table::{Cell as TableCell, Table};
use isochrone_stats::median;
use serde::Serialize;

use super::bands::Bands;
use super::cells::{Arm, Cell, CellTimes, Job, Mode, cells};
use super::peers::{Peer, XHC};
use super::yardstick::Transfer;
use crate::bench::Stop;
use crate::bench::findings::Findings;
use crate::bench::goals::{Beside, Goal};

/// Ranks whose calls have a predicted band: what a line takes is looked at between two.
const BANDED: u16 = 2;
/// Seed of bootstraps.
const SEED: u64 = 11;

/// One MPI in one cell.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Against {
    /// The median over the blocks of its jobs in which both have a time.
    peer_ns: f64,
    /// Ours in the same blocks.
    ours_ns: f64,
    /// How many times faster ours is, block by block; of too few for an interval, how many times in these medians.
    ratio: Option<Ratio>,
    /// Ours against ours in the same blocks.
    aa_control: Option<Ratio>,
}

impl Against {
    /// Of the cell of this number in the jobs of one MPI. `None` without a block in which both have a time.
    fn of(jobs: &[Job], number: usize) -> Option<Self> {
        let of = |arm| blocks(jobs, number, arm);
        let (mine, again, theirs) = (of(Arm::Ours), of(Arm::Control), of(Arm::Peer));
        let both = both(&theirs, &mine);
        let [peer_ns, ours_ns] = [median(&both[0])?, median(&both[1])?];
        let aa_control = paired(&self::both(&again, &mine));
        // Of few blocks a median of ratios may say the contrary of the times that stand beside it.
        let of_these = |ratio: Ratio| match ratio.has_interval() {
            true => ratio,
            false => Ratio { median: peer_ns / ours_ns, ..ratio },
        };
        Some(Self { peer_ns, ours_ns, ratio: paired(&both).map(of_these), aa_control })
    }
}

/// One cell of the table.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CellFigures {
    #[serde(flatten)]
    cell: Cell,
    /// Ours in the jobs of the best peer, in the blocks that the ratio is of.
    ours_ns: f64,
    /// The MPI that does best here.
    best_peer: String,
    /// Its time in the same blocks.
    peer_ns: f64,
    /// How many times faster ours is than that, as with each peer.
    ratio: Option<Ratio>,
    /// The share of ours inside the predicted band; null for calls that follow one another.
    inside_band: Option<f64>,
    /// The band, the median over samples: predicted.
    t_min_ns: Option<f64>,
    t_max_ns: Option<f64>,
    /// What was held against the band.
    held: Option<Held>,
    /// Null for those that are not there, as `missing` says, or have no block here in which both have a time.
    peers: BTreeMap<String, Option<Against>>,
}

/// Calls that were held against a band.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Held {
    samples: usize,
    below: usize,
    above: usize,
    /// Calls that were left out because the ranks did not begin at once.
    apart: usize,
    /// What a call takes a rank by itself, the median over rounds: measured.
    call_ns: Option<f64>,
}

/// All figures.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Figures {
    ranks: u16,
    metric: &'static str,
    peers: Vec<Peer>,
    /// Peers that could be added.
    absent: Vec<String>,
    /// What each MPI says of itself.
    versions: BTreeMap<String, String>,
    cells: Vec<CellFigures>,
    goals: Vec<Goal>,
    samples: u64,
    late_samples: u64,
    /// From when on after its moment a rank was late, ns, by what each job measured; the longest.
    late_ns: f64,
    /// Rounds of all jobs, and those during which a core was moved: they count for no band.
    rounds: usize,
    moved_rounds: usize,
    /// Block medians of every job, by peer.
    jobs: BTreeMap<String, Vec<Job>>,
}

impl CellFigures {
    /// How far ours is from itself in the jobs of the best peer.
    fn control(&self) -> Option<Ratio> {
        self.peers.get(&self.best_peer)?.as_ref()?.aa_control
    }

    /// What its ratio says; too few blocks where it has none.
    fn verdict(&self) -> Verdict {
        self.ratio.map_or(Verdict::TooFew, |ratio| ratio.verdict(self.control()))
    }
}

impl Figures {
    pub(super) fn new(ranks: u16, peers: &[Peer], absent: &[&str]) -> Self {
        Self {
            ranks,
            metric: "ns from when the last rank began to when the last rank was done; medians of \
                     blocks, which are medians of calls (isolated) or means (alternating, steady)",
            peers: peers.to_vec(),
            absent: absent.iter().map(|&name| name.to_owned()).collect(),
            versions: BTreeMap::new(),
            cells: Vec::new(),
            goals: Vec::new(),
            samples: 0,
            late_samples: 0,
            late_ns: 0.0,
            rounds: 0,
            moved_rounds: 0,
            jobs: BTreeMap::new(),
        }
    }

    /// Blocks of all jobs of a peer.
    pub(super) fn blocks_of(&self, peer: &str) -> usize {
        self.jobs.get(peer).into_iter().flatten().map(|job| job.rounds.len()).sum()
    }

    /// Cells that have a time, and all.
    pub(super) fn cells_timed(&self) -> [usize; 2] {
        [self.cells.len(), cells().len()]
    }

    /// A peer that could not be measured.
    pub(super) fn lose(&mut self, peer: &str) {
        self.absent.push(peer.to_owned());
    }

    /// Adds a job, and figures everything anew.
    pub(super) fn add(&mut self, peer: &str, job: Job) {
        self.samples += job.samples;
        self.late_samples += job.late;
        self.late_ns = self.late_ns.max(job.late_ns);
        self.versions.insert(peer.to_owned(), job.mpi.clone());
        self.jobs.entry(peer.to_owned()).or_default().push(job);
        self.cells =
            cells().iter().enumerate().filter_map(|(n, (_, cell))| self.cell(n, cell)).collect();
        self.goals = goals(&self.cells);
    }

    fn cell(&self, number: usize, cell: &Cell) -> Option<CellFigures> {
        let mut peers: BTreeMap<String, Option<Against>> = BTreeMap::new();
        for (name, jobs) in &self.jobs {
            peers.insert(name.clone(), Against::of(jobs, number));
        }
        let present = peers.iter().filter_map(|(name, against)| Some((name, against.as_ref()?)));
        let (best, against) = present.min_by(|a, b| a.1.peer_ns.total_cmp(&b.1.peer_ns))?;
        let (best_peer, against) = (best.clone(), against.clone());
        let Against { peer_ns, ours_ns, ratio, .. } = against;
        peers.extend(self.absent.iter().map(|name| (name.clone(), None)));
        let cell = cell.clone();
        let (inside_band, t_min_ns, t_max_ns, held) = (None, None, None, None);
        Some(CellFigures {
            cell,
            ours_ns,
            best_peer,
            peer_ns,
            ratio,
            inside_band,
            t_min_ns,
            t_max_ns,
            held,
            peers,
        })
    }

    /// Prices every isolated cell in every round, and counts which samples are inside.
    pub(super) fn hold_against_bands(&mut self, stop: &Stop) -> Result<(usize, u32)> {
        let jobs: Vec<&Job> = self.jobs.values().flatten().collect();
        let stayed = |round: &[Transfer; 2]| Transfer::stayed(&round[0], &round[1]);
        self.rounds = jobs.iter().map(|job| job.rounds.len()).sum();
        let still = jobs.iter().flat_map(|job| &job.rounds).filter(|round| stayed(round)).count();
        self.moved_rounds = self.rounds - still;
        let (mut held, mut wanted) = (0, 0);
        if self.ranks != BANDED {
            return Ok((held, wanted));
        }
        for (number, (kind, cell)) in cells().iter().enumerate() {
            let priced = cell.mode == Mode::Isolated;
            let Some(figures) = self.cells.iter_mut().find(|figures| figures.cell == *cell) else {
                continue;
            };
            if !priced {
                continue;
            }
            wanted += 1;
            if stop.is_set() {
                continue;
            }
            held += 1;
            let mut bands = Bands::of(*kind, cell.bytes)?;
            let mut found = Found::default();
            for job in &jobs {
                let Some(times) = job.cells.get(number) else { continue };
                for samples in &times.samples {
                    let round = job.rounds.get(samples.round).filter(|round| stayed(round));
                    let Some([transfer, _]) = round else { continue };
                    found.apart += samples.apart;
                    found.call_ns.push(samples.call_ns);
                    for (&ns, &call) in samples.ns.iter().zip(&samples.calls) {
                        found.add(bands.band(call, transfer, samples.call_ns)?, ns);
                    }
                }
            }
            figures.inside_band = found.share();
            figures.held = Some(found.held());
            figures.t_min_ns = median(&found.min_ns);
            figures.t_max_ns = median(&found.max_ns);
        }
        Ok((held, wanted))
    }
}

impl Findings for Figures {
    const FORMAT: Format = Format::BenchColl;

    fn text(&self, width: u16) -> String {
        if self.cells.is_empty() {
            return "no cell has a time\n".to_owned();
        }
        let mut text = self.ratios().to_terminal(width) + "\n";
        let _ = writeln!(
            text,
            "ours and peer are medians over blocks, faster that of their ratios in the same blocks; of fewer than \
             {BLOCKS_LEAST} it is peer over ours"
        );
        let bands = self.bands();
        if !bands.is_empty() {
            text += &(bands.to_terminal(width) + "\n");
        }
        for goal in &self.goals {
            text += &(goal.words() + "\n");
        }
        let is = |verdict| self.cells.iter().filter(move |cell| cell.verdict() == verdict).count();
        let (lost, few) = (is(Verdict::Loss), is(Verdict::TooFew));
        let unknown = match few {
            0 => String::new(),
            few => format!(", not known of {few}, which have too few blocks"),
        };
        let _ = writeln!(
            text,
            "slower than the best peer, beyond the control: {lost} of {} cells{unknown}; {} of {} samples \
             dropped, a rank more than {} late; {} of {} rounds have no band, since a core was moved",
            self.cells.len(),
            self.late_samples,
            self.samples,
            fmt::ns(self.late_ns),
            self.moved_rounds,
            self.rounds
        );
        text
    }
}

impl Figures {
    /// Ours beside the best peer, cell by cell.
    fn ratios(&self) -> Table {
        let names = ["collective", "bytes", "calls", "ours", "peer", "best peer", "faster"];
        let mut table = Table::new(names).keyed(3);
        for cell in &self.cells {
            let ns = |ns: f64| TableCell::number(ns, fmt::ns(ns));
            let faster = cell.ratio.map_or_else(TableCell::missing, |ratio| {
                TableCell::number(ratio.median, ratio.to_string())
            });
            let [op, bytes, calls] = keys(&cell.cell);
            let best = TableCell::text(&cell.best_peer);
            table.row([op, bytes, calls, ns(cell.ours_ns), ns(cell.peer_ns), best, faster]);
        }
        table
    }

    /// The cells that were held against a band.
    fn bands(&self) -> Table {
        let names = ["collective", "bytes", "calls", "T_min", "T_max", "inside"];
        let mut table = Table::new(names).keyed(3);
        for cell in &self.cells {
            let Some(inside) = cell.inside_band else { continue };
            let ns = |ns: Option<f64>| TableCell::maybe(ns, fmt::ns);
            let [op, bytes, calls] = keys(&cell.cell);
            let inside = TableCell::text(fmt::percent(inside));
            table.row([op, bytes, calls, ns(cell.t_min_ns), ns(cell.t_max_ns), inside]);
        }
        table
    }
}

/// Samples held against bands.
#[derive(Default)]
struct Found {
    samples: usize,
    below: usize,
    above: usize,
    apart: usize,
    min_ns: Vec<f64>,
    max_ns: Vec<f64>,
    call_ns: Vec<f64>,
}

impl Found {
    fn add(&mut self, band: Band, ns: f64) {
        self.samples += 1;
        let outside = !band.holds(ns);
        self.below += usize::from(outside && ns < band.min_ns);
        self.above += usize::from(outside && ns > band.min_ns);
        self.min_ns.push(band.min_ns);
        self.max_ns.push(band.max_ns);
    }

    #[allow(clippy::cast_precision_loss, reason = "counts of samples are far below 2^52")]
    fn share(&self) -> Option<f64> {
        let inside = self.samples - self.below - self.above;
        (self.samples > 0).then(|| inside as f64 / self.samples as f64)
    }

    fn held(&self) -> Held {
        Held {
            samples: self.samples,
            below: self.below,
            above: self.above,
            apart: self.apart,
            call_ns: median(&self.call_ns),
        }
    }
}

fn words(mode: Mode) -> &'static str {
    match mode {
        Mode::Isolated => "isolated",
        Mode::Alternating => "alternating",
        Mode::Steady => "steady",
    }
}

/// What says in a table which cell it is.
fn keys(cell: &Cell) -> [TableCell; 3] {
    let bytes = TableCell::number(cell.bytes as f64, cell.bytes.to_string());
    [TableCell::text(&cell.op), bytes, TableCell::text(words(cell.mode))]
}

/// All blocks of one arm in one cell, job after job.
fn blocks(jobs: &[Job], number: usize, arm: Arm) -> Vec<Option<f64>> {
    let of = |job: &Job| -> Vec<Option<f64>> {
        let times: Option<&CellTimes> = job.cells.get(number);
        times.and_then(|times| times.block_ns.get(&arm)).cloned().unwrap_or_default()
    };
    jobs.iter().flat_map(of).collect()
}

/// The times of two arms in the blocks in which both have one.
fn both(one: &[Option<f64>], other: &[Option<f64>]) -> [Vec<f64>; 2] {
    let pairs = one.iter().zip(other).filter_map(|(a, b)| Some(((*a)?, (*b)?)));
    let (one, other) = pairs.unzip();
    [one, other]
}

/// The ratio over these blocks.
fn paired([over, under]: &[Vec<f64>; 2]) -> Option<Ratio> {
    Ratio::paired(Costs::measured(over), Costs::measured(under), SEED)
}

/// The goals: against the best peer, and nowhere much slower.
fn goals(cells: &[CellFigures]) -> Vec<Goal> {
    let of = |cell: &CellFigures| Some((cell.ratio?, cell.control()));
    let least = |cells: &mut dyn Iterator<Item = Beside>| {
        cells.min_by(|a, b| a.0.median.total_cmp(&b.0.median))
    };
    let goal = |words: &str, wanted: f64, (op, bytes, mode): (&str, usize, Mode)| {
        let is_it =
            |c: &&CellFigures| (c.cell.op.as_str(), c.cell.bytes, c.cell.mode) == (op, bytes, mode);
        Goal::new(words, wanted, cells.iter().find(is_it).and_then(of))
    };
    let (isolated, steady) = (Mode::Isolated, Mode::Steady);
    let turns = ("bcast", 8, Mode::Alternating);
    let mut goals = vec![
        goal("isolated broadcast of 8 bytes", 4.0, ("bcast", 8, isolated)),
        goal("broadcast of 8 bytes, roots alternating", 4.0, turns),
        goal("isolated barrier", 3.0, ("barrier", 0, isolated)),
        goal("isolated allreduce of 8 bytes", 4.0, ("allreduce", 8, isolated)),
        goal("steady broadcast of 8 bytes", 1.5, ("bcast", 8, steady)),
        Goal::new("the worst cell", 0.9, least(&mut cells.iter().filter_map(of))),
    ];
    let xhc = |cell: &CellFigures| cell.peers.get(XHC)?.as_ref().cloned();
    let xhc = |cell: &CellFigures| xhc(cell).and_then(|xhc| Some((xhc.ratio?, xhc.aa_control)));
    let worst = least(&mut cells.iter().filter_map(xhc));
    goals.extend(worst.map(|cell| Goal::new("the worst cell against xhc", 1.0, Some(cell))));
    goals
}

#[cfg(test)]
mod tests;
