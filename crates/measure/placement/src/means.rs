//! What a search has: chance, and the wish of its caller that it goes on.
//!
//! Whoever searches asks every some ten milliseconds. A search that was told to end gives what it has, which may be
//! its first guess; only [`super::infer`] looks whether that happened, and then believes none of it.

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The means of a search.
pub(super) struct Means<'a> {
    /// Chance, the same for the same seed.
    pub(super) rng: Xoshiro256PlusPlus,
    keep_going: &'a dyn Fn() -> bool,
}

impl<'a> Means<'a> {
    /// Chance of this seed.
    pub(super) fn new(seed: u64, keep_going: &'a dyn Fn() -> bool) -> Self {
        Self { rng: Xoshiro256PlusPlus::seed_from_u64(seed), keep_going }
    }

    /// Nobody wants an end.
    pub(super) fn unhurried(seed: u64) -> Self {
        Self::new(seed, &|| true)
    }

    /// Whether the caller wants to know.
    pub(super) fn keep_going(&self) -> bool {
        (self.keep_going)()
    }
}
