//! Tasks that do nothing: what is left is what a task costs.

use isochrone_tasks::{Data, Failure, Footprint, Kernel, Mem};

/// Addresses that tasks with ranges choose from.
const ADDRESSES: u8 = 16;
/// Elements between two of them: a line.
const APART: u8 = 8;

/// A task without ranges.
#[derive(Clone, Copy, Debug)]
pub struct Empty;

impl Kernel for Empty {
    const NAME: &'static str = "empty";

    fn declare(&self, _: &mut Footprint) {}

    fn run(&self, _: &Mem<'_>) -> Result<(), Failure> {
        Ok(())
    }
}

/// A task that registers two of its kind and waits for both, until there are so many in all: nothing but recursion.
#[derive(Clone, Copy, Debug)]
pub struct Nested(pub u64);

impl Kernel for Nested {
    const NAME: &'static str = "nested";

    fn declare(&self, _: &mut Footprint) {}

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        let below = self.0.saturating_sub(1);
        for tasks in [below / 2, below - below / 2].into_iter().filter(|tasks| *tasks > 0) {
            mem.spawn(Self(tasks))?;
        }
        Ok(mem.wait()?)
    }
}

/// A task that reads two of sixteen lines and changes a third (which may be one of them).
#[derive(Clone, Copy, Debug)]
pub struct ThreeRanges {
    /// The lines.
    pub lines: Data<u64>,
    /// Which of the lines: two that are read, one that is changed.
    pub chosen: [u8; 3],
}

impl ThreeRanges {
    /// Elements that the lines have together.
    pub const ELEMENTS: usize = ADDRESSES as usize * APART as usize;
}

/// The lines of task `number`, the same in every system.
#[must_use]
pub const fn addresses(number: u64) -> [u8; 3] {
    let mixed = super::mix(0, number).to_le_bytes();
    let mask = ADDRESSES - 1;
    [mixed[0] & mask, mixed[1] & mask, mixed[2] & mask]
}

/// As [`ThreeRanges`], with ranges that begin at a line or in the middle of one, by its number: they overlap in
/// part.
#[derive(Clone, Copy, Debug)]
pub struct Overlapping(pub ThreeRanges);

impl Overlapping {
    /// Elements that the lines have together.
    pub const ELEMENTS: usize = ThreeRanges::ELEMENTS + APART as usize;
}

impl Kernel for Overlapping {
    const NAME: &'static str = "three overlapping ranges";

    fn declare(&self, footprint: &mut Footprint) {
        let Self(ThreeRanges { lines, chosen }) = *self;
        let part = |i: usize| {
            let middle = usize::from(chosen[(i + 1) % 3] & 1) * usize::from(APART) / 2;
            lines.part(usize::from(chosen[i]) * usize::from(APART) + middle, usize::from(APART))
        };
        footprint.input(part(0)).input(part(1)).inout(part(2));
    }

    fn run(&self, _: &Mem<'_>) -> Result<(), Failure> {
        Ok(())
    }
}

impl Kernel for ThreeRanges {
    const NAME: &'static str = "three ranges";

    fn declare(&self, footprint: &mut Footprint) {
        let [a, b, c] = self.chosen.map(|line| {
            self.lines.part(usize::from(line) * usize::from(APART), usize::from(APART))
        });
        footprint.input(a).input(b).inout(c);
    }

    fn run(&self, _: &Mem<'_>) -> Result<(), Failure> {
        Ok(())
    }
}
