//! The parts of an atlas that say what the matrices do not: fits, terms, bandwidths, means of levels, and
//! groups of cores at equal distance. They are checked once.
//!
//! All lists are short and questions rare, so they are walked from the first.

use crate::error::AtlasError;
use crate::format::{
    ALIGN, BANDWIDTH_BYTES, BandwidthHeader, FIT_BYTES, GRADE_BYTES, GROUPS_BYTES, GroupsHeader,
    HISTOGRAM_BYTES, HistogramHeader, MEAN_BYTES, NONE_U16, TERM_BYTES, label_bytes,
};
use crate::matrices::{Spread, spread};
use isochrone_units::{CoreId, RegionId};

/// The parts of an atlas that say what things cost beside the matrices.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Costs<'a> {
    pub(crate) fits: &'a [[u8; FIT_BYTES]],
    pub(crate) terms: &'a [[u8; TERM_BYTES]],
    pub(crate) bandwidths: &'a [u8],
    pub(crate) means: &'a [[u8; MEAN_BYTES]],
    pub(crate) groups: &'a [u8],
    pub(crate) grades: &'a [[u8; GRADE_BYTES]],
    pub(crate) histograms: &'a [u8],
}

/// Latencies of single lines as one core saw them at one level.
#[derive(Clone, Copy, Debug)]
pub struct HistogramView<'a> {
    /// The level, as [`crate::format::level_tag`].
    pub level: u8,
    /// The core's place in the list of cores.
    pub place: u16,
    cycles: &'a [[u8; 4]],
}

impl<'a> HistogramView<'a> {
    /// The latencies, cycles.
    pub fn cycles(&self) -> impl ExactSizeIterator<Item = f32> + use<'a> {
        self.cycles.iter().map(|value| f32::from_le_bytes(*value))
    }
}

/// A measured bandwidth: which cores together, to which region.
#[derive(Clone, Copy, Debug)]
pub struct BandwidthView<'a> {
    /// The region whose memory was read and written.
    pub region: RegionId,
    /// 10^9 bytes a second; the names of the fields say ns, the unit is this one.
    pub gb_per_s: Spread,
    cores: &'a [[u8; 2]],
}

impl<'a> BandwidthView<'a> {
    /// The cores that ran together.
    pub fn cores(&self) -> impl ExactSizeIterator<Item = CoreId> + use<'a> {
        self.cores.iter().map(|id| CoreId(u16::from_le_bytes(*id)))
    }
}

/// One level of groups.
#[derive(Clone, Copy, Debug)]
pub struct GroupLevel<'a> {
    /// How many groups there are.
    pub groups: u16,
    /// Line transfer between two cores of one group that share none of the levels inside; `None`
    /// where no such pair was measured.
    pub transfer: Option<Spread>,
    of: &'a [[u8; 2]],
}

impl GroupLevel<'_> {
    /// The group of the core at this place of the atlas's list of cores, `0..groups`. `None` where
    /// the core is in no group.
    #[must_use]
    pub fn group(&self, place: usize) -> Option<u16> {
        let number = u16::from_le_bytes(*self.of.get(place)?);
        (number != NONE_U16).then_some(number)
    }
}

impl Costs<'_> {
    /// Checks all lists once. `cores` is how many cores the atlas has.
    pub(crate) fn check(&self, cores: usize) -> Result<(), AtlasError> {
        let short = |part| AtlasError::Inconsistent { part, why: "one is cut short" };
        let mut rest = self.bandwidths;
        while !rest.is_empty() {
            (_, rest) = split_bandwidth(rest).ok_or(short("bandwidths"))?;
        }
        let mut rest = self.histograms;
        while !rest.is_empty() {
            (_, rest) = split_histogram(rest).ok_or(short("histograms"))?;
        }
        let mut rest = self.groups;
        while !rest.is_empty() {
            let (level, after) = split_groups(rest).ok_or(short("groups of cores"))?;
            rest = after;
            let wrong = |why| AtlasError::Inconsistent { part: "groups of cores", why };
            if level.of.len() != cores {
                return Err(wrong("a level has not one number for each core"));
            }
            let beyond = |place| level.group(place).is_some_and(|group| group >= level.groups);
            if (0..cores).any(beyond) {
                return Err(wrong("a core is in a group that is not there"));
            }
        }
        Ok(())
    }
}

/// Measured bandwidths, one by one.
pub(crate) fn bandwidths(mut rest: &[u8]) -> impl Iterator<Item = BandwidthView<'_>> {
    core::iter::from_fn(move || {
        let (found, after) = split_bandwidth(rest)?;
        rest = after;
        Some(found)
    })
    .flatten()
}

/// Histograms, one by one.
pub(crate) fn histograms(mut rest: &[u8]) -> impl Iterator<Item = HistogramView<'_>> {
    core::iter::from_fn(move || {
        let (found, after) = split_histogram(rest)?;
        rest = after;
        Some(found)
    })
}

/// Takes one histogram off the front.
fn split_histogram(bytes: &[u8]) -> Option<(HistogramView<'_>, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<HISTOGRAM_BYTES>()?;
    let head = HistogramHeader::from_bytes(head);
    let lines = usize::try_from(head.lines).ok()?;
    let padded = lines.checked_mul(4)?.checked_next_multiple_of(ALIGN)?;
    let (cycles, rest) = rest.split_at_checked(padded)?;
    let cycles = cycles.as_chunks().0.get(..lines)?;
    Some((HistogramView { level: head.level, place: head.place, cycles }, rest))
}

/// Levels of groups, innermost first.
pub(crate) fn group_levels(mut rest: &[u8]) -> impl Iterator<Item = GroupLevel<'_>> {
    core::iter::from_fn(move || {
        let (level, after) = split_groups(rest)?;
        rest = after;
        Some(level)
    })
}

/// Takes one bandwidth off the front; `None` in its place where its cell is missing.
fn split_bandwidth(bytes: &[u8]) -> Option<(Option<BandwidthView<'_>>, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<BANDWIDTH_BYTES>()?;
    let head = BandwidthHeader::from_bytes(head);
    let (cores, rest) = numbers(rest, head.cores)?;
    let view = |gb_per_s| BandwidthView { region: RegionId(head.region), gb_per_s, cores };
    Some((spread(&head.cell).map(view), rest))
}

/// Takes one level of groups off the front.
fn split_groups(bytes: &[u8]) -> Option<(GroupLevel<'_>, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<GROUPS_BYTES>()?;
    let head = GroupsHeader::from_bytes(head);
    let (of, rest) = numbers(rest, head.cores)?;
    Some((GroupLevel { groups: head.groups, transfer: spread(&head.cell), of }, rest))
}

/// Takes `count` numbers of 16 bits off the front, with what pads them.
fn numbers(bytes: &[u8], count: u16) -> Option<(&[[u8; 2]], &[u8])> {
    let count = usize::from(count);
    let (labels, rest) = bytes.split_at_checked(label_bytes(count))?;
    Some((labels.as_chunks::<2>().0.get(..count)?, rest))
}
