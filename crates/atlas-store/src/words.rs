//! Codes of both levels in one word of 16 bits a page, where some do not fit into a byte.
//!
//! A level's bits are its code itself or, where that would be too many, the place of its code in a
//! list of those that occur. All ones is a page that was not decoded.

use crate::contents::PageBlock;
use isochrone_atlas::Code;
use isochrone_atlas::format::{PlaneHeader, PlaneKind, WordsHeader};
use std::collections::BTreeSet;

/// Bits of a word.
const WORD_BITS: u32 = u16::BITS;

/// Which bits of a word are what.
pub(crate) struct Layout {
    levels: [LevelBits; 2],
}

struct LevelBits {
    shift: u32,
    bits: u32,
    /// Codes by index, ascending; empty where the bits are the code.
    dictionary: Vec<u16>,
}

/// Bits that tell so many values apart, and one more for what is not known.
fn bits_for(values: usize) -> u32 {
    usize::BITS - values.leading_zeros()
}

impl Layout {
    /// The first layout that fits, those without a dictionary first: it costs a query a load.
    /// `None` where the codes that occur need more bits than a word has.
    pub(crate) fn of(blocks: &[&PageBlock]) -> Option<Self> {
        let (mut llc, mut dram) = (BTreeSet::new(), BTreeSet::new());
        for block in blocks {
            llc.extend(block.llc.iter().filter(|code| **code != Code::UNKNOWN.0));
            dram.extend(block.dram.iter().filter(|code| **code != Code::UNKNOWN.0));
        }
        for listed in [[false, false], [false, true], [true, false], [true, true]] {
            let (low, llc) = (0, bits_of(&llc, listed[0], 0));
            debug_assert_eq!(low, llc.shift);
            let dram = bits_of(&dram, listed[1], llc.bits);
            if dram.shift + dram.bits <= WORD_BITS {
                return Some(Self { levels: [llc, dram] });
            }
        }
        None
    }

    /// The sections of both levels' codes: where they lie in the words.
    pub(crate) fn heads(&self) -> [Vec<u8>; 2] {
        [0, 1].map(|level| {
            let of: &LevelBits = &self.levels[level];
            let count = u32::try_from(of.dictionary.len()).unwrap_or(u32::MAX);
            let plane = PlaneHeader { kind: PlaneKind::Words as u32, exceptions: count };
            let bits = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
            let words = WordsHeader { shift: bits(of.shift), bits: bits(of.bits) };
            let mut bytes = plane.to_bytes().to_vec();
            bytes.extend(words.to_bytes());
            bytes.extend(of.dictionary.iter().flat_map(|code| code.to_le_bytes()));
            bytes
        })
    }
}

fn bits_of(codes: &BTreeSet<u16>, listed: bool, shift: u32) -> LevelBits {
    let values =
        if listed { codes.len() } else { codes.last().map_or(0, |most| usize::from(*most) + 1) };
    let dictionary = if listed { codes.iter().copied().collect() } else { Vec::new() };
    LevelBits { shift, bits: bits_for(values).max(1), dictionary }
}

impl LevelBits {
    fn word(&self, code: u16) -> u16 {
        let mask = u16::MAX >> (WORD_BITS - self.bits);
        let known = code != Code::UNKNOWN.0;
        let index = match self.dictionary.binary_search(&code) {
            Ok(place) => u16::try_from(place).unwrap_or(mask),
            Err(_) if self.dictionary.is_empty() && known => code,
            Err(_) => mask,
        };
        index << self.shift
    }
}

/// One word a page, block by block.
pub(crate) fn encode_words(blocks: &[&PageBlock], layout: &Layout) -> Vec<u8> {
    let [llc, dram] = &layout.levels;
    let pages = blocks.iter().flat_map(|block| block.llc.iter().zip(block.dram.iter()));
    pages.flat_map(|(l, d)| (llc.word(*l) | dram.word(*d)).to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(llc: impl Fn(u16) -> u16, dram: impl Fn(u16) -> u16) -> PageBlock {
        let of = |code: &dyn Fn(u16) -> u16| {
            let codes: Vec<u16> = (0..512).map(code).collect();
            Box::<[u16; 512]>::try_from(codes).expect("512 pages")
        };
        PageBlock { first_frame: 512, llc: of(&llc), dram: of(&dram) }
    }

    #[test]
    fn ten_bits_and_a_list_fit_into_a_word() {
        let block = block(|page| page * 2 % 1023, |page| (page % 16) * 5);
        let layout = Layout::of(&[&block]).expect("a layout");
        assert_eq!((layout.levels[0].bits, layout.levels[0].shift), (10, 0));
        assert_eq!((layout.levels[1].bits, layout.levels[1].shift), (5, 10));
        assert!(layout.levels[0].dictionary.is_empty());
        assert_eq!(layout.levels[1].dictionary.len(), 16);
        assert_eq!(layout.levels[0].word(Code::UNKNOWN.0), 1023);
        assert_eq!(layout.levels[1].word(Code::UNKNOWN.0), 31 << 10);
    }

    #[test]
    fn short_codes_need_no_list() {
        let block = block(|page| page % 511, |page| page % 63);
        let layout = Layout::of(&[&block]).expect("a layout");
        assert!(layout.levels.iter().all(|level| level.dictionary.is_empty()));
    }

    #[test]
    fn too_many_codes_are_refused() {
        let block = block(|page| page * 2, |page| page * 2 + 1);
        assert!(Layout::of(&[&block]).is_none());
    }
}
