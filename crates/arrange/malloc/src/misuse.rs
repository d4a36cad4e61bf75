//! How the process ends where the program frees what it does not have: as glibc ends it, and in its words. It looks
//! at nothing of the allocator but whether it still places.

use crate::process::PROCESS;
use crate::range::{NotHeld, Wrong};
use isochrone_alloc::Misuse;

/// Ends the process for a free of what the program does not have, as glibc does and in its words.
#[cold]
#[inline(never)]
pub(crate) fn freed_wrongly(found: NotHeld) -> ! {
    end(found.wrong())
}

fn end(wrong: Wrong) -> ! {
    die(match wrong {
        Wrong::Pointer => b"free(): invalid pointer\n",
        Wrong::Freed => b"free(): double free detected\n",
    })
}

/// The same for `realloc`.
#[cold]
#[inline(never)]
pub(crate) fn reallocated_wrongly() -> ! {
    die(b"realloc(): invalid pointer\n")
}

/// The heap refuses a slot that the program had: its tables were overwritten, or given back while
/// this thread was at it.
#[cold]
#[inline(never)]
pub(crate) fn misused(misuse: Misuse) {
    if PROCESS.is_over() {
        return;
    }
    end(match misuse {
        Misuse::Foreign | Misuse::Inside => Wrong::Pointer,
        Misuse::DoubleFree | Misuse::Overlap => Wrong::Freed,
    })
}

/// Says one fixed line and ends the process as `abort` does.
pub fn die(text: &'static [u8]) -> ! {
    // SAFETY: so many bytes can be read. Nobody can be told that it could not be said.
    let _ = unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
    // SAFETY: takes nothing and does not return.
    unsafe { libc::abort() }
}
