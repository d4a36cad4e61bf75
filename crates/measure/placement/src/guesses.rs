//! First guesses of cells: the items scaled to a plane, turned and stretched onto a space.

use super::assign::assign;
use super::embed;
use super::fit::Effort;
use super::means::Means;
use super::observations::Observations;
use super::search::{Arrangement, Dense};
use super::space::{Shape, Space};
use std::f64::consts::{PI, TAU};

/// First guesses, the best first.
pub(super) fn guesses(
    observations: &Observations,
    space: &Space,
    effort: Effort,
    means: &mut Means<'_>,
) -> Vec<Vec<usize>> {
    let n = observations.items;
    let distances = as_distances(&observations.filled(), n, space.diameter());
    let points = embed::plane(n, &distances, &mut means.rng);
    let glance = effort == Effort::Glance;
    let guessed: Vec<Vec<usize>> = match space.shape {
        Shape::Ring { stops } => {
            let offsets = if stops == n || glance { 1 } else { 4 };
            (0..offsets).map(|k| around(&points, stops, f64::from(k) / 4.0)).collect()
        }
        Shape::Grid { columns, rows } => {
            // Scaling puts the longest extent first, but cannot know how a grid is turned: its
            // distances are almost round.
            let upright = (rows - 1) as f64 * space.y_over_x > (columns - 1) as f64;
            let first = if upright { PI / 2.0 } else { 0.0 };
            let (turns, step) = if glance { (2, PI / 4.0) } else { (8, PI / 8.0) };
            (0..turns)
                .map(|k| first + step * f64::from(k))
                .map(|angle| onto(&points, columns, rows, angle))
                .collect()
        }
    };
    let dense = Dense::new(observations);
    let mut scored: Vec<(f64, Vec<usize>)> = guessed
        .into_iter()
        .map(|cells| (Arrangement::new(space, &dense, cells.clone()).score(), cells))
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().map(|(_, cells)| cells).collect()
}

/// Latencies as hops: the fastest links are one hop, the slowest as many as the space has.
pub(super) fn as_distances(latencies: &[f64], n: usize, diameter: f64) -> Vec<f64> {
    let off_diagonal = |at: &usize| at / n != at % n;
    let mut sorted: Vec<f64> = (0..n * n).filter(off_diagonal).map(|at| latencies[at]).collect();
    sorted.sort_by(f64::total_cmp);
    // The outermost hundredth is left out on both sides, so that a stray does not set the scale.
    let edge = sorted.len() / 100;
    let (low, high) = match sorted.as_slice() {
        [] => (0.0, 1.0),
        all => (all[edge], all[all.len() - 1 - edge]),
    };
    let hop = ((high - low) / (diameter - 1.0).max(1.0)).max(f64::MIN_POSITIVE);
    latencies.iter().map(|l| (1.0 + (l - low) / hop).max(0.1)).collect()
}

/// Stops by the angle around the centre.
fn around(points: &[(f64, f64)], stops: usize, offset: f64) -> Vec<usize> {
    let n = points.len();
    let angles: Vec<f64> = points.iter().map(|p| p.1.atan2(p.0).rem_euclid(TAU) / TAU).collect();
    if stops == n {
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&a, &b| angles[a].total_cmp(&angles[b]));
        let mut cells = vec![0; n];
        order.into_iter().enumerate().for_each(|(stop, item)| cells[item] = stop);
        return cells;
    }
    let mut cost = Vec::with_capacity(n * stops);
    for angle in &angles {
        let wanted = angle * stops as f64 + offset;
        for stop in 0..stops {
            let d = (wanted - stop as f64).rem_euclid(stops as f64);
            let d = d.min(stops as f64 - d);
            cost.push(d * d);
        }
    }
    assign(n, stops, &cost)
}

/// Cells of a grid by turning the points and stretching them to its size.
fn onto(points: &[(f64, f64)], columns: usize, rows: usize, angle: f64) -> Vec<usize> {
    let (sin, cos) = angle.sin_cos();
    let xs: Vec<f64> = points.iter().map(|p| p.0 * cos - p.1 * sin).collect();
    let ys: Vec<f64> = points.iter().map(|p| p.0 * sin + p.1 * cos).collect();
    let (xs, ys) = (stretched(&xs, columns), stretched(&ys, rows));
    let mut cost = Vec::with_capacity(points.len() * columns * rows);
    for (x, y) in xs.iter().zip(&ys) {
        for cell in 0..columns * rows {
            let (dx, dy) = (x - (cell % columns) as f64, y - (cell / columns) as f64);
            cost.push(dx * dx + dy * dy);
        }
    }
    assign(points.len(), columns * rows, &cost)
}

/// Values moved and scaled to span 0 to `cells - 1`.
fn stretched(values: &[f64], cells: usize) -> Vec<f64> {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let span = (high - low).max(f64::MIN_POSITIVE);
    values.iter().map(|v| (v - low) / span * (cells.saturating_sub(1)) as f64).collect()
}
