//! The hidden command `isochrone coll-rank`: one process of an MPI job that times collectives both ways,
//! block by block in random order.
//!
//! All processes begin a call at the same time stamp, not after a barrier, whose own skew would be
//! measured (`collectives.md`, section 7). Counters of virtual CPUs may differ: before such a block ranks find out by
//! how much, and go by rank 0's. A sample for which a rank came late is dropped and counted.
//! Every payload is compared outside of what is timed.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail, ensure};
use clap::Args;
use isochrone_cla::collectives::Amount;
use isochrone_cla::live::{CLASSES, Isolated, Kind, Times, late_ns};
use isochrone_mpi::{Buffers, By, Process, What};
use isochrone_os::{affinity, clock};
use isochrone_stats::{derive_seed, median};
use isochrone_units::CoreId;

use super::cells::{Arm, Cell, CellTimes, Job, Mode, Samples, cells, order};
use super::yardstick::{SIZES, Transfer, Yardstick, mpi};
use isochrone_console::args::parse_cores;
use isochrone_console::output::Terminal;
use isochrone_console::written::Place;

/// What the hidden command takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct RankArgs {
    /// The MPI's library.
    #[arg(long)]
    library: String,
    /// One core for each process.
    #[arg(long)]
    cores: String,
    /// Of the order of blocks.
    #[arg(long)]
    seed: u64,
    /// Blocks of each cell and arm.
    #[arg(long)]
    blocks: u32,
    /// The time for all of them; where it is over, no further block is begun.
    #[arg(long)]
    seconds: Option<f64>,
    /// The time for the warm-up and the first round, which may be more; where it is over, cells that had no turn have
    /// none in this job.
    #[arg(long)]
    first: Option<f64>,
    /// Where rank 0 leaves its figures.
    #[arg(long)]
    out: PathBuf,
}

/// Calls of a block in which each begins at its own time.
const WINDOWS: usize = 100;
/// Calls of a block in which they follow one another.
const CALLS: usize = 400;
/// Warm-up calls of each cell and arm, beyond what any MPI takes to settle.
const WARM: usize = 1000;
/// The part of the time for the first round in which cells are warmed up: that has 3000 calls of each cell, a round
/// 300, which wait for their moments, or 1200.
const WARMING: f64 = 0.6;
/// Windows of a block before the first whose call is held against a band. A block follows one of another
/// collective, and the first calls find neither code nor predictors nor the slots of their ring as their like leave
/// them (seen: the first takes three times as long as the twentieth, the tenth a few nanoseconds more).
const SETTLED: usize = 34;
/// One window in so many is kept after that: odd, so that all roots and all calls of a ring come up.
const KEPT_EVERY: usize = 3;
/// From the message that tells of a block to its first call, in cycles at least.
const LEAD_CYCLES: u64 = 60_000;
/// A window where nothing is known yet, in cycles for every two ranks.
const WINDOW_CYCLES: u64 = 60_000;

/// Runs the command.
pub(crate) fn run(args: &RankArgs, terminal: &Terminal) -> Result<ExitCode> {
    let begin = Instant::now();
    let library = CString::new(args.library.as_str())?;
    let process = Process::begin(&library).map_err(anyhow::Error::msg)?;
    let cores = parse_cores(&args.cores).map_err(anyhow::Error::msg)?;
    let core = cores.get(usize::from(process.rank()));
    affinity::pin(CoreId(*core.ok_or_else(|| anyhow!("--cores: one for each process"))?))?;
    let mut bench = Bench::new(process)?;
    let time = |seconds: Option<f64>| seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
    let ends = Ends {
        all: time(args.seconds).map(|time| begin + time),
        first: time(args.first).map(|time| begin + time),
        warm: time(args.first).map(|time| begin + time.mul_f64(WARMING)),
    };
    let job = bench.job(args.seed, args.blocks, &ends)?;
    if bench.process.rank() == 0 {
        Place::open("--out", &args.out)?.write(&serde_json::to_string(&job)?, terminal)?;
    }
    bench.process.end();
    Ok(ExitCode::SUCCESS)
}

/// One process with what it needs to time calls.
pub(super) struct Bench {
    pub(super) process: Process,
    pub(super) buffers: Buffers,
    pub(super) clock: clock::Clock,
    /// Of the words that are sent.
    serial: u64,
    samples: u64,
    late: u64,
    /// Who begins later after the moment has no sample, ns.
    late_ns: f64,
    /// How far this rank's counter is ahead, where that is found out once for a round.
    ahead: Option<i64>,
    yardstick: Yardstick,
    /// Calls done in lines so far, by collective, root and class: what the library's channels count.
    done: BTreeMap<(u8, u16, usize), u64>,
}

