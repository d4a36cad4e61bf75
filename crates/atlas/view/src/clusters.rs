//! Cores of a large machine in the order of their clusters, so that what is near one another stands side by side. A
//! machine of few cores keeps its order: each of them has its own row and name.
//!
//! Clusters are the groups of cores at equal distance that the atlas tells; where it tells none, the regions that cores
//! lie in. Transfers see the memory that lines lie in: from far away they may tell no clusters beyond a cache, so that
//! one cluster has most cores and the others few each. Regions stand between, then. It arranges, and never draws.

use std::collections::BTreeMap;

use isochrone_atlas_store::contents::{Cell as Value, Contents};
use isochrone_atlas_store::group_levels;
use isochrone_report::svg::{Cluster, HeatMap};

use super::words::{self, cells::interval};

/// Up to this many cores have their own order.
const FEW: usize = 20;

/// One level of clusters.
#[derive(Debug)]
pub(crate) struct Level {
    /// For each core of the machine, in its order, its cluster.
    pub(crate) of: Vec<Option<u16>>,
    /// Transfer of a line inside, beyond the levels further in; unknown for regions.
    pub(crate) transfer_ns: Option<Value>,
}

/// The clusters of a machine's cores.
#[derive(Debug)]
pub(crate) struct Clusters {
    ids: Vec<u16>,
    /// Innermost first; none that has all cores in one, or each in its own.
    pub(crate) levels: Vec<Level>,
    /// Whether line transfers tell them, and not the regions.
    pub(crate) measured: bool,
}

impl Clusters {
    /// The clusters of an atlas's machine.
    pub(crate) fn of(contents: &Contents) -> Self {
        let ids: Vec<u16> = contents.machine.cores.iter().map(|core| core.id).collect();
        if ids.len() <= FEW {
            return Self { ids, levels: Vec::new(), measured: false };
        }
        let found = group_levels(contents)
            .into_iter()
            .map(|level| Level { of: level.group, transfer_ns: Some(level.transfer_ns) })
            .filter(Level::parts)
            .collect::<Vec<Level>>();
        let measured = !found.is_empty();
        let of = contents.machine.cores.iter().map(|core| Some(core.region)).collect();
        let regions = Some(Level { of, transfer_ns: None }).filter(Level::parts);
        let levels = match regions {
            Some(regions) => with_regions(found, regions),
            None => found,
        };
        Self { ids, levels, measured }
    }

    /// Cores of each cluster of a level, in the order of its numbers.
    pub(crate) fn members(&self, level: &Level) -> Vec<Vec<u16>> {
        let mut all = vec![Vec::new(); level.count()];
        for (id, of) in self.ids.iter().zip(&level.of) {
            if let Some(members) = of.and_then(|of| all.get_mut(usize::from(of))) {
                members.push(*id);
            }
        }
        all.retain(|members| !members.is_empty());
        all
    }

    /// The clusters of the level at `at` that a transfer of it joins, each with its number: one that is a whole cluster
    /// of the level further in has no pair of its own.
    pub(crate) fn joined(&self, at: usize) -> Vec<(usize, Vec<u16>)> {
        let Some(level) = self.levels.get(at) else { return Vec::new() };
        let inner = at.checked_sub(1).and_then(|inner| self.levels.get(inner));
        let inner = inner.map_or(Vec::new(), |inner| self.members(inner));
        let all = self.members(level).into_iter().enumerate();
        all.filter(|(_, members)| !inner.contains(members)).collect()
    }

    /// A matrix with its rows and columns in the order of clusters, as far as these are cores.
    pub(crate) fn arrange(&self, map: HeatMap) -> HeatMap {
        if self.levels.is_empty() {
            return map;
        }
        let (rows, row_clusters) = self.side(&map.rows);
        let (columns, column_clusters) = self.side(&map.columns);
        let width = map.columns.len();
        let named = |labels: &[String], order: &[usize]| {
            order.iter().map(|at| labels[*at].clone()).collect::<Vec<String>>()
        };
        HeatMap {
            cells: moved(&map.cells, width, &rows, &columns),
            intervals: match map.intervals.is_empty() {
                true => Vec::new(),
                false => moved(&map.intervals, width, &rows, &columns),
            },
            rows: named(&map.rows, &rows),
            columns: named(&map.columns, &columns),
            row_clusters,
            column_clusters,
            ..map
        }
    }

