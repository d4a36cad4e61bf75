//! Learns a level's form from fully timed pages: how many classes of pages there are, the base
//! pattern of each, and each page's key, by turns.
//!
//! The form is `latency(core, page, i) = base[core][class(page)][i ^ key(page)]`. Given the base,
//! a page's key is the XOR permutation under which it fits best; given the keys, the base is the
//! mean of the pages put in canonical order (`shapes`). A class is a node of the machine (`far`), a
//! distance on it, and a shape. All cores that looked at the pages are learnt from together: two
//! shapes, or two keys, may look alike to one core and not to another. Keys whose patterns correlate
//! at 0.98 or more cannot be told apart and cost nothing when confused, so they are one. Where the
//! form does not hold the result says so and carries the figure that decided; nothing is forced to
//! fit.

use isochrone_atlas_store::contents::Form;
use isochrone_stats::{choose_k_1d, mean, pearson};
use isochrone_units::{CoreId, LINES_PER_PAGE};

use super::far::{far_groups, group_means};
use super::keys::{equivalent_keys, symmetrised};
use super::rounds::Stretch;
use super::shapes::{Rows, Shapes, by_turns, grow};
use super::views::{LEVELS, View, filled, levels, rows_of};

/// Most classes of pages that a table has room for beside a 6-bit key.
pub(super) const MAX_CLASSES: usize = 16;
/// Shapes that are looked for: a few pages on a third node may take some, and are then given up.
const GROWN: usize = 24;
/// Share of the repeatable variance that the form must explain to be called the form.
pub(super) const FORM_HOLDS: f64 = 0.8;
/// Standard errors by which two halves of the data must correlate to call anything a pattern.
const SIGNIFICANT_Z: f64 = 5.0;
/// A shape inside pages that carries less than this share of the repeatable variance is not
/// worth a key: being wrong about it costs less than reading the lines that would tell.
const SHAPE_SHARE: f64 = 0.02;
/// What keys must explain over a shape that all pages share, to be believed.
const KEYS_OVER_COMMON: f64 = 1.1;
/// A shape that all pages share costs nothing to decode, so less of it is worth having.
const COMMON_SHARE: f64 = 0.002;
/// Cores whose looks are learnt from together.
const JOINT_LOOKS: usize = 4;

/// What was learnt about one level.
#[derive(Clone, Debug)]
pub struct Learnt {
    /// Which form holds.
    pub form: Form,
    /// Why, with the figure that decided.
    pub reason: String,
    /// 64 or 256.
    pub period: usize,
    /// `[class][canonical index]`, cycles, timer's cost taken off.
    pub patterns: Vec<Vec<f64>>,
    /// For each class its shape: classes of one shape differ by their mean alone.
    pub shapes: Vec<usize>,
    /// For each key the smallest equivalent one; all 0 where pages have no keys.
    pub canonical_key: Vec<u8>,
    /// Whether pages have keys at all, or all lie alike.
    pub keyed: bool,
    /// Code of each training page (period 64) or 16 KiB block (period 256).
    pub codes: Vec<u16>,
    /// So many of these are a fair sample; the rest were sought (`survey`) and tell no shares.
    pub fair: usize,
    /// Share of the variance of the training pages explained.
    pub r2_train: f64,
    /// Share of it that repeats between the two halves of the rounds.
    pub repeatable: f64,
}

impl Learnt {
    /// Before anything is learnt.
    #[must_use]
    pub(super) fn nothing() -> Self {
        Self {
            form: Form::Flat,
            reason: String::new(),
            period: 64,
            patterns: vec![vec![0.0; 64]],
            shapes: vec![0],
            canonical_key: vec![0; 64],
            keyed: false,
            codes: Vec::new(),
            fair: usize::MAX,
            r2_train: 0.0,
            repeatable: 0.0,
        }
    }

    /// Codes of those training pages that are a fair sample of all.
    #[must_use]
    pub fn fair_codes(&self) -> &[u16] {
        &self.codes[..self.codes.len().min(self.fair)]
    }

