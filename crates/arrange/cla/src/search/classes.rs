//! Two classes of cores: the best tree of all, by dynamic programming over class counts.
//!
//! For each class of node and each time there is a *region*: how many nodes of each class a subtree can
//! cover within that time, its root counted. Regions are kept by their corners (nothing covers more of one
//! class without less of the other), and grow at a few times only. At each such time every number of
//! children is tried on top of it: `k` children of a class, all with the same time left, cover the sum of
//! `k` regions. So all rooted trees are considered, without one being built.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::corners::{pareto, sum};
use super::level::{CLASSES, Counts, Level, Levels};
use super::recurrence::Recurrence;
use super::shape::Shape;

/// Times closer than this are one, ns.
const SAME_NS: f64 = 1e-7;
/// Trees that take so much longer than one that is easily found are not looked at: the second best is
/// nearer.
const ROOM_FOR_SECOND: f64 = 1.1;

/// A tree and its time by the levels.
#[derive(Clone, Debug, PartialEq)]
pub struct Best {
    /// The tree.
    pub shape: Shape,
    /// Its time, ns.
    pub time_ns: f64,
    /// No tree with this number of children at the root takes less, ns: where both are equal, the tree is
    /// the best. They are where both classes have the same levels with near and far exchanged, near
    /// children are not dearer than far ones, and nodes may have any number of children.
    pub bound_ns: f64,
}

/// How a subtree's children are made: so many of each class, with so much time left.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Children {
    counts: Counts,
    left_ns: [f64; CLASSES],
}

/// What a subtree of a class covers at some time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    time_ns: f64,
    /// The class of its root.
    class: usize,
    covers: Counts,
    children: Children,
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    /// The heap gives the earliest first, and of those the one that covers most.
    fn cmp(&self, other: &Self) -> Ordering {
        let time = other.time_ns.total_cmp(&self.time_ns);
        time.then_with(|| self.covers.cmp(&other.covers)).then_with(|| self.class.cmp(&other.class))
    }
}

/// By class and number of children, the corners of what they cover together.
type Multiples = [Vec<Vec<Counts>>; CLASSES];

/// The search for one machine and one root.
#[derive(Debug)]
struct Search<'a> {
    levels: &'a Levels,
    root: usize,
    /// Nodes of each class that a subtree may cover at most.
    all: Counts,
    /// Nodes of each class that the tree must cover.
    target: Counts,
    /// Class 1 are not nodes but whole clusters of so many nodes, each entered once.
    cluster: Option<usize>,
    /// At most so many children of a node.
    most: usize,
    /// Entries by class of their root, in the order of time, none covered by an earlier one.
    known: [Vec<Entry>; CLASSES],
    open: BinaryHeap<Entry>,
    /// The earliest time known, or on its way, at which a subtree covers exactly so many.
    seen: [Vec<f64>; CLASSES],
    /// No tree better than this is known, ns.
    limit_ns: f64,
}

/// The best tree over `all` nodes of each class, with its root in class `root` and at most `most` children
/// a node, and the best with another number of children at the root. `None` if what is found covers nodes
/// that there are not, which does not happen where [`Best::bound_ns`] is said to be reached.
///
/// # Panics
/// If no core of class `root` is to be covered.
#[must_use]
pub fn best(
    levels: &Levels,
    root: usize,
    all: Counts,
    most: usize,
) -> Option<(Best, Option<Best>)> {
    assert!(all[root] > 0, "the root is one of the nodes");
    if all[0] + all[1] == 1 {
        let shape = Shape { class: root, children: Vec::new() };
        return Some((Best { shape, time_ns: 0.0, bound_ns: 0.0 }, None));
    }
    let limit_ns = limit_ns(levels, root, all, most);
    Search::new(levels, root, all, all, most, None, limit_ns).found()
}

/// The best tree over a cluster of `own` nodes and `others` more of `size` nodes each, among those that
/// enter each cluster once. In its shape a node of class 1 is the one through which a cluster is entered;
/// nodes of class 0 are in the cluster of their parent.
#[must_use]
pub fn best_entering_once(
    levels: &Levels,
    own: usize,
    others: usize,
    size: usize,
    most: usize,
) -> Option<(Best, Option<Best>)> {
    if others == 0 {
        return best(levels, 0, [own, 0], most);
    }
    // Nodes of all clusters are alike: near in their own, far in all others.
    let levels = Levels { root: [levels.root[0]; CLASSES], inner: [levels.inner[0]; CLASSES] };
    let limit_ns = chain_ns(&levels, own.max(size), others, most);
    let all = [own.max(size), others];
    Search::new(&levels, 0, all, [own, others], most, Some(size), limit_ns).found()
}

