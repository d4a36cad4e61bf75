//! One word for each page: what it is used for, and what is known of its distance.
//!
//! A word is read and written whole, so a page is never seen half demoted.

use crate::class::SizeClass;
use crate::groups::INDICES;
use isochrone_atlas::Code;

/// What is known of a page's lines: its code at each level, [`Code::UNKNOWN`] where it is not
/// known. With a period of four pages each page's code already holds the page's place among the
/// four (`code ^ 64 * place`), so that `code ^ line in page` is right for every period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageCodes {
    /// In the last-level cache.
    pub llc: Code,
    /// In memory.
    pub dram: Code,
}

impl PageCodes {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self { llc: Code::UNKNOWN, dram: Code::UNKNOWN };
}

/// What a page is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageState {
    /// Not part of the heap.
    Absent,
    /// Part of the heap, and of no class yet.
    Ready,
    /// Cut into slots of a class, for good.
    Assigned(SizeClass),
}

/// What the codes of a page are combined with, by exclusive or, before they decide where its
/// lines lie; nothing where lines are to lie where they are. It is what makes a heap oblivious:
/// the same lists, orders and costs, with each page's lines in the places of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Disguise {
    /// Six bits that both levels share, so that what depends on their keys together still does.
    pub(crate) key: u8,
    /// Four bits for each level: the class, or the rest of the key.
    pub(crate) high: [u8; 2],
}

impl Disguise {
    const KEY: u8 = 63;

    fn over(self, codes: PageCodes) -> PageCodes {
        let over = |code: Code, level: usize| {
            if code == Code::UNKNOWN {
                return code;
            }
            let mask = u16::from(self.key & Self::KEY) | u16::from(self.high[level]) << 6;
            Code(code.0 ^ mask)
        };
        PageCodes { llc: over(codes.llc, 0), dram: over(codes.dram, 1) }
    }
}

const READY: u64 = 1;
const FIRST_CLASS: u64 = 2;
const STATE_SHIFT: u32 = 48;
/// Bits of a code in a word: more than any table has, so that all ones are none.
const CODE_BITS: u32 = 12;
const CODE_MASK: u64 = (1 << CODE_BITS) - 1;
const LOW_CODE: u32 = (1 << CODE_BITS) - 1;
const _: () = assert!(LOW_CODE as usize ^ 255 >= INDICES);

/// Use of a page, its codes, and its codes in disguise, packed. Zero is a page that is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageWord(pub(crate) u64);

impl PageWord {
    pub(crate) fn new(state: PageState, codes: PageCodes, disguise: Disguise) -> Self {
        let state = match state {
            PageState::Absent => 0,
            PageState::Ready => READY,
            PageState::Assigned(class) => FIRST_CLASS + class as u64,
        };
        let seen = disguise.over(codes);
        let codes = [codes.dram, codes.llc, seen.dram, seen.llc];
        let packed =
            codes.iter().fold(0, |word, code| word << CODE_BITS | u64::from(code.0) & CODE_MASK);
        Self(state << STATE_SHIFT | packed)
    }

    /// The code at a place of the word.
    #[inline]
    const fn code(self, place: u32) -> Code {
        let bits = self.0 >> (place * CODE_BITS) & CODE_MASK;
        let [low, high, ..] = bits.to_le_bytes();
        if bits == CODE_MASK { Code::UNKNOWN } else { Code(u16::from_le_bytes([low, high])) }
    }

    /// The same codes as [`Self::seen`], of the cache and of memory; what is not known is larger than
    /// any code, whatever the line it is combined with.
    #[inline(always)]
    pub(crate) const fn seen_raw(self) -> (u32, u32) {
        let [a, b, c, d, ..] = self.0.to_le_bytes();
        let low = u32::from_le_bytes([a, b, c, d]);
        (low & LOW_CODE, low >> CODE_BITS & LOW_CODE)
    }

    /// Where its lines lie by what the mode makes of the page.
    #[inline]
    pub(crate) const fn seen(self) -> PageCodes {
        PageCodes { llc: self.code(0), dram: self.code(1) }
    }

