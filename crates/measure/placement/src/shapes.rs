//! Which size of ring or grid suits the data: all sizes that could hold the items are screened,
//! the best are searched in earnest, and empty cells have to pay for themselves.

use super::arrange::arrange;
use super::embed;
use super::fit::{Effort, Fit};
use super::guesses::as_distances;
use super::means::Means;
use super::observations::Observations;
use super::space::{Shape, Space};

/// Sizes searched carefully, and of these the ones searched with all means.
const CAREFUL: usize = 6;
const FULL: usize = 3;

/// Costs of a hop up or down, in hops sideways, from which the search starts. Meshes of the last
/// decade lie in between.
const START_RATIOS: [f64; 3] = [0.5, 1.0, 2.0];

/// Turns between the arrangement and the ratio of its hop costs.
const SKEW_ROUNDS: usize = 8;

/// How much longer or shorter than the guess from scaling a grid may be.
const ELONGATION_SLACK: f64 = 2.3;

/// The best ring.
pub(super) fn best_ring(observations: &Observations, means: &mut Means<'_>) -> Option<Fit> {
    // Memory controllers and agents are stops without cores: on a Xeon Phi 5110P about a fifth.
    let n = observations.items;
    let sizes = (n..=n + (n / 4).max(1)).map(|stops| Space::new(Shape::Ring { stops }, 1.0));
    tournament(observations, sizes.collect(), means)
}

/// The best grid. Hops up and down may cost more or less than hops sideways.
pub(super) fn best_grid(observations: &Observations, means: &mut Means<'_>) -> Option<Fit> {
    let sizes = grids(observations, means);
    tournament(observations, sizes, means)
}

/// Grids with room for the items and up to a third of their cells empty, not much longer or
/// shorter than the data, with three ratios of hop costs to start from.
fn grids(observations: &Observations, means: &mut Means<'_>) -> Vec<Space> {
    let n = observations.items;
    let stand_in = match observations.columns {
        Some(_) => &observations.profile_distances(),
        None => observations,
    };
    let guess = 2.0 * (n as f64).sqrt();
    let points = embed::plane(n, &as_distances(&stand_in.filled(), n, guess), &mut means.rng);
    let extent =
        |axis: fn(&(f64, f64)) -> f64| points.iter().map(|p| axis(p) * axis(p)).sum::<f64>().sqrt();
    let elongation = extent(|p| p.0) / extent(|p| p.1).max(1e-9);
    let most = n + n / 3 + 2;
    let mut spaces = Vec::new();
    for rows in 1..=most {
        for columns in rows.max(n.div_ceil(rows))..=most / rows {
            // A line has no second cost.
            let ratios: &[f64] = if rows == 1 { &[1.0] } else { &START_RATIOS };
            for &y_over_x in ratios {
                let (across, down) = (columns as f64, rows as f64 * y_over_x);
                let ratio = across.max(down) / across.min(down) / elongation;
                let near = (1.0 / ELONGATION_SLACK..=ELONGATION_SLACK).contains(&ratio);
                // The length of a line is hard to tell from its scaling: it bends.
                if near || (rows == 1 && elongation > 3.0) {
                    spaces.push(Space::new(Shape::Grid { columns, rows }, y_over_x));
                }
            }
        }
    }
    spaces
}

/// Screens all spaces, searches the better ones, and returns the best.
fn tournament(
    observations: &Observations,
    spaces: Vec<Space>,
    means: &mut Means<'_>,
) -> Option<Fit> {
    // Cores and columns by turns need more than a glance before they say anything.
    let (first, stages): (Effort, &[(Effort, usize)]) = match observations.columns {
        None => (Effort::Glance, &[(Effort::Careful, CAREFUL), (Effort::Full, FULL)]),
        Some(_) => (Effort::Careful, &[(Effort::Full, FULL)]),
    };
    let mut fits = Vec::new();
    for space in &spaces {
        if !means.keep_going() {
            break;
        }
        fits.push(arrange(observations, space, first, means));
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
    let (n, cells) = (fit.cells.len(), fit.space.cells());
    let empty: f64 = (1..=cells - n).map(|k| ((n + k) as f64 / k as f64).ln()).sum();
    let second = if fit.space.turnable() { 0.0 } else { links.ln() / 2.0 };
    links / 2.0 * residual.ln() + empty + second
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
