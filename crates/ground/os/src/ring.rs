//! io_uring: several reads or writes of a file at once, waited for together. A disk does pieces of a long
//! transfer side by side; one call of `pread` gives it one after the other.
//!
//! One ring belongs to one thread. It never allocates, so it may be used in a signal handler that its thread
//! has while it is not in here itself.

use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU32, Ordering};

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::error::OsError;
use crate::syscall::syscall;

/// include/uapi/linux/io_uring.h
mod uapi {
    pub(super) const READ: u8 = 22;
    pub(super) const WRITE: u8 = 23;
    pub(super) const ENTER_GETEVENTS: usize = 1;
    /// Both rings are one mapping (Linux 5.4).
    pub(super) const SINGLE_MMAP: u32 = 1;
    pub(super) const OFF_RINGS: u64 = 0;
    pub(super) const OFF_ENTRIES: u64 = 0x1000_0000;
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct SubmissionOffsets {
    head: u32,
    tail: u32,
    mask: u32,
    entries: u32,
    flags: u32,
    dropped: u32,
    array: u32,
    reserved: u32,
    user_address: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CompletionOffsets {
    head: u32,
    tail: u32,
    mask: u32,
    entries: u32,
    overflow: u32,
    completions: u32,
    flags: u32,
    reserved: u32,
    user_address: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Parameters {
    entries: u32,
    completions: u32,
    flags: u32,
    thread_cpu: u32,
    thread_idle: u32,
    features: u32,
    worker_fd: u32,
    reserved: [u32; 3],
    submission: SubmissionOffsets,
    completion: CompletionOffsets,
}

/// `struct io_uring_sqe`, as far as reads and writes need it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Entry {
    operation: u8,
    flags: u8,
    priority: u16,
    fd: i32,
    offset: u64,
    address: u64,
    bytes: u32,
    operation_flags: u32,
    user: u64,
    rest: [u64; 3],
}

/// `struct io_uring_cqe`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Completion {
    user: u64,
    result: i32,
    flags: u32,
}

/// What is transferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the file into memory.
    Read,
    /// From memory into the file.
    Write,
}

/// A transfer between a file and memory.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// The file's descriptor.
    pub file: i32,
    /// Which way.
    pub direction: Direction,
    /// Offset in the file.
    pub at: u64,
    /// In memory.
    pub address: *mut u8,
    /// How much.
    pub bytes: usize,
}

/// Which of the transfers of one call a piece belongs to, beside its bytes.
const NUMBER_SHIFT: u32 = 32;

/// Transfers on their way at once: enough to keep a disk busy, few enough to count in one word.
const DEPTH: u32 = 16;

/// A ring.
#[derive(Debug)]
pub struct Ring {
    fd: OwnedFd,
    rings: NonNull<u8>,
    rings_bytes: usize,
    entries: NonNull<u8>,
    parameters: Offsets,
}

#[derive(Clone, Copy, Debug)]
struct Offsets {
    head: usize,
    tail: usize,
    mask: u32,
    array: usize,
    done_head: usize,
    done_tail: usize,
    done_mask: u32,
    completions: usize,
}

// SAFETY: the mappings belong to the value, not to a thread.
unsafe impl Send for Ring {}

const ADVICE: &str = "allow io_uring (sysctl kernel.io_uring_disabled=0), with Linux 5.6 or newer";

