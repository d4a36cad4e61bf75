//! Splits a graph of tasks into parts of about equal work that share few bytes, where some bytes live in
//! a part already: multilevel, as METIS does it (Karypis and Kumar, SIAM J. Sci. Comput. 1998). Vertices
//! that share most are merged until few are left, these are placed greedily, and on the way back each
//! level is improved by single moves. Pure: the same graph gives the same parts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Work of a part beyond its share that is allowed, unless one task alone is larger.
const SLACK: f64 = 0.05;
/// Passes of single moves over one level.
const PASSES: usize = 6;
/// Parts up to which every one is tried for a vertex; beyond, those of its neighbours and the emptiest.
const TRIED_MAX: usize = 64;

/// Tasks, the bytes that two of them share, and the bytes that live in a part already.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    /// Work of each vertex, at least 1.
    pub(crate) work: Vec<u64>,
    /// Two vertices and their bytes; the same two may come more than once.
    pub(crate) edges: Vec<(u32, u32, u64)>,
    /// A vertex, the part where bytes of it live, and how many.
    pub(crate) anchors: Vec<(u32, u32, u64)>,
}

/// Lists of pairs, one list for each vertex, one after the other.
#[derive(Debug)]
struct Lists {
    first: Vec<usize>,
    pairs: Vec<(u32, f64)>,
}

impl Lists {
    fn of(vertices: usize, all: &[(u32, u32, f64)]) -> Self {
        let mut first = vec![0; vertices + 1];
        for (vertex, ..) in all {
            first[*vertex as usize + 1] += 1;
        }
        for at in 0..vertices {
            first[at + 1] += first[at];
        }
        let mut next = first.clone();
        let mut pairs = vec![(0, 0.0); all.len()];
        for (vertex, other, bytes) in all {
            let at = &mut next[*vertex as usize];
            pairs[*at] = (*other, *bytes);
            *at += 1;
        }
        Self { first, pairs }
    }

    fn get(&self, vertex: usize) -> &[(u32, f64)] {
        &self.pairs[self.first[vertex]..self.first[vertex + 1]]
    }
}

/// One level: vertices are tasks, or groups of them.
#[derive(Debug)]
struct Level {
    work: Vec<f64>,
    neighbours: Lists,
    anchors: Lists,
}

/// Adds up what comes more than once.
fn add_up(mut all: Vec<(u32, u32, f64)>) -> Vec<(u32, u32, f64)> {
    all.sort_unstable_by_key(|(a, b, _)| (*a, *b));
    all.dedup_by(|next, kept| {
        let same = (next.0, next.1) == (kept.0, kept.1);
        kept.2 += if same { next.2 } else { 0.0 };
        same
    });
    all
}

impl Level {
    fn new(work: Vec<f64>, edges: Vec<(u32, u32, f64)>, anchors: Vec<(u32, u32, f64)>) -> Self {
        let both = edges.iter().filter(|(a, b, _)| a != b);
        let both = both.flat_map(|&(a, b, bytes)| [(a, b, bytes), (b, a, bytes)]).collect();
        let neighbours = Lists::of(work.len(), &add_up(both));
        let anchors = Lists::of(work.len(), &add_up(anchors));
        Self { work, neighbours, anchors }
    }

    /// The same with vertices merged that share most, none heavier than `most`; and which vertex of it
    /// each vertex went to.
    fn merged(&self, most: f64) -> (Self, Vec<u32>) {
        const NONE: u32 = u32::MAX;
        let mut group = vec![NONE; self.work.len()];
        let mut work = Vec::new();
        for vertex in 0..self.work.len() {
            if group[vertex] != NONE {
                continue;
            }
            let number = u32::try_from(work.len()).unwrap_or(NONE);
            group[vertex] = number;
            let fits = |other: &&(u32, f64)| {
                let other = other.0 as usize;
                group[other] == NONE && self.work[vertex] + self.work[other] <= most
            };
            let free = self.neighbours.get(vertex).iter().filter(fits);
            let heaviest = free.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
            let other = heaviest.map(|(other, _)| *other as usize);
            work.push(self.work[vertex] + other.map_or(0.0, |other| self.work[other]));
            if let Some(other) = other {
                group[other] = number;
            }
        }
        let all = |lists: &Lists| -> Vec<(u32, u32, f64)> {
            let each = |vertex: usize| lists.get(vertex).iter().map(move |pair| (vertex, *pair));
            let flat = (0..self.work.len()).flat_map(each);
            flat.map(|(vertex, (other, bytes))| (group[vertex], other, bytes)).collect()
        };
        let edges = all(&self.neighbours).into_iter();
        // Each edge stands in both lists: one of them is enough.
        let edges = edges.map(|(a, other, bytes)| (a, group[other as usize], bytes));
        let edges = edges.filter(|(a, b, _)| a < b).collect();
        let level = Self::new(work, edges, all(&self.anchors));
        (level, group)
    }
}

