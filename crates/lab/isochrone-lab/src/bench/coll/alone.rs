//! What the way through the MPI's interface takes beside what ranks tell one another: the same calls on a
//! communicator of this rank alone, which the library is told to do in lines as well.
//!
//! A call then enters, looks up communicator, type and channel, runs the program of one rank, and returns. The
//! median of both ranks is what a call costs in a band. No call that is compared is looked at.

use anyhow::Result;
use isochrone_cla::live::Kind;
use isochrone_mpi::{By, What};
use isochrone_os::clock;
use isochrone_stats::{mean, median};

use super::cells::{Cell, Mode};
use super::rank::{Bench, mpi};

/// Calls before the first that counts.
const WARM: usize = 20;
/// Calls that count.
const CALLS: usize = 41;

impl Bench {
    /// For each cell of isolated calls what a call takes a rank by itself, ns, the mean over ranks; not a number
    /// elsewhere, and at other ranks than 0. All ranks call this.
    pub(super) fn alone(&mut self, cells: &[(Kind, Cell)]) -> Result<Vec<f64>> {
        let mut mine = Vec::with_capacity(cells.len());
        for (kind, cell) in cells {
            let what = What { kind: *kind, bytes: cell.bytes };
            let isolated = cell.mode == Mode::Isolated;
            mine.push(if isolated { self.one_alone(what)? } else { f64::NAN });
        }
        let bits: Vec<u64> = mine.iter().map(|ns| ns.to_bits()).collect();
        let all = self.process.collect(&bits).map_err(mpi)?;
        let of_all = |n: usize| -> Vec<f64> {
            all.chunks(bits.len()).map(|rank| f64::from_bits(rank[n])).collect()
        };
        Ok((0..mine.len()).map(|n| mean(&of_all(n)).unwrap_or(f64::NAN)).collect())
    }

    #[allow(clippy::cast_precision_loss, reason = "a call takes far less than 2^52 cycles")]
    fn one_alone(&mut self, what: What) -> Result<f64> {
        let mut cycles = Vec::with_capacity(CALLS);
        for call in 0..WARM + CALLS {
            let begin = clock::start();
            self.process.call_alone(By::Lines, what, &mut self.buffers).map_err(mpi)?;
            let end = clock::stop();
            if call >= WARM {
                cycles.push(end.saturating_sub(begin) as f64);
            }
        }
        let middle = median(&cycles).unwrap_or(f64::NAN) - self.clock.overhead;
        Ok(self.clock.ns(middle).max(0.0))
    }
}
