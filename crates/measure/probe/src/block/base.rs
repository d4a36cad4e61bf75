//! What is seen of reference pages: lines of known codes, sorted into the cells of a base.
//!
//! Keys and classes belong to pages and stay; the base belongs to wherever the host runs the
//! vCPU now, and changes when it moves. So before a core's latencies are used, some lines of
//! reference pages are timed and compared with the bases that are known (`dictionary`). A base that is none of them
//! is measured from the same reference pages; no page has to be decoded again.

use std::collections::BTreeMap;

use isochrone_decode::{Reference, Window};
use isochrone_stats::{rng, shuffle};
use isochrone_units::{CoreId, Cycles, LINES_PER_PAGE, Level, LineAddr, PageAddr};

use super::apart::{APART, batches};
use super::far::group_means;
use super::fit::{Compared, Fit};
use super::learn::{Learnt, class_means, split_code};
use super::rounds::keep_window;
use crate::target::{Target, TargetError};

/// Blocks of each class that each needs where several identify bases at the same time.
const EACH_CLASS: usize = 2;

/// Pages with known codes, spread over the arena.
#[derive(Clone, Debug, Default)]
pub struct References {
    /// For each page, its class and the canonical index of its line 0, and the page.
    pages: Vec<(PageAddr, u16, usize)>,
    /// So many of them, the first, are a fair sample of all pages.
    fair: usize,
    /// Pages that share a code.
    per_block: usize,
}

/// What shares a code: a page, or the four pages of a 16 KiB block.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReferenceBlock {
    first: LineAddr,
    class: u16,
    key: usize,
}

impl ReferenceBlock {
    /// As the decoder sees it.
    pub(super) fn as_reference(&self) -> Reference {
        let key = u16::try_from(self.key).unwrap_or(0);
        Reference { first: self.first, class: self.class, key }
    }
}

/// Where the reference pages lie within their classes, in the current base.
#[derive(Clone, Debug)]
pub struct PageMeans {
    /// For each page, in the order in which their codes were learnt: cycles beyond its class.
    pub cycles: Vec<f64>,
    /// Loads behind the least known of them.
    pub loads: f64,
}

/// A base that is in no dictionary.
#[derive(Clone, Debug)]
pub struct Sight {
    /// `[class][canonical index]`, cycles.
    pub patterns: Vec<Vec<f64>>,
    /// Where pages lie within their classes: in this base a class may be two.
    pub pages: PageMeans,
    /// Noise of one load, cycles.
    pub noise: f64,
    /// Whether a second look saw the same.
    pub steady: bool,
}

/// A base as it was just seen: cycles, less nothing.
#[derive(Clone, Debug)]
pub struct Seen {
    /// `[class][canonical index]`; `NaN` where no sample fell.
    pub patterns: Vec<Vec<f64>>,
    /// Samples behind each cell; 0 for lines that another one with an equal place stands for.
    pub counts: Vec<Vec<u32>>,
    /// Samples behind each value, those of the lines that stand for it included.
    behind: Vec<Vec<u32>>,
    /// Noise of one load around its cell, cycles.
    pub noise: f64,
}

impl References {
    /// From training pages, in the order in which their codes were learnt.
    #[must_use]
    pub fn new(pages: &[PageAddr], learnt: &Learnt) -> Self {
        let per_block = learnt.period / LINES_PER_PAGE;
        let place = |(i, page): (usize, &PageAddr)| {
            let (class, key) = split_code(learnt.codes[i / per_block], learnt.period);
            let first = (i % per_block) * LINES_PER_PAGE;
            (*page, u16::try_from(class).unwrap_or(0), first ^ key)
        };
        let fair = pages.len().min(learnt.fair_codes().len() * per_block);
        Self { pages: pages.iter().enumerate().map(place).collect(), fair, per_block }
    }

    /// The pages, in the order in which their codes were learnt.
    pub(super) fn addresses(&self) -> Vec<PageAddr> {
        self.pages.iter().map(|page| page.0).collect()
    }

    /// The pages, or whole 16 KiB blocks where the form spans them, in random order.
    pub(super) fn blocks(&self, seed: u64) -> Vec<ReferenceBlock> {
        let of = |pages: &[(PageAddr, u16, usize)]| ReferenceBlock {
            first: pages[0].0.line(0),
            class: pages[0].1,
            key: pages[0].2,
        };
        let mut blocks: Vec<ReferenceBlock> =
            self.pages.chunks_exact(self.per_block).map(of).collect();
        shuffle(&mut blocks, &mut rng(seed));
        blocks
    }

