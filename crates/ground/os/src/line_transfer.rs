//! One cache line between two cores: what brings it into a state, what fetches it, and what
//! times the fetch.
//!
//! A line that several threads use at once is a [`SharedLine`]: atomic words, aligned, so that
//! every function here is safe to call from any thread on any line. The protocols (who does what
//! in which order) are not here but with the experiment. Nothing here allocates, blocks in the
//! kernel or spins without a bound.

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use isochrone_units::LINE_BYTES;

use crate::arch;
use crate::cache::Features;
use crate::mapping::Mapping;
use crate::pause::pause;

/// Words in one line.
pub const WORDS: usize = LINE_BYTES / size_of::<u64>();

/// Turns of a waiting loop between two looks at the clock: a read of the time-stamp counter costs
/// some 10 ns, and a deadline only has to be noticed in milliseconds.
const TURNS_PER_LOOK: u32 = 256;
/// Looks at the clock between two pauses of a loop that is timed itself. Who waits for some microseconds waits for
/// a core that does not run: an emulator or a host may let it run while this one pauses.
const LOOKS_PER_PAUSE_SWAP: u32 = 4;
/// The same of a loop that only loads, whose turns are shorter.
const LOOKS_PER_PAUSE_POLL: u32 = 64;

/// A cache line that threads share. All bit patterns are valid, so any memory can be seen as one.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct SharedLine {
    words: [AtomicU64; WORDS],
}

const _: () = assert!(size_of::<SharedLine>() == LINE_BYTES);
const _: () = assert!(align_of::<SharedLine>() == LINE_BYTES);

/// A wait that reached its deadline, or that was given up: the core that should have answered does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stalled {
    /// Cycles that were waited.
    pub cycles: u64,
}

impl fmt::Display for Stalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the other core did not answer for {} cycles; stop what else runs on the measured \
             cores, or measure fewer of them",
            self.cycles
        )
    }
}

impl core::error::Error for Stalled {}

/// The bound on a wait: a time-stamp that is never waited past, and whether somebody has given it up.
#[derive(Clone, Copy, Debug)]
pub struct Deadline<'a> {
    start: u64,
    cycles: u64,
    given_up: Option<&'a AtomicBool>,
}

impl<'a> Deadline<'a> {
    /// A deadline that many cycles from now.
    #[must_use]
    pub fn after(cycles: u64) -> Self {
        Self { start: time_stamp(), cycles, given_up: None }
    }

    /// The same, over as soon as this is set. Loops that wait look at it as often as at the clock.
    #[must_use]
    pub const fn or_once(self, given_up: &'a AtomicBool) -> Self {
        Self { given_up: Some(given_up), ..self }
    }

    /// An error once the deadline is over.
    ///
    /// # Errors
    /// [`Stalled`] when more cycles have gone by than the deadline allows, or the wait was given up.
    pub fn check(&self) -> Result<(), Stalled> {
        let waited = time_stamp().wrapping_sub(self.start);
        // A counter that reads a little less on another core wraps to a huge wait: not a stall.
        let is_over = waited > self.cycles && waited < u64::MAX / 2;
        // Relaxed: nothing is read that was written before it.
        if is_over || self.given_up.is_some_and(|given_up| given_up.load(Ordering::Relaxed)) {
            return Err(Stalled { cycles: waited });
        }
        Ok(())
    }
}

// What timed regions consist of is inlined in every build, also in those that do not optimise across units of
// code: a call for each word cost a copied line 7 ns of 31.
impl SharedLine {
    /// A line of zeros.
    #[must_use]
    pub const fn new() -> Self {
        Self { words: [const { AtomicU64::new(0) }; WORDS] }
    }

    /// Memory as lines.
    ///
    /// # Safety
    /// `start` must be aligned to 64 bytes and point to `count * 64` bytes that stay mapped,
    /// readable and writable for all of `'a`, and that nobody accesses but through these lines
    /// (or atomically) meanwhile.
    #[must_use]
    pub const unsafe fn slice<'a>(start: *const u8, count: usize) -> &'a [Self] {
        // SAFETY: the caller promises alignment, extent, lifetime and atomic access; atomics
        // have no invalid bit pattern.
        unsafe { core::slice::from_raw_parts(start.cast::<Self>(), count) }
    }

    /// Reads word 0 and nothing else; what it saw is visible after what the writer did before.
    #[must_use]
    #[inline(always)]
    pub fn load(&self) -> u64 {
        // Partner: the Release stores in `store` and the locked operations.
        self.words[0].load(Ordering::Acquire)
    }

    /// Reads word `index % 8`; used for values that ride along with a flag in word 0.
    #[must_use]
    #[inline(always)]
    pub fn load_word(&self, index: usize) -> u64 {
        // Relaxed: the flag in word 0 is read with Acquire before.
        self.words[index % WORDS].load(Ordering::Relaxed)
    }

