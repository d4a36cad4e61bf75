//! What an atlas says of costs beside its matrices: fits, terms, means of levels, bandwidths, and groups
//! of cores. What was not measured is `None`, never 0.

use crate::costs::{self, BandwidthView, GroupLevel, HistogramView};
use crate::format::{FitRecord, GradeRecord, MeanRecord, TermRecord, TermTag, level_tag};
use crate::matrices::{Spread, spread};
use crate::packed::PackedMatrix;
use crate::reader::Atlas;
use isochrone_units::{CoreId, Experiment, Grade, Level};

impl<'a> Atlas<'a> {
    /// Fits of transfers of several lines (equation 1 of the CLa paper).
    pub fn fits(&self) -> impl Iterator<Item = FitRecord> + 'a {
        self.costs.fits.iter().map(FitRecord::from_bytes)
    }

    /// A cost that the model of the CLa paper leaves out, nanoseconds; below 0 where something costs
    /// less with it.
    #[must_use]
    pub fn term(&self, term: TermTag) -> Option<Spread> {
        let mut found = self.costs.terms.iter().map(TermRecord::from_bytes);
        spread(&found.find(|record| record.term == term as u8)?.cell)
    }

    /// Mean latencies of a level from a core. Fields that are missing are NaN.
    #[must_use]
    pub fn means(&self, core: CoreId, level: Level) -> Option<MeanRecord> {
        let of = |record: &MeanRecord| (record.level, record.core) == (level_tag(level), core.0);
        self.costs.means.iter().map(MeanRecord::from_bytes).find(of)
    }

    /// Measured bandwidths, one by one.
    pub fn bandwidths(&self) -> impl Iterator<Item = BandwidthView<'a>> {
        costs::bandwidths(self.costs.bandwidths)
    }

    /// How far an experiment may be believed, the worst of what is said of it; `None` where it was not graded, as in
    /// atlases made before there were grades.
    #[must_use]
    pub fn grade(&self, experiment: Experiment) -> Option<Grade> {
        let graded = self.costs.grades.iter().map(GradeRecord::from_bytes);
        graded
            .filter(|record| record.experiment == Some(experiment))
            .map(|record| record.grade)
            .min()
    }

    /// Levels of groups of cores at equal distance, innermost first. An atlas made before there were
    /// any has none.
    pub fn group_levels(&self) -> impl Iterator<Item = GroupLevel<'a>> {
        costs::group_levels(self.costs.groups)
    }

    /// Packed matrices in the order of the description: core to region, then core to core. None in a file before major
    /// version 3, whose description has them.
    pub fn packed_matrices(&self) -> impl Iterator<Item = PackedMatrix<'a>> {
        self.matrices.packed()
    }

    /// Latencies of single lines, for pictures.
    pub fn histograms(&self) -> impl Iterator<Item = HistogramView<'a>> {
        costs::histograms(self.costs.histograms)
    }
}
