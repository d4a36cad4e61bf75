//! What one level of a tree costs: from when a node has the data to when its children have them.
//!
//! The costs come from the graph of the program that is really run: it is recorded for small trees, priced,
//! and the differences are the levels. With all children of a node on one line a level is a constant and
//! something for each child; whether that is so is checked on larger levels, and where it is not, this says
//! so instead of guessing.

use crate::collectives::Tree;
use crate::program::Rank;

/// Which class of core a node is on, of at most two.
pub const CLASSES: usize = 2;

/// How many children of each class a node has.
pub type Counts = [usize; CLASSES];

/// What the program that is really run costs over one tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Priced {
    /// When each rank has the data and may hand them on, ns.
    pub ready_ns: Vec<f64>,
    /// When all is done, ns.
    pub total_ns: f64,
}

/// A tree's price by the program that is really run.
pub trait Pricing {
    /// Prices `tree`, with rank `r` on core `cores[r]`.
    ///
    /// # Errors
    /// [`LevelError`] when the program cannot be priced.
    fn price(&self, tree: &Tree, cores: &[usize]) -> Result<Priced, LevelError>;

    /// Whether a level is over only when answers have come back up, as in Figure 1 of the paper. If not,
    /// it is over when the children have the data.
    fn is_round(&self) -> bool;
}

/// Why there are no levels.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LevelError {
    /// The program cannot be priced.
    #[error("the program cannot be priced: {0}")]
    Price(String),
    /// Levels that are not linear in their children.
    #[error(
        "a level of {0:?} children costs {1:.2} ns where {2:.2} ns follow from smaller ones: levels are \
         not linear, so trees are searched by their own graphs"
    )]
    NotLinear(Counts, f64, f64),
}

/// What the children of one parent wait for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// By which classes there are children of (bit 0, bit 1), then by the class of the child: constant,
    /// ns; infinite where no tree has such children.
    pub constant_ns: [[f64; CLASSES]; 4],
    /// For each child of each class, ns.
    pub each_ns: [f64; CLASSES],
}

impl Default for Level {
    fn default() -> Self {
        Self { constant_ns: [[f64::INFINITY; CLASSES]; 4], each_ns: [0.0; CLASSES] }
    }
}

impl Level {
    /// When a child of class `child` is ready after its parent was, among `counts` children.
    #[must_use]
    pub fn delay_ns(&self, counts: Counts, child: usize) -> f64 {
        let mut sum = self.constant_ns[mask(counts)][child];
        for (each, count) in self.each_ns.iter().zip(counts) {
            sum += each * real(count);
        }
        sum
    }
}

/// The levels of a program on one or two classes of cores.
#[derive(Clone, Debug, PartialEq)]
pub struct Levels {
    /// Below a root of each class.
    pub root: [Level; CLASSES],
    /// Below any other node of each class.
    pub inner: [Level; CLASSES],
}

/// Which classes there are children of.
#[must_use]
pub(super) fn mask(counts: Counts) -> usize {
    usize::from(counts[0] > 0) | usize::from(counts[1] > 0) << 1
}

/// Levels that are asked of the graph, and larger ones that must follow from them.
const ASKED: [Counts; 8] = [[1, 0], [2, 0], [0, 1], [0, 2], [1, 1], [2, 1], [1, 2], [3, 0]];
const CHECKED: [Counts; 6] = [[5, 0], [0, 4], [3, 3], [2, 5], [9, 0], [17, 0]];
/// Levels may differ by so many ns from what follows from smaller ones.
const TOLERANCE_NS: f64 = 1e-6;

