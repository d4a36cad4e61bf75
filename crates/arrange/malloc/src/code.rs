//! The library's own pages of code and of what never changes, in a process that runs little of them: they count as the
//! program's memory, and the kernel makes sixteen at once present for one that is used.
//!
//! They are given back when it is loaded, and when learning is over: what runs again comes again from the file, as it
//! came before. Nothing of it was written, since a library is relocated in other pages; but a debugger writes
//! breakpoints, which would be lost. So nothing goes back in a process that is traced when it is loaded, nor where that
//! is not known. Those of the functions that programs call always stay. With these, in one section, lies what runs for
//! each object and for some in a hundred.

use core::ffi::c_void;
use core::ops::Range;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use isochrone_os::pages::kernel_page_bytes;
use rustix::mm::Advice;

/// Ranges of addresses: before the functions that programs call, and behind them. Empty before they are known.
static KEPT: [[AtomicUsize; 2]; 2] = [const { [const { AtomicUsize::new(0) }; 2] }; 2];

/// Nobody has written to these pages, as far as is known.
static IS_AS_READ: AtomicBool = AtomicBool::new(false);

/// Nobody traces the process: its pages of code may go back.
pub(crate) fn may_go_back() {
    IS_AS_READ.store(true, Ordering::Relaxed);
}

/// The library's code, with what else of its file is never written, is `whole`; in `called` lie the functions that
/// programs call. Gives all but these back, and has them be a mapping of their own: of the first page, where the
/// dynamic linker looks for names, and of these, the kernel makes no other pages present with one that is used. Does
/// nothing where somebody may have written to it.
///
/// # Safety
/// All of it is mapped from a file, privately, and nobody has written to it or unmaps it.
pub unsafe fn loaded(whole: &Range<usize>, called: &Range<usize>) {
    if !IS_AS_READ.load(Ordering::Relaxed) {
        return;
    }
    let page = kernel_page_bytes();
    let down = |at: usize| at / page * page;
    let ranges = [
        [whole.start + page, down(called.start)],
        [called.end.next_multiple_of(page), down(whole.end)],
    ];
    for (kept, range) in KEPT.iter().zip(ranges) {
        kept[0].store(range[0], Ordering::Relaxed);
        kept[1].store(range[1], Ordering::Relaxed);
    }
    // What no dump of the process has is another mapping. It has none of a file's pages unless it is asked for them
    // (core(5)).
    advise(Advice::LinuxDontDump);
    give_back();
}

/// Gives it back once more.
pub(crate) fn give_back() {
    advise(Advice::LinuxDontNeed);
}

fn advise(advice: Advice) {
    for kept in &KEPT {
        let [start, end] = kept.each_ref().map(|at| at.load(Ordering::Relaxed));
        if start < end {
            let place: *mut c_void = ptr::without_provenance_mut(start);
            // SAFETY: pages of a file that nobody has written, as was vouched for: they are read from there again.
            // Where it is refused (memory that is locked) they stay.
            let _ = unsafe { rustix::mm::madvise(place, end - start, advice) };
        }
    }
}
