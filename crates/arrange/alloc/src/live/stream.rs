//! Decoding of one level: the one decoder (`isochrone_decode`), driven over the pages of the arena.
//!
//! It gives the engine pages, the current bases of cores, pages whose codes are known and seeded chance, and
//! keeps its verdicts until somebody takes them. The tables are the kernel's, at most [`BUDGET`] bytes.

use super::dice::Dice;
use super::level::LevelModel;
use super::notes::{Notes, Queue, block_of};
use super::number::page;
use super::timing::{Timed, Timing};
use isochrone_atlas::{Code, Codebook, PatternTable, Penalties};
pub(super) use isochrone_decode::Step;
use isochrone_decode::{
    Decided, Engine, Form, Layout, Pages, Reference, Room, Slot, Tables, Trust, Window,
};
use isochrone_os::OsError;
use isochrone_os::table::{Stack, Table};
use isochrone_units::{CoreId, Level, LineAddr};

/// Pages in the window: one step of the arena.
const WINDOW: usize = 512;
/// Bytes that decoding one level takes, at most.
const BUDGET: usize = 1 << 20;
/// Bases of other cores that codes are weighed by too.
pub(super) const OTHERS: usize = 4;
/// What a decision may lose above which a page that was read often enough stays unknown.
const HOPELESS_LOSS: f32 = 0.25;

/// Who decodes, in which base.
#[derive(Clone, Copy, Debug)]
pub(super) struct DecodingCore {
    pub(super) core: CoreId,
    pub(super) base: u16,
    /// Current bases of other cores, `count` of them.
    pub(super) others: ([u16; OTHERS], usize),
}

/// A page on its way out of the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Decoded {
    /// First page of the block.
    pub(super) first: u32,
    /// Its code; unknown where it could not be told.
    pub(super) code: Code,
}

/// Tables of the kernel's.
#[derive(Debug)]
struct Kernel;

impl Room for Kernel {
    type Of<T> = Table<T>;
}

/// The decoder of one level.
#[derive(Debug)]
pub(super) struct Stream {
    engine: Engine<Kernel>,
    queues: Queues,
    /// The codebook that was asked for last, and of which base.
    book: Table<Option<(u16, Codebook)>>,
}

/// What goes in and what comes out.
#[derive(Debug)]
struct Queues {
    /// Next page that was never looked at.
    next: usize,
    again: Queue,
    out: Stack<Decoded>,
    dice: Dice,
}

impl Stream {
    pub(super) fn new(model: &LevelModel, pages_max: usize, seed: u64) -> Result<Self, OsError> {
        let layout = layout(WINDOW, model.form());
        let engine = Engine::new(layout, tables(&layout)?).ok_or(OsError {
            what: "cannot decode a level",
            errno: 22,
            advice: "measure a new atlas",
        })?;
        let queues = Queues {
            next: 0,
            // A page may wait twice, if it was doubted and its base lost.
            again: Queue::new(2 * pages_max)?,
            out: Stack::new(layout.window)?,
            dice: Dice::new(seed),
        };
        Ok(Self { engine, queues, book: Table::made(1, |_| None)? })
    }

    /// Queues a block to be decoded (once more).
    pub(super) fn decode_again(&mut self, first: u32) {
        self.queues.again.push(first);
    }

    /// Whether there is anything to decode.
    pub(super) fn has_work(&self, notes: &Notes) -> bool {
        self.engine.open() > 0 || self.queues.again.len() > 0 || self.queues.next < notes.pages()
    }

    /// Forgets all samples of the open pages: they were of another base, or codes have other
    /// answers now.
    pub(super) fn start_over(&mut self) {
        let again = &mut self.queues.again;
        self.engine.start_over(|first| {
            again.push(first);
        });
        self.book.iter_mut().for_each(|book| *book = None);
    }

    /// Timed loads so far.
    pub(super) const fn loads(&self) -> u64 {
        let [pages, references] = self.engine.loads();
        pages + references
    }

    /// A page that was decided, and not taken yet.
    pub(super) fn pop(&mut self) -> Option<Decoded> {
        let out = &mut self.queues.out;
        let last = out.last().copied()?;
        out.truncate(out.len() - 1);
        Some(last)
    }

    /// Does one step of the work. Pages that were decided wait for [`Self::pop`].
    pub(super) fn advance(
        &mut self,
        timing: &mut impl Timing,
        model: &LevelModel,
        notes: &Notes,
        by: DecodingCore,
        until_ns: u64,
    ) -> Result<Step, OsError> {
        let Self { engine, queues, book } = self;
        let mut work = Work { model, notes, by, queues, book };
        let mut loads = Timed(timing);
        engine.advance(&mut loads, &mut work, until_ns)
    }
}

/// The layout of a level's engine: with all that is beside its tables it takes no more than the budget.
fn layout(window: usize, form: Form) -> Layout {
    Layout::within(BUDGET - besides(window), window, form)
}

/// Bytes of what decoding a level takes beside the engine's tables: its codebook, the verdicts that wait, itself.
/// (What is noted of pages grows with the arena, and is not of decoding.)
const fn besides(window: usize) -> usize {
    size_of::<Option<(u16, Codebook)>>() + window * size_of::<Decoded>() + size_of::<Stream>()
}

