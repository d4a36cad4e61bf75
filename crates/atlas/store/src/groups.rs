//! Which cores are near one another: classes of pairs from a measured matrix, and from these the nested
//! groups of cores at equal distance.
//!
//! Sockets do not decide. On an EPYC 7453 a line crosses in 21 to 30 ns within a core complex and in 220 ns
//! between two of the same socket.

use crate::contents::{Cell, Contents, Matrix};
use crate::convert::number_of;
use isochrone_stats as stats;

/// The classes of the pairs of a measured matrix: for each pair its class, cheapest first, and the mean of
/// each class in ns.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixClasses {
    /// Row-major, one for each pair of rows; `None` for a pair that was not measured. A core with itself is
    /// in class 0.
    pub class: Vec<Option<u8>>,
    /// Mean of each class, ns.
    pub means_ns: Vec<f64>,
}

/// Most classes that a matrix is cut into.
const CLASSES_MAX: usize = 16;
/// Pairs whose values decide about classes; of more, evenly spaced ones by size. The time that it takes grows with
/// them.
const DECIDING: usize = 1024;
/// Standard errors from a median to the end of its 95 % interval.
const ENDS_SDS: f64 = 1.96;

/// Cuts a measured matrix of line transfers (as many rows as columns, in one order) into classes. Both
/// directions of a pair count as one, by their mean; what differs by less than the noise of a cell is one
/// class. `None` where no pair was measured.
#[must_use]
pub fn matrix_classes(matrix: &Matrix) -> Option<MatrixClasses> {
    classes_of(matrix, &pairs(matrix))
}

fn classes_of(matrix: &Matrix, pairs: &[((usize, usize), Pair)]) -> Option<MatrixClasses> {
    let cores = matrix.rows.len();
    let means_ns = centres(pairs)?;
    let mut class = vec![None; cores * cores];
    for core in 0..cores {
        class[core * cores + core] = Some(0);
    }
    for &((a, b), pair) in pairs {
        let of = u8::try_from(nearest(&means_ns, pair.ns)).ok()?;
        class[a * cores + b] = Some(of);
        class[b * cores + a] = Some(of);
    }
    Some(MatrixClasses { class, means_ns })
}

/// The means of the classes, ascending. The nearest class is cut again as long as it falls into several: of hundreds of
/// cores the pairs of a core complex are too few beside all others to be seen at once (8 of 384 cores are 2 % of the
/// pairs, and two threads of a core 0.3 %).
fn centres(pairs: &[((usize, usize), Pair)]) -> Option<Vec<f64>> {
    let pairs = || pairs.iter().map(|(_, pair)| *pair);
    let mut all = classes(pairs(), CLASSES_MAX)?;
    while all.len() > 1 && all.len() < CLASSES_MAX {
        let within = pairs().filter(|pair| nearest(&all, pair.ns) == 0);
        let Some(inner) = classes(within, CLASSES_MAX - all.len() + 1) else { break };
        if inner.len() < 2 {
            break;
        }
        all.splice(..1, inner);
    }
    Some(all)
}

/// The means of the classes that some pairs fall into. Their own noise decides: that of far pairs is larger than the
/// steps between near ones.
fn classes(pairs: impl Iterator<Item = Pair>, most: usize) -> Option<Vec<f64>> {
    let (values, errors): (Vec<f64>, Vec<f64>) = pairs.map(|pair| (pair.ns, pair.error_ns)).unzip();
    let noise = stats::mean(&errors)?;
    Some(stats::choose_k_1d(&deciding(&values), most, noise)?.centers)
}

/// The class whose mean is nearest; the lower one half-way.
fn nearest(means: &[f64], ns: f64) -> usize {
    means.windows(2).take_while(|pair| ns > 0.5 * (pair[0] + pair[1])).count()
}

