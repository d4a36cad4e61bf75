//! The hidden command `isochrone-lab malloc-calls`: how long single calls of an allocator take, for `bench malloc`. It
//! allocates by the system's `malloc`, or by what is preloaded before it.

use std::hint::black_box;
use std::process::ExitCode;

use anyhow::{Context, Result};
use isochrone_console::output::Terminal;
use isochrone_os::clock::{Clock, start, stop};
use isochrone_stats::{derive_seed, quantile};
use serde::{Deserialize, Serialize};

/// Objects that live at a time: with their headers more than a second-level cache holds.
const LIVE: usize = 1 << 16;
/// Calls that are timed, of each kind: the slowest of ten thousand is one of two hundred.
const CALLS: usize = 1 << 20;
/// Sizes are drawn from one byte to this: half of them can be placed.
const SIZE_MOST: u64 = 512;

/// What single calls took, ns; what timing itself takes is taken off.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Calls {
    pub(crate) p50_ns: f64,
    pub(crate) p99_ns: f64,
    /// The slowest of ten thousand.
    pub(crate) p9999_ns: f64,
    pub(crate) most_ns: f64,
}

/// Runs the command: one answer as a line of JSON.
pub(crate) fn run(terminal: &Terminal) -> Result<ExitCode> {
    let clock = Clock::calibrate();
    let times = timed();
    let calls = Calls::of(times, &clock).context("no call was timed")?;
    terminal.print(&serde_json::to_string(&calls)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Cycles of each call of `malloc` and of `free`: an object that is drawn goes, and another one of a drawn size comes.
fn timed() -> Vec<f64> {
    let mut times = Vec::with_capacity(2 * CALLS);
    let drawn = |number: usize| derive_seed(7, number as u64);
    let of = |number: u64| usize::try_from(number % SIZE_MOST + 1).unwrap_or(1);
    let made = |number: usize| Vec::<u8>::with_capacity(of(drawn(number)));
    let mut live: Vec<Vec<u8>> = (0..LIVE).map(made).collect();
    for call in LIVE..LIVE + CALLS {
        let number = drawn(call);
        let (place, size) = ((number >> 32) as usize % LIVE, of(number));
        let gone = std::mem::take(&mut live[place]);
        let begin = start();
        drop(black_box(gone));
        times.push(cycles(begin, stop()));
        let begin = start();
        let come = black_box(Vec::with_capacity(size));
        times.push(cycles(begin, stop()));
        live[place] = come;
        // Who has an object writes to it.
        live[place].push(1);
    }
    times
}

#[allow(clippy::cast_precision_loss, reason = "a time, of which 53 bits are enough")]
const fn cycles(begin: u64, end: u64) -> f64 {
    end.saturating_sub(begin) as f64
}

impl Calls {
    fn of(mut times: Vec<f64>, clock: &Clock) -> Option<Self> {
        times.sort_unstable_by(f64::total_cmp);
        let at = |q| Some(clock.ns((quantile(&times, q)? - clock.overhead).max(0.0)));
        Some(Self { p50_ns: at(0.5)?, p99_ns: at(0.99)?, p9999_ns: at(0.9999)?, most_ns: at(1.0)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_all_calls_the_slowest_are_named() {
        let clock = Clock { hz: 1e9, hz_error: 0.0, tick: 1, overhead: 5.0 };
        let mut times = vec![25.0; 100_000];
        times[7..7 + 2000].fill(105.0);
        times[50_000..50_011].fill(1005.0);
        times[99_999] = 90_005.0;
        let calls = Calls::of(times, &clock).unwrap();
        assert_eq!((calls.p50_ns, calls.p99_ns), (20.0, 100.0));
        assert_eq!((calls.p9999_ns, calls.most_ns), (1000.0, 90_000.0));
        assert_eq!(Calls::of(Vec::new(), &clock), None);
    }
}
