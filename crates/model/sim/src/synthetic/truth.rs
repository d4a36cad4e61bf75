//! What an estimator ought to find: latencies without noise, and the pattern form where it holds.
//!
//! `latency(core, page, i) = base[class(page)][i ^ key(page)]` is not assumed here: a page's code
//! is found by comparing the slices and controllers of its lines with those of a reference block,
//! so where a hash does not follow the form there is no code. Nothing here disturbs the memory.

use isochrone_units::{CoreId, LINES_PER_PAGE, Level, LineAddr, PageAddr, RegionId};

use crate::number::{float, narrow, wide};
use crate::synthetic::{SampleError, SyntheticMemory};

/// The true code of a page: what the one byte in an atlas stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code {
    /// Which of the level's bases: region times page-wise controllers plus controller.
    pub class: u8,
    /// XOR with the line index (below 64 or 256).
    pub key: u8,
}

/// The units that serve one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Units {
    slice: u16,
    controller: u16,
}

impl SyntheticMemory {
    /// Latency in cycles of `line` from `core` as it is now, without noise, overhead and
    /// frequency drift.
    ///
    /// # Errors
    /// [`SampleError`] when there is no such core, line or level.
    pub fn truth_latency(
        &self,
        core: CoreId,
        level: Level,
        line: LineAddr,
    ) -> Result<f64, SampleError> {
        self.check(core, level, &[line])?;
        self.latency_at(self.wears[usize::from(core.0)], level, line).ok_or(SampleError::NoLlc)
    }

    /// The physical core that a logical one wears now.
    #[must_use]
    pub fn truth_wears(&self, core: CoreId) -> Option<u16> {
        self.wears.get(usize::from(core.0)).copied()
    }

    /// The frame of a page, whether or not programs can read it.
    #[must_use]
    pub fn truth_frame(&self, page: PageAddr) -> Option<u64> {
        self.table.frame(page)
    }

    /// The region of a page.
    #[must_use]
    pub fn truth_region(&self, page: PageAddr) -> Option<RegionId> {
        self.table.frame(page).map(|frame| self.table.region_of_frame(frame))
    }

    /// Slice and controller of a line, as the machine numbers them.
    #[must_use]
    pub fn truth_home(&self, line: LineAddr) -> Option<(u16, u16)> {
        self.physical(line).map(|line| self.units(line)).map(|u| (u.slice, u.controller))
    }

    /// Bases at a level: one for each region at the LLC, and times the page-wise controllers for
    /// DRAM.
    #[must_use]
    pub fn truth_classes(&self, level: Level) -> u16 {
        narrow(wide(self.spec.regions.len())) * self.page_ways(level)
    }

    /// Code of a page at a level, the smallest key where several fit; `None` where the page does
    /// not follow the form, or lies outside the arena.
    #[must_use]
    pub fn truth_code(&self, level: Level, page: PageAddr) -> Option<Code> {
        let frame = self.table.frame(page)?;
        let first = frame * wide(LINES_PER_PAGE);
        let region = self.table.region_of_frame(frame);
        let lines: Vec<Units> = (0..wide(LINES_PER_PAGE)).map(|i| self.units(first + i)).collect();
        let reference = self.reference(region);
        let by_page = self.page_ways(level) > 1;
        let alike = |a: Units, b: Units| {
            let same_controller = level == Level::Llc || by_page || a.controller == b.controller;
            a.slice == b.slice && same_controller
        };
        let fits = |key: usize| {
            lines.iter().enumerate().all(|(i, units)| alike(*units, reference[i ^ key]))
        };
        let key = (0..reference.len()).find(|key| fits(*key))?;
        let class = self.class(level, region, if by_page { self.page_unit(first) } else { 0 });
        Some(Code { class: u8::try_from(class).ok()?, key: u8::try_from(key).ok()? })
    }

    /// The key alone, in DRAM (where it is valid for the LLC too).
    #[must_use]
    pub fn truth_key(&self, page: PageAddr) -> Option<u8> {
        self.truth_code(Level::Dram, page).map(|code| code.key)
    }