/// All of few values, of many some that are spaced evenly by size.
fn deciding(values: &[f64]) -> Vec<f64> {
    if values.len() <= DECIDING {
        return values.to_vec();
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    (0..DECIDING).map(|nth| sorted[nth * (sorted.len() - 1) / (DECIDING - 1)]).collect()
}

/// What a pair of cores costs.
#[derive(Clone, Copy)]
struct Pair {
    /// The mean of both directions.
    ns: f64,
    /// Standard error of one of them.
    error_ns: f64,
}

impl Pair {
    fn of(cell: Cell) -> Self {
        Self { ns: cell.median, error_ns: (cell.hi - cell.lo) / 2.0 / ENDS_SDS }
    }

    /// One direction and the other.
    fn with(self, other: Self) -> Self {
        let middle = |a: f64, b: f64| a + 0.5 * (b - a);
        Self { ns: middle(self.ns, other.ns), error_ns: middle(self.error_ns, other.error_ns) }
    }
}

/// The measured pairs of different cores, by their places in the matrix.
fn pairs(matrix: &Matrix) -> Vec<((usize, usize), Pair)> {
    let cores = matrix.rows.len();
    let one = |x: usize, y: usize| matrix.cells.get(x * cores + y)?.map(Pair::of);
    let mut all = Vec::with_capacity(cores * cores.saturating_sub(1) / 2);
    for (a, b) in (0..cores).flat_map(|a| (0..a).map(move |b| (a, b))) {
        let pair = match (one(a, b), one(b, a)) {
            (Some(one), Some(other)) => Some(one.with(other)),
            (one, other) => one.or(other),
        };
        all.extend(pair.map(|pair| ((a, b), pair)));
    }
    all
}

/// One level of nested groups of cores at equal distance.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupLevel {
    /// For each core of the machine, in its order, its group; groups are numbered as their first cores
    /// come. `None` for a core whose line transfers were not measured.
    pub group: Vec<Option<u16>>,
    /// Transfer between two cores of one group that share none of the levels inside, ns, over the pairs
    /// measured: median, the least lower and the largest upper end of their intervals, percentiles. Where only some
    /// pairs were measured the ends are as far apart as a further one may lie.
    pub transfer_ns: Cell,
}

/// The nested groups of a machine's cores by the transfers of modified lines, innermost level first; the
/// last level has all cores that were measured together. Two cores are in one group of a level if a chain
/// of pairs of its class, or of a nearer one, joins them.
#[must_use]
pub fn group_levels(contents: &Contents) -> Vec<GroupLevel> {
    let map = contents.transfers.iter().find(|map| map.state == "modified");
    let Some(map) = map.filter(|map| map.latency_ns.rows.len() == map.latency_ns.columns.len())
    else {
        return Vec::new();
    };
    let measured = pairs(&map.latency_ns);
    let Some(classes) = classes_of(&map.latency_ns, &measured) else { return Vec::new() };
    let ids: Vec<u16> = contents.machine.cores.iter().map(|core| core.id).collect();
    let places: Vec<Option<usize>> = map
        .latency_ns
        .rows
        .iter()
        .map(|label| ids.iter().position(|id| *id == number_of(label)))
        .collect();
    let mut levels = Vec::new();
    let mut joined: Vec<usize> = (0..places.len()).collect();
    for class in 0..classes.means_ns.len() {
        let before = joined.clone();
        join(&classes, class, &mut joined);
        if let Some(transfer_ns) = between(&map.latency_ns, &measured, &before, &joined) {
            levels.push(GroupLevel { group: numbered(&joined, &places, ids.len()), transfer_ns });
        }
    }
    levels
}

/// Joins the groups between which a pair of this class lies (single linkage).
fn join(classes: &MatrixClasses, class: usize, of: &mut [usize]) {
    for a in 0..of.len() {
        for b in 0..a {
            let here = classes.class[a * of.len() + b].is_some_and(|c| usize::from(c) == class);
            let (from, to) = (of[a].max(of[b]), of[a].min(of[b]));
            if here && from != to {
                of.iter_mut().filter(|group| **group == from).for_each(|group| *group = to);
            }
        }
    }
}

/// What pairs cost that were in two groups before and are in one now; `None` where there are none.
fn between(
    matrix: &Matrix,
    measured: &[((usize, usize), Pair)],
    before: &[usize],
    after: &[usize],
) -> Option<Cell> {
    if before == after {
        return None;
    }
    let new = |a: usize, b: usize| before[a] != before[b] && after[a] == after[b];
    let mut medians: Vec<f64> =
        measured.iter().filter(|((a, b), _)| new(*a, *b)).map(|(_, pair)| pair.ns).collect();
    medians.sort_by(f64::total_cmp);
    let cores = after.len();
    let (mut lo, mut hi, mut places) = (f64::INFINITY, f64::NEG_INFINITY, 0);
    for (a, b) in (0..cores).flat_map(|a| (0..cores).map(move |b| (a, b))) {
        if new(a, b) {
            places += 1;
            if let Some(Some(cell)) = matrix.cells.get(a * cores + b) {
                (lo, hi) = (lo.min(cell.lo), hi.max(cell.hi));
            }
        }
    }
    let at = |q| stats::quantile(&medians, q);
    let median = at(0.5)?;
    // A stand-in for pairs of which nothing is known.
    if medians.len() < places / 2
        && let Some(bound) = stats::further(&medians)
    {
        (lo, hi) = (lo.min(median - bound), hi.max(median + bound));
    }
    let n = u32::try_from(medians.len()).unwrap_or(u32::MAX);
    Some(Cell { median, lo, hi, p5: at(0.05)?, p95: at(0.95)?, n })
}

