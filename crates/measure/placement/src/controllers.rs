//! Where a memory controller sits, given where the cores are: the cell from which latency grows
//! best with hops. Says which other cells would explain the data as well, since a controller
//! beyond the edge of the cores looks the same from all distances beyond it.

use super::means::Means;
use super::origin::{Cells, Fit, Sample};
use super::sample::draw;
use super::space::Shape;
use rand::RngExt;
use rand::seq::SliceRandom;

/// Fewest places with a latency: a position and three costs leave nothing to judge below.
const FEWEST_PLACES: usize = 6;

/// Shuffled and resampled data sets. With 199 the smallest p is 0.005.
const RESAMPLES: usize = 199;

/// A pile of latencies at the minimum: this share of the places within this share of the range.
const PILE_SHARE: f64 = 0.25;
const PILE_WIDTH: f64 = 0.02;

/// A grid of candidates larger than this is refused; the places are no grid then.
const MOST_CELLS: f64 = 4096.0;

/// Where one memory column's controller was found.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerFit {
    /// Label of the memory column.
    pub column: String,
    /// The best cell, `None` where it cannot be told. Of cells that fit equally well, the one
    /// nearest to the middle of the cores.
    pub best: Option<(f64, f64)>,
    /// All cells within the joint 95 % confidence region, the best one among them.
    pub candidates: Vec<(f64, f64)>,
    /// Where there is a floor: the same region if places at the floor are left out altogether, as
    /// they must be if the floor is a fault of the instrument or of the print. Else empty.
    pub candidates_without_floor: Vec<(f64, f64)>,
    /// Share of bootstrap resamples of the places in which the best cell fits best too.
    pub confidence: f64,
    /// Fitted latency at distance 0.
    pub base: f64,
    /// Cost of a hop along x; along a ring where the cores sit on one.
    pub hop_x: f64,
    /// Cost of a hop along y; equal to `hop_x` where the data do not ask for two costs.
    pub hop_y: f64,
    /// Share of the variance over the places explained.
    pub r2: f64,
    /// Spearman correlation between fitted and measured latencies.
    pub rank_correlation: Option<f64>,
    /// Probability that latencies without geometry fit as well.
    pub p_value: f64,
    /// Places used. Cores in one place count once, by the median of their latencies.
    pub places: usize,
    /// Places whose latency is at the floor, and the floor, where latencies pile up at their
    /// minimum. A place at the floor may be any distance nearer.
    pub floor: Option<(usize, f64)>,
    /// What was found, in one sentence.
    pub summary: String,
}

/// Finds the controller of one memory column from its latency at each core and the cores' places
/// on a plane. Cores without a place or a latency are left out.
#[must_use]
pub fn locate_controller(
    column: &str,
    places: &[Option<(f64, f64)>],
    latencies: &[Option<f64>],
    seed: u64,
) -> ControllerFit {
    locate(column, places, latencies, Means::unhurried(seed))
}

/// The same by the means of a larger search.
pub(super) fn locate(
    column: &str,
    places: &[Option<(f64, f64)>],
    latencies: &[Option<f64>],
    means: Means<'_>,
) -> ControllerFit {
    let finite = |place: &Option<(f64, f64)>| place.filter(|p| p.0.is_finite() && p.1.is_finite());
    let places: Vec<_> = places.iter().map(finite).collect();
    let (at, sample) = merge(&places, latencies, |a, b| a == b);
    let spans = [span(&at, |p| p.0), span(&at, |p| p.1)];
    let cells = (spans[0].1 - spans[0].0 + 1.0) * (spans[1].1 - spans[1].0 + 1.0);
    if !(1.0..=MOST_CELLS).contains(&cells) {
        return untold(
            column,
            at.len(),
            "the places do not lie on a grid with steps of one".into(),
        );
    }
    find(column, &Cells::around(&at, spans), &sample, means)
}

/// The same for cores on the stops of a ring.
pub(super) fn locate_on_ring(
    column: &str,
    stops: usize,
    stop_of: &[Option<usize>],
    latencies: &[Option<f64>],
    means: Means<'_>,
) -> ControllerFit {
    let (at, sample) = merge(stop_of, latencies, |a, b| a == b);
    find(column, &Cells::on_ring(Shape::Ring { stops }, &at), &sample, means)
}

