//! What a page beyond fast memory costs on this machine: a small array of which half fits is gone through, beside the
//! same words in plain memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context, Result};
use isochrone_stats::{Spread, derive_seed};
use isochrone_tier::live::far::{Compressed, Lz4};
use isochrone_tier::live::{Config, Mapped};
use isochrone_tier::pages::Event;
use isochrone_units::PAGE_BYTES;
use serde::Serialize;

/// Pages of the array: more than any buffer of translations has entries. Half of them fit.
const PAGES: usize = 4096;
const FITTING: usize = PAGES / 2;
/// Times that all is measured; the one in the middle is taken.
const REPEATS: usize = 5;
/// Words of a page.
const WORDS: usize = PAGE_BYTES / size_of::<u64>();
/// Words of a page that hold noise; the rest is zeros, so that pages compress to about half.
const NOISE: usize = WORDS / 2;
/// Arithmetic this many times what replacing takes makes a sweep without a mover a tenth slower.
const TENTH: f64 = 10.0;

/// What a page costs, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Costs {
    /// The first touch of a page, in order: zeros.
    pub(crate) first_touch_us: Spread,
    /// A page in order that replaces another, beyond what the same sweep takes in plain memory.
    pub(crate) in_order_us: Spread,
    /// A fault on a page at random that replaces another.
    pub(crate) at_random_us: Spread,
    /// A page of the same sweep in plain memory.
    pub(crate) plain_us: Spread,
    /// Predicted from these: arithmetic for a page from which on a mover with a core of its own has each page there in
    /// time, as in order: then a sweep takes what it takes in plain memory.
    pub(crate) with_mover_from_us: f64,
    /// Predicted from these: arithmetic for a page from which on a sweep without a mover takes at most a tenth more.
    pub(crate) without_mover_from_us: f64,
}

/// Measures, some tenths of a second.
///
/// # Errors
/// No array can be had here.
pub(crate) fn costs() -> Result<Costs> {
    let rounds: Vec<[f64; 4]> = (0..REPEATS).map(|_| round()).collect::<Result<_>>()?;
    let taken = |which: usize| {
        Spread::of(rounds.iter().map(|round| round[which])).context("nothing was measured")
    };
    let in_order_us = taken(1)?;
    Ok(Costs {
        first_touch_us: taken(0)?,
        in_order_us,
        at_random_us: taken(2)?,
        plain_us: taken(3)?,
        with_mover_from_us: in_order_us.median,
        without_mover_from_us: TENTH * in_order_us.median,
    })
}

/// Microseconds of a page: first touched, in order, at random, in plain memory.
fn round() -> Result<[f64; 4]> {
    let plain: Vec<AtomicU64> = (0..PAGES * WORDS).map(|_| AtomicU64::new(0)).collect();
    fill(&plain);
    let plain_us = us_a_page(PAGES, || sweep(&plain));
    let bytes = PAGES * PAGE_BYTES;
    let far = Compressed::new(&Lz4, bytes, PAGE_BYTES, 2 * bytes)?;
    let array = Mapped::new(Config::new(bytes, FITTING * PAGE_BYTES, 1), Box::new(far))?;
    let words = array.words();
    let first_us = us_a_page(FITTING, || touch(&words[..FITTING * WORDS]));
    fill(words);
    let in_order_us = us_a_page(PAGES, || sweep(words)) - plain_us;
    let faults = || Ok::<_, anyhow::Error>(array.statistics()?.of_workers().events(Event::Missing));
    let before = faults()?;
    let begin = Instant::now();
    drawn().for_each(|page| _ = words[page * WORDS].fetch_add(1, Ordering::Relaxed));
    let us = begin.elapsed().as_secs_f64() * 1e6;
    let at_random_us = us / (faults()? - before).max(1) as f64;
    Ok([first_us, in_order_us.max(0.0), at_random_us, plain_us])
}

fn us_a_page(pages: usize, work: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    work();
    begin.elapsed().as_secs_f64() * 1e6 / pages as f64
}

fn touch(words: &[AtomicU64]) {
    words.iter().step_by(WORDS).for_each(|word| word.store(1, Ordering::Relaxed));
}

fn fill(words: &[AtomicU64]) {
    for (at, word) in words.iter().enumerate().filter(|(at, _)| at % WORDS < NOISE) {
        word.store(derive_seed(0, at as u64), Ordering::Relaxed);
    }
}

/// Writes each page, so that what leaves has to be kept.
fn sweep(words: &[AtomicU64]) {
    for word in words {
        word.store(word.load(Ordering::Relaxed).wrapping_mul(3), Ordering::Relaxed);
    }
}

/// All pages in an order without a pattern.
fn drawn() -> impl Iterator<Item = usize> {
    let mut pages: Vec<usize> = (0..PAGES).collect();
    pages.sort_by_key(|page| derive_seed(1, *page as u64));
    pages.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_drawn_once() {
        let mut pages: Vec<usize> = drawn().collect();
        assert_ne!(pages[..8], [0, 1, 2, 3, 4, 5, 6, 7]);
        pages.sort_unstable();
        assert!(pages.into_iter().eq(0..PAGES));
    }
}
