//! What the loads of one core in one base have in common beyond that base, and whether the base that
//! they are compared with is still the current one.
//!
//! Clock rates drift by more than a pattern is high, so what a base says holds up to an offset. It
//! cannot be taken from means of known pages: samples of DRAM have a long tail on one side, and where the
//! tail is longer than it was while learning (another tenant is busy) the mean moves by more than a third
//! of the distance of two classes, while the bulk that decides about pages stays where it was. So the
//! offset is the one under which known pages look most like the density of residuals that pages are
//! judged by. Before any page is known the mean of all pages of the window stands in, whose codes
//! occur with known shares.

use crate::number::{entry, narrow, real};
use isochrone_atlas::{PENALTY_ENTRIES, Penalties};

/// Passes of a round, each with an offset of its own: the first pass after a sweep finds page
/// translations gone.
pub(crate) const PASSES: usize = 4;
/// Cycles that residuals may lie from the first offset and still be told apart.
const REACH: f64 = 256.0;
/// Cells of a cycle each.
pub(crate) const CELLS: usize = 512;
/// Offsets are tried in steps of this part of a cycle.
const PARTS: i32 = 4;
/// Cycles that an offset may wander from the first one.
const ROOM: i32 = 256;
/// Entries of the ruler: for each part of a cycle a row by whole cycles.
pub(crate) const RULER: usize = 4 * RULER_ROW;
const RULER_ROW: usize = CELLS + 2 * 256;
/// Searches of the first rounds: reach to either side and step, parts of a cycle, each around the last's
/// best.
const WIDE: [(i32, i32); 2] = [(48 * PARTS, 2 * PARTS), (2 * PARTS, 1)];
/// The search of later rounds: it follows a drift of a cycle a round.
const NARROW: [(i32, i32); 1] = [(PARTS, 1)];
/// Rounds that search wide.
const WIDE_ROUNDS: u32 = 4;
/// Cells that are summed side by side.
const LANES: usize = 16;
/// Loads of known pages after which it is asked whether the offset is out of reach of them: whether
/// three quarters lie further from it than a wide search reaches. Then it is begun anew. The first
/// round may have lain in a stretch in which somebody else had evicted its lines: no search that
/// follows a drift comes back from there, and all pages would be compared with latencies that
/// nothing has. Each time it takes twice as many loads: where lines are here and there by turns for
/// good, no offset is the right one, and pages must not wait for it.
const ASTRAY_LOADS: usize = 64;
/// Share of its weight that an offset keeps from one round to the next.
const MEMORY: f64 = 0.98;
/// Known loads from which likelihood decides where codes were decoded, in multiples of those that make an
/// offset believed; as many at least and at most.
const LIKELY: f64 = 4.0;
const LEAST_LIKELY: f64 = 256.0;
const MOST_LIKELY: f64 = 4096.0;
/// Loads that a mean remembers.
const MEAN_LOADS: f64 = 8192.0;
/// Fall of the references' slope that means another base.
const SLOPE_DROP: f64 = 0.4;
/// Standard errors that the fall must be worth.
const SLOPE_Z: f64 = 5.0;
/// Loads of a round that say in which window loads count.
const ENOUGH_LOADS: usize = 64;

/// A load of a page of known code.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// What the base says, cycles.
    pub(crate) expected: f64,
    /// Mean of the classes on the line's node, cycles.
    pub(crate) node: f64,
    /// What was seen, cycles.
    pub(crate) seen: f64,
}
/// References that were decoded from which the slope is believed.
const SLOPE_LOADS: f64 = 256.0;
/// Rounds over which the references' slope is judged.
const SLOPE_ROUNDS: u32 = 4;

/// Fills the ruler: what residuals cost, nats, laid out so that the cost of an offset is one sum of products.
pub(crate) fn fill_ruler(ruler: &mut [f32], penalties: &Penalties) {
    let middle = real(PENALTY_ENTRIES / 2);
    for (part, row) in (0_u8..).zip(ruler.chunks_exact_mut(RULER_ROW)) {
        let first = -REACH - f64::from(ROOM) - f64::from(part) / f64::from(PARTS);
        for (cell, nats) in row.iter_mut().enumerate() {
            let place = (first + real(cell)) / f64::from(penalties.step_cycles) + middle;
            // As an f64 first: what is stored was one.
            *nats = narrow(f64::from(penalties.nats[entry(place, PENALTY_ENTRIES)]));
        }
    }
}

