//! One class of cores: the best tree by a recurrence.
//!
//! All children of a node are ready together, so it is best to make their subtrees alike: with T(1) = 0,
//!
//! ```text
//! T(n) = min over k of  level(k) + T(ceil((n - 1) / k))
//! ```
//!
//! This is Equation (2) of the paper solved exactly, as long as a level never becomes cheaper by more
//! children.

use super::level::Level;
use super::shape::Shape;

/// What the recurrence has found for trees of up to a number of nodes.
#[derive(Clone, Debug)]
pub struct Recurrence {
    /// By nodes: the best time below a node that is not the root, and its children.
    inner: Vec<(f64, usize)>,
    root: Vec<(f64, usize)>,
}

impl Recurrence {
    /// Solves it for up to `nodes` nodes with at most `most` children each.
    #[must_use]
    pub fn new(root: &Level, inner: &Level, nodes: usize, most: usize) -> Self {
        let mut below: Vec<(f64, usize)> = vec![(0.0, 0), (0.0, 0)];
        let mut whole = below.clone();
        for n in 2..=nodes {
            let best = |level: &Level, below: &[(f64, usize)]| {
                let times = (1..n)
                    .take(most)
                    .map(|k| (level.delay_ns([k, 0], 0) + below[(n - 1).div_ceil(k)].0, k));
                times.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::INFINITY, 0))
            };
            whole.push(best(root, &below));
            below.push(best(inner, &below));
        }
        Self { inner: below, root: whole }
    }

    /// The times of the best subtrees of 0, 1, 2, ... `nodes` nodes, ns.
    pub(super) fn below_ns(level: &Level, nodes: usize, most: usize) -> Vec<f64> {
        Self::new(level, level, nodes, most).inner.into_iter().map(|(ns, _)| ns).collect()
    }

    /// The time of the best tree of `nodes` nodes, ns.
    ///
    /// # Panics
    /// If it was not solved for so many.
    #[must_use]
    pub fn time_ns(&self, nodes: usize) -> f64 {
        self.root[nodes].0
    }

    /// The best tree of `nodes` nodes.
    ///
    /// # Panics
    /// If it was not solved for so many.
    #[must_use]
    pub fn shape(&self, nodes: usize) -> Shape {
        self.below(nodes, self.root[nodes].1)
    }

    fn below(&self, nodes: usize, children: usize) -> Shape {
        let mut left = nodes - 1;
        let mut shapes = Vec::new();
        for child in (1..=children).rev() {
            let share = left.div_ceil(child);
            left -= share;
            shapes.push(self.below(share, self.inner[share].1));
        }
        Shape { class: 0, children: shapes }
    }
}
