//! The shapes that lines of a page can have, up to a key: base patterns and keys by turns, and as many
//! patterns as it takes.
//!
//! A hash over a power of two of slices gives every page one pattern up to a key. Over other numbers
//! the base sequence is longer than a page (J. D. McCalpin, TR-2021-03, doi 10.26153/tsw/14539: 256 to
//! 16384 lines), so that pages show different parts of it, each permuted by its key. Where a host
//! backs the memory with small frames nothing tells beforehand which part a page shows. So parts are
//! found as clusters: pages alike under the best key. A pattern is added for the page that is explained
//! worst, and stays if it explains more than what it is made of: each page is judged by the mean of
//! the *other* pages of its cluster.

use super::walsh::{correlate, spectrum};

/// Starts of the fit by turns; the best one counts.
const STARTS: usize = 6;
/// Turns after which a fit that still changes is taken as it is.
const MAX_TURNS: usize = 25;
/// Turns of one new pattern alone, before it is judged.
const OWN_TURNS: usize = 4;
/// Pages that a pattern may fail to grow from, in a row, before all patterns are thought found.
const FAILURES: usize = 8;
/// Standard deviations beyond the noise before a page is called unexplained.
const UNEXPLAINED_Z: f64 = 6.0;
/// What a pattern must gain, in squares of the noise: five standard errors of the gain, which has a
/// variance of four times itself.
const LEAST_GAIN: f64 = 100.0;
/// Share of what its pages repeat that a pattern must gain: pages that are told apart by less are
/// better one class with more data.
const LEAST_SHARE: f64 = 0.02;

/// Pages as rows: for each look (core or time) one part, `period` long, less its mean, in units of its
/// noise, so that parts count by what they tell.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    pub(super) values: Vec<Vec<f64>>,
    pub(super) period: usize,
    spectra: Vec<Vec<f64>>,
}

impl Rows {
    pub(super) fn new(values: Vec<Vec<f64>>, period: usize) -> Self {
        let spectra = values.iter().map(|row| spectrum(row, period)).collect();
        Self { values, period, spectra }
    }

    /// Values of one page.
    fn width(&self) -> usize {
        self.values.first().map_or(self.period, Vec::len)
    }

    /// Page `page` put in canonical order.
    fn aligned(&self, page: usize, key: u8) -> impl Iterator<Item = f64> + '_ {
        let row = &self.values[page];
        (0..row.len()).map(move |i| row[i ^ usize::from(key)])
    }

    /// The mean of some pages put in canonical order.
    pub(super) fn mean(&self, members: impl Iterator<Item = (usize, u8)>) -> Vec<f64> {
        let mut base = vec![0.0; self.width()];
        let mut count = 0.0;
        for (page, key) in members {
            count += 1.0;
            base.iter_mut().zip(self.aligned(page, key)).for_each(|(b, v)| *b += v);
        }
        base.iter_mut().for_each(|b| *b /= f64::max(count, 1.0));
        base
    }

    /// The key under which a page fits a pattern best, and the sum of products there.
    fn best_key(&self, page: usize, pattern: &[f64]) -> (u8, f64) {
        let sums = correlate(&self.spectra[page], pattern, self.period);
        let best = sums.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        best.map_or((0, 0.0), |(key, sum)| (key.to_le_bytes()[0], *sum))
    }

    /// Keys of all pages under one pattern.
    pub(super) fn keys_under(&self, base: &[f64]) -> Vec<u8> {
        let pattern = spectrum(base, self.period);
        (0..self.values.len()).map(|page| self.best_key(page, &pattern).0).collect()
    }

    /// Mean square that a pattern under these keys explains.
    pub(super) fn gain(&self, keys: &[u8], base: &[f64]) -> f64 {
        let one = |(page, key): (usize, &u8)| -> f64 {
            self.aligned(page, *key).zip(base).map(|(v, b)| 2.0 * v * b - b * b).sum()
        };
        let sum: f64 = keys.iter().enumerate().map(one).sum();
        sum / (self.values.len() * self.width()).max(1) as f64
    }

    fn energy(&self, page: usize) -> f64 {
        self.values[page].iter().map(|v| v * v).sum()
    }
}

