//! Engines that copy pages between the memory of the card and that of the host, each one page after the
//! other, in the order in which they are asked.

use super::spec::Spec;

/// Where pages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the card.
    In,
    /// To the host.
    Out,
}

/// The engines, and when each is free: where each direction has its own, those of the way in first.
#[derive(Clone, Debug)]
pub(super) struct Engines {
    free: Vec<f64>,
    pages: u64,
    busy: f64,
}

impl Engines {
    pub(super) fn new(spec: &Spec) -> Self {
        Self { free: vec![0.0; spec.all_engines() as usize], pages: 0, busy: 0.0 }
    }

    /// Asks the engine of this way that is free first to copy pages; when the last is there.
    pub(super) fn transfer(&mut self, pages: u32, way: Way, now: f64, spec: &Spec) -> f64 {
        let takes = spec.setup + f64::from(pages) * spec.transfer;
        self.pages += u64::from(pages);
        self.busy += takes;
        let (into, out) = self.free.split_at_mut(spec.engines as usize);
        let mine = if spec.each_way && way == Way::Out { out } else { into };
        let first = mine.iter_mut().min_by(|a, b| a.total_cmp(b));
        let Some(free) = first else { return now + takes + spec.latency };
        *free = free.max(now) + takes;
        *free + spec.latency
    }

    /// Pages copied, and cycles that engines were busy in all.
    pub(super) const fn used(&self) -> (u64, f64) {
        (self.pages, self.busy)
    }
}
