//! Least squares behind the search for a controller: for every candidate cell, the line from hops
//! to latency. Latencies that pile up at a floor are taken as "at most this" (a one-sided Tobit
//! fit, Tobin 1958), costs of a hop as not negative.

use super::line;
use super::space::Shape;

/// Rounds in which places at the floor change sides; a few are enough.
const FLOOR_ROUNDS: usize = 12;

/// Latencies of the places, one each.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// The latencies.
    pub(super) latencies: Vec<f64>,
    /// Latency at and below which a place only says "not more".
    pub(super) floor: Option<f64>,
    /// Their mean.
    pub(super) mean: f64,
    /// Sum of squares around the mean.
    pub(super) scatter: f64,
}

impl Sample {
    /// Latencies with or without a floor.
    pub(super) fn new(latencies: &[f64], floor: Option<f64>) -> Self {
        let scatter = line::scatter(latencies);
        Self { latencies: latencies.to_vec(), floor, mean: line::mean(latencies), scatter }
    }

    /// Whether a latency is at the floor.
    pub(super) fn low(&self, latency: f64) -> bool {
        self.floor.is_some_and(|floor| latency <= floor)
    }

    /// Number of places at the floor.
    pub(super) fn at_floor(&self) -> usize {
        self.latencies.iter().filter(|&&l| self.low(l)).count()
    }
}

/// The line for one cell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Fit {
    /// Latency at distance 0.
    pub(super) base: f64,
    /// Cost of a hop along x.
    pub(super) hop_x: f64,
    /// Cost of a hop along y.
    pub(super) hop_y: f64,
    /// Weighted sum of squared residuals.
    pub(super) sse: f64,
}

/// Candidate cells with the hops from each to every place.
#[derive(Clone, Debug)]
pub(super) struct Cells {
    places: Vec<(f64, f64)>,
    hops: Vec<Vec<(f64, f64)>>,
    plane: bool,
    centre: (f64, f64),
    inner: [(f64, f64); 2],
}

impl Cells {
    /// The cells of a plane within `spans` (along x and y), which end one step beyond the places.
    pub(super) fn around(at: &[(f64, f64)], spans: [(f64, f64); 2]) -> Self {
        let steps = |(low, high): (f64, f64)| {
            std::iter::successors(Some(low), |v| Some(v + 1.0)).take_while(move |v| *v <= high)
        };
        let places: Vec<(f64, f64)> =
            steps(spans[1]).flat_map(|y| steps(spans[0]).map(move |x| (x, y))).collect();
        let hops = places
            .iter()
            .map(|c| at.iter().map(|p| ((p.0 - c.0).abs(), (p.1 - c.1).abs())).collect())
            .collect();
        let middle = |(low, high)| f64::midpoint(low, high);
        let centre = (middle(spans[0]), middle(spans[1]));
        let inner = spans.map(|(low, high)| (low + 1.0, high - 1.0));
        Self { places, hops, plane: true, centre, inner }
    }

    /// The stops of a ring, seen from the stops `at`.
    pub(super) fn on_ring(ring: Shape, at: &[usize]) -> Self {
        let places = (0..ring.cells()).map(|stop| ring.place(stop)).collect();
        let hops = (0..ring.cells())
            .map(|stop| at.iter().map(|&other| ring.hops(stop, other)).collect())
            .collect();
        Self { places, hops, plane: false, centre: (0.0, 0.0), inner: [(0.0, 0.0); 2] }
    }

    /// The same candidates, seen from some of the places.
    pub(super) fn seen_from(&self, chosen: &[usize]) -> Self {
        let of = |hops: &Vec<(f64, f64)>| chosen.iter().map(|&place| hops[place]).collect();
        Self { hops: self.hops.iter().map(of).collect(), ..self.clone() }
    }

    /// Whether the cells lie on a plane (else on a ring).
    pub(super) fn plane(&self) -> bool {
        self.plane
    }

    /// Number of candidates.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Where a candidate is.
    pub(super) fn place(&self, cell: usize) -> (f64, f64) {
        self.places[cell]
    }

