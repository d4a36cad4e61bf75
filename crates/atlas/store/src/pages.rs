//! Lays out the page table: which index the frames need, and whether codes follow a template.
//!
//! Address hashes are XORs of physical address bits, so within a 2 MiB block the codes of most
//! machines are one template, XORed with one byte a block. Where that holds the table shrinks
//! from one byte a page to a few hundred bytes, and a query stays in the first-level cache. Where
//! it does not hold, one byte a page is stored. Codes that are more than a byte take some bits of a
//! word that both levels share: still two bytes a page. Nothing is approximated: exceptions are
//! listed.

use crate::contents::PageBlock;
use crate::error::EncodeError;
use crate::words::{Layout, encode_words};
use isochrone_atlas::Code;
use isochrone_atlas::format::{
    BLOCK_PAGES, IndexKind, NONE_U16, NONE_U32, PageIndexHeader, PlaneHeader, PlaneKind,
};

type Codes = [u8; BLOCK_PAGES];
/// A page that was not decoded, where codes are bytes.
const UNKNOWN_BYTE: u8 = u8::MAX;

/// A table of all blocks of the span may be this many times larger than the list of stored ones:
/// 128 bytes a block of 512 pages, a quarter of a byte a page. A sorted list would cost a query 20 ns.
const TABLE_SPARSENESS: u64 = 64;
/// Above this share of exceptions (one in so many pages) mispredicted branches cost a query more
/// than the smaller table gains.
const EXCEPTIONS_ONE_IN: usize = 10;
/// Blocks tried as first template; one of them may be full of decoding errors.
const TEMPLATE_TRIES: usize = 4;
/// Turns of fitting template and flips; they settle in two.
const TEMPLATE_TURNS: usize = 3;

/// The sections of a page table.
pub(crate) struct PageSections {
    pub(crate) index: Vec<u8>,
    pub(crate) llc: Vec<u8>,
    pub(crate) dram: Vec<u8>,
    /// Where codes are more than a byte.
    pub(crate) words: Option<Vec<u8>>,
}

/// Encodes blocks in any order.
pub(crate) fn encode_pages(
    blocks: &[PageBlock],
    keyed_by: u32,
) -> Result<Option<PageSections>, EncodeError> {
    let mut sorted: Vec<&PageBlock> = blocks.iter().collect();
    sorted.sort_by_key(|block| block.first_frame);
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else { return Ok(None) };
    let unaligned = sorted.iter().find(|b| b.first_frame % BLOCK_PAGES as u64 != 0);
    let twice = sorted.windows(2).find(|pair| pair[0].first_frame == pair[1].first_frame);
    if let Some(block) = unaligned.or(twice.map(|pair| &pair[1])) {
        return Err(EncodeError::Blocks { first_frame: block.first_frame });
    }
    let span = (last.first_frame - first.first_frame) / BLOCK_PAGES as u64 + 1;
    let count = sorted.len() as u64;
    let kind = if span == count {
        IndexKind::Dense
    } else if span <= TABLE_SPARSENESS * count && count < u64::from(NONE_U16) {
        IndexKind::ShortTable
    } else if span <= TABLE_SPARSENESS * count {
        IndexKind::Table
    } else {
        IndexKind::Sorted
    };
    let places = places(&sorted, kind);
    let spans = matches!(kind, IndexKind::Table | IndexKind::ShortTable);
    let positions = if spans { span } else { count };
    let positions = usize::try_from(positions).map_err(|_| EncodeError::TooLarge("page table"))?;
    let header = PageIndexHeader {
        kind: kind as u32,
        keyed_by,
        blocks: u32::try_from(count).map_err(|_| EncodeError::TooLarge("page table"))?,
        positions: u32::try_from(positions).map_err(|_| EncodeError::TooLarge("page table"))?,
        first_frame: first.first_frame,
    };
    let mut index = header.to_bytes().to_vec();
    match kind {
        IndexKind::Dense => {}
        IndexKind::Table => index.extend(table_entries(&places, positions)),
        IndexKind::ShortTable => {
            let ranks = table_entries(&places, positions);
            // The low half of a rank below 2^16, and of the mark for none.
            index.extend(ranks.as_chunks::<4>().0.iter().flat_map(|rank| [rank[0], rank[1]]));
        }
        IndexKind::Sorted => {
            index.extend(sorted.iter().flat_map(|block| block.first_frame.to_le_bytes()));
        }
    }
    let bytes = [|b: &PageBlock| in_bytes(&b.llc), |b: &PageBlock| in_bytes(&b.dram)]
        .map(|of| sorted.iter().map(|block| of(block)).collect::<Option<Vec<Codes>>>());
    if let [Some(llc), Some(dram)] = bytes {
        return Ok(Some(PageSections {
            index,
            llc: encode_plane(&llc, &places, positions)?,
            dram: encode_plane(&dram, &places, positions)?,
            words: None,
        }));
    }
    let layout = Layout::of(&sorted).ok_or(EncodeError::TooLarge("set of page codes"))?;
    let [llc, dram] = layout.heads();
    Ok(Some(PageSections { index, llc, dram, words: Some(encode_words(&sorted, &layout)) }))
}

