//! A machine whose threads get in each other's way, for tests of what several cores do at once: what a fork times is
//! another line, or takes another time.

use isochrone_units::{CoreId, Cycles, Level, LineAddr};

use crate::target::{Over, Target, TargetError};

/// A target that is right alone, and whose forks are not.
pub(super) struct InTheWay<'a> {
    inner: Box<dyn Target + Send + 'a>,
    is_fork: bool,
    line: fn(LineAddr) -> LineAddr,
    cycles: fn(Cycles) -> Cycles,
}

impl<'a> InTheWay<'a> {
    /// Forks read `line` in place of the one that is asked for, and tell `cycles` of what it takes.
    pub(super) fn of(
        inner: Box<dyn Target + Send + 'a>,
        line: fn(LineAddr) -> LineAddr,
        cycles: fn(Cycles) -> Cycles,
    ) -> Self {
        Self { inner, is_fork: false, line, cycles }
    }
}

impl Over for InTheWay<'_> {
    fn under(&self) -> &dyn Target {
        &*self.inner
    }

    fn under_mut(&mut self) -> &mut dyn Target {
        &mut *self.inner
    }

    fn timed(
        &mut self,
        core: CoreId,
        level: Level,
        lines: &[LineAddr],
        out: &mut [Cycles],
    ) -> Result<(), TargetError> {
        if !self.is_fork {
            return self.inner.sample(core, level, lines, out);
        }
        let read: Vec<LineAddr> = lines.iter().copied().map(self.line).collect();
        self.inner.sample(core, level, &read, out)?;
        out.iter_mut().for_each(|cycles| *cycles = (self.cycles)(*cycles));
        Ok(())
    }

    fn forked(&self) -> Option<Box<dyn Target + Send + '_>> {
        let Self { line, cycles, .. } = *self;
        Some(Box::new(InTheWay { inner: self.inner.fork()?, is_fork: true, line, cycles }))
    }
}