/// Patterns, and which of them each page has, under which key.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Shapes {
    pub(super) bases: Vec<Vec<f64>>,
    pub(super) of: Vec<usize>,
    pub(super) keys: Vec<u8>,
}

impl Shapes {
    /// The shape out of some, and the key, that explain most of a page.
    pub(super) fn best_of(&self, rows: &Rows, page: usize, among: &[usize]) -> (usize, u8) {
        let explained = |shape: &usize| {
            let base = &self.bases[*shape];
            let (key, product) = rows.best_key(page, &spectrum(base, rows.period));
            (2.0 * product - base.iter().map(|b| b * b).sum::<f64>(), *shape, key)
        };
        let best = among.iter().map(explained).max_by(|a, b| a.0.total_cmp(&b.0));
        best.map_or((self.of[page], self.keys[page]), |(_, shape, key)| (shape, key))
    }
}

/// One pattern and the keys of all pages by turns, from several starts.
pub(super) fn by_turns(rows: &Rows) -> Shapes {
    let stride = (rows.values.len() / STARTS).max(1);
    let starts = rows.values.iter().step_by(stride);
    let best = starts.map(|start| turns_from(rows, start)).max_by(|a, b| a.2.total_cmp(&b.2));
    let (base, keys, _) = best.unwrap_or_default();
    Shapes { of: vec![0; keys.len()], bases: vec![base], keys }
}

/// One start: the base, the keys and the energy explained.
fn turns_from(rows: &Rows, start: &[f64]) -> (Vec<f64>, Vec<u8>, f64) {
    let mut base = start.to_vec();
    let mut keys: Vec<u8> = vec![0; rows.values.len()];
    for _ in 0..MAX_TURNS {
        let next = rows.keys_under(&base);
        base = rows.mean(next.iter().copied().enumerate());
        if next == keys {
            break;
        }
        keys = next;
    }
    let energy = rows.gain(&keys, &base);
    (base, keys, energy)
}

/// Adds patterns to a single one, at most `most` in all, while each explains what no other does.
pub(super) fn grow(rows: &Rows, first: Shapes, most: usize) -> Shapes {
    let mut shapes = Fit::of(rows, first);
    let mut tried = vec![false; rows.values.len()];
    let mut failures = 0;
    let noise = rows.width() as f64;
    let unexplained = noise + UNEXPLAINED_Z * (2.0 * noise).sqrt();
    while shapes.shapes.bases.len() < most && failures < FAILURES {
        let left = |page: usize| rows.energy(page) - shapes.explained[page];
        let worst = (0..tried.len())
            .filter(|page| !tried[*page])
            .map(|page| (left(page), page))
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let Some((_, seed)) = worst.filter(|(left, _)| *left > unexplained) else { break };
        tried[seed] = true;
        match shapes.with_new(rows, seed) {
            Some(more) => (shapes, failures) = (more, 0),
            None => failures += 1,
        }
    }
    shapes.settle(rows).shapes
}

/// Shapes with what each page is explained of by the *other* pages of its shape.
#[derive(Clone, Debug)]
struct Fit {
    shapes: Shapes,
    explained: Vec<f64>,
}

impl Fit {
    fn of(rows: &Rows, mut shapes: Shapes) -> Self {
        let count = shapes.bases.len();
        let mut members = vec![0_usize; count];
        shapes.of.iter().for_each(|shape| members[*shape] += 1);
        for (shape, base) in shapes.bases.iter_mut().enumerate() {
            let of = shapes.of.iter().zip(&shapes.keys).enumerate();
            *base = rows.mean(of.filter(|(_, (s, _))| **s == shape).map(|(p, (_, k))| (p, *k)));
        }
        let explained = (0..rows.values.len())
            .map(|page| {
                let (shape, key) = (shapes.of[page], shapes.keys[page]);
                let base = &shapes.bases[shape];
                let product: f64 = rows.aligned(page, key).zip(base).map(|(v, b)| v * b).sum();
                let square: f64 = base.iter().map(|b| b * b).sum();
                without_itself(members[shape], product, square, rows.energy(page))
            })
            .collect();
        Self { shapes, explained }
    }

