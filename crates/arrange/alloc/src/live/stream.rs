//! Decoding of one level: pages go through a window, some lines of each are timed in every round,
//! and a page leaves as soon as its code is safe.
//!
//! Loads that are timed together come from different pages. What they have in common (clock rate,
//! open rows) is taken off by pages whose codes are known, or, while there are none, by all pages
//! of a window together, since their codes occur with known shares. Every step can be put aside.

use super::align::{Alignment, PASSES};
use super::batch::{Batch, Progress};
use super::books::Books;
use super::classifier::Decoding;
use super::compare::piece;
use super::dice::Dice;
use super::kept::{ENOUGH, keep_window};
use super::level::LevelModel;
use super::notes::{Notes, Queue, block_of};
use super::number::{cycles, index, page};
use super::timing::Timing;
use super::watch::Watch;
use isochrone_atlas::{Code, Decoder};
use isochrone_os::OsError;
use isochrone_os::table::{Stack, Table};
use isochrone_units::{CoreId, LineAddr};

/// Pages in the window: one step of the arena.
pub(super) const WINDOW: usize = 512;
/// Known pages of a pass over the window at most.
const REFERENCES: usize = 256;
/// Rounds whose samples can wait for the offset.
const WAITING: usize = 4;
/// Fewer open pages than that say too little of what all have in common.
const ENOUGH_PAGES: usize = 64;
/// Age at which an offset is measured anew.
const OFFSET_NS: u64 = 1_000_000_000;
/// Probability of error at which a code is safe.
const SAFE_ERROR: f32 = 0.02;
/// Probability of error above which a page that was read often enough stays unknown.
const HOPELESS_ERROR: f32 = 0.25;
/// Timed loads of each chosen line after which a page's best code is taken as it is.
const MAX_CYCLES: usize = 24;
/// Samples that are put aside between two looks at the clock.
const KEPT_TOGETHER: usize = 1024;
/// Pages that leave the window in one step, at most.
const CLOSED_TOGETHER: usize = 64;
/// Pages that are opened between two looks at the clock.
const PIECE: usize = 16;
/// Bases of other cores that codes are judged by too.
#[cfg(test)]
pub(super) const OTHERS: usize = 4;

/// Who decodes, in which base.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judge {
    pub(super) core: CoreId,
    pub(super) base: u16,
    /// Bases that other cores wear, `count` of them.
    #[cfg(test)]
    pub(super) others: ([u16; OTHERS], usize),
}

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Something was done, and there may be time for more.
    Went,
    /// The time was up.
    Paused,
    /// There is nothing to decode.
    Idle,
    /// Known pages do not look as the base says: the core wears another one.
    Strange,
    /// The level cannot be decoded here.
    Cannot,
}

/// A page on its way out of the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Decoded {
    /// First page of the block.
    pub(super) first: u32,
    /// Its code; unknown where it could not be told.
    pub(super) code: Code,
}

#[derive(Clone, Copy, Debug)]
struct What {
    /// Page of the window, or [`REFERENCE`].
    slot: u16,
    /// Line of the block, or of the reference page.
    line: u8,
    /// Pass of the round.
    pass: u8,
    /// The block's first page, or the reference page.
    first: u32,
}

/// In the place of a slot: the load is of a page whose code is known.
const REFERENCE: u16 = u16::MAX;

#[derive(Clone, Copy, Debug)]
struct Open {
    first: u32,
    reads: u32,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    slot: u16,
    line: u8,
    pass: u8,
    cycles: f32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Drawing,
    Timing,
    Weighing { at: usize },
    Closing { at: usize },
}

/// The window of one level.
#[derive(Debug)]
pub(super) struct Stream {
    batch: Batch,
    whats: Stack<What>,
    values: Table<f32>,
    room: Table<f32>,
    /// Pages of the window, and a decoder for each.
    open: Stack<Open>,
    decoders: Stack<Decoder>,
    waiting: Stack<Waiting>,
    /// Whose samples wait.
    waits_for: CoreId,
    /// No page has left the window since it was filled: codes in it occur with their shares.
    whole: bool,
    /// Next page that was never looked at.
    next: usize,
    again: Queue,
    /// Loads of each reference page so far, as if it were one page.
    reference_reads: usize,
    phase: Phase,
    books: Books,
    watch: Watch,
    dice: Dice,
    /// Timed loads so far.
    loads: u64,
    out: Stack<Decoded>,
    /// What wrong verdicts may cost, as was said: summed, and of how many pages.
    #[cfg(test)]
    stated: (f64, u32),
}