/// What the residuals of these cells cost if this were the offset, in parts of a cycle.
fn cost(cells: &[f32], ruler: &[f32], offset: i32) -> f32 {
    let (whole, part) = (offset.div_euclid(PARTS), offset.rem_euclid(PARTS));
    let first = usize::try_from(ROOM - whole.clamp(-ROOM, ROOM)).unwrap_or(0);
    let begin = usize::try_from(part).unwrap_or(0) * RULER_ROW + first;
    let row = ruler.get(begin..begin + CELLS).unwrap_or(&[]);
    let mut sums = [0.0_f32; LANES];
    for (cells, nats) in cells.as_chunks::<LANES>().0.iter().zip(row.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            sums[lane] += cells[lane] * nats[lane];
        }
    }
    sums.iter().sum()
}

/// The offset of one pass; its histogram of residuals, older ones fading, is the caller's.
#[derive(Clone, Copy, Debug)]
struct Alignment {
    /// Middle of the histogram, cycles; none before the first round.
    origin: Option<f64>,
    /// From the origin, parts of a cycle.
    best: i32,
    rounds: u32,
    /// Mean of loads over what is to be expected of them, how many loads it weighs as, and how many there were.
    mean: f64,
    loads: f64,
    heard: f64,
    /// Loads of known pages that the histogram remembers.
    remembered: f64,
    /// Loads since it was asked last whether the offset is astray, and those of them that are out of its reach.
    asked: usize,
    far: usize,
    /// Loads after which it is asked next.
    ask_after: usize,
}

impl Alignment {
    const NEW: Self = Self {
        origin: None,
        best: 0,
        rounds: 0,
        mean: 0.0,
        loads: 0.0,
        heard: 0.0,
        remembered: 0.0,
        asked: 0,
        far: 0,
        ask_after: ASTRAY_LOADS,
    };

    /// Whether the offset is out of reach of these residuals and those just before them ([`ASTRAY_LOADS`]).
    fn is_astray(&mut self, residuals: &[f64]) -> bool {
        let Some(origin) = self.origin else { return false };
        let parts = f64::from(PARTS);
        let (best, reach) = (origin + f64::from(self.best) / parts, f64::from(WIDE[0].0) / parts);
        self.asked += residuals.len();
        self.far += residuals.iter().filter(|residual| (**residual - best).abs() > reach).count();
        if self.asked < self.ask_after {
            return false;
        }
        let astray = 4 * self.far > 3 * self.asked;
        (self.asked, self.far) = (0, 0);
        astray
    }

    /// Takes residuals, less the origin; those before fade, once a round.
    fn add(&mut self, residuals: impl Iterator<Item = f64>, cells: &mut [f32], fade: bool) {
        if fade {
            self.remembered *= MEMORY;
            cells.iter_mut().for_each(|cell| *cell *= narrow(MEMORY));
        }
        for residual in residuals {
            if let Some(cell) = cells.get_mut(entry(residual + REACH, CELLS)) {
                *cell += 1.0;
                self.remembered += 1.0;
            }
        }
    }

    /// Finds the offset anew.
    fn search(&mut self, cells: &[f32], ruler: &[f32]) {
        self.rounds += 1;
        let searches: &[(i32, i32)] = if self.rounds <= WIDE_ROUNDS { &WIDE } else { &NARROW };
        let mut best = self.best;
        for (reach, step) in searches.iter().copied() {
            let tried = (0..=2 * reach / step).map(|i| best - reach + step * i);
            let costs = tried.map(|offset| (cost(cells, ruler, offset), offset));
            best = costs.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(best, |(_, offset)| offset);
        }
        self.best = best;
    }
}