/// What a block of isolated calls gave, at rank 0.
#[derive(Default)]
struct Taken {
    /// From when the last rank began until the last one was done, cycles.
    all: Vec<f64>,
    /// Which calls of their channels they were.
    calls: Vec<u64>,
    /// How far apart the ranks began, cycles.
    apart: Vec<f64>,
}

/// Windows of isolated calls by cell and arm, in cycles.
type Windows = BTreeMap<usize, BTreeMap<Arm, u64>>;

/// When parts of a job end; what is `None` has no end.
struct Ends {
    /// No further round is begun.
    all: Option<Instant>,
    /// No further cell of the first round is begun.
    first: Option<Instant>,
    /// No further cell is warmed up.
    warm: Option<Instant>,
}

impl Bench {
    fn new(process: Process) -> Result<Self> {
        ensure!(
            clock::is_invariant(),
            "the time-stamp counter is not invariant: nothing to time by"
        );
        let most = SIZES[SIZES.len() - 1];
        let buffers = Buffers::new(process.ranks(), most);
        let clock = clock::Clock::calibrate();
        let mine = late_ns(&clock);
        let all = process.collect(&[mine.to_bits()]).map_err(mpi)?;
        let late_ns = all.into_iter().map(f64::from_bits).fold(mine, f64::max);
        let yardstick = Yardstick::new(&process)?;
        Ok(Self {
            process,
            buffers,
            clock,
            serial: 0,
            samples: 0,
            late: 0,
            late_ns,
            ahead: None,
            yardstick,
            done: BTreeMap::new(),
        })
    }

    fn job(&mut self, seed: u64, blocks: u32, ends: &Ends) -> Result<Job> {
        let cells = cells();
        let windows = self.warmed(&cells, ends)?;
        let warm: Vec<usize> = windows.keys().copied().collect();
        let of = |cell: &Cell| CellTimes {
            cell: cell.clone(),
            block_ns: BTreeMap::new(),
            samples: Vec::new(),
        };
        let mut times: Vec<CellTimes> = cells.iter().map(|(_, cell)| of(cell)).collect();
        let mut rounds = Vec::new();
        let mut before = self.transfer()?;
        let begun = Instant::now();
        for round in 0..blocks {
            if round > 0 && self.is_over(ends.all, begun.elapsed() / round)? {
                break;
            }
            self.ahead = None;
            let alone = self.alone(&cells)?;
            let order = order(&warm, derive_seed(seed, u64::from(round)), round == 0);
            for (turn, (number, arm)) in order.into_iter().enumerate() {
                let is_next = turn > 0 && turn % Arm::ALL.len() == 0;
                if round == 0 && is_next && self.is_over(ends.first, Duration::ZERO)? {
                    break;
                }
                let (kind, cell) = &cells[number];
                let what = What { kind: *kind, bytes: cell.bytes };
                let taken = match cell.mode {
                    Mode::Isolated => self.isolated(arm.by(), what, windows[&number][&arm])?,
                    mode => Taken {
                        all: vec![self.followed(arm.by(), what, mode)?],
                        ..Taken::default()
                    },
                };
                self.note(&mut times[number], round, arm, &taken, alone[number]);
            }
            let after = self.transfer()?;
            rounds.push([before, after.clone()]);
            before = after;
        }
        // Blocks of an arm are those of the others in the same place, in every job.
        for times in &mut times {
            times.block_ns.values_mut().for_each(|blocks| blocks.resize(rounds.len(), None));
        }
        let (samples, late) = (self.samples, self.late);
        let (mpi, late_ns) = (self.process.version().to_owned(), self.late_ns);
        Ok(Job { mpi, cells: times, samples, late, late_ns, rounds })
    }

    /// Warms up cells, as many as there is time for, those of short messages first: so a short run has some of each
    /// collective, the same for all MPIs. Returns the windows of their isolated calls.
    fn warmed(&mut self, cells: &[(Kind, Cell)], ends: &Ends) -> Result<Windows> {
        let mut all = Windows::new();
        let mut order: Vec<usize> = (0..cells.len()).collect();
        order.sort_by_key(|&number| cells[number].1.bytes);
        for number in order {
            let (kind, cell) = &cells[number];
            if !all.is_empty() && self.is_over(ends.warm, Duration::ZERO)? {
                break;
            }
            let what = What { kind: *kind, bytes: cell.bytes };
            let mut windows = BTreeMap::new();
            for arm in Arm::ALL {
                for _ in 0..WARM {
                    self.checked(arm.by(), what, cell.mode)?;
                }
                let isolated = cell.mode == Mode::Isolated;
                windows.insert(arm, if isolated { self.window(arm.by(), what)? } else { 0 });
            }
            all.insert(number, windows);
        }
        Ok(all)
    }

