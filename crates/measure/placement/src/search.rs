//! Local search over arrangements of items in the cells of a space. The better of two
//! arrangements is the one whose distances correlate more with the latencies; sums are kept so
//! that a change of a few items costs a few rows, not the whole matrix.

use super::line::{self, Sums};
use super::means::Means;
use super::observations::Observations;
use super::space::{Shape, Space};
use rand::{Rng, RngExt};

/// An improvement below this is rounding, and would let two equal arrangements take turns.
const LEAST_GAIN: f64 = 1e-10;

/// Longest run of ring stops that one move reverses or shifts; the first guess has the large
/// order right.
const LONGEST_RUN: usize = 10;

/// Cells for each item from which on few are filled, and the hops that are near.
const SPARSE: usize = 2;
const NEAR_HOPS: f64 = 3.0;

/// Items and proposals between two looks at whether to go on: some milliseconds among hundreds of cores.
const ITEMS_TOGETHER: usize = 16;
const PROPOSALS_TOGETHER: usize = 4096;

/// Latencies between items as a dense matrix, ready for the inner loop.
#[derive(Clone, Debug)]
pub(super) struct Dense {
    n: usize,
    /// 1 where the pair was measured, else 0.
    weight: Vec<f64>,
    /// Latency less the mean of all; 0 where not measured.
    latency: Vec<f64>,
    links: f64,
    squares: f64,
}

impl Dense {
    /// Lays the links out. Only for links between items.
    pub(super) fn new(observations: &Observations) -> Self {
        let n = observations.items;
        let latencies = observations.latencies();
        let mean = line::mean(&latencies);
        let (mut weight, mut latency) = (vec![0.0; n * n], vec![0.0; n * n]);
        for link in &observations.links {
            for at in [link.a * n + link.b, link.b * n + link.a] {
                weight[at] = 1.0;
                latency[at] = link.latency - mean;
            }
        }
        let squares = line::scatter(&latencies);
        Self { n, weight, latency, links: latencies.len() as f64, squares }
    }
}

/// Items in cells, with the sums that score them.
#[derive(Clone, Debug)]
pub(super) struct Arrangement<'a> {
    space: &'a Space,
    dense: &'a Dense,
    /// The cell of each item.
    pub(super) cell_of: Vec<usize>,
    item_in: Vec<Option<usize>>,
    /// Distance from every cell to every item, `cells x items`: what a move needs lies in a row.
    reach: Vec<f64>,
    sums: Sums,
    score: f64,
}

impl<'a> Arrangement<'a> {
    /// Starts from given cells, all different.
    pub(super) fn new(space: &'a Space, dense: &'a Dense, cell_of: Vec<usize>) -> Self {
        let mut item_in = vec![None; space.cells()];
        for (item, &cell) in cell_of.iter().enumerate() {
            debug_assert!(item_in[cell].is_none(), "two items in one cell");
            item_in[cell] = Some(item);
        }
        let rows = (0..space.cells()).map(|cell| space.from(cell));
        let reach = rows.flat_map(|row| cell_of.iter().map(|&cell| row[cell])).collect();
        let sums = Sums::default();
        let mut made = Self { space, dense, cell_of, item_in, reach, sums, score: 0.0 };
        made.recount();
        made
    }

    /// Correlation of distance and latency, 1 at best; below 0 the far is faster.
    pub(super) fn score(&self) -> f64 {
        self.score
    }

    /// Adds all sums up again, so that rounding does not pile up over many moves.
    fn recount(&mut self) {
        let n = self.dense.n;
        let mut sums = Sums { n: self.dense.links, yy: self.dense.squares, ..Sums::default() };
        for a in 0..n {
            let from = self.space.from(self.cell_of[a]);
            for b in a + 1..n {
                let w = self.dense.weight[a * n + b];
                let x = from[self.cell_of[b]];
                sums.x += w * x;
                sums.xx += w * x * x;
                sums.xy += x * self.dense.latency[a * n + b];
            }
        }
        self.sums = sums;
        self.score = sums.correlation();
    }

    /// The sums after moving some items; cells given must end up all different.
    fn sums_after(&self, moves: &[(usize, usize)]) -> Sums {
        let n = self.dense.n;
        let mut sums = self.sums;
        for &(item, cell) in moves {
            let old = self.cell_of[item];
            let [x, xx, xy] = change(
                &self.reach[old * n..(old + 1) * n],
                &self.reach[cell * n..(cell + 1) * n],
                &self.dense.weight[item * n..(item + 1) * n],
                &self.dense.latency[item * n..(item + 1) * n],
            );
            sums.x += x;
            sums.xx += xx;
            sums.xy += xy;
        }
        // Links between two moved items were counted from both ends, each time as if the other
        // end had stayed.
        for (k, &(u, to_u)) in moves.iter().enumerate() {
            for &(v, to_v) in &moves[k + 1..] {
                let (w, latency) = (self.dense.weight[u * n + v], self.dense.latency[u * n + v]);
                let (from_u, from_v) = (self.cell_of[u], self.cell_of[v]);
                let right = self.space.distance(to_u, to_v) + self.space.distance(from_u, from_v);
                let counted = self.space.distance(to_u, from_v) + self.space.distance(from_u, to_v);
                let square = |a, b| self.space.distance(a, b) * self.space.distance(a, b);
                sums.x += w * (right - counted);
                sums.xx += w
                    * (square(to_u, to_v) + square(from_u, from_v)
                        - square(to_u, from_v)
                        - square(from_u, to_v));
                sums.xy += latency * (right - counted);
            }
        }
        sums
    }