/// One latency a place, ready to be fitted.
fn merge<P: Copy>(
    places: &[Option<P>],
    latencies: &[Option<f64>],
    same: impl Fn(&P, &P) -> bool,
) -> (Vec<P>, Vec<f64>) {
    let mut merged: Vec<(P, Vec<f64>)> = Vec::new();
    for (place, latency) in places.iter().zip(latencies) {
        let (Some(place), Some(latency)) = (place, latency) else { continue };
        match merged.iter_mut().find(|(known, _)| same(known, place)) {
            Some((_, all)) => all.push(*latency),
            None => merged.push((*place, vec![*latency])),
        }
    }
    merged
        .into_iter()
        .filter_map(|(place, all)| Some((place, isochrone_stats::median(&all)?)))
        .unzip()
}

/// Smallest and largest whole coordinate, one step beyond the places on either side.
fn span(places: &[(f64, f64)], axis: fn(&(f64, f64)) -> f64) -> (f64, f64) {
    let low = places.iter().map(axis).fold(f64::INFINITY, f64::min);
    let high = places.iter().map(axis).fold(f64::NEG_INFINITY, f64::max);
    (low.floor() - 1.0, high.ceil() + 1.0)
}

/// Fits all cells, judges the best, and finds those that are as good.
fn find(column: &str, cells: &Cells, latencies: &[f64], mut means: Means<'_>) -> ControllerFit {
    let n = latencies.len();
    if n < FEWEST_PLACES {
        let why = format!("{n} places with a latency are too few, {FEWEST_PLACES} are needed");
        return untold(column, n, why);
    }
    let sample = Sample::new(latencies, floor(latencies));
    let weights = vec![1.0; n];
    let single = cells.fit_all(&sample, &weights, false);
    let double = cells.fit_all(&sample, &weights, true);
    // A second hop cost has to lower the residuals by more than chance (Schwarz 1978).
    let (least_single, least_double) = (least(&single), least(&double));
    let gain = n as f64 * (least_single.max(1e-12) / least_double.max(1e-12)).ln();
    let two_costs = cells.plane() && gain > (n as f64).ln() && least_single > 1e-9 * sample.scatter;
    let fits = if two_costs { double } else { single };
    let best = best_of(cells, &sample, &fits);
    let fit = fits[best];
    // Chance is judged by some of many places: all of them take minutes.
    let chosen = draw(n, &mut means.rng);
    let judged = Judged::of(cells, &sample, chosen.as_deref());
    let p_value = judged.p_value(two_costs, &mut means);
    let parameters = if two_costs { 5 } else { 4 };
    let as_good = region(&fits, &sample, parameters);
    let unlifted: Vec<f64> =
        latencies.iter().map(|&l| if sample.low(l) { 0.0 } else { 1.0 }).collect();
    let without_floor = match sample.floor {
        Some(_) => region(&cells.fit_all(&sample, &unlifted, two_costs), &sample, parameters),
        None => Vec::new(),
    };
    let fitted: Vec<f64> = (0..n).map(|place| cells.predict(best, place, &fit, &sample)).collect();
    let mut found = ControllerFit {
        column: column.to_owned(),
        best: Some(cells.place(best)),
        candidates: as_good.iter().map(|&cell| cells.place(cell)).collect(),
        candidates_without_floor: without_floor.iter().map(|&cell| cells.place(cell)).collect(),
        confidence: 0.0,
        base: fit.base,
        hop_x: fit.hop_x,
        hop_y: fit.hop_y,
        r2: 1.0 - fit.sse / sample.scatter.max(f64::MIN_POSITIVE),
        rank_correlation: isochrone_stats::spearman(&fitted, latencies),
        p_value,
        places: n,
        floor: sample.floor.map(|floor| (sample.at_floor(), floor)),
        summary: String::new(),
    };
    if p_value > 0.01 {
        let why = format!("no cell explains the latencies better than chance (p = {p_value:.2})");
        found.best = None;
        found.candidates.clear();
        found.candidates_without_floor.clear();
        return found.saying(&why);
    }
    found.confidence = judged.confidence(two_costs, best, &mut means);
    let summary = words(&found, cells);
    found.saying(&summary)
}

impl ControllerFit {
    fn saying(mut self, what: &str) -> Self {
        self.summary = format!("{}: {what}", self.column);
        self
    }
}

/// The cell that fits best; of those that fit equally well, the one nearest to the middle.
fn best_of(cells: &Cells, sample: &Sample, fits: &[Fit]) -> usize {
    cells.most_central(fits, least(fits), 1e-9 * sample.scatter)
}