    /// Keeps what a block gave; only rank 0 knows what all took.
    fn note(&self, times: &mut CellTimes, round: u32, arm: Arm, taken: &Taken, alone: f64) {
        let all: Vec<f64> = taken.all.iter().map(|&cycles| self.clock.ns(cycles)).collect();
        times.block_ns.entry(arm).or_default().push(median(&all));
        if arm != Arm::Ours || times.cell.mode != Mode::Isolated {
            return;
        }
        let windows = all.iter().zip(&taken.calls).zip(&taken.apart);
        let kept: Vec<_> = windows.skip(SETTLED).step_by(KEPT_EVERY).collect();
        // Which calls are compared with the MPI does not depend on it.
        let apart = |cycles: f64| self.clock.ns(cycles) > self.late_ns;
        let together = kept.iter().filter(|(_, cycles)| !apart(**cycles));
        let (ns, calls): (Vec<f64>, Vec<u64>) =
            together.map(|((ns, call), _)| (**ns, **call)).unzip();
        let apart = kept.len() - ns.len();
        times.samples.push(Samples { round: round as usize, ns, calls, apart, call_ns: alone });
    }

    /// Whether there is no time for another block, which takes so long: as rank 0 says.
    fn is_over(&self, until: Option<Instant>, block: Duration) -> Result<bool> {
        let over = until.is_some_and(|until| Instant::now() + block > until);
        let mut said = [u64::from(over)];
        self.process.tell(&mut said).map_err(mpi)?;
        Ok(said[0] != 0)
    }

    /// What a line takes now.
    fn transfer(&mut self) -> Result<Transfer> {
        self.yardstick.transfer(&self.process, &self.clock)
    }

