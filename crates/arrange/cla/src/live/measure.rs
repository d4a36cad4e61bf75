//! What the lines of a channel cost between two ranks: the very lines that its calls use.
//!
//! Lines have different homes, so one costs a third less than another, and a host may move the cores in
//! between. So who predicts a call asks for its lines, and asks again afterwards. Nothing is changed: the owner
//! adds 0 to the word of a line, which leaves it modified in the owner's cache, and the asker times one load.
//!
//! Several lines at once are timed as collectives move them: written with their flag and handed over by the owner,
//! copied out by the asker after it has seen the flag. Flags are set back afterwards, which is right only before
//! the first call.

use super::error::TeamError;
use super::kind::Kind;
use super::layout::AloneWord;
use super::lines::{Buffers, Heard, Hears, Live};
use super::said::Tag;
use super::team::Team;
use super::waits::Waits;
use super::word::Word;
use crate::program::{Buffer, Compare, Gone, Line, Lines as _, Rank, Span};
use isochrone_os::clock;
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
    /// The step of the time-stamp counter, cycles.
    pub tick: u32,
}

/// Which lines of a message are timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All of them.
    All,
    /// Those that do not come with the flag.
    AfterTheFirst,
}

impl Team {
    /// Times loads of every line that such calls use, one line after another. Returns at the asker the
    /// mean of each line, interrupted loads left out, in cycles without what timing takes, by the numbers of the
    /// plan; at the others nothing. The collective's calls go on afterwards as if nothing had been.
    ///
    /// # Errors
    /// [`TeamError`] for ranks that the team does not have, and when a rank has ended.
    pub fn load_cycles(&mut self, loads: Loads) -> Result<Vec<f64>, TeamError> {
        self.two_ranks(loads.owner, loads.asker)?;
        let me = self.rank();
        let steps = self.steps;
        let (area, waits, channel) = self.channel_of(loads.kind, loads.root, loads.bytes)?;
        let lines = channel.lines();
        let turns = &area.header().turns;
        let taken = lines.len() as u64 * u64::from(loads.repeats);
        let mut cycles = Vec::new();
        if me == loads.owner {
            own(turns, waits, lines, steps, loads.repeats)?;
        } else if me == loads.asker {
            cycles = ask(turns, waits, lines, steps, loads.repeats, f64::from(loads.tick))?;
        }
        self.steps = steps + taken;
        Ok(cycles)
    }

    /// Times copies of messages of several lines out of every slot that such calls use: all their lines, or those
    /// after the first, which has come with its flag before. Returns at the asker the times of each slot, the
    /// shortest first, in cycles without what timing takes; nothing at the others, and for messages of one line.
    /// It may be done again, until the first such call.
    ///
    /// # Errors
    /// [`TeamError`] for ranks that the team does not have, after a first call, and when a rank has ended.
    pub fn copy_cycles(&mut self, loads: Loads, which: Which) -> Result<Vec<Vec<f64>>, TeamError> {
        self.two_ranks(loads.owner, loads.asker)?;
        let me = self.rank();
        let plan = self.plan(loads.kind, loads.root, loads.bytes)?;
        let bytes = u32::try_from(loads.bytes).unwrap_or(0).min(plan.options().chunk_bytes());
        let slots: Vec<Line> = plan.runs().into_iter().map(|(first, _)| Line(first)).collect();
        if bytes <= Line::PAYLOAD_BYTES || slots.is_empty() {
            return Ok(Vec::new());
        }
        let mut message = vec![0; bytes as usize];
        let steps = self.steps;
        let (area, waits, channel) = self.channel_of(loads.kind, loads.root, loads.bytes)?;
        if channel.has_called() {
            return Err(TeamError::Begun);
        }
        let all =
            Buffers { send: message.as_ptr(), receive: message.as_mut_ptr(), bytes: message.len() };
        let live = Live::new(channel.lines(), waits, all, Heard::new(Tag::WRONG, Hears::Tells));
        let turns = &area.header().turns;
        let messages = Messages { slots: &slots, bytes, repeats: loads.repeats, which };
        let mut cycles = Vec::new();
        if me == loads.owner {
            messages.give(live, turns, steps)?;
        } else if me == loads.asker {
            cycles = messages.take(live, turns, steps)?;
        }
        self.steps = steps + slots.len() as u64 * u64::from(loads.repeats) + 1;
        Ok(cycles)
    }

