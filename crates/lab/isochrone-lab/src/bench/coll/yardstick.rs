//! What a line takes from one process of a job to the other, now: the costs that bands are made of.
//!
//! Two ranks of an MPI job make a team of their own beside what is compared, on lines chosen as the library
//! chooses them, and load each other's. No call that is compared is looked at.

use anyhow::{Context, Result};
use isochrone_cla::live::{Kind, Loads, Nearness, Place, Settings, Team, TeamError, Which};
use isochrone_cla::program::{Line, Rank};
use isochrone_mpi::Process;
use isochrone_os::clock::Clock;
use isochrone_stats::median;
use serde::{Deserialize, Serialize};

use super::rank::mpi;

/// Sizes of the table: a word, a line's payload, a line, several, a page.
pub(crate) const SIZES: [usize; 5] = [8, 56, 64, 256, 4096];

/// A transfer over the lines that were looked at, ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Transfer {
    pub(crate) least_ns: f64,
    pub(crate) median_ns: f64,
    pub(crate) most_ns: f64,
    /// A cycle of the clock.
    pub(crate) cycle_ns: f64,
    /// Messages of several lines.
    pub(crate) messages: Vec<Message>,
}

/// What a message of several lines takes, copied out as collectives do it, over the slots that were looked at.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Message {
    pub(crate) bytes: usize,
    /// All its lines, the shortest copy of all: a core may load those after the flag before it knows what the flag
    /// says, and does so in some calls only.
    pub(crate) whole_least_ns: f64,
    /// The lines after the first, once that has come: the median of the dearest slot.
    pub(crate) rest_most_ns: f64,
}

impl Message {
    /// What each line after the first takes beside a transfer, at least and at most.
    pub(crate) fn line_ns(&self, transfer_ns: f64) -> [f64; 2] {
        let lines = (self.bytes + Line::WORD_BYTES as usize).div_ceil(Line::BYTES as usize);
        #[allow(clippy::cast_precision_loss, reason = "some dozens")]
        let after_the_first = lines.saturating_sub(1).max(1) as f64;
        let least = (self.whole_least_ns - transfer_ns).max(0.0);
        [least / after_the_first, self.rest_most_ns / after_the_first]
    }
}

/// Two rounds differ by less than this where no core was moved in between.
const MOVED: f64 = 0.08;

impl Transfer {
    /// Messages of so many bytes, if they have several lines.
    pub(crate) fn message(&self, bytes: usize) -> Option<&Message> {
        self.messages.iter().find(|message| message.bytes == bytes)
    }

    /// Whether the cores lie as they did.
    pub(crate) fn stayed(before: &Self, after: &Self) -> bool {
        (after.median_ns / before.median_ns - 1.0).abs() <= MOVED
    }
}

/// Loads of each line.
const REPEATS: u32 = 15;
/// Copies of each slot.
const COPIES: u32 = 9;

/// The team.
pub(super) struct Yardstick(Team);

impl Yardstick {
    /// All ranks of the job call this.
    pub(super) fn new(process: &Process) -> Result<Self> {
        let (me, ranks) = (Rank(process.rank()), process.ranks());
        let mut place = [0_u64; 2];
        let mut team = None;
        if me == Rank(0) {
            let (made, at) = Team::found(ranks, me, Settings::default())?;
            place = [at.process.into(), at.descriptor.into()];
            team = Some(made);
        }
        process.tell(&mut place).map_err(mpi)?;
        let [process, descriptor] = place.map(|n| u32::try_from(n).unwrap_or(0));
        let mut team = match team {
            Some(team) => team,
            None => Team::join(Place { process, descriptor }, me, Settings::default())?,
        };
        let _round_trips = team.choose_lines(Nearness::Nearest, None)?;
        Ok(Self(team))
    }

    /// What a line takes between ranks 0 and 1, and messages of several. All ranks call this; rank 0 knows
    /// afterwards.
    pub(super) fn transfer(&mut self, process: &Process, clock: &Clock) -> Result<Transfer> {
        let [least_ns, median_ns, most_ns] = self.both_ways(process, clock, |team, way| {
            team.load_cycles(way.loads(8, REPEATS, clock.tick))
        })?;
        let mut messages = Vec::new();
        for bytes in SIZES.into_iter().filter(|&bytes| bytes > Line::PAYLOAD_BYTES as usize) {
            let mut copies = |which: Which, of: fn(&Vec<f64>) -> Option<f64>| {
                self.both_ways(process, clock, |team, way| {
                    let loads = way.loads(bytes, COPIES, clock.tick);
                    let slots = team.copy_cycles(loads, which)?;
                    Ok(slots.iter().filter_map(of).collect())
                })
            };
            let [whole_least_ns, ..] = copies(Which::All, |times| times.first().copied())?;
            let [.., rest_most_ns] = copies(Which::AfterTheFirst, |times| median(times))?;
            messages.push(Message { bytes, whole_least_ns, rest_most_ns });
        }
        Ok(Transfer { least_ns, median_ns, most_ns, cycle_ns: clock.ns(1.0), messages })
    }

    /// Cycles that the counter of this rank's core is ahead of that of rank 0's. All ranks call this.
    pub(super) fn ahead(&mut self, clock: &Clock) -> Result<i64> {
        Ok(self.0.ahead_of_first(clock.tick)?)
    }

    /// The cheapest, the middle and the dearest of what is timed from each of the two ranks to the other, ns.
    fn both_ways(
        &mut self,
        process: &Process,
        clock: &Clock,
        mut time: impl FnMut(&mut Team, Way) -> Result<Vec<f64>, TeamError>,
    ) -> Result<[f64; 3]> {
        let mut mine = [0.0_f64; 3];
        for (owner, asker) in [(Rank(0), Rank(1)), (Rank(1), Rank(0))] {
            let cycles = time(&mut self.0, Way { owner, asker })?;
            if !cycles.is_empty() {
                let end = |pick: fn(f64, f64) -> f64| cycles.iter().copied().reduce(pick);
                let middle = median(&cycles).context("no line was timed")?;
                mine = [end(f64::min), Some(middle), end(f64::max)]
                    .map(|cycles| clock.ns(cycles.unwrap_or(f64::NAN)));
            }
        }
        let all = process.collect(&mine.map(f64::to_bits)).map_err(mpi)?;
        let of = |n: usize| -> Vec<f64> {
            all.chunks(mine.len()).take(2).map(|rank| f64::from_bits(rank[n])).collect()
        };
        let least = of(0).into_iter().fold(f64::INFINITY, f64::min);
        let most = of(2).into_iter().fold(0.0, f64::max);
        Ok([least, median(&of(1)).unwrap_or(f64::NAN), most])
    }
}

/// From which rank a line goes to which other one.
struct Way {
    owner: Rank,
    asker: Rank,
}

impl Way {
    fn loads(self, bytes: usize, repeats: u32, tick: u32) -> Loads {
        let Self { owner, asker } = self;
        Loads { kind: Kind::Broadcast, root: Rank(0), bytes, owner, asker, repeats, tick }
    }
}
