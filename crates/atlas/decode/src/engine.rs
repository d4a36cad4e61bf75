//! The engine: pages stream through a window. In every round each undecided page has some of its lines
//! timed, so that lines timed together come from different pages; a page leaves as soon as its decision is
//! safe, and another takes its place. Rounds go to the decoding cores in turn. Known pages run along in every
//! round: they carry the offset, and they notice a virtual CPU that moved.
//!
//! Between two calls everything is in the engine and its tables, so it can be put aside after any step.

mod draw;
mod prepare;
mod weigh;

use core::fmt;
use core::ops::Range;

use crate::batch::{Batch, Progress};
use crate::loads::Loads;
use crate::number::{index, short};
use crate::offset::{Offset, PASSES};
use crate::pages::Pages;
use crate::patterns::Patterns;
use crate::tables::{Layout, Open, Room, Slot, Tables};
use isochrone_units::{CoreId, Level};

/// References of a decoding core before its offset is believed, until when samples wait: an offset that is
/// two cycles off misplaces every page of a class in the same way. A load from DRAM scatters by
/// some 37 cycles, so that 2500 of them leave 0.75. On the synthetic Genoa with a drifting clock
/// 1000 give 0.944 of the codes right, 2500 and 4000 more than 0.95.
const BELIEVED: f64 = 2500.0;
/// As many at least, however small the noise.
const LEAST_BELIEVED: f64 = 64.0;
/// Fewer will do where the noise is small beside what lines differ by: when the offset is known to this
/// part of that.
const BELIEVED_PARTS: f64 = 15.0;
/// Age at which an offset is measured anew.
const OFFSET_NS: u64 = 1_000_000_000;
/// Times in a row that an offset may become that old before it was believed.
const AGED_MOST: u32 = 8;
/// In the place of an open page: the load is of a page whose code is known.
const REFERENCE: u32 = u32::MAX >> 9;
/// The page is in its first rounds: no page has left after fewer, so codes occur with their shares.
const FAIR: u32 = 1 << 31;

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
    /// [`Pages::verified`] was last called but one is worth nothing.
    Lost,
    /// The thread was found on another core: so many loads were for nothing. The round is drawn anew.
    Elsewhere(usize),
    /// The level cannot be decoded here: what is prepared goes stale before it is used, time and again,
    /// or nothing can be decoded in this base.
    Cannot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Preparing { slot: usize, stage: prepare::Stage },
    Drawing,
    Timing,
    Taking { pass: usize },
    Closing { at: usize },
}

/// Decodes pages of one level.
pub struct Engine<R: Room> {
    tables: Tables<R>,
    layout: Layout,
    phase: Phase,
    batch: Batch,
    /// Open pages: so many entries of `standing`.
    open: usize,
    /// Whose turn it is among the decoding cores.
    turn: usize,
    /// The slot of the round that is drawn, and what it is for.
    round: usize,
    /// Which loads of the round are of each pass, and which of its known loads.
    passes: [Range<usize>; PASSES],
    known: [Range<usize>; PASSES],
    /// How much of `order` is in use.
    ordered: usize,
    /// What known pages said at the end of the round.
    heard: Option<bool>,
    /// The slot to give away next.
    next_slot: usize,
    /// The ruler is of the penalties in use.
    ruled: bool,
    /// Loads of known pages, and of unknown ones, that an offset must rest on.
    wanted: (f64, f64),
    loud: f64,
    /// Units in a nat of all scores.
    a_nat: Option<f32>,
    reference_next: usize,
    reference_reads: usize,
    /// Loads of a page's lines that are the same for all pages.
    alike: usize,
    /// For rounding readings.
    dice: u32,
    /// The last round had known pages.
    saw_known: bool,
    /// No page has left the window since it was filled: codes in it occur with their shares.
    whole: bool,
    /// Timed loads of pages, and of references.
    loads: [u64; 2],
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

    /// Does one step of the work.
    ///
    /// # Errors
    /// What the machine refuses.
    pub fn advance<L: Loads + ?Sized, P: Pages + ?Sized>(
        &mut self,
        loads: &mut L,
        pages: &mut P,
        until_ns: u64,
    ) -> Result<Step, L::Error> {
        let step = match self.phase {
            Phase::Drawing => self.begin_round(loads, pages),
            Phase::Preparing { slot, stage } => self.prepare(pages, slot, stage),
            Phase::Timing => return self.time(loads, pages, until_ns),
            Phase::Taking { pass } => {
                self.take(loads, pages, pass);
                Step::Went
            }
            Phase::Closing { at } => self.close(loads, pages, at),
        };
        let paused = step == Step::Went && loads.now_ns() >= until_ns;
        Ok(if paused { Step::Paused } else { step })
    }

