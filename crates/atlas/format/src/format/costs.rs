//! The records that say what things cost beside the matrices: fits, terms, bandwidths, means of
//! levels, groups of cores, and how far experiments may be believed. Each with its encoding and decoding side by side.

use super::{
    BANDWIDTH_BYTES, CELL_BYTES, CellRecord, FIT_BYTES, GRADE_BYTES, GROUPS_BYTES, MEAN_BYTES, Put,
    TERM_BYTES, Take,
};
use isochrone_units::{Experiment, Grade};

/// A cost that the model of the CLa paper leaves out, as files number it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum TermTag {
    /// A reader of the owner's own class pays more once a reader of another class was there.
    FirstRemoteReader = 0,
    /// An acknowledgement after the first, on a line of its own, whose load overlaps.
    OverlappedAck = 1,
    /// Each further sharer of a line that is written.
    RfoSharer = 2,
    /// A line whose neighbour is in use.
    AdjacentLine = 3,
    /// A written line whose neighbour is in use.
    AdjacentWrite = 4,
    /// A write to a line that its writer still shares.
    LeftShared = 5,
    /// A line that its reader has read before.
    LeftRead = 6,
    /// One more of several that read a line at once, which its home serves one after the other.
    Reader = 7,
}

impl TermTag {
    /// All terms, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::FirstRemoteReader,
        Self::OverlappedAck,
        Self::RfoSharer,
        Self::AdjacentLine,
        Self::AdjacentWrite,
        Self::LeftShared,
        Self::LeftRead,
        Self::Reader,
    ];

    /// The name that the contents use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FirstRemoteReader => "first-remote-reader",
            Self::OverlappedAck => "overlapped-ack",
            Self::RfoSharer => "rfo-sharer",
            Self::AdjacentLine => "adjacent-line",
            Self::AdjacentWrite => "adjacent-write",
            Self::LeftShared => "left-shared",
            Self::LeftRead => "left-read",
            Self::Reader => "reader",
        }
    }
}

/// A fit of equation (1) of the CLa paper, `T = q + oN + cnN`, in nanoseconds. Each cost is its
/// value with the lower and upper end of its interval; NaN where it is missing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitRecord {
    /// The core that owned the lines.
    pub owner: u16,
    /// The core that read them, or [`super::NONE_U16`] where several did.
    pub asker: u16,
    /// Start-up, once for all lines: the value and its interval.
    pub start_ns: [f32; 3],
    /// Each line.
    pub line_ns: [f32; 3],
    /// Each line and reader.
    pub congestion_ns: [f32; 3],
    /// Share of variance explained.
    pub r2: f32,
}

impl FitRecord {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; FIT_BYTES] {
        let put = Put::new().put(self.owner.to_le_bytes()).put(self.asker.to_le_bytes());
        let costs = [self.start_ns, self.line_ns, self.congestion_ns];
        let put = costs.iter().flatten().fold(put, |put, value| put.put(value.to_le_bytes()));
        put.put(self.r2.to_le_bytes()).put([0; 4]).end()
    }

    /// From bytes, unchecked.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; FIT_BYTES]) -> Self {
        let mut take = Take(bytes);
        let (owner, asker) = (take.u16(), take.u16());
        let mut three = || [take.f32(), take.f32(), take.f32()];
        let (start_ns, line_ns, congestion_ns) = (three(), three(), three());
        Self { owner, asker, start_ns, line_ns, congestion_ns, r2: take.f32() }
    }
}

/// One term of [`TermTag`], nanoseconds. Below 0 where something costs less with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TermRecord {
    /// A [`TermTag`].
    pub term: u8,
    /// What it adds.
    pub cell: CellRecord,
}

impl TermRecord {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; TERM_BYTES] {
        Put::new().put([self.term]).put([0; 7]).put(self.cell.to_bytes()).end()
    }

    /// From bytes, unchecked.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; TERM_BYTES]) -> Self {
        let mut take = Take(bytes);
        let [term, ..] = take.take::<8>();
        Self { term, cell: CellRecord::from_bytes(&take.take()) }
    }
}

/// How far an experiment may be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GradeRecord {
    /// Which one; those of later versions are skipped.
    pub experiment: Option<Experiment>,
    /// How far.
    pub grade: Grade,
}

impl GradeRecord {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; GRADE_BYTES] {
        let experiment = self.experiment.map_or(u8::MAX, |experiment| experiment as u8);
        Put::new().put([experiment, self.grade as u8]).put([0; 6]).end()
    }

    /// From bytes. A grade that is none here is the worst.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; GRADE_BYTES]) -> Self {
        let [experiment, grade, ..] = *bytes;
        Self {
            experiment: Experiment::ALL.get(usize::from(experiment)).copied(),
            grade: Grade::ALL.get(usize::from(grade)).copied().unwrap_or(Grade::Unusable),
        }
    }
}

