//! A target that repairs what happens to the measuring thread, and names it: a batch during which
//! something moved the thread to another core is dropped, counted and done again on the right one.
//!
//! It never judges latencies: a vCPU that the host moves stays on the core that asked (see
//! `rounds` and `base`). How long a repair took is measured, from the end of the batch that was
//! dropped to the end of the first one that held.

use isochrone_atlas_store::contents::DriftEvent;
use isochrone_units::{CoreId, Cycles, Level, LineAddr};

use crate::target::{Over, Target, TargetError};

/// Times in a row that a batch is done again before its loss is the caller's affair.
const TRIES: usize = 8;

/// The measuring thread was found on another core.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadMove {
    /// When it was noticed, on the target's clock.
    pub at_s: f64,
    /// The core that had asked.
    pub asked: CoreId,
    /// The core on which the thread was found.
    pub found: u16,
    /// Timed loads that were dropped.
    pub dropped: u64,
    /// Seconds from noticing it until a batch was timed on the right core from end to end; `None`
    /// while there has been none.
    pub repaired_s: Option<f64>,
}

impl From<&ThreadMove> for DriftEvent {
    fn from(moved: &ThreadMove) -> Self {
        Self {
            at_s: moved.at_s,
            core: moved.asked.0,
            kind: "thread moved".into(),
            what: format!(
                "the measuring thread was found on core {} and pinned again; the batch was dropped and done again",
                moved.found
            ),
            dropped_samples: moved.dropped,
            repaired_ms: moved.repaired_s.map(|s| 1e3 * s),
        }
    }
}

/// A target whose thread comes back.
pub struct Repaired<'a> {
    target: &'a mut dyn Target,
    moves: Vec<ThreadMove>,
}

impl std::fmt::Debug for Repaired<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Repaired").field("moves", &self.moves).finish_non_exhaustive()
    }
}

impl<'a> Repaired<'a> {
    /// Watches over `target`.
    pub fn new(target: &'a mut dyn Target) -> Self {
        Self { target, moves: Vec::new() }
    }

    /// The moves since this was asked last, in order.
    pub fn take_moves(&mut self) -> Vec<ThreadMove> {
        std::mem::take(&mut self.moves)
    }

    /// A move that is not repaired yet goes on.
    fn noticed(&mut self, asked: CoreId, found: u16, loads: u64) {
        let at_s = self.target.seconds();
        match self.moves.last_mut() {
            Some(last) if last.repaired_s.is_none() => {
                last.found = found;
                last.dropped += loads;
            }
            _ => {
                let dropped = loads;
                self.moves.push(ThreadMove { at_s, asked, found, dropped, repaired_s: None });
            }
        }
    }

    fn held(&mut self) {
        if let Some(last) = self.moves.last_mut().filter(|last| last.repaired_s.is_none()) {
            last.repaired_s = Some(self.target.seconds() - last.at_s);
        }
    }
}

impl Over for Repaired<'_> {
    fn under(&self) -> &dyn Target {
        self.target
    }

    fn under_mut(&mut self) -> &mut dyn Target {
        self.target
    }

    fn timed(
        &mut self,
        core: CoreId,
        level: Level,
        lines: &[LineAddr],
        out: &mut [Cycles],
    ) -> Result<(), TargetError> {
        let mut tries = 0;
        loop {
            let result = self.target.sample(core, level, lines, out);
            match result {
                Ok(()) => self.held(),
                Err(TargetError::Moved { found, .. }) => {
                    self.noticed(core, found, lines.len() as u64);
                    tries += 1;
                    if tries < TRIES {
                        continue;
                    }
                }
                Err(_) => {}
            }
            return result;
        }
    }

    /// Moves of that thread are for its user to name.
    fn forked(&self) -> Option<Box<dyn Target + Send + '_>> {
        self.target.fork()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::TargetClock;
    use isochrone_units::PageAddr;

    /// Each batch takes a millisecond; the thread is found on core 7 in the batches listed.
    struct Shaken {
        batches: usize,
        moved_in: Vec<usize>,
    }

    impl Target for Shaken {
        fn cores(&self) -> &[CoreId] {
            &[CoreId(0)]
        }

        fn pages(&self) -> u64 {
            1
        }

        fn clock(&self) -> TargetClock {
            TargetClock { hz: 1e9, tick: 1, overhead: 0.0 }
        }

        fn sample(
            &mut self,
            core: CoreId,
            _: Level,
            _: &[LineAddr],
            _: &mut [Cycles],
        ) -> Result<(), TargetError> {
            self.batches += 1;
            if self.moved_in.contains(&self.batches) {
                return Err(TargetError::Moved { asked: core.0, found: 7 });
            }
            Ok(())
        }

        fn frame(&mut self, _: PageAddr) -> Option<u64> {
            None
        }

        fn seconds(&mut self) -> f64 {
            self.batches as f64 * 1e-3
        }
    }

    fn ask(target: &mut Repaired<'_>) -> Result<(), TargetError> {
        target.sample(CoreId(0), Level::Llc, &[LineAddr(0); 16], &mut [Cycles(0); 16])
    }

    #[test]
    fn moves_are_repaired_and_how_long_that_took_is_measured() {
        let mut shaken = Shaken { batches: 0, moved_in: vec![2, 4, 5] };
        let mut target = Repaired::new(&mut shaken);
        assert!((0..4).all(|_| ask(&mut target).is_ok()));
        let moves = target.take_moves();
        assert_eq!(moves.iter().map(|m| m.dropped).collect::<Vec<_>>(), [16, 32]);
        let event = DriftEvent::from(&moves[1]);
        assert_eq!((event.kind.as_str(), event.core), ("thread moved", 0));
        assert!((event.at_s - 4e-3).abs() < 1e-9, "{event:?}");
        // Noticed after the fourth batch; the sixth held.
        assert!(event.repaired_ms.is_some_and(|ms| (ms - 2.0).abs() < 1e-9), "{event:?}");
        assert!(target.take_moves().is_empty());
    }

    #[test]
    fn a_thread_that_cannot_be_kept_is_the_callers_affair() {
        let mut shaken = Shaken { batches: 0, moved_in: (1..=TRIES).collect() };
        let mut target = Repaired::new(&mut shaken);
        assert_eq!(ask(&mut target), Err(TargetError::Moved { asked: 0, found: 7 }));
        assert_eq!(ask(&mut target), Ok(()), "and it can be asked again");
        let moves = target.take_moves();
        assert_eq!(moves.len(), 1);
        assert!(moves[0].repaired_s.is_some());
    }
}
