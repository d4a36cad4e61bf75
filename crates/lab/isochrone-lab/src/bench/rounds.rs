//! Cells of a benchmark by turns: a block of each, then another of each. So when the time is over every cell has as
//! many blocks as there was time for, and not the first cell all of them.

use anyhow::Result;

use super::setting::Setting;

/// What is measured block by block, on a ground that all cells share.
pub(crate) trait Cell<G> {
    /// What it is, in a few words.
    fn what(&self) -> String;

    /// The blocks that it has.
    fn blocks(&self) -> usize;

    /// Makes one block more. Where it cannot be ended in time it counts for nothing.
    fn block(&mut self, ground: &mut G, setting: &mut Setting<'_>) -> Result<()>;
}

/// So many blocks of every cell, as far as there is time. A cell that fails is named, and left.
pub(crate) fn rounds<G>(
    cells: &mut [&mut dyn Cell<G>],
    blocks: u32,
    ground: &mut G,
    setting: &mut Setting<'_>,
) {
    let mut failed = vec![false; cells.len()];
    'rounds: for _ in 0..blocks {
        for at in 0..cells.len() {
            if failed[at] {
                continue;
            }
            if !setting.keep_going() {
                break 'rounds;
            }
            let others = failed[at..].iter().filter(|failed| !**failed).count();
            setting.share_with(others);
            let cell = &mut *cells[at];
            match cell.block(ground, setting) {
                Ok(()) => {}
                Err(_) if !setting.keep_going() => {}
                Err(error) => {
                    setting.miss(&format!("{}: {error:#}", cell.what()));
                    failed[at] = true;
                }
            }
        }
    }
    for (cell, _) in cells.iter().zip(failed).filter(|(_, failed)| !failed) {
        setting.made(&cell.what(), cell.blocks(), blocks);
    }
}
