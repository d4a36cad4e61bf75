//! Fits the costs of a network, and the place of a controller, to some cells of a grid.
//!
//! Least squares for every place that is offered; the place with the smallest residuals wins.
//! Where latencies pile up at a floor, cells there only bound the fit from above: no network of
//! ways has a floor. It sees the cells it is given and no others.

use super::route::{Home, Network, Place, mean_steps};

/// Rounds in which cells at the floor enter and leave the fit; it settles in three or four.
const FLOOR_ROUNDS: usize = 12;
/// A fit that runs through a cell at the floor is not above it.
const ROUNDING_NS: f64 = 1e-9;

/// Costs and a place, fitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fitted {
    /// The costs.
    pub(super) network: Network,
    /// Where the controller is.
    pub(super) controller: Place,
    /// Root mean square of the residuals on the cells that were given.
    pub(super) rms_ns: f64,
    /// The same of the next best place.
    pub(super) next_rms_ns: Option<f64>,
}

/// Fits `cells` (place of the core, nanoseconds) with a controller at each of `controllers` in
/// turn, whose memory has the homes that `homes` says. `None` where no place gives costs of 0 or
/// more.
pub(super) fn network(
    cells: &[(Place, f64)],
    floor_ns: Option<f64>,
    controllers: &[Place],
    homes: impl Fn(Place) -> Vec<Home>,
) -> Option<Fitted> {
    let mut fits: Vec<(f64, Place, Network)> = controllers
        .iter()
        .filter_map(|place| {
            let (network, rms) = costs(cells, floor_ns, &homes(*place))?;
            Some((rms, *place, network))
        })
        .collect();
    fits.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (rms_ns, controller, network) = *fits.first()?;
    Some(Fitted { network, controller, rms_ns, next_rms_ns: fits.get(1).map(|fit| fit.0) })
}

/// The best costs for given homes, and the root mean square of the residuals.
pub(super) fn costs(
    cells: &[(Place, f64)],
    floor_ns: Option<f64>,
    homes: &[Home],
) -> Option<(Network, f64)> {
    let steps: Vec<(f64, f64)> = cells.iter().map(|(place, _)| mean_steps(*place, homes)).collect();
    let low = |ns: f64| floor_ns.is_some_and(|floor| ns <= floor);
    let mut counts: Vec<bool> = cells.iter().map(|(_, ns)| !low(*ns)).collect();
    for _ in 0..FLOOR_ROUNDS {
        let network = least_squares(cells, &steps, &counts)?;
        let fitted = |at: usize| {
            network.base_ns + network.column_ns * steps[at].0 + network.row_ns * steps[at].1
        };
        let wanted: Vec<bool> = cells
            .iter()
            .enumerate()
            .map(|(at, (_, ns))| !low(*ns) || fitted(at) > *ns + ROUNDING_NS)
            .collect();
        if wanted == counts {
            let used = (0..cells.len()).filter(|at| counts[*at]);
            let squares: Vec<f64> = used.map(|at| (fitted(at) - cells[at].1).powi(2)).collect();
            return Some((network, isochrone_stats::mean(&squares)?.sqrt()));
        }
        counts = wanted;
    }
    None
}

/// Ordinary least squares over the cells that count; `None` for costs below 0.
fn least_squares(cells: &[(Place, f64)], steps: &[(f64, f64)], counts: &[bool]) -> Option<Network> {
    let used = || (0..cells.len()).filter(|at| counts[*at]);
    let rows: Vec<[f64; 3]> = used().map(|at| [1.0, steps[at].0, steps[at].1]).collect();
    let y: Vec<f64> = used().map(|at| cells[at].1).collect();
    let fit = isochrone_stats::least_squares(&rows, &y)?;
    let [base_ns, column_ns, row_ns] = fit.coef[..] else {
        return None;
    };
    (column_ns >= 0.0 && row_ns >= 0.0).then_some(Network { base_ns, column_ns, row_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRUTH: Network = Network { base_ns: 150.0, column_ns: 1.5, row_ns: 0.5 };

    fn homes(controller: Place) -> Vec<Home> {
        let directories = vec![(3.0, 0.0), (4.0, 1.0), (5.0, 3.0)];
        vec![Home { directories, controllers: vec![controller] }]
    }

    fn cells() -> Vec<(Place, f64)> {
        let places = (0..42_u8).map(|k| (f64::from(k % 6), f64::from(k / 6)));
        places.map(|p| (p, TRUTH.expected_ns(p, &homes((4.0, -1.0))))).collect()
    }

    #[test]
    fn costs_and_place_are_recovered() {
        let offered = [(0.0, -1.0), (4.0, -1.0), (2.0, 7.0), (6.0, 3.0)];
        let found = network(&cells(), None, &offered, homes).unwrap();
        assert_eq!(found.controller, (4.0, -1.0));
        assert!((found.network.base_ns - 150.0).abs() < 1e-6);
        assert!((found.network.column_ns - 1.5).abs() < 1e-9);
        assert!((found.network.row_ns - 0.5).abs() < 1e-9);
        assert!(found.rms_ns < 1e-9 && found.next_rms_ns.unwrap() > 0.1);
    }

    #[test]
    fn a_floor_hides_cells_but_not_the_costs() {
        let floor = 160.0;
        let cut: Vec<(Place, f64)> = cells().iter().map(|(p, ns)| (*p, ns.max(floor))).collect();
        let hidden = cut.iter().filter(|(_, ns)| *ns <= floor).count();
        assert!((5..30).contains(&hidden), "{hidden} of 42 are at the floor");
        let (found, _) = costs(&cut, Some(floor), &homes((4.0, -1.0))).unwrap();
        assert!((found.column_ns - 1.5).abs() < 1e-9 && (found.row_ns - 0.5).abs() < 1e-9);
        let (blind, _) = costs(&cut, None, &homes((4.0, -1.0))).unwrap();
        assert!((blind.column_ns - 1.5).abs() > 0.05, "without it the costs come out wrong");
    }
}
