//! Cores that share a stop of the network (hyperthreads, the two cores of a Xeon Phi tile) are
//! found and merged before anything is placed: their latency says nothing about distance.

use super::latencies::PairLatencies;

/// Most cores that share one stop: four hyperthreads, or the cores of one small complex. Larger
/// groups have an inside worth placing.
const MOST_MATES: usize = 4;

/// The step from latencies inside a stop to the nearest outside must be at least this share of
/// the step to the median outside. In the mesh of a Xeon Phi (mean distance 4 hops) a neighbour
/// is about a quarter of the way.
const LEAST_STEP: f64 = 0.15;

/// Groups of cores that sit together; every core is in exactly one, alone where it has no mate.
/// Groups and their members ascend.
pub(super) fn tiles(pairs: &PairLatencies) -> Vec<Vec<usize>> {
    let n = pairs.cores();
    let mut links: Vec<(f64, usize, usize)> = Vec::new();
    for i in 0..n {
        links.extend((i + 1..n).filter_map(|j| pairs.get(i, j).map(|l| (l, i, j))));
    }
    links.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let alone: Vec<Vec<usize>> = (0..n).map(|core| vec![core]).collect();
    // Every core with MOST_MATES - 1 mates: more links than that are not inside stops.
    let most_links = (n * (MOST_MATES - 1) / 2).min(links.len().saturating_sub(1));
    let mut best: Option<(f64, Vec<Vec<usize>>)> = None;
    let values: Vec<f64> = links.iter().map(|link| link.0).collect();
    for inside in 1..=most_links {
        let (within, outside) = values.split_at(inside);
        let step = outside[0] - within[inside - 1];
        let whole = outside[outside.len() / 2] - within[inside / 2];
        let distinct = whole > 0.0
            && step >= LEAST_STEP * whole
            && step > 4.0 * pairs.noise().unwrap_or(0.0)
            && step > within[inside - 1] - within[0];
        if !distinct || best.as_ref().is_some_and(|(largest, _)| step <= *largest) {
            continue;
        }
        if let Some(groups) = cliques(n, &links[..inside]) {
            best = Some((step, groups));
        }
    }
    best.map_or(alone, |(_, groups)| groups)
}

/// The connected groups of `links`, if each is complete, none is too large, and at least half of
/// the cores have a mate (else the few fastest pairs are chance).
fn cliques(n: usize, links: &[(f64, usize, usize)]) -> Option<Vec<Vec<usize>>> {
    let mut group: Vec<usize> = (0..n).collect();
    for &(_, a, b) in links {
        let (keep, drop) = (group[a].min(group[b]), group[a].max(group[b]));
        for g in &mut group {
            if *g == drop {
                *g = keep;
            }
        }
    }
    let mut groups: Vec<Vec<usize>> = vec![Vec::new(); n];
    for (core, &g) in group.iter().enumerate() {
        groups[g].push(core);
    }
    groups.retain(|g| !g.is_empty());
    let complete: usize = groups.iter().map(|g| g.len() * (g.len() - 1) / 2).sum();
    let mated: usize = groups.iter().filter(|g| g.len() > 1).map(Vec::len).sum();
    let fits = groups.iter().all(|g| g.len() <= MOST_MATES);
    (complete == links.len() && fits && 2 * mated >= n && groups.len() > 1).then_some(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(n: usize, latency: impl Fn(usize, usize) -> f64) -> PairLatencies {
        let cells: Vec<Option<f64>> =
            (0..n * n).map(|at| (at / n != at % n).then(|| latency(at / n, at % n))).collect();
        PairLatencies::new(n, &cells).unwrap()
    }

    #[test]
    fn mates_on_a_line_of_tiles_are_merged() {
        let pairs = matrix(12, |a, b| {
            let hops = (a / 2).abs_diff(b / 2);
            if hops == 0 { 40.0 } else { 60.0 + 5.0 * hops as f64 }
        });
        let groups = tiles(&pairs);
        assert_eq!(groups.len(), 6);
        assert_eq!(groups[2], [4, 5]);
    }

    #[test]
    fn a_missing_mate_leaves_its_core_alone() {
        // Core 11 is switched off: core 10 has no mate.
        let pairs = matrix(11, |a, b| if a / 2 == b / 2 { 40.0 } else { 70.0 });
        let groups = tiles(&pairs);
        assert_eq!(groups.len(), 6);
        assert_eq!(groups[5], [10]);
    }

    #[test]
    fn neighbours_on_a_ring_are_no_mates() {
        let pairs = matrix(8, |a, b| {
            let d = a.abs_diff(b);
            50.0 + 5.0 * d.min(8 - d) as f64
        });
        assert_eq!(tiles(&pairs).len(), 8);
    }
}
