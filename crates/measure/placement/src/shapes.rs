//! Which size of ring or grid suits the data: all sizes that could hold the items are screened,
//! the best are searched in earnest, and empty cells have to pay for themselves.

use super::arrange::{self, arrange};
use super::embed;
use super::fit::{Effort, Fit};
use super::guesses::as_distances;
use super::means::Means;
use super::observations::Observations;
use super::sample::SEARCHED;
use super::space::{Shape, Space};

/// Sizes searched carefully, and of these the ones searched with all means.
const CAREFUL: usize = 6;
const FULL: usize = 3;

/// Costs of a hop up or down, in hops sideways, from which the search starts. Meshes of the last
/// decade lie in between.
const START_RATIOS: [f64; 3] = [0.5, 1.0, 2.0];

/// Turns between the arrangement and the ratio of its hop costs.
const SKEW_ROUNDS: usize = 8;

/// Of grids for more items than are searched, every row up to this is tried and every so many-th part beyond, and about
/// so many numbers of columns for each; what lies between is found from there, in so many steps.
const ROWS_EACH: usize = 8;
const COLUMNS_TRIED: usize = 3;
const RESIZES: usize = 8;

/// How much longer or shorter than the guess from scaling a grid may be.
const ELONGATION_SLACK: f64 = 2.3;

/// The best ring.
pub(super) fn best_ring(observations: &Observations, means: &mut Means<'_>) -> Option<Fit> {
    // Memory controllers and agents are stops without cores: on a Xeon Phi 5110P about a fifth.
    let n = observations.whole;
    let step = (n / SEARCHED).max(1);
    let sizes = (n..=most_stops(n)).step_by(step);
    let sizes = sizes.map(|stops| Size { shape: Shape::Ring { stops }, y_over_x: 1.0 });
    let fit = tournament(observations, sizes.collect(), means)?;
    Some(resized(observations, fit, means))
}

/// The best grid. Hops up and down may cost more or less than hops sideways.
pub(super) fn best_grid(observations: &Observations, means: &mut Means<'_>) -> Option<Fit> {
    let sizes = grids(observations, means);
    let fit = tournament(observations, sizes, means)?;
    Some(resized(observations, fit, means))
}

/// A shape that is tried, with the cost of a hop down in hops sideways: a table of its distances is made when it is
/// searched, since those of all sizes would fill a gigabyte.
#[derive(Clone, Copy, Debug)]
struct Size {
    shape: Shape,
    y_over_x: f64,
}

impl Size {
    fn space(self) -> Space {
        Space::new(self.shape, self.y_over_x)
    }
}

/// Stops of a ring for so many items, at most.
fn most_stops(items: usize) -> usize {
    items + (items / 4).max(1)
}

/// Cells of a grid for so many items, at most.
fn most_cells(items: usize) -> usize {
    items + items / 3 + 2
}

/// Grids with room for the items and up to a third of their cells empty, not much longer or
/// shorter than the data, with three ratios of hop costs to start from.
fn grids(observations: &Observations, means: &mut Means<'_>) -> Vec<Size> {
    let n = observations.whole;
    let stand_in = match observations.columns {
        Some(_) => &observations.profile_distances(),
        None => observations,
    };
    let guess = 2.0 * (n as f64).sqrt();
    let items = observations.items;
    let distances = as_distances(&stand_in.filled(), items, guess);
    let points = embed::plane(items, &distances, &mut means.rng);
    let extent =
        |axis: fn(&(f64, f64)) -> f64| points.iter().map(|p| axis(p) * axis(p)).sum::<f64>().sqrt();
    let elongation = extent(|p| p.0) / extent(|p| p.1).max(1e-9);
    let most = most_cells(n);
    let mut sizes = Vec::new();
    let next = |rows: &usize| Some(rows + (rows / ROWS_EACH).max(1));
    for rows in std::iter::successors(Some(1), next).take_while(|rows| *rows <= most) {
        let (low, high) = (rows.max(n.div_ceil(rows)), most / rows);
        let step = if n > SEARCHED { high.saturating_sub(low) / COLUMNS_TRIED } else { 1 };
        for columns in (low..=high).step_by(step.max(1)) {
            // A line has no second cost.
            let ratios: &[f64] = if rows == 1 { &[1.0] } else { &START_RATIOS };
            for &y_over_x in ratios {
                let (across, down) = (columns as f64, rows as f64 * y_over_x);
                let ratio = across.max(down) / across.min(down) / elongation;
                let near = (1.0 / ELONGATION_SLACK..=ELONGATION_SLACK).contains(&ratio);
                // The length of a line is hard to tell from its scaling: it bends.
                if near || (rows == 1 && elongation > 3.0) {
                    sizes.push(Size { shape: Shape::Grid { columns, rows }, y_over_x });
                }
            }
        }
    }
    sizes
}

