//! Programs on an array that is mapped: what a program gets that has no team. The same runs on plain memory, which
//! says what is right.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Result;
use isochrone_os::affinity::pin;
use isochrone_os::clock::process_cpu_ns;
use isochrone_stats::derive_seed;
use isochrone_tier::live::{Config, Mapped, Mode};
use isochrone_tier::pages::Event;
use isochrone_units::CoreId;

use super::area::{config, far};
use super::request::{Answer, Mapped as Asked, Pattern, Request};

/// Words of a page.
pub(super) const PAGE: usize = 512;
/// Passes of a sweep.
const PASSES: u64 = 6;
/// Bits of a key that a pass of the sort looks at, and passes.
const DIGIT: u32 = 8;
const DIGITS: u32 = 4;

/// Runs it on a mapped array.
pub(super) fn run(request: &Request, asked: Asked) -> Result<Answer> {
    let bytes = asked.pages * 4096;
    let mode = if asked.by_handlers { Mode::Blocking } else { Mode::Signal };
    let config = Config { follow: asked.follow, mode: Some(mode), ..config(request, bytes) };
    let array = Mapped::new(config, far(request, bytes)?)?;
    let words = array.words();
    fill(words);
    let before = array.statistics()?.of_workers();
    let (begin, processor) = (Instant::now(), process_cpu_ns());
    work(words, asked, &request.worker_cores);
    let ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let processor_ns = process_cpu_ns() - processor;
    let counters = array.statistics()?.of_workers().since(&before);
    let missing = counters.events(Event::Missing);
    Ok(Answer { digest: digest(words), ns, processor_ns, missing, ..Answer::default() })
}

/// What is right.
pub(crate) fn reference(asked: Asked) -> u64 {
    let words: Vec<AtomicU64> = (0..asked.pages * PAGE).map(|_| AtomicU64::new(0)).collect();
    fill(&words);
    work(&words, Asked { threads: 1, ..asked }, &[]);
    digest(&words)
}

pub(super) fn fill(words: &[AtomicU64]) {
    for (at, word) in words.iter().enumerate() {
        word.store(mixed(at as u64), Ordering::Relaxed);
    }
}

fn work(words: &[AtomicU64], asked: Asked, cores: &[u16]) {
    match asked.pattern {
        Pattern::Sweep => sweep(words),
        Pattern::Sort => sort(words),
        Pattern::Walk(steps) => std::thread::scope(|scope| {
            for thread in 0..u32::from(asked.threads) {
                let mine = (thread..steps).step_by(usize::from(asked.threads));
                let core = cores.get(thread as usize % cores.len().max(1)).copied();
                scope.spawn(move || {
                    // Where it may not be pinned the run is still right.
                    let _ = core.map(|core| pin(CoreId(core)));
                    walk(words, mine);
                });
            }
        }),
    }
}

fn sweep(words: &[AtomicU64]) {
    for pass in 0..PASSES {
        for word in words {
            let was = word.load(Ordering::Relaxed);
            word.store(was.wrapping_mul(3).wrapping_add(pass), Ordering::Relaxed);
        }
    }
}

/// Least digit first, from one half to the other and back.
fn sort(words: &[AtomicU64]) {
    let (mut from, mut to) = words.split_at(words.len() / 2);
    for digit in 0..DIGITS {
        let bucket = |key: u64| (key >> (digit * DIGIT) & 0xff) as usize;
        let mut places = [0; 1 << DIGIT];
        for key in from {
            places[bucket(key.load(Ordering::Relaxed))] += 1;
        }
        let mut first = 0;
        for place in &mut places {
            first += std::mem::replace(place, first);
        }
        for key in from {
            let key = key.load(Ordering::Relaxed);
            let place = &mut places[bucket(key)];
            to[*place].store(key, Ordering::Relaxed);
            *place += 1;
        }
        (from, to) = (to, from);
    }
}

/// Writes a word that is drawn for each step: whoever makes the steps, and in whatever order, the same words come of
/// it.
pub(super) fn walk(words: &[AtomicU64], steps: impl Iterator<Item = u32>) {
    for step in steps {
        words[place(step, words.len())].fetch_add(mixed(u64::from(step)), Ordering::Relaxed);
    }
}

/// The word of a step, of so many.
pub(super) fn place(step: u32, words: usize) -> usize {
    usize::try_from(mixed(u64::from(step)) % words as u64).unwrap_or_default()
}

pub(super) fn digest(words: &[AtomicU64]) -> u64 {
    let words = words.iter().zip(0..);
    words.fold(0, |sum, (word, at)| sum ^ mixed(word.load(Ordering::Relaxed) ^ mixed(at)))
}

/// Another number for each number, without a pattern.
fn mixed(number: u64) -> u64 {
    derive_seed(0, number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(pages: usize) -> Vec<AtomicU64> {
        let words: Vec<AtomicU64> = (0..pages * PAGE).map(|_| AtomicU64::new(0)).collect();
        fill(&words);
        words
    }

    #[test]
    fn four_digits_of_half_the_keys_are_sorted_and_none_is_lost() {
        let words = filled(4);
        let keys = |words: &[AtomicU64]| -> Vec<u64> {
            words.iter().map(|word| word.load(Ordering::Relaxed)).collect()
        };
        let mut expected = keys(&words[..2 * PAGE]);
        expected.sort_by_key(|key| key & u64::from(u32::MAX));
        sort(&words);
        assert_eq!(keys(&words[..2 * PAGE]), expected);
    }

    #[test]
    fn a_walk_is_the_same_by_any_number_of_threads() {
        let of = |threads| {
            let words = filled(8);
            let pattern = Pattern::Walk(1000);
            let asked = Asked { pattern, pages: 8, threads, follow: true, by_handlers: false };
            work(&words, asked, &[]);
            digest(&words)
        };
        assert_eq!((of(3), of(8)), (of(1), of(1)));
        assert_ne!(of(1), digest(&filled(8)));
    }
}
