//! What jobs measured, cell by cell: ours, each MPI, their ratio, and the goals.

use isochrone_report::json::Format;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Result;
use isochrone_cla::predicted::Band;
use isochrone_console::turns::{Costs, Ratio, Verdict};
use isochrone_report::fmt;
use isochrone_report::table::{Cell as TableCell, Table};
use isochrone_stats::median;
use serde::Serialize;

use super::bands::Bands;
use super::cells::{Arm, Cell, CellTimes, Job, Mode, cells};
use super::peers::{Peer, XHC};
use super::yardstick::Transfer;
use crate::bench::Findings;

/// Ranks whose calls have a predicted band: what a line takes is looked at between two.
const BANDED: u16 = 2;
/// Seed of bootstraps.
const SEED: u64 = 11;

/// One MPI in one cell.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Against {
    peer_ns: f64,
    /// Ours in the same jobs.
    ours_ns: f64,
    /// How many times faster ours is, block by block.
    ratio: Option<Ratio>,
    /// Ours against ours in the same blocks.
    aa_control: Option<Ratio>,
}

/// One cell of the table.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CellFigures {
    #[serde(flatten)]
    cell: Cell,
    /// The median over the blocks of all jobs.
    ours_ns: f64,
    /// The MPI that does best here.
    best_peer: String,
    /// Its time.
    peer_ns: f64,
    /// How many times faster ours is than that.
    ratio: Option<Ratio>,
    /// The share of ours inside the predicted band; null for calls that follow one another.
    inside_band: Option<f64>,
    /// The band, the median over samples: predicted.
    t_min_ns: Option<f64>,
    t_max_ns: Option<f64>,
    /// What was held against the band.
    held: Option<Held>,
    /// Null for those that are not there; `missing` says why.
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

/// A goal and whether it was met, against the best peer of each cell.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Goal {
    goal: String,
    wanted: f64,
    got: Option<f64>,
    met: bool,
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
        let mut peers = BTreeMap::new();
        let mut ours = Vec::new();
        for (name, jobs) in &self.jobs {
            let of = |arm| blocks(jobs, number, arm);
            let (mine, again, theirs) = (of(Arm::Ours), of(Arm::Control), of(Arm::Peer));
            let against = Against {
                peer_ns: median(&there(&theirs))?,
                ours_ns: median(&there(&mine))?,
                ratio: paired(&theirs, &mine),
                aa_control: paired(&again, &mine),
            };
            peers.insert(name.clone(), Some(against));
            ours.extend(there(&mine));
        }
        let present = peers.iter().filter_map(|(name, against)| Some((name, against.as_ref()?)));
        let (best, against) = present.min_by(|a, b| a.1.peer_ns.total_cmp(&b.1.peer_ns))?;
        let (best_peer, peer_ns, ratio) = (best.clone(), against.peer_ns, against.ratio);
        peers.extend(self.absent.iter().map(|name| (name.clone(), None)));
        let ours_ns = median(&ours)?;
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
    pub(super) fn hold_against_bands(&mut self) -> Result<()> {
        let jobs: Vec<&Job> = self.jobs.values().flatten().collect();
        let stayed = |round: &[Transfer; 2]| Transfer::stayed(&round[0], &round[1]);
        self.rounds = jobs.iter().map(|job| job.rounds.len()).sum();
        let still = jobs.iter().flat_map(|job| &job.rounds).filter(|round| stayed(round)).count();
        self.moved_rounds = self.rounds - still;
        if self.ranks != BANDED {
            return Ok(());
        }
        for (number, (kind, cell)) in cells().iter().enumerate() {
            let priced = cell.mode == Mode::Isolated;
            let Some(figures) = self.cells.iter_mut().find(|figures| figures.cell == *cell) else {
                continue;
            };
            if !priced {
                continue;
            }
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
        Ok(())
    }
}

impl Findings for Figures {
    const FORMAT: Format = Format::BenchColl;

