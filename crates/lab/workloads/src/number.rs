//! The few conversions between number types that the programs need, each checked once here, and
//! the fold that checksums are made with.

/// A count or an index as an index into memory; larger than any where it does not fit.
pub(crate) fn index(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// A length as a 64-bit number.
pub(crate) fn wide(value: usize) -> u64 {
    value as u64
}

/// A count that is far below 2^53 as a float; exact.
#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
pub(crate) fn real(value: u64) -> f64 {
    value as f64
}

/// Rounds to single precision, which is what a node has room for.
#[allow(clippy::cast_possible_truncation, reason = "rounding to f32 is the purpose")]
pub(crate) fn single(value: f64) -> f32 {
    value as f32
}

/// A number below 2^32 that an argument promises to be so; saturates.
pub(crate) fn narrow(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Mixes all bits of a word: the finaliser of SplitMix64.
pub(crate) fn mixed(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// A checksum that depends on the order of what goes in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fold(u64);

impl Fold {
    /// Takes a word in.
    pub(crate) fn take(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
    }

    /// The checksum so far.
    pub(crate) fn sum(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fold_tells_order_and_content_apart() {
        let of = |words: &[u64]| {
            let mut fold = Fold::default();
            words.iter().for_each(|word| fold.take(*word));
            fold.sum()
        };
        assert_eq!(of(&[1, 2, 3]), of(&[1, 2, 3]));
        assert_ne!(of(&[1, 2, 3]), of(&[1, 3, 2]));
        assert_ne!(of(&[1, 2, 3]), of(&[1, 2, 4]));
        assert_ne!(of(&[1]), of(&[]));
    }

    #[test]
    fn mixing_is_the_published_finaliser() {
        // SplitMix64 from state 0: its first output, as published with the algorithm.
        assert_eq!(mixed(0x9e37_79b9_7f4a_7c15), 0xe220_a839_7b1d_cdaf);
    }
}