    fn take(&mut self, moves: &[(usize, usize)], sums: Sums) {
        for &(item, _) in moves {
            self.item_in[self.cell_of[item]] = None;
        }
        for &(item, cell) in moves {
            self.item_in[cell] = Some(item);
            self.cell_of[item] = cell;
            let column = self.reach[item..].iter_mut().step_by(self.dense.n);
            column.zip(self.space.from(cell)).for_each(|(to, &distance)| *to = distance);
        }
        self.sums = sums;
        self.score = sums.correlation();
    }

    /// Takes the move if it gains at least `least` (negative: loses at most that).
    fn offer(&mut self, moves: &[(usize, usize)], least: f64) -> bool {
        let sums = self.sums_after(moves);
        let better = sums.correlation() - self.score > least;
        if better {
            self.take(moves, sums);
        }
        better
    }

    /// An item goes to a cell; whoever is there goes where it came from.
    fn swap(&self, item: usize, cell: usize) -> ([(usize, usize); 2], usize) {
        match self.item_in[cell] {
            Some(other) => ([(item, cell), (other, self.cell_of[item])], 2),
            None => ([(item, cell), (item, cell)], 1),
        }
    }

    /// Tries `proposals` random swaps and keeps those that gain.
    pub(super) fn nudge(&mut self, proposals: usize, rng: &mut impl Rng) {
        for _ in 0..proposals {
            let item = rng.random_range(0..self.dense.n);
            let cell = rng.random_range(0..self.space.cells());
            let (moves, count) = self.swap(item, cell);
            if cell != self.cell_of[item] {
                self.offer(&moves[..count], LEAST_GAIN);
            }
        }
        self.recount();
    }

    /// Swaps, and on a ring also turns and shifts runs of stops, until nothing gains or `sweeps`
    /// are over. Few items in many cells go anywhere in the first sweep, and then to cells nearby: they drift, and what
    /// is far gains nothing any more.
    pub(super) fn descend(&mut self, sweeps: usize, means: &Means<'_>) {
        let is_sparse = self.space.cells() > SPARSE * self.dense.n;
        for sweep in 0..sweeps {
            let reach = if is_sparse && sweep > 0 { NEAR_HOPS } else { f64::INFINITY };
            if !self.sweep(reach, means) {
                return;
            }
        }
    }

    /// The same with cells nearby alone, for items that have almost found theirs.
    pub(super) fn settle(&mut self, sweeps: usize, means: &Means<'_>) {
        for _ in 0..sweeps {
            if !self.sweep(NEAR_HOPS, means) {
                return;
            }
        }
    }

    /// All moves to cells within so many hops once; whether there may be more to gain.
    fn sweep(&mut self, reach: f64, means: &Means<'_>) -> bool {
        let mut gained = false;
        for item in 0..self.dense.n {
            if item % ITEMS_TOGETHER == 0 && !means.keep_going() {
                return false;
            }
            for cell in 0..self.space.cells() {
                if self.space.distance(self.cell_of[item], cell) > reach {
                    continue;
                }
                let (moves, count) = self.swap(item, cell);
                if cell != self.cell_of[item] {
                    gained |= self.offer(&moves[..count], LEAST_GAIN);
                }
            }
        }
        if matches!(self.space.shape, Shape::Ring { .. }) {
            gained |= self.move_runs();
        }
        self.recount();
        gained && self.score <= 1.0 - LEAST_GAIN
    }

    /// Reverses every short run of stops (2-opt) and shifts it by one either way (or-opt).
    fn move_runs(&mut self) -> bool {
        let stops = self.space.cells();
        let mut gained = false;
        for start in 0..stops {
            for length in 2..=LONGEST_RUN.min(stops - 1) {
                let target: [&dyn Fn(usize) -> usize; 3] =
                    [&|k| length - 1 - k, &|k| if k + 1 == length { 0 } else { k + 1 }, &|k| {
                        if k == 0 { length - 1 } else { k - 1 }
                    }];
                for place in target {
                    let moves: Vec<(usize, usize)> = (0..length)
                        .filter_map(|k| {
                            let item = self.item_in[(start + k) % stops]?;
                            Some((item, (start + place(k)) % stops))
                        })
                        .collect();
                    gained |= self.offer(&moves, LEAST_GAIN);
                }
            }
        }
        gained
    }