    /// At least `count` lines, each with its class and canonical index, in an order in which
    /// neighbours do not meet.
    pub(super) fn draw(&self, count: usize, seed: u64) -> Vec<ReferenceCell> {
        let mut rng = rng(seed);
        let mut cells = Vec::with_capacity(count);
        while cells.len() < count && !self.pages.is_empty() {
            for (page, i) in batches(self.pages.len(), &mut rng).into_iter().flatten() {
                cells.push(self.cell(page, i));
            }
        }
        cells.truncate(count);
        cells
    }

    /// An eighth of the lines, no two of them neighbours, in random order.
    pub(super) fn batch(&self, seed: u64) -> Vec<ReferenceCell> {
        let batch = batches(self.pages.len(), &mut rng(seed)).swap_remove(0);
        batch.into_iter().map(|(page, i)| self.cell(page, i)).collect()
    }

    fn cell(&self, page: u32, i: u8) -> ReferenceCell {
        let (page, class, first) = self.pages[page as usize];
        let canonical = u16::try_from(first ^ usize::from(i)).unwrap_or(0);
        (page.line(i), class, canonical)
    }

    /// Those that are a fair sample of all pages.
    pub(super) fn fair(&self) -> Self {
        let count = if self.fair == 0 { self.pages.len() } else { self.fair };
        Self { pages: self.pages[..count].to_vec(), ..*self }
    }

    /// Dealt out to so many, or fewer, who time theirs at the same time: each has pages of every class, and
    /// `least` pages or more.
    pub(super) fn dealt(&self, most: usize, least: usize) -> Vec<Self> {
        let mut classes: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        for (block, pages) in self.pages.chunks_exact(self.per_block).enumerate() {
            classes.entry(pages[0].1).or_default().push(block);
        }
        let fewest = classes.values().map(Vec::len).min().unwrap_or(0);
        let count = most.min(fewest / EACH_CLASS).min(self.pages.len() / least.max(1)).max(1);
        let mut parts: Vec<Vec<usize>> = vec![Vec::new(); count];
        // Classes go on where the one before ended, so that parts differ by one block at most.
        for (nth, block) in classes.into_values().flatten().enumerate() {
            parts[nth % count].push(block);
        }
        let part = |mut blocks: Vec<usize>| {
            blocks.sort_unstable();
            let first = |block: &usize| block * self.per_block;
            let fair = blocks.iter().filter(|block| first(block) < self.fair).count();
            let pages = |block: &usize| self.pages[first(block)..][..self.per_block].to_vec();
            Self {
                pages: blocks.iter().flat_map(pages).collect(),
                fair: fair * self.per_block,
                per_block: self.per_block,
            }
        };
        parts.into_iter().map(part).collect()
    }

    /// Times `count` lines, and returns them with their values, the timer's cost taken off.
    pub(super) fn time(
        &self,
        target: &mut dyn Target,
        core: CoreId,
        level: Level,
        count: usize,
        seed: u64,
    ) -> Result<(Vec<ReferenceCell>, Vec<f64>), TargetError> {
        let cells = self.draw(count, seed);
        // A batch is an eighth of the pages' lines: neighbours must not meet.
        let together = (self.pages.len() * LINES_PER_PAGE / APART).max(1);
        let mut values = Vec::with_capacity(cells.len());
        for batch in cells.chunks(together) {
            values.extend(time_batch(target, core, level, batch)?);
        }
        Ok((cells, values))
    }
}

/// Times lines no two of which are neighbours; cycles, the timer's cost taken off.
pub(super) fn time_batch(
    target: &mut dyn Target,
    core: CoreId,
    level: Level,
    cells: &[ReferenceCell],
) -> Result<Vec<f64>, TargetError> {
    let lines: Vec<LineAddr> = cells.iter().map(|c| c.0).collect();
    let mut raw = vec![Cycles(0); lines.len()];
    target.sample(core, level, &lines, &mut raw)?;
    let overhead = target.clock().overhead;
    Ok(raw.iter().map(|c| f64::from(c.0) - overhead).collect())
}

