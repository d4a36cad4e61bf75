//! How a machine spreads physical lines over its slices and its controllers.
//!
//! The forms are the ones that are known of real machines: linear XOR masks (powers of two), a
//! base sequence permuted by masks (other numbers; McCalpin, TR-2021-03, doi 10.26153/tsw/14539),
//! plain interleaving, and choice by page. `Irregular` is the counter-example on which an
//! estimator has to say that no form holds. Geometry is not known here.

use crate::number::{narrow, wide};
use crate::random::{Random, Stream, choice};

/// From a physical line to one of `ways` units.
#[derive(Clone, Debug, PartialEq)]
pub enum AddressHash {
    /// No hash: the line number modulo the ways.
    Interleave,
    /// Bit `b` of the unit is the parity of the line number under mask `b`. Powers of two only.
    Xor {
        /// One mask for each bit of the unit.
        masks: Vec<u64>,
    },
    /// A base sequence of `2^masks.len()` lines, its positions permuted by XOR with a key whose
    /// bit `b` is the parity, under mask `b`, of the line number divided by that length. Any
    /// number of ways; each unit has the same share to within one line of a sequence.
    Permuted {
        /// One mask for each bit of the key.
        masks: Vec<u64>,
        /// Chooses the base sequence.
        salt: u64,
    },
    /// One unit for a whole page, at random with these weights (one for each way).
    PerPage {
        /// How often each unit is chosen, relative to the others.
        weights: Vec<u32>,
        /// Chooses which page has which.
        seed: u64,
    },
    /// One unit for each line, at random: no form holds.
    Irregular {
        /// Chooses which line has which.
        seed: u64,
    },
}

impl AddressHash {
    /// The unit, below `ways`, of a physical line.
    #[must_use]
    pub fn unit(&self, line: u64, ways: u16) -> u16 {
        let unit = match self {
            Self::Interleave => line % u64::from(ways),
            Self::Xor { masks } => parities(line, masks),
            Self::Permuted { masks, salt } => {
                let period_bits = masks.len();
                let position = line & ((1 << period_bits) - 1);
                let key = parities(line >> period_bits, masks);
                scatter(position ^ key, period_bits, *salt) % u64::from(ways)
            }
            Self::PerPage { weights, seed } => return weighted(line / 64, weights, *seed),
            Self::Irregular { seed } => choice(*seed, line, u64::from(ways)),
        };
        narrow(unit)
    }

    /// Units that the hash distinguishes between whole pages only.
    pub(crate) fn page_ways(&self) -> u16 {
        match self {
            Self::PerPage { weights, .. } => narrow(wide(weights.len())),
            _ => 1,
        }
    }

    /// What keeps this hash from spreading lines over `ways` units, in words.
    #[must_use]
    pub fn defect(&self, ways: usize) -> Option<String> {
        match self {
            Self::Interleave | Self::Irregular { .. } => None,
            Self::Xor { masks } if masks.len() < 16 && ways == 1 << masks.len() => None,
            Self::Xor { masks } => Some(format!(
                "{} XOR masks cannot choose one of {ways}; give one mask a bit, or a permuted hash",
                masks.len()
            )),
            Self::Permuted { masks, .. } if masks.len() < 16 && ways <= 1 << masks.len() => None,
            Self::Permuted { .. } => {
                Some(format!("the base sequence needs {ways} lines or more and 2^15 or fewer"))
            }
            Self::PerPage { weights, .. } if weights.len() != ways => {
                Some(format!("give {ways} weights, not {}", weights.len()))
            }
            Self::PerPage { weights, .. } => weights
                .iter()
                .all(|w| *w == 0)
                .then(|| "give at least one weight above 0".to_owned()),
        }
    }

    /// Masks whose lowest `bits` bits are a full-rank mixture (so that one period of `2^bits`
    /// lines reaches every unit once) and whose bits up to `2^top` are random.
    #[must_use]
    pub fn random_xor_masks(bits: u32, top: u32, seed: u64) -> Vec<u64> {
        let mut random = Random::new(seed, Stream::Masks);
        (0..bits)
            .map(|bit| {
                // Upper triangular with a unit diagonal, hence invertible.
                let above = random.bits() & ((1 << bits) - (2 << bit));
                let high = random.bits() & ((1 << top) - (1 << bits));
                (1 << bit) | above | high
            })
            .collect()
    }

