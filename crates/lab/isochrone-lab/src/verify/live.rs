//! Isolated calls of two ranks on this machine, each in a window of time, and what the lines cost meanwhile.
//!
//! A sample is an isolated call ([`isochrone_cla::live::Isolated`]) without what reading the clock takes.
//! Calls come in blocks. Before and after a block each line that its calls use is loaded by each rank after
//! the other wrote it; if that changed, or how far the counters are apart, a core was moved meanwhile and the block
//! counts for nothing. Nothing here looks at a model.

use std::thread;

use anyhow::{Context, Result, bail, ensure};
use isochrone_cla::collectives::Collective;
use isochrone_cla::live::{
    Isolated, Kind, Loads, Meeting, Nearness, Reduction, Settings, Team, Times, late_ns,
    poll_cycles,
};
use isochrone_cla::program::{Combine, Element, Rank};
use isochrone_os::affinity::pin;
use isochrone_os::clock::Clock;
use isochrone_stats as stats;
use isochrone_units::CoreId;

/// What is called, over one 64-bit number, with rank 0 as the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Broadcast,
    Barrier,
    Reduce,
    Allreduce,
}

impl What {
    pub(crate) const ALL: [Self; 4] =
        [Self::Broadcast, Self::Barrier, Self::Reduce, Self::Allreduce];

    pub(crate) const fn collective(self) -> Collective {
        let sum = Combine::Sum(Element::I64);
        match self {
            Self::Broadcast => Collective::Broadcast,
            Self::Barrier => Collective::Barrier,
            Self::Reduce => Collective::Reduce(sum),
            Self::Allreduce => Collective::Allreduce(sum),
        }
    }

    pub(crate) const fn bytes(self) -> u32 {
        if matches!(self, Self::Barrier) { 0 } else { 8 }
    }

    pub(super) const fn kind(self) -> Kind {
        match self {
            Self::Broadcast => Kind::Broadcast,
            Self::Barrier => Kind::Barrier,
            Self::Reduce => Kind::Reduce,
            Self::Allreduce => Kind::Allreduce,
        }
    }

    fn call(
        self,
        me: &mut Team,
        word: &mut [i64; 2],
    ) -> Result<(), isochrone_cla::live::TeamError> {
        let root = me.rank() == Rank(0);
        let given = [word[0]];
        let result = &mut word[1..];
        match self {
            Self::Broadcast => me.broadcast(&mut word[..1], Rank(0)),
            Self::Barrier => me.barrier(),
            Self::Reduce => {
                let result = if root { result } else { &mut [] };
                me.reduce(Reduction::Sum, &given, result, Rank(0))
            }
            Self::Allreduce => me.allreduce(Reduction::Sum, &given, result),
        }
    }
}

/// How far the candidates of a team are by what somebody knows; nothing where it is not known.
pub(crate) type Known<'a> = &'a dyn Fn(&Team) -> Result<Vec<f64>>;

/// Which lines a team takes for its flags.
#[derive(Clone, Copy)]
pub(crate) enum Lines<'a> {
    /// As they lie.
    AsTheyLie,
    /// By measuring all of them.
    Measured(Nearness),
    /// By what is known of them; they are measured all the same, to compare with.
    Known(Known<'a>),
}

/// One call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    /// The number of the call, from 0: what the program of a call is depends on it.
    pub(crate) call: u64,
    /// How long it took, ns.
    pub(crate) ns: f64,
}

/// What the lines of a channel cost, ns, by their numbers in its plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LineTimes {
    /// A load by rank 1 of what rank 0 has just written, then the other way round.
    pub(crate) from: [Vec<f64>; 2],
}

impl LineTimes {
    /// How far these are from others of the same lines: the median over lines, as a share.
    fn off(&self, others: &Self) -> f64 {
        let both = self.from.iter().flatten().zip(others.from.iter().flatten());
        let off: Vec<f64> = both.map(|(a, b)| (a / b - 1.0).abs()).collect();
        stats::median(&off).unwrap_or(f64::INFINITY)
    }
}