/// A line with its class and canonical index.
pub(super) type ReferenceCell = (LineAddr, u16, u16);

/// For each value whether it can be a load from where the line was put: whether it lies in the window of its page's
/// node.
pub(super) fn in_window(
    cells: &[ReferenceCell],
    values: &[f64],
    learnt: &Learnt,
    tick: u32,
) -> Vec<bool> {
    let nodes = learnt.nodes();
    let of = |cell: &ReferenceCell| nodes.get(usize::from(cell.1)).copied().unwrap_or(0);
    let windows: Vec<Window> = (0..=nodes.iter().copied().max().unwrap_or(0))
        .map(|node| {
            let of_node = cells.iter().zip(values).filter(|(cell, _)| of(cell) == node);
            keep_window(&of_node.map(|(_, value)| *value).collect::<Vec<f64>>(), tick)
        })
        .collect();
    cells.iter().zip(values).map(|(cell, value)| windows[of(cell)].holds(*value)).collect()
}

/// Reference values sorted into canonical cells.
#[derive(Clone, Debug)]
pub(super) struct Look {
    sums: Vec<Vec<f64>>,
    counts: Vec<Vec<u32>>,
    squares: f64,
    /// Every value with its page, class and cell.
    values: Vec<(PageAddr, usize, usize, f64)>,
}

impl Look {
    pub(super) fn new(learnt: &Learnt) -> Self {
        let classes = learnt.classes();
        Self {
            sums: vec![vec![0.0; learnt.period]; classes],
            counts: vec![vec![0; learnt.period]; classes],
            squares: 0.0,
            values: Vec::new(),
        }
    }

    pub(super) fn add(
        &mut self,
        cells: &[ReferenceCell],
        values: &[f64],
        learnt: &Learnt,
        tick: u32,
    ) {
        let kept = in_window(cells, values, learnt, tick);
        for ((cell, value), _) in cells.iter().zip(values).zip(kept).filter(|(_, kept)| *kept) {
            let (line, class, index) = cell;
            let class = usize::from(*class);
            let index = usize::from(learnt.representative(usize::from(*index)));
            self.sums[class][index] += value;
            self.counts[class][index] += 1;
            self.squares += value * value;
            self.values.push((line.page(), class, index, *value));
        }
    }

    /// How far each of `pages` lies from what its class's pattern says of its lines.
    pub(super) fn page_means(&self, pages: &[PageAddr]) -> PageMeans {
        let mut sums: BTreeMap<PageAddr, (f64, f64)> = BTreeMap::new();
        for (page, class, index, value) in &self.values {
            let mean = self.sums[*class][*index] / f64::from(self.counts[*class][*index]);
            let sum = sums.entry(*page).or_default();
            sum.0 += value - mean;
            sum.1 += 1.0;
        }
        let mean = |page| sums.get(page).map_or(0.0, |(sum, count)| sum / count);
        let fewest =
            pages.iter().map(|p| sums.get(p).map_or(0.0, |s| s.1)).fold(f64::MAX, f64::min);
        PageMeans { cycles: pages.iter().map(mean).collect(), loads: fewest }
    }

    pub(super) fn seen(&self, learnt: &Learnt) -> Seen {
        let total: u32 = self.counts.iter().flatten().sum();
        let between: f64 = self
            .sums
            .iter()
            .flatten()
            .zip(self.counts.iter().flatten())
            .filter(|(_, n)| **n > 0)
            .map(|(s, n)| s * s / f64::from(*n))
            .sum();
        let used = self.counts.iter().flatten().filter(|n| **n > 0).count();
        let spare = f64::from(total) - used as f64;
        let at = |j: usize| usize::from(learnt.representative(j));
        let mean = |(sum, count): (&Vec<f64>, &Vec<u32>)| {
            (0..learnt.period).map(|j| sum[at(j)] / f64::from(count[at(j)])).collect()
        };
        Seen {
            patterns: self.sums.iter().zip(&self.counts).map(mean).collect(),
            // Only representatives carry weight: equal lines are one cell.
            counts: self
                .counts
                .iter()
                .map(|c| (0..learnt.period).map(|j| if at(j) == j { c[j] } else { 0 }).collect())
                .collect(),
            behind: self
                .counts
                .iter()
                .map(|c| (0..learnt.period).map(|j| c[at(j)]).collect())
                .collect(),
            noise: ((self.squares - between).max(0.0) / spare.max(1.0)).sqrt(),
        }
    }
}

