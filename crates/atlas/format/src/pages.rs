//! The page table of an atlas: from a frame to its code.
//!
//! A query's time is the time of its dependent loads, so there are as few as the frames allow: one
//! where the stored blocks are contiguous or follow a template, two where they have gaps. What a
//! branch can decide is left to the branch predictor and costs no load. It knows codes, never
//! latencies.

use crate::error::AtlasError;
use crate::format::{
    BLOCK_PAGES, IndexKind, NONE_U16, NONE_U32, PAGE_INDEX_BYTES, PLANE_BYTES, PageIndexHeader,
    PlaneHeader, PlaneKind, WORDS_BYTES, WordsHeader,
};
use crate::model::Code;
use isochrone_units::Level;

/// A code that is not known, where codes are bytes.
const UNKNOWN_BYTE: u8 = u8::MAX;

const PAGE_MASK: usize = BLOCK_PAGES - 1;

/// Which blocks are stored and where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageIndex<'a> {
    first_frame: u64,
    positions: usize,
    pub(crate) blocks: usize,
    pub(crate) keyed_by: u32,
    kind: Index<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Index<'a> {
    Dense,
    Table(&'a [[u8; 4]]),
    ShortTable(&'a [[u8; 2]]),
    Sorted(&'a [[u8; 8]]),
}

const fn bad(part: &'static str, why: &'static str) -> AtlasError {
    AtlasError::Inconsistent { part, why }
}

/// A 32-bit count as a size; sizes here have at least 32 bits.
fn size(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// A block, a page or an offset as a size; what does not fit is beyond every table.
#[inline]
fn place(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl<'a> PageIndex<'a> {
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self, AtlasError> {
        const PART: &str = "page index";
        let Some((head, entries)) = bytes.split_first_chunk::<PAGE_INDEX_BYTES>() else {
            return Err(bad(PART, "shorter than its head"));
        };
        let head = PageIndexHeader::from_bytes(head);
        let (blocks, positions) = (size(head.blocks), size(head.positions));
        if !head.first_frame.is_multiple_of(BLOCK_PAGES as u64) {
            return Err(bad(PART, "its first frame does not start a block"));
        }
        if head.first_frame.checked_add(u64::from(head.positions) * BLOCK_PAGES as u64).is_none() {
            return Err(bad(PART, "frames beyond any memory"));
        }
        let kind = if head.kind == IndexKind::Dense as u32 {
            if positions != blocks || !entries.is_empty() {
                return Err(bad(PART, "a dense one has no entries"));
            }
            Index::Dense
        } else if head.kind == IndexKind::Table as u32 {
            Index::Table(check_table(entries, positions, blocks)?)
        } else if head.kind == IndexKind::ShortTable as u32 {
            Index::ShortTable(check_short_table(entries, positions, blocks)?)
        } else if head.kind == IndexKind::Sorted as u32 {
            if positions != blocks {
                return Err(bad(PART, "positions and blocks differ"));
            }
            Index::Sorted(check_sorted(entries, blocks, head.first_frame)?)
        } else {
            return Err(bad(PART, "unknown kind"));
        };
        Ok(Self { first_frame: head.first_frame, positions, blocks, keyed_by: head.keyed_by, kind })
    }

    /// First frames of the stored blocks, by rank.
    pub(crate) fn first_frames(self) -> impl Iterator<Item = u64> + 'a {
        (0..self.positions).filter_map(move |position| match self.kind {
            Index::Sorted(frames) => frames.get(position).map(|f| u64::from_le_bytes(*f)),
            Index::Table(ranks) if ranks.get(position).copied() == Some(NONE_U32.to_le_bytes()) => {
                None
            }
            Index::ShortTable(ranks)
                if ranks.get(position).copied() == Some(NONE_U16.to_le_bytes()) =>
            {
                None
            }
            Index::Table(_) | Index::ShortTable(_) | Index::Dense => {
                Some(self.first_frame + position as u64 * BLOCK_PAGES as u64)
            }
        })
    }
}

fn check_table(entries: &[u8], positions: usize, blocks: usize) -> Result<&[[u8; 4]], AtlasError> {
    let (ranks, rest) = entries.as_chunks::<4>();
    let known = ranks.iter().map(|rank| u32::from_le_bytes(*rank));
    check_ranks(known.map(|rank| (rank != NONE_U32).then(|| size(rank))), blocks)?;
    check_length(ranks.len(), rest, positions)?;
    Ok(ranks)
}

fn check_short_table(
    entries: &[u8],
    positions: usize,
    blocks: usize,
) -> Result<&[[u8; 2]], AtlasError> {
    let (ranks, rest) = entries.as_chunks::<2>();
    let known = ranks.iter().map(|rank| u16::from_le_bytes(*rank));
    check_ranks(known.map(|rank| (rank != NONE_U16).then(|| usize::from(rank))), blocks)?;
    check_length(ranks.len(), rest, positions)?;
    Ok(ranks)
}

fn check_length(ranks: usize, rest: &[u8], positions: usize) -> Result<(), AtlasError> {
    if ranks == positions && rest.is_empty() {
        return Ok(());
    }
    Err(bad("page index", "not one entry for each block of the span"))
}

/// Ranks ascend by one, blocks that are not stored left out, and there are as many as blocks.
fn check_ranks(
    ranks: impl Iterator<Item = Option<usize>>,
    blocks: usize,
) -> Result<(), AtlasError> {
    const PART: &str = "page index";
    let mut next = 0;
    for rank in ranks.flatten() {
        if rank != next {
            return Err(bad(PART, "ranks are not 0, 1, 2, ..."));
        }
        next += 1;
    }
    if next == blocks { Ok(()) } else { Err(bad(PART, "ranks and blocks differ in number")) }
}

fn check_sorted(entries: &[u8], blocks: usize, first: u64) -> Result<&[[u8; 8]], AtlasError> {
    const PART: &str = "page index";
    let (frames, rest) = entries.as_chunks::<8>();
    if frames.len() != blocks || !rest.is_empty() {
        return Err(bad(PART, "not one first frame for each block"));
    }
    let number = |frame: &[u8; 8]| u64::from_le_bytes(*frame);
    if frames.iter().any(|frame| !number(frame).is_multiple_of(BLOCK_PAGES as u64)) {
        return Err(bad(PART, "a first frame does not start a block"));
    }
    if frames.first().is_some_and(|frame| number(frame) != first)
        || !frames.is_sorted_by(|a, b| number(a) < number(b))
    {
        return Err(bad(PART, "first frames do not ascend"));
    }
    Ok(frames)
}

/// The codes of one level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plane<'a>(Codes<'a>);

#[derive(Clone, Copy, Debug)]
enum Codes<'a> {
    Raw(&'a [u8]),
    Template {
        template: &'a [u8; BLOCK_PAGES],
        flips: &'a [u8],
        exceptions: Exceptions<'a>,
    },
    /// A template that says one code of all pages: nothing has to be loaded for it.
    One(u8),
    Words(Words<'a>),
}

/// Some bits of each page's word.
#[derive(Clone, Copy, Debug)]
struct Words<'a> {
    words: &'a [[u8; 2]],
    shift: u32,
    mask: u16,
    /// Codes by index; without any the bits are the code.
    dictionary: &'a [[u8; 2]],
}

impl<'a> Words<'a> {
    fn open(
        bytes: &'a [u8],
        dictionary: u32,
        words: Option<&'a [u8]>,
        blocks: usize,
    ) -> Result<Self, AtlasError> {
        const PART: &str = "page words";
        let words = words.ok_or(bad(PART, "missing"))?.as_chunks::<2>();
        let (head, rest) =
            bytes.split_first_chunk::<WORDS_BYTES>().ok_or(bad(PART, "a head cut short"))?;
        let head = WordsHeader::from_bytes(head);
        let dictionary_found = rest.as_chunks::<2>();
        if blocks.checked_mul(BLOCK_PAGES) != Some(words.0.len()) || !words.1.is_empty() {
            return Err(bad(PART, "not one word a page"));
        }
        if head.bits == 0 || head.bits > 16 || head.shift > 16 - head.bits {
            return Err(bad(PART, "more bits than a word has"));
        }
        if dictionary_found.0.len() != size(dictionary) || !dictionary_found.1.is_empty() {
            return Err(bad(PART, "not as many codes as they say"));
        }
        let mask = u16::MAX >> (16 - head.bits);
        if dictionary_found.0.len() > usize::from(mask) {
            return Err(bad(PART, "more codes than the bits can name"));
        }
        let shift = u32::from(head.shift);
        Ok(Self { words: words.0, shift, mask, dictionary: dictionary_found.0 })
    }

    #[inline]
    fn code(&self, page: usize) -> Option<u16> {
        let index = u16::from_le_bytes(*self.words.get(page)?) >> self.shift & self.mask;
        if self.dictionary.is_empty() {
            return (index != self.mask).then_some(index);
        }
        self.dictionary.get(usize::from(index)).map(|code| u16::from_le_bytes(*code))
    }
}

/// The code that a template without exceptions says of all pages, if it is one.
fn the_one(template: &[u8], flips: &[u8]) -> Option<u8> {
    let (code, flip) = (template.first()?, flips.first()?);
    let one = template.iter().all(|c| c == code) && flips.iter().all(|f| f == flip);
    one.then_some(code ^ flip)
}

/// A code of one byte, if it is known.
#[inline]
fn of_byte(code: u8) -> Option<u16> {
    (code != UNKNOWN_BYTE).then_some(u16::from(code))
}

/// Pages whose code the template does not give: a bit a page in words of 64 pages, where each
/// word's codes start, and the codes in order.
#[derive(Clone, Copy, Debug)]
struct Exceptions<'a> {
    words: &'a [[u8; 8]],
    starts: &'a [[u8; 4]],
    codes: &'a [u8],
}

const WORD_PAGES: usize = 64;
const BLOCK_WORDS: usize = BLOCK_PAGES / WORD_PAGES;

impl<'a> Plane<'a> {
    pub(crate) fn open(
        bytes: &'a [u8],
        words: Option<&'a [u8]>,
        index: &PageIndex<'a>,
    ) -> Result<Self, AtlasError> {
        const PART: &str = "page codes";
        let Some((head, rest)) = bytes.split_first_chunk::<PLANE_BYTES>() else {
            return Err(bad(PART, "shorter than their head"));
        };
        let head = PlaneHeader::from_bytes(head);
        if head.kind == PlaneKind::Raw as u32 {
            if index.blocks.checked_mul(BLOCK_PAGES) != Some(rest.len()) {
                return Err(bad(PART, "not one byte a page"));
            }
            return Ok(Self(Codes::Raw(rest)));
        }
        if head.kind == PlaneKind::Words as u32 {
            let words = Words::open(rest, head.exceptions, words, index.blocks)?;
            return Ok(Self(Codes::Words(words)));
        }
        if head.kind != PlaneKind::Template as u32 {
            return Err(bad(PART, "unknown kind"));
        }
        let short = bad(PART, "a template that is cut short");
        let (template, rest) = rest.split_first_chunk::<BLOCK_PAGES>().ok_or(short)?;
        let (flips, rest) = rest.split_at_checked(index.positions).ok_or(short)?;
        let exceptions = if head.exceptions == 0 {
            if !rest.is_empty() {
                return Err(bad(PART, "bytes behind a template"));
            }
            if let Some(code) = the_one(template, flips) {
                return Ok(Self(Codes::One(code)));
            }
            Exceptions { words: &[], starts: &[], codes: &[] }
        } else {
            Exceptions::open(rest, index.blocks, size(head.exceptions))?
        };
        Ok(Self(Codes::Template { template, flips, exceptions }))
    }

    /// The codes of the block with this rank.
    fn block(&self, rank: usize, position: usize) -> [u16; BLOCK_PAGES] {
        core::array::from_fn(|page| self.code_at(rank, position, page).unwrap_or(Code::UNKNOWN.0))
    }

    #[inline]
    fn code_at(&self, rank: usize, position: usize, page: usize) -> Option<u16> {
        match &self.0 {
            Codes::Raw(codes) => of_byte(*codes.get(rank * BLOCK_PAGES + page)?),
            Codes::Words(words) => words.code(rank * BLOCK_PAGES + page),
            Codes::One(code) => of_byte(*code),
            Codes::Template { template, flips, exceptions } => {
                let code = template[page & PAGE_MASK] ^ flips.get(position)?;
                // Off the chain of dependent loads: the branch is predicted.
                match exceptions.find(rank, page) {
                    Some(exception) => exceptions.code(exception).and_then(of_byte),
                    None => of_byte(code),
                }
            }
        }
    }
}

/// The word of a page and the page's bit in it.
struct Exception {
    place: usize,
    word: u64,
    bit: u64,
}

impl<'a> Exceptions<'a> {
    fn open(bytes: &'a [u8], blocks: usize, count: usize) -> Result<Self, AtlasError> {
        const PART: &str = "exceptions of page codes";
        let short = bad(PART, "cut short");
        let words = blocks.checked_mul(BLOCK_WORDS).ok_or(short)?;
        let (bits, rest) = bytes.split_at_checked(words.saturating_mul(8)).ok_or(short)?;
        let (starts, codes) = rest.split_at_checked(words.saturating_mul(4)).ok_or(short)?;
        let (words, starts) = (bits.as_chunks().0, starts.as_chunks().0);
        if codes.len() != count {
            return Err(bad(PART, "not one code for each"));
        }
        let mut next = 0_usize;
        for (word, start) in words.iter().zip(starts) {
            if size(u32::from_le_bytes(*start)) != next {
                return Err(bad(PART, "a word's codes do not start where the last one's end"));
            }
            next += size(u64::from_le_bytes(*word).count_ones());
        }
        if next == count { Ok(Self { words, starts, codes }) } else { Err(bad(PART, "miscounted")) }
    }

    /// The place of a page, if the template does not hold for it.
    #[inline]
    fn find(&self, rank: usize, page: usize) -> Option<Exception> {
        let place = rank * BLOCK_WORDS + page / WORD_PAGES;
        let word = u64::from_le_bytes(*self.words.get(place)?);
        let bit = 1 << (page % WORD_PAGES);
        (word & bit != 0).then_some(Exception { place, word, bit })
    }

    /// The code of an exception that [`Self::find`] found.
    #[cold]
    fn code(&self, found: Exception) -> Option<u8> {
        let Exception { place, word, bit } = found;
        let before = size((word & (bit - 1)).count_ones());
        let start = size(u32::from_le_bytes(*self.starts.get(place)?));
        self.codes.get(start + before).copied()
    }
}

/// Index and plane of one level, ready to answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageCodes<'a> {
    pub(crate) index: PageIndex<'a>,
    pub(crate) plane: Plane<'a>,
}

impl PageCodes<'_> {
    /// The code of a frame.
    #[inline]
    pub(crate) fn code(&self, frame: u64) -> Option<u16> {
        let offset = frame.wrapping_sub(self.index.first_frame);
        // The first frame is a multiple of 512: the page within its block needs no subtraction.
        let page = place(frame % BLOCK_PAGES as u64);
        let position = place(offset / BLOCK_PAGES as u64);
        let rank = match (self.index.kind, &self.plane.0) {
            (Index::Dense, Codes::Raw(codes)) => return of_byte(*codes.get(place(offset))?),
            (Index::Dense, Codes::Words(words)) => return words.code(place(offset)),
            (Index::Dense, Codes::Template { .. } | Codes::One(_)) => {
                if position >= self.index.positions {
                    return None;
                }
                position
            }
            (Index::Table(ranks), _) => {
                let rank = u32::from_le_bytes(*ranks.get(position)?);
                if rank == NONE_U32 {
                    return None;
                }
                size(rank)
            }
            (Index::ShortTable(ranks), _) => {
                let rank = u16::from_le_bytes(*ranks.get(position)?);
                if rank == NONE_U16 {
                    return None;
                }
                usize::from(rank)
            }
            (Index::Sorted(frames), _) => return self.sorted_code(frames, frame),
        };
        self.plane.code_at(rank, position, page)
    }

    fn sorted_code(&self, frames: &[[u8; 8]], frame: u64) -> Option<u16> {
        let first = frame - frame % BLOCK_PAGES as u64;
        let rank = frames.binary_search_by_key(&first, |f| u64::from_le_bytes(*f)).ok()?;
        self.plane.code_at(rank, rank, place(frame % BLOCK_PAGES as u64))
    }
}