fn least(fits: &[Fit]) -> f64 {
    fits.iter().map(|fit| fit.sse).fold(f64::INFINITY, f64::min)
}

/// The latency at which values pile up at the low end, if they do. The range stops at the 90th
/// percentile, so that strays at the top do not make everything else look alike.
fn floor(latencies: &[f64]) -> Option<f64> {
    let mut sorted = latencies.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted[0], sorted[sorted.len() * 9 / 10]);
    let pile = sorted.partition_point(|l| l - low <= PILE_WIDTH * (high - low));
    let many = pile as f64 >= PILE_SHARE * sorted.len() as f64;
    (high > low && many && pile > 2).then(|| sorted[pile - 1])
}

/// Cells whose residuals are not significantly larger than the least, at 95 % for the two
/// coordinates jointly. For two coordinates the F quantile has a closed form, so that the bound
/// is `least * 0.05^(-2 / freedom)`. Places at the floor carry no position, so they do not count.
fn region(fits: &[Fit], sample: &Sample, parameters: usize) -> Vec<usize> {
    let seen = sample.latencies.len() - sample.at_floor();
    let freedom = seen.saturating_sub(parameters).max(1) as f64;
    let bound = least(fits) * 0.05_f64.powf(-2.0 / freedom) + 1e-9 * sample.scatter;
    (0..fits.len()).filter(|&cell| fits[cell].sse <= bound).collect()
}

/// Places by which chance is judged: all of them, or some.
struct Judged {
    cells: Cells,
    sample: Sample,
}

impl Judged {
    fn of(cells: &Cells, sample: &Sample, chosen: Option<&[usize]>) -> Self {
        let Some(chosen) = chosen else {
            return Self { cells: cells.clone(), sample: sample.clone() };
        };
        let latencies: Vec<f64> = chosen.iter().map(|&place| sample.latencies[place]).collect();
        Self { cells: cells.seen_from(chosen), sample: Sample::new(&latencies, sample.floor) }
    }

    /// Share of shuffles of the latencies over the places that fit as well somewhere.
    fn p_value(&self, two_costs: bool, means: &mut Means<'_>) -> f64 {
        let weights = vec![1.0; self.sample.latencies.len()];
        let fits = |sample: &Sample| self.cells.fit_all(sample, &weights, two_costs);
        let own = fits(&self.sample);
        let real = own[best_of(&self.cells, &self.sample, &own)].sse;
        let mut shuffled = self.sample.clone();
        let as_good = (0..RESAMPLES)
            .filter(|_| {
                shuffled.latencies.shuffle(&mut means.rng);
                !means.keep_going() || least(&fits(&shuffled)) <= real
            })
            .count();
        (as_good + 1) as f64 / (RESAMPLES + 1) as f64
    }

    /// Share of resamples of the places in which `best` is still as good as any.
    fn confidence(&self, two_costs: bool, best: usize, means: &mut Means<'_>) -> f64 {
        let n = self.sample.latencies.len();
        let agreeing = (0..RESAMPLES)
            .filter(|_| {
                if !means.keep_going() {
                    return false;
                }
                let mut weights = vec![0.0; n];
                (0..n).for_each(|_| weights[means.rng.random_range(0..n)] += 1.0);
                let fits = self.cells.fit_all(&self.sample, &weights, two_costs);
                fits[best].sse <= least(&fits) + 1e-9 * self.sample.scatter
            })
            .count();
        agreeing as f64 / RESAMPLES as f64
    }
}

/// What was found, in words.
fn words(found: &ControllerFit, cells: &Cells) -> String {
    let (x, y) = found.best.unwrap_or_default();
    let mut text = if cells.plane() {
        let edge = cells.edge(x, y).map_or(String::new(), |edge| format!(", or beyond the {edge}"));
        format!("nearest to column {x}, row {y}{edge}")
    } else {
        "on the ring".to_owned()
    };
    text += &format!(
        "; {} of {} cells fit as well, {:.0} % of resamples agree",
        found.candidates.len(),
        cells.len(),
        100.0 * found.confidence
    );
    if let Some((count, floor)) = found.floor {
        text += &format!(
            "; {count} of {} places show no less than {floor:.1}, \
             and if that is a fault {} cells fit",
            found.places,
            found.candidates_without_floor.len()
        );
    }
    text
}

