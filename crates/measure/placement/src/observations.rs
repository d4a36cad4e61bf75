//! What was measured, as a flat list of links between places to be found: core to core, or core
//! to memory column. Fits, held-out tests and permutations all work on this one list.

use super::latencies::{ColumnLatencies, PairLatencies};
use super::line;

/// One measured latency. `b` is an item too where pairs are placed, else a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Link {
    /// The item.
    pub(super) a: usize,
    /// The other item, or the column.
    pub(super) b: usize,
    /// The latency.
    pub(super) latency: f64,
}

/// All links of one kind.
#[derive(Clone, Debug)]
pub(super) struct Observations {
    /// Items to place.
    pub(super) items: usize,
    /// Items that need a cell: more than these where they are a sample.
    pub(super) whole: usize,
    /// Columns to place with them; `None` where links join items.
    pub(super) columns: Option<usize>,
    /// The links, in a fixed order.
    pub(super) links: Vec<Link>,
}

impl Observations {
    /// Links between items.
    pub(super) fn of_pairs(pairs: &PairLatencies) -> Self {
        let n = pairs.cores();
        let mut links = Vec::new();
        for a in 0..n {
            for b in a + 1..n {
                links.extend(pairs.get(a, b).map(|latency| Link { a, b, latency }));
            }
        }
        Self { items: n, whole: n, columns: None, links }
    }

    /// Links from items to columns, each column less its mean: what tells a region on another
    /// kind of memory from the rest says nothing of places.
    pub(super) fn of_columns(columns: &ColumnLatencies) -> Self {
        let k = columns.columns().len();
        let mut links = Vec::new();
        for b in 0..k {
            let column = columns.column(b);
            let seen: Vec<f64> = column.iter().copied().flatten().collect();
            let mean = line::mean(&seen);
            let each = column.into_iter().enumerate();
            links.extend(each.filter_map(|(a, l)| Some(Link { a, b, latency: l? - mean })));
        }
        let n = columns.cores();
        Self { items: n, whole: n, columns: Some(k), links }
    }

    /// The latencies in the order of the links.
    pub(super) fn latencies(&self) -> Vec<f64> {
        self.links.iter().map(|link| link.latency).collect()
    }

    /// The same links with other latencies.
    pub(super) fn with_latencies(&self, latencies: &[f64]) -> Self {
        let links = self.links.iter().zip(latencies);
        Self {
            items: self.items,
            whole: self.whole,
            columns: self.columns,
            links: links.map(|(link, &latency)| Link { latency, ..*link }).collect(),
        }
    }

    /// The links for which `keep` holds.
    pub(super) fn kept(&self, keep: impl Fn(usize) -> bool) -> Self {
        let links = self.links.iter().enumerate().filter(|&(at, _)| keep(at));
        Self {
            items: self.items,
            whole: self.whole,
            columns: self.columns,
            links: links.map(|(_, link)| *link).collect(),
        }
    }

    /// The links of some items, which are numbered in the order of `chosen`.
    pub(super) fn of_items(&self, chosen: &[usize]) -> Self {
        let mut place = vec![None; self.items];
        chosen.iter().enumerate().for_each(|(at, &item)| place[item] = Some(at));
        let far = |b: usize| if self.columns.is_some() { Some(b) } else { place[b] };
        let links = self.links.iter();
        let links =
            links.filter_map(|link| Some(Link { a: place[link.a]?, b: far(link.b)?, ..*link }));
        Self {
            items: chosen.len(),
            whole: self.whole,
            columns: self.columns,
            links: links.collect(),
        }
    }

    /// How many links the item with the fewest has.
    pub(super) fn fewest_links(&self) -> usize {
        let mut seen = vec![0; self.items];
        for link in &self.links {
            seen[link.a] += 1;
            if self.columns.is_none() {
                seen[link.b] += 1;
            }
        }
        seen.into_iter().min().unwrap_or(0)
    }

    /// What each core and each column by itself explains: `mean + effect of a + effect of b`. A
    /// slow core is slow to everybody; that is no distance.
    pub(super) fn additive(&self) -> Vec<f64> {
        let effects = Effects::fit(self);
        self.links.iter().map(|link| effects.predict(self, link.a, link.b)).collect()
    }