    /// What is known of the page.
    pub(crate) const fn codes(self) -> PageCodes {
        PageCodes { llc: self.code(2), dram: self.code(3) }
    }

    #[inline]
    pub(crate) fn class(self) -> Option<SizeClass> {
        let class = (self.0 >> STATE_SHIFT).wrapping_sub(FIRST_CLASS).to_le_bytes()[0];
        SizeClass::at(class)
    }

    pub(crate) fn state(self) -> PageState {
        match self.class() {
            Some(class) => PageState::Assigned(class),
            None if self.0 >> STATE_SHIFT == READY => PageState::Ready,
            None => PageState::Absent,
        }
    }

    /// What a word is combined with, by or, so that nothing is known of its page.
    pub(crate) const NO_CODES: u64 = (1 << STATE_SHIFT) - 1;

    /// The same page with nothing known of it.
    pub(crate) const fn without_codes(self) -> Self {
        Self(self.0 | Self::NO_CODES)
    }

    /// It is about to leave: nobody takes a slot of it.
    pub(crate) const LEAVING: u64 = 1 << 62;
    /// Its memory went back to the system.
    pub(crate) const AWAY: u64 = 1 << 63;
    /// Where a page is on its way; above the class, which it keeps.
    pub(crate) const WAY: u64 = Self::LEAVING | Self::AWAY;

    /// The same page as it is about to leave; `None` if it is of no class, or on its way already.
    pub(crate) fn leaving(self) -> Option<u64> {
        let is_there = self.class().is_some() && self.0 & Self::WAY == 0;
        is_there.then_some(self.0 | Self::LEAVING)
    }

    /// The same page cut into slots of a class.
    pub(crate) const fn assigned(self, class: SizeClass) -> Self {
        let codes = self.0 & ((1 << STATE_SHIFT) - 1);
        Self((FIRST_CLASS + class as u64) << STATE_SHIFT | codes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_holds_state_and_codes() {
        let codes = PageCodes { llc: Code(7), dram: Code(1020) };
        let ready = PageWord::new(PageState::Ready, codes, Disguise::default());
        assert_eq!((ready.state(), ready.class()), (PageState::Ready, None));
        for class in SizeClass::ALL {
            let word = PageWord::new(PageState::Assigned(class), codes, Disguise::default());
            assert_eq!((word.state(), word.codes()), (PageState::Assigned(class), codes));
            assert_eq!((word.class(), word.seen()), (Some(class), codes));
            assert_eq!(ready.assigned(class), word);
            let unknown = PageWord::new(word.state(), PageCodes::UNKNOWN, Disguise::default());
            assert_eq!(word.without_codes(), unknown);
            let leaving = word.leaving().expect("it is there");
            for way in [leaving, leaving | PageWord::AWAY, word.0 | PageWord::AWAY] {
                let on_its_way = PageWord(way);
                assert_eq!((on_its_way.state(), on_its_way.codes()), (word.state(), codes));
                assert_eq!(on_its_way.leaving(), None);
            }
            assert_eq!(ready.leaving(), None);
        }
        assert_eq!(PageWord(0).state(), PageState::Absent);
    }

    #[test]
    fn a_disguise_hides_codes_but_never_what_is_known() {
        for key in 0..64 {
            for code in 0..1024 {
                let disguise = Disguise { key, high: [13, 1] };
                let codes = PageCodes { llc: Code(code), dram: Code(code) };
                let word = PageWord::new(PageState::Ready, codes, disguise);
                assert_eq!(word.codes(), codes);
                assert_ne!(word.seen().llc, Code::UNKNOWN);
                assert_ne!(word.seen().dram, Code::UNKNOWN);
                assert_eq!(word.seen().dram.0, code ^ (u16::from(key) | 1 << 6));
            }
        }
        let disguise = Disguise { key: 9, high: [1, 2] };
        let word = PageWord::new(PageState::Ready, PageCodes::UNKNOWN, disguise);
        assert_eq!((word.seen(), word.codes()), (PageCodes::UNKNOWN, PageCodes::UNKNOWN));
    }
}
