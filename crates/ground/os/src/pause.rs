//! What a core does between two looks at a word that another core will write.
//!
//! A core that only looks has many loads of the word under way at once, made in advance. When the word
//! changes, all of them are undone before the core goes on; and a core that shares its pipeline with the
//! writer holds it up meanwhile. Never sleeps, and never decides how long to wait.

use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::{arch, clock};

/// Pauses that are timed together.
const TOGETHER: u16 = 16;
/// How often they are timed: the shortest counts, since nothing makes a pause too short.
const TIMES: u32 = 64;

/// Waits a little between two looks, where somebody else has to do something first.
#[inline(always)]
pub fn pause() {
    arch::pause();
}

/// Cycles that one pause of this CPU takes: some 10 on Intel before Skylake and 140 since, 40 to 65 on Zen.
#[must_use]
pub fn pause_cycles() -> u64 {
    shortest(pause)
}

/// Cycles from one look at a word that is at hand to the next, [`between_looks`] in between.
#[must_use]
pub fn look_cycles() -> u64 {
    let word = AtomicU64::new(0);
    shortest(|| {
        black_box(word.load(Ordering::Acquire));
        between_looks();
    })
}

/// The shortest time that `one` takes, done several times in a row, cycles.
fn shortest(one: impl Fn()) -> u64 {
    let time = || {
        let begin = clock::start();
        (0..TOGETHER).for_each(|_| one());
        clock::stop().saturating_sub(begin) / u64::from(TOGETHER)
    };
    (0..TIMES).map(|_| time()).min().unwrap_or(u64::MAX)
}

/// Lets the last look come, then pauses.
#[inline(always)]
pub fn between_looks() {
    arch::order_loads();
    pause();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_can_be_timed() {
        between_looks();
        assert!(pause_cycles() < u64::MAX);
        assert!(look_cycles() < u64::MAX);
    }
}
