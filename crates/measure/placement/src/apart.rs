//! Which cores latencies to memories tell apart, where they do not tell places: of two memories at the most, cores at
//! the same distances look the same. Which cores do not look the same is told, and nothing more.

use isochrone_stats::student_t_p;

use super::error::PlacementError;
use super::latencies::ColumnLatencies;

/// Of so many matrices whose cores are all alike one has a pair that is told apart.
const WRONG_ONCE_IN: f64 = 100.0;

/// How surely the latencies of a column are known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnError {
    /// Standard error of one cell.
    pub standard: f64,
    /// Degrees of freedom that it was estimated with.
    pub freedom: f64,
}

/// Cores that are told apart, and cores that are not.
#[derive(Clone, Debug, PartialEq)]
pub struct Apart {
    /// Each core differs from every core of every other group. Cores of one group may differ as well: each is
    /// connected with the others by pairs that do not.
    pub groups: Vec<Vec<usize>>,
    /// Cores of which nothing is known.
    pub unknown: Vec<usize>,
    /// Pairs of cores of which something is known.
    pub pairs: usize,
    cores: usize,
    told: Vec<bool>,
}

impl Apart {
    /// Whether these two are told apart.
    #[must_use]
    pub fn told(&self, a: usize, b: usize) -> bool {
        self.told.get(a * self.cores + b).copied().unwrap_or(false)
    }

    /// How many pairs are told apart.
    #[must_use]
    pub fn count(&self) -> usize {
        self.told.iter().filter(|told| **told).count() / 2
    }
}

/// Tells cores apart by what each column says of both, one error for each column. Bonferroni's bound holds for all
/// pairs and columns together.
///
/// # Errors
/// [`PlacementError::Cells`] where there is not one error for each column.
pub fn apart(columns: &ColumnLatencies, errors: &[ColumnError]) -> Result<Apart, PlacementError> {
    let (cores, count) = (columns.cores(), columns.columns().len());
    if errors.len() != count {
        return Err(PlacementError::Cells { cells: errors.len(), rows: 1, columns: count });
    }
    let known = |core: usize| (0..count).any(|column| columns.get(core, column).is_some());
    let (seen, unknown): (Vec<usize>, Vec<usize>) = (0..cores).partition(|core| known(*core));
    let pairs = seen.len() * seen.len().saturating_sub(1) / 2;
    let level = 1.0 / (WRONG_ONCE_IN * (pairs * count).max(1) as f64);
    let differ = |a: usize, b: usize| {
        errors.iter().enumerate().any(|(column, error)| {
            let both = columns.get(a, column).zip(columns.get(b, column));
            both.is_some_and(|(a, b)| surely(a - b, *error, level))
        })
    };
    let mut told = vec![false; cores * cores];
    for (at, &a) in seen.iter().enumerate() {
        for &b in &seen[at + 1..] {
            let apart = differ(a, b);
            (told[a * cores + b], told[b * cores + a]) = (apart, apart);
        }
    }
    let groups = connected(&seen, |a, b| !told[a * cores + b]);
    Ok(Apart { groups, unknown, pairs, cores, told })
}

/// Whether two cells that differ by so much are of different latencies.
fn surely(difference: f64, error: ColumnError, level: f64) -> bool {
    let errors = difference.abs() / (error.standard * std::f64::consts::SQRT_2);
    errors.is_finite() && student_t_p(errors, error.freedom) < level
}

/// Groups of items that chains of alike pairs connect, in the order of their first items.
fn connected(items: &[usize], alike: impl Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
    let mut rest = items.to_vec();
    let mut groups = Vec::new();
    while !rest.is_empty() {
        let mut group = vec![rest.remove(0)];
        let mut at = 0;
        while at < group.len() {
            let (near, far) = rest.iter().partition(|item| alike(group[at], **item));
            group.extend::<Vec<usize>>(near);
            (rest, at) = (far, at + 1);
        }
        group.sort_unstable();
        groups.push(group);
    }
    groups
}

#[cfg(test)]
mod tests {
    use isochrone_stats::{normal, rng};

    use super::*;

    /// Cores on a mesh of 6 x 7 and memories at some places: a step costs 2 ns across and 1 ns down.
    fn truth(memories: &[(f64, f64)]) -> Vec<f64> {
        let places = (0..42).map(|core| (f64::from(core % 6), f64::from(core / 6)));
        let latency = |core: (f64, f64), memory: (f64, f64)| {
            80.0 + 2.0 * (core.0 - memory.0).abs() + (core.1 - memory.1).abs()
        };
        places.flat_map(|core| memories.iter().map(move |memory| latency(core, *memory))).collect()
    }