    /// The order of one side, and its clusters; that of its labels, and none, where these are no cores.
    fn side(&self, labels: &[String]) -> (Vec<usize>, Vec<Vec<Cluster>>) {
        let mut order: Vec<usize> = (0..labels.len()).collect();
        let core = |label: &String| label.strip_prefix("core ")?.parse::<u16>().ok();
        let cores: Option<Vec<u16>> = labels.iter().map(core).collect();
        let Some(cores) = cores.filter(|cores| cores.len() > FEW) else {
            return (order, Vec::new());
        };
        let place = |core: u16| self.ids.iter().position(|id| *id == core);
        let places: Vec<Option<usize>> = cores.iter().map(|core| place(*core)).collect();
        // What is in no cluster stands last.
        let of = |level: &Level, at: usize| {
            places[at].and_then(|place| level.of.get(place).copied().flatten()).unwrap_or(u16::MAX)
        };
        order.sort_by_key(|at| {
            self.levels.iter().rev().map(|level| of(level, *at)).collect::<Vec<u16>>()
        });
        let clusters = |level: &Level| {
            let together = order.chunk_by(|a, b| of(level, *a) == of(level, *b));
            together
                .map(|run| {
                    let members: Vec<u16> = run.iter().map(|at| cores[*at]).collect();
                    Cluster { label: words::cores(&members), cells: run.len() }
                })
                .collect()
        };
        let levels = self.levels.iter().map(clusters).collect();
        (order, levels)
    }

    /// What clusters there are, in a sentence; `None` where the machine keeps its order.
    pub(crate) fn words(&self) -> Option<String> {
        let told = |at: &usize| !self.measured || self.levels[*at].transfer_ns.is_some();
        let each = (0..self.levels.len()).filter(told).map(|at| self.level_words(at));
        let each = words::and(&each.collect::<Vec<String>>());
        let by_regions = self.levels.iter().any(|level| level.transfer_ns.is_none());
        let beside = if by_regions { ", those of a region side by side" } else { "" };
        match (self.levels.is_empty(), self.measured) {
            (true, _) => None,
            (false, true) => Some(format!(
                "By their transfers cores fall into {each}. They are shown in this order{beside}."
            )),
            (false, false) => Some(format!(
                "Line transfers tell no clusters of cores; they are shown by the {each} that they lie in."
            )),
        }
    }

    fn level_words(&self, at: usize) -> String {
        let level = &self.levels[at];
        let Some(cell) = level.transfer_ns else { return format!("{} regions", level.count()) };
        let joined = self.joined(at);
        let sizes: Vec<f64> = joined.iter().map(|(_, members)| members.len() as f64).collect();
        let of = words::span(&sizes, |size| size.to_string()).unwrap_or_default();
        let clusters = words::counted(joined.len(), "cluster");
        format!("{clusters} of {of} ({} inside)", interval(&cell))
    }
}

/// These levels with regions among them: behind those whose clusters lie in one region each, and before those whose
/// clusters have several, which then have whole regions. Without them where the innermost clusters have several.
fn with_regions(found: Vec<Level>, regions: Level) -> Vec<Level> {
    let Some(innermost) = found.first() else { return vec![regions] };
    if !innermost.lies_in(&regions) {
        return found;
    }
    let (mut all, beyond): (Vec<Level>, Vec<Level>) =
        found.into_iter().partition(|level| level.lies_in(&regions));
    let beyond: Vec<Level> = beyond.into_iter().map(|level| level.of_whole(&regions)).collect();
    let is_new = |level: &Level, before: Option<&Level>| {
        level.parts() && before.is_none_or(|before| !level.lies_in(before))
    };
    for level in std::iter::once(regions).chain(beyond) {
        if is_new(&level, all.last()) {
            all.push(level);
        }
    }
    all
}

impl Level {
    /// Whether each of its clusters lies in one of another level's.
    fn lies_in(&self, outer: &Self) -> bool {
        let mut of: BTreeMap<u16, Option<u16>> = BTreeMap::new();
        let pairs = self.of.iter().zip(&outer.of);
        pairs
            .filter_map(|(inner, outer)| inner.map(|inner| (inner, *outer)))
            .all(|(inner, outer)| *of.entry(inner).or_insert(outer) == outer)
    }

