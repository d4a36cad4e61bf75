//! A base as decoding looks at it: latencies by class and canonical index, and what follows from
//! them. It never learns a base.

use crate::number::{mean, real};
use isochrone_atlas::PatternTable;

/// Classes of pages at most.
pub(crate) const CLASSES: usize = 16;
/// Gap between neighbouring class means, as a share of the mean of all, at which classes lie on another node
/// of the machine.
const FAR_SHARE: f64 = 0.12;

/// One base: `[class][canonical index]`, cycles.
pub trait Patterns {
    /// Classes of pages, 16 at most.
    fn classes(&self) -> usize;

    /// Lines after which the pattern repeats: 64 or 256.
    fn period(&self) -> usize;

    /// Latency of a line, cycles; any number for a class or an index that is not there.
    fn cycles(&self, class: usize, index: usize) -> f64;
}

impl Patterns for PatternTable {
    fn classes(&self) -> usize {
        self.codes() / Patterns::period(self)
    }

    fn period(&self) -> usize {
        Self::period(self).lines()
    }

    fn cycles(&self, class: usize, index: usize) -> f64 {
        let place = class * Patterns::period(self) + index;
        self.values().get(place).copied().map_or(0.0, f64::from)
    }
}

/// The lines of one class.
pub(crate) fn lines_of<B: Patterns + ?Sized>(
    base: &B,
    class: usize,
) -> impl Iterator<Item = f64> + Clone + '_ {
    (0..base.period()).map(move |index| base.cycles(class, index))
}

/// For each class the mean of the classes on its node: a machine may have memory on several nodes of its
/// host, which differ by several times what the lines of a page do.
pub(crate) fn node_means<B: Patterns + ?Sized>(base: &B) -> [f64; CLASSES] {
    let classes = base.classes().min(CLASSES);
    let mut means = [0.0; CLASSES];
    for (class, slot) in means.iter_mut().enumerate().take(classes) {
        *slot = mean(lines_of(base, class));
    }
    let mut order: [usize; CLASSES] = core::array::from_fn(|class| class);
    let order = &mut order[..classes];
    order.sort_unstable_by(|a, b| means[*a].total_cmp(&means[*b]).then(a.cmp(b)));
    let all = order.iter().map(|class| means[*class]).sum::<f64>() / real(classes.max(1));
    let mut groups = [0_usize; CLASSES];
    let mut group = 0;
    for pair in order.windows(2) {
        group += usize::from(means[pair[1]] - means[pair[0]] > FAR_SHARE * all.abs());
        groups[pair[1]] = group;
    }
    let mut sums = [(0.0, 0.0); CLASSES];
    for class in 0..classes {
        let sum = &mut sums[groups[class]];
        *sum = (sum.0 + means[class], sum.1 + 1.0);
    }
    core::array::from_fn(|class| {
        let (sum, count) = sums[groups[class]];
        sum / f64::max(count, 1.0)
    })
}

/// Mean square by which lines differ from the mean of their node.
pub(crate) fn spread<B: Patterns + ?Sized>(base: &B) -> f64 {
    let nodes = node_means(base);
    let square = |class: usize| {
        let node = nodes.get(class).copied().unwrap_or(0.0);
        mean(lines_of(base, class).map(|value| (value - node) * (value - node)))
    };
    mean((0..base.classes().min(CLASSES)).map(square))
}