/// Codes of 512 consecutive pages, as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageBlockView {
    /// First frame, a multiple of 512.
    pub first_frame: u64,
    /// LLC codes, [`Code::UNKNOWN`] where a page was not decoded.
    pub llc: [u16; BLOCK_PAGES],
    /// DRAM codes.
    pub dram: [u16; BLOCK_PAGES],
}

/// The whole page table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageTable<'a> {
    pub(crate) index: PageIndex<'a>,
    pub(crate) bytes: usize,
    /// Bytes of the codes alone.
    pub(crate) code_bytes: usize,
    llc: Plane<'a>,
    dram: Plane<'a>,
}

impl<'a> PageTable<'a> {
    pub(crate) fn open(
        index: &'a [u8],
        llc: &'a [u8],
        dram: &'a [u8],
        words: Option<&'a [u8]>,
    ) -> Result<Self, AtlasError> {
        let code_bytes = llc.len() + dram.len() + words.map_or(0, <[u8]>::len);
        let bytes = index.len() + code_bytes;
        let index = PageIndex::open(index)?;
        let open = |plane| Plane::open(plane, words, &index);
        Ok(Self { index, bytes, code_bytes, llc: open(llc)?, dram: open(dram)? })
    }

    pub(crate) const fn codes(&self, level: Level) -> PageCodes<'a> {
        let plane = match level {
            Level::Llc => self.llc,
            Level::Dram => self.dram,
        };
        PageCodes { index: self.index, plane }
    }

    pub(crate) fn blocks(self) -> impl Iterator<Item = PageBlockView> + 'a {
        self.index.first_frames().enumerate().map(move |(rank, first_frame)| {
            let position = match self.index.kind {
                Index::Sorted(_) => rank,
                Index::Dense | Index::Table(_) | Index::ShortTable(_) => {
                    place((first_frame - self.index.first_frame) / BLOCK_PAGES as u64)
                }
            };
            PageBlockView {
                first_frame,
                llc: self.llc.block(rank, position),
                dram: self.dram.block(rank, position),
            }
        })
    }
}
