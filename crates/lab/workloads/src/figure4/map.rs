//! The truth of a simulated memory, as a replay asks for it at every miss.

use isochrone_sim::synthetic::SyntheticMemory;
use isochrone_units::{LINES_PER_PAGE, Level, PageAddr};

use crate::number::{real, wide};

/// Lines of a page, as line numbers count.
pub(super) const PAGE_LINES: u32 = 64;
const _: () = assert!(PAGE_LINES as usize == LINES_PER_PAGE);
/// Canonical indices of lines.
pub(super) const INDICES: usize = LINES_PER_PAGE;

/// Where pages lie and how far their lines are.
#[derive(Debug)]
pub(super) struct Map {
    /// Physical line of each page's first line.
    pub(super) first_lines: Vec<u32>,
    /// Key of each page.
    pub(super) keys: Vec<u8>,
    /// Latency in cycles by core and canonical index.
    pub(super) cycles: Vec<[f64; 64]>,
}

impl Map {
    /// The truth of a memory; what placement believes may differ from it.
    pub(super) fn of(memory: &SyntheticMemory) -> Option<Self> {
        let cores = (0..=u16::MAX).take(memory.cores());
        let table = |core| {
            let classes = memory.truth_base_of(core, Level::Dram).ok()?;
            let first = classes.first().filter(|_| classes.len() == 1)?;
            <[f64; 64]>::try_from(first.as_slice()).ok()
        };
        let key = |page| memory.truth_code(Level::Dram, PageAddr(page)).map(|code| code.key);
        let first_line = |page| {
            let frame = memory.truth_frame(PageAddr(page))?;
            u32::try_from(frame * wide(LINES_PER_PAGE)).ok()
        };
        Some(Self {
            first_lines: (0..memory.pages()).map(first_line).collect::<Option<_>>()?,
            keys: (0..memory.pages()).map(key).collect::<Option<_>>()?,
            cycles: cores.map(table).collect::<Option<_>>()?,
        })
    }

    /// Physical line of an arena line.
    pub(super) fn physical(&self, line: u32) -> u32 {
        self.first_lines[(line / PAGE_LINES) as usize] + line % PAGE_LINES
    }

    /// The latency that the nearest part of all lines does not exceed, from a core. Lines that
    /// are as far as the last of them count with them.
    pub(super) fn nearest(&self, core: usize, part: f32) -> f64 {
        let mut cycles = self.cycles[core];
        cycles.sort_unstable_by(f64::total_cmp);
        let within = |rank: &usize| real(wide(rank + 1)) <= 64.0 * f64::from(part);
        cycles[(0..64).rfind(within).unwrap_or(0)]
    }

    /// Canonical index of a line.
    pub(super) fn index(&self, line: u32) -> u8 {
        let [in_page, ..] = (line % PAGE_LINES).to_le_bytes();
        in_page ^ self.keys[(line / PAGE_LINES) as usize]
    }

    /// Cycles of a load from memory.
    pub(super) fn latency(&self, core: usize, line: u32) -> f64 {
        self.cycles[core][usize::from(self.index(line))]
    }
}
