//! The primitives on real lines.
//!
//! Every implementation is monomorphised into the program, so that a one-line broadcast is a copy of
//! some bytes, a store and a hint for its root.

use super::differing::Differing;
use super::said::{Tag, Told};
use super::waits::Waits;
use super::word::Word;
use crate::program::{Buffer, Combine, Compare, Gone, Line, Lines, Place, Span};
use isochrone_os::cache::{Features, claim_line, demote_line, fetch_line};
use std::ptr::NonNull;

/// What the caller gives and gets in one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffers {
    /// What this rank gives.
    pub(super) send: *const u8,
    /// What this rank gets.
    pub(super) receive: *mut u8,
    /// Bytes of either at most.
    pub(super) bytes: usize,
}

/// The lines of one channel and the caller's buffers, for one call.
#[derive(Debug)]
pub(super) struct Live<'a> {
    /// Where each line of the program lies.
    pub(super) table: &'a [NonNull<u8>],
    pub(super) waits: &'a Waits,
    pub(super) buffers: Buffers,
    /// Whether flags are written by a locked instruction, as the paper does.
    pub(super) locked: bool,
    /// Whether the last wait found at once what it waited for.
    pub(super) at_once: bool,
    /// What ranks tell one another of their bytes.
    pub(super) heard: Heard,
}

/// Messages of so many lines are moved towards others when they are written (`cldemote`). Measured between
/// two cores with a line's hand-over at 150 ns: with it 256 bytes took 197 ns instead of 272 and 1 KiB 330
/// instead of 401; one line gains nothing, and a stream of 4 KiB took twice the time.
const HANDED_OVER: std::ops::RangeInclusive<u32> = 2..=17;

/// Lines of a message at most that a waiting rank asks for with each look at the flag. A writer of more is at work for
/// longer than a line takes to cross, and would lose lines that it has just fetched.
const FETCHED_MOST: u32 = 8;

/// What a rank does with messages of other bytes than its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hears {
    /// Takes those that go by its lines, and says at the end that they were others.
    Tells,
    /// Leaves the call before it has done anything, to make it anew by their bytes.
    Follows,
    /// Takes all: it has asked who gives what.
    Any,
}

/// What ranks tell one another of a call, beside the flags of its messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    /// What this rank tells.
    tells: Tag,
    hears: Hears,
    /// What another rank said that is not the same, and with which this one could go on.
    pub(super) unlike: Option<Told>,
    /// Whether a message was not one that this rank can go on with.
    pub(super) astray: bool,
}

impl Heard {
    pub(super) const fn new(tells: Tag, hears: Hears) -> Self {
        Self { tells, hears, unlike: None, astray: false }
    }

    /// The word of a flag: chunks are counted in what the tag leaves.
    #[inline]
    pub(super) const fn flag(&self, value: u64) -> u64 {
        value << Tag::BITS | self.tells.word()
    }

    /// The least word that says as much as `value`.
    #[inline]
    pub(super) const fn least(value: u64) -> u64 {
        value << Tag::BITS
    }
}

impl<'a> Live<'a> {
    /// Over these lines and buffers, with flags by ordinary stores.
    #[inline]
    pub(super) const fn new(
        table: &'a [NonNull<u8>],
        waits: &'a Waits,
        buffers: Buffers,
        heard: Heard,
    ) -> Self {
        Self { table, waits, buffers, locked: false, at_once: false, heard }
    }

    #[inline]
    fn word(&self, line: Line) -> &Word {
        let first = self.table[line.0 as usize].cast::<Word>();
        // SAFETY: a channel's table points to lines of its area, aligned to 64 bytes, which outlive
        // the channel and with it this borrow; their first eight bytes are accessed as words only.
        unsafe { first.as_ref() }
    }

    /// A message has another tag. Goes on where its writer's lines and chunks are the same all the same, and tells the
    /// next ones that the message is wrong.
    #[cold]
    fn unlike(&mut self, theirs: Tag) -> Result<(), Gone> {
        if self.heard.hears == Hears::Any {
            return Ok(());
        }
        let said = self.waits.others_differ();
        let goes_on = match said {
            Differing::Nobody => theirs == Tag::WRONG,
            Differing::Goes(_) => self.heard.hears == Hears::Tells,
            Differing::Astray(_) => false,
        };
        if !goes_on {
            self.heard.astray = true;
            return Err(Gone::Stopped);
        }
        let told = if let Differing::Goes(told) = said { told } else { Told::NONE };
        self.heard.unlike = Some(self.heard.unlike.unwrap_or(told));
        self.heard.tells = Tag::WRONG;
        Ok(())
    }

    /// Where a span begins.
    #[inline]
    fn at(&self, span: Span) -> *mut u8 {
        let offset = span.offset as usize;
        match span.place {
            Place::Shared(line) => self.table[line.0 as usize].as_ptr().wrapping_add(offset),
            Place::Private(buffer) => {
                let (bytes, end) = (self.buffers.bytes, offset + span.bytes as usize);
                assert!(end <= bytes, "{span:?} of a buffer of {bytes} bytes");
                let first = match buffer {
                    Buffer::Send => self.buffers.send.cast_mut(),
                    Buffer::Receive => self.buffers.receive,
                };
                first.wrapping_add(offset)
            }
        }
    }
}