    /// Classes of pages.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.patterns.len()
    }

    /// The smallest canonical index whose base value is the same because keys are equivalent.
    #[must_use]
    pub fn representative(&self, index: usize) -> u8 {
        // Equivalent keys form a subgroup, so equal lines are its cosets, just as keys are.
        if self.keyed { self.canonical_key[index] } else { index.to_le_bytes()[0] }
    }

    /// The codes that differ, in ascending order.
    #[must_use]
    pub fn distinct_codes(&self) -> Vec<u16> {
        let is_own = |k: &u8| self.canonical_key[usize::from(*k)] == *k;
        let keys: Vec<u8> = (0_u8..=255).take(self.period).filter(is_own).collect();
        (0..self.patterns.len())
            .flat_map(|class| keys.iter().map(move |key| join_code(class, *key, self.period)))
            .collect()
    }

    /// For each class the node that its pages lie on, nearest first.
    #[must_use]
    pub fn nodes(&self) -> Vec<usize> {
        far_groups(&class_means(&self.patterns))
    }

    /// Latency that the form gives line `index` of a page with this code.
    #[must_use]
    pub fn expected(&self, code: u16, index: usize) -> f64 {
        let (class, key) = split_code(code, self.period);
        self.patterns[class][index ^ key]
    }
}

/// The code of a class and a key.
pub(super) fn join_code(class: usize, key: u8, period: usize) -> u16 {
    u16::try_from(class * period).unwrap_or(u16::MAX) | u16::from(key)
}

/// Class and key of a code.
pub(super) fn split_code(code: u16, period: usize) -> (usize, usize) {
    (usize::from(code) / period, usize::from(code) % period)
}

/// Mean latency of each class.
pub(super) fn class_means(patterns: &[Vec<f64>]) -> Vec<f64> {
    patterns.iter().map(|pattern| mean(pattern).unwrap_or(0.0)).collect()
}

/// Mean square by which lines differ from the mean of their node.
pub(super) fn spread(patterns: &[Vec<f64>]) -> f64 {
    let nodes = group_means(&class_means(patterns));
    let squares = patterns.iter().zip(&nodes).map(|(pattern, node)| {
        mean(&pattern.iter().map(|v| (v - node).powi(2)).collect::<Vec<f64>>()).unwrap_or(0.0)
    });
    mean(&squares.collect::<Vec<f64>>()).unwrap_or(0.0)
}

