//! Memory that a program has already: what it holds is there under eviction and afterwards, also where the far tier
//! fails meanwhile.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use nix::libc;

use isochrone_os::space::Space;
use isochrone_tier::live::far::{Far, Memory, Part, Scratch};
use isochrone_tier::live::guest::record::Word;
use isochrone_tier::live::guest::{AdoptError, Adopted, FAST_BYTES_MIN, may_be_tiered};
use isochrone_tier::pages::Trouble;

use super::{Case, case};

pub(super) const CASES: &[Case] = &[
    case("what_a_program_has_is_the_same_under_eviction_and_afterwards", under_eviction),
    case("what_the_far_tier_does_not_give_back_stays_adopted", not_given_back),
    case("pages_that_a_device_still_has_when_they_are_refused_are_not_lost", refused_and_held),
];

const PAGE: usize = 4096;
const PAGES: usize = 1024;
const BYTES: usize = PAGES * PAGE;

/// A far tier whose reads fail while it is told so.
#[derive(Debug)]
struct Failing {
    memory: Memory,
    fails: Arc<AtomicBool>,
}

impl Far for Failing {
    fn name(&self) -> &'static str {
        "failing"
    }

    fn read(&self, part: &Part, to: &mut [u8], scratch: &mut Scratch) -> Result<(), Trouble> {
        if self.fails.load(Ordering::Acquire) {
            return Err(Trouble::Far(5));
        }
        self.memory.read(part, to, scratch)
    }

    fn write(&self, part: &Part, from: &[u8], scratch: &mut Scratch) -> Result<(), Trouble> {
        self.memory.write(part, from, scratch)
    }
}

/// Pages of which each has a number in each word.
struct Numbers(Space);

impl Numbers {
    fn new() -> Self {
        let space = Space::new(BYTES, false).expect("addresses");
        let numbers = Self(space);
        numbers.words().iter().enumerate().for_each(|(at, word)| {
            word.store(at as u64 ^ 0x5a5a, Ordering::Relaxed);
        });
        numbers
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the space has so many bytes, which are used as atomic words alone.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), BYTES / 8) }
    }

    fn wrong(&self) -> usize {
        let is_wrong = |(at, word): (usize, &AtomicU64)| {
            usize::from(word.load(Ordering::Relaxed) != at as u64 ^ 0x5a5a)
        };
        self.words().iter().enumerate().map(is_wrong).sum()
    }

    fn adopt(&self, far: Box<dyn Far>) -> Result<Adopted, AdoptError> {
        let first = NonNull::new(self.0.as_ptr()).expect("it is mapped");
        // SAFETY: the space outlives the value in each case, and nothing else is done to it.
        unsafe { Adopted::new(first, BYTES, FAST_BYTES_MIN, far) }
    }
}

fn evicted() -> u64 {
    Adopted::counted().map_or(0, |tally| tally.get(Word::Evicted))
}

fn under_eviction() {
    if may_be_tiered().is_err() {
        return;
    }
    let numbers = Numbers::new();
    let far = || Box::new(Memory::new(BYTES, None).expect("addresses"));
    let mut adopted = numbers.adopt(far()).expect("private memory");
    let first = evicted();
    assert!(first >= (BYTES - FAST_BYTES_MIN) as u64 / PAGE as u64, "{first} left");
    assert!(matches!(numbers.adopt(far()), Err(AdoptError::Range(why)) if why.contains("already")));
    assert_eq!(numbers.wrong(), 0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert_eq!(numbers.wrong(), 0));
        }
    });
    assert!(evicted() > first);
    adopted.release().expect("room for it");
    let last = evicted();
    assert_eq!((numbers.wrong(), evicted()), (0, last), "nothing leaves any more");
    drop(adopted);
    // What nobody releases is released with its value.
    for again in 0..2 {
        let adopted = numbers.adopt(far());
        drop(adopted.unwrap_or_else(|error| panic!("as before, {again}: {error}")));
        assert_eq!(numbers.wrong(), 0);
    }
}