/// Screens all sizes, searches the better ones, and returns the best.
fn tournament(observations: &Observations, sizes: Vec<Size>, means: &mut Means<'_>) -> Option<Fit> {
    // Cores and columns by turns need more than a glance before they say anything.
    let (first, stages): (Effort, &[(Effort, usize)]) = match observations.columns {
        None => (Effort::Glance, &[(Effort::Careful, CAREFUL), (Effort::Full, FULL)]),
        Some(_) => (Effort::Careful, &[(Effort::Full, FULL)]),
    };
    let kept = stages.first().map_or(1, |stage| stage.1);
    let mut fits = Vec::new();
    for size in sizes {
        if !means.keep_going() {
            break;
        }
        fits.push(arrange(observations, &size.space(), first, means));
        if fits.len() > 2 * kept {
            sort(&mut fits, observations);
            fits.truncate(kept);
        }
    }
    for &(effort, keep) in stages {
        sort(&mut fits, observations);
        fits.truncate(keep);
        for fit in &mut fits {
            if !means.keep_going() {
                break;
            }
            let again = arrange(observations, &fit.space, effort, means);
            let rounds = if effort == Effort::Full { SKEW_ROUNDS } else { 1 };
            *fit = skewed(observations, again, rounds, means);
        }
    }
    sort(&mut fits, observations);
    fits.into_iter().next()
}

fn sort(fits: &mut [Fit], observations: &Observations) {
    fits.sort_by(|a, b| length(a, observations).total_cmp(&length(b, observations)));
}

/// Description length of a fit in nats (Rissanen 1978): the residuals, which of the cells are
/// empty, and half a logarithm for the second hop cost where there is one.
fn length(fit: &Fit, observations: &Observations) -> f64 {
    let links = observations.links.len() as f64;
    let scale = fit.sse / (1.0 - fit.r2).max(1e-12) / links;
    let residual = (fit.sse / links).max(1e-9 * scale).max(f64::MIN_POSITIVE);
    let (n, cells) = (observations.whole, fit.space.cells());
    let empty: f64 = (1..=cells - n).map(|k| ((n + k) as f64 / k as f64).ln()).sum();
    let second = if fit.space.turnable() { 0.0 } else { links.ln() / 2.0 };
    links / 2.0 * residual.ln() + empty + second
}

/// A fit of some items as one of all: on a ring also without empty stops, which some items cannot tell.
pub(super) fn spread(
    observations: &Observations,
    sample: &[usize],
    fit: &Fit,
    means: &Means<'_>,
) -> Fit {
    let all = arrange::spread(observations, sample, fit, means);
    match fit.space.shape {
        Shape::Ring { stops } if stops > observations.items && observations.columns.is_none() => {
            let closed = arrange::closed(observations, &all, means);
            let is_shorter = length(&closed, observations) <= length(&all, observations);
            if is_shorter { closed } else { all }
        }
        _ => all,
    }
}

