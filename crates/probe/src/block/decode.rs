//! The memory pass: the code of every page, each decoded from a few of its lines.
//!
//! Pages stream through a window. In every round each undecided page has some of its probe lines
//! timed, so that lines timed together come from different pages; a page leaves the window as
//! soon as its decision is safe, and another takes its place. Rounds go to the judges in turn:
//! the cores without which some classes of pages cannot be told apart (one, mostly). Reference
//! pages with known codes run along in every pass: they carry the common offset (clock rates
//! drift by more than a pattern is high) and they notice a vCPU that moved.

use isochrone_atlas::{Codebook, Decoder, PatternTable, Penalties, Period};
use isochrone_stats::{rng, shuffle, variance};
use isochrone_units::{CoreId, Cycles, Level, LineAddr};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::align::Alignment;
use super::base::{ReferenceBlock, References};
use super::learn::{Learnt, join_code};
use super::lines::LINES_TOGETHER;
use super::number::f32_of;
use super::rounds::keep_window;
use crate::target::{Target, TargetError};

/// Pages in the window: enough that one round of them costs more than its preparation, few enough
/// that their translations stay in a second-level TLB of 2048 entries (a host may back a guest's
/// huge pages with small ones, so that each page needs its own).
const WINDOW: usize = 1024;
/// Lines of each page timed in a round, one pass over the window for each.
const READS: usize = LINES_TOGETHER;
/// Reference pages timed in a round, the same lines of them as of other pages: what a line's place
/// in its group does to its latency is then the same for both.
const REFERENCES: usize = 128;
/// References of a judge before its offset is believed, until when samples wait: an offset that is
/// two cycles off misplaces every page of a class in the same way. A load from DRAM scatters by
/// some 37 cycles, so that 2500 of them leave 0.75. On the synthetic Genoa with a drifting clock
/// 1000 give 0.944 of the codes right, 2500 and 4000 more than 0.95.
const BELIEVED: f64 = 2500.0;
/// Share of its weight that an offset keeps from one round to the next.
pub(super) const OFFSET_MEMORY: f64 = 0.98;
/// Probability of error at which a decision is safe.
pub(super) const SAFE_ERROR: f32 = 0.01;
/// Timed loads of each chosen line after which a page's best code is taken as it is.
const MAX_CYCLES: usize = 24;
/// Mean square distance of two classes, as a share of the variance of all lines, below which they
/// are one: patterns at that distance correlate at 0.98.
const SAME_DISTANCE: f64 = 0.04;
/// Fall of the references' slope that means another base (see `rounds`).
const SLOPE_DROP: f64 = 0.4;
/// Standard errors that the fall must be worth.
const SLOPE_Z: f64 = 5.0;
/// Rounds over which the references' slope is judged.
const SLOPE_ROUNDS: u32 = 4;

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
    pub codes: Vec<Option<u8>>,
    /// Timed loads spent on pages, references not counted.
    pub samples: u64,
    /// Timed loads spent on references.
    pub reference_samples: u64,
    /// Distinct lines read, summed over pages.
    pub lines_read: u64,
    /// Seconds in the target.
    pub timing_s: f64,
    /// Seconds in all.
    pub total_s: f64,
    /// Times that the thread was found elsewhere; those rounds were done again.
    pub thread_moves: u32,
    /// Places decided since the last check but one that found the base as it was.
    pub unverified: Vec<usize>,
    /// Set when the references no longer looked like their base: what is unverified is wrong.
    pub base_lost: bool,
}