fn not_given_back() {
    if may_be_tiered().is_err() {
        return;
    }
    let numbers = Numbers::new();
    let fails = Arc::new(AtomicBool::new(false));
    let memory = Memory::new(BYTES, None).expect("addresses");
    let far = Failing { memory, fails: fails.clone() };
    let mut adopted = numbers.adopt(Box::new(far)).expect("private memory");
    fails.store(true, Ordering::Release);
    assert_eq!(adopted.release(), Err(AdoptError::Lost(5)));
    fails.store(false, Ordering::Release);
    let before = evicted();
    assert_eq!(numbers.wrong(), 0);
    assert!(evicted() > before, "it is paged as before");
    adopted.release().expect("it is given back now");
    assert_eq!(numbers.wrong(), 0);
}

/// Pages that the kernel has pinned for a ring, as it has those of a direct write until a moment after it is done.
struct Pinned(OwnedFd);

impl Pinned {
    /// Nothing where the kernel has no io_uring for us.
    fn new(pages: &[u8]) -> Option<Self> {
        let mut parameters = [0_u64; 15];
        // SAFETY: 120 bytes, which the kernel reads and writes.
        let ring = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) };
        let ring = i32::try_from(ring).ok().filter(|ring| *ring >= 0)?;
        // SAFETY: the kernel has just made it, and nobody else owns it.
        let ring = unsafe { OwnedFd::from_raw_fd(ring) };
        let buffer =
            libc::iovec { iov_base: pages.as_ptr().cast_mut().cast(), iov_len: pages.len() };
        (Self::register(&ring, 0, &raw const buffer, 1) == 0).then_some(Self(ring))
    }

    /// `IORING_REGISTER_BUFFERS` (0), and `IORING_UNREGISTER_BUFFERS` (1).
    fn register(ring: &OwnedFd, what: u32, buffers: *const libc::iovec, count: u32) -> i64 {
        // SAFETY: the buffers are pages of the caller's, which are read alone.
        unsafe {
            libc::syscall(libc::SYS_io_uring_register, ring.as_raw_fd(), what, buffers, count)
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        assert_eq!(Self::register(&self.0, 1, core::ptr::null(), 0), 0);
    }
}

/// A far tier that refuses some writes, while a device has the pages that were to be written for a while longer.
#[derive(Debug)]
struct Refusing {
    memory: Memory,
    /// How many it is still to refuse.
    refuses: Arc<AtomicU32>,
    /// How many pages were in the hands of a device then.
    held: Arc<AtomicU32>,
}

impl Far for Refusing {
    fn name(&self) -> &'static str {
        "refusing"
    }

    fn read(&self, part: &Part, to: &mut [u8], scratch: &mut Scratch) -> Result<(), Trouble> {
        self.memory.read(part, to, scratch)
    }

    fn write(&self, part: &Part, from: &[u8], scratch: &mut Scratch) -> Result<(), Trouble> {
        let less = |left: u32| left.checked_sub(1);
        if self.refuses.fetch_update(Ordering::AcqRel, Ordering::Acquire, less).is_err() {
            return self.memory.write(part, from, scratch);
        }
        if let Some(pinned) = Pinned::new(from) {
            self.held.fetch_add(u32::try_from(from.len() / PAGE).unwrap(), Ordering::AcqRel);
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(20));
                drop(pinned);
            });
        }
        Err(Trouble::Full)
    }
}

fn refused_and_held() {
    if may_be_tiered().is_err() {
        return;
    }
    let numbers = Numbers::new();
    let [refuses, held] = [0, 1].map(|_| Arc::new(AtomicU32::new(0)));
    let memory = Memory::new(BYTES, None).expect("addresses");
    let far = Refusing { memory, refuses: refuses.clone(), held: held.clone() };
    let mut adopted = numbers.adopt(Box::new(far)).expect("private memory");
    refuses.store(8, Ordering::Release);
    assert_eq!(numbers.wrong(), 0);
    assert_eq!(refuses.load(Ordering::Acquire), 0, "all were tried");
    // Where there is no io_uring no device has them.
    let held = held.load(Ordering::Acquire);
    assert!(held > 0 || Pinned::new(&[0; PAGE]).is_none(), "{held} held");
    assert_eq!(numbers.wrong(), 0);
    adopted.release().expect("room for it");
    assert_eq!(numbers.wrong(), 0);
}