/// What one core sees of one level in the mean, nanoseconds; NaN where it is missing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanRecord {
    /// The level, as [`super::level_tag`].
    pub level: u8,
    /// The core.
    pub core: u16,
    /// Mean latency of all lines.
    pub mean_ns: f32,
    /// Mean latency of the nearest quarter of the lines.
    pub near_quarter_ns: f32,
}

impl MeanRecord {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; MEAN_BYTES] {
        Put::new()
            .put([self.level, 0])
            .put(self.core.to_le_bytes())
            .put(self.mean_ns.to_le_bytes())
            .put(self.near_quarter_ns.to_le_bytes())
            .put([0; 4])
            .end()
    }

    /// From bytes, unchecked.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; MEAN_BYTES]) -> Self {
        let mut take = Take(bytes);
        let [level, _] = take.take();
        Self { level, core: take.u16(), mean_ns: take.f32(), near_quarter_ns: take.f32() }
    }
}

/// Head of a measured bandwidth, 10^9 bytes a second; the cores that ran together follow, `u16`
/// each, padded to eight bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BandwidthHeader {
    /// The region whose memory they read and wrote.
    pub region: u16,
    /// How many cores.
    pub cores: u16,
    /// The bandwidth of all of them together.
    pub cell: CellRecord,
}

impl BandwidthHeader {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; BANDWIDTH_BYTES] {
        headed(self.region, self.cores, &self.cell)
    }

    /// From bytes, unchecked.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; BANDWIDTH_BYTES]) -> Self {
        let (region, cores, cell) = unheaded(bytes);
        Self { region, cores, cell }
    }
}

/// Head of one level of groups, innermost level first; the group of each core follows, `u16` each in
/// the order of the section of cores, padded to eight bytes. [`super::NONE_U16`]: the core is in no group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupsHeader {
    /// How many groups there are.
    pub groups: u16,
    /// How many cores: as many as the atlas has.
    pub cores: u16,
    /// Line transfer between two cores of one group that share none of the levels inside, over the
    /// pairs that were measured, nanoseconds.
    pub cell: CellRecord,
}

impl GroupsHeader {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; GROUPS_BYTES] {
        headed(self.groups, self.cores, &self.cell)
    }

    /// From bytes, unchecked.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; GROUPS_BYTES]) -> Self {
        let (groups, cores, cell) = unheaded(bytes);
        Self { groups, cores, cell }
    }
}

fn headed(first: u16, cores: u16, cell: &CellRecord) -> [u8; 8 + CELL_BYTES] {
    let put = Put::new().put(first.to_le_bytes()).put(cores.to_le_bytes()).put([0; 4]);
    put.put(cell.to_bytes()).end()
}

fn unheaded(bytes: &[u8; 8 + CELL_BYTES]) -> (u16, u16, CellRecord) {
    let mut take = Take(bytes);
    let (first, cores) = (take.u16(), take.u16());
    take.u32();
    (first, cores, CellRecord::from_bytes(&take.take()))
}

#[cfg(test)]
mod tests {
    use super::super::NONE_U16;
    use super::*;

    #[test]
    fn records_come_back_as_they_went() {
        let cell = CellRecord { values: [5.0, 4.0, 6.0, 3.0, 7.0, 2.0], n: 12 };
        let fit = FitRecord {
            owner: 3,
            asker: NONE_U16,
            start_ns: [1.0, 0.5, 1.5],
            line_ns: [2.0, 1.5, 2.5],
            congestion_ns: [3.0, 2.5, 3.5],
            r2: 0.99,
        };
        assert_eq!(FitRecord::from_bytes(&fit.to_bytes()), fit);
        let term = TermRecord { term: TermTag::RfoSharer as u8, cell };
        assert_eq!(TermRecord::from_bytes(&term.to_bytes()), term);
        let mean = MeanRecord { level: 1, core: 9, mean_ns: 91.5, near_quarter_ns: 85.0 };
        assert_eq!(MeanRecord::from_bytes(&mean.to_bytes()), mean);
        for (experiment, grade) in Experiment::ALL.into_iter().zip(Grade::ALL.into_iter().cycle()) {
            let record = GradeRecord { experiment: Some(experiment), grade };
            assert_eq!(GradeRecord::from_bytes(&record.to_bytes()), record);
        }
        let later = GradeRecord::from_bytes(&[200, 200, 0, 0, 0, 0, 0, 0]);
        assert_eq!(later, GradeRecord { experiment: None, grade: Grade::Unusable });
        let bandwidth = BandwidthHeader { region: 1, cores: 2, cell };
        assert_eq!(BandwidthHeader::from_bytes(&bandwidth.to_bytes()), bandwidth);
        let groups = GroupsHeader { groups: 4, cores: 16, cell };
        assert_eq!(GroupsHeader::from_bytes(&groups.to_bytes()), groups);
    }

    #[test]
    fn terms_are_numbered_in_their_order() {
        for (number, term) in (0_u8..).zip(TermTag::ALL) {
            assert_eq!(term as u8, number);
        }
    }
}
