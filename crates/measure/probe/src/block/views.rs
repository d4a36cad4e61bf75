//! What one look at the training pages saw, made ready for learning: lines less what pages on other
//! nodes are farther, in whole and in halves.

use isochrone_stats::{choose_k_1d, mean, variance};
use isochrone_units::LINES_PER_PAGE;

use super::far::{far_groups, group_means};
use super::rounds::Stretch;
use super::shapes::Rows;

/// Share of the variance of lines on one node that a class by distance must be worth: less is a class
/// for its own sake, and costs loads to tell.
const LEVEL_SHARE: f64 = 0.01;
/// Classes by distance on one node and in one base.
pub(super) const LEVELS: usize = 4;

/// What one look saw, less what pages on other nodes are farther.
pub(super) struct View<'a> {
    pub(super) stretch: &'a Stretch,
    /// Node of each page, nearest first.
    pub(super) nodes: Vec<usize>,
    /// Deviations from the mean of the page's node, page by page.
    pub(super) lines: Vec<f64>,
    pub(super) halves: [Vec<f64>; 2],
    /// Standard deviation of a line's mean, cycles.
    noise: f64,
}

impl<'a> View<'a> {
    pub(super) fn new(stretch: &'a Stretch) -> Self {
        let lines = filled(&stretch.deviations());
        let halves = [filled(&stretch.half(0)), filled(&stretch.half(1))];
        let level = stretch.level();
        let means: Vec<f64> = lines
            .chunks_exact(LINES_PER_PAGE)
            .map(|page| level + mean(page).unwrap_or(0.0))
            .collect();
        let centres: Vec<f64> = group_means(&means).iter().map(|mean| mean - level).collect();
        let less = |lines: &[f64]| -> Vec<f64> {
            let pages = lines.chunks_exact(LINES_PER_PAGE).zip(&centres);
            pages.flat_map(|(page, centre)| page.iter().map(move |v| v - centre)).collect()
        };
        Self {
            stretch,
            nodes: far_groups(&means),
            lines: less(&lines),
            halves: [less(&halves[0]), less(&halves[1])],
            noise: (stretch.noise() / f64::from(stretch.rounds.max(1)).sqrt()).max(1e-3),
        }
    }

    pub(super) fn page_means(&self, period: usize) -> Vec<f64> {
        self.lines.chunks_exact(period).map(|page| mean(page).unwrap_or(0.0)).collect()
    }

    /// Variance of lines on their nodes, in squares of the noise of their means.
    pub(super) fn strength(&self) -> f64 {
        variance(&self.lines).unwrap_or(0.0) / self.noise.powi(2)
    }

    /// By how much page means must scatter to be different classes: beyond their error, and beyond what
    /// a class is worth.
    pub(super) fn level_error(&self) -> f64 {
        let worth = (LEVEL_SHARE * variance(&self.lines).unwrap_or(0.0)).sqrt();
        worth.max(self.noise / (LINES_PER_PAGE as f64).sqrt())
    }
}

/// For each page its class by node and distance: nodes as all views see them, and distances on one node
/// as the first does.
pub(super) fn levels(views: &[View<'_>]) -> Vec<usize> {
    let means = views[0].page_means(LINES_PER_PAGE);
    let node = |page: usize| -> Vec<usize> { views.iter().map(|view| view.nodes[page]).collect() };
    let mut nodes: Vec<Vec<usize>> = (0..means.len()).map(node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let error = views[0].level_error();
    let mut levels = vec![0; means.len()];
    let mut next = 0;
    for of in nodes {
        let members: Vec<usize> = (0..means.len()).filter(|page| node(*page) == of).collect();
        let values: Vec<f64> = members.iter().map(|page| means[*page]).collect();
        let found = choose_k_1d(&values, LEVELS, error);
        let assignment = found.map_or_else(|| vec![0; members.len()], |found| found.assignment);
        for (page, group) in members.iter().zip(&assignment) {
            levels[*page] = next + group;
        }
        next += assignment.iter().max().map_or(0, |most| most + 1);
    }
    levels
}

/// Pages as rows over all views, each part less its mean and in units of its noise.
pub(super) fn rows_of<'v>(
    views: &'v [View<'_>],
    period: usize,
    lines: impl Fn(&'v View<'_>) -> &'v Vec<f64>,
) -> Rows {
    let pages = views.iter().map(|view| lines(view).len() / period).min().unwrap_or(0);
    let row = |page: usize| -> Vec<f64> {
        let part = |view: &'v View<'_>| {
            let values = &lines(view)[page * period..(page + 1) * period];
            let centre = mean(values).unwrap_or(0.0);
            let noise = view.noise;
            values.iter().map(move |v| (v - centre) / noise).collect::<Vec<f64>>()
        };
        views.iter().flat_map(part).collect()
    };
    Rows::new((0..pages).map(row).collect(), period)
}

/// A line of which no sample was kept takes its page's mean: it then says nothing.
pub(super) fn filled(values: &[f64]) -> Vec<f64> {
    let mut out = values.to_vec();
    for page in out.chunks_mut(LINES_PER_PAGE) {
        let known: Vec<f64> = page.iter().copied().filter(|v| v.is_finite()).collect();
        let centre = mean(&known).unwrap_or(0.0);
        for value in page.iter_mut().filter(|v| !v.is_finite()) {
            *value = centre;
        }
    }
    out
}