/// Where the residuals of a pass are counted, and what they cost.
#[derive(Debug)]
pub(crate) struct Histogram<'h> {
    /// Residuals so far, in cells of a cycle each.
    pub(crate) cells: &'h mut [f32],
    /// See [`fill_ruler`].
    pub(crate) ruler: &'h [f32],
}

/// How far known pages may be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Their codes were learnt from all of their lines.
    Certain,
    /// Their codes were decoded, and some are wrong.
    Decoded {
        /// Loads have a long tail, which grows and shrinks with what other tenants do.
        tailed: bool,
    },
}

/// Running comparison of loads with what a core's base says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offset {
    align: [Alignment; PASSES],
    /// Loads of known pages so far.
    weight: f64,
    /// Those of them that the slope rests on, since it was judged last.
    kept: f64,
    /// In which loads count, where references are not certain.
    window: Option<Window>,
    cross: f64,
    square: f64,
    rounds: u32,
}

impl Offset {
    pub(crate) const NEW: Self = Self {
        align: [Alignment::NEW; PASSES],
        weight: 0.0,
        kept: 0.0,
        window: None,
        cross: 0.0,
        square: 0.0,
        rounds: 0,
    };

    /// Whether enough loads are behind it: `wanted` of known pages, or the same of unknown ones in every
    /// pass together, whose codes scatter too.
    pub(crate) fn is_believed(&self, wanted: (f64, f64)) -> bool {
        self.weight >= wanted.0 || self.unknown() >= wanted.1
    }

    /// Loads of pages of unknown code in all passes, as many as the poorest pass has in each.
    fn unknown(&self) -> f64 {
        let used = self.align.iter().map(|align| align.heard).filter(|loads| *loads > 0.0);
        let (least, count) =
            used.fold((f64::INFINITY, 0_usize), |(least, n), loads| (least.min(loads), n + 1));
        if count == 0 { 0.0 } else { least * real(count) }
    }

    /// Loads of known pages from which likelihood decides, and not the mean. References that are certain have
    /// no other loads beside them. Of pages that were decoded the codes follow the offset that they were
    /// decoded with, and likelihood would follow them: so there must be many, and a tail that is worth it.
    fn likely(trust: Trust, wanted: f64) -> f64 {
        match trust {
            Trust::Certain => 0.0,
            Trust::Decoded { tailed: true } => (LIKELY * wanted).clamp(LEAST_LIKELY, MOST_LIKELY),
            Trust::Decoded { tailed: false } => f64::INFINITY,
        }
    }

    /// The offset of a pass, cycles.
    pub(crate) fn cycles(&self, pass: usize, wanted: f64, trust: Trust) -> f64 {
        let Some(align) = self.align.get(pass) else { return 0.0 };
        match align.origin {
            Some(origin) if align.remembered >= Self::likely(trust, wanted) => {
                origin + f64::from(align.best) / f64::from(PARTS)
            }
            _ => align.mean,
        }
    }

    /// Adds the mean of `count` loads over what is expected of them. What is remembered weighs as much as
    /// `most` loads at most: of pages of unknown code more loads do not make up for there being few pages.
    pub(crate) fn add_mean(&mut self, pass: usize, mean: f64, count: f64, most: f64) {
        let Some(align) = self.align.get_mut(pass).filter(|_| count > 0.0) else { return };
        align.heard += count;
        let all = align.loads + count;
        align.mean += (mean - align.mean) * count / all;
        align.loads = all.min(most.min(MEAN_LOADS).max(align.loads));
    }

    /// The window in which loads of this slot count, where pages of unknown code or uncertain ones tell the
    /// offset: of all loads of a round, since of few a chance majority was never where it had been put. `values`
    /// are overwritten. Of too few the window is the last one, if there is one.
    pub(crate) fn hear_window(&mut self, values: &mut [f64], tick: u32) {
        if values.len() >= ENOUGH_LOADS || self.window.is_none() {
            self.window = Some(keep_window(values, tick));
        }
    }

    /// The window in which loads count.
    pub(crate) const fn window(&self) -> Option<Window> {
        self.window
    }