    fn text(&self, width: u16) -> String {
        let mut table = Table::new([
            "collective",
            "bytes",
            "calls",
            "ours",
            "peer",
            "best peer",
            "faster",
            "T_min",
            "T_max",
            "inside",
        ])
        .keyed(3);
        let number = |ns: Option<f64>| {
            ns.map_or_else(|| TableCell::text(""), |ns| TableCell::number(ns, fmt::ns(ns)))
        };
        for cell in &self.cells {
            let faster = cell.ratio;
            let faster = faster.map_or_else(TableCell::missing, |ratio| {
                TableCell::number(ratio.median, ratio.to_string())
            });
            table.row([
                TableCell::text(&cell.cell.op),
                TableCell::number(cell.cell.bytes as f64, cell.cell.bytes.to_string()),
                TableCell::text(words(cell.cell.mode)),
                TableCell::number(cell.ours_ns, fmt::ns(cell.ours_ns)),
                TableCell::number(cell.peer_ns, fmt::ns(cell.peer_ns)),
                TableCell::text(&cell.best_peer),
                faster,
                number(cell.t_min_ns),
                number(cell.t_max_ns),
                TableCell::text(cell.inside_band.map_or_else(String::new, fmt::percent)),
            ]);
        }
        let mut text = table.to_terminal(width) + "\n";
        for goal in &self.goals {
            let got = goal.got.map_or_else(|| "?".to_owned(), |got| format!("{got:.2}"));
            let met = if goal.met { "met" } else { "missed" };
            let _ = writeln!(text, "goal: {}: at least {}: {got}, {met}", goal.goal, goal.wanted);
        }
        let worse = |cell: &&CellFigures| {
            cell.ratio.is_some_and(|ratio| {
                let best = cell.peers.get(&cell.best_peer).and_then(Option::as_ref);
                let control = best.and_then(|best| best.aa_control);
                ratio.verdict(control) == Verdict::Loss
            })
        };
        let lost = self.cells.iter().filter(worse).count();
        let _ = writeln!(
            text,
            "slower than the best peer, beyond the control: {lost} of {} cells; {} of {} samples \
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

/// All blocks of one arm in one cell, job after job.
fn blocks(jobs: &[Job], number: usize, arm: Arm) -> Vec<Option<f64>> {
    let of = |job: &Job| -> Vec<Option<f64>> {
        let times: Option<&CellTimes> = job.cells.get(number);
        times.and_then(|times| times.block_ns.get(&arm)).cloned().unwrap_or_default()
    };
    jobs.iter().flat_map(of).collect()
}

/// The blocks that have a time.
fn there(blocks: &[Option<f64>]) -> Vec<f64> {
    blocks.iter().flatten().copied().collect()
}

/// The ratio over the rounds in which both arms have a time.
fn paired(numerator: &[Option<f64>], denominator: &[Option<f64>]) -> Option<Ratio> {
    let both = numerator.iter().zip(denominator).filter_map(|(a, b)| Some(((*a)?, (*b)?)));
    let (over, under): (Vec<f64>, Vec<f64>) = both.unzip();
    Ratio::paired(Costs::measured(&over), Costs::measured(&under), SEED)
}

/// The goals: against the best peer, and nowhere much slower.
fn goals(cells: &[CellFigures]) -> Vec<Goal> {
    let ratio = |op: &str, bytes: usize, mode: Mode| {
        let found = cells
            .iter()
            .find(|c| (c.cell.op.as_str(), c.cell.bytes, c.cell.mode) == (op, bytes, mode));
        found.and_then(|cell| cell.ratio).map(|ratio| ratio.median)
    };
    let goal = |words: &str, wanted: f64, got: Option<f64>| Goal {
        goal: words.to_owned(),
        wanted,
        got,
        met: got.is_some_and(|got| got >= wanted),
    };
    let least = cells.iter().filter_map(|c| c.ratio).map(|r| r.median).min_by(f64::total_cmp);
    let xhc = cells.iter().filter_map(|cell| cell.peers.get(XHC)?.as_ref()?.ratio);
    let xhc = xhc.map(|ratio| ratio.median).min_by(f64::total_cmp);
    let against_xhc = xhc.map(|least| goal("the worst cell against xhc", 1.0, Some(least)));
    let mut goals = vec![
        goal("isolated broadcast of 8 bytes", 4.0, ratio("bcast", 8, Mode::Isolated)),
        goal("broadcast of 8 bytes, roots alternating", 4.0, ratio("bcast", 8, Mode::Alternating)),
        goal("isolated barrier", 3.0, ratio("barrier", 0, Mode::Isolated)),
        goal("isolated allreduce of 8 bytes", 4.0, ratio("allreduce", 8, Mode::Isolated)),
        goal("steady broadcast of 8 bytes", 1.5, ratio("bcast", 8, Mode::Steady)),
        goal("the worst cell", 0.9, least),
    ];
    goals.extend(against_xhc);
    goals
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fixtures::fits;

    #[test]
    fn tables_fit_a_terminal() {
        let times = |(_, cell): (_, Cell)| CellTimes {
            cell,
            block_ns: Arm::ALL.map(|arm| (arm, vec![Some(1234.5); 6])).into(),
            samples: Vec::new(),
        };
        let cells = cells().into_iter().map(times).collect();
        let mut figures = Figures::new(2, &[], &[XHC]);
        figures.add("openmpi-sm", Job { cells, ..Job::default() });
        fits(&figures);
    }

    #[test]
    fn a_round_without_a_time_takes_no_other_with_it() {
        let ours = [Some(1.0), None, Some(2.0), Some(4.0), Some(1.0)];
        let theirs = [Some(2.0), Some(9.0), Some(4.0), Some(8.0), None];
        let ratio = paired(&theirs, &ours).map(|ratio| ratio.median);
        assert_eq!(ratio, Some(2.0));
        assert_eq!(there(&ours), [1.0, 2.0, 4.0, 1.0]);
    }
}