/// Calls one after another, during which nothing moved.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) samples: Vec<Sample>,
    /// Windows in which a rank began late; they have no sample.
    pub(crate) late: usize,
    /// What its lines cost before and after.
    pub(crate) lines: [LineTimes; 2],
    /// How far the counter of rank 1 is ahead of that of rank 0, before and after, ns.
    pub(crate) ahead_ns: [f64; 2],
    /// How long it is from one poll to the next of either rank, before and after, ns; nothing where ranks do not pause.
    pub(crate) polls_ns: Vec<f64>,
    /// The round trip on each candidate, ns, where lines were chosen.
    pub(crate) trips_ns: Vec<f64>,
    /// How far each candidate is by what is known, where it was asked for and is known.
    pub(crate) distances: Vec<f64>,
}

impl Block {
    /// Whether the host moved a core meanwhile.
    fn has_moved(&self) -> bool {
        let [before, after] = self.ahead_ns;
        self.lines[0].off(&self.lines[1]) > MOVED || (before - after).abs() > APART_NS
    }
}

/// The calls of one collective.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series {
    pub(crate) blocks: Vec<Block>,
    /// Blocks during which the lines' costs changed; they were done again.
    pub(crate) moved: usize,
}

/// A late rank begins so much later, cycles: more than any call takes.
const LATER_CYCLES: u64 = 4000;
/// Calls of a block before its first sample: rings are gone round, and pages and predictors are warm.
const WARM: u64 = 256;
/// Windows of a block: some milliseconds, less than what a host takes between two moves.
const BLOCK: u64 = 500;
/// Loads of each line, before a block and after it.
const LOADS: u32 = 31;
/// A block is done again where its lines cost that much more or less afterwards. Two measurements without a
/// move differ by 2 %.
const MOVED: f64 = 0.08;
/// A block is done again where the counters are that much farther apart afterwards, ns: a step of a counter that
/// moves 100 million times a second.
const APART_NS: f64 = 10.0;
/// Blocks are done again so often, for each that is wanted, before that is called an error.
const AGAIN_MOST: usize = 4;

/// Calls `what` in at least `windows` windows, rank `r` on core `cores[r]`. Where a rank is `late`, it begins when the
/// other has long done what it can do without it, and a sample is what its own call takes.
pub(crate) fn series(
    what: What,
    cores: [CoreId; 2],
    windows: u64,
    late: Option<Rank>,
    clock: &Clock,
) -> Result<Series> {
    let wanted = usize::try_from(windows.div_ceil(BLOCK))?;
    let mut series = Series::default();
    while series.blocks.len() < wanted {
        let block = block(what, &cores, BLOCK, Lines::AsTheyLie, late, clock)?;
        if !block.has_moved() {
            series.blocks.push(block);
            continue;
        }
        series.moved += 1;
        ensure!(
            series.moved <= AGAIN_MOST * wanted,
            "what lines cost changed within {} of {} blocks of some milliseconds: the host moves these cores \
             all the time; stop what else runs, or try again later",
            series.moved,
            series.moved + series.blocks.len()
        );
    }
    Ok(series)
}

/// The calls of a team of one rank: each waits for nobody.
pub(crate) fn alone(what: What, core: CoreId, windows: u64, clock: &Clock) -> Result<Vec<f64>> {
    let block = block(what, &[core], windows, Lines::AsTheyLie, None, clock)?;
    Ok(block.samples.iter().map(|s| s.ns).collect())
}

/// What one rank saw in a block.
#[derive(Debug, Default)]
struct Row {
    times: Vec<Times>,
    /// Loads by this rank of what the other wrote, before and after, cycles.
    loads: [Vec<f64>; 2],
    /// How far the other's counter is ahead, before and after, cycles; 0 at rank 1.
    ahead: [i64; 2],
    /// From one poll to the next, before and after, cycles.
    polls: Vec<u64>,
    /// Round trips on candidates, cycles.
    trips: Vec<f64>,
}

