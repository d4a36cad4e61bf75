//! Codes of both levels in one word of 16 bits a page, where some do not fit into a byte.
//!
//! A level's bits are its code itself or, where that would be too many, the place of its code in a
//! list of those that occur. All ones is a page that was not decoded.

use crate::contents::PageBlock;
use isochrone_atlas::Code;
use isochrone_atlas::format::{BLOCK_PAGES, PlaneHeader, PlaneKind, WordsHeader};
use std::collections::BTreeMap;

/// Bits of a word.
const WORD_BITS: u32 = u16::BITS;
/// Share of the pages that may be left unknown for want of bits.
const MOST_LOST: f64 = 0.01;

/// Pages by code.
type Counts = BTreeMap<u16, usize>;

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

impl Layout {
    /// The layout that loses fewest pages, none mostly, and among those the one with the fewest
    /// dictionaries: they cost a query a load. Where the codes that occur need more bits than a word has,
    /// pages of the rarest codes are not known; `None` where these would be more than [`MOST_LOST`].
    pub(crate) fn of(blocks: &[&PageBlock]) -> Option<Self> {
        let (mut llc, mut dram) = (Counts::new(), Counts::new());
        for block in blocks {
            count(&mut llc, block.llc.as_slice());
            count(&mut dram, block.dram.as_slice());
        }
        let pages = blocks.len() * BLOCK_PAGES;
        let mut best: Option<(usize, Self)> = None;
        for listed in [[false, false], [false, true], [true, false], [true, true]] {
            for bits in 1..WORD_BITS {
                let (first, llc) = kept(&llc, listed[0], 0, bits);
                let (second, dram) = kept(&dram, listed[1], bits, WORD_BITS - bits);
                let lost = first + second;
                if best.as_ref().is_none_or(|(least, _)| lost < *least) {
                    best = Some((lost, Self { levels: [llc, dram] }));
                }
            }
        }
        best.filter(|(lost, _)| *lost as f64 <= MOST_LOST * pages as f64).map(|(_, layout)| layout)
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

fn count(counts: &mut Counts, codes: &[u16]) {
    for code in codes.iter().filter(|code| **code != Code::UNKNOWN.0) {
        *counts.entry(*code).or_default() += 1;
    }
}

/// So many bits for one level, and how many pages they cannot name the code of.
fn kept(counts: &Counts, listed: bool, shift: u32, bits: u32) -> (usize, LevelBits) {
    let values = (1_usize << bits) - 1;
    if !listed {
        let lost = counts.iter().filter(|(code, _)| usize::from(**code) >= values);
        return (lost.map(|(_, pages)| pages).sum(), LevelBits { shift, bits, dictionary: vec![] });
    }
    let mut codes: Vec<(u16, usize)> = counts.iter().map(|(code, pages)| (*code, *pages)).collect();
    codes.sort_by_key(|(code, pages)| (core::cmp::Reverse(*pages), *code));
    let lost = codes.iter().skip(values).map(|(_, pages)| pages).sum();
    let mut dictionary: Vec<u16> = codes.iter().take(values).map(|(code, _)| *code).collect();
    dictionary.sort_unstable();
    (lost, LevelBits { shift, bits, dictionary })
}

impl LevelBits {
    fn word(&self, code: u16) -> u16 {
        let mask = u16::MAX >> (WORD_BITS - self.bits);
        let known = code != Code::UNKNOWN.0;
        let index = match self.dictionary.binary_search(&code) {
            Ok(place) => u16::try_from(place).unwrap_or(mask),
            Err(_) if self.dictionary.is_empty() && known && code < mask => code,
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
        assert_eq!((layout.levels[1].bits, layout.levels[1].shift), (6, 10));
        assert!(layout.levels[0].dictionary.is_empty());
        assert_eq!(layout.levels[1].dictionary.len(), 16);
        assert_eq!(layout.levels[0].word(Code::UNKNOWN.0), 1023);
        assert_eq!(layout.levels[1].word(Code::UNKNOWN.0), 63 << 10);
    }

    #[test]
    fn short_codes_need_no_list() {
        let block = block(|page| page % 511, |page| page % 63);
        let layout = Layout::of(&[&block]).expect("a layout");
        assert!(layout.levels.iter().all(|level| level.dictionary.is_empty()));
    }

    #[test]
    fn the_rarest_code_gives_way_to_a_bit() {
        // Sixteen classes of 64 keys leave no room for what is not known.
        let first = block(|page| page * 2, |page| page % 32 * 7);
        let second = block(|page| page * 2 + 1, |page| page % 32 * 7);
        let layout = Layout::of(&[&first, &second]).expect("a layout");
        assert!(layout.levels[0].dictionary.is_empty());
        assert_eq!(layout.levels[0].word(1022), 1022);
        assert_eq!(layout.levels[0].word(1023), layout.levels[0].word(Code::UNKNOWN.0));
        assert_eq!(layout.levels[1].dictionary.len(), 32);
    }

    #[test]
    fn too_many_codes_are_refused() {
        let block = block(|page| page * 2, |page| page * 2 + 1);
        assert!(Layout::of(&[&block]).is_none());
    }
}
