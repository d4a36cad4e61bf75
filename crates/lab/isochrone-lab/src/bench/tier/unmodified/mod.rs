//! Unmodified programs with half of their data in fast memory: under `isochrone run --fast-memory`, and under what
//! others offer for the same. Also ours where all data fit, beside the program as it is.
//!
//! How much memory a program has beside its data is seen in a run of its own; who is limited by a control group has
//! that on top.

mod programs;
mod text;
mod way;

use std::cell::{OnceCell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;

use anyhow::{Context, Result};
use isochrone_console::turns::{Ratio, Series};
use isochrone_console::written::scratch;
use isochrone_stats::Spread;
use serde::Serialize;

use super::arm::Runner;
use super::curves::Controlled;
use super::group::Group;
use super::peers::{self, BESIDE, SWAP_LEAST, SWAP_TIMES};
use super::swap::Swap;
use super::zswap;
use crate::args::TierArgs;
use crate::bench::rounds::Cell;
use crate::bench::setting::Setting;
use programs::{Order, PROGRAMS, Places, Program};
use way::{Killed, Once, Way, once};

pub(super) use text::{goals, recommended, roomed, table};

/// Arms beside the peer.
const AGAIN: &str = "again";
const OURS: &str = "ours";
/// So many times the data are fast memory in which all fit.
const ALL_FIT: u64 = 2;

/// What one side of a pair took.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Side {
    pub(super) seconds: Option<Spread>,
    /// The most in fast memory: of ours of large mappings, of a control group of all that the program has.
    pub(super) fast_bytes_peak: Option<u64>,
    /// The most memory that compressed pages took; the kernel's is looked at twenty times a second.
    pub(super) compressed_bytes: Option<u64>,
    /// Faults that waited for what is far, or ours of any kind, in the median run.
    pub(super) faults: Option<f64>,
    /// Time beyond the plain run's, for each of them, microseconds.
    pub(super) fault_us: Option<f64>,
}

/// A program and a peer.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Unmodified {
    pub(super) program: &'static str,
    /// `plain`: the program as it is, beside ours where all data fit.
    pub(super) peer: &'static str,
    /// Where ours has what does not fit.
    pub(super) far: &'static str,
    /// What the peer's kernel compresses by.
    pub(super) compressor: Option<String>,
    /// Bytes of the program's large mappings, as ours counts them.
    pub(super) data_bytes: Option<u64>,
    /// Uncompressed bytes of them that may be in fast memory.
    pub(super) limit_bytes: Option<u64>,
    /// What a control group may have on top of the limit.
    pub(super) beside_bytes: Option<u64>,
    /// What it has beyond both, since the kernel killed the program without, with all that was tried in its place.
    pub(super) room_bytes: Option<u64>,
    /// The program as it is.
    pub(super) plain_s: Option<Spread>,
    /// How many times faster ours is.
    pub(super) faster: Option<Controlled>,
    /// Whether every run printed what the plain one did.
    pub(super) verified: Option<bool>,
    pub(super) ours: Option<Side>,
    pub(super) theirs: Option<Side>,
    /// Why there is no figure.
    pub(super) missing: Option<String>,
    pub(super) series: Option<Series>,
}

/// Who is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    Plain,
    Swap,
    Zram(&'static str),
    Zswap(&'static str),
    Mmap,
    Umap,
}

/// The algorithm that is taken from any kernel, if under another name.
const LZ4: &str = "lz4";
const ZSTD: &str = "zstd";

impl Peer {
    const ALL: [Self; 8] = [
        Self::Plain,
        Self::Zram(LZ4),
        Self::Swap,
        Self::Zswap(LZ4),
        Self::Mmap,
        Self::Zram(ZSTD),
        Self::Zswap(ZSTD),
        Self::Umap,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Swap => "swap",
            Self::Zram(_) => "zram",
            Self::Zswap(_) => "zswap",
            Self::Mmap => "mmap",
            Self::Umap => "umap",
        }
    }

    /// Our far tier on the same medium.
    const fn far(self) -> &'static str {
        match self {
            Self::Plain | Self::Umap => LZ4,
            Self::Swap | Self::Mmap => "file",
            Self::Zram(algorithm) | Self::Zswap(algorithm) => algorithm,
        }
    }

    /// Whether a control group limits the program.
    const fn is_limited(self) -> bool {
        !matches!(self, Self::Plain | Self::Umap)
    }

    /// Whether a program is compared with it.
    fn takes(self, program: &Program) -> bool {
        !matches!(self, Self::Mmap | Self::Umap) || program.takes_other_memory()
    }
}