/// Some windows of a new team, on lines that it chose or as they lie, with a rank that is late or none.
pub(crate) fn block(
    what: What,
    cores: &[CoreId],
    windows: u64,
    lines: Lines<'_>,
    late: Option<Rank>,
    clock: &Clock,
) -> Result<Block> {
    let ranks = u16::try_from(cores.len())?;
    let team = Team::threads(ranks, &Settings::default())?;
    let distances = match lines {
        Lines::Known(known) => known(&team[0])?,
        _ => Vec::new(),
    };
    let nearness = match lines {
        Lines::AsTheyLie => None,
        Lines::Measured(nearness) => Some(nearness),
        Lines::Known(_) => Some(Nearness::Nearest),
    };
    let meeting = Meeting::new(ranks, clock.tick);
    let mut rows: Vec<Row> = thread::scope(|scope| {
        let rank = |(me, &core): (Team, &CoreId)| {
            let (meeting, distances) = (&meeting, distances.as_slice());
            let later = if late == Some(me.rank()) { LATER_CYCLES } else { 0 };
            scope.spawn(move || {
                let asked = Asked { calls: WARM + windows, later, nearness, distances };
                let row = one_rank(what, me, core, &asked, meeting, clock.tick);
                if row.is_err() {
                    meeting.give_up();
                }
                row
            })
        };
        let threads: Vec<_> = team.into_iter().zip(cores).map(rank).collect();
        let joined = threads.into_iter().map(|t| t.join());
        joined.map(|one| one.unwrap_or_else(|_| bail!("a rank panicked"))).collect::<Result<_>>()
    })?;
    let ns = |rank: usize, at: usize| -> Vec<f64> {
        let row = rows.get(rank).map(|row| row.loads[at].as_slice());
        row.unwrap_or_default().iter().map(|&cycles| clock.ns(cycles)).collect()
    };
    // Rank 1 loads what rank 0 wrote.
    let lines = [0, 1].map(|at| LineTimes { from: [ns(1, at), ns(0, at)] });
    let ahead = rows.first().map_or([0; 2], |row| row.ahead);
    #[allow(clippy::cast_precision_loss, reason = "counters are less than 2^52 cycles apart")]
    let ahead_ns = ahead.map(|cycles| clock.ns(cycles as f64));
    for times in rows.iter_mut().skip(1).flat_map(|row| &mut row.times) {
        // Both are within a step of each other, or the block does not count.
        *times = times.by_one_behind(ahead[0].midpoint(ahead[1]));
    }
    let transfers: Vec<f64> = lines.iter().flat_map(|l| &l.from).flatten().copied().collect();
    let request_ns = stats::median(&transfers).map_or(f64::INFINITY, |ns| ns / 2.0);
    let (samples, late) = match late {
        None => evaluated(&rows, windows, request_ns, clock),
        Some(rank) => own(rows.get(rank.index()), windows, clock),
    };
    #[allow(clippy::cast_precision_loss, reason = "a pause takes far less than 2^52 cycles")]
    let polls_ns =
        rows.iter().flat_map(|row| &row.polls).map(|&cycles| clock.ns(cycles as f64)).collect();
    let trips = rows.first().map(|row| row.trips.as_slice()).unwrap_or_default();
    let trips_ns = trips.iter().map(|&cycles| clock.ns(cycles)).collect();
    Ok(Block { samples, late, lines, ahead_ns, polls_ns, trips_ns, distances })
}

/// What one rank is asked for in a block.
struct Asked<'a> {
    calls: u64,
    /// How much later than the other it begins, cycles.
    later: u64,
    /// How lines are chosen, where they are.
    nearness: Option<Nearness>,
    /// How far each candidate is, where that is known.
    distances: &'a [f64],
}

