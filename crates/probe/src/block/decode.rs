//! The memory pass: the code of every page, each decoded from a few of its lines.
//!
//! Pages stream through a window. In every round each undecided page has some of its probe lines
//! timed, so that lines timed together come from different pages; the first lines are the same for all
//! pages, the next ones tell the codes apart that are left (`choose`). A page leaves the window as
//! soon as its decision is safe, and another takes its place. Rounds go to the judges in turn:
//! the cores without which some classes of pages cannot be told apart (one, mostly). Reference
//! pages with known codes run along in every pass: they carry the common offset (clock rates
//! drift by more than a pattern is high) and they notice a vCPU that moved (`offset`).

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use isochrone_atlas::{Penalties, Rows, Scores, Shortlist};
use isochrone_stats::{derive_seed, rng, shuffle};
use isochrone_units::{CoreId, Cycles, Level, LineAddr};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::align::Ruler;
use super::base::{ReferenceBlock, References};
use super::books::{Book, Prepared};
use super::choose::{CHOSEN_LOUD, Chooser, Read};
use super::far::group_means;
use super::learn::{Learnt, class_means, spread};
use super::lines::LINES_TOGETHER;
use super::number::f32_of;
use super::offset::{Expected, Offset};
use crate::target::{Target, TargetError};

/// Pages in the window: enough that one round of them costs more than its preparation, few enough
/// that their translations stay in a second-level TLB of 2048 entries (a host may back a guest's
/// huge pages with small ones, so that each page needs its own).
pub(super) const WINDOW: usize = 1024;
/// Lines of each page timed in a round, at most, one pass over the window for each.
const READS: usize = LINES_TOGETHER;
const _: () = assert!(CHOSEN_LOUD == READS);
/// Reference pages timed in a round, as a part of the window, the same lines of them as of other pages:
/// what a line's place in its group does to its latency is then the same for both.
const REFERENCES: usize = 8;
/// As many at least, so that each pass has an offset.
const LEAST_REFERENCES: usize = 16;
/// References of a judge before its offset is believed, until when samples wait: an offset that is
/// two cycles off misplaces every page of a class in the same way. A load from DRAM scatters by
/// some 37 cycles, so that 2500 of them leave 0.75. On the synthetic Genoa with a drifting clock
/// 1000 give 0.944 of the codes right, 2500 and 4000 more than 0.95.
const BELIEVED: f64 = 2500.0;
/// Fewer will do where the noise is small beside what lines differ by: when the offset is known to this
/// part of that.
const BELIEVED_PARTS: f64 = 15.0;
/// Share of its weight that an offset keeps from one round to the next.
pub(super) const OFFSET_MEMORY: f64 = 0.98;
/// Bits of a code that one round of lines of all pages alike is read for.
const BITS_A_ROUND: f64 = 5.0;
/// Timed loads of each chosen line after which a page's best code is taken as it is.
const MAX_CYCLES: usize = 24;

/// A core that takes part in decoding, and the base that it wears.
#[derive(Clone, Debug)]
pub struct Judge {
    /// The core that asks.
    pub core: CoreId,
    /// `[class][canonical index]`, cycles.
    pub patterns: Vec<Vec<f64>>,
}

/// What the memory pass needs to know.
#[derive(Debug)]
pub struct DecodePlan<'a> {
    /// Who asks; rounds go to them in turn.
    pub judges: &'a [Judge],
    /// All who decode some of the pages: a class that one of them can tell is one.
    pub tellers: &'a [Judge],
    /// Which part of the references is timed: this one of so many, where others decode at the same time.
    pub part: (usize, usize),
    /// Bases that the other cores wear: they will use the codes.
    pub others: &'a [Vec<Vec<f64>>],
    /// Where lines are put.
    pub level: Level,
    /// The form.
    pub learnt: &'a Learnt,
    /// Probe lines, best first.
    pub lines: &'a [u8],
    /// Noise of one timed load, cycles.
    pub noise: f64,
    /// What residuals cost.
    pub penalties: &'a Penalties,
    /// Pages with known codes.
    pub references: &'a References,
    /// Seed of the orders.
    pub seed: u64,
}

