//! Learns a level's form from fully timed pages: how many classes of pages there are, the base
//! pattern, and each page's key, by turns.
//!
//! The form is `latency(core, page, i) = base[core][class(page)][i ^ key(page)]`. Given the base,
//! a page's key is the XOR permutation under which it fits best; given the keys, the base is the
//! mean of the pages put in canonical order. Keys whose patterns correlate at 0.98 or more
//! cannot be told apart and cost nothing when confused, so they are one. Where the form does not
//! hold the result says so and carries the figure that decided; nothing is forced to fit.

use isochrone_atlas_store::contents::Form;
use isochrone_stats::{choose_k_1d, mean, pearson, variance};

use super::rounds::Stretch;

/// Correlation at which two keys' patterns are one.
pub(super) const SAME_KEY: f64 = 0.98;
/// Most classes of pages that a one-byte code has room for beside a 6-bit key.
pub(super) const MAX_CLASSES: usize = 4;
/// Share of the repeatable variance that the form must explain to be called the form.
const FORM_HOLDS: f64 = 0.8;
/// Standard errors by which two halves of the data must correlate to call anything a pattern.
const SIGNIFICANT_Z: f64 = 5.0;
/// A shape inside pages that carries less than this share of the repeatable variance is not
/// worth a key: being wrong about it costs less than reading the lines that would tell.
const SHAPE_SHARE: f64 = 0.02;
/// What keys must explain over a shape that all pages share, to be believed.
const KEYS_OVER_COMMON: f64 = 1.1;
/// A shape that all pages share costs nothing to decode, so less of it is worth having.
const COMMON_SHARE: f64 = 0.002;
/// Starts of the fit by turns; the best one counts.
const STARTS: usize = 6;
/// Turns after which a fit that still changes is taken as it is.
const MAX_TURNS: usize = 25;

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
    /// For each key the smallest equivalent one; all 0 where pages have no keys.
    pub canonical_key: Vec<u8>,
    /// Whether pages have keys at all, or all lie alike.
    pub keyed: bool,
    /// Code of each training page (period 64) or 16 KiB block (period 256).
    pub codes: Vec<u8>,
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
            canonical_key: vec![0; 64],
            keyed: false,
            codes: Vec::new(),
            r2_train: 0.0,
            repeatable: 0.0,
        }
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
    pub fn distinct_codes(&self) -> Vec<u8> {
        let is_own = |k: &u8| self.canonical_key[usize::from(*k)] == *k;
        let keys: Vec<u8> = (0_u8..=255).take(self.period).filter(is_own).collect();
        (0_u8..=255)
            .take(self.patterns.len())
            .flat_map(|class| keys.iter().map(move |key| join_code(class, *key)))
            .collect()
    }

    /// Latency that the form gives line `index` of a page with this code.
    #[must_use]
    pub fn expected(&self, code: u8, index: usize) -> f64 {
        let (class, key) = split_code(code, self.period);
        self.patterns[class][index ^ key]
    }
}

/// One byte from a class and a key of at most 6 bits (period 64).
pub(super) const fn join_code(class: u8, key: u8) -> u8 {
    class << 6 | key
}

/// Class and key of a code: with period 256 the byte is all key.
pub(super) const fn split_code(code: u8, period: usize) -> (usize, usize) {
    if period == 64 { ((code >> 6) as usize, (code & 63) as usize) } else { (0, code as usize) }
}

/// Learns the form from stretches over the same whole pages, one from each core. The first core's
/// stretch gives base and keys; the others split classes that only they can tell apart (two
/// memory controllers may be equally far from one core and not from another). `splits` are page means
/// and their error, seen in bases that no stretch was timed in.
#[must_use]
pub fn learn(stretches: &[&Stretch], splits: &[(Vec<f64>, f64)]) -> Learnt {
    let mut learnt = learn_from_one(stretches[0]);
    for stretch in &stretches[1..] {
        split_classes(&mut learnt, stretch);
    }
    for (means, noise) in splits {
        split_by(&mut learnt, means, *noise);
    }
    if stretches.len() + splits.len() > 1 && learnt.period == 64 && learnt.form != Form::PerLine {
        learnt.patterns = patterns_for(stretches[0], &learnt, &learnt.codes);
        if learnt.classes() > 1 && learnt.form == Form::Flat {
            learnt.form = Form::Pattern;
            learnt.reason = format!("{} classes of pages, seen from other cores", learnt.classes());
        }
    }
    learnt
}