    /// The same with whole regions: two are in one cluster where cores of both are.
    fn of_whole(self, regions: &Self) -> Self {
        let mut joined: BTreeMap<u16, u16> =
            regions.of.iter().flatten().map(|region| (*region, *region)).collect();
        let mut first: BTreeMap<u16, u16> = BTreeMap::new();
        for (cluster, region) in self.of.iter().zip(&regions.of) {
            let (Some(cluster), Some(region)) = (cluster, region) else { continue };
            let with = *first.entry(*cluster).or_insert(*region);
            let (from, to) = (joined[region], joined[&with]);
            joined.values_mut().filter(|name| **name == from).for_each(|name| *name = to);
        }
        let (mut numbers, mut next) = (BTreeMap::new(), 0..=u16::MAX);
        let mut number = |name: u16| match numbers.get(&name) {
            Some(number) => *number,
            None => *numbers.entry(name).or_insert(next.next().unwrap_or(u16::MAX)),
        };
        let of = regions.of.iter().map(|region| region.map(|region| number(joined[&region])));
        Self { of: of.collect(), transfer_ns: self.transfer_ns }
    }

    /// How many clusters it has.
    pub(crate) fn count(&self) -> usize {
        self.of.iter().flatten().max().map_or(0, |last| usize::from(*last) + 1)
    }

    /// Whether it parts the cores: not all in one, nor each alone.
    fn parts(&self) -> bool {
        (2..self.of.len()).contains(&self.count())
    }
}

/// Cells of these rows and columns, of rows that were `width` wide. The list never grows: of hundreds of cores it has
/// megabytes.
fn moved<T: Copy>(
    cells: &[Option<T>],
    width: usize,
    rows: &[usize],
    columns: &[usize],
) -> Vec<Option<T>> {
    let mut moved = Vec::with_capacity(rows.len() * columns.len());
    for row in rows {
        moved.extend(columns.iter().map(|at| cells.get(row * width + at).copied().flatten()));
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(of: &[u16], transfer_ns: f64) -> Level {
        let cell = Value::single(transfer_ns);
        Level { of: of.iter().copied().map(Some).collect(), transfer_ns: Some(cell) }
    }

    /// Twelve cores in pairs and three regions: lines lie in the first, whose cores alone are told to belong together,
    /// and the second is nearer to it than the third.
    #[test]
    fn cores_that_transfers_do_not_tell_apart_are_shown_by_their_regions() {
        let pairs = level(&[0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5], 40.0);
        let near = level(&[0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4], 50.0);
        let nearer = level(&[0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2], 60.0);
        let of: Vec<Option<u16>> = (0..12).map(|core: u16| Some(core / 4)).collect();
        let regions = || Level { of: of.clone(), transfer_ns: None };
        let levels = with_regions(vec![pairs, near, nearer], regions());
        let clusters = Clusters { ids: (0..12).collect(), levels, measured: true };
        let sizes = |level| clusters.members(level).iter().map(Vec::len).collect::<Vec<usize>>();
        let all: Vec<Vec<usize>> = clusters.levels.iter().map(sizes).collect();
        assert_eq!(all, [vec![2; 6], vec![4, 2, 2, 2, 2], vec![4; 3], vec![8, 4]]);
        let words = clusters.words().expect("there are clusters");
        assert!(words.contains("1 cluster of 4 (50"), "{words}");
        assert!(words.contains("1 cluster of 8 (60") && words.contains("of a region"), "{words}");
        assert_eq!(clusters.joined(3), [(0, (0..8).collect())]);
        let across =
            with_regions(vec![level(&[0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1], 40.0)], regions());
        assert_eq!(across.len(), 1, "a cluster that has two regions is not parted");
        assert_eq!(with_regions(Vec::new(), regions()).len(), 1);
        assert_eq!(
            with_regions(vec![level(&[0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2], 40.0)], regions()).len(),
            1
        );
    }

    /// Six cores in pairs, of which two are joined further out.
    #[test]
    fn a_cluster_that_nothing_joins_further_out_is_named_once() {
        let levels = vec![level(&[0, 0, 1, 1, 2, 2], 40.0), level(&[0, 0, 0, 0, 1, 1], 50.0)];
        let clusters = Clusters { ids: (0..6).collect(), levels, measured: true };
        assert_eq!(clusters.joined(0).len(), 3);
        assert_eq!(clusters.joined(1), [(0, vec![0, 1, 2, 3])]);
        let words = clusters.words().expect("there are clusters");
        assert!(
            words.contains("3 clusters of 2 (40") && words.contains("1 cluster of 4 (50"),
            "{words}"
        );
    }
}