/// What all pairs share.
struct Ground {
    places: Places,
    folder: PathBuf,
    umap: Option<PathBuf>,
}

/// What is known of a program once it has run.
struct Known {
    file: PathBuf,
    digest: String,
    /// Bytes of its large mappings.
    data: u64,
    /// What a group may have on top of the limit; or why there is no group.
    beside: Result<u64, String>,
}

/// A program, and its runs as it is.
struct Subject {
    program: &'static Program,
    known: OnceCell<Result<Known, String>>,
    plain_s: RefCell<Vec<f64>>,
}

impl Subject {
    /// Found out by the first of its pairs, unless that was stopped.
    fn known(&self, runner: &Runner, ground: &Ground) -> Result<&Known> {
        if self.known.get().is_none() {
            let known = self.find_out(runner, ground).map_err(|why| format!("{why:#}"));
            anyhow::ensure!(
                known.is_ok() || !runner.stop().is_set(),
                "it was ended before its time"
            );
            // Nobody else was here.
            let _ = self.known.set(known);
        }
        let known = self.known.get().context("it was found out")?;
        known.as_ref().map_err(|why| anyhow::Error::msg(why.clone()))
    }

    fn find_out(&self, runner: &Runner, ground: &Ground) -> Result<Known> {
        let file = ground.places.file(self.program, runner)?;
        let run = |way: &Way<'_>| once(runner, &ground.places, self.program, &file, way);
        let free = Way::Group { limit: None, swap: None, file: None };
        let group = Group::new(None).map(drop).map_err(|why| format!("{why:#}"));
        let plain = run(if group.is_ok() { &free } else { &Way::Plain })?;
        let limit = ALL_FIT * ground.places.data();
        let ours = run(&Way::Paged { limit, far: LZ4 }).context("isochrone run")?;
        let data = ours.fast_bytes.context("isochrone run left no peak")?;
        let peak = plain.fast_bytes.context("no peak of a control group (Linux 5.19)");
        let peak = group.and_then(|()| peak.map_err(|why| why.to_string()));
        self.plain_s.borrow_mut().push(plain.seconds);
        let beside = peak.map(|peak| peak.saturating_sub(data).max(BESIDE));
        Ok(Known { file, digest: plain.digest, data, beside })
    }
}

/// Every program beside everybody.
pub(super) fn pairs(
    args: &TierArgs,
    runner: &Runner,
    setting: &mut Setting<'_>,
) -> Result<Vec<OfPair>> {
    let folder = peers::folder(args)?;
    zswap::bring_back_left(&folder);
    let places = Places::new(scratch()?, args.program.clone(), args.data);
    let ground = Rc::new(Ground { places, folder, umap: peers::umap(args)? });
    let mut all = Vec::new();
    for program in &PROGRAMS {
        let subject = Subject { program, known: OnceCell::new(), plain_s: RefCell::default() };
        let subject = Rc::new(subject);
        for peer in Peer::ALL.into_iter().filter(|peer| peer.takes(program)) {
            let names = [peer.as_str(), AGAIN, OURS].map(str::to_owned);
            all.push(OfPair {
                ground: Rc::clone(&ground),
                subject: Rc::clone(&subject),
                peer,
                crowded: runner.cores().len() < 2,
                seed: setting.seed(),
                series: Series::new(&names, "s"),
                ours: Vec::new(),
                theirs: Vec::new(),
                compressor: None,
                room: 0,
                verified: true,
                missing: None,
                of: Cause::Pair,
            });
        }
    }
    Ok(all)
}

/// Of what the reason is why there is no figure: what is said once for all pairs that it keeps from having one.
#[derive(Clone, Copy)]
enum Cause {
    Program,
    Peer,
    Pair,
}

/// A pair, under way.
pub(super) struct OfPair {
    ground: Rc<Ground>,
    subject: Rc<Subject>,
    peer: Peer,
    /// Fewer cores than the program and our handlers.
    crowded: bool,
    seed: u64,
    series: Series,
    /// Of each run, in the order of time.
    ours: Vec<Once>,
    theirs: Vec<Once>,
    compressor: Option<String>,
    /// Beyond limit and what the process has beside its data.
    room: u64,
    verified: bool,
    /// Why there is no figure, and of what that is.
    missing: Option<String>,
    of: Cause,
}