    /// One shape more, grown from a page; `None` if it is not worth one.
    fn with_new(&self, rows: &Rows, seed: usize) -> Option<Self> {
        let old: Vec<f64> = (0..rows.values.len()).map(|page| self.fit_of(rows, page)).collect();
        let mut base = rows.values[seed].clone();
        let mut members: Vec<(usize, u8)> = Vec::new();
        for _ in 0..OWN_TURNS {
            let pattern = spectrum(&base, rows.period);
            let square: f64 = base.iter().map(|b| b * b).sum();
            let joins = |page: usize| {
                let (key, product) = rows.best_key(page, &pattern);
                (2.0 * product - square > old[page]).then_some((page, key))
            };
            let next: Vec<(usize, u8)> = (0..old.len()).filter_map(joins).collect();
            base = rows.mean(next.iter().copied());
            if next == members {
                break;
            }
            members = next;
        }
        if members.len() < 2 {
            return None;
        }
        let mut shapes = self.shapes.clone();
        shapes.bases.push(base);
        let shapes = reassigned(rows, &shapes);
        let more = Self::of(rows, shapes);
        let newest = more.shapes.bases.len() - 1;
        let own = (0..rows.values.len()).filter(|page| more.shapes.of[*page] == newest);
        let signal: f64 = own.map(|page| rows.energy(page) - rows.width() as f64).sum();
        let gain = more.explained.iter().sum::<f64>() - self.explained.iter().sum::<f64>();
        (gain > LEAST_GAIN.max(LEAST_SHARE * signal)).then_some(more)
    }

    /// What the shape that a page has explains of it.
    fn fit_of(&self, rows: &Rows, page: usize) -> f64 {
        let base = &self.shapes.bases[self.shapes.of[page]];
        let aligned = rows.aligned(page, self.shapes.keys[page]);
        aligned.zip(base).map(|(v, b)| 2.0 * v * b - b * b).sum()
    }

    /// Turns until nothing changes; shapes that lost all pages are dropped.
    fn settle(mut self, rows: &Rows) -> Self {
        for _ in 0..MAX_TURNS {
            let next = reassigned(rows, &self.shapes);
            let same = next == self.shapes;
            self = Self::of(rows, next);
            if same {
                break;
            }
        }
        let used: Vec<usize> =
            (0..self.shapes.bases.len()).filter(|shape| self.shapes.of.contains(shape)).collect();
        let place = |shape: usize| used.iter().position(|used| *used == shape).unwrap_or(0);
        let of = self.shapes.of.iter().map(|shape| place(*shape)).collect();
        let bases = used.iter().map(|shape| self.shapes.bases[*shape].clone()).collect();
        Self { shapes: Shapes { bases, of, keys: self.shapes.keys }, ..self }
    }
}

/// Each page to the shape and key that explain most of it.
fn reassigned(rows: &Rows, shapes: &Shapes) -> Shapes {
    let patterns: Vec<Vec<f64>> =
        shapes.bases.iter().map(|base| spectrum(base, rows.period)).collect();
    let squares: Vec<f64> =
        shapes.bases.iter().map(|base| base.iter().map(|b| b * b).sum()).collect();
    let mut next = shapes.clone();
    for page in 0..rows.values.len() {
        let mut best = f64::NEG_INFINITY;
        for (shape, (pattern, square)) in patterns.iter().zip(&squares).enumerate() {
            let (key, product) = rows.best_key(page, pattern);
            if 2.0 * product - square > best {
                best = 2.0 * product - square;
                (next.of[page], next.keys[page]) = (shape, key);
            }
        }
    }
    next
}

