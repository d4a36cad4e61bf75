//! The tables that an engine works in: how long each is, and how many bytes they take together. The caller
//! makes them, of memory of whatever kind it has.

use core::fmt;
use core::ops::DerefMut;

use crate::choose::{Choice, KEPT, Pairs, Read};
use crate::offset::{CELLS, Known, Offset, PASSES, RULER};
use crate::patterns::CLASSES;
use crate::rows::{Group, LISTED, RowHead, ScoreState, Units};
use isochrone_units::{CoreId, Cycles, LineAddr};

/// References timed in a pass, as a part of the pages: the same lines of them as of other pages, since what a
/// line's place in its group does to its latency is then the same for both.
const REFERENCES: usize = 8;
/// As many at least, so that each pass has an offset.
const LEAST_REFERENCES: usize = 16;
/// Codes that scores are kept of together.
const GROUP_CODES: usize = 64;
/// Slots of an engine with a budget, at most: cores whose bases are ready to decode in.
const SLOTS: usize = 4;
/// Buckets that readings are rounded to, at least: with 256 each is a step of the penalties where the pattern is
/// no higher than the noise, with 192 less than a twentieth of the reach of residuals. With 80 a clock that ticks
/// by half of the noise loses half a point of codes.
const BUCKETS: [usize; 2] = [256, 192];
/// Pages that a window is not made smaller than before there is but one slot: with one, two cores that decode by
/// turns make all anew each time; with few pages a round is hardly worth its preparation.
const PAGES: usize = 128;
/// Pages of a window at least.
const LEAST_PAGES: usize = 64;
/// What a safe decision may lose in an engine with a budget, at most: its codes decide where a program's memory
/// lies for as long as it runs.
const LOSS_MOST: f32 = 0.02;
/// Samples that wait for an offset in an engine with a budget, of all pages together; three rounds of each page at
/// least, and sixteen at most.
const WAITING: usize = 8192;

/// References timed in a pass over so many pages.
pub(crate) fn references(pages: usize) -> usize {
    (pages / REFERENCES).max(LEAST_REFERENCES)
}

/// Memory of some kind.
pub trait Room {
    /// A table of it.
    type Of<T>: DerefMut<Target = [T]>;
}

/// How much is done between two looks at the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Timed loads.
    pub loads: usize,
    /// Pages opened, weighed or chosen lines for.
    pub pages: usize,
    /// Cells of rows worked out, of eight bytes each.
    pub cells: usize,
}

impl Pace {
    /// Some tens of microseconds at most: for a program that gives its time in slices.
    pub const SLICED: Self = Self { loads: 32, pages: 16, cells: 2048 };
    /// All of it: for a caller who has nothing else to do.
    pub const WHOLE: Self = Self { loads: usize::MAX, pages: usize::MAX, cells: usize::MAX };
}

/// The form of a level's bases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Classes of pages.
    pub classes: usize,
    /// Lines after which a pattern repeats.
    pub period: usize,
    /// Orders in which the rows of a base are kept: see [`crate::arrangements`].
    pub arrangements: usize,
}

/// What an engine is for, and so how long its tables are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layout {
    /// Pages in the window.
    pub window: usize,
    /// Cores whose bases are ready to decode in at the same time.
    pub slots: usize,
    /// Classes of pages, at most 16.
    pub classes: usize,
    /// Lines after which a pattern repeats.
    pub period: usize,
    /// Bytes of the rows of one base: readings are rounded as finely as this allows.
    pub rows_bytes: usize,
    /// Samples of a page that wait for an offset.
    pub waiting: usize,
    /// Lines of a page that are ever read, at most.
    pub lines_most: usize,
    /// What a safe decision may lose, at most: see [`crate::Decided::loss`].
    pub loss_most: f32,
    /// Whether readings are rounded up or down by chance, as near as they are: a clock that ticks has few
    /// readings, and where rows are coarse each would be off by the same part of a cycle every time.
    pub dither: bool,
    /// How finely penalties are counted.
    pub units: Units,
    /// How lines are chosen.
    pub choice: Choice,
    /// How much is done between two looks at the clock.
    pub pace: Pace,
}

impl Layout {
    /// A layout for slices of time whose tables take at most `budget` bytes: of the slots, the window and
    /// the choice of lines first what is worth least is given up. With less than 64 KiB even the
    /// smallest is larger.
    #[must_use]
    pub fn within(budget: usize, window: usize, form: Form) -> Self {
        let layout = Self {
            window: window.max(1),
            slots: SLOTS,
            classes: form.classes.clamp(1, CLASSES),
            period: form.period,
            rows_bytes: 0,
            waiting: 0,
            lines_most: form.period,
            dither: true,
            units: Units::Fine,
            loss_most: LOSS_MOST,
            choice: Choice::Adaptive,
            pace: Pace::SLICED,
        };
        let bytes = BUCKETS.map(|buckets| buckets * layout.codes() * form.arrangements);
        let several = bytes.into_iter().find_map(|rows| layout.several(budget, rows));
        several.unwrap_or_else(|| layout.alone(budget, bytes[1]))
    }