/// The tables; most of their memory is taken when it is used.
fn tables(layout: &Layout) -> Result<Tables<Kernel>, OsError> {
    Ok(Tables {
        cells: Table::zeroed(layout.cells())?,
        slots: Table::made(layout.slots, |_| Slot::EMPTY)?,
        aligns: Table::zeroed(layout.aligns())?,
        ruler: Table::zeroed(layout.ruler())?,
        losses: Table::zeroed(layout.losses())?,
        pair_lines: Table::zeroed(layout.pair_lines())?,
        scratch: Table::zeroed(layout.scratch())?,
        open: Table::made(layout.window, |_| Default::default())?,
        standing: Table::zeroed(layout.window)?,
        scores: Table::zeroed(layout.scores())?,
        list_codes: Table::zeroed(layout.window)?,
        list_behind: Table::zeroed(layout.window)?,
        waits: Table::zeroed(layout.waits())?,
        known: Table::made(layout.known(), |_| Default::default())?,
        lines: Table::zeroed(layout.loads())?,
        raw: Table::zeroed(layout.loads())?,
        whats: Table::zeroed(layout.loads())?,
        order: Table::zeroed(layout.pass())?,
        room: Table::zeroed(layout.pass())?,
    })
}

/// What one step works on.
struct Work<'a> {
    model: &'a LevelModel,
    notes: &'a Notes,
    by: DecodingCore,
    queues: &'a mut Queues,
    book: &'a mut Table<Option<(u16, Codebook)>>,
}

impl Pages for Work<'_> {
    type Base = PatternTable;

    fn level(&self) -> Level {
        self.model.level
    }

    fn noise_cycles(&self) -> f64 {
        f64::from(self.model.noise_cycles)
    }

    fn penalties(&self) -> &Penalties {
        self.model.penalties()
    }

    fn lines(&self) -> &[u8] {
        self.model.lines()
    }

    // Whichever core runs this decodes.
    fn decoding_cores(&self) -> usize {
        1
    }

    fn decoding_core(&self, _: usize) -> (CoreId, u32) {
        (self.by.core, u32::from(self.by.base))
    }

    fn base(&self, _: usize) -> &PatternTable {
        self.model.base(self.by.base)
    }

    fn book(&mut self, _: usize) -> Option<&Codebook> {
        let base = self.by.base;
        let slot = self.book.first_mut()?;
        if slot.as_ref().is_none_or(|(of, _)| *of != base) {
            *slot = self.model.book(self.model.base(base)).map(|book| (base, book));
        }
        slot.as_ref().map(|(_, book)| book)
    }

    fn others(&self) -> usize {
        self.by.others.1
    }

    fn other(&self, nth: usize) -> &PatternTable {
        self.model.base(self.by.others.0.get(nth).copied().unwrap_or(self.by.base))
    }

    fn next(&mut self) -> Option<(u32, LineAddr)> {
        let block = self.model.block_pages();
        let at = |first: u32| Some((first, LineAddr(u64::from(first) * 64)));
        while let Some(first) = self.queues.again.pop() {
            // Whoever is away is queued when it comes again.
            if !self.notes.is_away(first) {
                return at(first);
            }
        }
        while self.queues.next + block <= self.notes.pages() {
            let first = block_of(page(self.queues.next), block);
            self.queues.next += block;
            // A page whose frame the atlas knew needs no decoding.
            if !self.notes.is_known(self.model.level, first) && !self.notes.is_away(first) {
                return at(first);
            }
        }
        // A block that the arena ends in the middle of is never decoded.
        self.queues.next = self.queues.next.max(self.notes.pages());
        None
    }

    fn references(&self) -> usize {
        self.notes.pages()
    }

    fn trust(&self) -> Trust {
        Trust::Decoded { tailed: self.model.level == Level::Dram }
    }

    // Only a sweep comes before one pass and not before the others.
    fn passes_apart(&self) -> bool {
        self.model.level == Level::Llc
    }

    // Any known page is as good as another, so they are drawn.
    fn reference(&mut self, _: usize) -> Option<Reference> {
        let (level, notes) = (self.model.level, self.notes);
        let of = self.queues.dice.below(page(notes.pages()));
        let first = block_of(of, self.model.block_pages());
        if !notes.is_known(level, first) || notes.is_doubted(level, first) {
            return None;
        }
        let (code, lines) = (notes.code(level, first), self.model.period);
        Some(Reference {
            first: LineAddr(u64::from(first) * 64),
            class: u16::from(code.class(lines)),
            key: u16::from(code.key(lines)),
        })
    }

    fn expected(&self, _: usize, line: u8, window: Window) -> Option<f64> {
        let table = self.model.base(self.by.base);
        let cycles = self.model.expected(table, line, window.into());
        cycles.is_finite().then(|| f64::from(cycles))
    }

    fn shuffle(&mut self, order: &mut [u32]) {
        self.queues.dice.shuffle(order);
    }

    fn decided(&mut self, verdict: Decided) {
        let hopeless = verdict.loss > HOPELESS_LOSS;
        let code = if hopeless { Code::UNKNOWN } else { verdict.code };
        self.queues.out.push(Decoded { first: verdict.tag, code });
    }

    // What was decided is confirmed by a look of its own.
    fn verified(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_decoded_in_a_megabyte_whatever_its_form() {
        for (period, most) in [(64, 16), (256, 4)] {
            for classes in 1..=most {
                for arrangements in [1, 8] {
                    let form = Form { classes, period, arrangements };
                    let bytes = layout(WINDOW, form).bytes() + besides(WINDOW);
                    assert!(bytes <= BUDGET, "{form:?}: {bytes}");
                }
            }
        }
    }
}