    /// What `core` sees now, `[class][line]`, each `period_lines` long.
    ///
    /// # Errors
    /// [`SampleError`] when there is no such core or level.
    pub fn truth_base(&self, core: CoreId, level: Level) -> Result<Vec<Vec<f64>>, SampleError> {
        self.check_core(core)?;
        self.truth_base_of(self.wears[usize::from(core.0)], level)
    }

    /// What whoever wears `physical` sees, `[class][line]`.
    ///
    /// # Errors
    /// [`SampleError`] when there is no such core or level.
    pub fn truth_base_of(&self, physical: u16, level: Level) -> Result<Vec<Vec<f64>>, SampleError> {
        let machine = &self.spec.machine;
        if usize::from(physical) >= machine.cores() {
            return Err(SampleError::NoSuchCore { core: CoreId(physical), cores: machine.cores() });
        }
        let ways = self.page_ways(level);
        let mut bases = Vec::new();
        for class in 0..self.truth_classes(level) {
            let region = RegionId(class / ways);
            let by_page = &self.spec.regions[usize::from(region.0)].controllers;
            let base = self.reference(region).into_iter().map(|units| {
                let controller =
                    if ways > 1 { by_page[usize::from(class % ways)] } else { units.controller };
                machine.latency(physical, level, units.slice, controller)
            });
            bases.push(base.collect::<Option<Vec<f64>>>().ok_or(SampleError::NoLlc)?);
        }
        Ok(bases)
    }

    /// Mean DRAM latency in cycles of all arena lines of a region, from `core`: what a chase
    /// through the region's memory ought to give for each load. `None` without such a core, or
    /// without a page of the region in the arena.
    #[must_use]
    pub fn truth_region_latency(&self, core: CoreId, region: RegionId) -> Option<f64> {
        let physical = self.truth_wears(core)?;
        let (mut sum, mut lines) = (0.0, 0_usize);
        for page in (0..self.pages()).map(PageAddr) {
            if self.truth_region(page) != Some(region) {
                continue;
            }
            for line in (0..64).map(|i| page.line(i)) {
                sum += self.latency_at(physical, Level::Dram, line)?;
                lines += 1;
            }
        }
        (lines > 0).then(|| sum / float(lines))
    }

    /// Latency of an arena line from a physical core.
    pub(super) fn latency_at(&self, physical: u16, level: Level, line: LineAddr) -> Option<f64> {
        let units = self.units(self.physical(line)?);
        self.spec.machine.latency(physical, level, units.slice, units.controller)
    }

    fn physical(&self, line: LineAddr) -> Option<u64> {
        let frame = self.table.frame(line.page())?;
        Some(frame * wide(LINES_PER_PAGE) + u64::from(line.index_in_page()))
    }

    fn units(&self, physical: u64) -> Units {
        let region = self.table.region_of_frame(physical / wide(LINES_PER_PAGE));
        let units = &self.spec.regions[usize::from(region.0)];
        let pick = |among: &[u16], hash: &crate::synthetic::AddressHash| {
            among[usize::from(hash.unit(physical, narrow(wide(among.len()))))]
        };
        Units {
            slice: pick(&units.slices, &self.spec.slice_hash),
            controller: pick(&units.controllers, &self.spec.controller_hash),
        }
    }

    /// The units of a region's first block, on which keys are defined: its key is 0.
    fn reference(&self, region: RegionId) -> Vec<Units> {
        let first = self.table.first_line(region);
        (first..first + u64::from(self.spec.period_lines)).map(|line| self.units(line)).collect()
    }

    /// Controllers that pages choose between as a whole; 1 where they do not, or do not matter.
    fn page_ways(&self, level: Level) -> u16 {
        match level {
            Level::Llc => 1,
            Level::Dram => self.spec.controller_hash.page_ways(),
        }
    }

    fn page_unit(&self, line: u64) -> u16 {
        self.spec.controller_hash.unit(line, self.page_ways(Level::Dram))
    }

    fn class(&self, level: Level, region: RegionId, page_unit: u16) -> u16 {
        region.0 * self.page_ways(level) + page_unit
    }
}