    /// The edges of the cores' area that a place lies on or beyond, in words.
    pub(super) fn edge(&self, x: f64, y: f64) -> Option<String> {
        let across = [(x <= self.inner[0].0, "left"), (x >= self.inner[0].1, "right")];
        let along = [(y <= self.inner[1].0, "top"), (y >= self.inner[1].1, "bottom")];
        let edges: Vec<&str> =
            along.iter().chain(&across).filter(|(on, _)| *on).map(|(_, name)| *name).collect();
        (!edges.is_empty()).then(|| format!("{} edge", edges.join(" or ")))
    }

    /// Of the cells that fit as well as `least` but for `slack` of rounding, the one nearest to the
    /// middle, then the first.
    pub(super) fn most_central(&self, fits: &[Fit], least: f64, slack: f64) -> usize {
        let reach = |cell: usize| {
            let (x, y) = self.places[cell];
            (x - self.centre.0).abs() + (y - self.centre.1).abs()
        };
        let equal = (0..fits.len()).filter(|&c| fits[c].sse <= least + slack);
        equal.min_by(|&a, &b| reach(a).total_cmp(&reach(b))).unwrap_or(0)
    }

    /// The fitted latency of a place, not below the floor.
    pub(super) fn predict(&self, cell: usize, place: usize, fit: &Fit, sample: &Sample) -> f64 {
        let (x, y) = self.hops[cell][place];
        let line = fit.base + fit.hop_x * x + fit.hop_y * y;
        sample.floor.map_or(line, |floor| line.max(floor))
    }

    /// The best line for every cell, with one hop cost or with two.
    pub(super) fn fit_all(&self, sample: &Sample, weights: &[f64], two_costs: bool) -> Vec<Fit> {
        let fit = |hops: &Vec<(f64, f64)>| fit_cell(hops, sample, weights, two_costs);
        self.hops.iter().map(fit).collect()
    }
}

/// The best line for one cell. Places at the floor count only while the line runs above it.
fn fit_cell(hops: &[(f64, f64)], sample: &Sample, weights: &[f64], two_costs: bool) -> Fit {
    let mut active = weights.to_vec();
    let mut fit = least_squares(hops, sample, &active, two_costs);
    if sample.floor.is_none() {
        return fit;
    }
    for _ in 0..FLOOR_ROUNDS {
        let mut changed = false;
        for (place, (x, y)) in hops.iter().enumerate() {
            let latency = sample.latencies[place];
            if sample.low(latency) {
                let above = fit.base + fit.hop_x * x + fit.hop_y * y > latency;
                let weight = if above { weights[place] } else { 0.0 };
                changed |= active[place] != weight;
                active[place] = weight;
            }
        }
        if !changed {
            break;
        }
        fit = least_squares(hops, sample, &active, two_costs);
    }
    fit.sse = 0.0;
    for (place, (x, y)) in hops.iter().enumerate() {
        let latency = sample.latencies[place];
        let residual = fit.base + fit.hop_x * x + fit.hop_y * y - latency;
        if residual > 0.0 || !sample.low(latency) {
            fit.sse += weights[place] * residual * residual;
        }
    }
    fit
}

/// Weighted least squares with hop costs that are not negative.
fn least_squares(hops: &[(f64, f64)], sample: &Sample, weights: &[f64], two_costs: bool) -> Fit {
    let (mut n, mut sum) = (0.0, [0.0; 3]);
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    let (mut xl, mut yl, mut ll) = (0.0, 0.0, 0.0);
    for ((&(across, down), latency), &w) in hops.iter().zip(&sample.latencies).zip(weights) {
        let l = latency - sample.mean;
        let (x, y) = if two_costs { (across, down) } else { (across + down, 0.0) };
        n += w;
        sum[0] += w * x;
        sum[1] += w * y;
        sum[2] += w * l;
        xx += w * x * x;
        xy += w * x * y;
        yy += w * y * y;
        xl += w * x * l;
        yl += w * y * l;
        ll += w * l * l;
    }
    if n <= 0.0 {
        return Fit::default();
    }
    let mean = sum.map(|s| s / n);
    xx -= sum[0] * mean[0];
    xy -= sum[0] * mean[1];
    yy -= sum[1] * mean[1];
    xl -= sum[0] * mean[2];
    yl -= sum[1] * mean[2];
    ll -= sum[2] * mean[2];
    let (hop_x, hop_y) = not_negative([xx, xy, yy], [xl, yl]);
    let base = sample.mean + mean[2] - hop_x * mean[0] - hop_y * mean[1];
    // At the optimum under hop costs of 0 or more, the explained part is costs times products.
    let sse = (ll - hop_x * xl - hop_y * yl).max(0.0);
    Fit { base, hop_x, hop_y: if two_costs { hop_y } else { hop_x }, sse }
}