/// Splits each class whose pages another core sees in separate groups.
fn split_classes(learnt: &mut Learnt, stretch: &Stretch) {
    let means: Vec<f64> =
        rows_of(&filled(&stretch.deviations()), 64).iter().filter_map(|r| mean(r)).collect();
    split_by(learnt, &means, stretch.noise() / f64::from(stretch.rounds.max(1) * 64).sqrt());
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
        let Some(groups) = choose_k_1d(&values, room, noise) else { continue };
        for _ in 1..groups.centers.len() {
            learnt.patterns.push(learnt.patterns[class].clone());
        }
        let next = learnt.classes() + 1 - groups.centers.len();
        for (i, group) in members.iter().zip(&groups.assignment) {
            if *group > 0 {
                let class = (next + group - 1).to_le_bytes()[0];
                learnt.codes[*i] = join_code(class, learnt.codes[*i] & 63);
            }
        }
    }
}

fn learn_from_one(stretch: &Stretch) -> Learnt {
    let deviations = filled(&stretch.deviations());
    let halves = [filled(&stretch.half(0)), filled(&stretch.half(1))];
    let count = deviations.len() as f64;
    let half_r = pearson(&halves[0], &halves[1]).unwrap_or(0.0);
    let repeatable = 2.0 * half_r / (1.0 + half_r);
    if half_r < SIGNIFICANT_Z / count.sqrt() {
        return flat(stretch, deviations.len(), half_r);
    }
    let short = fit(stretch, &deviations, &halves, 64);
    let long = fit(stretch, &deviations, &halves, 256);
    let short_codes = distinct(&short.codes);
    let long_holds = short_codes > 1
        && short.patterns.len() == 1
        && long.r2_train >= short.r2_train - 0.01
        && deviations.len() >= 256 * 32;
    let mut learnt = if long_holds { long } else { short };
    learnt.repeatable = repeatable;
    let explained = learnt.r2_train / repeatable;
    (learnt.form, learnt.reason) = if explained >= FORM_HOLDS {
        (
            Form::Pattern,
            format!("the form explains {:.0} % of what repeats", 100.0 * explained.min(1.0)),
        )
    } else {
        let share = 100.0 * explained.max(0.0);
        (
            Form::PerLine,
            format!(
                "the form explains only {share:.0} % of what repeats between two halves of the rounds"
            ),
        )
    };
    learnt
}

/// The base of another core, or of a later time: the same codes, new latencies.
#[must_use]
pub fn patterns_for(stretch: &Stretch, known: &Learnt, codes: &[u8]) -> Vec<Vec<f64>> {
    let rows = rows_of(&filled(&stretch.deviations()), known.period);
    let level = stretch.level();
    let shape = aligned_mean(&rows, codes, known.period);
    let shape = if known.keyed { symmetrised(&shape, &known.canonical_key) } else { shape };
    let flat_shape = known.patterns.iter().all(|p| p.iter().all(|v| (v - p[0]).abs() < 1e-9));
    (0..known.classes())
        .map(|class| {
            let members = rows.iter().zip(codes);
            let means: Vec<f64> = members
                .filter(|(_, code)| split_code(**code, known.period).0 == class)
                .filter_map(|(row, _)| mean(row))
                .collect();
            let centre = level + mean(&means).unwrap_or(0.0);
            let line = |j: usize| if flat_shape { centre } else { centre + shape[j] };
            (0..known.period).map(line).collect()
        })
        .collect()
}

fn flat(stretch: &Stretch, lines: usize, half_r: f64) -> Learnt {
    Learnt {
        form: Form::Flat,
        reason: format!(
            "two halves of the rounds correlate at {half_r:.3}: no difference between lines beyond the noise"
        ),
        period: 64,
        patterns: vec![vec![stretch.level(); 64]],
        canonical_key: vec![0; 64],
        keyed: false,
        codes: vec![0; lines / 64],
        r2_train: 0.0,
        repeatable: half_r.max(0.0),
    }
}

