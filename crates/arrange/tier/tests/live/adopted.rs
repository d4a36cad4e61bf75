//! Memory that a program has already: what it holds is there under eviction and afterwards, also where the far tier
//! fails meanwhile.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use isochrone_os::space::Space;
use isochrone_tier::live::far::{Far, Memory, Part, Scratch};
use isochrone_tier::live::guest::record::Word;
use isochrone_tier::live::guest::{AdoptError, Adopted, FAST_BYTES_MIN, may_be_tiered};
use isochrone_tier::pages::Trouble;

use super::{Case, case};

pub(super) const CASES: &[Case] = &[
    case("what_a_program_has_is_the_same_under_eviction_and_afterwards", under_eviction),
    case("what_the_far_tier_does_not_give_back_stays_adopted", not_given_back),
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
    drop(numbers.adopt(far()).expect("as before"));
    assert_eq!(numbers.wrong(), 0);
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