    /// How long a window has to be, in cycles: the same on all ranks.
    fn window(&mut self, by: By, what: What) -> Result<u64> {
        let most = WINDOW_CYCLES * u64::from(self.process.ranks().div_ceil(2));
        let mut cycles = self.isolated(by, what, most)?.all;
        cycles.sort_by(f64::total_cmp);
        let high = cycles.get(cycles.len() * 9 / 10).copied().unwrap_or(0.0);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "some thousands"
        )]
        let mut window = [(high * 2.0) as u64 + 6000];
        self.process.tell(&mut window).map_err(mpi)?;
        Ok(window[0].min(most))
    }

    /// Calls that each begin at their own time: cycles from when the last rank began until the last one
    /// was done. At rank 0; nothing elsewhere.
    fn isolated(&mut self, by: By, what: What, window: u64) -> Result<Taken> {
        let ahead = self.ahead()?;
        let first = self.appointment()?;
        let moment = |call: usize| first + call as u64 * window;
        let mut stamps = Vec::with_capacity(2 * WINDOWS);
        let mut calls = Vec::with_capacity(WINDOWS);
        for call in 0..WINDOWS {
            let root = self.root(call);
            self.fill(what, root);
            let own = moment(call).wrapping_add_signed(ahead);
            let (times, done) = Times::of(own, || self.call(by, what, root));
            done?;
            let times = times.by_one_behind(ahead);
            stamps.extend([times.begin, times.end]);
            calls.push(self.count(by, what, root));
            self.compare(what, root)?;
        }
        let all = self.process.collect(&stamps).map_err(mpi)?;
        let ranks: Vec<&[u64]> = all.chunks(stamps.len()).collect();
        let mut taken = Taken::default();
        // Reading the clock is no part of a call.
        let overhead = self.clock.overhead;
        for (call, &number) in calls.iter().enumerate() {
            let times = |stamps: &&[u64]| Times {
                moment: moment(call),
                begin: stamps[2 * call],
                end: stamps[2 * call + 1],
            };
            let Some(seen) = Isolated::of(ranks.iter().map(times)) else { break };
            self.samples += 1;
            // A window that was left late is one that was entered late by the next call.
            if self.clock.ns(seen.late as f64) > self.late_ns {
                self.late += 1;
            } else {
                taken.all.push(seen.cycles as f64 - overhead);
                taken.calls.push(number);
                taken.apart.push(seen.apart as f64);
            }
        }
        Ok(taken)
    }

    /// Cycles that this rank's counter is ahead of rank 0's now. It takes some milliseconds for each rank, so among
    /// many it is found out once for a round.
    fn ahead(&mut self) -> Result<i64> {
        if let Some(ahead) = self.ahead {
            return Ok(ahead);
        }
        let ahead = self.yardstick.ahead(&self.clock)?;
        self.ahead = (self.process.ranks() > 2).then_some(ahead);
        Ok(ahead)
    }

    /// Calls that follow one another from a common time: cycles of each on average, until the last rank
    /// was done.
    fn followed(&mut self, by: By, what: What, mode: Mode) -> Result<f64> {
        let begin = self.appointment()?;
        self.fill(what, 0);
        while clock::start() < begin {}
        for call in 0..CALLS {
            let root = if mode == Mode::Steady { 0 } else { self.root(call) };
            self.call(by, what, root)?;
        }
        let end = clock::stop();
        for call in 0..CALLS {
            let root = if mode == Mode::Steady { 0 } else { self.root(call) };
            self.count(by, what, root);
        }
        // Counters that are some steps apart do not matter over so many calls.
        let ends = self.process.collect(&[end]).map_err(mpi)?;
        let last = ends.iter().copied().max().unwrap_or(begin);
        // What came last is compared as well.
        self.checked(by, what, mode)?;
        Ok(last.saturating_sub(begin) as f64 / CALLS as f64)
    }

    /// One call.
    #[inline]
    fn call(&mut self, by: By, what: What, root: u16) -> Result<()> {
        self.process.call(by, what, root, &mut self.buffers).map_err(mpi)
    }

    /// Counts a call that was done in lines; returns which one of its channel it was.
    fn count(&mut self, by: By, what: What, root: u16) -> u64 {
        if by == By::Mpi {
            return 0;
        }
        let class = CLASSES.iter().position(|&most| what.bytes <= most as usize);
        let root = if what.kind.rooted() { root } else { 0 };
        let channel = (what.kind as u8, root, class.unwrap_or(CLASSES.len()));
        let done = self.done.entry(channel).or_default();
        *done += 1;
        *done - 1
    }

    fn root(&self, call: usize) -> u16 {
        u16::try_from(call % usize::from(self.process.ranks())).unwrap_or(0)
    }

    /// A time stamp a little ahead, the same on all ranks.
    fn appointment(&mut self) -> Result<u64> {
        let mut at = [clock::start() + LEAD_CYCLES];
        self.process.tell(&mut at).map_err(mpi)?;
        Ok(at[0])
    }

    /// One call, its payload compared.
    fn checked(&mut self, by: By, what: What, mode: Mode) -> Result<()> {
        let call = usize::try_from(self.serial).unwrap_or(0);
        let root = if mode == Mode::Steady { 0 } else { self.root(call) };
        self.fill(what, root);
        self.call(by, what, root)?;
        self.count(by, what, root);
        self.compare(what, root)
    }

    /// What rank `rank` gives at word `at`.
    fn word(&self, rank: u16, at: usize) -> u64 {
        self.serial.wrapping_mul(0x9e37_79b9) ^ (u64::from(rank) << 40) ^ at as u64
    }

    /// New payload: nothing that is sent was sent before.
    fn fill(&mut self, what: What, root: u16) {
        self.serial += 1;
        let (me, words) = (self.process.rank(), what.bytes / 8);
        let all = what.kind.touched(me == root).send == Amount::All;
        let blocks = if all { self.process.ranks() } else { 1 };
        let many = usize::from(blocks) * words;
        for at in 0..many {
            self.buffers.send[at] = self.word(me, at);
        }
    }

    /// Whether what came is what was sent.
    fn compare(&self, what: What, root: u16) -> Result<()> {
        let (me, words) = (self.process.rank(), what.bytes / 8);
        let ranks = 0..self.process.ranks();
        let sum_of = |ranks: std::ops::Range<u16>, at| {
            ranks.fold(0_u64, |sum, rank| sum.wrapping_add(self.word(rank, at)))
        };
        let sum = |at| sum_of(ranks.clone(), at);
        let got = &self.buffers.receive;
        let right = match what.kind {
            Kind::Barrier => true,
            Kind::Broadcast => me == root || (0..words).all(|at| got[at] == self.word(root, at)),
            Kind::Reduce => me != root || (0..words).all(|at| got[at] == sum(at)),
            Kind::Allreduce => (0..words).all(|at| got[at] == sum(at)),
            Kind::Scatter => {
                let mine = usize::from(me) * words;
                (0..words).all(|at| got[at] == self.word(root, mine + at))
            }
            Kind::Scan => (0..words).all(|at| got[at] == sum_of(0..me + 1, at)),
            Kind::Exscan => me == 0 || (0..words).all(|at| got[at] == sum_of(0..me, at)),
            Kind::ReduceScatter => {
                let mine = usize::from(me) * words;
                (0..words).all(|at| got[at] == sum(mine + at))
            }
            Kind::Alltoall => ranks.clone().all(|rank| {
                let (first, mine) = (usize::from(rank) * words, usize::from(me) * words);
                (0..words).all(|at| got[first + at] == self.word(rank, mine + at))
            }),
            Kind::Gather | Kind::Allgather => {
                me != root
                    || ranks.clone().all(|rank| {
                        let first = usize::from(rank) * words;
                        (0..words).all(|at| got[first + at] == self.word(rank, at))
                    })
            }
        };
        if !right {
            bail!("{what:?} from {root} gave rank {me} something else than was sent");
        }
        Ok(())
    }
}