/// The most of something over all runs, if it is known of one.
fn most(runs: &[Once], of: impl Fn(&Once) -> Option<u64>) -> Option<u64> {
    runs.iter().filter_map(of).max()
}

/// What one side took beside the plain run, whose seconds these are.
fn side(runs: &[Once], plain: Option<f64>) -> Option<Side> {
    let seconds = Spread::of(runs.iter().map(|run| run.seconds))?;
    let faults: Option<Vec<f64>> = runs.iter().map(|run| Some(run.faults? as f64)).collect();
    let faults = faults.and_then(Spread::of).map(|faults| faults.median);
    // Of a run that is as fast as the plain one nothing can be said of a fault.
    let more = plain.map(|plain| (seconds.median - plain) * 1e6).filter(|more| *more > 0.0);
    let fault_us = more.zip(faults.filter(|faults| *faults > 0.0)).map(|(us, faults)| us / faults);
    Some(Side {
        seconds: Some(seconds),
        fast_bytes_peak: most(runs, |run| run.fast_bytes),
        compressed_bytes: most(runs, |run| run.compressed_bytes),
        faults,
        fault_us,
    })
}

impl OfPair {
    /// What came out.
    pub(super) fn row(self, setting: &mut Setting<'_>) -> Unmodified {
        let (peer, seed) = (self.peer.as_str(), setting.seed());
        let over = |arm: &str| Ratio::of(&self.series, arm, peer, seed);
        let (control, oversubscribed) = (over(AGAIN), self.crowded);
        let known = self.subject.known.get().and_then(|known| known.as_ref().ok());
        let plain_s = Spread::of(self.subject.plain_s.borrow().clone());
        let plain = plain_s.map(|plain| plain.median);
        let measured = !self.series.blocks.is_empty();
        Unmodified {
            program: self.subject.program.name,
            peer,
            far: self.peer.far(),
            compressor: self.compressor,
            data_bytes: known.map(|known| known.data),
            limit_bytes: known.map(|known| limit(self.peer, known.data)),
            beside_bytes: known.and_then(|known| known.beside.clone().ok()),
            room_bytes: (self.peer.is_limited() && measured).then_some(self.room),
            plain_s,
            faster: over(OURS).map(|ratio| Controlled { ratio, control, oversubscribed }),
            verified: measured.then_some(self.verified),
            ours: side(&self.ours, plain),
            theirs: side(&self.theirs, plain),
            missing: self.missing,
            series: measured.then_some(self.series),
        }
    }

    /// A block, with the peer's swap on meanwhile: for others it would be a disturbance.
    fn made(&mut self, runner: &mut Runner, setting: &mut Setting<'_>) -> Result<()> {
        let what = self.what();
        let (ground, subject) = (Rc::clone(&self.ground), Rc::clone(&self.subject));
        self.of = Cause::Program;
        let known = subject.known(runner, &ground)?;
        self.of = Cause::Peer;
        let limit = limit(self.peer, known.data);
        let swap = swap(self.peer, &ground, known.data)?;
        self.compressor = swap.as_ref().and_then(Swap::compressor);
        let far = match self.peer.far() {
            "file" => format!("file:{}", ground.folder.display()),
            far => far.to_owned(),
        };
        let ours = Way::Paged { limit, far: &far };
        loop {
            self.of = Cause::Peer;
            let theirs = theirs(self.peer, &ground, known, swap.as_ref(), limit + self.room)?;
            self.of = Cause::Pair;
            match self.tried(&theirs, &ours, runner, setting, &what) {
                Err(error) if error.is::<Killed>() && !runner.stop().is_set() => {
                    // Blocks with less room would be another's.
                    self.room = more_room(self.room, limit).with_context(|| {
                        format!(
                            "{error:#}, also with {} more bytes than limit and process",
                            self.room
                        )
                    })?;
                    self.series.blocks.clear();
                    (self.ours, self.theirs) = (Vec::new(), Vec::new());
                }
                other => return other,
            }
        }
    }

