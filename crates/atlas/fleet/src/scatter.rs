//! How far the same number of equal nodes scatters: by the nodes themselves where there are enough of them, else by
//! maps of one machine that were made again and again.

use isochrone_atlas_store::Experiment;
use isochrone_stats::{MAD_TO_SD, mad, median, quantile};

/// Up to so many nodes cannot tell their scatter alone.
const FEW: usize = 20;
/// A standard deviation by a median absolute deviation is as good as one by so large a share of the values (Rousseeuw
/// and Croux, Journal of the American Statistical Association 88, 1993, table 1).
const MAD_EFFICIENCY: f64 = 0.37;
/// Between the 10th and the 90th percentile of a normal distribution lie so many standard deviations.
const DECILES: f64 = 2.563;
/// Maps of one machine differ by this much whatever is measured (as for two atlases of it, `diff`).
const LEAST_SD: f64 = 0.005;
/// Maps that stand behind [`RECORDED`].
const RECORDED_MAPS: f64 = 8.0;

/// Standard deviation of the logarithm from map to map of one machine that was otherwise left alone, by experiment:
/// `docs/results/fleet.md`, from `docs/results/maps`. A guest's, whose host moves it: a machine by itself is quieter.
pub const RECORDED: [(Experiment, f64); 4] = [
    (Experiment::Block, 0.035),
    (Experiment::Region, 0.055),
    (Experiment::Transfer, 0.050),
    (Experiment::Bandwidth, 0.140),
];

/// What recorded maps say of an experiment.
#[must_use]
pub fn recorded(experiment: Experiment) -> f64 {
    let widest = RECORDED.iter().map(|(_, sd)| *sd).fold(LEAST_SD, f64::max);
    RECORDED.iter().find(|(of, _)| *of == experiment).map_or(widest, |(_, sd)| *sd)
}

/// Where equal nodes lie and how far they scatter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scatter {
    /// Their median.
    pub(crate) centre: f64,
    /// Standard deviation.
    pub(crate) sd: f64,
    /// Degrees of freedom behind it.
    pub(crate) degrees: f64,
    /// Whether recorded maps are part of it.
    pub(crate) is_recorded: bool,
}

impl Scatter {
    /// Of the logarithms of one number; `None` of fewer than three.
    pub(crate) fn of(values: &[f64], experiment: Experiment) -> Option<Self> {
        let centre = median(values).filter(|_| values.len() >= 3)?;
        let count = f64::from(u32::try_from(values.len()).unwrap_or(u32::MAX));
        let own = mad(values)? * MAD_TO_SD;
        let own_degrees = MAD_EFFICIENCY * (count - 1.0);
        if values.len() > FEW {
            // A tail that is longer than a normal one counts as scatter; up to a tenth of the nodes may be faulty.
            let mut sorted = values.to_vec();
            sorted.sort_by(f64::total_cmp);
            let deciles = (quantile(&sorted, 0.9)? - quantile(&sorted, 0.1)?) / DECILES;
            let sd = own.max(deciles).max(LEAST_SD);
            return Some(Self { centre, sd, degrees: own_degrees, is_recorded: false });
        }
        // As in a moderated t: the nodes' own scatter and the recorded one, each with its weight (Smyth, Statistical
        // Applications in Genetics and Molecular Biology 3, 2004).
        let degrees = own_degrees + RECORDED_MAPS - 1.0;
        let known = (RECORDED_MAPS - 1.0) * recorded(experiment).powi(2);
        let sd = ((own_degrees * own * own + known) / degrees).sqrt().max(LEAST_SD);
        Some(Self { centre, sd, degrees, is_recorded: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isochrone_stats::{normal, rng};

    #[test]
    fn scatter_of_many_is_their_own_whatever_strays() {
        let mut noise = rng(5);
        let mut values: Vec<f64> = (0..200).map(|_| 1.0 + 0.02 * normal(&mut noise)).collect();
        values[..10].iter_mut().for_each(|value| *value += 1.0);
        let found = Scatter::of(&values, Experiment::Region).unwrap();
        assert!(!found.is_recorded && (0.015..0.03).contains(&found.sd), "{found:?}");
        assert!((found.centre - 1.0).abs() < 0.01);
    }

    #[test]
    fn nodes_of_two_kinds_scatter_by_what_lies_between_them() {
        let values: Vec<f64> = (0..64).map(|at| if at % 4 == 0 { 1.0 } else { 0.0 }).collect();
        assert!(Scatter::of(&values, Experiment::Transfer).unwrap().sd > 0.3);
    }

    #[test]
    fn few_nodes_lean_on_recorded_maps() {
        assert_eq!(Scatter::of(&[1.0, 1.0], Experiment::Region), None);
        let found = Scatter::of(&[1.0, 1.0, 1.0], Experiment::Region).unwrap();
        let known = recorded(Experiment::Region);
        assert!(found.is_recorded && found.sd > 0.8 * known && found.sd < known, "{found:?}");
    }
}