    /// Writes word `index % 8`, before `store` publishes it.
    #[inline(always)]
    pub fn store_word(&self, index: usize, value: u64) {
        // Relaxed: published by the Release store of word 0.
        self.words[index % WORDS].store(value, Ordering::Relaxed);
    }

    /// Writes word 0, after everything this core wrote before.
    #[inline(always)]
    pub fn store(&self, value: u64) {
        // Partner: the Acquire load in `load`.
        self.words[0].store(value, Ordering::Release);
    }

    /// Puts the line out of every cache, written back if it was dirty. Complete after [`settle`].
    /// Does nothing where [`can_flush`] is false.
    pub fn flush(&self) {
        if can_flush() {
            // SAFETY: the line is mapped as long as it is borrowed, and the CPU has clflush.
            unsafe { arch::flush_line(self.words.as_ptr().cast()) };
        }
    }

    /// Waits until word 0 is `value`, politely (with `pause`), for a handshake off the clock.
    ///
    /// # Errors
    /// [`Stalled`] when the deadline passes first.
    pub fn wait_for(&self, value: u64, deadline: Deadline<'_>) -> Result<(), Stalled> {
        loop {
            for _ in 0..TURNS_PER_LOOK {
                if self.load() == value {
                    return Ok(());
                }
                pause();
            }
            deadline.check()?;
        }
    }

    /// Polls word 0 as fast as it goes until it is `value`: the poller of a flag, which is itself
    /// part of what is measured (it steals the line from its writers).
    ///
    /// # Errors
    /// [`Stalled`] when the deadline passes first.
    pub fn poll_for(&self, value: u64, deadline: Deadline<'_>) -> Result<(), Stalled> {
        loop {
            for _ in 0..LOOKS_PER_PAUSE_POLL {
                for _ in 0..TURNS_PER_LOOK {
                    if self.load() == value {
                        return Ok(());
                    }
                }
                deadline.check()?;
            }
            pause();
        }
    }
}

/// Whether [`SharedLine::flush`] works on this CPU.
#[must_use]
pub fn can_flush() -> bool {
    Features::tried().clflush
}

impl Mapping {
    /// The memory as lines that threads share.
    #[must_use]
    pub fn shared_lines(&self) -> &[SharedLine] {
        let count = self.len() / LINE_BYTES;
        // SAFETY: the mapping starts at a page boundary, is readable and writable in all its
        // length, lives as long as the borrow, and is accessed by atomics only (see `Mapping`).
        unsafe { SharedLine::slice(self.as_ptr(), count) }
    }
}

/// Waits until every earlier load, store and flush of this core is done.
pub fn settle() {
    arch::fence();
}

/// The counter that samples are read from, not ordered with the instructions around it.
#[must_use]
pub fn time_stamp() -> u64 {
    arch::counter()
}

/// Raw cycles of a timed region with nothing in it: what the timed operations read too much.
#[must_use]
pub fn time_nothing() -> u32 {
    arch::fence();
    arch::timed_nothing()
}

/// Raw cycles of one load of the line.
#[must_use]
pub fn time_load(line: &SharedLine) -> u32 {
    arch::fence();
    if arch::TIMED_LOADS {
        // SAFETY: the line is live and aligned, and an aligned load of 8 bytes is atomic on the CPUs that time loads
        // (Intel SDM volume 3, 9.1.1; Arm ARM, B2.2.1), so a writer elsewhere is no race.
        return unsafe { arch::timed_load(line.words.as_ptr().cast()) };
    }
    let start = arch::start();
    let _ = line.load();
    elapsed(start, arch::stop())
}

/// Raw cycles to load all the lines, one after another, where no load waits for the one before it: what
/// somebody pays who looks at flags on lines of their own.
#[must_use]
pub fn time_loads(lines: &[&SharedLine]) -> u32 {
    arch::fence();
    let start = arch::start();
    let seen = lines.iter().fold(0, |seen, line| seen | line.load());
    let stop = arch::stop();
    core::hint::black_box(seen);
    elapsed(start, stop)
}

/// Raw cycles of one read for ownership: a locked addition of 1 to word 0. It is done only when
/// this core owns the line and every other copy is invalid, which a plain store would hide in the
/// store buffer. The locked instruction itself (some 20 cycles on an owned line) is included.
/// On AArch64 an interconnect may do it in the core's place ("far atomics"): then the line never comes.
#[must_use]
pub fn time_rfo(line: &SharedLine) -> u32 {
    arch::fence();
    let start = arch::start();
    line.words[0].fetch_add(1, Ordering::SeqCst);
    elapsed(start, arch::stop())
}