/// Groups by the machine's cores, numbered as their first cores come.
fn numbered(joined: &[usize], places: &[Option<usize>], cores: usize) -> Vec<Option<u16>> {
    let mut group = vec![None; cores];
    for (row, place) in places.iter().enumerate() {
        if let Some(place) = *place {
            group[place] = Some(joined[row]);
        }
    }
    let mut names: Vec<usize> = Vec::new();
    let mut number = |name: usize| {
        let at = names.iter().position(|known| *known == name).unwrap_or(names.len());
        if at == names.len() {
            names.push(name);
        }
        u16::try_from(at).ok()
    };
    group.into_iter().map(|name| number(name?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contents::{Clock, TransferMap};
    use isochrone_machine::{Core, Machine};
    use isochrone_units::Reading;

    /// Two sockets of two complexes of three cores: 25 ns, 100, and 220 between sockets, with some noise.
    /// Pairs for which `measured` is false are missing.
    fn contents(measured: impl Fn(usize, usize) -> bool) -> Contents {
        let cores = 12;
        let cell = |at: usize| {
            let (a, b) = (at / cores, at % cores);
            let wiggle = [0.0, 0.7, -0.5, 0.3][(a + 2 * b) % 4];
            let ns = if a / 3 == b / 3 {
                25.0
            } else if a / 6 == b / 6 {
                100.0
            } else {
                220.0
            };
            let known = a != b && measured(a.max(b), a.min(b));
            known.then(|| Cell { lo: ns - 2.0, hi: ns + 2.0, ..Cell::single(ns + wiggle) })
        };
        let names = || (0..cores).map(|core| format!("core {core}")).collect();
        let latency_ns = Matrix {
            what: "x".into(),
            rows: names(),
            columns: names(),
            cells: (0..cores * cores).map(cell).collect(),
        };
        let core = |id| Core { id, ..Core::default() };
        let machine = Machine { cores: (0..12).map(core).collect(), ..Machine::default() };
        let clock = Clock { hz: 1e9, tick_cycles: 1, overhead_cycles: 0.0 };
        let mut contents = Contents::begun(Reading::Simulated, machine, clock);
        contents.transfers.push(TransferMap {
            state: "modified".into(),
            what: "one way".into(),
            lines: 64,
            latency_ns,
            best_line_ns: Vec::new(),
            strata: Vec::new(),
        });
        contents
    }

    fn of(level: &GroupLevel) -> Vec<u16> {
        level.group.iter().map(|group| group.expect("every core is in a group")).collect()
    }

    #[test]
    fn groups_are_nested_and_cost_what_was_measured() {
        let levels = group_levels(&contents(|_, _| true));
        assert_eq!(levels.len(), 3);
        assert_eq!(of(&levels[0]), [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
        assert_eq!(of(&levels[1]), [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
        assert_eq!(of(&levels[2]), [0; 12]);
        for (level, (ns, pairs)) in levels.iter().zip([(25.0, 12), (100.0, 18), (220.0, 36)]) {
            let cost = level.transfer_ns;
            assert!((cost.median - ns).abs() < 1.0 && cost.n == pairs, "{cost:?}");
            assert_eq!((cost.lo, cost.hi), (ns - 2.0, ns + 2.0));
        }
    }

    /// Their complexes are 1.6 % of the pairs of 384 cores, and threads of a core 0.3 %.
    #[test]
    fn small_groups_are_found_among_hundreds_of_cores() {
        let levels = group_levels(&crate::made::wide(384, 16));
        let groups =
            |level: &GroupLevel| level.group.iter().flatten().max().map_or(0, |last| last + 1);
        let found: Vec<u16> = levels.iter().map(groups).collect();
        assert_eq!(found, [192, 48, 16, 2, 1], "threads, complexes, regions, sockets, all");
        assert_eq!(levels[1].group[..8], [0, 0, 0, 0, 1, 1, 1, 1].map(Some));
        assert_eq!(levels[1].group[192..200], [0, 0, 0, 0, 1, 1, 1, 1].map(Some));
    }

    /// A third of the pairs of 384 cores, as a quick map has them: eights at 41 ns, 49 in the region of the lines, and
    /// eight distances between others, with intervals that are half as wide as the least step.
    #[test]
    fn eights_are_found_beside_many_distances_whose_intervals_are_wide() {
        const FAR: [f64; 8] = [64.0, 79.0, 94.0, 102.0, 109.0, 139.0, 147.0, 154.0];
        let mut random = stats::rng(1);
        let mut cell = |at: usize| {
            let (a, b) = (at / 384, at % 384);
            let ns = match (a / 8 == b / 8, a / 24 + b / 24) {
                (true, _) => 41.0,
                (false, 0) => 49.0,
                (false, regions) => FAR[regions % FAR.len()],
            } + 0.8 * stats::normal(&mut random);
            let known = a != b && (a + b) % 3 == 0;
            known.then(|| Cell { lo: ns - 3.3, hi: ns + 3.3, ..Cell::single(ns) })
        };
        let cells = (0..384 * 384).map(&mut cell).collect();
        let names = || (0..384).map(|core| format!("core {core}")).collect();
        let matrix = Matrix { what: "x".into(), rows: names(), columns: names(), cells };
        let classes = matrix_classes(&matrix).unwrap();
        assert_eq!(classes.means_ns.len(), 10, "{:?}", classes.means_ns);
        let rounded: Vec<f64> = classes.means_ns[..3].iter().map(|ns| ns.round()).collect();
        assert_eq!(rounded, [41.0, 49.0, 64.0]);
    }

    #[test]
    fn some_pairs_of_each_kind_tell_the_groups() {
        // Half of the pairs between complexes, two of three inside.
        let levels =
            group_levels(&contents(
                |a, b| {
                    if a / 3 == b / 3 { a == b + 1 } else { (a + b) % 2 == 0 }
                },
            ));
        assert_eq!(levels.len(), 3, "{levels:?}");
        assert_eq!(of(&levels[0]), [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
        assert_eq!(of(&levels[1]), [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
    }

    /// 384 cores of two threads, eight cores of a complex, four complexes of a region: each core has one sibling among
    /// 383 others.
    #[test]
    fn few_near_pairs_among_many_far_ones_are_groups_too() {
        let cores = 384_usize;
        let seat = |at: usize| [at % 192, at % 192 / 8, at % 192 / 32];
        let ns = |a: usize, b: usize| {
            let common = (0..3).find(|level| seat(a)[*level] == seat(b)[*level]).unwrap_or(3);
            [12.0, 30.0, 95.0, 210.0][common] + [0.0, 0.4, -0.3][(a + b) % 3]
        };
        let cell = |at: usize| {
            let (a, b) = (at / cores, at % cores);
            (a != b).then(|| Cell {
                lo: ns(a, b) - 1.0,
                hi: ns(a, b) + 1.0,
                ..Cell::single(ns(a, b))
            })
        };
        let names = || (0..cores).map(|core| format!("core {core}")).collect();
        let cells = (0..cores * cores).map(cell).collect();
        let matrix = Matrix { what: "x".into(), rows: names(), columns: names(), cells };
        let classes = matrix_classes(&matrix).unwrap();
        assert_eq!(classes.means_ns.len(), 4, "{:?}", classes.means_ns);
        for (pair, class) in [((0, 192), 0), ((0, 199), 1), ((9, 31), 2), ((0, 32), 3)] {
            assert_eq!(classes.class[pair.0 * cores + pair.1], Some(class), "{pair:?}");
        }
    }

    /// Pairs of one class cost 91 to 109 ns, within a nanosecond each; every second one was measured, or all.
    #[test]
    fn where_pairs_were_left_out_the_interval_is_that_of_a_further_one() {
        let cores = 8;
        let of = |known: &dyn Fn(usize, usize) -> bool| {
            let cell = |at: usize| {
                let (a, b) = (at / cores, at % cores);
                let ns = 91.0 + ((a.min(b) * 5 + a.max(b) * 3) % 7) as f64 * 3.0;
                let there = a != b && known(a.min(b), a.max(b));
                there.then(|| Cell { lo: ns - 1.0, hi: ns + 1.0, ..Cell::single(ns) })
            };
            let names = || (0..cores).map(|core| format!("core {core}")).collect();
            let cells = (0..cores * cores).map(cell).collect();
            let matrix = Matrix { what: "x".into(), rows: names(), columns: names(), cells };
            let before: Vec<usize> = (0..cores).collect();
            between(&matrix, &pairs(&matrix), &before, &vec![0; cores])
                .expect("pairs were measured")
        };
        let (all, some) = (of(&|_, _| true), of(&|a, b| (a + b) % 2 == 0));
        assert_eq!((all.lo, all.hi, all.n), (90.0, 110.0, 28));
        assert!(some.n == 12 && some.lo < 90.0 && some.hi > 110.0, "{some:?}");
        assert!(some.hi - some.lo < 50.0, "{some:?}");
    }

    #[test]
    fn a_core_without_transfers_is_in_no_group() {
        let levels = group_levels(&contents(|a, b| a != 11 && b != 11));
        let last = levels.last().expect("the others are in groups");
        assert_eq!(last.group[10], Some(0));
        // It has a row of its own in the matrix, but nothing joins it.
        assert_eq!(last.group[11], Some(1));
        assert!(group_levels(&contents(|_, _| false)).is_empty(), "nothing was measured");
    }
}