/// The codes as one byte each, where they fit.
fn in_bytes(codes: &[u16; BLOCK_PAGES]) -> Option<Codes> {
    let mut bytes = [UNKNOWN_BYTE; BLOCK_PAGES];
    for (byte, code) in bytes.iter_mut().zip(codes) {
        if *code != Code::UNKNOWN.0 {
            *byte = u8::try_from(*code).ok().filter(|byte| *byte != UNKNOWN_BYTE)?;
        }
    }
    Some(bytes)
}

/// For each block its place in the index.
fn places(sorted: &[&PageBlock], kind: IndexKind) -> Vec<usize> {
    let first = sorted.first().map_or(0, |block| block.first_frame);
    let by_frame = |block: &&PageBlock| {
        usize::try_from((block.first_frame - first) / BLOCK_PAGES as u64).unwrap_or(usize::MAX)
    };
    match kind {
        IndexKind::Sorted => (0..sorted.len()).collect(),
        IndexKind::Dense | IndexKind::Table | IndexKind::ShortTable => {
            sorted.iter().map(by_frame).collect()
        }
    }
}

fn table_entries(places: &[usize], positions: usize) -> Vec<u8> {
    let mut ranks = vec![NONE_U32; positions];
    for (rank, &place) in (0_u32..).zip(places) {
        ranks[place] = rank;
    }
    ranks.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// Codes that follow a template up to one XOR a block, and where they do not.
struct Fit {
    template: Codes,
    flips: Vec<u8>,
    exceptions: usize,
}

fn encode_plane(
    blocks: &[Codes],
    places: &[usize],
    positions: usize,
) -> Result<Vec<u8>, EncodeError> {
    let step = blocks.len().div_ceil(TEMPLATE_TRIES).max(1);
    let fits = blocks.iter().step_by(step).map(|start| fit_template(blocks, start));
    let best = fits.min_by_key(|fit| fit.exceptions);
    let pages = blocks.len() * BLOCK_PAGES;
    let raw = || {
        let head = PlaneHeader { kind: PlaneKind::Raw as u32, exceptions: 0 };
        let codes = blocks.iter().flat_map(|block| block.iter().copied());
        head.to_bytes().into_iter().chain(codes).collect::<Vec<u8>>()
    };
    match best {
        Some(fit) if fit.exceptions * EXCEPTIONS_ONE_IN <= pages => {
            let templated = encode_template(blocks, places, positions, &fit)?;
            Ok(if templated.len() < pages { templated } else { raw() })
        }
        _ => Ok(raw()),
    }
}

fn encode_template(
    blocks: &[Codes],
    places: &[usize],
    positions: usize,
    fit: &Fit,
) -> Result<Vec<u8>, EncodeError> {
    let exceptions =
        u32::try_from(fit.exceptions).map_err(|_| EncodeError::TooLarge("page table"))?;
    let head = PlaneHeader { kind: PlaneKind::Template as u32, exceptions };
    let mut flips = vec![0; positions];
    let (mut bits, mut starts, mut codes) = (Vec::new(), Vec::new(), Vec::new());
    for ((block, &flip), &place) in blocks.iter().zip(&fit.flips).zip(places) {
        flips[place] = flip;
        for (actual, expected) in block.chunks(64).zip(fit.template.chunks(64)) {
            let start = u32::try_from(codes.len());
            starts.extend(start.map_err(|_| EncodeError::TooLarge("page table"))?.to_le_bytes());
            let mut word = 0_u64;
            for (page, (&code, &expected)) in actual.iter().zip(expected).enumerate() {
                if code != expected ^ flip {
                    word |= 1 << page;
                    codes.push(code);
                }
            }
            bits.extend(word.to_le_bytes());
        }
    }
    let mut bytes = head.to_bytes().to_vec();
    bytes.extend(fit.template);
    bytes.extend(flips);
    if exceptions > 0 {
        bytes.extend(bits);
        bytes.extend(starts);
        bytes.extend(codes);
    }
    Ok(bytes)
}

/// Fits template and flips by turns, each as the majority's word given the other.
fn fit_template(blocks: &[Codes], start: &Codes) -> Fit {
    let mut template = *start;
    let mut flips = Vec::new();
    for _ in 0..TEMPLATE_TURNS {
        flips = blocks
            .iter()
            .map(|block| most_frequent(block.iter().zip(&template).map(|(a, b)| a ^ b)))
            .collect();
        for (page, code) in template.iter_mut().enumerate() {
            *code =
                most_frequent(blocks.iter().zip(&flips).map(|(block, flip)| block[page] ^ flip));
        }
    }
    let differing = |(block, &flip): (&Codes, &u8)| {
        block.iter().zip(&template).filter(|&(&code, &expected)| code != expected ^ flip).count()
    };
    let exceptions = blocks.iter().zip(&flips).map(differing).sum();
    Fit { template, flips, exceptions }
}

/// The value that comes most often, the smallest among equals.
fn most_frequent(values: impl Iterator<Item = u8>) -> u8 {
    let mut counts = [0_usize; 256];
    for value in values {
        counts[usize::from(value)] += 1;
    }
    let mut best = (0, 0);
    for (value, &count) in (0..=u8::MAX).zip(&counts) {
        if count > best.1 {
            best = (value, count);
        }
    }
    best.0
}