/// Codes and what they cost.
#[derive(Clone, Debug, Default)]
pub struct Decoded {
    /// Code of each page (or block), in the order asked for; `None` if the pass was cut short.
    pub codes: Vec<Option<u16>>,
    /// Timed loads spent on pages, references not counted.
    pub samples: u64,
    /// Timed loads spent on references.
    pub reference_samples: u64,
    /// Distinct lines read, summed over pages.
    pub lines_read: u64,
    /// Seconds in the target, of all threads together.
    pub timing_s: f64,
    /// Seconds of all threads together.
    pub busy_s: f64,
    /// Seconds in all.
    pub total_s: f64,
    /// Times that the thread was found elsewhere; those rounds were done again.
    pub thread_moves: u32,
    /// Timed loads of those rounds.
    pub moved_samples: u64,
    /// Places decided since the last check but one that found the base as it was.
    pub unverified: Vec<usize>,
    /// Set when the references no longer looked like their base: what is unverified is wrong.
    pub base_lost: bool,
}

/// Decodes the pages (or 16 KiB blocks) that begin at `first_lines`, beginning with the one at `queue`; others
/// may take of them at the same time.
///
/// # Errors
/// Whatever the target refuses.
pub(super) fn decode(
    target: &mut dyn Target,
    first_lines: &[LineAddr],
    queue: &AtomicUsize,
    plan: &DecodePlan<'_>,
    keep_going: &dyn Fn() -> bool,
) -> Result<Decoded, TargetError> {
    let begin = target.seconds();
    let mut prepared = Prepared::new(plan)?;
    let rows: Vec<Rows<'_>> = prepared.books.iter().map(Book::rows).collect::<Result<_, _>>()?;
    let tools = Tools { rows: &rows, chooser: &mut prepared.chooser, ruler: &prepared.ruler };
    let mut window = Window::new(first_lines, queue, plan, tools);
    let mut turn = 0;
    while window.refill() && keep_going() {
        window.draw(turn);
        let before = target.seconds();
        let core = plan.judges[turn].core;
        match target.sample(core, plan.level, &window.batch, &mut window.raw) {
            Ok(()) => {}
            Err(TargetError::Moved { .. }) => {
                window.done.thread_moves += 1;
                window.done.moved_samples += window.batch.len() as u64;
                continue;
            }
            Err(error) => return Err(error),
        }
        window.done.timing_s += target.seconds() - before;
        let clock = target.clock();
        if window.take(turn, clock.overhead, clock.tick) {
            window.done.base_lost = true;
            break;
        }
        turn = (turn + 1) % plan.judges.len();
    }
    let mut done = window.done;
    done.unverified = window.before;
    done.unverified.extend(window.recent);
    done.total_s = target.seconds() - begin;
    done.busy_s = done.total_s;
    Ok(done)
}

/// What samples are weighed with.
struct Tools<'a> {
    /// One for each judge.
    rows: &'a [Rows<'a>],
    chooser: &'a mut Chooser,
    ruler: &'a Ruler,
}

/// One undecided page.
struct Open {
    place: usize,
    first: LineAddr,
    /// The codes that are left, once they are few.
    few: Shortlist,
    /// All codes, where too many are left for a list.
    many: Option<Box<Scores>>,
    reads: usize,
    /// Lines of the next round, `count` of them.
    next: [u8; READS],
    count: usize,
    read: Read,
    /// Samples that were not weighed yet: until its judge's offset is believed.
    waiting: Vec<Waiting>,
}

struct Window<'a> {
    plan: &'a DecodePlan<'a>,
    tools: Tools<'a>,
    /// Scores of a page whose first samples are weighed, and of one that has none.
    scratch: Box<Scores>,
    unread: Box<Scores>,
    first_lines: &'a [LineAddr],
    /// The next of them that nobody has opened.
    queue: &'a AtomicUsize,
    open: Vec<Open>,
    /// Loads of lines that are the same for all pages.
    alike: usize,
    /// References that an offset must rest on.
    believed: f64,
    /// What each slot of the batch is: an open page or a reference.
    slots: Vec<Slot>,
    /// Which of them are timed in each pass.
    passes: Vec<Range<usize>>,
    /// A random order, one a round: what stands where in its passes.
    order: Vec<u32>,
    batch: Vec<LineAddr>,
    raw: Vec<Cycles>,
    references: Vec<ReferenceBlock>,
    reference_next: usize,
    reference_reads: usize,
    /// One for each judge.
    offsets: Vec<Offset>,
    /// Places decided since the last check, and between that and the one before: a move in the
    /// last round before a check is only seen by the next.
    recent: Vec<usize>,
    before: Vec<usize>,
    /// For each judge and class the mean of the class's node.
    nodes: Vec<Vec<f64>>,
    rng: Xoshiro256PlusPlus,
    done: Decoded,
}

#[derive(Clone, Copy)]
enum Slot {
    /// An open page and which of its lines.
    Page(u32, u8),
    /// A reference line.
    Reference(Expected),
}

