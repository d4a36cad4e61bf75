//! Which links between sockets would explain the far one: quadrants of each die are joined to those beside them at the
//! costs that the near socket gave, sockets by some links, and a load takes the shortest way. Which links there are
//! is not published, so all sets of them are tried; the best one is chosen by the cells that it explains.

use super::route::{Network, Place};

/// Links between two sockets at most: the processor has four.
const LINKS_MOST: usize = 4;

/// What the best set of links makes of the far socket.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Best {
    /// Near and far place of each link.
    pub(super) links: Vec<(Place, Place)>,
    /// Latency of each far place, in their order.
    pub(super) ns: Vec<f64>,
    /// Root mean square of what it misses.
    pub(super) rms_ns: f64,
    /// How many sets were tried.
    pub(super) tried: usize,
}

/// A way there and back between two places of one die.
fn way_ns(network: &Network, a: Place, b: Place) -> f64 {
    2.0 * (network.column_ns * (a.0 - b.0).abs() + network.row_ns * (a.1 - b.1).abs())
}

/// The best of all sets of one to four links for far places and their latencies. The nearest far place is `nearest_ns`
/// away, whatever the links are. `None` without places.
pub(super) fn best(
    network: &Network,
    home: Place,
    near: &[Place],
    far: &[(Place, f64)],
    nearest_ns: f64,
) -> Option<Best> {
    let all: Vec<(Place, Place)> =
        near.iter().flat_map(|from| far.iter().map(move |(to, _)| (*from, *to))).collect();
    let mut best: Option<Best> = None;
    let mut tried = 0;
    for links in sets(all.len()) {
        tried += 1;
        let links: Vec<(Place, Place)> = links.into_iter().map(|at| all[at]).collect();
        let way = |place: Place| {
            let by = |(from, to): &(Place, Place)| {
                way_ns(network, home, *from) + way_ns(network, *to, place)
            };
            links.iter().map(by).fold(f64::INFINITY, f64::min)
        };
        let ways: Vec<f64> = far.iter().map(|(place, _)| way(*place)).collect();
        let least = ways.iter().copied().fold(f64::INFINITY, f64::min);
        let ns: Vec<f64> = ways.iter().map(|way| nearest_ns + way - least).collect();
        let squares: Vec<f64> =
            ns.iter().zip(far).map(|(ours, (_, theirs))| (ours - theirs).powi(2)).collect();
        let rms_ns = isochrone_stats::mean(&squares)?.sqrt();
        if best.as_ref().is_none_or(|best| rms_ns < best.rms_ns) {
            best = Some(Best { links, ns, rms_ns, tried });
        }
    }
    best.map(|best| Best { tried, ..best })
}

/// All sets of one to four of so many, by index.
fn sets(count: usize) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<usize>> = Vec::new();
    let mut last: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..LINKS_MOST {
        let longer = last.iter().flat_map(|set| {
            let from = set.last().map_or(0, |at| at + 1);
            (from..count).map(move |at| [set.as_slice(), &[at]].concat())
        });
        last = longer.collect();
        all.extend(last.iter().cloned());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const NETWORK: Network = Network { base_ns: 140.0, column_ns: 4.0, row_ns: 10.0 };
    const NEAR: [Place; 4] = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)];
    const FAR: [Place; 4] = [(2.0, 0.0), (3.0, 0.0), (2.0, 1.0), (3.0, 1.0)];

    #[test]
    fn all_sets_of_one_to_four_are_tried() {
        assert_eq!(sets(5).len(), 5 + 10 + 10 + 5);
        assert_eq!(sets(16).len(), 16 + 120 + 560 + 1820);
    }

    #[test]
    fn links_that_made_the_latencies_are_found() {
        // One link from the block below the memory's to the far corner.
        let link = (NEAR[2], FAR[3]);
        let ns = |place| 250.0 + way_ns(&NETWORK, link.1, place);
        let far: Vec<(Place, f64)> = FAR.iter().map(|place| (*place, ns(*place))).collect();
        let found = best(&NETWORK, NEAR[0], &NEAR, &far, 250.0).unwrap();
        assert!(found.rms_ns < 1e-9, "{found:?}");
        assert!(found.links.iter().any(|(_, to)| *to == link.1), "{found:?}");
    }

    #[test]
    fn no_links_make_neighbours_farther_apart_than_their_link() {
        // The neighbour of the nearest is as far as the block across.
        let far: Vec<(Place, f64)> =
            FAR.iter().zip([250.0, 278.0, 270.0, 278.0]).map(|(p, ns)| (*p, ns)).collect();
        let found = best(&NETWORK, NEAR[0], &NEAR, &far, 250.0).unwrap();
        assert!(found.rms_ns > 5.0, "{found:?}");
        let apart = (found.ns[1] - found.ns[0]).abs();
        assert!(apart <= 2.0 * NETWORK.column_ns + 1e-9, "{apart}");
    }
}