    /// Makes what the next round needs, or draws it.
    fn begin_round<L: Loads + ?Sized, P: Pages + ?Sized>(
        &mut self,
        loads: &mut L,
        pages: &mut P,
    ) -> Step {
        if pages.lines().len() < PASSES || pages.decoding_cores() == 0 {
            return Step::Cannot;
        }
        self.turn %= pages.decoding_cores();
        for nth in 0..pages.decoding_cores().min(self.layout.slots) {
            if self.slot_of(pages.decoding_core(nth)).is_none() {
                return if self.begin_preparing(pages, nth) { Step::Went } else { Step::Cannot };
            }
        }
        if !self.refill(pages) {
            return Step::Went;
        }
        if self.open == 0 {
            return Step::Idle;
        }
        let Some(slot) = self.slot_of(pages.decoding_core(self.turn)) else { return Step::Cannot };
        self.wanted = self.wanted_by(pages);
        if !self.keep_fresh(slot, loads.now_ns()) {
            return Step::Cannot;
        }
        self.round = slot;
        let answers = self.tables.slots.get(slot).map_or(0, |slot| slot.head.with(&[]).answers());
        self.alike = weigh::rounds_alike(answers) * PASSES;
        self.draw(pages);
        loads.abandon();
        self.phase = Phase::Timing;
        Step::Went
    }

    /// The slot that is ready for a decoding core.
    fn slot_of(&self, core: (CoreId, u32)) -> Option<usize> {
        self.tables.slots.iter().position(|slot| slot.ready && slot.of == Some(core))
    }

    /// Measures an old offset anew; false when that was done too often in a row.
    fn keep_fresh(&mut self, slot: usize, now_ns: u64) -> bool {
        let wanted = self.wanted;
        let Some(of) = self.tables.slots.get_mut(slot) else { return false };
        if of.at_ns > 0 && now_ns.saturating_sub(of.at_ns) > OFFSET_NS {
            of.aged = if of.offset.is_believed(wanted) { 0 } else { of.aged + 1 };
            of.offset = Offset::NEW;
            self.aligns_of(slot).fill(0.0);
            // Better pages that are left over than none: their codes are a fair sample too, if
            // not quite.
            self.whole = true;
        }
        self.tables.slots.get(slot).is_some_and(|of| of.aged < AGED_MOST)
    }

    /// Loads of known pages, and of unknown ones, that an offset must rest on: of all decoding cores the most.
    fn wanted_by<P: Pages + ?Sized>(&self, pages: &P) -> (f64, f64) {
        let slot =
            |nth| Some(self.tables.slots.get(self.slot_of(pages.decoding_core(nth))?)?.spread);
        let spread = (0..pages.decoding_cores()).filter_map(slot).fold(f64::MAX, f64::min);
        let (spread, noise) = (spread.max(f64::MIN_POSITIVE), pages.noise_cycles());
        let known = (BELIEVED_PARTS * noise) * (BELIEVED_PARTS * noise) / spread;
        // The codes of unknown pages scatter as lines do.
        let unknown = BELIEVED_PARTS * BELIEVED_PARTS * (noise * noise + spread) / spread;
        (known.clamp(LEAST_BELIEVED, BELIEVED), unknown.clamp(LEAST_BELIEVED, BELIEVED))
    }

    /// Goes on with timing the round.
    fn time<L: Loads + ?Sized, P: Pages + ?Sized>(
        &mut self,
        loads: &mut L,
        pages: &mut P,
        until_ns: u64,
    ) -> Result<Step, L::Error> {
        let of = self.tables.slots.get(self.round).and_then(|slot| slot.of);
        // A batch belongs to one core and base: another core draws anew.
        if of != Some(pages.decoding_core(self.turn.min(pages.decoding_cores().saturating_sub(1))))
        {
            loads.abandon();
            self.phase = Phase::Drawing;
            return Ok(Step::Went);
        }
        let Tables { lines, raw, .. } = &mut self.tables;
        match self.batch.run(loads, lines, raw, until_ns)? {
            Progress::Done => {
                if let Some(slot) = self.tables.slots.get_mut(self.round) {
                    slot.at_ns = loads.now_ns().max(1);
                }
                self.phase = Phase::Taking { pass: 0 };
                Ok(Step::Went)
            }
            Progress::Paused => Ok(Step::Paused),
            Progress::Elsewhere => {
                loads.abandon();
                self.phase = Phase::Drawing;
                Ok(Step::Elsewhere(self.batch.len()))
            }
            Progress::Stale => {
                loads.abandon();
                self.phase = Phase::Drawing;
                Ok(Step::Cannot)
            }
        }
    }

    /// An open page by its place among them.
    fn page(&self, place: usize) -> &Open {
        &self.tables.open[self.entry_of(place)]
    }

    fn page_mut(&mut self, place: usize) -> &mut Open {
        let entry = self.entry_of(place);
        &mut self.tables.open[entry]
    }

    /// Where an open page's data are.
    fn entry_of(&self, place: usize) -> usize {
        index(self.tables.standing[place])
    }

    /// Offsets' cells of a slot.
    fn aligns_of(&mut self, slot: usize) -> &mut [f32] {
        let each = self.layout.aligns() / self.layout.slots;
        self.tables.aligns.get_mut(slot * each..(slot + 1) * each).unwrap_or(&mut [])
    }
}

/// The lines of a round among those that all pages have in common.
fn group_of(lines: &[u8], reads: usize) -> [u8; PASSES] {
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
fn suits<B: Patterns + ?Sized>(layout: &Layout, base: &B) -> bool {
    (base.classes(), base.period()) == (layout.classes, layout.period)
}

impl Slot {
    /// Whether its offset may be used.
    pub(crate) fn is_believed(&self, wanted: (f64, f64)) -> bool {
        self.ready && self.offset.is_believed(wanted)
    }
}
