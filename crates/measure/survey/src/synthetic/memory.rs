//! Lines of a synthetic memory as block latency times them, in the virtual time of a run.

use isochrone_probe::synthetic::SyntheticTarget;
use isochrone_probe::target::{Over, Target, TargetError};
use isochrone_sim::synthetic::SyntheticMemory;
use isochrone_units::{CoreId, Cycles, Level, LineAddr};

use super::clock::VirtualClock;
use super::costs::MOVE_S;

/// A synthetic target whose time is the run's. It is one thread, which goes to the core that asks.
#[derive(Debug)]
pub(super) struct VirtualTarget {
    inner: SyntheticTarget,
    clock: VirtualClock,
    begin_s: f64,
    here: Option<CoreId>,
}

impl VirtualTarget {
    pub(super) fn new(memory: SyntheticMemory, clock: VirtualClock) -> Self {
        let begin_s = clock.seconds();
        Self { inner: SyntheticTarget::new(memory), clock, begin_s, here: None }
    }

    pub(super) fn memory(&self) -> &SyntheticMemory {
        self.inner.memory()
    }
}

impl Over for VirtualTarget {
    fn under(&self) -> &dyn Target {
        &self.inner
    }

    fn under_mut(&mut self) -> &mut dyn Target {
        &mut self.inner
    }

    fn timed(
        &mut self,
        core: CoreId,
        level: Level,
        lines: &[LineAddr],
        out: &mut [Cycles],
    ) -> Result<(), TargetError> {
        if self.here.replace(core) != Some(core) {
            self.clock.pass(MOVE_S);
        }
        let begun_s = self.inner.seconds();
        let inner = &mut self.inner;
        let sampled = self.clock.modelled(|| inner.sample(core, level, lines, out));
        self.clock.pass(self.inner.seconds() - begun_s);
        sampled
    }

    fn elapsed_s(&mut self) -> f64 {
        self.clock.seconds() - self.begin_s
    }
}