impl Stream {
    pub(super) fn new(
        model: &LevelModel,
        pages_max: usize,
        seed: u64,
        Decoding { window, .. }: Decoding,
    ) -> Result<Self, OsError> {
        // In each pass one line of each page. The lines of a page in a round are a group of the atlas's probe
        // lines, which may be timed together.
        let loads = PASSES * (window + REFERENCES);
        Ok(Self {
            batch: Batch::new(loads, model.level)?,
            whats: Stack::new(loads)?,
            values: Table::zeroed(loads)?,
            room: Table::zeroed(ENOUGH)?,
            open: Stack::new(window)?,
            decoders: Stack::new(window)?,
            waiting: Stack::new(WAITING * PASSES * window)?,
            waits_for: CoreId(u16::MAX),
            whole: true,
            next: 0,
            // A page may wait twice, if it was doubted and its base lost.
            again: Queue::new(2 * pages_max)?,
            reference_reads: 0,
            phase: Phase::Drawing,
            books: Books::new()?,
            watch: Watch::NEW,
            dice: Dice::new(seed),
            loads: 0,
            out: Stack::new(CLOSED_TOGETHER)?,
            #[cfg(test)]
            stated: (0.0, 0),
        })
    }

    /// Queues a block to be decoded (once more).
    pub(super) fn decode_again(&mut self, first: u32) {
        self.again.push(first);
    }

    /// Whether there is anything to decode.
    pub(super) fn has_work(&self, notes: &Notes) -> bool {
        !self.open.is_empty() || self.again.len() > 0 || self.next < notes.pages()
    }

    /// Forgets all samples of the open pages: they were of another base, or codes have other
    /// answers now.
    pub(super) fn start_over(&mut self) {
        for open in &*self.open {
            self.again.push(open.first);
        }
        self.open.truncate(0);
        self.decoders.truncate(0);
        self.waiting.truncate(0);
        self.books.clear();
        self.phase = Phase::Drawing;
    }

    /// Timed loads so far.
    pub(super) const fn loads(&self) -> u64 {
        self.loads
    }

    /// A page that was decided, and not taken yet.
    pub(super) fn pop(&mut self) -> Option<Decoded> {
        let last = self.out.last().copied()?;
        self.out.truncate(self.out.len() - 1);
        Some(last)
    }

    /// Mean of what verdicts were said to lose.
    #[cfg(test)]
    pub(super) fn stated(&self) -> f64 {
        self.stated.0 / f64::from(self.stated.1.max(1))
    }

    /// Does one step of the work. Pages that were decided wait for [`Self::pop`].
    pub(super) fn advance(
        &mut self,
        timing: &mut impl Timing,
        (model, notes): (&LevelModel, &Notes),
        judge: Judge,
        until_ns: u64,
    ) -> Result<Step, OsError> {
        match self.phase {
            Phase::Drawing => {
                if !self.refill(model, notes, judge) {
                    return Ok(step_at(timing, until_ns));
                }
                if self.open.is_empty() {
                    return Ok(Step::Idle);
                }
                self.draw(model, notes, judge, timing.now_ns());
                timing.abandon();
                self.phase = Phase::Timing;
            }
            Phase::Timing => {
                if self.batch.core() != judge.core {
                    timing.abandon();
                    self.batch.restart(judge.core);
                }
                match self.batch.run(timing, until_ns)? {
                    Progress::Done => {
                        self.take(model, notes, judge, timing);
                        self.phase = Phase::Weighing { at: 0 };
                        if self.watch.is_strange(model.noise_cycles) {
                            self.watch = Watch::NEW;
                            return Ok(Step::Strange);
                        }
                    }
                    Progress::Paused | Progress::Elsewhere => return Ok(Step::Paused),
                    Progress::Stale => {
                        timing.abandon();
                        self.batch.restart(judge.core);
                        return Ok(Step::Cannot);
                    }
                }
            }
            Phase::Weighing { at } => self.weigh(model, judge, at),
            Phase::Closing { at } => self.close(model, judge, at),
        }
        Ok(step_at(timing, until_ns))
    }

