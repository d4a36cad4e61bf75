//! Isolated calls of two ranks on this machine, each in a window of time.
//!
//! Rank 0 names a moment of the time-stamp counter a little ahead, and both ranks begin then. A sample is from
//! when the later of the two began to when the later one was done, without what reading the clock takes. It
//! never looks at a model.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use anyhow::{Context, Result, bail};
use isochrone_cla::collectives::Collective;
use isochrone_cla::live::{Reduction, Settings, Team};
use isochrone_cla::program::{Combine, Element, Rank};
use isochrone_os::affinity::pin;
use isochrone_os::clock::{self, Clock};
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

/// One call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    /// The number of the call, from 0: what the program of a call is depends on it.
    pub(crate) call: u64,
    /// How long it took, ns.
    pub(crate) ns: f64,
}

/// The calls of one collective.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) samples: Vec<Sample>,
    /// Windows in which a rank began late; they have no sample.
    pub(crate) late: usize,
}

/// How far ahead a window begins, cycles: time for the moment to reach the other rank, some ten transfers.
const AHEAD_CYCLES: u64 = 4000;
/// A rank that begins more than this after the moment was interrupted, ns: a look at the clock takes 20.
const LATE_NS: f64 = 60.0;
/// Calls before the first sample: rings are gone round, and pages and predictors are warm.
const WARM: u64 = 2000;

/// A line pair of its own for each word.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Apart(AtomicU64);

/// What the ranks tell each other between calls.
#[derive(Debug, Default)]
struct Window {
    moment: Apart,
    named: Apart,
    ready: Apart,
}

/// When a rank began and ended a call, and when it should have begun, cycles.
#[derive(Clone, Copy, Debug)]
struct Times {
    moment: u64,
    begin: u64,
    end: u64,
}

/// Calls `what` in `windows` windows, rank `r` on core `cores[r]`; with one core there is one rank.
pub(crate) fn series(what: What, cores: &[CoreId], windows: u64, clock: &Clock) -> Result<Series> {
    let ranks = u16::try_from(cores.len())?;
    let team = Team::threads(ranks, &Settings::default())?;
    let window = Window::default();
    let rows: Vec<Vec<Times>> = thread::scope(|scope| {
        let rank = |(me, &core): (Team, &CoreId)| {
            let window = &window;
            scope.spawn(move || one_rank(what, me, (core, ranks), WARM + windows, window))
        };
        let threads: Vec<_> = team.into_iter().zip(cores).map(rank).collect();
        let joined = threads.into_iter().map(|t| t.join());
        joined.map(|one| one.unwrap_or_else(|_| bail!("a rank panicked"))).collect::<Result<_>>()
    })?;
    Ok(evaluated(&rows, windows, clock))
}

fn one_rank(
    what: What,
    mut me: Team,
    (core, ranks): (CoreId, u16),
    calls: u64,
    window: &Window,
) -> Result<Vec<Times>> {
    pin(core).with_context(|| format!("core {} cannot be used", core.0))?;
    let root = me.rank() == Rank(0);
    let mut word = [1; 2];
    let mut times = Vec::with_capacity(usize::try_from(calls)?);
    for call in 1..=calls {
        let moment = if root {
            until(&window.ready.0, if ranks > 1 { call } else { 0 });
            let moment = clock::start() + AHEAD_CYCLES;
            window.moment.0.store(moment, Ordering::Relaxed);
            window.named.0.store(call, Ordering::Release);
            moment
        } else {
            window.ready.0.store(call, Ordering::Release);
            until(&window.named.0, call);
            window.moment.0.load(Ordering::Relaxed)
        };
        let mut begin = clock::start();
        while begin < moment {
            begin = clock::start();
        }
        what.call(&mut me, &mut word)?;
        times.push(Times { moment, begin, end: clock::stop() });
    }
    Ok(times)
}

/// Both ranks have cores of their own, so nobody yields.
fn until(word: &AtomicU64, value: u64) {
    while word.load(Ordering::Acquire) < value {
        std::hint::spin_loop();
    }
}

#[allow(clippy::cast_precision_loss, reason = "differences of cycles are far below 2^52")]
fn evaluated(rows: &[Vec<Times>], windows: u64, clock: &Clock) -> Series {
    let mut samples = Vec::new();
    let mut late = 0;
    for call in WARM..WARM + windows {
        let Ok(at) = usize::try_from(call) else { break };
        let all = || rows.iter().filter_map(|row| row.get(at));
        let (Some(begin), Some(end), Some(moment)) = (
            all().map(|t| t.begin).max(),
            all().map(|t| t.end).max(),
            all().map(|t| t.moment).max(),
        ) else {
            break;
        };
        if clock.ns(begin.saturating_sub(moment) as f64) > LATE_NS {
            late += 1;
            continue;
        }
        let ns = clock.ns(end.saturating_sub(begin) as f64 - clock.overhead);
        samples.push(Sample { call, ns });
    }
    Series { samples, late }
}
