//! Orders in which lines that disturb each other are never timed together.
//!
//! A load can bring its neighbours along: the next line (seen on Zen 4, where timing all lines of
//! a page in one batch made every line but the first of the page a third faster), the other line
//! of a 128-byte pair (Intel's adjacent-line prefetch). So a round over whole pages is cut into
//! batches in which the lines of one page are eight apart, and in every batch consecutive loads go
//! to different pages.

use isochrone_stats::shuffle;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Distance, in lines, of the lines of one page that share a batch.
pub(super) const APART: usize = 8;
const LINES: usize = 64;

/// One round over `pages` whole pages: [`APART`] batches of `(page, line)`, each line once, random.
pub(super) fn batches(pages: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<Vec<(u32, u8)>> {
    let count = u32::try_from(pages).expect("fewer than 2^32 pages in one experiment");
    let mut order: Vec<u32> = (0..count).collect();
    shuffle(&mut order, rng);
    // Where each page's walk begins: random residues, so that every batch holds all of them.
    let begins: Vec<(usize, usize)> = order
        .iter()
        .map(|_| {
            let draw = isochrone_stats::below(rng, LINES as u64).to_le_bytes()[0];
            (usize::from(draw) % APART, usize::from(draw) / APART)
        })
        .collect();
    let mut residues: Vec<usize> = (0..APART).collect();
    shuffle(&mut residues, rng);
    residues
        .iter()
        .map(|residue| {
            (0..LINES / APART)
                .flat_map(|step| {
                    order.iter().zip(&begins).map(move |(page, (residue_0, step_0))| {
                        let line = (residue + residue_0) % APART
                            + APART * ((step + step_0) % (LINES / APART));
                        (*page, line.to_le_bytes()[0])
                    })
                })
                .collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_line_once_and_neighbours_never_together() {
        for pages in [1, 3, 16, 50] {
            let batches = batches(pages, &mut isochrone_stats::rng(9));
            let all: BTreeSet<(u32, u8)> = batches.iter().flatten().copied().collect();
            assert_eq!(all.len(), pages * LINES);
            assert_eq!(batches.iter().map(Vec::len).sum::<usize>(), pages * LINES);
            for batch in &batches {
                let lines = |page| batch.iter().filter(move |b| b.0 == page).map(|b| b.1);
                for (page, line) in batch {
                    assert!(lines(*page).all(|l| l == *line || l.abs_diff(*line) >= 8));
                }
                let together = 16.min(pages);
                for window in batch.windows(together) {
                    let distinct: BTreeSet<u32> = window.iter().map(|w| w.0).collect();
                    assert_eq!(distinct.len(), together);
                }
            }
        }
    }
}