fn fit(stretch: &Stretch, deviations: &[f64], halves: &[Vec<f64>; 2], period: usize) -> Learnt {
    let rows = rows_of(deviations, period);
    let noise = stretch.noise() / f64::from(stretch.rounds.max(1)).sqrt();
    let means: Vec<f64> = rows.iter().map(|r| mean(r).unwrap_or(0.0)).collect();
    let max_classes = if period == 64 { MAX_CLASSES } else { 1 };
    let (centers, classes) = match choose_k_1d(&means, max_classes, noise / (period as f64).sqrt())
    {
        Some(found) => (found.centers, found.assignment),
        None => (vec![mean(&means).unwrap_or(0.0)], vec![0; rows.len()]),
    };
    let Shape { base: shape, keys, canonical, keyed } =
        shape_of(&rows, halves, period, noise, variance(deviations).unwrap_or(0.0));
    let level = stretch.level();
    let patterns: Vec<Vec<f64>> =
        centers.iter().map(|centre| shape.iter().map(|s| level + centre + s).collect()).collect();
    let codes: Vec<u8> = classes
        .iter()
        .zip(&keys)
        .map(|(class, key)| {
            let class = u8::try_from(*class).expect("at most four classes");
            if period == 64 { join_code(class, *key) } else { *key }
        })
        .collect();
    let r2_train = explained(&rows, &codes, &patterns, level, period);
    Learnt {
        form: Form::Pattern,
        reason: String::new(),
        period,
        patterns,
        canonical_key: canonical,
        keyed,
        codes,
        r2_train,
        repeatable: 0.0,
    }
}

/// What lines of one page have beyond their page's mean.
struct Shape {
    base: Vec<f64>,
    keys: Vec<u8>,
    canonical: Vec<u8>,
    keyed: bool,
}

/// Chooses among pages with keys, pages that all lie alike, and pages without shape, by what a
/// shape learnt on one half of the rounds explains of the other: a key that is only noise
/// explains nothing there.
fn shape_of(
    rows: &[Vec<f64>],
    halves: &[Vec<f64>; 2],
    period: usize,
    noise: f64,
    total: f64,
) -> Shape {
    let bare = bare_rows(rows);
    let half = [bare_rows(&rows_of(&halves[0], period)), bare_rows(&rows_of(&halves[1], period))];
    let zero: Vec<u8> = vec![0; rows.len()];
    let common = aligned_mean(&half[0], &zero, period);
    let by_common = gain(&half[1], &zero, &common, period);
    let (base, keys, canonical) = by_turns(&bare, period, noise);
    let from_half: Vec<u8> = half[0].iter().map(|row| best_key(row, &base)).collect();
    let by_keys = gain(&half[1], &from_half, &base, period);
    let same = keys.iter().all(|k| *k == keys[0]);
    if by_keys > SHAPE_SHARE * total && (same || by_keys > KEYS_OVER_COMMON * by_common) {
        Shape { base, keys, canonical, keyed: true }
    } else {
        let worth = by_common > COMMON_SHARE * total;
        let base = if worth { aligned_mean(&bare, &zero, period) } else { vec![0.0; period] };
        Shape { base, keys: zero, canonical: vec![0; period], keyed: false }
    }
}

/// Mean square of `rows` that a base under these keys explains.
fn gain(rows: &[Vec<f64>], keys: &[u8], base: &[f64], period: usize) -> f64 {
    let one = |row: &Vec<f64>, key: u8| -> f64 {
        let at = |i: usize| base[i ^ usize::from(key)];
        row.iter().enumerate().map(|(i, v)| 2.0 * v * at(i) - at(i) * at(i)).sum()
    };
    let sum: f64 = rows.iter().zip(keys).map(|(row, key)| one(row, *key)).sum();
    sum / (rows.len() * period).max(1) as f64
}

/// Pages less their own means.
fn bare_rows(rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let bare = |row: &Vec<f64>| {
        let centre = mean(row).unwrap_or(0.0);
        row.iter().map(|v| v - centre).collect()
    };
    rows.iter().map(bare).collect()
}

/// Base and keys by turns from several starts; then keys that cannot be told apart are joined.
fn by_turns(rows: &[Vec<f64>], period: usize, noise: f64) -> (Vec<f64>, Vec<u8>, Vec<u8>) {
    let stride = (rows.len() / STARTS).max(1);
    let best = rows
        .iter()
        .step_by(stride)
        .map(|start| turns_from(rows, start.clone(), period))
        .max_by(|a, b| a.2.total_cmp(&b.2));
    let Some((base, keys, _)) = best else { return (vec![0.0; period], vec![], vec![0; period]) };
    let canonical = equivalent_keys(&base, noise / (rows.len() as f64).sqrt());
    let keys: Vec<u8> = keys.iter().map(|k| canonical[usize::from(*k)]).collect();
    (symmetrised(&base, &canonical), keys, canonical)
}