/// Learns the form from looks at the same whole pages, the first core's first. The keys and shapes of
/// pages are learnt from one look of each core together; every look may split classes that only it
/// can tell apart (two memory controllers may be equally far from one core and not from another).
/// `splits` are page means and their error, seen in bases that no look was timed in.
#[must_use]
pub fn learn(looks: &[(CoreId, &Stretch)], splits: &[(Vec<f64>, f64)]) -> Learnt {
    let mut views: Vec<(CoreId, View<'_>)> = Vec::new();
    for (core, stretch) in looks {
        if views.len() < JOINT_LOOKS && views.iter().all(|(seen, _)| seen != core) {
            views.push((*core, View::new(stretch)));
        }
    }
    let views: Vec<View<'_>> = views.into_iter().map(|(_, view)| view).collect();
    let mut learnt = learn_together(&views);
    for (_, stretch) in &looks[1..] {
        split_classes(&mut learnt, &View::new(stretch));
    }
    for (means, noise) in splits {
        split_by(&mut learnt, means, *noise);
    }
    if looks.len() + splits.len() > 1 && learnt.period == 64 && learnt.form != Form::PerLine {
        learnt.patterns = patterns_for(looks[0].1, &learnt, &learnt.codes);
        if learnt.classes() > 1 && learnt.form == Form::Flat {
            learnt.form = Form::Pattern;
            learnt.reason = format!("{} classes of pages, seen from other cores", learnt.classes());
        }
    }
    learnt
}

/// Splits each class whose pages another core sees in separate groups.
fn split_classes(learnt: &mut Learnt, view: &View<'_>) {
    split_by(learnt, &view.page_means(LINES_PER_PAGE), view.level_error());
}

/// Splits each class whose pages lie in separate groups, while codes have room. `means` has the mean
/// of each page that was learnt from, `noise` the standard deviation of its error, cycles.
pub(super) fn split_by(learnt: &mut Learnt, means: &[f64], noise: f64) {
    if learnt.period != 64 || learnt.form == Form::PerLine || means.len() != learnt.codes.len() {
        return;
    }
    for class in 0..learnt.classes() {
        let room = MAX_CLASSES - learnt.classes() + 1;
        let members: Vec<usize> = (0..learnt.codes.len())
            .filter(|i| split_code(learnt.codes[*i], 64).0 == class)
            .collect();
        let values: Vec<f64> = members.iter().map(|i| means[*i]).collect();
        let Some(groups) = choose_k_1d(&values, room.min(LEVELS), noise) else { continue };
        for _ in 1..groups.centers.len() {
            learnt.patterns.push(learnt.patterns[class].clone());
            learnt.shapes.push(learnt.shapes[class]);
        }
        let next = learnt.classes() + 1 - groups.centers.len();
        for (i, group) in members.iter().zip(&groups.assignment) {
            if *group > 0 {
                let (_, key) = split_code(learnt.codes[*i], 64);
                learnt.codes[*i] = join_code(next + group - 1, key.to_le_bytes()[0], 64);
            }
        }
    }
}

fn learn_together(views: &[View<'_>]) -> Learnt {
    let first = &views[0];
    let count = first.lines.len() as f64;
    let half_r = pearson(&first.halves[0], &first.halves[1]).unwrap_or(0.0);
    let repeatable = 2.0 * half_r / (1.0 + half_r);
    let one_node = views.iter().all(|view| view.nodes.iter().all(|node| *node == 0));
    if half_r < SIGNIFICANT_Z / count.sqrt() && one_node {
        return flat(first.stretch, first.lines.len(), half_r);
    }
    let mut learnt = fit(views, 64);
    if learnt.classes() > MAX_CLASSES {
        let reason =
            format!("{} classes of pages, more than the {MAX_CLASSES} of a code", learnt.classes());
        let flat = flat(first.stretch, first.lines.len(), half_r);
        return Learnt { form: Form::PerLine, reason, ..flat };
    }
    // Whether one pattern over 16 KiB tells as much, with a quarter of the codes.
    if learnt.patterns.len() == 1 && distinct(&learnt.codes) > 1 && count >= 256.0 * 32.0 {
        let long = fit(views, 256);
        if long.r2_train >= learnt.r2_train - 0.01 {
            learnt = long;
        }
    }
    learnt.repeatable = repeatable;
    let explained = learnt.r2_train / repeatable.max(f64::MIN_POSITIVE);
    // Where nothing repeats but what nodes differ by, there is nothing that a form could miss.
    let holds = explained >= FORM_HOLDS || half_r < SIGNIFICANT_Z / count.sqrt();
    let share = 100.0 * explained.clamp(0.0, 1.0);
    (learnt.form, learnt.reason) = if holds {
        (Form::Pattern, format!("the form explains {share:.0} % of what repeats"))
    } else {
        (
            Form::PerLine,
            format!(
                "the form explains only {share:.0} % of what repeats between two halves of the rounds"
            ),
        )
    };
    learnt
}

/// The base of another core, or of a later time: the same codes, new latencies. A class that none of
/// the pages has takes the mean of the others on its node, without a shape.
#[must_use]
pub fn patterns_for(stretch: &Stretch, known: &Learnt, codes: &[u16]) -> Vec<Vec<f64>> {
    let rows: Vec<Vec<f64>> =
        filled(&stretch.deviations()).chunks_exact(known.period).map(<[f64]>::to_vec).collect();
    let level = stretch.level();
    let split: Vec<(usize, usize)> =
        codes.iter().map(|code| split_code(*code, known.period)).collect();
    let count = known.shapes.iter().max().map_or(1, |most| most + 1);
    let flat = known.patterns.iter().all(|p| p.iter().all(|v| (v - p[0]).abs() < 1e-9));
    let shapes: Vec<Vec<f64>> = (0..count)
        .map(|shape| {
            let of =
                rows.iter().zip(&split).filter(|(_, (class, _))| known.shapes[*class] == shape);
            if flat { vec![0.0; known.period] } else { aligned_mean(of, known) }
        })
        .collect();
    let centre = |class: usize| -> Option<f64> {
        let members = rows.iter().zip(&split).filter(|(_, (of, _))| *of == class);
        mean(&members.filter_map(|(row, _)| mean(row)).collect::<Vec<f64>>())
    };
    let centres: Vec<Option<f64>> = (0..known.classes()).map(centre).collect();
    let nodes = known.nodes();
    let of_node = |class: usize| {
        let same = centres.iter().zip(&nodes).filter(|(_, node)| **node == nodes[class]);
        mean(&same.filter_map(|(centre, _)| *centre).collect::<Vec<f64>>()).unwrap_or(0.0)
    };
    (0..known.classes())
        .map(|class| {
            let centre = level + centres[class].unwrap_or_else(|| of_node(class));
            shapes[known.shapes[class]].iter().map(|s| centre + s).collect()
        })
        .collect()
}

/// Mean of some pages put in canonical order, each less its own mean.
fn aligned_mean<'a>(
    pages: impl Iterator<Item = (&'a Vec<f64>, &'a (usize, usize))>,
    known: &Learnt,
) -> Vec<f64> {
    let mut base = vec![0.0; known.period];
    let mut count = 0.0;
    for (row, (_, key)) in pages {
        let centre = mean(row).unwrap_or(0.0);
        count += 1.0;
        row.iter().enumerate().for_each(|(i, value)| base[i ^ key] += value - centre);
    }
    base.iter_mut().for_each(|b| *b /= f64::max(count, 1.0));
    if known.keyed { symmetrised(&base, &known.canonical_key) } else { base }
}

fn flat(stretch: &Stretch, lines: usize, half_r: f64) -> Learnt {
    Learnt {
        reason: format!(
            "two halves of the rounds correlate at {half_r:.3}: no difference between lines beyond the noise"
        ),
        patterns: vec![vec![stretch.level(); 64]],
        codes: vec![0; lines / 64],
        repeatable: half_r.max(0.0),
        ..Learnt::nothing()
    }
}

fn fit(views: &[View<'_>], period: usize) -> Learnt {
    let total = views.iter().map(View::strength).sum::<f64>() / views.len() as f64;
    let most = if period == 64 { MAX_CLASSES } else { 1 };
    let grown = if period == 64 { GROWN } else { 1 };
    let mut shaped = shape_of(views, period, total, grown);
    let mut levels = if period == 64 { levels(views) } else { vec![0; shaped.shapes.of.len()] };
    let mut places = class_places(&levels, &shaped.shapes.of);
    let rows = rows_of(views, period, |view| &view.lines);
    while places.len() > most.max(LEVELS) {
        give_up_rarest(&rows, &mut shaped, &mut levels, &places);
        places = class_places(&levels, &shaped.shapes.of);
    }
    keep_used(&mut shaped.shapes);
    let class_of = |place: &(usize, usize)| places.binary_search(place).unwrap_or(0);
    let pages = levels.iter().copied().zip(shaped.shapes.of.iter().copied());
    let codes = pages
        .zip(&shaped.shapes.keys)
        .map(|(place, key)| join_code(class_of(&place), *key, period))
        .collect();
    let worth = shaped.keyed || shaped.common;
    let mut learnt = Learnt {
        form: Form::Pattern,
        period,
        // Only whether they differ, and by how much nodes do, is used of these.
        patterns: vec![
            (0..period).map(|i| if worth { i as f64 } else { 0.0 }).collect();
            places.len()
        ],
        shapes: places.iter().map(|(_, shape)| *shape).collect(),
        canonical_key: shaped.canonical,
        keyed: shaped.keyed,
        codes,
        ..Learnt::nothing()
    };
    learnt.patterns = patterns_for(views[0].stretch, &learnt, &learnt.codes);
    learnt.r2_train = explained(&views[0], &learnt);
    learnt
}

/// Gives the pages of the rarest class to others on the same node, or on the nearest one that has any.
fn give_up_rarest(
    rows: &Rows,
    shaped: &mut Shape,
    levels: &mut [usize],
    places: &[(usize, usize)],
) {
    let pages: Vec<(usize, usize)> =
        levels.iter().copied().zip(shaped.shapes.of.iter().copied()).collect();
    let count = |place: &(usize, usize)| pages.iter().filter(|page| *page == place).count();
    let Some(rarest) = places.iter().copied().min_by_key(count) else { return };
    let rest = places.iter().filter(|place| **place != rarest);
    let Some(level) = rest.clone().map(|p| p.0).min_by_key(|l| l.abs_diff(rarest.0)) else {
        return;
    };
    let among: Vec<usize> = rest.filter(|place| place.0 == level).map(|place| place.1).collect();
    for (page, _) in pages.iter().enumerate().filter(|(_, place)| **place == rarest) {
        let (shape, key) = shaped.shapes.best_of(rows, page, &among);
        levels[page] = level;
        shaped.shapes.of[page] = shape;
        shaped.shapes.keys[page] = shaped.canonical[usize::from(key)];
    }
}

/// Drops shapes that no page has any more.
fn keep_used(shapes: &mut Shapes) {
    let used: Vec<usize> =
        (0..shapes.bases.len()).filter(|shape| shapes.of.contains(shape)).collect();
    for of in &mut shapes.of {
        *of = used.iter().position(|shape| shape == of).unwrap_or(0);
    }
    shapes.bases = used.iter().map(|shape| shapes.bases[*shape].clone()).collect();
}

/// Classes as they occur, ascending: class by node and distance, and shape.
fn class_places(levels: &[usize], shapes: &[usize]) -> Vec<(usize, usize)> {
    let mut places: Vec<(usize, usize)> =
        levels.iter().copied().zip(shapes.iter().copied()).collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// What lines of one page have beyond their page's mean.
struct Shape {
    shapes: Shapes,
    canonical: Vec<u8>,
    keyed: bool,
    /// All pages share one shape that is worth having.
    common: bool,
}

/// Chooses among pages with keys, pages that all lie alike, and pages without shape, by what a
/// shape learnt on one half of the rounds explains of the other: a key that is only noise
/// explains nothing there. Pages with keys may have several shapes, at most `most`.
fn shape_of(views: &[View<'_>], period: usize, total: f64, most: usize) -> Shape {
    let rows = rows_of(views, period, |view| &view.lines);
    let half = [0, 1].map(|i| rows_of(views, period, move |view| &view.halves[i]));
    let count = rows.values.len();
    let zero: Vec<u8> = vec![0; count];
    let unmoved = |rows: &Rows| rows.mean(zero.iter().copied().enumerate());
    let by_common = half[1].gain(&zero, &unmoved(&half[0]));
    let single = by_turns(&rows);
    let by_keys = half[1].gain(&half[0].keys_under(&single.bases[0]), &single.bases[0]);
    let same = single.keys.iter().all(|k| *k == single.keys[0]);
    if by_keys > SHAPE_SHARE * total && (same || by_keys > KEYS_OVER_COMMON * by_common) {
        let mut shapes = if most > 1 { grow(&rows, single, most) } else { single };
        let canonical = equivalent_keys(&shapes, period);
        for key in &mut shapes.keys {
            *key = canonical[usize::from(*key)];
        }
        return Shape { shapes, canonical, keyed: true, common: false };
    }
    Shape {
        shapes: Shapes { bases: vec![unmoved(&rows)], of: vec![0; count], keys: zero },
        canonical: vec![0; period],
        keyed: false,
        common: by_common > COMMON_SHARE * total,
    }
}

/// Share of the variance of lines on their nodes that the form explains.
fn explained(view: &View<'_>, learnt: &Learnt) -> f64 {
    let period = learnt.period;
    let raw = filled(&view.stretch.deviations());
    let level = view.stretch.level();
    let (mut residual, mut total) = (0.0, 0.0);
    let rows = raw.chunks_exact(period).zip(view.lines.chunks_exact(period));
    for ((raw, lines), code) in rows.zip(&learnt.codes) {
        for (i, (raw, line)) in raw.iter().zip(lines).enumerate() {
            residual += (raw + level - learnt.expected(*code, i)).powi(2);
            total += line * line;
        }
    }
    if total > 0.0 { 1.0 - residual / total } else { 0.0 }
}

fn distinct(codes: &[u16]) -> usize {
    let mut seen = codes.to_vec();
    seen.sort_unstable();
    seen.dedup();
    seen.len()
}