    /// Adds the loads of pages of a pass whose codes are certain; the slope counts those near what is expected,
    /// and what they differ by on their node. `room` is as long as there are of them, the histogram is the pass's.
    pub(crate) fn add_certain(
        &mut self,
        pass: usize,
        known: &[Known],
        histogram: Histogram<'_>,
        room: &mut [f64],
        tick: u32,
    ) {
        let Some(align) = self.align.get_mut(pass) else { return };
        let count = known.len().min(room.len());
        let (known, residuals) = (&known[..count], &mut room[..count]);
        let fill = |residuals: &mut [f64]| {
            for (slot, of) in residuals.iter_mut().zip(known) {
                *slot = of.seen - of.expected;
            }
        };
        fill(residuals);
        if !residuals.is_empty() {
            let Histogram { cells, ruler } = histogram;
            if align.is_astray(residuals) {
                *align = Alignment { ask_after: 2 * align.ask_after, ..Alignment::NEW };
                cells.fill(0.0);
                // Nobody is judged by a few loads: there must be as many as at first.
                self.weight = 0.0;
            }
            let half = residuals.len() / 2;
            let origin = *align
                .origin
                .get_or_insert_with(|| *residuals.select_nth_unstable_by(half, f64::total_cmp).1);
            align.add(residuals.iter().map(|residual| residual - origin), cells, true);
            align.search(cells, ruler);
        }
        fill(residuals);
        let window = keep_window(residuals, tick);
        self.slope(known.iter().filter(|of| window.holds(of.seen - of.expected)));
    }

    /// Adds the loads of pages of a pass whose codes were decoded; those in the window count.
    pub(crate) fn add_decoded(
        &mut self,
        pass: usize,
        known: &[Known],
        histogram: Histogram<'_>,
        trust: Trust,
        wanted: f64,
        fade: bool,
    ) {
        let (Some(window), Some(align)) = (self.window, self.align.get_mut(pass)) else {
            return;
        };
        let Histogram { cells, ruler } = histogram;
        let likely = Self::likely(trust, wanted);
        if likely.is_finite() && !known.is_empty() {
            let origin = *align.origin.get_or_insert(align.mean);
            let residuals = known.iter().map(|of| of.seen - of.expected - origin);
            align.add(residuals, cells, fade);
            if align.remembered >= likely && fade {
                align.search(cells, ruler);
            }
        }
        let kept = known.iter().filter(|of| window.holds(of.seen));
        if let Some((shift, n)) = self.slope(kept) {
            self.add_mean(pass, shift, n, MEAN_LOADS);
        }
    }

    /// Adds loads to what the slope rests on: how far they are from what is expected, and how many they are.
    fn slope<'k>(&mut self, kept: impl Iterator<Item = &'k Known> + Clone) -> Option<(f64, f64)> {
        let n = real(kept.clone().count());
        if n < 2.0 {
            return None;
        }
        self.weight += n;
        self.kept += n;
        let shift = kept.clone().map(|of| of.seen - of.expected).sum::<f64>() / n;
        let centre = kept.clone().map(|of| of.expected - of.node).sum::<f64>() / n;
        for of in kept {
            let above = of.expected - of.node - centre;
            self.cross += (of.seen - of.node - centre - shift) * above;
            self.square += above * above;
        }
        Some((shift, n))
    }

    /// Ends a round. After a few of them: whether the references lost the pattern. Starts a new count.
    ///
    /// References whose codes are `certain` have a slope of 1. Of those that were decoded some are wrong, and a
    /// few replaced: their slope is less than 1 before anything has moved, so the fall has to be worth its
    /// errors beyond the one that means another base.
    pub(crate) fn judge(&mut self, noise: f64, trust: Trust) -> Option<bool> {
        self.rounds += 1;
        if self.rounds < SLOPE_ROUNDS {
            return None;
        }
        let fall = 1.0 - self.cross / self.square;
        let certain = trust == Trust::Certain;
        let error = SLOPE_Z * noise / libm::sqrt(self.square);
        let beyond = if certain { SLOPE_DROP.max(error) } else { SLOPE_DROP + error };
        let enough = certain || self.kept >= SLOPE_LOADS;
        let lost = enough && self.square > 0.0 && fall > beyond;
        (self.cross, self.square, self.kept, self.rounds) = (0.0, 0.0, 0.0, 0);
        Some(lost)
    }
}