/// Decodes the pages (or 16 KiB blocks) that begin at `first_lines`.
///
/// # Errors
/// Whatever the target refuses.
pub fn decode(
    target: &mut dyn Target,
    first_lines: &[LineAddr],
    plan: &DecodePlan<'_>,
    keep_going: &dyn Fn() -> bool,
) -> Result<Decoded, TargetError> {
    let begin = target.seconds();
    let books: Vec<Codebook> =
        plan.judges.iter().map(|judge| codebook(plan, judge)).collect::<Result<_, _>>()?;
    let mut window = Window::new(first_lines, plan, &books);
    let mut turn = 0;
    while window.refill() && keep_going() {
        window.draw(turn);
        let before = target.seconds();
        let core = plan.judges[turn].core;
        match target.sample(core, plan.level, &window.batch, &mut window.raw) {
            Ok(()) => {}
            Err(TargetError::Moved { .. }) => {
                window.done.thread_moves += 1;
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
    Ok(done)
}

fn codebook(plan: &DecodePlan<'_>, judge: &Judge) -> Result<Codebook, TargetError> {
    let learnt = plan.learnt;
    let stored: Vec<Vec<f32>> =
        judge.patterns.iter().map(|p| p.iter().map(|v| f32_of(*v)).collect()).collect();
    let shares = shares(learnt);
    let period = u16::try_from(learnt.period).ok().and_then(Period::from_lines);
    PatternTable::new(period.unwrap_or(Period::Lines64), stored.iter().map(Vec::as_slice))
        .and_then(|table| {
            let canonical = canonical_codes(learnt, plan.judges);
            Codebook::new(&table, &canonical, &shares, plan.penalties.clone())
        })
        .map_err(|e| TargetError::Unsupported(format!("the learnt form cannot be decoded: {e}")))
}

/// For each code the one that stands for it: keys alike, and classes that none of the judges can
/// tell apart where they run now.
pub(super) fn canonical_codes(learnt: &Learnt, judges: &[Judge]) -> Vec<u8> {
    if learnt.period != 64 {
        return learnt.canonical_key.clone();
    }
    let alike = |a: usize, b: usize| {
        judges.iter().all(|judge| {
            let spread = variance(&judge.patterns.concat()).unwrap_or(0.0);
            let pairs = judge.patterns[a].iter().zip(&judge.patterns[b]);
            let square = pairs.map(|(x, y)| (x - y).powi(2)).sum::<f64>() / 64.0;
            square <= SAME_DISTANCE * spread
        })
    };
    (0..learnt.classes())
        .flat_map(|class| {
            let stands = (0..class).find(|other| alike(*other, class)).unwrap_or(class);
            let stands = stands.to_le_bytes()[0];
            learnt.canonical_key.iter().map(move |key| join_code(stands, *key))
        })
        .collect()
}

/// How often each code is to be expected. Codes that no training page had share the probability
/// that the next page has a new one: (codes seen once + 1) / (pages + 1), Good's estimate (I. J.
/// Good, Biometrika 40, 1953) kept above zero.
fn shares(learnt: &Learnt) -> Vec<f32> {
    let mut counts = vec![0.0_f64; 256];
    for code in &learnt.codes {
        counts[usize::from(*code)] += 1.0;
    }
    let pages = learnt.codes.len() as f64;
    let codes = learnt.distinct_codes();
    let once = codes.iter().filter(|c| counts[usize::from(**c)] == 1.0).count() as f64;
    let unseen = codes.iter().filter(|c| counts[usize::from(**c)] == 0.0).count() as f64;
    let new = if unseen > 0.0 { (once + 1.0) / (pages + 1.0) } else { 0.0 };
    let mut shares = vec![0.0_f32; 256];
    for code in codes {
        let count = counts[usize::from(code)];
        let share = if count > 0.0 { (1.0 - new) * count / pages } else { new / unseen };
        shares[usize::from(code)] = f32_of(share);
    }
    shares
}

/// One undecided page.
struct Open {
    place: usize,
    first: LineAddr,
    decoder: Decoder,
    reads: usize,
}

/// The line that is timed in a pass: each page goes through its group of lines, from another one
/// than the next page. `reads` is a multiple of the group's size.
fn line_of(lines: &[u8], reads: usize, turn: usize) -> u8 {
    lines[(reads + turn % READS) % lines.len()]
}

struct Window<'a> {
    plan: &'a DecodePlan<'a>,
    books: &'a [Codebook],
    first_lines: &'a [LineAddr],
    next: usize,
    open: Vec<Open>,
    /// What each slot of the batch is: an open page or a reference.
    slots: Vec<Slot>,
    batch: Vec<LineAddr>,
    raw: Vec<Cycles>,
    references: Vec<ReferenceBlock>,
    reference_next: usize,
    reference_reads: usize,
    /// One for each judge.
    offsets: Vec<Offset>,
    /// Samples of open pages that wait for their judge's offset.
    waiting: Vec<Waiting>,
    /// Places decided since the last check, and between that and the one before: a move in the
    /// last round before a check is only seen by the next.
    recent: Vec<usize>,
    before: Vec<usize>,
    rng: Xoshiro256PlusPlus,
    done: Decoded,
}

#[derive(Clone, Copy)]
enum Slot {
    /// An open page and which of its lines.
    Page(u32, u8),
    /// A reference line and what the judge's base says of it, cycles.
    Reference(f64),
}

/// A sample of an open page that cannot be weighed yet.
struct Waiting {
    judge: usize,
    /// Pass of its round.
    read: usize,
    /// Place in the window.
    index: usize,
    line: u8,
    cycles: f64,
}

/// Running comparison of the references with what a judge's base says.
#[derive(Clone, Default)]
struct Offset {
    /// One for each pass of a round: the first pass after a sweep finds page translations gone.
    align: [Alignment; READS],
    weight: f64,
    cross: f64,
    square: f64,
    rounds: u32,
}

impl<'a> Window<'a> {
    fn new(first_lines: &'a [LineAddr], plan: &'a DecodePlan<'a>, books: &'a [Codebook]) -> Self {
        Self {
            plan,
            books,
            first_lines,
            next: 0,
            open: Vec::with_capacity(WINDOW),
            slots: Vec::new(),
            batch: Vec::new(),
            raw: Vec::new(),
            references: plan.references.blocks(plan.seed),
            reference_next: 0,
            reference_reads: 0,
            offsets: vec![Offset::default(); plan.judges.len()],
            waiting: Vec::new(),
            recent: Vec::new(),
            before: Vec::new(),
            rng: rng(plan.seed),
            done: Decoded { codes: vec![None; first_lines.len()], ..Decoded::default() },
        }
    }

    /// Opens pages until the window is full; false when nothing is left to do.
    fn refill(&mut self) -> bool {
        while self.open.len() < WINDOW && self.next < self.first_lines.len() {
            let place = self.next;
            self.next += 1;
            let first = self.first_lines[place];
            let decoder = Decoder::new(&self.books[0]);
            self.open.push(Open { place, first, decoder, reads: 0 });
        }
        !self.open.is_empty()
    }

    /// The next lines of each open page, a pass for each, and references among them. In a pass
    /// every page has one line; lines of one page are never neighbours (see `lines`).
    fn draw(&mut self, turn: usize) {
        let mut slots: Vec<(Slot, LineAddr)> = Vec::with_capacity(self.batch.len());
        let patterns = &self.plan.judges[turn].patterns;
        for read in 0..READS {
            let begin = slots.len();
            for (index, page) in (0_u32..).zip(&self.open) {
                let line = line_of(self.plan.lines, page.reads, read + page.place);
                slots.push((Slot::Page(index, line), LineAddr(page.first.0 + u64::from(line))));
            }
            for place in 0..REFERENCES.min(self.references.len()) {
                let place = (self.reference_next + place) % self.references.len();
                let line = line_of(self.plan.lines, self.reference_reads, read + place);
                let (address, class, index) = self.references[place].line(line);
                let expected = patterns[usize::from(class)][usize::from(index)];
                slots.push((Slot::Reference(expected), address));
            }
            shuffle(&mut slots[begin..], &mut self.rng);
        }
        self.reference_reads += READS;
        self.reference_next = (self.reference_next + REFERENCES) % self.references.len().max(1);
        self.slots.clear();
        self.slots.extend(slots.iter().map(|s| s.0));
        self.batch.clear();
        self.batch.extend(slots.iter().map(|s| s.1));
        self.raw.resize(self.batch.len(), Cycles(0));
    }

    /// Uses one round of samples; true when the base is no longer the one assumed.
    fn take(&mut self, turn: usize, overhead: f64, tick: u32) -> bool {
        let values: Vec<f64> = self.raw.iter().map(|c| f64::from(c.0) - overhead).collect();
        let offset = &mut self.offsets[turn];
        let window = keep_window(&values, tick);
        let pass = (self.slots.len() / READS).max(1);
        for (read, (slots, values)) in self.slots.chunks(pass).zip(values.chunks(pass)).enumerate()
        {
            let mut references = Vec::with_capacity(REFERENCES);
            for (slot, value) in slots.iter().zip(values) {
                match slot {
                    Slot::Reference(expected) => references.push((*expected, *value)),
                    Slot::Page(index, line) => {
                        let (judge, index, line, cycles) = (turn, *index as usize, *line, *value);
                        self.waiting.push(Waiting { judge, read, index, line, cycles });
                        self.open[index].reads += 1;
                    }
                }
            }
            offset.add(read, &references, window, self.plan.penalties);
        }
        offset.rounds += 1;
        let verdict = offset.judge(self.plan.noise);
        let own = self.open.len() * READS;
        self.done.samples += own as u64;
        self.done.reference_samples += (self.slots.len() - own) as u64;
        if self.offsets.iter().all(|offset| offset.weight >= BELIEVED) {
            self.weigh();
            self.close(turn);
        }
        if verdict == Some(false) {
            self.before = std::mem::take(&mut self.recent);
        }
        verdict == Some(true)
    }

    /// Gives the waiting samples to their pages' decoders. Places in the window have not changed
    /// since they were drawn: pages leave only after this.
    fn weigh(&mut self) {
        for sample in self.waiting.drain(..) {
            let offset = self.offsets[sample.judge].align[sample.read].cycles();
            let cycles = f32_of(sample.cycles - offset);
            self.open[sample.index].decoder.add(&self.books[sample.judge], sample.line, cycles);
        }
    }

    /// Pages whose decision is safe leave the window.
    fn close(&mut self, turn: usize) {
        let lines = self.plan.lines.len();
        let limit = MAX_CYCLES * lines;
        let mut i = 0;
        while i < self.open.len() {
            let decision = self.open[i].decoder.best(&self.books[turn]);
            if decision.is_safe(SAFE_ERROR) || self.open[i].reads >= limit {
                let page = self.open.swap_remove(i);
                self.done.codes[page.place] = Some(decision.code.0);
                self.done.lines_read += page.reads.min(lines) as u64;
                self.recent.push(page.place);
            } else {
                i += 1;
            }
        }
    }
}

impl Offset {
    /// Adds the `(expected, seen)` references of a pass; the slope counts those in the window.
    fn add(
        &mut self,
        read: usize,
        pairs: &[(f64, f64)],
        (low, high): (f64, f64),
        penalties: &Penalties,
    ) {
        self.align[read].add(pairs, penalties);
        let pairs = || pairs.iter().filter(|(_, value)| (low..=high).contains(value));
        let n = pairs().count() as f64;
        if n < 2.0 {
            return;
        }
        self.weight += n;
        let shift = pairs().map(|(e, v)| v - e).sum::<f64>() / n;
        let centre = pairs().map(|(e, _)| e).sum::<f64>() / n;
        for (e, v) in pairs() {
            self.cross += (v - centre - shift) * (e - centre);
            self.square += (e - centre).powi(2);
        }
    }

    /// After a few rounds: whether the references lost the pattern. Starts a new count.
    fn judge(&mut self, noise: f64) -> Option<bool> {
        if self.rounds < SLOPE_ROUNDS {
            return None;
        }
        let fall = 1.0 - self.cross / self.square;
        let beyond = SLOPE_DROP.max(SLOPE_Z * noise / self.square.sqrt());
        let lost = self.square > 0.0 && fall > beyond;
        (self.cross, self.square, self.rounds) = (0.0, 0.0, 0);
        Some(lost)
    }
}