/// The least-squares slopes for centred squares `[xx, xy, yy]` and products with the latency,
/// neither negative: both together, or the one that alone explains more.
fn not_negative([xx, xy, yy]: [f64; 3], [xl, yl]: [f64; 2]) -> (f64, f64) {
    let determinant = xx * yy - xy * xy;
    if determinant > 1e-9 * xx * yy {
        let both = ((xl * yy - yl * xy) / determinant, (yl * xx - xl * xy) / determinant);
        if both.0 >= 0.0 && both.1 >= 0.0 {
            return both;
        }
    }
    let alone = |square: f64, product: f64| {
        if square > 1e-9 { (product / square).max(0.0) } else { 0.0 }
    };
    let (only_x, only_y) = (alone(xx, xl), alone(yy, yl));
    if only_x * xl >= only_y * yl { (only_x, 0.0) } else { (0.0, only_y) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_recovered_and_never_negative() {
        let hops: Vec<(f64, f64)> = (0..20).map(|k| (f64::from(k % 5), f64::from(k / 5))).collect();
        let ones = vec![1.0; 20];
        let latency = |a: f64, b: f64| hops.iter().map(|(x, y)| 9.0 + a * x + b * y).collect();
        let rising: Vec<f64> = latency(2.0, 0.5);
        let fit = fit_cell(&hops, &Sample::new(&rising, None), &ones, true);
        assert!((fit.hop_x - 2.0).abs() < 1e-9 && (fit.hop_y - 0.5).abs() < 1e-9);
        assert!((fit.base - 9.0).abs() < 1e-9 && fit.sse < 1e-9);
        let falling: Vec<f64> = latency(2.0, -0.5);
        let fit = fit_cell(&hops, &Sample::new(&falling, None), &ones, true);
        assert!((fit.hop_x - 2.0).abs() < 1e-9 && fit.hop_y == 0.0 && fit.sse > 1.0);
    }

    #[test]
    fn the_closed_form_of_the_residuals_is_their_sum_of_squares() {
        let hops: Vec<(f64, f64)> = (0..12).map(|k| (f64::from(k % 4), f64::from(k / 4))).collect();
        let latencies: Vec<f64> = (0..12).map(|k| f64::from(k * k % 7)).collect();
        let sample = Sample::new(&latencies, None);
        for two_costs in [false, true] {
            let fit = least_squares(&hops, &sample, &[1.0; 12], two_costs);
            let residual =
                |(l, (x, y)): (&f64, &(f64, f64))| fit.base + fit.hop_x * x + fit.hop_y * y - l;
            let sum: f64 = latencies.iter().zip(&hops).map(residual).map(|r| r * r).sum();
            assert!((sum - fit.sse).abs() < 1e-9, "{sum} against {}", fit.sse);
        }
    }

    #[test]
    fn latencies_cut_off_at_a_floor_still_give_the_slope() {
        let hops: Vec<(f64, f64)> = (0..10).map(|k| (f64::from(k), 0.0)).collect();
        let latencies: Vec<f64> = hops.iter().map(|(x, _)| (10.0 + 3.0 * x).max(22.0)).collect();
        let plain = fit_cell(&hops, &Sample::new(&latencies, None), &[1.0; 10], true);
        let cut = fit_cell(&hops, &Sample::new(&latencies, Some(22.0)), &[1.0; 10], true);
        assert!((plain.hop_x - 3.0).abs() > 0.3, "the floor hides the slope from a plain fit");
        assert!((cut.hop_x - 3.0).abs() < 1e-9 && (cut.base - 10.0).abs() < 1e-9);
    }
}
