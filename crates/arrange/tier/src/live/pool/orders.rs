//! What host and members share of a pool: the order, and what came of it.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use isochrone_cla::live::Place;
use isochrone_os::OsError;
use isochrone_os::area::Words;
use isochrone_os::futex::{self, Scope};
use isochrone_os::mapping::Mapping;

/// Numbers that a call gives to a part.
pub const ARGUMENTS: usize = 4;

/// A wait ends by itself after this, so that one who died is noticed.
const WAIT_NS: u64 = 20_000_000;
/// Looks before sleeping.
const SPINS: u32 = 2000;
/// Words in which a member says why it failed.
const MESSAGE_WORDS: usize = 32;
/// Number of the order, whether it is done, its value, and the message.
const RESULT_WORDS: usize = 3 + MESSAGE_WORDS;
/// Places of the two teams, the part, whether the host takes part, and its numbers.
const ORDER_WORDS: usize = 4 + ARGUMENTS;
const DONE: u64 = 1;
const FAILED: u64 = 2;
/// The part that is the end of all.
pub(super) const END: u64 = u64::MAX;

/// The shared words of a pool.
#[derive(Debug)]
pub(super) struct Orders {
    /// The number of the last order, and how often anything was done: slept on.
    flags: Words,
    wide: Mapping,
}

/// An order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    pub(super) part: u64,
    /// The host takes part.
    pub(super) with_host: bool,
    pub(super) arguments: [u64; ARGUMENTS],
}

impl Orders {
    pub(super) fn new(workers: u16) -> Result<Self, OsError> {
        let words = ORDER_WORDS + usize::from(workers) * RESULT_WORDS;
        Ok(Self { flags: Words::new(64)?, wide: Mapping::shared_memfd(words * 8)? })
    }

    fn number(&self) -> &AtomicU32 {
        &self.flags.as_slice()[0]
    }

    /// Changes whenever the host may want to look.
    fn bell(&self) -> &AtomicU32 {
        &self.flags.as_slice()[32]
    }

    fn order(&self) -> &[AtomicU64] {
        &self.wide.words()[..ORDER_WORDS]
    }

    fn result(&self, worker: u16) -> &[AtomicU64] {
        &self.wide.words()[ORDER_WORDS + usize::from(worker) * RESULT_WORDS..][..RESULT_WORDS]
    }

    /// Says where a team of collectives is: 0 of all, 1 of the workers alone.
    pub(super) fn publish(&self, team: usize, place: Place) {
        let word = u64::from(place.process) << 32 | u64::from(place.descriptor);
        self.order()[team].store(word, Ordering::Release);
    }

    /// Where it is, once that is said; `None` when `gone` says that nobody will.
    pub(super) fn place(&self, team: usize, gone: impl Fn() -> bool) -> Option<Place> {
        loop {
            let word = self.order()[team].load(Ordering::Acquire);
            let half = |value: u64| u32::try_from(value & 0xffff_ffff).unwrap_or(0);
            if word != 0 {
                return Some(Place { process: half(word >> 32), descriptor: half(word) });
            }
            if gone() {
                return None;
            }
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
    }

    /// Gives an order to all workers; its number. For the host alone.
    pub(super) fn give(&self, order: Order) -> u32 {
        let words = self.order();
        words[2].store(order.part, Ordering::Relaxed);
        words[3].store(u64::from(order.with_host), Ordering::Relaxed);
        for (word, value) in words[4..].iter().zip(order.arguments) {
            word.store(value, Ordering::Relaxed);
        }
        let number = self.number().fetch_add(1, Ordering::AcqRel).wrapping_add(1);
        let _ = futex::wake(self.number(), u32::MAX >> 1, Scope::Shared);
        number
    }

    /// The order after number `seen`, and its number; `None` when `gone` says that none will come.
    pub(super) fn next(&self, seen: u32, gone: impl Fn() -> bool) -> Option<(u32, Order)> {
        let number = self.changed(self.number(), seen, gone)?;
        let words = self.order();
        let mut arguments = [0; ARGUMENTS];
        for (value, word) in arguments.iter_mut().zip(&words[4..]) {
            *value = word.load(Ordering::Relaxed);
        }
        let part = words[2].load(Ordering::Relaxed);
        let with_host = words[3].load(Ordering::Relaxed) != 0;
        Some((number, Order { part, with_host, arguments }))
    }

    fn changed(&self, word: &AtomicU32, seen: u32, gone: impl Fn() -> bool) -> Option<u32> {
        loop {
            for _ in 0..SPINS {
                let now = word.load(Ordering::Acquire);
                if now != seen {
                    return Some(now);
                }
                isochrone_os::pause::pause();
            }
            let _ = futex::wait(word, seen, Some(WAIT_NS), Scope::Shared);
            if word.load(Ordering::Acquire) == seen && gone() {
                return None;
            }
        }
    }

    /// Leaves what came of an order.
    pub(super) fn leave(&self, worker: u16, number: u32, result: Result<u64, String>) {
        let words = self.result(worker);
        let code = match result {
            Ok(value) => {
                words[2].store(value, Ordering::Relaxed);
                DONE
            }
            Err(text) => {
                let mut bytes = text.into_bytes();
                bytes.resize(MESSAGE_WORDS * 8, 0);
                for (word, eight) in words[3..].iter().zip(bytes.chunks_exact(8)) {
                    let eight = eight.try_into().unwrap_or([0; 8]);
                    word.store(u64::from_le_bytes(eight), Ordering::Relaxed);
                }
                FAILED
            }
        };
        words[1].store(code, Ordering::Relaxed);
        words[0].store(u64::from(number), Ordering::Release);
        self.bell().fetch_add(1, Ordering::AcqRel);
        let _ = futex::wake(self.bell(), 1, Scope::Shared);
    }

    /// Waits for what comes of an order; `None` when `gone` says that nothing will.
    pub(super) fn await_result(
        &self,
        worker: u16,
        number: u32,
        gone: impl Fn() -> bool,
    ) -> Option<Result<u64, String>> {
        let words = self.result(worker);
        loop {
            let heard = self.bell().load(Ordering::Acquire);
            if words[0].load(Ordering::Acquire) == u64::from(number) {
                break;
            }
            if self.changed(self.bell(), heard, &gone).is_none()
                && words[0].load(Ordering::Acquire) != u64::from(number)
            {
                return None;
            }
        }
        if words[1].load(Ordering::Relaxed) == DONE {
            return Some(Ok(words[2].load(Ordering::Relaxed)));
        }
        let text = words[3..].iter().map(|word| word.load(Ordering::Relaxed).to_le_bytes());
        let mut bytes: Vec<u8> = text.flatten().collect();
        bytes.retain(|byte| *byte != 0);
        Some(Err(String::from_utf8_lossy(&bytes).into_owned()))
    }
}