/// What surely suffices for clusters: a near subtree in each, one cluster entered from the other.
fn chain_ns(levels: &Levels, size: usize, others: usize, most: usize) -> f64 {
    let near = Recurrence::below_ns(&levels.inner[0], size, most);
    let enter = |level: &Level, others: usize| {
        level.delay_ns([1, others], 0).max(level.delay_ns([1, others], 1))
    };
    let flat = enter(&levels.root[0], others.min(most.saturating_sub(1)));
    let chain = flat + super::level::real(others) * enter(&levels.inner[0], 1);
    (chain + near[size]) * ROOM_FOR_SECOND + SAME_NS
}

/// What no tree over `nodes` nodes takes less than, if some of them are `far` from the root: as if all were
/// near, and at least one way to the far ones.
#[must_use]
pub fn lower_bound_ns(levels: &Levels, nodes: usize, far: bool) -> f64 {
    let near = Recurrence::new(&levels.root[0], &levels.inner[0], nodes, nodes).time_ns(nodes);
    let level = &levels.root[0];
    let once = level.delay_ns([0, 1], 1).min(level.delay_ns([1, 1], 1));
    if far { near.max(once) } else { near }
}

impl<'a> Search<'a> {
    fn new(
        levels: &'a Levels,
        root: usize,
        all: Counts,
        target: Counts,
        most: usize,
        cluster: Option<usize>,
        limit_ns: f64,
    ) -> Self {
        let cells = (all[0] + 1) * (all[1] + 1);
        Self {
            levels,
            root,
            all,
            target,
            cluster,
            most,
            known: [Vec::new(), Vec::new()],
            open: BinaryHeap::new(),
            seen: [vec![f64::INFINITY; cells], vec![f64::INFINITY; cells]],
            limit_ns,
        }
    }

    fn found(mut self) -> Option<(Best, Option<Best>)> {
        let found = self.run();
        let mut trees = found.into_iter().map(|(time_ns, children)| {
            let shape = self.build(self.root, self.target, children);
            // Regions know of nodes that are covered, not of nodes that there are: a tree that covers
            // too much may have no leaf to take off.
            let real = self.covered(&shape) == self.target;
            real.then(|| Best { time_ns: shape.time_ns(self.levels), bound_ns: time_ns, shape })
        });
        Some((trees.next()??, trees.next().flatten()))
    }

    /// Classes of which nodes may have children or be children.
    fn classes(&self) -> impl Iterator<Item = usize> + use<> {
        let (all, root, cluster) = (self.all, self.root, self.cluster.is_some());
        (0..CLASSES)
            .filter(move |&c| if cluster { c == 0 } else { all[c] > usize::from(c == root) })
    }

    /// What a tree covers: nodes by class, or its own cluster's nodes and other clusters.
    fn covered(&self, shape: &Shape) -> Counts {
        if self.cluster.is_some() { shape.of_clusters() } else { shape.total() }
    }

    /// The best and the second best children of the root.
    fn run(&mut self) -> Vec<(f64, Children)> {
        let mut best: Vec<(f64, Children)> = Vec::new();
        for class in self.classes() {
            let mut covers = [0; CLASSES];
            covers[class] = 1;
            let children = Children { counts: [0; CLASSES], left_ns: [0.0; CLASSES] };
            self.open.push(Entry { time_ns: 0.0, class, covers, children });
        }
        let gaps = self.gaps();
        let mut waiting: Vec<f64> = Vec::new();
        loop {
            let first = self.open.peek().map_or(f64::INFINITY, |e| e.time_ns);
            let due = waiting.iter().copied().fold(first, f64::min);
            if due >= self.limit_ns || due.is_infinite() {
                return best;
            }
            let asked = waiting.len();
            waiting.retain(|&at| at > due + SAME_NS);
            let mut grew = false;
            while let Some(entry) = self.open.peek().copied().filter(|e| e.time_ns <= due + SAME_NS)
            {
                self.open.pop();
                grew |= self.learn(entry);
            }
            if grew {
                // Children of the other class may have less time left than these.
                waiting.extend(gaps.iter().map(|gap| due + gap));
            }
            if grew || asked > waiting.len() {
                self.grow(due, &mut best);
            }
        }
    }

    /// How much more time one class of children has left than the other, wherever both occur.
    fn gaps(&self) -> Vec<f64> {
        let gap = |level: &Level| (level.constant_ns[3][1] - level.constant_ns[3][0]).abs();
        let mut gaps: Vec<f64> =
            self.levels.inner.iter().chain(&self.levels.root).map(gap).collect();
        gaps.retain(|gap| gap.is_finite() && *gap > SAME_NS);
        gaps.sort_by(f64::total_cmp);
        gaps.dedup_by(|a, b| *a - *b <= SAME_NS);
        gaps
    }

