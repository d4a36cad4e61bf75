//! Which cores are near one another, by what lines cost between them.

use isochrone_machine::LineCosts;

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
}
