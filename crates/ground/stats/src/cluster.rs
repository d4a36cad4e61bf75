//! Groups of values on a line, and how many there are: the classes of DRAM pages.
//!
//! k-means in one dimension is solved exactly by dynamic programming, so the result does not hang
//! on a starting point. How many clusters there are is decided by separation, not by fit: two
//! clusters count only if a gap lies between them that neither their width nor the noise explains.
//! It knows nothing of what is clustered.

use alloc::vec::Vec;

use crate::location::{MAD_TO_SD, mad};
use crate::number::{index, real, sorted};
use crate::order::quantile;

/// Adjacent centres are apart by at least this many standard deviations: of the wider one of the
/// two clusters, and of the noise. Halving one normal cluster gives 2.65 (its halves have centres
/// at 0.80 sd and sd 0.60), cutting a uniform one anywhere gives 3.46 (the square root of 12).
const SEPARATION_SDS: f64 = 4.0;

/// Of the values between two adjacent centres, at most this share lies in the middle half of the
/// way. A uniform spread has 1/2 there, two normal clusters 4 sd apart 0.31, 5 sd apart 0.21.
const VALLEY_SHARE: f64 = 0.34;

/// A cluster holds at least this share of all values; fewer are outliers.
const LEAST_SHARE: f64 = 0.02;

/// And at least this many, since the width of fewer is not known at all.
const LEAST_COUNT: usize = 5;

/// Values farther than this many robust standard deviations from the median of their cluster are
/// outliers that k-means had to put somewhere. A normal cluster of a million has none.
const TRIM_SDS: f64 = 5.5;

/// At most this share of all values may be set aside as outliers.
const OUTLIER_SHARE_MAX: f64 = 0.1;

/// Rounds of setting outliers aside. Two or three are usual; what goes on peeling has a tail
/// without an end, and no clusters.
const ROUNDS_MAX: usize = 50;

/// With few values a width and a gap may come about by chance: both are judged at the end of
/// their uncertainty, this many standard errors away.
const CAUTION: f64 = 2.0;

/// Clusters of values, in ascending order of their centres.
#[derive(Clone, Debug, PartialEq)]
pub struct Clusters {
    /// Mean of each cluster, ascending.
    pub centers: Vec<f64>,
    /// For each value, in the order given, the cluster with the nearest centre.
    pub assignment: Vec<usize>,
    /// Variance of each cluster around its centre (divisor: its count).
    pub within_variance: Vec<f64>,
    /// How many values stand behind each centre.
    pub counts: Vec<usize>,
    /// Values set aside as outliers: assigned to the nearest centre, but in no count, centre or
    /// variance. 0 from [`kmeans_1d`].
    pub outliers: usize,
}

/// Optimal k-means in one dimension: the `k` clusters with the least sum of squared distances to
/// their centres (Wang and Song, "Ckmeans.1d.dp", The R Journal 3(2), 2011; divide and conquer
/// over monotone optima as in its later versions, so k n log n steps after sorting).
///
/// `None` if `k` is 0 or exceeds the number of different values, or a value is not finite.
#[must_use]
pub fn kmeans_1d(values: &[f64], k: usize) -> Option<Clusters> {
    let line = Line::of(&sorted(values)?);
    let groups = line.split(k)?;
    Some(Clusters::of(&groups, values, 0))
}

/// The clusters that `values` fall into: the most, up to `max_k`, that are well separated, and
/// one if no split is.
///
/// `noise_sd` is the standard deviation of the error of one value, the rounding of its clock
/// included: clusters closer than the noise could tell apart are not clusters. Adjacent centres
/// must be 4 standard deviations apart (of the wider cluster and of the noise), with a gap
/// between them, and each cluster must hold 2 % of the values and at least 5. Groups smaller
/// than that, and values far out of their cluster, are set aside as outliers, up to a tenth of
/// the values.
///
/// `None` if there are no values, one is not finite, `max_k` is 0, or the noise is negative or
/// not finite.
#[must_use]
pub fn choose_k_1d(values: &[f64], max_k: usize, noise_sd: f64) -> Option<Clusters> {
    if max_k == 0 || !(noise_sd >= 0.0 && noise_sd.is_finite()) {
        return None;
    }
    let ascending = sorted(values)?;
    // More clusters than that could not all be large enough.
    let most = max_k.min(ascending.len() / LEAST_COUNT).min(index(1.0 / LEAST_SHARE));
    for k in (2..=most).rev() {
        let Some((kept, groups)) = split_without_outliers(&ascending, k, noise_sd) else {
            continue;
        };
        if groups.windows(2).all(|pair| separated(&pair[0], &pair[1], &kept, noise_sd)) {
            return Some(Clusters::of(&groups, values, ascending.len() - kept.len()));
        }
    }
    kmeans_1d(values, 1)
}

