//! Which cores are near one another: clusters from costs, and classes from a measured matrix.
//!
//! Sockets do not decide. On an EPYC 7453 a line crosses in 21 to 30 ns within a core complex and in 220 ns
//! between two of the same socket.

use isochrone_machine::LineCosts;
use isochrone_stats as stats;

/// Groups of cores between which lines cost no more than `limit_ns`, by their places in `cores`: joined
/// where any two are that near (single linkage).
#[must_use]
pub fn clusters(costs: &LineCosts, cores: &[usize], limit_ns: f64) -> Vec<Vec<usize>> {
    let mut of: Vec<usize> = (0..cores.len()).collect();
    for a in 0..cores.len() {
        for b in 0..a {
            if costs.pair(cores[a], cores[b]).transfer_ns <= limit_ns {
                let (from, to) = (of[a].max(of[b]), of[a].min(of[b]));
                of.iter_mut().filter(|c| **c == from).for_each(|c| *c = to);
            }
        }
    }
    let mut clusters: Vec<Vec<usize>> = Vec::new();
    let mut names: Vec<usize> = Vec::new();
    for (core, name) in of.into_iter().enumerate() {
        match names.iter().position(|&known| known == name) {
            Some(at) => clusters[at].push(core),
            None => {
                names.push(name);
                clusters.push(vec![core]);
            }
        }
    }
    clusters
}

/// The transfer costs that occur between different cores of `cores`, cheapest first.
#[must_use]
pub fn transfer_costs(costs: &LineCosts, cores: &[usize]) -> Vec<f64> {
    let mut found = Vec::new();
    for (n, &a) in cores.iter().enumerate() {
        found.extend(cores[..n].iter().map(|&b| costs.pair(a, b).transfer_ns));
    }
    found.sort_by(f64::total_cmp);
    found.dedup();
    found
}

/// The classes of the pairs of a measured matrix: for each pair its class, cheapest first, and the mean of
/// each class in ns.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixClasses {
    /// Row-major, `cores * cores`; a core with itself is in class 0.
    pub class: Vec<u8>,
    /// Mean of each class, ns.
    pub means_ns: Vec<f64>,
}

/// Most classes that a matrix is cut into.
const CLASSES_MAX: usize = 8;

/// Cuts a measured matrix into classes. Both directions of a pair count as one, by their mean; what
/// differs by less than the noise of a cell is one class.
///
/// `None` if a pair is missing or no pair is there.
#[must_use]
pub fn matrix_classes(cores: usize, ns: &[Option<f64>], noise_ns: f64) -> Option<MatrixClasses> {
    let mut pairs = Vec::new();
    for a in 0..cores {
        for b in 0..a {
            let one = |x: usize, y: usize| ns.get(x * cores + y).copied().flatten();
            let (there, back) = (one(a, b), one(b, a));
            let both = there.into_iter().chain(back).collect::<Vec<_>>();
            pairs.push(stats::mean(&both)?);
        }
    }
    let cut = stats::choose_k_1d(&pairs, CLASSES_MAX, noise_ns)?;
    let mut class = vec![0; cores * cores];
    let mut next = cut.assignment.iter();
    for a in 0..cores {
        for b in 0..a {
            let of = next.next().and_then(|&c| u8::try_from(c).ok())?;
            class[a * cores + b] = of;
            class[b * cores + a] = of;
        }
    }
    Some(MatrixClasses { class, means_ns: cut.centers })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predicted::sandy_bridge;

    #[test]
    fn sockets_are_found_by_what_lines_cost() {
        let costs = sandy_bridge(2, 4);
        let cores = [0, 4, 1, 5];
        assert_eq!(clusters(&costs, &cores, 35.0), [vec![0, 2], vec![1, 3]]);
        assert_eq!(clusters(&costs, &cores, 94.0), [vec![0, 1, 2, 3]]);
        assert_eq!(clusters(&costs, &cores, 1.0).len(), 4);
        assert_eq!(transfer_costs(&costs, &cores), [35.0, 94.0]);
    }

    #[test]
    fn classes_come_from_the_matrix() {
        // Twelve cores in three complexes of four: 25 ns inside, 220 between, with some noise.
        let cores = 12;
        let ns: Vec<Option<f64>> = (0..cores * cores)
            .map(|n| {
                let (a, b) = (n / cores, n % cores);
                let wiggle = [0.0, 0.7, -0.5, 0.3][(a + 2 * b) % 4];
                Some(if a / 4 == b / 4 { 25.0 } else { 220.0 } + wiggle)
            })
            .collect();
        let found = matrix_classes(cores, &ns, 1.0).expect("no pair is missing");
        assert_eq!(found.means_ns.len(), 2);
        assert!(
            found
                .class
                .iter()
                .enumerate()
                .all(|(n, &class)| { class == u8::from(n / cores / 4 != n % cores / 4) })
        );
        assert_eq!(matrix_classes(3, &[None; 9], 1.0), None, "nothing was measured");
    }
}