    /// With two slots at least, and a window that is worth a round.
    fn several(mut self, budget: usize, rows: usize) -> Option<Self> {
        while !self.fill(budget, rows) {
            if self.slots > 2 {
                self.slots -= 1;
            } else if self.window > PAGES {
                self.window /= 2;
            } else {
                return None;
            }
        }
        Some(self)
    }

    /// With one slot, and whatever rows there is room for.
    fn alone(mut self, budget: usize, rows: usize) -> Self {
        self.slots = 1;
        while !self.fill(budget, rows) {
            if self.window > LEAST_PAGES {
                self.window /= 2;
            } else if self.choice == Choice::Adaptive {
                self.choice = Choice::Fixed;
            } else {
                break;
            }
        }
        self
    }

    /// Gives rows what the other tables leave of the budget; whether each slot's have so many bytes.
    fn fill(&mut self, budget: usize, rows: usize) -> bool {
        self.waiting = (WAITING / self.window).clamp(3 * PASSES, 16 * PASSES);
        self.rows_bytes = 0;
        self.rows_bytes = budget.saturating_sub(self.bytes()) / self.slots;
        self.rows_bytes >= rows
    }

    /// Codes of a page.
    const fn codes(&self) -> usize {
        let codes = self.classes * self.period;
        if codes < GROUP_CODES { GROUP_CODES } else { codes }
    }

    pub(crate) const fn pairs(&self) -> Pairs {
        Pairs { classes: self.classes, period: self.period }
    }

    /// Groups of codes of a page's scores.
    pub(crate) const fn groups(&self) -> usize {
        self.codes().div_ceil(GROUP_CODES)
    }

    /// Bytes of rows, of all slots.
    #[must_use]
    pub const fn cells(&self) -> usize {
        self.slots * self.rows_bytes
    }

    /// Cells of offsets, of all slots and passes.
    #[must_use]
    pub const fn aligns(&self) -> usize {
        self.slots * PASSES * CELLS
    }

    /// Entries of the table by which offsets are found.
    #[must_use]
    pub const fn ruler(&self) -> usize {
        RULER
    }

    /// Losses by pair of codes.
    #[must_use]
    pub const fn losses(&self) -> usize {
        self.pairs().count()
    }

    /// Lines by pair of codes, of all slots.
    #[must_use]
    pub const fn pair_lines(&self) -> usize {
        match self.choice {
            Choice::Adaptive => self.slots * self.pairs().count(),
            Choice::Fixed => 0,
        }
    }

    /// Room to transform two patterns in.
    #[must_use]
    pub const fn scratch(&self) -> usize {
        2 * self.period
    }

    /// Scores, of all pages of the window.
    #[must_use]
    pub const fn scores(&self) -> usize {
        self.window * self.groups()
    }

    /// Samples that wait, of all pages of the window.
    #[must_use]
    pub const fn waits(&self) -> usize {
        self.window * self.waiting
    }

    /// References of a round.
    #[must_use]
    pub fn known(&self) -> usize {
        PASSES * references(self.window)
    }

    /// Pages and references of a pass.
    #[must_use]
    pub fn pass(&self) -> usize {
        self.window + references(self.window)
    }

    /// Loads of a round.
    #[must_use]
    pub fn loads(&self) -> usize {
        PASSES * self.pass()
    }

    /// Bytes of all tables together.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let page = size_of::<Open>() + size_of::<u32>() + 2 * size_of::<[u16; LISTED]>();
        let load = size_of::<LineAddr>() + size_of::<Cycles>() + size_of::<u32>();
        self.cells()
            + self.slots * size_of::<Slot>()
            + (self.aligns() + self.ruler() + self.losses()) * size_of::<f32>()
            + self.pair_lines() * size_of::<[u8; KEPT]>()
            + (self.scratch() + self.pass()) * size_of::<f64>()
            + self.window * page
            + self.scores() * size_of::<Group<i16>>()
            + self.waits() * size_of::<[u32; 2]>()
            + self.known() * size_of::<Known>()
            + self.loads() * load
            + self.pass() * size_of::<u32>()
    }
}

/// One undecided page.
#[derive(Clone, Copy, Debug, Default)]
pub struct Open {
    pub(crate) tag: u32,
    pub(crate) first: u64,
    pub(crate) reads: u32,
    /// Lines of the next round, `count` of them.
    pub(crate) next: [u8; PASSES],
    pub(crate) count: u8,
    /// Its scores were begun; once few codes are left they are in its list instead.
    pub(crate) begun: bool,
    pub(crate) read: Read,
    /// Codes in its list.
    pub(crate) listed: usize,
    pub(crate) state: ScoreState,
    /// Samples that were not weighed yet.
    pub(crate) waiting: usize,
}