    /// Opens some pages; true when the window is full, or there are no more.
    fn refill(&mut self, model: &LevelModel, notes: &Notes, judge: Judge) -> bool {
        self.whole = self.whole || self.open.is_empty();
        let block = model.block_pages();
        let Some(book) = self.books.get(judge.core, judge.base, model) else { return true };
        for _ in 0..PIECE {
            if self.open.is_full() {
                return true;
            }
            let first = if let Some(first) = self.again.pop() {
                first
            } else if self.next + block <= notes.pages() {
                let first = block_of(page(self.next), block);
                self.next += block;
                // A page whose frame the atlas knew needs no decoding.
                if notes.is_known(model.level, first) {
                    continue;
                }
                first
            } else {
                // A block that the arena ends in the middle of is never decoded.
                self.next = self.next.max(notes.pages());
                return true;
            };
            self.open.push(Open { first, reads: 0 });
            self.decoders.push(Decoder::new(&book.codes));
        }
        false
    }

    /// The lines of the next round: of each open page, and of pages whose codes are known, the
    /// same lines of those as of the others.
    fn draw(&mut self, model: &LevelModel, notes: &Notes, judge: Judge, now_ns: u64) {
        let Some(book) = self.books.get(judge.core, judge.base, model) else { return };
        if now_ns.saturating_sub(book.align.at_ns) > OFFSET_NS {
            book.align = Alignment::new(model.level, model.offset_loads(model.base(judge.base)));
            // Better pages that are left over than none: their codes are a fair sample too, if
            // not quite.
            self.whole = true;
        }
        let share = if book.align.is_believed() { 8 } else { 2 };
        let references = (self.open.len() / share).clamp(16, REFERENCES);
        self.batch.begin(judge.core, model.level);
        self.whats.truncate(0);
        let (lines, passes) = (model.lines(), PASSES.min(model.lines().len()));
        let line_of = |reads: usize, turn: usize| lines[(reads + turn % passes) % lines.len()];
        for (pass, turn) in (0_u8..).zip(0..passes) {
            let begin = self.whats.len();
            for (slot, open) in (0_u16..).zip(&*self.open) {
                let line = line_of(index(open.reads), turn + usize::from(slot));
                self.whats.push(What { slot, line, pass, first: open.first });
            }
            for place in 0..references {
                let first = self.dice.below(page(notes.pages()));
                if notes.is_known(model.level, first) && !notes.is_doubted(model.level, first) {
                    let line = line_of(self.reference_reads, turn + place) % 64;
                    self.whats.push(What { slot: REFERENCE, line, pass, first });
                }
            }
            self.dice.shuffle(&mut self.whats[begin..]);
        }
        self.reference_reads += passes;
        for what in &*self.whats {
            self.batch.push(LineAddr(u64::from(what.first) * 64 + u64::from(what.line)));
        }
    }

    /// Uses a round: finds out what its loads have in common.
    fn take(&mut self, model: &LevelModel, notes: &Notes, judge: Judge, timing: &impl Timing) {
        let count = self.batch.len();
        let overhead = timing.overhead_cycles();
        for (value, sample) in self.values.iter_mut().zip(self.batch.samples()) {
            *value = cycles(sample.0) - overhead;
        }
        self.loads += count as u64;
        let (low, high) = keep_window(&self.values[..count], &mut self.room, timing.tick_cycles());
        let table = model.base(judge.base);
        // Pages of unknown code tell what all loads have in common only while all are there, and
        // only if there are many.
        let whole = self.whole && (self.open.len() >= ENOUGH_PAGES || notes.pages() < ENOUGH_PAGES);
        let Some(book) = self.books.get(judge.core, judge.base, model) else { return };
        let unsure = !book.align.is_believed();
        let mut expected = [f32::NAN; 256];
        let mut sums = [(0.0_f32, 0.0_f32); PASSES];
        self.watch.begin(judge.core, judge.base);
        for (what, value) in self.whats.iter().zip(&self.values[..count]) {
            let predicted = if what.slot == REFERENCE {
                let code = notes.code(model.level, what.first);
                let predicted = table.latency_cycles(code, what.line);
                if predicted.is_finite() {
                    book.align.add_known(usize::from(what.pass), value - predicted);
                    if (low..=high).contains(value) {
                        self.watch.add(usize::from(what.pass), predicted, *value);
                    }
                }
                predicted
            } else if whole && unsure {
                let slot = &mut expected[usize::from(what.line)];
                if slot.is_nan() {
                    *slot = model.expected(table, what.line, (low, high));
                }
                *slot
            } else {
                continue;
            };
            if predicted.is_finite() && (low..=high).contains(value) {
                let sum = &mut sums[usize::from(what.pass)];
                *sum = (sum.0 + value - predicted, sum.1 + 1.0);
            }
        }
        for (pass, (sum, weight)) in sums.into_iter().enumerate() {
            book.align.add_mean(pass, sum / weight, weight);
        }
        // No page is known, and some have left: better a window that is not whole than none.
        self.whole = self.whole || sums[0].1 == 0.0;
        book.align.end_round(model.penalties(), timing.now_ns());
        self.watch.end_round();
    }