/// How parts are filled.
struct Filling<'a, C> {
    parts: usize,
    cost: &'a C,
    load: Vec<f64>,
    cap: f64,
    part: Vec<u32>,
}

/// A vertex that has no part yet.
const UNPLACED: u32 = u32::MAX;

impl<C: Fn(usize, usize) -> f64> Filling<'_, C> {
    /// What a vertex pays in `part`, for what is placed already.
    fn price(&self, level: &Level, vertex: usize, part: usize) -> f64 {
        let placed =
            level.neighbours.get(vertex).iter().map(|(o, bytes)| (self.part[*o as usize], bytes));
        let placed = placed.filter(|(other, _)| *other != UNPLACED);
        let anchored = level.anchors.get(vertex).iter().map(|(other, bytes)| (*other, bytes));
        let both = |other: usize| ((self.cost)(part, other) + (self.cost)(other, part)) / 2.0;
        placed.chain(anchored).map(|(other, bytes)| bytes * both(other as usize)).sum()
    }

    fn emptiest(&self) -> usize {
        let loads = self.load.iter().enumerate();
        loads.min_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(part, _)| part)
    }

    /// Parts worth a look for a vertex.
    fn candidates(&self, level: &Level, vertex: usize, out: &mut Vec<usize>) {
        out.clear();
        if self.parts <= TRIED_MAX {
            out.extend(0..self.parts);
            return;
        }
        let neighbours = level.neighbours.get(vertex).iter().map(|(o, _)| self.part[*o as usize]);
        let all = neighbours.chain(level.anchors.get(vertex).iter().map(|(part, _)| *part));
        out.extend(all.filter(|part| *part != UNPLACED).map(|part| part as usize));
        out.push(self.emptiest());
        out.sort_unstable();
        out.dedup();
    }

    /// The cheapest part with room for a vertex, and its price; among equally cheap ones the emptiest.
    fn best(&self, level: &Level, vertex: usize, tried: &mut Vec<usize>) -> (usize, f64) {
        self.candidates(level, vertex, tried);
        let fits = |part: &usize| self.load[*part] + level.work[vertex] <= self.cap;
        let priced = tried.iter().copied().filter(fits);
        let priced = priced.map(|part| (part, self.price(level, vertex, part)));
        let cheapest = priced
            .min_by(|a, b| a.1.total_cmp(&b.1).then(self.load[a.0].total_cmp(&self.load[b.0])));
        // The emptiest part is below its share, so whatever is largest fits there.
        cheapest.unwrap_or_else(|| {
            let part = self.emptiest();
            (part, self.price(level, vertex, part))
        })
    }

    fn put(&mut self, level: &Level, vertex: usize, part: usize) {
        if let Some(load) = self.load.get_mut(self.part[vertex] as usize) {
            *load -= level.work[vertex];
        }
        self.load[part] += level.work[vertex];
        self.part[vertex] = u32::try_from(part).unwrap_or(0);
    }

    /// Places every vertex: next is whoever shares most with those that are placed, so that parts grow
    /// along what is shared; else the first in order.
    fn place(&mut self, level: &Level) {
        let mut tried = Vec::new();
        let mut link = vec![0.0_f64; level.work.len()];
        let mut next: BinaryHeap<(u64, Reverse<usize>)> =
            (0..level.work.len()).map(|vertex| (0, Reverse(vertex))).collect();
        while let Some((_, Reverse(vertex))) = next.pop() {
            if self.part[vertex] != UNPLACED {
                continue;
            }
            let (part, _) = self.best(level, vertex, &mut tried);
            self.put(level, vertex, part);
            for (other, bytes) in level.neighbours.get(vertex) {
                let other = *other as usize;
                if self.part[other] == UNPLACED {
                    link[other] += bytes;
                    // Numbers above zero have the order of their bits.
                    next.push((link[other].to_bits(), Reverse(other)));
                }
            }
        }
    }

    /// Moves vertices out of parts that have too much: those first that lose least by it.
    fn relieve(&mut self, level: &Level) {
        let mut tried = Vec::new();
        for full in 0..self.parts {
            let mut members: Vec<usize> = (0..level.work.len())
                .filter(|vertex| self.part[*vertex] as usize == full)
                .collect();
            while self.load[full] > self.cap {
                let losses = members.iter().enumerate().map(|(at, vertex)| {
                    let (part, price) = self.best(level, *vertex, &mut tried);
                    (price - self.price(level, *vertex, full), at, part)
                });
                let least = losses.min_by(|a, b| a.0.total_cmp(&b.0));
                let Some((_, at, part)) = least else { break };
                let vertex = members.swap_remove(at);
                self.put(level, vertex, part);
            }
        }
    }

    /// Moves vertices to where they pay less.
    fn improve(&mut self, level: &Level) {
        self.relieve(level);
        let mut tried = Vec::new();
        for _ in 0..PASSES {
            let mut moved = false;
            for vertex in 0..level.work.len() {
                let here = self.part[vertex] as usize;
                let (part, price) = self.best(level, vertex, &mut tried);
                let now = self.price(level, vertex, here);
                // A difference that rounding made would move vertices for ever.
                if part != here && price < now * (1.0 - 1e-9) {
                    self.put(level, vertex, part);
                    moved = true;
                }
            }
            if !moved {
                return;
            }
        }
    }

    /// What a part may have at this level.
    fn limit(&mut self, level: &Level) {
        let share = level.work.iter().sum::<f64>() / self.parts as f64;
        let largest = level.work.iter().copied().fold(0.0, f64::max);
        self.cap = (share * (1.0 + SLACK)).max(share + largest);
    }
}