fn untold(column: &str, places: usize, why: String) -> ControllerFit {
    ControllerFit {
        column: column.to_owned(),
        best: None,
        candidates: Vec::new(),
        candidates_without_floor: Vec::new(),
        confidence: 0.0,
        base: 0.0,
        hop_x: 0.0,
        hop_y: 0.0,
        r2: 0.0,
        rank_correlation: None,
        p_value: 1.0,
        places,
        floor: None,
        summary: String::new(),
    }
    .saying(&why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    type Places = Vec<Option<(f64, f64)>>;

    /// Cores on a grid of 6 x 5, two to a place, and their latencies to a controller.
    fn cores(at: (f64, f64), hop: (f64, f64)) -> (Places, Vec<Option<f64>>) {
        let places = (0..60).map(|core| (f64::from(core / 2 % 6), f64::from(core / 2 / 6)));
        let latency =
            |p: (f64, f64)| 80.0 + hop.0 * (p.0 - at.0).abs() + hop.1 * (p.1 - at.1).abs();
        (places.clone().map(Some).collect(), places.map(|p| Some(latency(p))).collect())
    }

    #[test]
    fn a_controller_inside_is_found_exactly() {
        let (places, latencies) = cores((3.0, 1.0), (2.0, 2.0));
        let found = locate_controller("m", &places, &latencies, 1);
        assert_eq!(found.best, Some((3.0, 1.0)));
        assert_eq!(found.candidates, [(3.0, 1.0)]);
        assert_eq!(found.places, 30);
        assert!((found.hop_x - 2.0).abs() < 1e-9 && (found.r2 - 1.0).abs() < 1e-9);
        assert!((found.confidence - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_controller_beyond_the_edge_looks_as_if_on_it() {
        let (places, latencies) = cores((7.0, 2.0), (3.0, 1.0));
        let found = locate_controller("m", &places, &latencies, 1);
        assert_eq!(found.best, Some((5.0, 2.0)));
        assert_eq!(found.candidates, [(5.0, 2.0), (6.0, 2.0)]);
        assert!(found.summary.contains("beyond the right edge"), "{}", found.summary);
        assert!((found.hop_x - 3.0).abs() < 1e-9 && (found.hop_y - 1.0).abs() < 1e-9);
    }

    #[test]
    fn missing_latencies_are_left_out() {
        let (places, mut latencies) = cores((1.0, 3.0), (2.0, 1.0));
        latencies.iter_mut().step_by(3).for_each(|l| *l = None);
        let found = locate_controller("m", &places, &latencies, 1);
        assert_eq!(found.best, Some((1.0, 3.0)));
    }

    #[test]
    fn latencies_without_a_gradient_have_no_controller() {
        let (places, _) = cores((0.0, 0.0), (1.0, 1.0));
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        for seed in 0..5 {
            let random = (0..60).map(|_| Some(rng.random_range(80.0..90.0))).collect::<Vec<_>>();
            let found = locate_controller("m", &places, &random, seed);
            assert_eq!(found.best, None, "{}", found.summary);
            assert!(found.p_value > 0.01 && found.summary.contains("chance"));
        }
        let flat = vec![Some(80.0); 60];
        assert_eq!(locate_controller("m", &places, &flat, 1).best, None);
    }

    #[test]
    fn a_few_places_or_no_grid_are_not_enough() {
        let (places, latencies) = cores((0.0, 0.0), (1.0, 1.0));
        let few = locate_controller("m", &places[..8], &latencies[..8], 1);
        assert!(few.best.is_none() && few.summary.contains("too few"), "{}", few.summary);
        let none = locate_controller("m", &[None], &[None], 1);
        assert!(none.best.is_none());
        let bad = vec![Some((f64::NAN, 0.0)); 60];
        assert!(locate_controller("m", &bad, &latencies, 1).best.is_none());
        let wide: Vec<_> = (0..60).map(|k| Some((f64::from(k) * 1e6, 0.0))).collect();
        assert!(locate_controller("m", &wide, &latencies, 1).best.is_none());
    }

    #[test]
    fn one_stray_does_not_make_a_floor() {
        let mut latencies: Vec<f64> = (0..30).map(|k| 80.0 + f64::from(k)).collect();
        latencies[29] = 5_000.0;
        assert_eq!(floor(&latencies), None);
        latencies[..10].fill(80.0);
        assert_eq!(floor(&latencies), Some(80.0));
    }
}
