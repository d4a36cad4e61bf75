//! Seeded chance: orders in which no prefetcher knows the next line, and pages chosen fairly.

/// A generator of random numbers (xorshift64*; Vigna, ACM TOMS 42, 2016).
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    /// From a seed; any will do.
    pub(super) const fn new(seed: u64) -> Self {
        // A state of 0 would stay 0.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let [.., a, b, c, d] = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }

    /// A number below `bound`, which is not 0; fair to one part in 2^32 / bound.
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        let wide = u64::from(self.next()) * u64::from(bound);
        let [.., a, b, c, d] = wide.to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }

    /// Puts `items` into random order (Fisher and Yates).
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for left in (1..items.len()).rev() {
            let bound = u32::try_from(left + 1).unwrap_or(u32::MAX);
            let chosen = super::number::index(self.below(bound));
            items.swap(left, chosen.min(left));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn numbers_are_fair_and_orders_hold_everything() {
        let mut dice = Dice::new(0);
        let mut counts = [0_u32; 8];
        (0..8000).for_each(|_| counts[usize::try_from(dice.below(8)).unwrap()] += 1);
        assert!(counts.iter().all(|count| (880..1120).contains(count)), "{counts:?}");
        let mut items: Vec<u32> = (0..100).collect();
        dice.shuffle(&mut items);
        assert!(!items.is_sorted());
        items.sort_unstable();
        assert!(items.into_iter().eq(0..100));
    }
}