/// The part of each vertex, out of `parts`. `cost` says what a byte in one part costs another.
pub(crate) fn split(graph: &Graph, parts: usize, cost: &impl Fn(usize, usize) -> f64) -> Vec<u32> {
    let float = |all: &[(u32, u32, u64)]| -> Vec<(u32, u32, f64)> {
        all.iter().map(|(a, b, bytes)| (*a, *b, *bytes as f64)).collect()
    };
    let work = graph.work.iter().map(|work| *work as f64).collect();
    let mut levels = vec![Level::new(work, float(&graph.edges), float(&graph.anchors))];
    let mut groups: Vec<Vec<u32>> = Vec::new();
    let share = graph.work.iter().sum::<u64>() as f64 / parts.max(1) as f64;
    let few = 8 * parts;
    while let Some(finest) = levels.last().filter(|level| level.work.len() > few) {
        let (level, group) = finest.merged(share / 6.0);
        if level.work.len() * 10 > finest.work.len() * 9 {
            break;
        }
        levels.push(level);
        groups.push(group);
    }
    let Some(mut level) = levels.pop() else { return Vec::new() };
    let part = vec![UNPLACED; level.work.len()];
    let parts = parts.max(1);
    let mut filling = Filling { parts, cost, load: vec![0.0; parts], cap: 0.0, part };
    filling.limit(&level);
    filling.place(&level);
    filling.improve(&level);
    while let (Some(finer), Some(group)) = (levels.pop(), groups.pop()) {
        level = finer;
        filling.part = group.iter().map(|group| filling.part[*group as usize]).collect();
        filling.limit(&level);
        filling.improve(&level);
    }
    filling.part
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests;
