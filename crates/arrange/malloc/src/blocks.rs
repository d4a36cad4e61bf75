//! A thread gets its block here, and its end is noticed, so that the block serves the next one.

use crate::counting::count_alone;
use crate::instance::process::instance;
use crate::process::PROCESS;
use crate::report::Word;
use crate::slab::Slab;
use crate::thread::{self, ThreadSlot, state};
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

/// Stands for no key.
const NO_KEY: u32 = u32::MAX;

/// The key whose destructor ends a thread's block.
static KEY: AtomicU32 = AtomicU32::new(NO_KEY);
/// Blocks of threads.
pub(crate) static SLAB: Slab = Slab::new();

/// Makes the key whose destructor sees a thread end.
pub(crate) fn prepare() -> bool {
    let mut key = 0;
    // SAFETY: writes one key to a local; the destructor is a function that is never unloaded.
    let result = unsafe { libc::pthread_key_create(&raw mut key, Some(thread_ends)) };
    if result == 0 {
        KEY.store(key, Ordering::Release);
    }
    result == 0
}

/// Has this thread's end noticed, or noticed once more.
fn notice_end(block: *mut thread::Thread) -> bool {
    let key = KEY.load(Ordering::Acquire);
    // SAFETY: the key was made in `prepare` and is never deleted; the value is not read.
    key != NO_KEY && unsafe { libc::pthread_setspecific(key, block.cast()) } == 0
}

/// Ends a thread's block, in the last round of key destructors: destructors of other keys may
/// allocate and free in all rounds before (POSIX, pthread_key_create).
extern "C" fn thread_ends(block: *mut c_void) {
    const ROUNDS: u32 = 4; // PTHREAD_DESTRUCTOR_ITERATIONS of glibc
    let slot = thread::slot();
    let block = block.cast::<thread::Thread>();
    let ended = thread::with_block(slot, |thread| {
        thread.own.rounds += 1;
        if thread.own.rounds < ROUNDS && notice_end(block) {
            return false;
        }
        thread.retire();
        true
    });
    if ended == Some(true) {
        slot.state.store(state::DEAD, Ordering::Relaxed);
        if let Some(block) = ptr::NonNull::new(block) {
            SLAB.put(block);
        }
    }
}

/// Gives this thread a block. What libc allocates meanwhile goes to glibc. Out of line, so that what the room needs is
/// not on the stack of what follows.
#[inline(never)]
pub(crate) fn make_block(slot: &ThreadSlot) -> bool {
    let Some(instance) = instance() else { return false };
    let errno = crate::errno::Kept::new();
    slot.state.store(state::BUSY, Ordering::Relaxed);
    let Some(mut inside) = PROCESS.room.wait() else {
        slot.state.store(state::ABSENT, Ordering::Relaxed);
        return false;
    };
    let block = inside.run(|| SLAB.take(instance));
    drop(inside);
    let noticed = block.is_some_and(|block| notice_end(block.as_ptr()));
    drop(errno);
    let Some(block) = block else {
        slot.state.store(state::DELEGATING, Ordering::Relaxed);
        return false;
    };
    if !noticed {
        SLAB.put(block);
        slot.state.store(state::DELEGATING, Ordering::Relaxed);
        return false;
    }
    count_alone(slot);
    PROCESS.counters().add(Word::Threads, 1);
    slot.state.store(block.as_ptr(), Ordering::Relaxed);
    true
}