    /// A block of runs by both ways.
    fn tried(
        &mut self,
        theirs: &Way<'_>,
        ours: &Way<'_>,
        runner: &mut Runner,
        setting: &mut Setting<'_>,
        what: &str,
    ) -> Result<()> {
        let (ground, subject) = (Rc::clone(&self.ground), Rc::clone(&self.subject));
        let known = subject.known(runner, &ground)?;
        let Self { series, seed, .. } = self;
        let (of_ours, of_theirs, verified) = (&mut self.ours, &mut self.theirs, &mut self.verified);
        setting.block(series, *seed, what, &mut |arm| {
            let (way, into) =
                if arm == 2 { (ours, &mut *of_ours) } else { (theirs, &mut *of_theirs) };
            let run = once(runner, &ground.places, subject.program, &known.file, way)?;
            let right = run.digest == known.digest;
            runner.compared(right);
            *verified &= right;
            if matches!(way, Way::Plain) {
                subject.plain_s.borrow_mut().push(run.seconds);
            }
            let seconds = run.seconds;
            into.push(run);
            Ok(seconds)
        })?;
        Ok(())
    }
}

/// Uncompressed fast memory, of whole pages: for half of the data, or for more than all.
const fn limit(peer: Peer, data: u64) -> u64 {
    match peer {
        Peer::Plain => ALL_FIT * data,
        _ => data / 2 / 4096 * 4096,
    }
}

/// The next larger room of a control group: a sixteenth of what may be in fast memory, then twice as much each time, up
/// to half of it. With more it would be another comparison.
fn more_room(room: u64, limit: u64) -> Option<u64> {
    let least = (limit / 16 / 4096 * 4096).max(4096);
    Some(if room == 0 { least } else { 2 * room }).filter(|room| *room <= limit / 2)
}

/// The peer's swap area, if it has one.
fn swap(peer: Peer, ground: &Ground, data: u64) -> Result<Option<Swap>> {
    let room = (SWAP_TIMES * data).max(SWAP_LEAST) / 4096 * 4096;
    Ok(match peer {
        Peer::Plain | Peer::Mmap | Peer::Umap => None,
        Peer::Swap => Some(Swap::on_file(&ground.folder, room)?),
        Peer::Zram(algorithm) => Some(Swap::on_zram(room, algorithm)?),
        Peer::Zswap(wanted) => Some(Swap::on_zswap(&ground.folder, room, wanted, wanted == LZ4)?),
    })
}

/// How the peer runs a program.
fn theirs<'w>(
    peer: Peer,
    ground: &'w Ground,
    known: &Known,
    swap: Option<&'w Swap>,
    limit: u64,
) -> Result<Way<'w>> {
    Ok(match peer {
        Peer::Plain => Way::Plain,
        Peer::Umap => {
            let path = ground.umap.as_deref();
            let path = path.context("no --peer umap=PATH (peers/umap.cpp says how to build it)")?;
            Way::Library { path, limit }
        }
        Peer::Swap | Peer::Zram(_) | Peer::Zswap(_) | Peer::Mmap => {
            let beside = known.beside.clone().map_err(anyhow::Error::msg)?;
            let file = (peer == Peer::Mmap).then_some(ground.folder.as_path());
            Way::Group { limit: Some(limit + beside), swap, file }
        }
    })
}

impl Cell<Runner> for OfPair {
    fn what(&self) -> String {
        let (program, peer) = (self.subject.program.name, self.peer.as_str());
        match (&self.missing, self.of) {
            (Some(_), Cause::Program) => program.to_owned(),
            (Some(_), Cause::Peer) => format!("programs beside {peer}, {}", self.peer.far()),
            _ => format!("{program} beside {peer}, {}", self.peer.far()),
        }
    }

    fn blocks(&self) -> usize {
        self.series.blocks.len()
    }

    fn block(&mut self, runner: &mut Runner, setting: &mut Setting<'_>) -> Result<()> {
        setting.step(&self.what());
        let made = self.made(runner, setting);
        // A kernel that finds nothing to swap out in time ends a program at its limit.
        if let (Err(error), true) = (&made, setting.keep_going()) {
            self.missing = Some(format!("{error:#}"));
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_grows_until_it_is_half_of_the_limit() {
        let rooms = |limit| {
            std::iter::successors(Some(0), |room| more_room(*room, limit)).collect::<Vec<u64>>()
        };
        assert_eq!(rooms(32 << 20), [0, 2 << 20, 4 << 20, 8 << 20, 16 << 20]);
        assert_eq!(rooms(20 << 10), [0, 4 << 10, 8 << 10]);
        assert_eq!(rooms(4 << 10), [0]);
    }
}