/// The latency of line `i` of a page with `code`, read off bases as [`SyntheticMemory`] gives.
#[must_use]
pub fn predict(bases: &[Vec<f64>], code: Code, i: u8) -> Option<f64> {
    bases.get(usize::from(code.class))?.get(usize::from(i ^ code.key)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::SyntheticSpec;

    fn memory(spec: SyntheticSpec) -> SyntheticMemory {
        SyntheticMemory::new(spec.with_pages(1024)).expect("a preset is sound")
    }

    /// Checks the form on every line of every page, from every core; returns the distinct keys.
    fn form_holds(memory: &SyntheticMemory, level: Level) -> usize {
        let mut keys = std::collections::BTreeSet::new();
        let codes: Vec<Code> = (0..memory.pages())
            .map(|p| memory.truth_code(level, PageAddr(p)).expect("every page has a code"))
            .collect();
        for core in (0..memory.cores()).step_by(1 + memory.cores() / 4) {
            let core = CoreId(narrow(wide(core)));
            let bases = memory.truth_base(core, level).unwrap();
            for (page, code) in (0..).map(PageAddr).zip(&codes) {
                keys.insert(*code);
                for i in 0..64 {
                    let truth = memory.truth_latency(core, level, page.line(i)).unwrap();
                    assert_eq!(predict(&bases, *code, i), Some(truth), "{page:?} {i} {code:?}");
                }
            }
        }
        keys.len()
    }

    #[test]
    fn the_form_holds_exactly_where_the_hash_is_linear() {
        let emerald = memory(SyntheticSpec::emerald_rapids_like(3));
        assert_eq!(form_holds(&emerald, Level::Llc), 64);
        assert!(form_holds(&emerald, Level::Dram) >= 16);
        let wide = memory(SyntheticSpec::emerald_rapids_wide(3).with_small_pages());
        assert!(form_holds(&wide, Level::Llc) > 128, "256 keys");
        form_holds(&wide, Level::Dram);
        assert_eq!(form_holds(&memory(SyntheticSpec::ring_knc(3)), Level::Dram), 64);
    }

    #[test]
    fn the_form_holds_exactly_for_permuted_base_sequences() {
        let xeon = memory(SyntheticSpec::mesh_xeon(3));
        assert!(form_holds(&xeon, Level::Llc) >= 32);
        assert!(form_holds(&xeon, Level::Dram) >= 32);
        let knm = memory(SyntheticSpec::mesh_knm_snc4(3));
        assert_eq!(knm.truth_classes(Level::Dram), 4);
        form_holds(&knm, Level::Dram);
    }

    #[test]
    fn page_classes_carry_the_dram_latency_of_the_genoa_like_machine() {
        let genoa = memory(SyntheticSpec::genoa_like(3).with_small_pages());
        assert_eq!(form_holds(&genoa, Level::Llc), 8, "eight slices, hence eight keys");
        assert_eq!(form_holds(&genoa, Level::Dram), 24, "and three classes of page");
        let bases = genoa.truth_base(CoreId(0), Level::Dram).unwrap();
        assert!(bases.iter().all(|base| base.iter().all(|c| *c == base[0])), "flat in a page");
        let class = |p| usize::from(genoa.truth_code(Level::Dram, PageAddr(p)).unwrap().class);
        let mut shares = [0_u32; 3];
        (0..1024).for_each(|p| shares[class(p)] += 1);
        assert!((200..312).contains(&shares[0]) && (450..574).contains(&shares[2]), "{shares:?}");
    }

    #[test]
    fn no_page_of_an_irregular_machine_has_a_code() {
        let irregular = memory(SyntheticSpec::irregular(3));
        for level in Level::ALL {
            let coded = (1..1024).filter(|p| irregular.truth_code(level, PageAddr(*p)).is_some());
            assert_eq!(coded.count(), 0);
        }
    }

    #[test]
    fn the_latency_is_that_of_the_slice_and_the_controller() {
        let ring = memory(SyntheticSpec::ring_knc(3));
        let line = LineAddr(1234);
        let (slice, controller) = ring.truth_home(line).unwrap();
        let expected = ring.spec().machine.latency(17, Level::Dram, slice, controller).unwrap();
        assert_eq!(ring.truth_latency(CoreId(17), Level::Dram, line), Ok(expected));
        assert_eq!(ring.truth_latency(CoreId(17), Level::Llc, line), Err(SampleError::NoLlc));
    }
}