/// The same shape in a size between those that were screened, if that describes the data better.
fn resized(observations: &Observations, mut fit: Fit, means: &mut Means<'_>) -> Fit {
    if observations.whole <= SEARCHED {
        return fit;
    }
    for _ in 0..RESIZES {
        let mut is_better = false;
        for shape in neighbours(fit.space.shape, observations.whole) {
            if !means.keep_going() {
                return fit;
            }
            let space = Space::new(shape, fit.space.y_over_x);
            let other = arrange(observations, &space, Effort::Careful, means);
            if length(&other, observations) < length(&fit, observations) {
                (fit, is_better) = (other, true);
            }
        }
        if !is_better {
            break;
        }
    }
    fit
}

/// Shapes a little larger and smaller that have room for so many items and are not much too large.
fn neighbours(shape: Shape, items: usize) -> Vec<Shape> {
    let grid = |columns, rows| Shape::Grid { columns, rows };
    let ring = |stops| Shape::Ring { stops };
    let near = match shape {
        Shape::Ring { stops } => {
            let far = (items / SEARCHED / 2).max(2);
            vec![ring(stops - far), ring(stops - 1), ring(stops + 1), ring(stops + far)]
        }
        Shape::Grid { columns, rows } => vec![
            grid(columns - 1, rows),
            grid(columns, rows - 1),
            grid(columns + 1, rows),
            grid(columns, rows + 1),
            grid(columns - 1, rows + 1),
            grid(columns + 1, rows - 1),
        ],
    };
    let fits = |shape: &Shape| match *shape {
        Shape::Ring { stops } => (items..=most_stops(items)).contains(&stops),
        Shape::Grid { columns, rows } => {
            columns >= rows && (items..=most_cells(items)).contains(&(columns * rows))
        }
    };
    near.into_iter().filter(fits).collect()
}

/// The same grid with its own cost for hops up and down, if that describes the data better.
/// Arrangement and ratio depend on each other, so they are found by turns.
fn skewed(observations: &Observations, mut fit: Fit, rounds: usize, means: &mut Means<'_>) -> Fit {
    if matches!(fit.space.shape, Shape::Ring { .. }) || fit.r2 > 1.0 - 1e-9 {
        return fit;
    }
    for _ in 0..rounds {
        if !means.keep_going() {
            break;
        }
        let Some(ratio) = hop_ratio(observations, &fit) else { return fit };
        let space = Space::new(fit.space.shape, ratio);
        let other = arrange(observations, &space, Effort::Careful, means);
        let gain = length(&fit, observations) - length(&other, observations);
        if gain > 0.0 {
            fit = other;
        }
        // Half a nat is a likelihood ratio of 1.6, which is nothing.
        if gain < 0.5 {
            break;
        }
    }
    fit
}

/// Cost of a hop up or down over that of one sideways, by least squares over both; `None` where
/// one of them is not positive.
fn hop_ratio(observations: &Observations, fit: &Fit) -> Option<f64> {
    let hops: Vec<(f64, f64)> = observations
        .links
        .iter()
        .map(|l| {
            let far = fit.column_cells.get(l.b).copied().unwrap_or_else(|| fit.cells[l.b]);
            fit.space.shape.hops(fit.cells[l.a], far)
        })
        .collect();
    let n = hops.len() as f64;
    let centre = |value: fn(&(f64, f64)) -> f64| hops.iter().map(value).sum::<f64>() / n;
    let (mx, my) = (centre(|h| h.0), centre(|h| h.1));
    let mut s = [0.0; 5];
    for (link, (x, y)) in observations.links.iter().zip(&hops) {
        let (x, y) = (x - mx, y - my);
        for (sum, term) in
            s.iter_mut().zip([x * x, x * y, y * y, x * link.latency, y * link.latency])
        {
            *sum += term;
        }
    }
    let determinant = s[0] * s[2] - s[1] * s[1];
    if determinant <= 1e-9 * s[0] * s[2] {
        return None;
    }
    let across = (s[3] * s[2] - s[4] * s[1]) / determinant;
    let down = (s[4] * s[0] - s[3] * s[1]) / determinant;
    (across > 0.0 && down > 0.0).then(|| (down / across).clamp(0.2, 5.0))
}
