//! Which base samples belong to: of pages whose codes are known, and of pages of which nothing is.
//!
//! Pure arithmetic on samples. Latencies may be shifted as a whole (another clock rate, rows of
//! memory that are open), so every base is compared with an offset of its own.

use super::kept::Window;
use super::level::LevelModel;
use super::number::real;
use isochrone_atlas::{Code, Codebook, CodedSample, Decoder, PatternTable, TABLE_ENTRIES};

/// Samples that a base is compared with in one step, some 30 microseconds: a look has as many, and of
/// several looks some of each stand for all.
pub(super) const COMPARED_SAMPLES: usize = 1024;
/// Known pages from which a base is identified, or measured anew, at least.
pub(super) const LEAST_KNOWN: usize = 32;
/// Share of what a base predicts that must be seen for it to be the current one. Bases of other
/// cores have 0.6 or less on the machines seen, often less than nothing.
pub(super) const CURRENT_SLOPE: f32 = 0.75;
/// No sample.
pub(super) const BLANK: CodedSample = CodedSample { code: Code(0), line: 0, cycles: f32::NAN };

/// The samples, or so many of them that the room is full: every second, third and so on.
pub(super) fn some_of<'a>(
    samples: &[CodedSample],
    room: &'a mut [CodedSample; COMPARED_SAMPLES],
) -> &'a [CodedSample] {
    let step = samples.len().div_ceil(room.len()).max(1);
    let mut count = 0;
    for (slot, sample) in room.iter_mut().zip(samples.iter().step_by(step)) {
        *slot = *sample;
        count += 1;
    }
    &room[..count]
}

/// How far differences between lines are what a base says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Slope {
    /// Cycles seen for a cycle predicted: 1 for the current base, about 0 for a strange one.
    pub(super) slope: f32,
    /// Standard error of it.
    pub(super) error: f32,
}

/// Regression of the samples that lie in the window on what `table` says; `None` where it says
/// the same of all of them.
pub(super) fn slope(
    table: &PatternTable,
    samples: &[CodedSample],
    window: Window,
) -> Option<Slope> {
    let pairs = || {
        let kept = samples.iter().filter(|s| window.holds(s.cycles));
        kept.map(|s| (table.latency_cycles(s.code, s.line), s.cycles)).filter(|p| p.0.is_finite())
    };
    let (mut x0, mut y0, mut count) = (0.0_f32, 0.0_f32, 0_usize);
    for (x, y) in pairs() {
        (x0, y0, count) = (x0 + x, y0 + y, count + 1);
    }
    let (x0, y0) = (x0 / real(count), y0 / real(count));
    let (mut xx, mut xy, mut yy) = (0.0_f32, 0.0_f32, 0.0_f32);
    for (x, y) in pairs().map(|(x, y)| (x - x0, y - y0)) {
        (xx, xy, yy) = (xx + x * x, xy + x * y, yy + y * y);
    }
    // Below a tenth of a cycle a base is flat for these lines.
    if count < 3 || xx < 0.01 * real(count) {
        return None;
    }
    let slope = xy / xx;
    let left = (yy - slope * xy).max(0.0) / real(count - 2);
    Some(Slope { slope, error: libm::sqrtf(left / xx) })
}

/// How well pages of unknown codes fit one base, found out some samples at a time. The samples of a
/// page follow one another and have equal codes, which only tell pages apart.
#[derive(Debug)]
pub(super) struct Weighing {
    book: Codebook,
    /// What the samples have in common under this base.
    offset: f32,
    /// The page under way.
    decoder: Decoder,
    /// Samples weighed so far.
    done: usize,
    nats: f32,
}

impl Weighing {
    /// `None` for a base that nothing can be decoded in.
    pub(super) fn new(
        model: &LevelModel,
        table: &PatternTable,
        samples: &[CodedSample],
        window: Window,
    ) -> Option<Self> {
        let book = model.book(table)?;
        let (mut sum, mut count) = (0.0, 0_usize);
        let mut expected = [f32::NAN; 256];
        for sample in samples.iter().filter(|s| window.holds(s.cycles)) {
            let slot = &mut expected[usize::from(sample.line)];
            if slot.is_nan() {
                *slot = model.expected(table, sample.line, window);
            }
            sum += sample.cycles - *slot;
            count += 1;
        }
        let decoder = Decoder::new(&book);
        Some(Self { book, offset: sum / real(count.max(1)), decoder, done: 0, nats: 0.0 })
    }

    /// Weighs some of the same samples more. The evidence in nats, once all are weighed.
    pub(super) fn go_on(&mut self, samples: &[CodedSample]) -> Option<f32> {
        let end = samples.len().min(self.done + piece(&self.book));
        for at in self.done..end {
            let sample = &samples[at];
            self.decoder.add(&self.book, sample.line, sample.cycles - self.offset);
            let ends = samples.get(at + 1).is_none_or(|next| next.code != sample.code);
            if ends {
                self.nats += self.decoder.evidence_nats(&self.book);
                self.decoder.reset(&self.book);
            }
        }
        self.done = end;
        (end == samples.len()).then_some(self.nats)
    }
}

/// Samples that may be given to a decoder between two looks at the clock. Each is compared with
/// every answer, at some two nanoseconds: fifteen microseconds in all.
pub(super) fn piece(book: &Codebook) -> usize {
    const COMPARED: usize = 8192;
    (COMPARED / book.answers().len().max(1)).clamp(4, 256)
}

/// The base that `samples` show, cell by cell.
pub(super) fn measured(
    model: &LevelModel,
    samples: &[CodedSample],
    window: Window,
) -> Option<PatternTable> {
    let (mut sums, mut counts) = ([0.0_f32; TABLE_ENTRIES], [0_usize; TABLE_ENTRIES]);
    for sample in samples.iter().filter(|s| window.holds(s.cycles)) {
        let cell = model.cell(sample.code, sample.line);
        sums[cell] += sample.cycles;
        counts[cell] += 1;
    }
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum = if count > 0 { *sum / real(count) } else { f32::NAN };
    }
    model.assemble(&sums)
}
