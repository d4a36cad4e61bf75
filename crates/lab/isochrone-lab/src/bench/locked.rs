//! Flags written by a locked instruction, as the CLa paper writes them (its section 3), against plain stores.
//!
//! Two ranks make calls one after another, on lines chosen alike. Nothing else differs between the arms.

use std::thread;

use anyhow::{Context, Result, bail};
use isochrone_cla::live::{Nearness, Settings, Team, TeamError};
use isochrone_cla::program::Rank;
use isochrone_console::turns::{Costs, Ratio};
use isochrone_os::affinity::pin;
use isochrone_os::clock::{self, Clock};
use isochrone_stats::{median, rng, shuffle};
use isochrone_units::CoreId;
use serde::Serialize;

use super::budget::Stop;

/// Timed calls of a block, and as many before them that are not.
const CALLS: u16 = 1000;
/// Seed of bootstraps.
const SEED: u64 = 17;
/// The arms: stores are there twice.
const ARMS: usize = 3;
const STORES: usize = 0;
const STORES_AGAIN: usize = 1;
const LOCKED: usize = 2;

/// What is called over and over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Calls {
    /// Broadcasts of eight bytes with roots in turn, so that nobody runs ahead.
    Alternating,
    /// Broadcasts of eight bytes from one root, which may run ahead.
    Steady,
    Barriers,
}

impl Calls {
    const ALL: [Self; 3] = [Self::Alternating, Self::Steady, Self::Barriers];

    /// The names that `bench coll` has for collectives and modes.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Alternating => ("bcast", "alternating"),
            Self::Steady => ("bcast", "steady"),
            Self::Barriers => ("barrier", "steady"),
        }
    }

    fn call(self, me: &mut Team, number: u16) -> Result<(), TeamError> {
        let mut word = [u64::from(number)];
        match self {
            Self::Alternating => me.broadcast(&mut word, Rank(number % 2)),
            Self::Steady => me.broadcast(&mut word, Rank(0)),
            Self::Barriers => me.barrier(),
        }
    }
}

/// One kind of calls under both ways to write a flag.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Locked {
    pub(super) collective: &'static str,
    pub(super) calls: &'static str,
    /// A call with plain release stores, ns: the median over blocks.
    pub(super) stores_ns: Option<f64>,
    /// The same with an exchange, which is locked.
    pub(super) locked_ns: Option<f64>,
    /// How many times as long calls with locked writes take.
    pub(super) locked_over_stores: Option<Ratio>,
    /// Stores against stores.
    pub(super) aa_control: Option<Ratio>,
}

/// Times of blocks, by kind of calls and arm.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    ns: [[Vec<f64>; ARMS]; Calls::ALL.len()],
}

impl Blocks {
    /// Times every kind of calls with every arm once, in random order; false where nobody wants that any more.
    pub(super) fn add(
        &mut self,
        cores: [CoreId; 2],
        clock: &Clock,
        seed: u64,
        stop: &Stop,
    ) -> Result<bool> {
        let mut order: Vec<(usize, usize)> =
            (0..Calls::ALL.len()).flat_map(|c| (0..ARMS).map(move |arm| (c, arm))).collect();
        shuffle(&mut order, &mut rng(seed));
        for (calls, arm) in order {
            match stop.apart(move || block(Calls::ALL[calls], arm == LOCKED, cores)) {
                Err(_) if stop.is_set() => return Ok(false),
                cycles => self.ns[calls][arm].push(clock.ns(cycles?)),
            }
        }
        Ok(true)
    }

    pub(super) fn figures(&self) -> Vec<Locked> {
        let one = |(calls, arms): (Calls, &[Vec<f64>; ARMS])| {
            let (collective, mode) = calls.names();
            let over_stores = |arm: usize| {
                Ratio::paired(Costs::measured(&arms[arm]), Costs::measured(&arms[STORES]), SEED)
            };
            Locked {
                collective,
                calls: mode,
                stores_ns: median(&arms[STORES]),
                locked_ns: median(&arms[LOCKED]),
                locked_over_stores: over_stores(LOCKED),
                aa_control: over_stores(STORES_AGAIN),
            }
        };
        Calls::ALL.into_iter().zip(&self.ns).map(one).collect()
    }
}

/// Cycles that a call takes in a new team of two threads.
fn block(calls: Calls, locked: bool, cores: [CoreId; 2]) -> Result<f64> {
    let team = Team::threads(2, &Settings { locked, ..Settings::default() })?;
    let cycles: Vec<f64> = thread::scope(|scope| {
        let rank = |(me, core)| scope.spawn(move || one_rank(calls, me, core));
        let threads: Vec<_> = team.into_iter().zip(cores).map(rank).collect();
        let joined = threads.into_iter().map(|t| t.join());
        joined.map(|one| one.unwrap_or_else(|_| bail!("a rank panicked"))).collect::<Result<_>>()
    })?;
    cycles.first().copied().context("a team has two ranks")
}

/// The barrier at the end waits for the last call to come; it adds less than a thousandth part of a call for
/// each that it takes as long as.
#[allow(clippy::cast_precision_loss, reason = "milliseconds are far below 2^52 cycles")]
fn one_rank(calls: Calls, mut me: Team, core: CoreId) -> Result<f64> {
    pin(core).with_context(|| format!("core {} cannot be used", core.0))?;
    let _round_trips = me.choose_lines(Nearness::Nearest, None)?;
    (0..CALLS).try_for_each(|number| calls.call(&mut me, number))?;
    me.barrier()?;
    let begin = clock::start();
    (0..CALLS).try_for_each(|number| calls.call(&mut me, number))?;
    me.barrier()?;
    Ok(clock::stop().saturating_sub(begin) as f64 / f64::from(CALLS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_is_compared_within_its_blocks() {
        let arms = [vec![10.0, 20.0], vec![10.0, 20.0], vec![15.0, 30.0]];
        let figures = Blocks { ns: [arms.clone(), arms.clone(), arms] }.figures();
        assert_eq!(figures.len(), Calls::ALL.len());
        for one in figures {
            assert_eq!((one.stores_ns, one.locked_ns), (Some(15.0), Some(22.5)));
            assert_eq!(one.locked_over_stores.map(|r| r.median), Some(1.5));
            assert_eq!(one.aa_control.map(|r| r.median), Some(1.0));
        }
    }
}