impl Seen {
    /// How a known base fits what was seen, corrected for the noise of this look; it explains nothing where the look
    /// saw nothing but noise.
    pub(super) fn fit(&self, base: &[Vec<f64>]) -> Fit {
        let nodes = group_means(&class_means(base));
        let mut cells = Vec::new();
        for (class, node) in nodes.iter().enumerate() {
            let pattern = self.patterns[class].iter().zip(&base[class]).zip(&self.counts[class]);
            let known = pattern.filter(|((seen, _), n)| seen.is_finite() && **n > 0);
            cells.extend(known.map(|((seen, base), n)| Compared {
                seen: *seen,
                base: *base,
                node: *node,
                weight: f64::from(*n),
            }));
        }
        let noise = self.noise.powi(2) * cells.len().saturating_sub(1) as f64;
        Fit::of(&cells, noise)
    }

    /// Standard error of the mean of what was seen, cycles.
    pub(super) fn mean_error(&self) -> f64 {
        let loads: u32 = self.counts.iter().flatten().sum();
        self.noise / f64::from(loads.max(1)).sqrt()
    }
}

impl Seen {
    /// The base that this look saw: class means and the shapes of classes, each drawn towards flat
    /// by as much of its variance as is noise (James and Stein's shrinkage).
    pub(super) fn denoised(&self, learnt: &Learnt) -> Vec<Vec<f64>> {
        let classes: Vec<f64> = (0..self.patterns.len()).map(|c| self.class_mean(c)).collect();
        let count = learnt.shapes.iter().max().map_or(1, |most| most + 1);
        let shapes: Vec<Vec<f64>> =
            (0..count).map(|shape| self.shape(shape, learnt, &classes)).collect();
        let of = |class: usize| &shapes[learnt.shapes[class]];
        let classes = classes.iter().enumerate();
        classes.map(|(class, c)| of(class).iter().map(|s| c + s).collect()).collect()
    }

    fn shape(&self, shape: usize, learnt: &Learnt, classes: &[f64]) -> Vec<f64> {
        let (mut values, mut weight) = (vec![0.0; learnt.period], vec![0.0; learnt.period]);
        for class in (0..classes.len()).filter(|class| learnt.shapes[*class] == shape) {
            let (pattern, behind) = (&self.patterns[class], &self.behind[class]);
            for (j, value) in pattern.iter().enumerate().filter(|(_, v)| v.is_finite()) {
                let n = f64::from(behind[j]);
                values[j] += n * (value - classes[class]);
                weight[j] += n;
            }
        }
        for (value, weight) in values.iter_mut().zip(&weight) {
            *value /= weight.max(1.0);
        }
        let noise = weight.iter().map(|w| self.noise.powi(2) / w.max(1.0)).sum::<f64>()
            / learnt.period.max(1) as f64;
        let total = isochrone_stats::variance(&values).unwrap_or(0.0);
        let trust = (1.0 - noise / total.max(f64::MIN_POSITIVE)).max(0.0);
        values.iter().map(|value| trust * value).collect()
    }

    /// Mean of a class over its samples; of all classes where it has none.
    fn class_mean(&self, class: usize) -> f64 {
        let of = |class: usize| {
            let pairs = self.patterns[class].iter().zip(&self.counts[class]);
            pairs
                .filter(|(v, n)| v.is_finite() && **n > 0)
                .fold((0.0, 0.0), |(s, w), (v, n)| (s + v * f64::from(*n), w + f64::from(*n)))
        };
        let (sum, weight) = match of(class) {
            (_, 0.0) => {
                (0..self.patterns.len()).map(of).fold((0.0, 0.0), |(s, w), (a, b)| (s + a, w + b))
            }
            own => own,
        };
        sum / f64::max(weight, 1.0)
    }
}

/// Does a batch again when the thread was moved during it, at most eight times.
pub(super) fn retry<T>(
    mut batch: impl FnMut() -> Result<T, TargetError>,
) -> Result<T, TargetError> {
    let mut last = batch();
    for _ in 0..8 {
        match last {
            Err(TargetError::Moved { .. }) => last = batch(),
            done => return done,
        }
    }
    last
}