    /// Simulated annealing (Kirkpatrick 1983) by swaps, keeping the best arrangement met.
    pub(super) fn anneal(&mut self, proposals: usize, means: &mut Means<'_>) {
        // From losses of 0.3 % of correlation, about one misplaced core in thirty, to none.
        const HOT: f64 = 3e-3;
        const COLD: f64 = 3e-6;
        let mut best = (self.score, self.cell_of.clone());
        for k in 0..proposals {
            let heat = HOT * (COLD / HOT).powf(k as f64 / proposals as f64);
            if k % PROPOSALS_TOGETHER == 0 && !means.keep_going() {
                break;
            }
            let item = means.rng.random_range(0..self.dense.n);
            let cell = means.rng.random_range(0..self.space.cells());
            let (moves, count) = self.swap(item, cell);
            let chance: f64 = means.rng.random_range(f64::MIN_POSITIVE..1.0);
            if cell != self.cell_of[item] {
                self.offer(&moves[..count], heat * chance.ln());
            }
            if self.score > best.0 + LEAST_GAIN {
                best = (self.score, self.cell_of.clone());
            }
        }
        *self = Self::new(self.space, self.dense, best.1);
    }
}

/// Changes of the sums of x, of its squares and of its products with the latency, when one item's
/// distances to the others go from `before` to `after`. Sums run in four lanes for the sake of
/// vector units.
fn change(before: &[f64], after: &[f64], weight: &[f64], latency: &[f64]) -> [f64; 3] {
    const LANES: usize = 4;
    let mut lanes = [[0.0; LANES]; 3];
    let mut add = |k: usize, before: f64, after: f64, weight: f64, latency: f64| {
        let step = after - before;
        lanes[0][k] += weight * step;
        lanes[1][k] += weight * step * (after + before);
        lanes[2][k] += latency * step;
    };
    let (b, b_rest) = before.as_chunks::<LANES>();
    let (a, a_rest) = after.as_chunks::<LANES>();
    let (w, w_rest) = weight.as_chunks::<LANES>();
    let (l, l_rest) = latency.as_chunks::<LANES>();
    for (((b, a), w), l) in b.iter().zip(a).zip(w).zip(l) {
        for k in 0..LANES {
            add(k, b[k], a[k], w[k], l[k]);
        }
    }
    for (((b, a), w), l) in b_rest.iter().zip(a_rest).zip(w_rest).zip(l_rest) {
        add(0, *b, *a, *w, *l);
    }
    lanes.map(|lane| lane.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::super::latencies::PairLatencies;
    use super::*;
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    fn machine(space: &Space) -> Dense {
        let n = space.cells();
        let cells: Vec<Option<f64>> =
            (0..n * n).map(|at| Some(30.0 + 2.0 * space.distance(at / n, at % n))).collect();
        Dense::new(&Observations::of_pairs(&PairLatencies::new(n, &cells).unwrap()))
    }

    #[test]
    fn sums_after_any_move_equal_a_full_count() {
        let space = Space::new(Shape::Grid { columns: 4, rows: 3 }, 1.0);
        let dense = machine(&Space::new(Shape::Ring { stops: 10 }, 1.0));
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let mut arrangement = Arrangement::new(&space, &dense, (0..10).collect());
        for _ in 0..200 {
            // Four items change cells in a circle, one of them perhaps with an empty cell.
            let (start, empty) = (rng.random_range(0..10), rng.random_range(0..12));
            let mut moves: Vec<(usize, usize)> = (0..4)
                .map(|k| ((start + k) % 10, arrangement.cell_of[(start + k + 1) % 10]))
                .collect();
            moves[3].1 = arrangement.cell_of[start];
            if arrangement.item_in[empty].is_none() {
                moves[0].1 = empty;
            }
            let sums = arrangement.sums_after(&moves);
            arrangement.take(&moves, sums);
            let kept = arrangement.score;
            arrangement.recount();
            assert!((kept - arrangement.score).abs() < 1e-9);
        }
    }

    #[test]
    fn a_ring_with_a_few_exchanged_stops_is_put_right() {
        let space = Space::new(Shape::Ring { stops: 16 }, 1.0);
        let dense = machine(&space);
        let mut cells: Vec<usize> = (0..16).collect();
        cells[2..8].reverse();
        cells.swap(11, 13);
        let mut arrangement = Arrangement::new(&space, &dense, cells);
        assert!(arrangement.score() < 0.95);
        arrangement.descend(20, &Means::unhurried(1));
        assert!(arrangement.score() > 1.0 - 1e-9);
    }

    #[test]
    fn annealing_never_returns_worse_than_it_got() {
        let space = Space::new(Shape::Grid { columns: 4, rows: 4 }, 1.0);
        let dense = machine(&space);
        let mut arrangement = Arrangement::new(&space, &dense, (0..16).collect());
        arrangement.anneal(2_000, &mut Means::unhurried(5));
        assert!(arrangement.score() > 1.0 - 1e-9);
    }
}