    /// A full symmetric matrix between items, missing cells filled by what the additive effects
    /// say. Only for links between items.
    pub(super) fn filled(&self) -> Vec<f64> {
        let n = self.items;
        let effects = Effects::fit(self);
        let mut matrix: Vec<f64> =
            (0..n * n).map(|at| effects.predict(self, at / n, at % n)).collect();
        for link in &self.links {
            matrix[link.a * n + link.b] = link.latency;
            matrix[link.b * n + link.a] = link.latency;
        }
        matrix
    }

    /// A stand-in for core-to-core distance where only columns were measured: cores that see all
    /// columns alike are near each other.
    pub(super) fn profile_distances(&self) -> Self {
        let k = self.columns.unwrap_or(0);
        let mut rows = vec![None; self.items * k];
        for link in &self.links {
            rows[link.a * k + link.b] = Some(link.latency);
        }
        let row = |core: usize| &rows[core * k..(core + 1) * k];
        let mut links = Vec::new();
        for a in 0..self.items {
            for b in a + 1..self.items {
                let both = row(a).iter().zip(row(b)).filter_map(|(x, y)| Some(((*x)?, (*y)?)));
                let gaps: Vec<f64> = both.map(|(x, y)| (x - y).abs()).collect();
                if !gaps.is_empty() {
                    links.push(Link { a, b, latency: line::mean(&gaps) });
                }
            }
        }
        Self { items: self.items, whole: self.whole, columns: None, links }
    }
}

/// Mean and one effect for each item, and for each column where there are columns.
struct Effects {
    mean: f64,
    of: Vec<f64>,
}

impl Effects {
    /// Rounds of the alternating fit. Full matrices settle in two or three.
    const ROUNDS: usize = 12;

    /// Where the effect of a link's far side is kept.
    fn far(observations: &Observations, b: usize) -> usize {
        if observations.columns.is_some() { observations.items + b } else { b }
    }

    fn fit(observations: &Observations) -> Self {
        let size = observations.items + observations.columns.unwrap_or(0);
        let mean = line::mean(&observations.latencies());
        let mut of = vec![0.0; size];
        let mut count = vec![0.0; size];
        for link in &observations.links {
            count[link.a] += 1.0;
            count[Self::far(observations, link.b)] += 1.0;
        }
        for _ in 0..Self::ROUNDS {
            let mut left = vec![0.0; size];
            for link in &observations.links {
                let far = Self::far(observations, link.b);
                let residual = link.latency - mean - of[link.a] - of[far];
                left[link.a] += residual;
                left[far] += residual;
            }
            // Both sides move at once, so each takes half of what is left.
            for ((effect, left), n) in of.iter_mut().zip(left).zip(&count) {
                *effect += if *n > 0.0 { left / n / 2.0 } else { 0.0 };
            }
        }
        Self { mean, of }
    }

    fn predict(&self, observations: &Observations, a: usize, b: usize) -> f64 {
        self.mean + self.of[a] + self.of[Self::far(observations, b)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_cores_are_wholly_additive() {
        let slow = [0.0, 3.0, 1.0, 7.0, 2.0];
        let cells: Vec<Option<f64>> =
            (0..25).map(|at| Some(10.0 + slow[at / 5] + slow[at % 5])).collect();
        let pairs = PairLatencies::new(5, &cells).unwrap();
        let observations = Observations::of_pairs(&pairs);
        let additive = observations.additive();
        assert!(line::explained(&observations.latencies(), &additive) > 0.999);
    }

    #[test]
    fn missing_cells_are_filled_between_their_row_and_column() {
        let mut cells: Vec<Option<f64>> = (0..16).map(|_| Some(10.0)).collect();
        cells[1] = None;
        cells[4] = None;
        let pairs = PairLatencies::new(4, &cells).unwrap();
        let filled = Observations::of_pairs(&pairs).filled();
        assert!((filled[1] - 10.0).abs() < 1e-9);
    }
}