impl Ring {
    /// A new ring.
    ///
    /// # Errors
    /// [`OsError`] where the kernel has none, or does not allow it.
    pub fn new() -> Result<Self, OsError> {
        let mut parameters = Parameters::default();
        let address = ptr::from_mut(&mut parameters).expose_provenance();
        // SAFETY: the kernel reads and writes `parameters`, borrowed until the call returns.
        let opened =
            unsafe { syscall(libc::SYS_io_uring_setup, [DEPTH as usize, address, 0, 0, 0, 0]) };
        let fd = opened.map_err(|errno| OsError::new("cannot open io_uring", errno, ADVICE))?;
        // SAFETY: the kernel has just made this descriptor and nobody else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(i32::try_from(fd).unwrap_or(-1)) };
        if parameters.features & uapi::SINGLE_MMAP == 0 {
            return Err(OsError::invalid("this io_uring is too old", ADVICE));
        }
        let (given, done) = (parameters.submission, parameters.completion);
        let submission = given.array as usize + parameters.entries as usize * size_of::<u32>();
        let completions = parameters.completions as usize * size_of::<Completion>();
        let rings_bytes = submission.max(done.completions as usize + completions);
        let rings = map(fd.as_fd(), uapi::OFF_RINGS, rings_bytes)?;
        let entries = match map(fd.as_fd(), uapi::OFF_ENTRIES, Self::entries_bytes()) {
            Ok(entries) => entries,
            Err(error) => {
                unmap(rings, rings_bytes);
                return Err(error);
            }
        };
        let mut ring = Self {
            fd,
            rings,
            rings_bytes,
            entries,
            parameters: Offsets {
                head: given.head as usize,
                tail: given.tail as usize,
                mask: 0,
                array: given.array as usize,
                done_head: done.head as usize,
                done_tail: done.tail as usize,
                done_mask: 0,
                completions: done.completions as usize,
            },
        };
        ring.parameters.mask = ring.word(given.mask as usize).load(Ordering::Relaxed);
        ring.parameters.done_mask = ring.word(done.mask as usize).load(Ordering::Relaxed);
        Ok(ring)
    }

    const fn entries_bytes() -> usize {
        DEPTH as usize * size_of::<Entry>()
    }

    /// A word of the rings.
    fn word(&self, offset: usize) -> &AtomicU32 {
        debug_assert!(offset + 4 <= self.rings_bytes, "inside of the rings");
        let place = self.rings.as_ptr().wrapping_add(offset).cast::<AtomicU32>();
        // SAFETY: the offset is one that the kernel named, inside of the mapping and aligned to words; the
        // mapping lives as long as `self`, and the kernel's side of it is atomic, too.
        unsafe { &*place }
    }

    /// Makes transfers, cut into pieces that are on their way at once, and waits for all.
    ///
    /// Each has an outcome of its own: the kernel's error number of its first piece that failed; the others are
    /// done, too. Whatever happens, none is under way when this returns.
    ///
    /// # Safety
    /// Every `file` must be an open descriptor. Every `address` must be valid for its `bytes`: for reads of the file
    /// it is written, and nobody may rely on what was there. No two of them may overlap where one is written.
    pub unsafe fn transfer<const N: usize>(
        &mut self,
        transfers: [Transfer; N],
        piece: usize,
    ) -> [Result<(), i32>; N] {
        let pieces = |t: &Transfer| (0..t.bytes).step_by(piece.max(1));
        let mut next = (0_u32..).zip(&transfers).flat_map(|(number, transfer)| {
            pieces(transfer).map(move |from| (number, transfer, from))
        });
        let mut outcomes = [Ok(()); N];
        let (mut under_way, mut more) = (0, true);
        while more || under_way > 0 {
            let mut given = 0;
            while under_way + given < DEPTH {
                let Some((number, transfer, from)) = next.next() else {
                    more = false;
                    break;
                };
                self.put(number, transfer, from, piece.min(transfer.bytes - from));
                given += 1;
            }
            if given + under_way == 0 {
                break;
            }
            if let Err(errno) = self.enter(given) {
                self.give_up(under_way + given);
                return [Err(errno); N];
            }
            under_way += given;
            while let Some(done) = self.take() {
                under_way -= 1;
                let number = usize::try_from(done.user >> NUMBER_SHIFT).unwrap_or(usize::MAX);
                let wanted = done.user & u64::from(u32::MAX);
                let one = match u64::try_from(done.result) {
                    Ok(moved) if moved == wanted => Ok(()),
                    // A transfer that is cut short has come to the end of the file, or of its medium.
                    Ok(_) => Err(libc::EIO),
                    Err(_) => Err(-done.result),
                };
                if let Some(outcome) = outcomes.get_mut(number) {
                    *outcome = outcome.and(one);
                }
            }
        }
        outcomes
    }