fn one_rank(
    what: What,
    mut me: Team,
    core: CoreId,
    asked: &Asked<'_>,
    meeting: &Meeting,
    tick: u32,
) -> Result<Row> {
    let &Asked { calls, later, nearness, distances } = asked;
    pin(core).with_context(|| format!("core {} cannot be used", core.0))?;
    let trips = match nearness {
        Some(nearness) => me.choose_lines(nearness, None)?,
        None => Vec::new(),
    };
    if !distances.is_empty() {
        me.choose_lines_by(distances)?;
    }
    let both = [Rank(0), Rank(1)];
    let several = me.ranks() > 1;
    let ahead = if several { me.counter_ahead(both, tick)? } else { 0 };
    let mut polls: Vec<u64> = poll_cycles().into_iter().collect();
    let before = loads(what, &mut me, tick)?;
    let mut word = [1; 2];
    let mut times = Vec::with_capacity(usize::try_from(calls)?);
    let own = if me.rank() == Rank(0) { 0 } else { ahead };
    for call in 1..=calls {
        let moment = meeting.moment(me.rank(), call, own, || {});
        let moment = moment.context("the other rank gave up")? + later;
        let (seen, done) = Times::of(moment, || what.call(&mut me, &mut word));
        done?;
        times.push(seen);
    }
    let after = loads(what, &mut me, tick)?;
    polls.extend(poll_cycles());
    let ahead_after = if several { me.counter_ahead(both, tick)? } else { 0 };
    Ok(Row { times, loads: [before, after], ahead: [ahead, ahead_after], polls, trips })
}

/// Loads of every line by each of two ranks in turn; those of this rank.
fn loads(what: What, me: &mut Team, tick: u32) -> Result<Vec<f64>> {
    let mut mine = Vec::new();
    if me.ranks() < 2 {
        return Ok(mine);
    }
    for (owner, asker) in [(Rank(0), Rank(1)), (Rank(1), Rank(0))] {
        let (kind, root, bytes) = (what.kind(), Rank(0), what.bytes() as usize);
        let loads = Loads { kind, root, bytes, owner, asker, repeats: LOADS, tick };
        mine.extend(me.load_cycles(loads)?);
    }
    Ok(mine)
}

#[allow(clippy::cast_precision_loss, reason = "differences of cycles are far below 2^52")]
fn evaluated(rows: &[Row], windows: u64, request_ns: f64, clock: &Clock) -> (Vec<Sample>, usize) {
    let mut samples = Vec::new();
    let mut late = 0;
    for call in WARM..WARM + windows {
        let Ok(at) = usize::try_from(call) else { break };
        let all = rows.iter().filter_map(|row| row.times.get(at)).copied();
        let Some(seen) = Isolated::of(all) else { break };
        // Whoever begins so much later than a request takes to come finds its line taken away.
        if clock.ns(seen.late as f64) > late_ns(clock) || clock.ns(seen.apart as f64) > request_ns {
            late += 1;
            continue;
        }
        samples.push(Sample { call, ns: clock.ns(seen.cycles as f64 - clock.overhead) });
    }
    (samples, late)
}

/// What each call took of one rank by its own counter, and how often it began late.
#[allow(clippy::cast_precision_loss, reason = "differences of cycles are far below 2^52")]
fn own(row: Option<&Row>, windows: u64, clock: &Clock) -> (Vec<Sample>, usize) {
    let times = row.map(|row| row.times.as_slice()).unwrap_or_default();
    let taken = times.iter().zip(0..).filter(|(_, call)| (WARM..WARM + windows).contains(call));
    let in_time = |t: &Times| clock.ns(t.late() as f64) <= late_ns(clock);
    let ns = |t: &Times| clock.ns(t.end.saturating_sub(t.begin) as f64 - clock.overhead);
    let (samples, late): (Vec<_>, Vec<_>) = taken.partition(|(t, _)| in_time(t));
    (samples.into_iter().map(|(t, call)| Sample { call, ns: ns(t) }).collect(), late.len())
}