    /// Whether these are two ranks of this team.
    pub(super) fn two_ranks(&self, one: Rank, other: Rank) -> Result<(), TeamError> {
        let ranks = self.ranks();
        for rank in [one, other] {
            if rank.0 >= ranks || one == other {
                return Err(TeamError::Rank { rank, ranks });
            }
        }
        Ok(())
    }
}

/// Messages that are timed in turns.
struct Messages<'a> {
    /// The first line of each slot.
    slots: &'a [Line],
    bytes: u32,
    repeats: u32,
    which: Which,
}

impl Messages<'_> {
    /// Lines of a message, the one with its flag among them.
    const fn lines(&self) -> u32 {
        (self.bytes + Line::WORD_BYTES).div_ceil(Line::BYTES)
    }

    /// Writes every slot as a collective does, in turns with the asker.
    fn give(
        &self,
        mut live: Live<'_>,
        [mine, asker]: &[AloneWord; 2],
        mut step: u64,
    ) -> Result<(), Gone> {
        for _ in 0..self.repeats {
            for &slot in self.slots {
                live.claim(slot, self.lines());
                live.copy(Span::of(Buffer::Send, 0, self.bytes), slot.payload(self.bytes));
                live.write(slot, step + 1);
                live.hand_over(slot, self.lines());
                step += 1;
                live.waits.publish(&mine.0, |word| word.store(step));
                live.waits.wait(&asker.0, Compare::AtLeast, step)?;
            }
        }
        self.slots.iter().for_each(|&slot| live.write(slot, 0));
        live.waits.publish(&mine.0, |word| word.store(step + 1));
        Ok(())
    }

    /// Times a copy out of every slot after its flag was seen.
    fn take(
        &self,
        mut live: Live<'_>,
        [owner, mine]: &[AloneWord; 2],
        mut step: u64,
    ) -> Result<Vec<Vec<f64>>, Gone> {
        let mut copies = vec![Vec::new(); self.slots.len()];
        let mut nothing = Vec::new();
        for _ in 0..self.repeats {
            for (&slot, times) in self.slots.iter().zip(&mut copies) {
                step += 1;
                live.waits.wait(&owner.0, Compare::AtLeast, step)?;
                if self.which == Which::AfterTheFirst {
                    live.wait(slot, Compare::AtLeast, step)?;
                }
                let begin = clock::start();
                live.copy(slot.payload(self.bytes), Span::of(Buffer::Receive, 0, self.bytes));
                times.push(cycles_since(begin));
                nothing.push(cycles_since(clock::start()));
                live.waits.publish(&mine.0, |word| word.store(step));
            }
        }
        live.waits.wait(&owner.0, Compare::AtLeast, step + 1)?;
        let nothing = isochrone_stats::median(&nothing).unwrap_or(0.0);
        for times in &mut copies {
            times.sort_by(f64::total_cmp);
            times.iter_mut().for_each(|cycles| *cycles -= nothing);
        }
        Ok(copies)
    }
}

#[allow(clippy::cast_precision_loss, reason = "a copy takes far less than 2^52 cycles")]
fn cycles_since(begin: u64) -> f64 {
    clock::stop().saturating_sub(begin) as f64
}

/// Makes every line modified, in turns with the asker.
fn own(
    [mine, asker]: &[AloneWord; 2],
    waits: &Waits,
    lines: &[NonNull<u8>],
    mut step: u64,
    repeats: u32,
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
    mut step: u64,
    repeats: u32,
    tick: f64,
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
    // Means: a reading is a multiple of the counter's step, which may be half of a transfer.
    let mean = |times: &[f64]| isochrone_stats::tick_mean(times, tick).map(|found| found.mean);
    let nothing = mean(&nothing).unwrap_or(0.0);
    let one = |times: &Vec<f64>| mean(times).unwrap_or(f64::NAN) - nothing;
    Ok(loads.iter().map(one).collect())
}