    /// Gives samples to the decoders of their pages, a piece at a time; keeps them while what
    /// they have in common is not known well enough.
    fn weigh(&mut self, model: &LevelModel, judge: Judge, at: usize) {
        let count = self.batch.len();
        if self.waits_for != judge.core {
            self.waiting.truncate(0);
        }
        let Some(book) = self.books.get(judge.core, judge.base, model) else { return };
        if !book.align.is_believed() {
            let end = count.min(at + KEPT_TOGETHER);
            self.waits_for = judge.core;
            for (what, value) in self.whats[at..end].iter().zip(&self.values[at..end]) {
                let What { slot, line, pass, .. } = *what;
                let waits = Waiting { slot, line, pass, cycles: *value };
                if slot != REFERENCE && self.waiting.push(waits) {
                    self.open[usize::from(slot)].reads += 1;
                }
            }
            self.phase = if end < count { Phase::Weighing { at: end } } else { Phase::Drawing };
            return;
        }
        let piece = piece(&book.codes);
        if !self.waiting.is_empty() {
            for _ in 0..piece {
                let Some(Waiting { slot, line, pass, cycles }) = self.waiting.last().copied()
                else {
                    break;
                };
                let cycles = cycles - book.align.cycles(usize::from(pass));
                self.decoders[usize::from(slot)].add(&book.codes, line, cycles);
                self.waiting.truncate(self.waiting.len() - 1);
            }
            return;
        }
        let end = count.min(at + piece);
        for (what, value) in self.whats[at..end].iter().zip(&self.values[at..end]) {
            if what.slot != REFERENCE {
                let slot = usize::from(what.slot);
                let cycles = value - book.align.cycles(usize::from(what.pass));
                self.decoders[slot].add(&book.codes, what.line, cycles);
                self.open[slot].reads += 1;
            }
        }
        let done = end == count;
        self.phase = if done { Phase::Closing { at: 0 } } else { Phase::Weighing { at: end } };
    }

    /// Pages whose code is safe leave the window, a piece of it at a time.
    fn close(&mut self, model: &LevelModel, judge: Judge, at: usize) {
        let limit = MAX_CYCLES * model.lines().len();
        let Some(book) = self.books.get(judge.core, judge.base, model) else { return };
        // From the end, so that a page which takes the place of one that left was seen already.
        let todo = self.open.len().saturating_sub(at);
        let least = todo.saturating_sub(piece(&book.codes).min(CLOSED_TOGETHER));
        let mut left = 0;
        for place in (least..todo).rev() {
            self.decoders[place].prune(&book.codes);
            let decision = self.decoders[place].best(&book.codes);
            let tired = index(self.open[place].reads) >= limit;
            if !decision.is_safe(SAFE_ERROR) && !tired {
                continue;
            }
            let hopeless = decision.error > HOPELESS_ERROR;
            let code = if hopeless { Code::UNKNOWN } else { decision.code };
            #[cfg(test)]
            {
                self.stated = (self.stated.0 + f64::from(decision.error), self.stated.1 + 1);
            }
            self.out.push(Decoded { first: self.open[place].first, code });
            let last = self.open.len() - 1;
            left += 1;
            self.open.swap(place, last);
            self.open.truncate(last);
            self.decoders.swap(place, last);
            self.decoders.truncate(last);
        }
        self.whole = self.whole && left == 0;
        // `at` counts pages from the end that stay and were seen.
        let seen = at + (todo - least) - left;
        self.phase =
            if seen < self.open.len() { Phase::Closing { at: seen } } else { Phase::Drawing };
    }
}

/// Whether there is time for another step.
fn step_at(timing: &impl Timing, until_ns: u64) -> Step {
    if timing.now_ns() >= until_ns { Step::Paused } else { Step::Went }
}
