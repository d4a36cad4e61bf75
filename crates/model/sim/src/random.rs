//! Named streams of random numbers under one explicit seed, and the stateless choices behind
//! random hashes.
//!
//! The generator and its distributions are those of `stats`; this file only keeps the streams of
//! one spec apart, so that more noise does not move a frame. It never seeds itself.

use isochrone_stats as stats;

/// What a stream is for. Numbers are part of what a seed means: never renumber.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stream {
    /// Which frame each page has.
    Frames = 1,
    /// Everything that disturbs samples.
    Noise = 2,
    /// When a host moves its cores, and where to.
    Moves = 3,
    /// Masks of address hashes.
    Masks = 4,
    /// Patterns of presets.
    Pattern = 5,
    /// When somebody else's work takes cores away.
    Neighbours = 6,
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(stats::Xoshiro256PlusPlus);

impl Random {
    /// The stream of a seed for one purpose.
    pub(crate) fn new(seed: u64, stream: Stream) -> Self {
        Self(stats::rng(stats::derive_seed(seed, stream as u64)))
    }

    /// Any 64 bits.
    pub(crate) fn bits(&mut self) -> u64 {
        stats::Rng::next_u64(&mut self.0)
    }

    /// Uniform in `0.0..1.0`.
    pub(crate) fn uniform(&mut self) -> f64 {
        stats::uniform(&mut self.0)
    }

    /// Uniform in `0..bound`; 0 for an empty range.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        stats::below(&mut self.0, bound)
    }

    /// True with `probability`. Draws nothing when the answer is no for certain.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.uniform() < probability
    }

    /// Standard normal.
    pub(crate) fn normal(&mut self) -> f64 {
        stats::normal(&mut self.0)
    }

    /// A random order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        stats::shuffle(items, &mut self.0);
    }
}

/// A choice below `bound` that `of` has for ever under `seed`, without a table.
pub(crate) fn choice(seed: u64, of: u64, bound: u64) -> u64 {
    let product = u128::from(stats::derive_seed(seed, of)) * u128::from(bound);
    u64::try_from(product >> 64).expect("the upper half of 128 bits fits 64")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_follow_from_seed_and_purpose() {
        let draw = |seed, stream| Random::new(seed, stream).bits();
        assert_eq!(draw(1, Stream::Noise), draw(1, Stream::Noise));
        assert_ne!(draw(1, Stream::Noise), draw(2, Stream::Noise));
        assert_ne!(draw(1, Stream::Noise), draw(1, Stream::Frames));
    }

    #[test]
    fn choices_are_lasting_and_even() {
        let mut seen = [0_u32; 5];
        for of in 0..5000 {
            let choice = choice(3, of, 5);
            assert_eq!(choice, super::choice(3, of, 5));
            seen[crate::number::index(choice)] += 1;
        }
        assert!(seen.iter().all(|n| (850..1150).contains(n)), "{seen:?}");
    }

    #[test]
    fn nothing_is_drawn_for_what_never_happens() {
        let (mut one, mut other) = (Random::new(1, Stream::Noise), Random::new(1, Stream::Noise));
        assert!(!one.chance(0.0));
        assert_eq!(one.bits(), other.bits(), "so that options left out change no other draw");
        let often = (0..10_000).filter(|_| one.chance(0.3)).count();
        assert!((2800..3200).contains(&often), "{often}");
    }
}
