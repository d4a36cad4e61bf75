//! Machines that are known by construction, for tests.

use isochrone_distance::{Cost, Distances, LineCosts, Term};
use isochrone_units::{CoreId, Reading};

/// Nested groups of so many cores, innermost first, and what a line takes within each; the last group has
/// all cores.
#[derive(Clone, Debug)]
pub(crate) struct Synthetic {
    pub(crate) sizes: Vec<u16>,
    pub(crate) ns: Vec<f64>,
    /// Half the interval of a transfer over it.
    pub(crate) interval: f64,
    /// What one more sharer and one more acknowledgement cost; none: not measured.
    pub(crate) term_ns: Option<f64>,
    /// What a line's home takes for one more reader; none: not measured.
    pub(crate) reader_ns: Option<f64>,
    /// Whether the groups are kept secret.
    pub(crate) ungrouped: bool,
}

impl Synthetic {
    pub(crate) fn new(sizes: &[u16], ns: &[f64]) -> Self {
        Self {
            sizes: sizes.to_vec(),
            ns: ns.to_vec(),
            interval: 0.05,
            term_ns: Some(6.0),
            reader_ns: None,
            ungrouped: false,
        }
    }

    /// 16 cores: two sockets of eight.
    pub(crate) fn of_16() -> Self {
        Self::new(&[8, 16], &[35.0, 95.0])
    }

    /// 64 cores: complexes of eight, sockets of 32.
    pub(crate) fn of_64() -> Self {
        Self::new(&[8, 32, 64], &[25.0, 110.0, 210.0])
    }

    pub(crate) fn cores(&self) -> Vec<CoreId> {
        (0..self.sizes.last().copied().unwrap_or(0)).map(CoreId).collect()
    }
}

impl Distances for Synthetic {
    fn line_costs(&self, owner: CoreId, asker: CoreId) -> Option<LineCosts> {
        let same = |size: &u16| owner.0 / size == asker.0 / size;
        let level = self.sizes.iter().position(same)?;
        let all = *self.sizes.last()?;
        (owner != asker && owner.0 < all && asker.0 < all).then_some(())?;
        let cost = |ns: f64| Cost {
            value: ns,
            lo: ns * (1.0 - self.interval),
            hi: ns * (1.0 + self.interval),
            reading: Reading::Simulated,
        };
        let ns = self.ns[level];
        Some(LineCosts {
            transfer: cost(ns),
            memory: None,
            start: Some(cost(ns)),
            line: Some(cost(ns / 8.0)),
            congestion: Some(cost(ns / 40.0)),
        })
    }

    fn term(&self, term: Term) -> Option<Cost> {
        let ns = match term {
            Term::RfoSharer | Term::OverlappedAck => self.term_ns,
            Term::Reader => self.reader_ns,
            _ => None,
        };
        ns.map(|ns| Cost::single(ns, Reading::Simulated))
    }

    fn levels(&self) -> usize {
        if self.ungrouped { 0 } else { self.sizes.len() }
    }

    fn group(&self, level: usize, core: CoreId) -> Option<u16> {
        let known = level < self.levels() && core.0 < *self.sizes.last()?;
        known.then(|| core.0 / self.sizes[level])
    }
}