    fn measured(truth: &[f64], memories: usize, error: f64, seed: u64) -> Apart {
        let mut rng = rng(seed);
        let cells = truth.iter().map(|ns| Some(ns + error * normal(&mut rng))).collect();
        let names = (0..memories).map(|memory| format!("memory {memory}")).collect();
        let columns = ColumnLatencies::new(truth.len() / memories, names, cells).unwrap();
        let errors = vec![ColumnError { standard: error, freedom: 300.0 }; memories];
        apart(&columns, &errors).unwrap()
    }

    /// How far two cores truly differ in the column in which they differ most.
    fn farthest(truth: &[f64], memories: usize, a: usize, b: usize) -> f64 {
        let of = |core: usize| &truth[core * memories..(core + 1) * memories];
        of(a).iter().zip(of(b)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }

    fn pairs(cores: usize) -> impl Iterator<Item = (usize, usize)> {
        (0..cores).flat_map(move |a| (a + 1..cores).map(move |b| (a, b)))
    }

    #[test]
    fn cores_that_are_alike_are_not_told_apart_and_those_far_apart_are() {
        let memories = [(0.0, 3.0), (5.0, 3.0)];
        let truth = truth(&memories);
        for seed in 0..20 {
            let found = measured(&truth, 2, 0.1, seed);
            for (a, b) in pairs(42) {
                let by = farthest(&truth, 2, a, b);
                // A pair of 1722 tests is told at 4.7 standard errors of a difference, which has 0.14 ns.
                if by > 0.0 {
                    assert!(found.told(a, b), "{a} and {b} differ by {by} ns, seed {seed}");
                } else {
                    assert!(!found.told(a, b), "{a} and {b} are alike, seed {seed}");
                }
            }
            // Both memories are in row 3, so rows 3 + d and 3 - d are alike: 6 x 4 groups of one or two.
            assert_eq!(found.groups.len(), 24, "seed {seed}");
            assert!(found.groups.iter().all(|group| group.len() <= 2));
        }
    }

    #[test]
    fn a_memory_aside_tells_more_apart_and_noise_takes_it_away() {
        let aside = truth(&[(0.0, 3.0), (5.0, 0.0)]);
        // Up to row 3 who is a column nearer to one memory and two rows farther is as far from both: 32 of 42 differ.
        assert_eq!(measured(&aside, 2, 0.05, 1).groups.len(), 32);
        let alone = truth(&[(0.0, 3.0)]);
        let of_one = measured(&alone, 1, 0.05, 1);
        // 2x + |y - 3| has the values 0 to 13.
        assert_eq!(of_one.groups.len(), 14, "one memory tells distances alone");
        let noisy = measured(&aside, 2, 10.0, 1);
        assert_eq!((noisy.groups.len(), noisy.count()), (1, 0), "10 ns hide all of it");
        let some = measured(&aside, 2, 0.5, 1);
        assert!(some.count() > 0 && some.count() < some.pairs && some.groups.len() < 42);
    }

    #[test]
    fn what_is_not_known_tells_nothing() {
        let cells = vec![Some(100.0), None, Some(150.0), None, None, Some(150.0), None, None];
        let names = vec!["a".to_owned(), "b".to_owned()];
        let columns = ColumnLatencies::new(4, names, cells).unwrap();
        let error = ColumnError { standard: 1.0, freedom: 100.0 };
        let found = apart(&columns, &[error; 2]).unwrap();
        assert!(found.told(0, 1) && !found.told(0, 2) && !found.told(1, 2), "no column has both");
        assert_eq!((found.groups, found.unknown), (vec![vec![0, 1, 2]], vec![3]));
        let short = apart(&columns, &[error]).unwrap_err();
        assert_eq!(short, PlacementError::Cells { cells: 1, rows: 1, columns: 2 });
    }

    #[test]
    fn the_bound_is_for_all_pairs_together() {
        // Forty cores that are all alike, 200 matrices: two or so may have a pair that is told apart.
        let alike = vec![100.0; 80];
        let wrong = (0..200).filter(|seed| measured(&alike, 2, 1.0, *seed).count() > 0).count();
        assert!(wrong <= 6, "{wrong} of 200 matrices");
    }
}
