//! What an engine is between two steps: its tables, how far its round came, and its open pages.

use core::fmt;
use core::ops::Range;

use crate::batch::Batch;
use crate::number::{index, short};
use crate::offset::PASSES;
use crate::patterns::Patterns;
use crate::tables::{Layout, Open, Room, Slot, Tables};
use isochrone_units::{CoreId, Level};

/// References of a decoding core before its offset is believed, until when samples wait: an offset that is
/// two cycles off misplaces every page of a class in the same way. A load from DRAM scatters by
/// some 37 cycles, so that 2500 of them leave 0.75. On the synthetic Genoa with a drifting clock
/// 1000 give 0.944 of the codes right, 2500 and 4000 more than 0.95.
pub(super) const BELIEVED: f64 = 2500.0;
/// In the place of an open page: the load is of a page whose code is known.
pub(super) const REFERENCE: u32 = u32::MAX >> 9;
/// The page is in its first rounds: no page has left after fewer, so codes occur with their shares.
pub(super) const FAIR: u32 = 1 << 31;

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Something was done, and there may be time for more.
    Went,
    /// The time was up.
    Paused,
    /// There is nothing to decode.
    Idle,
    /// Known pages do not look as the base says: the core has another one. What was decided since
    /// [`crate::Pages::verified`] was last called but one is worth nothing.
    Lost,
    /// The thread was found on another core: so many loads were for nothing. The round is drawn anew.
    Elsewhere(usize),
    /// The level cannot be decoded here: what is prepared goes stale before it is used, time and again,
    /// or nothing can be decoded in this base.
    Cannot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Preparing { slot: usize, stage: Stage },
    Drawing,
    Timing,
    Taking { pass: usize },
    Closing { at: usize },
}

/// How far the preparation of a slot came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Rows from this bucket on are to be worked out.
    Rows { bucket: usize },
    /// What wrong codes cost under the base (0), then under those of cores that do not decode, from this
    /// pair of classes on.
    Losses { base: usize, pair: usize },
}

/// Decodes pages of one level.
pub struct Engine<R: Room> {
    pub(super) tables: Tables<R>,
    pub(super) layout: Layout,
    pub(super) phase: Phase,
    pub(super) batch: Batch,
    /// Open pages: so many entries of `standing`.
    pub(super) open: usize,
    /// Whose turn it is among the decoding cores.
    pub(super) turn: usize,
    /// The slot of the round that is drawn, and what it is for.
    pub(super) round: usize,
    /// Which loads of the round are of each pass, and which of its known loads.
    pub(super) passes: [Range<usize>; PASSES],
    pub(super) known: [Range<usize>; PASSES],
    /// How much of `order` is in use.
    pub(super) ordered: usize,
    /// What known pages said at the end of the round.
    pub(super) heard: Option<bool>,
    /// The slot to give away next.
    pub(super) next_slot: usize,
    /// The ruler is of the penalties in use.
    pub(super) ruled: bool,
    /// Loads of known pages, and of unknown ones, that an offset must rest on.
    pub(super) wanted: (f64, f64),
    pub(super) loud: f64,
    /// Units in a nat of all scores.
    pub(super) a_nat: Option<f32>,
    pub(super) reference_next: usize,
    pub(super) reference_reads: usize,
    /// Loads of a page's lines that are the same for all pages.
    pub(super) alike: usize,
    /// For rounding readings.
    pub(super) dice: u32,
    /// The last round had known pages.
    pub(super) saw_known: bool,
    /// No page has left the window since it was filled: codes in it occur with their shares.
    pub(super) whole: bool,
    /// Timed loads of pages, and of references.
    pub(super) loads: [u64; 2],
}

