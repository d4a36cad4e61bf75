//! What the caches can be told: which instructions this CPU has, and the flush and the demotion
//! of single lines.
//!
//! It never measures; [`crate::timed`] does, by means of this.

use crate::arch;
use crate::error::OsError;
pub use crate::processor::Features;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// Bit 7 says that the others are known. All-in-one, so that `Relaxed` is enough: a
/// thread sees all of it or nothing and asks again, with the same answer.
static KNOWN: AtomicU8 = AtomicU8::new(0);
/// The bit of [`Features::clflush`], the lowest.
const CLFLUSH: u8 = 1;

impl Features {
    /// The features of the CPU that runs this. Asked of the CPU once, then remembered.
    #[must_use]
    pub fn detect() -> Self {
        match KNOWN.load(Ordering::Relaxed) {
            0 => {
                let found = arch::features();
                KNOWN.store(found.to_bits() | 1 << 7, Ordering::Relaxed);
                found
            }
            bits => Self::from_bits(bits),
        }
    }

    /// The same for whoever flushes in a program of ours: what is permitted may still be refused, so the first call
    /// tries it where nothing else tells. A guest in another program's process calls [`Self::detect`] instead, and
    /// goes by an atlas whose maker has tried.
    #[must_use]
    pub fn tried() -> Self {
        /// Whether it was tried. Relaxed: twice does no harm, and finds the same.
        static TRIED: AtomicBool = AtomicBool::new(false);
        let found = Self::detect();
        if !found.clflush || TRIED.load(Ordering::Relaxed) {
            return found;
        }
        let works = arch::try_flush();
        if !works {
            KNOWN.fetch_and(!CLFLUSH, Ordering::Relaxed);
        }
        TRIED.store(true, Ordering::Relaxed);
        Self { clflush: works, ..found }
    }

    fn to_bits(self) -> u8 {
        u8::from(self.clflush)
            | u8::from(self.clflushopt) << 1
            | u8::from(self.clwb) << 2
            | u8::from(self.cldemote) << 3
            | u8::from(self.rdpid) << 4
            | u8::from(self.invariant_tsc) << 5
            | u8::from(self.hypervisor) << 6
    }

    fn from_bits(bits: u8) -> Self {
        let bit = |i: u8| bits >> i & 1 == 1;
        Self {
            clflush: bit(0),
            clflushopt: bit(1),
            clwb: bit(2),
            cldemote: bit(3),
            rdpid: bit(4),
            invariant_tsc: bit(5),
            hypervisor: bit(6),
        }
    }

    /// Refuses where lines cannot be flushed.
    ///
    /// # Errors
    /// [`OsError`] that says what is missing.
    pub fn require_flush(self) -> Result<(), OsError> {
        if self.clflush {
            return Ok(());
        }
        Err(OsError::unsupported(
            arch::NO_FLUSH,
            "measure DRAM with a chase through more memory than the caches hold",
        ))
    }

    /// Refuses where lines cannot be demoted.
    ///
    /// # Errors
    /// [`OsError`] that says what is missing.
    pub fn require_demote(self) -> Result<(), OsError> {
        if self.cldemote {
            return Ok(());
        }
        Err(OsError::unsupported(
            "cannot demote cache lines: this CPU has no cldemote",
            "put lines into the last-level cache by eviction instead",
        ))
    }
}

/// Bytes that a flush of one line puts out: those of the smallest line of this CPU's caches.
#[must_use]
pub fn line_bytes() -> usize {
    arch::line_bytes()
}

/// Puts a line out of every cache of the machine; complete after the next [`fence`].
///
/// # Safety
/// `address` is mapped, and [`Features::clflush`] is set.
#[inline]
pub unsafe fn flush_line(address: *const u64) {
    // SAFETY: the caller vouches for address and CPU.
    unsafe { arch::flush_line(address) }
}

/// Moves a line from the near caches of this core towards the last-level cache: a hint, which the
/// CPU may leave undone.
///
/// # Safety
/// `address` is mapped, and [`Features::cldemote`] is set.
#[inline]
pub unsafe fn demote_line(address: *const u64) {
    // SAFETY: the caller vouches for address and CPU.
    unsafe { arch::demote_line(address) }
}

/// Asks for a line for writing, and waits for nothing: a hint that never faults, whatever the address.
#[inline]
pub fn claim_line(address: *const u8) {
    arch::claim_line(address);
}

/// Asks for a line for reading, and waits for nothing: a hint that never faults, whatever the address.
#[inline]
pub fn fetch_line(address: *const u8) {
    arch::fetch_line(address);
}

/// Waits until all earlier loads, stores and flushes of this core are done.
#[inline]
pub fn fence() {
    arch::fence();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembered_features_are_those_of_the_cpu() {
        let (first, second) = (Features::detect(), Features::detect());
        assert_eq!((first, second), (arch::features(), arch::features()));
        assert_eq!(Features::tried(), first, "Linux lets programs flush");
        // An emulator may say 32.
        assert!(line_bytes().is_power_of_two() && (16..=2048).contains(&line_bytes()));
    }

    #[test]
    fn every_feature_has_its_own_bit() {
        for i in 0..7 {
            assert_eq!(Features::from_bits(1 << i).to_bits(), 1 << i);
        }
    }

    #[test]
    fn what_the_cpu_lacks_is_refused_and_what_it_has_is_not() {
        assert!(Features::NONE.require_flush().is_err_and(|e| e.is_unsupported()));
        assert!(Features::NONE.require_demote().is_err_and(|e| e.is_unsupported()));
        let all = Features::from_bits(0x7f);
        assert_eq!((all.require_flush(), all.require_demote()), (Ok(()), Ok(())));
    }
}