    /// Takes an entry into its region unless that has it already.
    fn learn(&mut self, entry: Entry) -> bool {
        let known = &mut self.known[entry.class];
        let covered = known.iter().any(|k| (0..CLASSES).all(|c| k.covers[c] >= entry.covers[c]));
        if covered {
            return false;
        }
        known.push(entry);
        if let Some(size) = self.cluster.filter(|&size| entry.class == 0 && entry.covers[0] >= size)
        {
            // Enough for a whole cluster, whoever its first node is.
            debug_assert!(size > 0);
            let covers = [0, (entry.covers[1] + 1).min(self.all[1])];
            self.learn(Entry { class: 1, covers, ..entry });
        }
        true
    }

    /// The corners of a region at a time.
    fn corners(&self, class: usize, time_ns: f64) -> Vec<Counts> {
        let then = self.known[class].iter().take_while(|e| e.time_ns <= time_ns + SAME_NS);
        pareto(then.map(|e| e.covers).collect())
    }

    /// Tries all children on top of what is known, one class of which has `time_ns` left and the other at
    /// most that.
    fn grow(&mut self, time_ns: f64, best: &mut Vec<(f64, Children)>) {
        let levels = self.levels;
        for mask in 1..4 {
            let mut sums: Option<([f64; CLASSES], Multiples)> = None;
            let inner = self.classes().map(|c| (c, false));
            let parents = std::iter::once((self.root, true)).chain(inner);
            for (class, is_root) in parents {
                let level = if is_root { &levels.root[class] } else { &levels.inner[class] };
                let Some((left_ns, base_ns)) = left(level, mask, time_ns) else { continue };
                if base_ns + level.each_ns[0].min(level.each_ns[1]) >= self.limit_ns {
                    continue;
                }
                let again = sums.as_ref().is_none_or(|(of, _)| *of != left_ns);
                if again {
                    sums = Some((left_ns, [0, 1].map(|c| self.multiples(c, left_ns[c], mask))));
                }
                let Some((_, multiples)) = &sums else { continue };
                let found = combine(multiples, mask, self.all, |counts, covers| {
                    let time_ns = base_ns
                        + level.each_ns[0] * super::level::real(counts[0])
                        + level.each_ns[1] * super::level::real(counts[1]);
                    let mut covers = covers;
                    covers[class] = (covers[class] + 1).min(self.all[class]);
                    let few = counts[0] + counts[1] <= self.most
                        && (!is_root
                            || (0..CLASSES)
                                .all(|c| counts[c] + usize::from(c == class) <= self.target[c]));
                    (few && time_ns < self.limit_ns).then_some(Entry {
                        time_ns,
                        class,
                        covers,
                        children: Children { counts, left_ns },
                    })
                });
                if is_root {
                    let target = self.target;
                    let enough = |e: &Entry| (0..CLASSES).all(|c| e.covers[c] >= target[c]);
                    for entry in found.into_iter().filter(enough) {
                        self.offer(best, entry);
                    }
                } else {
                    for entry in found {
                        let at = entry.covers[0] * (self.all[1] + 1) + entry.covers[1];
                        if entry.time_ns < self.seen[class][at] - SAME_NS {
                            self.seen[class][at] = entry.time_ns;
                            self.open.push(entry);
                        }
                    }
                }
            }
        }
    }

    /// Keeps the two best with different children of the root.
    fn offer(&mut self, best: &mut Vec<(f64, Children)>, entry: Entry) {
        let same = best.iter().position(|(_, c)| c.counts == entry.children.counts);
        match same {
            Some(at) if best[at].0 <= entry.time_ns => {}
            Some(at) => best[at] = (entry.time_ns, entry.children),
            None => best.push((entry.time_ns, entry.children)),
        }
        best.sort_by(|a, b| a.0.total_cmp(&b.0));
        best.truncate(2);
        if let [_, (second, _)] = best[..] {
            self.limit_ns = second + SAME_NS;
        }
    }

    /// What 0, 1, 2, ... children of a class cover together, if children of it are asked for.
    fn multiples(&self, class: usize, left_ns: f64, mask: usize) -> Vec<Vec<Counts>> {
        let mut multiples = vec![vec![[0; CLASSES]]];
        if mask >> class & 1 == 0 || left_ns < -SAME_NS {
            return multiples;
        }
        let one = self.corners(class, left_ns);
        if one.is_empty() {
            return multiples;
        }
        let most = (self.all[class] - usize::from(class == self.root)).min(self.most);
        while multiples.len() <= most {
            let last = &multiples[multiples.len() - 1];
            let next = sum(last, &one, self.all);
            multiples.push(next);
        }
        multiples
    }