impl Levels {
    /// The levels of the program behind `pricing`, on the cores of each class.
    ///
    /// # Errors
    /// [`LevelError`] when it cannot be priced or is not linear.
    pub fn of(pricing: &impl Pricing, classes: [&[usize]; CLASSES]) -> Result<Self, LevelError> {
        let mut levels =
            Self { root: [Level::default(); CLASSES], inner: [Level::default(); CLASSES] };
        for class in (0..CLASSES).filter(|&c| !classes[c].is_empty()) {
            levels.root[class] =
                linear(classes, &[class], |counts| star(pricing, classes, &[class], counts))?;
            // Above it stands a node of the class that has more cores left.
            let left = |c: usize| classes[c].len() - usize::from(c == class);
            let over = if left(1 - class) > left(class) { 1 - class } else { class };
            levels.inner[class] = linear(classes, &[over, class], |counts| {
                let above = star(pricing, classes, &[over], one(class))?;
                let all = star(pricing, classes, &[over, class], counts)?;
                Ok(all.map(|ns| ns - above[class]))
            })?;
        }
        Ok(levels)
    }
}

fn one(class: usize) -> Counts {
    let mut counts = [0; CLASSES];
    counts[class] = 1;
    counts
}

/// The level through a few of its values.
fn linear(
    classes: [&[usize]; CLASSES],
    chain: &[usize],
    price: impl Fn(Counts) -> Result<[f64; CLASSES], LevelError>,
) -> Result<Level, LevelError> {
    let spare =
        |d: usize| classes[d].len().saturating_sub(chain.iter().filter(|&&c| c == d).count());
    let fits = |counts: &Counts| (0..CLASSES).all(|d| counts[d] <= spare(d));
    let mut level = Level::default();
    for d in 0..CLASSES {
        let (first, second) = (one(d), one(d).map(|n| 2 * n));
        if fits(&second) {
            level.each_ns[d] = price(second)?[d] - price(first)?[d];
        }
    }
    for counts in [[1, 0], [0, 1], [1, 1]].iter().filter(|c| fits(c)) {
        let priced = price(*counts)?;
        for d in (0..CLASSES).filter(|&d| counts[d] > 0) {
            let each = level.each_ns[0] * real(counts[0]) + level.each_ns[1] * real(counts[1]);
            level.constant_ns[mask(*counts)][d] = priced[d] - each;
        }
    }
    for counts in ASKED.iter().chain(&CHECKED).filter(|c| fits(c)) {
        let priced = price(*counts)?;
        for d in (0..CLASSES).filter(|&d| counts[d] > 0) {
            let follows = level.delay_ns(*counts, d);
            if (priced[d] - follows).abs() > TOLERANCE_NS {
                return Err(LevelError::NotLinear(*counts, priced[d], follows));
            }
        }
    }
    Ok(level)
}

/// A chain of nodes of the classes in `chain`, the last of which has `counts` leaves: when leaves of each
/// class are ready; of a round trip, when all were done if those of that class were ready last.
fn star(
    pricing: &impl Pricing,
    classes: [&[usize]; CLASSES],
    chain: &[usize],
    counts: Counts,
) -> Result<[f64; CLASSES], LevelError> {
    let mut used = [0; CLASSES];
    let mut cores = Vec::new();
    let mut parents: Vec<Option<Rank>> = Vec::new();
    let mut leaves = [None; CLASSES];
    let mut add = |class: usize, parent: Option<usize>| {
        cores.push(classes[class][used[class]]);
        used[class] += 1;
        parents.push(parent.and_then(|p| u16::try_from(p).ok()).map(Rank));
        cores.len() - 1
    };
    let mut last = None;
    for &class in chain {
        last = Some(add(class, last));
    }
    for class in 0..CLASSES {
        for _ in 0..counts[class] {
            leaves[class] = Some(add(class, last));
        }
    }
    let tree = Tree::new(&parents).map_err(|e| LevelError::Price(e.to_string()))?;
    let Priced { ready_ns, total_ns } = pricing.price(&tree, &cores)?;
    let last = leaves.iter().flatten().map(|&at| ready_ns[at]).fold(0.0, f64::max);
    let back = if pricing.is_round() { total_ns - last } else { 0.0 };
    Ok(leaves.map(|leaf| leaf.map_or(0.0, |at| ready_ns[at] + back)))
}

#[allow(clippy::cast_precision_loss, reason = "counts of ranks are far below 2^52")]
pub(super) const fn real(n: usize) -> f64 {
    n as f64
}
