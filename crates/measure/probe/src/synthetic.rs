//! A modelled machine as a target: the runners cannot tell it from the live one.
//!
//! Only an adapter. What the machine does is in `isochrone_sim::synthetic`, where its truth can
//! be asked; nothing here looks at the truth.

use isochrone_sim::synthetic::{SampleError, SyntheticMemory};
use isochrone_units::{CoreId, Cycles, Level, LineAddr, PageAddr};

use crate::target::{Target, TargetClock, TargetError};

/// Synthetic memory behind the trait that experiments measure through.
#[derive(Clone, Debug)]
pub struct SyntheticTarget {
    memory: SyntheticMemory,
    cores: Vec<CoreId>,
    forks: bool,
}

impl SyntheticTarget {
    /// Makes a target of a memory, with all its cores.
    #[must_use]
    pub fn new(memory: SyntheticMemory) -> Self {
        // A validated spec has fewer logical cores than there are numbers for them.
        let cores = (0..=u16::MAX).take(memory.cores()).map(CoreId).collect();
        Self { memory, cores, forks: false }
    }

    /// Lets several threads sample: each a copy of the memory as it is then, with a clock of its own. What
    /// happens in a copy does not happen here, so the machine should be one on which nothing happens.
    #[must_use]
    pub fn with_forks(self) -> Self {
        Self { forks: true, ..self }
    }

    /// The memory, to ask for its truth.
    #[must_use]
    pub fn memory(&self) -> &SyntheticMemory {
        &self.memory
    }

    /// The memory, to let time pass or to make something happen.
    pub fn memory_mut(&mut self) -> &mut SyntheticMemory {
        &mut self.memory
    }
}

impl Target for SyntheticTarget {
    fn cores(&self) -> &[CoreId] {
        &self.cores
    }

    fn pages(&self) -> u64 {
        self.memory.pages()
    }

    fn clock(&self) -> TargetClock {
        let timer = self.memory.timer();
        TargetClock { hz: timer.hz, tick: timer.tick_cycles, overhead: timer.overhead_cycles }
    }

    fn sample(
        &mut self,
        core: CoreId,
        level: Level,
        lines: &[LineAddr],
        out: &mut [Cycles],
    ) -> Result<(), TargetError> {
        self.memory.sample(core, level, lines, out).map_err(target_error)
    }

    fn frame(&mut self, page: PageAddr) -> Option<u64> {
        self.memory.frame(page)
    }

    fn seconds(&mut self) -> f64 {
        self.memory.seconds()
    }

    fn fork(&self) -> Option<Box<dyn Target + Send + '_>> {
        self.forks.then(|| Box::new(self.clone()) as _)
    }
}

fn target_error(error: SampleError) -> TargetError {
    match error {
        SampleError::Moved { asked, found } => {
            TargetError::Moved { asked: asked.0, found: found.0 }
        }
        SampleError::NoLlc => TargetError::Unsupported(error.to_string()),
        _ => TargetError::System {
            what: "sampling synthetic memory".to_owned(),
            why: error.to_string(),
            advice: "plan with the target's own cores and pages".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use isochrone_sim::synthetic::{Event, SyntheticSpec};

    use super::*;

    fn target(spec: SyntheticSpec) -> SyntheticTarget {
        SyntheticTarget::new(SyntheticMemory::new(spec.with_pages(16)).expect("a sound spec"))
    }

    #[test]
    fn samples_are_those_of_the_memory() {
        let mut target = target(SyntheticSpec::genoa_like(1));
        let mut memory = target.memory().clone();
        let lines: Vec<LineAddr> = (0..64).map(LineAddr).collect();
        let (mut ours, mut theirs) = ([Cycles(0); 64], [Cycles(0); 64]);
        target.sample(CoreId(1), Level::Dram, &lines, &mut ours).unwrap();
        memory.sample(CoreId(1), Level::Dram, &lines, &mut theirs).unwrap();
        assert_eq!(ours, theirs);
        assert_eq!(target.seconds().to_bits(), memory.seconds().to_bits());
        assert_eq!(target.frame(PageAddr(3)), memory.frame(PageAddr(3)));
        assert_eq!(target.cores(), [CoreId(0), CoreId(1)]);
        assert_eq!((target.pages(), target.clock().tick), (16, 26));
    }

    #[test]
    fn refusals_keep_their_kind() {
        let mut target = target(SyntheticSpec::ring_knc(1));
        let mut out = [Cycles(0)];
        let mut ask = |target: &mut SyntheticTarget, level, line| {
            target.sample(CoreId(0), level, &[LineAddr(line)], &mut out)
        };
        let no_llc = ask(&mut target, Level::Llc, 0);
        assert!(matches!(no_llc, Err(TargetError::Unsupported(_))), "{no_llc:?}");
        let outside = ask(&mut target, Level::Dram, 1024);
        assert!(matches!(outside, Err(TargetError::System { .. })), "{outside:?}");
        target.memory_mut().inject(Event::ThreadMoves { found: CoreId(7) }).unwrap();
        let moved = ask(&mut target, Level::Dram, 0);
        assert_eq!(moved, Err(TargetError::Moved { asked: 0, found: 7 }));
        assert_eq!(ask(&mut target, Level::Dram, 0), Ok(()));
    }
}