impl Lines for Live<'_> {
    #[inline]
    fn copy(&mut self, src: Span, dst: Span) {
        let (from, to) = (self.at(src).cast_const(), self.at(dst));
        if from == to {
            return;
        }
        // SAFETY: private spans were checked against their buffers, shared ones lie in lines of this
        // channel (a plan's program stays within its lines, and lines of a slot lie together). The two
        // do not overlap: one is shared and one private, or they are two buffers of the caller. By
        // the program's protocol nobody writes `src` or touches `dst` until a later flag says so.
        unsafe {
            copy_bytes(from, to, src.bytes as usize, Heads { from: head_of(src), to: head_of(dst) })
        };
    }

    #[inline]
    fn wait(&mut self, line: Line, compare: Compare, value: u64) -> Result<(), Gone> {
        debug_assert!(compare == Compare::AtLeast, "flags of collectives grow");
        let value = Heard::least(value);
        self.at_once = compare.holds(self.word(line).load(), value);
        if self.at_once {
            return Ok(());
        }
        self.waits.wait(self.word(line), compare, value)
    }

    #[inline]
    fn wait_for(
        &mut self,
        line: Line,
        lines: u32,
        compare: Compare,
        value: u64,
    ) -> Result<(), Gone> {
        if !(2..=FETCHED_MOST).contains(&lines) {
            return self.wait(line, compare, value);
        }
        let value = Heard::least(value);
        self.at_once = compare.holds(self.word(line).load(), value);
        if self.at_once {
            return Ok(());
        }
        let first = line.0 as usize;
        let others = &self.table[first + 1..first + lines as usize];
        let fetch = || others.iter().for_each(|place| fetch_line(place.as_ptr()));
        self.waits.wait_with(self.word(line), compare, value, fetch)
    }

    #[inline]
    fn came(&mut self, line: Line) -> Result<(), Gone> {
        let theirs = Tag::in_flag(self.word(line).load());
        if theirs == self.heard.tells { Ok(()) } else { self.unlike(theirs) }
    }

    #[inline]
    fn write(&mut self, line: Line, value: u64) {
        let value = self.heard.flag(value);
        if self.locked {
            self.waits.publish(self.word(line), |word| word.swap(value));
        } else {
            self.waits.publish(self.word(line), |word| word.store(value));
        }
    }

    #[inline]
    fn add(&mut self, line: Line, value: u64) {
        self.waits.publish(self.word(line), |word| word.add(Heard::least(value)));
    }

    #[inline]
    fn claim(&mut self, line: Line, lines: u32) {
        let first = line.0 as usize;
        for place in &self.table[first..first + lines as usize] {
            claim_line(place.as_ptr());
        }
    }

    #[inline]
    fn hand_over(&mut self, line: Line, lines: u32) {
        if HANDED_OVER.contains(&lines) && Features::detect().cldemote {
            let first = line.0 as usize;
            for place in &self.table[first..first + lines as usize] {
                // SAFETY: a line of the area, which is mapped, and the CPU has the instruction.
                unsafe { demote_line(place.as_ptr().cast_const().cast()) };
            }
        }
    }

    #[inline]
    fn foresee(&mut self, line: Line) {
        if self.at_once {
            fetch_line(self.table[line.0 as usize].as_ptr());
        }
    }

    #[inline]
    fn reduce(&mut self, combine: Combine, src: Span, dst: Span) {
        let (from, to) = (self.at(src).cast_const(), self.at(dst));
        let bytes = src.bytes as usize;
        // SAFETY: as in `copy`, the bytes are there and nobody else touches them now.
        let right = unsafe { std::slice::from_raw_parts(from, bytes) };
        // SAFETY: as above; `dst` is this rank's own, or a cell that only this rank writes now, and it
        // is not `src`.
        let left = unsafe { std::slice::from_raw_parts_mut(to, bytes) };
        combine.combine(left, right);
    }
}

/// How many bytes of a message share a line with its flag, if it goes into a cell of several lines.
#[inline]
const fn head_of(span: Span) -> usize {
    match span.place {
        Place::Shared(_) if span.bytes > Line::PAYLOAD_BYTES => Line::PAYLOAD_BYTES as usize,
        _ => 0,
    }
}

/// How many of the first bytes of what is copied lie beside a flag; 0 where there is none.
#[derive(Clone, Copy, Debug)]
struct Heads {
    from: usize,
    to: usize,
}

/// Copies without a call for what fits one line.
///
/// Bytes that go beside a flag go last: readers poll that line. Written first, that
/// line was taken away again by a poll while the other lines were on their way, and had to be fetched back
/// for the flag (measured: 64 bytes took 266 ns instead of 203).
///
/// Bytes that come from beside a flag come first, by themselves: what follows them then begins with a line. In one
/// piece, loads that are wider than a word need two lines at once, and wait for one after the other.
///
/// # Safety
/// `from` is valid for reads and `to` for writes of `bytes` bytes, at least either head, and they do not overlap.
#[inline]
unsafe fn copy_bytes(from: *const u8, to: *mut u8, bytes: usize, heads: Heads) {
    if bytes == 8 {
        // SAFETY: the caller vouches for eight bytes.
        let value = unsafe { from.cast::<u64>().read_unaligned() };
        // SAFETY: as above.
        unsafe { to.cast::<u64>().write_unaligned(value) };
        return;
    }
    let head = heads.from.max(heads.to);
    if heads.from > 0 && heads.to == 0 {
        // SAFETY: the caller vouches for all of it, so for the head.
        unsafe { std::ptr::copy_nonoverlapping(from, to, head) };
        // The compiler must not make one copy of both.
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::AcqRel);
    }
    let (from_tail, to_tail) = (from.wrapping_add(head), to.wrapping_add(head));
    // SAFETY: the caller vouches for all of it, so for what comes after the head.
    unsafe { std::ptr::copy_nonoverlapping(from_tail, to_tail, bytes - head) };
    if heads.to > 0 {
        // The compiler must not put the two together again.
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::Release);
        // SAFETY: as above, for the head.
        unsafe { std::ptr::copy_nonoverlapping(from, to, head) };
    }
}