impl<R: Room> Engine<R> {
    /// Over tables of that layout. `None` if one of them is too short.
    #[must_use]
    pub fn new(layout: Layout, mut tables: Tables<R>) -> Option<Self> {
        if !tables.fit(&layout) || layout.window == 0 || layout.slots == 0 {
            return None;
        }
        for (place, slot) in tables.standing.iter_mut().enumerate() {
            *slot = short(place);
        }
        const NONE: Range<usize> = 0..0;
        Some(Self {
            tables,
            phase: Phase::Drawing,
            batch: Batch::new(Level::Llc, layout.pace.loads),
            open: 0,
            turn: 0,
            round: 0,
            passes: [NONE; PASSES],
            known: [NONE; PASSES],
            ordered: 0,
            heard: None,
            next_slot: 0,
            ruled: false,
            wanted: (BELIEVED, BELIEVED),
            loud: f64::MAX,
            a_nat: None,
            reference_next: 0,
            reference_reads: 0,
            alike: PASSES,
            dice: 1,
            saw_known: false,
            whole: true,
            loads: [0; 2],
            layout,
        })
    }

    /// Pages in the window.
    #[must_use]
    pub const fn open(&self) -> usize {
        self.open
    }

    /// Whose turn it is among the decoding cores.
    #[must_use]
    pub const fn turn(&self) -> usize {
        self.turn
    }

    /// Whether no round is under way: everything that was timed is used.
    #[must_use]
    pub fn is_between_rounds(&self) -> bool {
        self.phase == Phase::Drawing
    }

    /// Timed loads so far: of pages, and of references. Loads of a round that is not used are not counted.
    #[must_use]
    pub const fn loads(&self) -> [u64; 2] {
        self.loads
    }

    /// How long the tables are.
    #[must_use]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Gives the open pages back, and forgets all samples and bases: they were of another base, or codes
    /// have other answers now.
    pub fn start_over(&mut self, mut back: impl FnMut(u32)) {
        for place in 0..self.open {
            back(self.page(place).tag);
        }
        self.open = 0;
        self.phase = Phase::Drawing;
        self.tables.slots.iter_mut().for_each(|slot| (slot.of, slot.ready) = (None, false));
        self.tables.losses.fill(0.0);
        (self.ruled, self.whole, self.turn, self.loud) = (false, true, 0, f64::MAX);
        (self.heard, self.a_nat) = (None, None);
    }

    /// The slot that is ready for a decoding core.
    pub(super) fn slot_of(&self, core: (CoreId, u32)) -> Option<usize> {
        self.tables.slots.iter().position(|slot| slot.ready && slot.of == Some(core))
    }

    /// An open page by its place among them.
    pub(super) fn page(&self, place: usize) -> &Open {
        &self.tables.open[self.entry_of(place)]
    }

    pub(super) fn page_mut(&mut self, place: usize) -> &mut Open {
        let entry = self.entry_of(place);
        &mut self.tables.open[entry]
    }

    /// Where an open page's data are.
    pub(super) fn entry_of(&self, place: usize) -> usize {
        index(self.tables.standing[place])
    }

    /// Offsets' cells of a slot.
    pub(super) fn aligns_of(&mut self, slot: usize) -> &mut [f32] {
        let each = self.layout.aligns() / self.layout.slots;
        self.tables.aligns.get_mut(slot * each..(slot + 1) * each).unwrap_or(&mut [])
    }
}

/// The lines of a round among those that all pages have in common.
pub(super) fn group_of(lines: &[u8], reads: usize) -> [u8; PASSES] {
    core::array::from_fn(|read| {
        lines.get((reads + read) % lines.len().max(1)).copied().unwrap_or(0)
    })
}

impl<R: Room> fmt::Debug for Engine<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("layout", &self.layout)
            .field("phase", &self.phase)
            .field("open", &self.open)
            .field("loads", &self.loads)
            .finish_non_exhaustive()
    }
}

/// Whether a base is one that tables of this layout are for.
pub(super) fn suits<B: Patterns + ?Sized>(layout: &Layout, base: &B) -> bool {
    (base.classes(), base.period()) == (layout.classes, layout.period)
}

impl Slot {
    /// Whether its offset may be used.
    pub(crate) fn is_believed(&self, wanted: (f64, f64)) -> bool {
        self.ready && self.offset.is_believed(wanted)
    }
}
