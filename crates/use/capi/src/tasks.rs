//! Tasks that wait for one another by the bytes that they read and write: what the files of this part share.

pub mod describe;
pub mod kernels;
pub mod options;
pub mod run;
pub mod submit;
pub mod task;
mod user;

use crate::status::{Failure, Status};
use isochrone_tasks::TaskError;
use std::ffi::{CStr, c_char};

/// Linux's `ENOMEM`.
const NO_MEMORY: i32 = 12;

impl From<TaskError> for Failure {
    fn from(error: TaskError) -> Self {
        let status = match &error {
            TaskError::Failed { .. } | TaskError::Undone { .. } => Status::Failed,
            TaskError::Cancelled => Status::Cancelled,
            TaskError::Deadlock { .. } => Status::Deadlock,
            TaskError::WorkerDied { .. } => Status::Gone,
            TaskError::TooDeep | TaskError::TooManyData => Status::Memory,
            TaskError::System(os) if os.errno == NO_MEMORY => Status::Memory,
            TaskError::System(_) => Status::System,
            _ => Status::Argument,
        };
        Self { status, words: error.to_string() }
    }
}

fn null(what: &str) -> Failure {
    Failure::argument(format!("{what} is a null pointer"))
}

/// # Safety
/// `text` is null or a string of C.
unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller vouches for it.
    let text = unsafe { CStr::from_ptr(text) }.to_str();
    text.map(Some).map_err(|_| Failure::argument(format!("the name of the {what} is no UTF-8")))
}

/// # Safety
/// Null, or points to `count` values.
unsafe fn slice<'a, T>(first: *const T, count: usize, what: &str) -> Result<&'a [T], Failure> {
    match count {
        0 => Ok(&[]),
        _ if first.is_null() => Err(null(what)),
        // No array is longer, so that counts below zero in C are not taken for one.
        _ if count > isize::MAX.unsigned_abs() / size_of::<T>().max(1) => {
            Err(Failure::argument(format!("{count} {what}: more than there are addresses")))
        }
        // SAFETY: the caller vouches for it.
        _ => Ok(unsafe { std::slice::from_raw_parts(first, count) }),
    }
}