/// What the mean of the other `members - 1` pages explains of a page, `2 x p - p p`, from the mean `b`
/// of all of them: `product` is `x b`, `square` `b b`, `energy` `x x`.
fn without_itself(members: usize, product: f64, square: f64, energy: f64) -> f64 {
    if members < 2 {
        return 0.0;
    }
    let (m, others) = (members as f64, (members - 1) as f64);
    let cross = (m * product - energy) / others;
    let own = (m * m * square - 2.0 * m * product + energy) / (others * others);
    2.0 * cross - own
}

#[cfg(test)]
mod tests {
    use super::*;
    use isochrone_stats::{below, rng, uniform};

    /// Pages of `shapes` random patterns of one look, each under a random key, with unit noise.
    fn pages(shapes: usize, count: usize, height: f64, seed: u64) -> (Rows, Vec<usize>, Vec<u8>) {
        let mut rng = rng(seed);
        let mut bell = {
            let mut rng = rng.clone();
            move || (0..12).map(|_| uniform(&mut rng)).sum::<f64>() - 6.0
        };
        let bases: Vec<Vec<f64>> =
            (0..shapes).map(|_| (0..64).map(|_| height * bell()).collect()).collect();
        let of: Vec<usize> = (0..count).map(|page| page % shapes).collect();
        let keys: Vec<u8> = (0..count).map(|_| below(&mut rng, 64).to_le_bytes()[0]).collect();
        let row = |(shape, key): (&usize, &u8)| {
            (0..64).map(|i| bases[*shape][i ^ usize::from(*key)] + bell()).collect()
        };
        let values = of.iter().zip(&keys).map(row).collect();
        (Rows::new(values, 64), of, keys)
    }

    #[test]
    fn as_many_shapes_are_found_as_there_are() {
        for (shapes, height) in [(1, 2.0), (3, 1.5), (8, 3.0), (16, 3.0)] {
            let (rows, of, keys) = pages(shapes, 128, height, 5);
            let found = grow(&rows, by_turns(&rows), 16);
            assert_eq!(found.bases.len(), shapes, "height {height}");
            for (a, b) in (0..128).flat_map(|a| (0..a).map(move |b| (a, b))) {
                let alike = found.of[a] == found.of[b];
                assert_eq!(alike, of[a] == of[b], "pages {a} and {b}");
                if alike {
                    assert_eq!(found.keys[a] ^ found.keys[b], keys[a] ^ keys[b], "{a}, {b}");
                }
            }
        }
    }

    #[test]
    fn noise_is_one_shape_and_a_lone_page_none() {
        let (rows, _, _) = pages(1, 96, 0.0, 3);
        assert_eq!(grow(&rows, by_turns(&rows), 16).bases.len(), 1);
        let (mut rows, _, _) = pages(1, 96, 3.0, 4);
        let (other, _, _) = pages(1, 1, 3.0, 9);
        rows.values[17] = other.values[0].clone();
        let rows = Rows::new(rows.values, 64);
        assert_eq!(grow(&rows, by_turns(&rows), 16).bases.len(), 1);
    }

    #[test]
    fn a_page_is_judged_by_the_others() {
        let (rows, _, _) = pages(1, 9, 2.0, 6);
        let keys = by_turns(&rows).keys;
        let all = rows.mean(keys.iter().copied().enumerate());
        for page in 0..9 {
            let others = keys.iter().copied().enumerate().filter(|(p, _)| *p != page);
            let mean = rows.mean(others);
            let direct: f64 =
                rows.aligned(page, keys[page]).zip(&mean).map(|(v, b)| 2.0 * v * b - b * b).sum();
            let product = rows.aligned(page, keys[page]).zip(&all).map(|(v, b)| v * b).sum();
            let square = all.iter().map(|b| b * b).sum();
            let found = without_itself(9, product, square, rows.energy(page));
            assert!((direct - found).abs() < 1e-9, "{direct} {found}");
        }
    }
}