/// One cluster.
#[derive(Clone, Copy, Debug)]
struct Group {
    center: f64,
    variance: f64,
    count: usize,
    least: f64,
}

impl Group {
    /// The values of a sorted slice that belong to the cluster.
    fn members<'a>(&self, ascending: &'a [f64]) -> &'a [f64] {
        let from = ascending.partition_point(|v| *v < self.least);
        &ascending[from..from + self.count]
    }

    /// The standard deviation at the upper end of its uncertainty, about `sd / sqrt(2n)`.
    fn width_at_most(&self) -> f64 {
        libm::sqrt(self.variance) * (1.0 + CAUTION / libm::sqrt(2.0 * real(self.count)))
    }
}

impl Clusters {
    fn of(groups: &[Group], values: &[f64], outliers: usize) -> Self {
        let nearest = |value: f64| {
            groups.windows(2).take_while(|g| value > 0.5 * (g[0].center + g[1].center)).count()
        };
        Self {
            centers: groups.iter().map(|g| g.center).collect(),
            assignment: values.iter().map(|v| nearest(*v)).collect(),
            within_variance: groups.iter().map(|g| g.variance).collect(),
            counts: groups.iter().map(|g| g.count).collect(),
            outliers,
        }
    }
}

/// Splits into `k` clusters of sufficient size. Small ones, and values far out of large ones, are
/// set aside and the rest is split again, until nothing is left to set aside; `None` if too many
/// values would have to go.
fn split_without_outliers(
    ascending: &[f64],
    k: usize,
    noise_sd: f64,
) -> Option<(Vec<f64>, Vec<Group>)> {
    let n = real(ascending.len());
    let mut kept = ascending.to_vec();
    for _ in 0..ROUNDS_MAX {
        let groups = Line::of(&kept).split(k)?;
        let mut core = Vec::with_capacity(kept.len());
        for group in &groups {
            if group.count >= LEAST_COUNT && real(group.count) >= LEAST_SHARE * n {
                core.extend_from_slice(without_tails(group.members(&kept), noise_sd));
            }
        }
        if core.len() == kept.len() {
            return Some((kept, groups));
        }
        if real(ascending.len() - core.len()) > OUTLIER_SHARE_MAX * n {
            return None;
        }
        kept = core;
    }
    None
}

/// The members of one cluster (ascending) that lie near its median.
fn without_tails(members: &[f64], noise_sd: f64) -> &[f64] {
    let centre = quantile(members, 0.5).unwrap_or(0.0);
    let robust = MAD_TO_SD * mad(members).unwrap_or(0.0);
    // A MAD of 0 says that half of the members are equal, not that the others are wrong.
    let width =
        if robust > 0.0 { robust } else { libm::sqrt(crate::variance(members).unwrap_or(0.0)) };
    let reach = TRIM_SDS * width.max(noise_sd);
    let from = members.partition_point(|v| *v < centre - reach);
    let to = members.partition_point(|v| *v <= centre + reach);
    &members[from..to]
}

/// Whether two adjacent clusters are two: far apart for their width, with a valley between.
fn separated(a: &Group, b: &Group, ascending: &[f64], noise_sd: f64) -> bool {
    let apart = b.center - a.center;
    let width = a.width_at_most().max(b.width_at_most()).max(noise_sd);
    let within = |lo: f64, hi: f64| {
        let from = ascending.partition_point(|v| *v <= lo);
        real(ascending.partition_point(|v| *v < hi).saturating_sub(from))
    };
    let between = within(a.center, b.center);
    let middle = within(a.center + 0.25 * apart, b.center - 0.25 * apart);
    // Of a uniform spread half would be in the middle, with a standard error of sqrt(n) / 2.
    let by_chance = 0.5 * (between - CAUTION * libm::sqrt(between));
    let valley = middle <= VALLEY_SHARE * between && (between == 0.0 || middle <= by_chance);
    apart >= SEPARATION_SDS * width && valley
}