    /// A tree of a class that covers `covers`, with these children: exactly so many, if leaves can be taken
    /// off where children cover too much.
    fn build(&self, class: usize, covers: Counts, children: Children) -> Shape {
        let mut left = covers;
        left[class] -= 1;
        let mut shapes: Vec<Shape> =
            self.chosen(left, children).iter().map(|e| self.of(e)).collect();
        for (class, needed) in left.into_iter().enumerate() {
            let all: usize = shapes.iter().map(|s| self.covered(s)[class]).sum();
            let mut above = Shape { class: 0, children: std::mem::take(&mut shapes) };
            for _ in needed..all {
                if !above.drop_leaf(class, self.cluster.is_some()) {
                    break;
                }
            }
            shapes = above.children;
        }
        shapes.sort_by_key(|s| std::cmp::Reverse(s.nodes()));
        Shape { class, children: shapes }
    }

    fn of(&self, entry: &Entry) -> Shape {
        match self.cluster {
            Some(size) if entry.class == 1 => {
                let below = self.build(0, [size, entry.covers[1] - 1], entry.children);
                Shape { class: 1, ..below }
            }
            _ => self.build(entry.class, entry.covers, entry.children),
        }
    }

    /// An entry for each child, which together cover `left` at least.
    fn chosen(&self, left: Counts, children: Children) -> Vec<Entry> {
        let order: Vec<usize> =
            (0..CLASSES).flat_map(|c| std::iter::repeat_n(c, children.counts[c])).collect();
        let corners = [0, 1].map(|c| self.corners(c, children.left_ns[c]));
        // What the children from each on can cover, to know which corner each must take.
        let mut rest: Vec<Vec<Counts>> = vec![vec![[0; CLASSES]]];
        for &class in order.iter().rev() {
            let last = &rest[rest.len() - 1];
            rest.push(sum(last, &corners[class], left));
        }
        rest.reverse();
        let mut open = left;
        let mut entries = Vec::new();
        for (n, &class) in order.iter().enumerate() {
            let need = |corner: &Counts| [0, 1].map(|c| open[c].saturating_sub(corner[c]));
            let fits = |corner: &&Counts| {
                let need = need(corner);
                rest[n + 1].iter().any(|r| (0..CLASSES).all(|c| r[c] >= need[c]))
            };
            let Some(corner) = corners[class].iter().find(fits) else { continue };
            open = need(corner);
            entries.extend(self.known[class].iter().find(|e| e.covers == *corner));
        }
        entries
    }
}

/// A time that some tree surely needs no more than, with room for the second best: near subtrees and one
/// far one below the root, each by the recurrence for its own class.
fn limit_ns(levels: &Levels, root: usize, all: Counts, most: usize) -> f64 {
    let far = 1 - root;
    let of = |class: usize, count: usize| {
        let level = &levels.inner[class];
        let (mut constant, each) = (level.constant_ns, level.each_ns);
        constant[1][0] = constant[1 << class][class];
        let own = Level { constant_ns: constant, each_ns: [each[class], 0.0] };
        Recurrence::below_ns(&own, count, most)
    };
    let (near_ns, far_ns) = (of(root, all[root]), of(far, all[far]));
    let mut best = f64::INFINITY;
    for k in usize::from(all[root] > 1)..all[root].max(1) {
        let mut counts = [0; CLASSES];
        (counts[root], counts[far]) = (k, usize::from(all[far] > 0));
        if counts[0] + counts[1] > most {
            break;
        }
        let near = (k > 0).then(|| {
            levels.root[root].delay_ns(counts, root) + near_ns[(all[root] - 1).div_ceil(k)]
        });
        let away =
            (all[far] > 0).then(|| levels.root[root].delay_ns(counts, far) + far_ns[all[far]]);
        best = best.min(near.unwrap_or(0.0).max(away.unwrap_or(0.0)));
    }
    best * ROOM_FOR_SECOND + SAME_NS
}

/// The time that children of each class have left when the class that is ready first has `time_ns`, and
/// what the level costs on top of that beside what each child costs.
fn left(level: &Level, mask: usize, time_ns: f64) -> Option<([f64; CLASSES], f64)> {
    let constant = level.constant_ns[mask];
    let used = (0..CLASSES).filter(|c| mask >> c & 1 == 1);
    let least = used.map(|c| constant[c]).fold(f64::INFINITY, f64::min);
    least.is_finite().then(|| (constant.map(|c| time_ns + least - c), time_ns + least))
}

/// All numbers of children of both classes and what they cover.
fn combine(
    multiples: &Multiples,
    mask: usize,
    all: Counts,
    mut entry: impl FnMut(Counts, Counts) -> Option<Entry>,
) -> Vec<Entry> {
    let mut found: Vec<Entry> = Vec::new();
    let from = |class: usize| mask >> class & 1;
    for a in from(0)..multiples[0].len() {
        for b in from(1)..multiples[1].len() {
            if entry([a, b], [0; CLASSES]).is_none() {
                break;
            }
            for covers in sum(&multiples[0][a], &multiples[1][b], all) {
                found.extend(entry([a, b], covers));
            }
        }
    }
    found
}
