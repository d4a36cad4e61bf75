//! How much of a fit is real: prediction of links it has not seen, comparison with data whose
//! geometry was destroyed, and a rival explanation that has no geometry at all.

use super::arrange::arrange;
use super::fit::Effort;
use super::line;
use super::means::Means;
use super::observations::Observations;
use super::space::Space;
use rand::Rng;
use rand::seq::SliceRandom;

/// Parts into which links are dealt; each is predicted from the others.
const FOLDS: usize = 5;

/// Permuted data sets. With 199 the smallest p is 0.005.
const PERMUTATIONS: u32 = 199;

/// Permuted data sets that may do as well as the real one before p exceeds 0.01 for certain.
const MOST_AS_GOOD: u32 = 1;

/// Share of the variance of links explained that were hidden while items were placed in `space`.
pub(super) fn heldout_r2(observations: &Observations, space: &Space, means: &mut Means<'_>) -> f64 {
    let links = &observations.links;
    let mut order: Vec<usize> = (0..links.len()).collect();
    order.shuffle(&mut means.rng);
    let mut fold = vec![0; links.len()];
    order.iter().enumerate().for_each(|(at, &link)| fold[link] = at % FOLDS);
    let mut predicted = vec![0.0; links.len()];
    for hidden in 0..FOLDS {
        let known = observations.kept(|at| fold[at] != hidden);
        let fit = arrange(&known, space, Effort::Careful, means);
        for at in (0..links.len()).filter(|&at| fold[at] == hidden) {
            predicted[at] = fit.predict(&links[at]);
        }
    }
    line::explained(&observations.latencies(), &predicted)
}

/// Probability that data without geometry fit `space` as well. What single cores and columns
/// explain is kept, only what is left is permuted (Freedman and Lane 1983); the real and the
/// permuted data are fitted by the same procedure. Stops early where p is above 0.01 for certain
/// (Besag and Clifford 1991).
pub(super) fn p_value(observations: &Observations, space: &Space, means: &mut Means<'_>) -> f64 {
    let real = arrange(observations, space, Effort::Glance, means).r2;
    let additive = observations.additive();
    let residuals: Vec<f64> =
        observations.links.iter().zip(&additive).map(|(link, a)| link.latency - a).collect();
    let mut as_good = 0;
    for done in 1..=PERMUTATIONS {
        if !means.keep_going() {
            return 1.0;
        }
        let shuffled = permuted(observations, &residuals, &mut means.rng);
        let latencies: Vec<f64> = additive.iter().zip(shuffled).map(|(a, r)| a + r).collect();
        let fit = arrange(&observations.with_latencies(&latencies), space, Effort::Glance, means);
        as_good += u32::from(fit.r2 >= real);
        if as_good > MOST_AS_GOOD {
            return f64::from(as_good) / f64::from(done);
        }
    }
    f64::from(as_good + 1) / f64::from(PERMUTATIONS + 1)
}

/// Residuals dealt out anew: among all pairs, or within each column.
fn permuted(observations: &Observations, residuals: &[f64], rng: &mut impl Rng) -> Vec<f64> {
    let mut dealt = residuals.to_vec();
    for column in 0..observations.columns.unwrap_or(1) {
        let mine =
            |at: &usize| observations.columns.is_none() || observations.links[*at].b == column;
        let at: Vec<usize> = (0..residuals.len()).filter(mine).collect();
        let mut to = at.clone();
        to.shuffle(rng);
        at.iter().zip(to).for_each(|(&from, to)| dealt[to] = residuals[from]);
    }
    dealt
}

/// Share of the variance that a mere hierarchy of groups explains: latency is the height at which
/// average linkage joins the two items. Cores in clusters without order fit it well; a ring or a
/// grid does not. Only for links between items.
pub(super) fn hierarchy_r2(observations: &Observations) -> f64 {
    let n = observations.items;
    let latency = observations.filled();
    let mut groups: Vec<Vec<usize>> = (0..n).map(|item| vec![item]).collect();
    let mut between = latency;
    let mut joined = vec![0.0; n * n];
    let mut alive: Vec<usize> = (0..n).collect();
    while alive.len() > 1 {
        let mut best = (f64::INFINITY, 0, 0);
        for (k, &a) in alive.iter().enumerate() {
            for &b in &alive[k + 1..] {
                if between[a * n + b] < best.0 {
                    best = (between[a * n + b], a, b);
                }
            }
        }
        let (height, a, b) = best;
        for &i in &groups[a] {
            for &j in &groups[b] {
                joined[i * n + j] = height;
                joined[j * n + i] = height;
            }
        }
        let (weight_a, weight_b) = (groups[a].len() as f64, groups[b].len() as f64);
        for &c in alive.iter().filter(|&&c| c != a && c != b) {
            let mixed = (weight_a * between[a * n + c] + weight_b * between[b * n + c])
                / (weight_a + weight_b);
            between[a * n + c] = mixed;
            between[c * n + a] = mixed;
        }
        let moved = std::mem::take(&mut groups[b]);
        groups[a].extend(moved);
        alive.retain(|&g| g != b);
    }
    let heights: Vec<f64> =
        observations.links.iter().map(|link| joined[link.a * n + link.b]).collect();
    line::explained(&observations.latencies(), &heights)
}