/// From the least value that counts to the largest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// The least value that counts.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

impl Window {
    /// Whether this value counts.
    #[must_use]
    pub fn holds(self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// The window around the median in which values count: outside of it are interrupts, and lines that
/// were not where they had been put. Takes every second, third ... value where there are many; reorders
/// and overwrites `values`. Everything is kept of an empty batch.
#[must_use]
pub fn keep_window(values: &mut [f64], tick: u32) -> Window {
    if values.is_empty() {
        return Window { low: f64::NEG_INFINITY, high: f64::INFINITY };
    }
    // A few thousand values say where the window lies as well as all of them.
    let step = (values.len() / 4096).max(1);
    let count = values.len().div_ceil(step);
    for place in 1..count {
        values[place] = values[place * step];
    }
    let some = &mut values[..count];
    let centre = median(some);
    some.iter_mut().for_each(|value| *value = (*value - centre).abs());
    // 1.4826 makes the median deviation of a Gaussian its standard deviation.
    let spread = 1.4826 * median(some);
    let half = (3.0 * f64::from(tick)).max(4.0 * spread);
    Window { low: centre - half, high: centre + half }
}

/// The median of values of which there are some; it reorders them.
fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    let (below, &mut upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    if !even {
        return upper;
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    lower + 0.5 * (upper - lower)
}

#[cfg(test)]
mod tests {
    use super::*;
    use isochrone_atlas::Noise;
    use std::vec;
    use std::vec::Vec;

    /// Penalties of residuals that have a sharp left edge at -30 and a tail of 30 to the right.
    fn tailed() -> Penalties {
        let mut penalties = Penalties::from(Noise::heavy_tailed(20.0));
        for (entry, nats) in (-128_i16..).zip(&mut penalties.nats) {
            let cycles = f32::from(entry) * penalties.step_cycles;
            *nats = if cycles < -30.0 { 8.0 } else { 1.0 + (cycles + 30.0) / 30.0 };
        }
        penalties
    }

    /// Loads that are expected at 300 and seen 7 later, with a tail of `tail` cycles, as even as a ruler.
    fn loads(tail: f64) -> Vec<Known> {
        let seen = |i: u16| -tail * libm::log(1.0 - (f64::from(i) + 0.5) / 256.0) + 277.0;
        (0..256).map(|i| Known { expected: 300.0, node: 300.0, seen: seen(i) }).collect()
    }

    #[test]
    fn a_longer_tail_moves_the_mean_but_not_the_offset() {
        let (mut ruler, mut cells) = (vec![0.0; RULER], vec![0.0; CELLS]);
        fill_ruler(&mut ruler, &tailed());
        let mut room = vec![0.0; 256];
        let mut offset = Offset::NEW;
        let round = loads(45.0);
        let mean = round.iter().map(|of| of.seen - of.expected).sum::<f64>() / 256.0;
        for _ in 0..40 {
            let histogram = Histogram { cells: &mut cells, ruler: &ruler };
            offset.add_certain(0, &round, histogram, &mut room, 1);
        }
        let cycles = offset.cycles(0, 64.0, Trust::Certain);
        assert!(mean > 7.0 + 8.0, "the mean is misled: {mean}");
        assert!((cycles - 7.0).abs() < 1.5, "{cycles}");
    }

    #[test]
    fn an_offset_found_while_lines_were_elsewhere_is_begun_anew() {
        let (mut ruler, mut cells) = (vec![0.0; RULER], vec![0.0; CELLS]);
        fill_ruler(&mut ruler, &tailed());
        let mut room = vec![0.0; 256];
        let mut offset = Offset::NEW;
        let mut hear = |late: f64| {
            let mut round = loads(45.0);
            round.iter_mut().for_each(|of| of.seen += late);
            let histogram = Histogram { cells: &mut cells, ruler: &ruler };
            offset.add_certain(0, &round, histogram, &mut room, 1);
            offset.cycles(0, 64.0, Trust::Certain)
        };
        assert!(hear(150.0) > 100.0, "all that it knows lay in memory");
        assert!((hear(0.0) - 7.0).abs() < 1.5, "three quarters of a round are out of its reach");
        // A tail now and then changes nothing, however far it reaches.
        let quiet = hear(0.0);
        assert!((quiet - 7.0).abs() < 1.5, "{quiet}");
    }

    #[test]
    fn a_few_loads_out_of_reach_leave_an_offset_where_it_is() {
        let mut align = Alignment { origin: Some(5.0), ..Alignment::NEW };
        for _ in 0..40 {
            assert!(!align.is_astray(&[4.0, 6.0, 300.0]));
            assert!(!align.is_astray(&[300.0]));
        }
        let first = align.is_astray(&[300.0; ASTRAY_LOADS]);
        assert!(first || align.is_astray(&[300.0; ASTRAY_LOADS]));
    }

    #[test]
    fn lines_that_are_here_and_there_by_turns_do_not_keep_pages_waiting() {
        let (mut ruler, mut cells) = (vec![0.0; RULER], vec![0.0; CELLS]);
        fill_ruler(&mut ruler, &tailed());
        let mut room = vec![0.0; 256];
        let mut offset = Offset::NEW;
        let mut begun_anew = 0;
        for turn in 0..1000 {
            let mut round = loads(45.0);
            round.iter_mut().for_each(|of| of.seen += if turn % 2 == 0 { 150.0 } else { 0.0 });
            let before = offset.weight;
            let histogram = Histogram { cells: &mut cells, ruler: &ruler };
            offset.add_certain(0, &round, histogram, &mut room, 1);
            begun_anew += usize::from(offset.weight < before);
        }
        assert!(begun_anew <= 4, "{begun_anew} times");
        assert!(offset.is_believed((64.0, 64.0)));
    }

    #[test]
    fn a_lost_pattern_is_noticed_and_wrong_references_alone_are_not() {
        let judged = |slope: f64, trust: Trust| {
            let mut offset = Offset::NEW;
            let mut values: Vec<f64> = (0..512).map(|i| 300.0 + f64::from(i % 16)).collect();
            offset.hear_window(&mut values, 2);
            let (mut cells, mut room) = (vec![0.0; CELLS], vec![0.0; 128]);
            let ruler = vec![0.0; RULER];
            let mut heard = None;
            for _ in 0..SLOPE_ROUNDS {
                let known: Vec<Known> = (0..128_u8)
                    .map(|i| {
                        let above = f64::from(i % 16) - 7.5;
                        Known { expected: 307.5 + above, node: 307.5, seen: 307.5 + slope * above }
                    })
                    .collect();
                let histogram = Histogram { cells: &mut cells, ruler: &ruler };
                if trust == Trust::Certain {
                    offset.add_certain(0, &known, histogram, &mut room, 2);
                } else {
                    offset.add_decoded(0, &known, histogram, trust, 64.0, true);
                }
                heard = offset.judge(3.0, trust);
            }
            heard
        };
        let decoded = Trust::Decoded { tailed: false };
        assert_eq!(judged(1.0, Trust::Certain), Some(false));
        assert_eq!(judged(0.55, Trust::Certain), Some(true));
        assert_eq!(judged(0.55, decoded), Some(false), "a third of the references are wrong");
        assert_eq!(judged(-0.2, decoded), Some(true));
    }

    #[test]
    fn a_mean_of_few_pages_weighs_little() {
        let mut offset = Offset::NEW;
        offset.add_mean(0, 9.0, 4000.0, 100.0);
        offset.add_mean(0, 1.0, 4000.0, f64::MAX);
        assert!((offset.cycles(0, 64.0, Trust::Decoded { tailed: true }) - 1.0).abs() < 1.0);
        assert!(offset.is_believed((2500.0, 2500.0)) && !Offset::NEW.is_believed((64.0, 64.0)));
    }
}