    /// Random masks for the key of a [`AddressHash::Permuted`] of `2^bits` lines.
    #[must_use]
    pub fn random_key_masks(bits: u32, top: u32, seed: u64) -> Vec<u64> {
        let mut random = Random::new(seed, Stream::Masks);
        (0..bits).map(|_| random.bits() & ((1 << (top - bits)) - 1)).collect()
    }
}

fn parities(value: u64, masks: &[u64]) -> u64 {
    masks
        .iter()
        .rev()
        .fold(0, |unit, mask| (unit << 1) | u64::from((value & mask).count_ones() % 2))
}

/// A bijection of `0..2^bits`: odd multiplication and XOR with the upper half, twice. Taken
/// modulo the ways it gives each unit its share to within one.
fn scatter(position: u64, bits: usize, salt: u64) -> u64 {
    let mask = (1_u64 << bits) - 1;
    let half = bits.div_ceil(2);
    let round = |value: u64, multiplier: u64| {
        let product = value.wrapping_mul(multiplier | 1) & mask;
        product ^ (product >> half)
    };
    let [first, second] = [0, 1].map(|of| isochrone_stats::derive_seed(salt, of));
    round(round(position, first), second)
}

fn weighted(frame: u64, weights: &[u32], seed: u64) -> u16 {
    let total: u64 = weights.iter().map(|w| u64::from(*w)).sum();
    let mut left = choice(seed, frame, total);
    for (unit, weight) in weights.iter().enumerate() {
        if left < u64::from(*weight) {
            return narrow(wide(unit));
        }
        left -= u64::from(*weight);
    }
    0 // Not reached: `left` starts below the sum of the weights.
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::index;

    #[test]
    fn xor_units_are_linear_in_the_address() {
        let hash = AddressHash::Xor { masks: AddressHash::random_xor_masks(6, 30, 5) };
        for (a, b) in [(1, 2), (77, 1 << 20), (0xfff, 0x0123_4567)] {
            assert_eq!(hash.unit(a ^ b, 64), hash.unit(a, 64) ^ hash.unit(b, 64));
        }
        let mut units: Vec<u16> = (0..64).map(|line| hash.unit(line + 64 * 99, 64)).collect();
        assert_ne!(units, (0..64).collect::<Vec<_>>());
        units.sort_unstable();
        assert_eq!(units, (0..64).collect::<Vec<_>>(), "a page reaches every unit once");
    }

    #[test]
    fn permuted_blocks_are_the_base_sequence_under_a_key() {
        let masks = AddressHash::random_key_masks(8, 30, 5);
        let hash = AddressHash::Permuted { masks: masks.clone(), salt: 3 };
        let base: Vec<u16> = (0..256).map(|line| hash.unit(line, 28)).collect();
        for unit in 0..28 {
            let lines = base.iter().filter(|u| **u == unit).count();
            assert!((9..=10).contains(&lines), "unit {unit} has {lines} of 256 lines");
        }
        let mut keys = std::collections::BTreeSet::new();
        for block in 0..200_u64 {
            let key = (0..256_u64)
                .find(|k| (0..256).all(|i| hash.unit(block * 256 + i, 28) == base[index(i ^ k)]));
            keys.insert(key.expect("every block follows the form"));
        }
        assert!(keys.len() > 50, "keys vary: {}", keys.len());
    }

    #[test]
    fn pages_choose_by_weight_and_as_a_whole() {
        let hash = AddressHash::PerPage { weights: vec![1, 1, 2], seed: 1 };
        let mut pages = [0_u32; 3];
        for frame in 0..4000_u64 {
            let unit = hash.unit(frame * 64, 3);
            assert!((1..64).all(|i| hash.unit(frame * 64 + i, 3) == unit));
            pages[usize::from(unit)] += 1;
        }
        assert!((900..1100).contains(&pages[0]) && (900..1100).contains(&pages[1]), "{pages:?}");
    }

    #[test]
    fn impossible_numbers_of_ways_are_refused() {
        let xor = AddressHash::Xor { masks: vec![1, 2, 4] };
        assert!(xor.defect(8).is_none());
        assert!(xor.defect(6).unwrap().contains("cannot choose one of 6"));
        assert!(AddressHash::PerPage { weights: vec![1], seed: 0 }.defect(2).is_some());
        assert!(AddressHash::Permuted { masks: vec![1; 4], salt: 0 }.defect(17).is_some());
    }
}