/// A sample of an open page that cannot be weighed yet.
struct Waiting {
    judge: usize,
    /// Pass of its round.
    read: usize,
    line: u8,
    cycles: f64,
}

/// The lines of a round among those that all pages have in common.
fn group_of(lines: &[u8], reads: usize) -> [u8; READS] {
    core::array::from_fn(|read| lines[(reads + read) % lines.len()])
}

impl<'a> Window<'a> {
    fn new(
        first_lines: &'a [LineAddr],
        queue: &'a AtomicUsize,
        plan: &'a DecodePlan<'a>,
        tools: Tools<'a>,
    ) -> Self {
        let (part, parts) = plan.part;
        let references = plan.references.blocks(plan.seed).into_iter().skip(part).step_by(parts);
        let answers = tools.rows.iter().map(Rows::answers).max().unwrap_or(1);
        let unread = Box::new(Scores::new(&tools.rows[0]));
        let rounds = ((answers as f64).log2() / BITS_A_ROUND).ceil().max(1.0);
        let rounds = [1, 2].into_iter().find(|round: &usize| *round as f64 >= rounds).unwrap_or(3);
        let least = plan.judges.iter().map(|j| spread(&j.patterns)).fold(f64::MAX, f64::min);
        let wanted = (BELIEVED_PARTS * plan.noise).powi(2) / least.max(f64::MIN_POSITIVE);
        Self {
            plan,
            tools,
            scratch: unread.clone(),
            unread,
            first_lines,
            queue,
            open: Vec::with_capacity(WINDOW),
            alike: rounds * READS,
            believed: wanted.clamp(64.0, BELIEVED),
            slots: Vec::new(),
            passes: Vec::new(),
            order: Vec::new(),
            batch: Vec::new(),
            raw: Vec::new(),
            references: references.collect(),
            reference_next: 0,
            reference_reads: 0,
            offsets: vec![Offset::default(); plan.judges.len()],
            recent: Vec::new(),
            before: Vec::new(),
            nodes: plan.judges.iter().map(|j| group_means(&class_means(&j.patterns))).collect(),
            rng: rng(derive_seed(plan.seed, part as u64)),
            done: Decoded { codes: vec![None; first_lines.len()], ..Decoded::default() },
        }
    }

    /// Opens pages until the window is full; false when nothing is left to do.
    fn refill(&mut self) -> bool {
        while self.open.len() < WINDOW {
            // Each number is given once, and nothing else is handed over by it.
            let place = self.queue.fetch_add(1, Ordering::Relaxed);
            let Some(first) = self.first_lines.get(place).copied() else { break };
            self.open.push(Open {
                place,
                first,
                few: Shortlist::EMPTY,
                many: None,
                reads: 0,
                next: group_of(self.plan.lines, 0),
                count: READS,
                read: Read::default(),
                waiting: Vec::with_capacity(2 * READS),
            });
        }
        !self.open.is_empty()
    }

    /// The next lines of each open page, a pass for each, and references among them. In a pass
    /// every page has one line, pages that stand side by side not the same of their group; lines of one
    /// page are never neighbours (see `lines`).
    fn draw(&mut self, turn: usize) {
        let patterns = &self.plan.judges[turn].patterns;
        let lines = group_of(self.plan.lines, self.reference_reads);
        self.passes.clear();
        self.slots.clear();
        self.batch.clear();
        let all = self.open.len() + (self.open.len() / REFERENCES).max(LEAST_REFERENCES);
        if self.order.len() != all {
            self.order = (0..u32::try_from(all).unwrap_or(u32::MAX)).collect();
        }
        shuffle(&mut self.order, &mut self.rng);
        let mut most = 0;
        for read in 0..READS {
            let begin = self.slots.len();
            let pages = self.open.iter().filter(|page| read < page.count).count();
            let references = (pages / REFERENCES).max(LEAST_REFERENCES);
            let references = references.min(self.references.len());
            most = most.max(references);
            // Pages first, references behind them; another place to begin at in each pass.
            let (late, early) = self.order.split_at(read * all / READS);
            for place in early.iter().chain(late).map(|place| *place as usize) {
                if let Some(page) = self.open.get(place) {
                    if read < page.count {
                        let line = page.next[(read + page.place) % page.count];
                        let index = u32::try_from(place).unwrap_or(u32::MAX);
                        self.slots.push(Slot::Page(index, line));
                        self.batch.push(LineAddr(page.first.0 + u64::from(line)));
                    }
                    continue;
                }
                let nth = place - self.open.len();
                if nth < references {
                    let at = (self.reference_next + nth) % self.references.len();
                    let line = lines[(read + at) % READS];
                    let (address, class, index) = self.references[at].line(line);
                    let class = usize::from(class);
                    let cycles = patterns[class][usize::from(index)];
                    let expected = Expected { cycles, node: self.nodes[turn][class] };
                    self.slots.push(Slot::Reference(expected));
                    self.batch.push(address);
                }
            }
            self.passes.push(begin..self.slots.len());
        }
        self.reference_reads += READS;
        self.reference_next = (self.reference_next + most) % self.references.len().max(1);
        self.raw.resize(self.batch.len(), Cycles(0));
    }