/// The different values in ascending order, with sums up to each place of their counts, values
/// and squares (around the mean), so that the cost of any run of them takes two look-ups.
struct Line {
    values: Vec<f64>,
    sums: Vec<(f64, f64, f64)>,
    counts: Vec<usize>,
    mean: f64,
}

impl Line {
    fn of(ascending: &[f64]) -> Self {
        let mean = crate::mean(ascending).unwrap_or(0.0);
        let mut line = Self {
            values: Vec::new(),
            sums: alloc::vec![(0.0, 0.0, 0.0)],
            counts: alloc::vec![0],
            mean,
        };
        let (mut count, mut sum) = (0, (0.0, 0.0, 0.0));
        for equal in ascending.chunk_by(|a, b| a == b) {
            let (weight, d) = (real(equal.len()), equal[0] - mean);
            sum = (sum.0 + weight, sum.1 + weight * d, sum.2 + weight * d * d);
            count += equal.len();
            line.values.push(equal[0]);
            line.sums.push(sum);
            line.counts.push(count);
        }
        line
    }

    /// Sum of squared distances of the run `from..to` to its mean.
    fn cost(&self, from: usize, to: usize) -> f64 {
        // A single value costs nothing, whatever rounding says.
        if to - from <= 1 {
            return 0.0;
        }
        let (a, b) = (self.sums[from], self.sums[to]);
        let sum = b.1 - a.1;
        (b.2 - a.2 - sum * sum / (b.0 - a.0)).max(0.0)
    }

    fn group(&self, from: usize, to: usize) -> Group {
        let (a, b) = (self.sums[from], self.sums[to]);
        let weight = b.0 - a.0;
        Group {
            center: self.mean + (b.1 - a.1) / weight,
            variance: self.cost(from, to) / weight,
            count: self.counts[to] - self.counts[from],
            least: self.values[from],
        }
    }

    /// The best `k` clusters, ascending; `None` if there are not as many different values.
    fn split(&self, k: usize) -> Option<Vec<Group>> {
        let n = self.values.len();
        if k == 0 || k > n {
            return None;
        }
        // best[to]: cost of the first `to` different values in as many clusters as made so far.
        let mut best: Vec<f64> = (0..=n).map(|to| self.cost(0, to)).collect();
        let mut starts: Vec<Vec<usize>> = Vec::with_capacity(k);
        for clusters in 2..=k {
            let mut layer = Layer {
                line: self,
                before: &best,
                best: alloc::vec![f64::INFINITY; n + 1],
                start: alloc::vec![0; n + 1],
            };
            layer.fill(clusters, n, clusters - 1, n - 1);
            starts.push(layer.start);
            best = layer.best;
        }
        let mut groups = Vec::with_capacity(k);
        let mut to = n;
        for start in starts.iter().rev() {
            groups.push(self.group(start[to], to));
            to = start[to];
        }
        groups.push(self.group(0, to));
        groups.reverse();
        Some(groups)
    }
}

/// One more cluster: for each `to`, where the last cluster starts best.
struct Layer<'a> {
    line: &'a Line,
    before: &'a [f64],
    best: Vec<f64>,
    start: Vec<usize>,
}

impl Layer<'_> {
    /// Fills `first..=last`, whose best starts lie in `least..=most`: they never decrease with
    /// `to`, so the middle one halves the choice for both sides.
    fn fill(&mut self, first: usize, last: usize, least: usize, most: usize) {
        if first > last {
            return;
        }
        let to = first + (last - first) / 2;
        for start in least..=most.min(to - 1) {
            let cost = self.before[start] + self.line.cost(start, to);
            if cost < self.best[to] {
                self.best[to] = cost;
                self.start[to] = start;
            }
        }
        let found = self.start[to];
        self.fill(first, to - 1, least, found);
        self.fill(to + 1, last, found, most);
    }
}

#[cfg(test)]
mod tests;
