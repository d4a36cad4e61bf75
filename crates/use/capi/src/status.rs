//! How a function of this library ended: a number for the program, and words for people.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};

use isochrone_units::Reading;

/// How a function ended. The numbers are those of `isochrone.h` and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// Done as it was asked for.
    Ok = 0,
    /// An argument makes no sense; nothing was done.
    Argument = 1,
    /// A rank has ended or given up; the team is of no use any more.
    Gone = 2,
    /// Somebody did not come in time.
    Late = 3,
    /// There is no room: shared memory, or what the team was given of it.
    Memory = 4,
    /// The system refused something.
    System = 5,
    /// A task failed.
    Failed = 6,
    /// Tasks wait for one another, and nothing can go on.
    Deadlock = 7,
    /// This process, or this kernel, is not as it must be for it.
    State = 8,
    /// Tasks that had not begun were left out, as somebody asked.
    Cancelled = 9,
}

impl Status {
    /// The number for C.
    pub(crate) const fn code(self) -> c_int {
        self as c_int
    }
}

/// Why a function did not do what it should.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) words: String,
}

impl Failure {
    pub(crate) fn state(words: impl Into<String>) -> Self {
        Self { status: Status::State, words: words.into() }
    }

    pub(crate) fn argument(words: impl Into<String>) -> Self {
        Self { status: Status::Argument, words: words.into() }
    }
}

thread_local! {
    /// What this thread's last failure was.
    static LAST: RefCell<CString> = RefCell::default();
}

/// `ISOCHRONE_UNKNOWN`: the reading, or the grade, of what is not known.
pub const UNKNOWN: u32 = 0;

/// The number of a reading in C.
pub(crate) const fn number(reading: Reading) -> u32 {
    match reading {
        Reading::Measured => 1,
        Reading::Predicted => 2,
        Reading::Simulated => 3,
        Reading::Published => UNKNOWN,
    }
}

/// The number of a result, whose words are kept.
#[inline]
pub(crate) fn told(result: Result<(), Failure>) -> c_int {
    match result {
        Ok(()) => Status::Ok.code(),
        Err(failure) => keep(failure),
    }
}

#[cold]
fn keep(failure: Failure) -> c_int {
    note(&failure.words);
    failure.status.code()
}

/// Keeps words for [`isochrone_error`], also of what is no failure: something was left out.
pub(crate) fn note(words: &str) {
    let words = CString::new(words.replace('\0', " ")).unwrap_or_default();
    LAST.with(|last| *last.borrow_mut() = words);
}

/// What went wrong in this thread's last call that failed, and what to do about it.
#[unsafe(no_mangle)]
pub extern "C" fn isochrone_error() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}

/// The version of the library, as in `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn isochrone_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}
