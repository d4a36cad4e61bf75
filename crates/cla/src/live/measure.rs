//! What the lines of a channel cost between two ranks: the very lines that its calls use.
//!
//! Lines have different homes, so one costs a third less than another, and a host may move the cores in
//! between. So who predicts a call asks for its lines, and asks again afterwards. Nothing is changed: the owner
//! adds 0 to the word of a line, which leaves it modified in the owner's cache, and the asker times one load.

use super::area::AloneWord;
use super::kind::Kind;
use super::team::{Team, TeamError};
use super::waits::Waits;
use super::word::Word;
use crate::program::{Compare, Gone, Rank};
use isochrone_os::line_transfer::{SharedLine, time_load, time_nothing};
use std::ptr::NonNull;

/// Which lines are measured between whom. All ranks of a team must be given the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loads {
    /// The collective whose lines they are.
    pub kind: Kind,
    /// Its root.
    pub root: Rank,
    /// Bytes of its calls.
    pub bytes: usize,
    /// Who has just written each line.
    pub owner: Rank,
    /// Who loads it.
    pub asker: Rank,
    /// Loads of each line.
    pub repeats: u32,
}

impl Team {
    /// Times loads of every line that such calls use, one line after another. Returns at the asker the
    /// median of each line, in cycles without what timing takes, by the numbers of the plan; at the others
    /// nothing. The collective's calls go on afterwards as if nothing had been.
    ///
    /// # Errors
    /// [`TeamError`] for ranks that the team does not have, and when a rank has ended.
    pub fn load_cycles(&mut self, loads: Loads) -> Result<Vec<f64>, TeamError> {
        let (me, ranks) = (self.rank(), self.ranks());
        for rank in [loads.owner, loads.asker] {
            if rank.0 >= ranks || loads.owner == loads.asker {
                return Err(TeamError::Rank { rank, ranks });
            }
        }
        let steps = self.steps;
        let (area, waits, lines) = self.lines_of(loads.kind, loads.root, loads.bytes)?;
        let turns = &area.header().turns;
        let taken = lines.len() as u64 * u64::from(loads.repeats);
        let mut cycles = Vec::new();
        if me == loads.owner {
            own(turns, waits, lines, (steps, loads.repeats))?;
        } else if me == loads.asker {
            cycles = ask(turns, waits, lines, (steps, loads.repeats))?;
        }
        self.steps = steps + taken;
        Ok(cycles)
    }
}

/// Makes every line modified, in turns with the asker.
fn own(
    [mine, asker]: &[AloneWord; 2],
    waits: &Waits,
    lines: &[NonNull<u8>],
    (mut step, repeats): (u64, u32),
) -> Result<(), Gone> {
    for _ in 0..repeats {
        for line in lines {
            // SAFETY: a channel's table points to lines of its area, which outlive the borrow; their
            // first eight bytes are accessed as words only.
            let word = unsafe { line.cast::<Word>().as_ref() };
            // A compiler that sees the 0 makes a load of it, which does not take the line.
            word.add(std::hint::black_box(0));
            step += 1;
            waits.publish(&mine.0, |word| word.store(step));
            waits.wait(&asker.0, Compare::AtLeast, step)?;
        }
    }
    Ok(())
}

/// Times a load of every line after the owner had it.
fn ask(
    [owner, mine]: &[AloneWord; 2],
    waits: &Waits,
    lines: &[NonNull<u8>],
    (mut step, repeats): (u64, u32),
) -> Result<Vec<f64>, Gone> {
    let mut loads = vec![Vec::new(); lines.len()];
    let mut nothing = Vec::new();
    for _ in 0..repeats {
        for (line, times) in lines.iter().zip(&mut loads) {
            step += 1;
            waits.wait(&owner.0, Compare::AtLeast, step)?;
            // SAFETY: as above; nobody writes the payload of a line while ranks measure.
            let line = unsafe { SharedLine::slice(line.as_ptr(), 1) };
            times.push(f64::from(time_load(&line[0])));
            nothing.push(f64::from(time_nothing()));
            waits.publish(&mine.0, |word| word.store(step));
        }
    }
    let nothing = isochrone_stats::median(&nothing).unwrap_or(0.0);
    let one = |times: &Vec<f64>| isochrone_stats::median(times).unwrap_or(f64::NAN) - nothing;
    Ok(loads.iter().map(one).collect())
}