    /// Uses one round of samples; true when the base is no longer the one assumed.
    fn take(&mut self, turn: usize, overhead: f64, tick: u32) -> bool {
        let values: Vec<f64> = self.raw.iter().map(|c| f64::from(c.0) - overhead).collect();
        let offset = &mut self.offsets[turn];
        let mut own = 0;
        for (read, pass) in self.passes.iter().enumerate() {
            let mut references = Vec::with_capacity(WINDOW / REFERENCES);
            for (slot, value) in self.slots[pass.clone()].iter().zip(&values[pass.clone()]) {
                match slot {
                    Slot::Reference(expected) => references.push((*expected, *value)),
                    Slot::Page(index, line) => {
                        let (judge, line, cycles) = (turn, *line, *value);
                        let page = &mut self.open[*index as usize];
                        page.waiting.push(Waiting { judge, read, line, cycles });
                        page.reads += 1;
                        page.read.insert(line);
                        own += 1;
                    }
                }
            }
            offset.add(read, &references, tick, self.tools.ruler);
        }
        let verdict = offset.judge(self.plan.noise);
        self.done.samples += own;
        self.done.reference_samples += self.slots.len() as u64 - own;
        if self.offsets.iter().all(|offset| offset.weight >= self.believed) {
            self.close(turn);
        } else {
            for page in &mut self.open {
                (page.next, page.count) = (group_of(self.plan.lines, page.reads), READS);
            }
        }
        if verdict == Some(false) {
            self.before = std::mem::take(&mut self.recent);
        }
        verdict == Some(true)
    }

    /// Weighs what waits. Pages whose decision is safe leave the window; the others are told what to read
    /// next.
    fn close(&mut self, turn: usize) {
        let lines = self.plan.lines;
        let next_turn = (turn + 1) % self.plan.judges.len();
        let mut i = 0;
        while i < self.open.len() {
            let page = &mut self.open[i];
            if page.reads < self.alike {
                (page.next, page.count) = (group_of(lines, page.reads), READS);
                i += 1;
                continue;
            }
            self.weigh(i);
            let (page, rows) = (&mut self.open[i], &self.tools.rows[turn]);
            let verdict =
                page.many.as_ref().map_or_else(|| page.few.verdict(rows), |all| all.verdict(rows));
            let done = self.tools.chooser.loss(&verdict) < self.tools.chooser.safe();
            if done || page.reads >= MAX_CYCLES * lines.len() {
                let page = self.open.swap_remove(i);
                self.done.codes[page.place] = Some(verdict.code.0);
                self.done.lines_read += page.read.count() as u64;
                self.recent.push(page.place);
                continue;
            }
            let chosen = self.tools.chooser.next(next_turn, &verdict, page.read, lines);
            (page.next, page.count) = (chosen, self.tools.chooser.reads());
            i += 1;
        }
    }

    /// Adds what waits to the codes of a page that are left.
    fn weigh(&mut self, page: usize) {
        let page = &mut self.open[page];
        let (rows, offsets) = (self.tools.rows, &self.offsets);
        let samples = page.waiting.drain(..).map(|sample| {
            let offset = offsets[sample.judge].cycles(sample.read);
            (&rows[sample.judge], sample.line, f32_of(sample.cycles - offset))
        });
        if !page.few.is_empty() {
            samples.for_each(|(rows, line, cycles)| page.few.add(rows, line, cycles));
            return;
        }
        let all = page.many.as_mut().unwrap_or_else(|| {
            self.scratch.clone_from(&self.unread);
            &mut self.scratch
        });
        for (nth, (rows, line, cycles)) in samples.enumerate() {
            all.add(rows, line, cycles);
            if nth % READS == READS - 1 {
                all.prune();
            }
        }
        all.prune();
        match all.shortlist() {
            Some(few) => (page.few, page.many) = (few, None),
            None if page.many.is_none() => page.many = Some(self.scratch.clone()),
            None => {}
        }
    }
}