/// A core that decodes in a base, ready or on its way.
#[derive(Clone, Debug)]
pub struct Slot {
    /// Core and base; none if nothing is there.
    pub(crate) of: Option<(CoreId, u32)>,
    pub(crate) ready: bool,
    pub(crate) head: RowHead,
    pub(crate) step_cycles: f32,
    pub(crate) offset: Offset,
    pub(crate) nodes: [f64; CLASSES],
    pub(crate) spread: f64,
    /// When a round of it was timed last.
    pub(crate) at_ns: u64,
    /// Times in a row that its offset became old before it was believed.
    pub(crate) aged: u32,
}

impl Slot {
    /// Nothing.
    pub const EMPTY: Self = Self {
        of: None,
        ready: false,
        head: RowHead::EMPTY,
        step_cycles: 1.0,
        offset: Offset::NEW,
        nodes: [0.0; CLASSES],
        spread: 0.0,
        at_ns: 0,
        aged: 0,
    };
}

/// All tables of an engine. Each is as long as the function of [`Layout`] of its name says, and holds
/// zeros, or defaults, or empty slots.
pub struct Tables<R: Room> {
    /// `Layout::cells()`
    pub cells: R::Of<u8>,
    /// `Layout::slots`
    pub slots: R::Of<Slot>,
    /// `Layout::aligns()`
    pub aligns: R::Of<f32>,
    /// `Layout::ruler()`
    pub ruler: R::Of<f32>,
    /// `Layout::losses()`
    pub losses: R::Of<f32>,
    /// `Layout::pair_lines()`
    pub pair_lines: R::Of<[u8; 8]>,
    /// `Layout::scratch()`
    pub scratch: R::Of<f64>,
    /// `Layout::window`
    pub open: R::Of<Open>,
    /// `Layout::window`: which entries of `open` are in use, those first.
    pub standing: R::Of<u32>,
    /// `Layout::scores()`
    pub scores: R::Of<Group<i16>>,
    /// `Layout::window`
    pub list_codes: R::Of<[u16; LISTED]>,
    /// `Layout::window`
    pub list_behind: R::Of<[i16; LISTED]>,
    /// `Layout::waits()`
    pub waits: R::Of<[u32; 2]>,
    /// `Layout::known()`
    pub known: R::Of<Known>,
    /// `Layout::loads()`
    pub lines: R::Of<LineAddr>,
    /// `Layout::loads()`
    pub raw: R::Of<Cycles>,
    /// `Layout::loads()`: what each load is of.
    pub whats: R::Of<u32>,
    /// `Layout::pass()`
    pub order: R::Of<u32>,
    /// `Layout::pass()`
    pub room: R::Of<f64>,
}

impl<R: Room> Tables<R> {
    /// Whether every table is as long as the layout says.
    pub(crate) fn fit(&self, layout: &Layout) -> bool {
        self.cells.len() >= layout.cells()
            && self.slots.len() >= layout.slots
            && self.aligns.len() >= layout.aligns()
            && self.ruler.len() >= layout.ruler()
            && self.losses.len() >= layout.losses()
            && self.pair_lines.len() >= layout.pair_lines()
            && self.scratch.len() >= layout.scratch()
            && self.open.len() >= layout.window
            && self.standing.len() >= layout.window
            && self.scores.len() >= layout.scores()
            && self.list_codes.len() >= layout.window
            && self.list_behind.len() >= layout.window
            && self.waits.len() >= layout.waits()
            && self.known.len() >= layout.known()
            && self.lines.len() >= layout.loads()
            && self.raw.len() >= layout.loads()
            && self.whats.len() >= layout.loads()
            && self.order.len() >= layout.pass()
            && self.room.len() >= layout.pass()
    }
}

impl<R: Room> fmt::Debug for Tables<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tables").field("open", &self.open.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_of_a_megabyte_is_kept_for_every_form() {
        for (period, most) in [(64, 16), (256, 4)] {
            for classes in 1..=most {
                for window in [64, 512, 1024] {
                    for arrangements in [1, 8] {
                        let form = Form { classes, period, arrangements };
                        let layout = Layout::within(1 << 20, window, form);
                        assert!(layout.bytes() <= 1 << 20, "{layout:?}: {}", layout.bytes());
                        assert!(layout.window >= 64 && layout.rows_bytes > 0, "{layout:?}");
                    }
                }
            }
        }
        let of = |classes, arrangements| {
            Layout::within(1 << 20, 512, Form { classes, period: 64, arrangements })
        };
        assert_eq!((of(1, 8).window, of(1, 8).choice), (512, Choice::Adaptive));
        // Pages of flat classes take few rows, so four cores decode by turns.
        assert_eq!((of(4, 1).window, of(4, 1).slots), (512, 4));
        assert_eq!((of(4, 8).window, of(4, 8).slots), (128, 2));
    }
}