    /// Puts one piece of a transfer at the end of the ring.
    fn put(&mut self, number: u32, transfer: &Transfer, from: usize, bytes: usize) {
        let tail = self.word(self.parameters.tail).load(Ordering::Relaxed);
        let index = tail & self.parameters.mask;
        let operation = match transfer.direction {
            Direction::Read => uapi::READ,
            Direction::Write => uapi::WRITE,
        };
        let entry = Entry {
            operation,
            fd: transfer.file,
            offset: transfer.at + from as u64,
            address: transfer.address.wrapping_add(from).expose_provenance() as u64,
            bytes: u32::try_from(bytes).unwrap_or(0),
            user: u64::from(number) << NUMBER_SHIFT | bytes as u64,
            ..Entry::default()
        };
        let place = self.entries.as_ptr().cast::<Entry>().wrapping_add(index as usize);
        // SAFETY: the index is below the number of entries, whose mapping lives as long as `self`; the kernel
        // read this entry long ago, since never more than `DEPTH` are under way.
        unsafe { place.write(entry) };
        self.word(self.parameters.array + 4 * index as usize).store(index, Ordering::Relaxed);
        self.word(self.parameters.tail).store(tail.wrapping_add(1), Ordering::Release);
    }

    /// Hands over what was put, and waits until something is done.
    fn enter(&self, given: u32) -> Result<(), i32> {
        let fd = usize::try_from(self.fd.as_raw_fd()).unwrap_or(usize::MAX);
        let mut left = given as usize;
        loop {
            let arguments = [fd, left, 1, uapi::ENTER_GETEVENTS, 0, 0];
            // SAFETY: the entries name memory that the caller of `transfer` vouches for.
            match unsafe { syscall(libc::SYS_io_uring_enter, arguments) } {
                Ok(taken) if taken >= left => return Ok(()),
                Ok(taken) => left -= taken,
                Err(libc::EINTR | libc::EAGAIN | libc::EBUSY) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Takes back what the kernel did not take over of `out` pieces, and waits for the others: they read or write
    /// memory that the caller is about to use for something else.
    fn give_up(&mut self, out: u32) {
        let tail = self.word(self.parameters.tail);
        // The kernel looks at the ring only within a call of `enter`, none of which is going on.
        let head = self.word(self.parameters.head).load(Ordering::Acquire);
        let untaken = tail.swap(head, Ordering::Release).wrapping_sub(head);
        let mut under_way = out.saturating_sub(untaken);
        while under_way > 0 {
            if self.take().is_some() {
                under_way -= 1;
            } else {
                // A thread's own completions are posted as it returns from a system call.
                rustix::thread::sched_yield();
            }
        }
    }

    /// The next that is done.
    fn take(&mut self) -> Option<Completion> {
        let head = self.word(self.parameters.done_head).load(Ordering::Relaxed);
        if head == self.word(self.parameters.done_tail).load(Ordering::Acquire) {
            return None;
        }
        let index = (head & self.parameters.done_mask) as usize;
        let offset = self.parameters.completions + index * size_of::<Completion>();
        let place = self.rings.as_ptr().wrapping_add(offset).cast::<Completion>();
        // SAFETY: the index is below the number of completions; the kernel wrote this one before it moved the
        // tail, and writes it again only after the head has passed it.
        let done = unsafe { place.read() };
        self.word(self.parameters.done_head).store(head.wrapping_add(1), Ordering::Release);
        Some(done)
    }
}

fn map(fd: BorrowedFd<'_>, offset: u64, bytes: usize) -> Result<NonNull<u8>, OsError> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::SHARED | MapFlags::POPULATE;
    // SAFETY: a new range wherever the kernel finds room disturbs nobody.
    let mapped = unsafe { mmap(ptr::null_mut(), bytes, access, flags, fd, offset) };
    let mapped = mapped.map_err(|errno| OsError::of("cannot map io_uring", errno, ADVICE))?;
    NonNull::new(mapped.cast()).ok_or(OsError::invalid("cannot map io_uring", ADVICE))
}

fn unmap(place: NonNull<u8>, bytes: usize) {
    // SAFETY: the range was mapped by `map`, and nothing borrows from it any more.
    let result = unsafe { munmap(place.as_ptr().cast(), bytes) };
    debug_assert!(result.is_ok(), "a range that was mapped can be unmapped");
}

impl Drop for Ring {
    fn drop(&mut self) {
        unmap(self.entries, Self::entries_bytes());
        unmap(self.rings, self.rings_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    #[test]
    fn structures_are_those_of_the_header() {
        assert_eq!(size_of::<Parameters>(), 120);
        assert_eq!(size_of::<Entry>(), 64);
        assert_eq!(size_of::<Completion>(), 16);
        assert_eq!(core::mem::offset_of!(Entry, user), 32);
        assert_eq!(core::mem::offset_of!(Parameters, completion), 80);
    }

    /// More pieces than the ring holds, the last one shorter.
    #[test]
    fn what_is_written_in_pieces_is_read_in_others() {
        let mut ring = match Ring::new() {
            Ok(ring) => ring,
            // Not here: then the advice says how it could be.
            Err(error) => return assert!(error.advice.contains("io_uring")),
        };
        let file = crate::area::Memfd::new(1 << 20).expect("a file");
        let mut bytes: std::vec::Vec<u8> =
            (0..300_000_u32).map(|n| n.to_le_bytes()[0] ^ n.to_le_bytes()[1]).collect();
        let mut seen = vec![0_u8; bytes.len()];
        let of = |direction, at, memory: &mut [u8]| Transfer {
            file: file.as_fd().as_raw_fd(),
            direction,
            at,
            address: memory.as_mut_ptr(),
            bytes: memory.len(),
        };
        let write = of(Direction::Write, 4096, &mut bytes);
        // SAFETY: both vectors are that long and nobody else's.
        assert_eq!(unsafe { ring.transfer([write], 4096) }, [Ok(())]);
        let read = of(Direction::Read, 4096, &mut seen);
        // SAFETY: as above.
        assert_eq!(unsafe { ring.transfer([read], 65_536) }, [Ok(())]);
        assert!(bytes == seen);
        // One writes beside another that reads past the end: each has an outcome of its own.
        let beside = of(Direction::Write, 500_000, &mut bytes);
        let beyond = of(Direction::Read, (1 << 20) - 8, &mut seen[..4096]);
        // SAFETY: as above.
        assert_eq!(unsafe { ring.transfer([beside, beyond], 512) }, [Ok(()), Err(libc::EIO)]);
        seen.fill(0);
        let again = of(Direction::Read, 500_000, &mut seen);
        // SAFETY: as above.
        assert_eq!(unsafe { ring.transfer([again], 8192) }, [Ok(())]);
        assert!(bytes == seen);
    }

    /// A piece that the kernel never took must not be handed over with the next transfer, into memory that is
    /// somebody else's by then.
    #[test]
    fn what_a_failed_call_leaves_is_taken_back() {
        let mut ring = match Ring::new() {
            Ok(ring) => ring,
            // Not here: then the advice says how it could be.
            Err(error) => return assert!(error.advice.contains("io_uring")),
        };
        let file = crate::area::Memfd::new(1 << 16).expect("a file");
        let mut bytes = vec![7_u8; 1 << 14];
        let write = Transfer {
            file: file.as_fd().as_raw_fd(),
            direction: Direction::Write,
            at: 0,
            address: bytes.as_mut_ptr(),
            bytes: bytes.len(),
        };
        // A descriptor that is no ring: every call fails, the mappings stay.
        let other = crate::area::Memfd::new(4096).expect("a file");
        let real = core::mem::replace(
            &mut ring.fd,
            other.as_fd().try_clone_to_owned().expect("a descriptor"),
        );
        // SAFETY: the vector is that long and nobody else's.
        let [outcome] = unsafe { ring.transfer([write], 1024) };
        assert!(outcome.is_err());
        ring.fd = real;
        let mut seen = vec![1_u8; 1 << 14];
        let read = Transfer { direction: Direction::Read, address: seen.as_mut_ptr(), ..write };
        // SAFETY: as above.
        assert_eq!(unsafe { ring.transfer([read], 4096) }, [Ok(())]);
        assert!(seen.iter().all(|&byte| byte == 0), "the failed write did not happen late");
    }
}
