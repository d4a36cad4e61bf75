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

/// A task that reads two of sixteen lines and changes a third (which may be one of them).
#[derive(Clone, Copy, Debug)]
pub struct ThreeRanges {
    /// The lines.
    pub lines: Data<u64>,
    /// Which.
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