/// One start: returns the base, the keys and the energy explained.
fn turns_from(rows: &[Vec<f64>], mut base: Vec<f64>, period: usize) -> (Vec<f64>, Vec<u8>, f64) {
    let mut keys: Vec<u8> = vec![0; rows.len()];
    for _ in 0..MAX_TURNS {
        let next: Vec<u8> = rows.iter().map(|row| best_key(row, &base)).collect();
        base = aligned_mean(rows, &next, period);
        if next == keys {
            break;
        }
        keys = next;
    }
    let energy = rows
        .iter()
        .zip(&keys)
        .map(|(row, key)| {
            row.iter().enumerate().map(|(i, v)| v * base[i ^ usize::from(*key)]).sum::<f64>()
        })
        .sum();
    (base, keys, energy)
}

/// The key under which a page fits a base best.
fn best_key(row: &[f64], base: &[f64]) -> u8 {
    let score = |key: usize| row.iter().enumerate().map(|(i, v)| v * base[i ^ key]).sum::<f64>();
    let best = (0..base.len()).map(|k| (score(k), k)).max_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or(0, |(_, k)| k.to_le_bytes()[0])
}

/// Mean of the pages put in canonical order, each less its own mean.
fn aligned_mean(rows: &[Vec<f64>], codes: &[u8], period: usize) -> Vec<f64> {
    let mut base = vec![0.0; period];
    for (row, code) in rows.iter().zip(codes) {
        let (_, key) = split_code(*code, period);
        let centre = mean(row).unwrap_or(0.0);
        for (i, value) in row.iter().enumerate() {
            base[i ^ key] += (value - centre) / rows.len() as f64;
        }
    }
    base
}

/// For each key the smallest key of its class. Classes are cosets of a subgroup of XOR keys:
/// the keys that leave the base as it is (at [`SAME_KEY`], its own noise allowed for).
fn equivalent_keys(base: &[f64], base_noise: f64) -> Vec<u8> {
    let period = base.len();
    let total = variance(base).unwrap_or(0.0);
    let reliability = (1.0 - base_noise * base_noise / total.max(f64::MIN_POSITIVE)).max(0.5);
    let correlation = |key: usize| -> f64 {
        let moved: Vec<f64> = (0..period).map(|i| base[i ^ key]).collect();
        pearson(base, &moved).unwrap_or(0.0) / reliability
    };
    let same: Vec<bool> = (0..period).map(|k| k == 0 || correlation(k) >= SAME_KEY).collect();
    let mut by_strength: Vec<usize> = (1..period).filter(|k| same[*k]).collect();
    by_strength.sort_by(|a, b| correlation(*b).total_cmp(&correlation(*a)));
    let mut group: Vec<usize> = vec![0];
    for key in by_strength {
        if group.contains(&key) {
            continue;
        }
        let coset: Vec<usize> = group.iter().map(|g| g ^ key).collect();
        if coset.iter().all(|k| same[*k]) {
            group.extend(coset);
        }
    }
    (0..period).map(|k| group.iter().map(|g| g ^ k).min().unwrap_or(k).to_le_bytes()[0]).collect()
}

/// The base averaged over keys that are one: less noise, and exactly equal where it is equal.
fn symmetrised(base: &[f64], canonical: &[u8]) -> Vec<f64> {
    let group: Vec<usize> = (0..base.len()).filter(|k| canonical[*k] == 0).collect();
    (0..base.len())
        .map(|i| group.iter().map(|g| base[i ^ g]).sum::<f64>() / group.len() as f64)
        .collect()
}

fn explained(
    rows: &[Vec<f64>],
    codes: &[u8],
    patterns: &[Vec<f64>],
    level: f64,
    period: usize,
) -> f64 {
    let (mut residual, mut total) = (0.0, 0.0);
    for (row, code) in rows.iter().zip(codes) {
        let (class, key) = split_code(*code, period);
        for (i, value) in row.iter().enumerate() {
            residual += (value + level - patterns[class][i ^ key]).powi(2);
            total += value * value;
        }
    }
    if total > 0.0 { 1.0 - residual / total } else { 0.0 }
}

fn rows_of(deviations: &[f64], period: usize) -> Vec<Vec<f64>> {
    deviations.chunks_exact(period).map(<[f64]>::to_vec).collect()
}

fn distinct(codes: &[u8]) -> usize {
    let mut seen = codes.to_vec();
    seen.sort_unstable();
    seen.dedup();
    seen.len()
}

/// A line of which no sample was kept takes its page's mean: it then says nothing.
fn filled(values: &[f64]) -> Vec<f64> {
    let mut out = values.to_vec();
    for page in out.chunks_mut(64) {
        let known: Vec<f64> = page.iter().copied().filter(|v| v.is_finite()).collect();
        let centre = mean(&known).unwrap_or(0.0);
        for value in page.iter_mut().filter(|v| !v.is_finite()) {
            *value = centre;
        }
    }
    out
}