/// Raw cycles to copy all of `from` to the front of `to`, line by line in order, as `cl_copy` of
/// the CLA paper (section 3) does; ends when the last line has arrived. Copies as many lines as
/// both have.
#[must_use]
pub fn time_copy(from: &[SharedLine], to: &[SharedLine]) -> u32 {
    // Made before the clock is read: in a build that optimises each unit of code alone it is a call.
    let pairs = from.iter().zip(to);
    arch::fence();
    let start = arch::start();
    for (source, target) in pairs {
        for word in 0..WORDS {
            target.store_word(word, source.load_word(word));
        }
    }
    elapsed(start, arch::stop())
}

/// The asking half of a compare-and-swap ping-pong on word 0, which must be 0: raw cycles of
/// `trips` round trips.
///
/// # Errors
/// [`Stalled`] when the deadline passes first.
pub fn time_ping(line: &SharedLine, trips: u32, deadline: Deadline<'_>) -> Result<u32, Stalled> {
    arch::fence();
    let start = arch::start();
    for _ in 0..trips {
        swap(line, 0, 1, deadline)?;
    }
    Ok(elapsed(start, arch::stop()))
}

/// The answering half of [`time_ping`].
///
/// # Errors
/// [`Stalled`] when the deadline passes first.
pub fn pong(line: &SharedLine, trips: u32, deadline: Deadline<'_>) -> Result<(), Stalled> {
    for _ in 0..trips {
        swap(line, 1, 0, deadline)?;
    }
    Ok(())
}

/// Tries until word 0 goes from `from` to `to`.
#[inline(always)]
fn swap(line: &SharedLine, from: u64, to: u64, deadline: Deadline<'_>) -> Result<(), Stalled> {
    loop {
        for _ in 0..LOOKS_PER_PAUSE_SWAP {
            for _ in 0..TURNS_PER_LOOK {
                // Relaxed: the word carries no other data. On x86 it is a full fence in any case; on Arm one word is
                // coherent, and `arch::stop` waits for the load of the swap that succeeded. The peer tool
                // core-to-core-latency does the same (bench/cas.rs).
                let swapped =
                    line.words[0].compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
                if swapped.is_ok() {
                    return Ok(());
                }
            }
            deadline.check()?;
        }
        pause();
    }
}

/// Cycles between two time-stamps, at most `u32::MAX`.
#[inline(always)]
fn elapsed(start: u64, end: u64) -> u32 {
    u32::try_from(end.wrapping_sub(start)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_for_a_core_that_never_answers_ends_with_an_error() {
        let line = SharedLine::new();
        let stalled = line.wait_for(1, Deadline::after(10_000)).unwrap_err();
        assert!(stalled.cycles > 10_000);
        assert!(line.poll_for(1, Deadline::after(10_000)).is_err());
        assert!(pong(&line, 1, Deadline::after(10_000)).is_err());
    }

    #[test]
    fn a_wait_that_is_given_up_ends_long_before_its_deadline() {
        let (line, given_up) = (SharedLine::new(), AtomicBool::new(true));
        let hour = Deadline::after(1 << 50).or_once(&given_up);
        assert!(line.wait_for(1, hour).is_err() && line.poll_for(1, hour).is_err());
        assert!(pong(&line, 1, hour).is_err());
        given_up.store(false, Ordering::Relaxed);
        assert_eq!(hour.check(), Ok(()));
        assert_eq!(line.wait_for(0, hour), Ok(()));
    }

    #[test]
    fn a_read_for_ownership_adds_one_and_a_load_changes_nothing() {
        let line = SharedLine::new();
        let _ = (time_rfo(&line), time_rfo(&line), time_load(&line));
        assert_eq!(line.load(), 2);
    }

    #[test]
    fn a_copy_moves_every_word_of_as_many_lines_as_both_have() {
        let from = [const { SharedLine::new() }; 3];
        let to = [const { SharedLine::new() }; 2];
        for (line, base) in from.iter().zip(0_u64..) {
            for (word, value) in (0..WORDS).zip(base * 100..) {
                line.store_word(word, value);
            }
        }
        let _ = time_copy(&from, &to);
        for (source, target) in from.iter().zip(&to) {
            for word in 0..WORDS {
                assert_eq!(source.load_word(word), target.load_word(word));
            }
        }
    }

    #[test]
    fn a_flushed_line_keeps_its_value() {
        let line = SharedLine::new();
        line.store(7);
        line.flush();
        settle();
        assert_eq!(line.load(), 7);
    }

    #[test]
    fn ping_and_pong_leave_the_word_where_they_found_it() {
        extern crate std;
        static LINE: SharedLine = SharedLine::new();
        let answer = std::thread::spawn(|| pong(&LINE, 100, Deadline::after(20_000_000_000)));
        assert!(time_ping(&LINE, 100, Deadline::after(20_000_000_000)).is_ok());
        assert!(answer.join().is_ok_and(|done| done.is_ok()));
        assert_eq!(LINE.load(), 0);
    }
}
