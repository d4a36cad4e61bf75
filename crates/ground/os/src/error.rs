//! What the system refused, as a value that needs no memory: what was tried, the system's word,
//! and what to do about it. It never formats before somebody asks for the text.

use core::fmt;

/// Something that Linux or the CPU refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OsError {
    /// What was tried.
    pub what: &'static str,
    /// The error number that the kernel gave, or the one that says it best.
    pub errno: i32,
    /// What to do next.
    pub advice: &'static str,
}

impl OsError {
    /// A refusal of the kernel.
    pub(crate) const fn new(what: &'static str, errno: i32, advice: &'static str) -> Self {
        Self { what, errno, advice }
    }

    /// A refusal that came through `rustix`.
    pub(crate) const fn of(
        what: &'static str,
        errno: rustix::io::Errno,
        advice: &'static str,
    ) -> Self {
        Self::new(what, errno.raw_os_error(), advice)
    }

    /// Something that this CPU or this kernel cannot do at all.
    pub(crate) const fn unsupported(what: &'static str, advice: &'static str) -> Self {
        Self::new(what, libc::EOPNOTSUPP, advice)
    }

    /// A mistake of the caller's.
    pub(crate) const fn invalid(what: &'static str, advice: &'static str) -> Self {
        Self::new(what, libc::EINVAL, advice)
    }

    /// Whether the CPU or the kernel lacks this altogether, so that trying again is of no use.
    #[must_use]
    pub const fn is_unsupported(&self) -> bool {
        matches!(self.errno, libc::EOPNOTSUPP | libc::ENOSYS)
    }

    /// Whether more rights would help.
    #[must_use]
    pub const fn is_permission(&self) -> bool {
        matches!(self.errno, libc::EPERM | libc::EACCES)
    }

    /// The system's word for [`Self::errno`], or `None` for one that this crate never meets.
    #[must_use]
    pub const fn word(&self) -> Option<&'static str> {
        Some(match self.errno {
            libc::EPERM => "operation not permitted",
            libc::ENOENT => "no such file",
            libc::ESRCH => "no such thread",
            libc::EINTR => "interrupted",
            libc::EIO => "input/output error",
            libc::EAGAIN => "resource temporarily unavailable",
            libc::ENOMEM => "out of memory",
            libc::EACCES => "permission denied",
            libc::EFAULT => "bad address",
            libc::EBUSY => "busy",
            libc::ENODEV => "no such device",
            libc::EINVAL => "invalid argument",
            libc::ENFILE | libc::EMFILE => "too many open files",
            libc::ENOSYS => "not implemented by this kernel",
            libc::EOPNOTSUPP => "not supported",
            _ => return None,
        })
    }
}

impl fmt::Display for OsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.word() {
            Some(word) => write!(f, "{}: {word}; {}", self.what, self.advice),
            None => write!(f, "{}: error {}; {}", self.what, self.errno, self.advice),
        }
    }
}

impl core::error::Error for OsError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn the_text_says_what_why_and_what_next() {
        let error = OsError::new("cannot lock 4 KiB", libc::ENOMEM, "raise the limit (ulimit -l)");
        assert_eq!(
            error.to_string(),
            "cannot lock 4 KiB: out of memory; raise the limit (ulimit -l)"
        );
        let rare = OsError::new("cannot map", 4000, "report it");
        assert_eq!(rare.to_string(), "cannot map: error 4000; report it");
    }

    #[test]
    fn kinds_are_told_apart() {
        assert!(OsError::unsupported("a", "b").is_unsupported());
        assert!(OsError::new("a", libc::EPERM, "b").is_permission());
        let invalid = OsError::invalid("a", "b");
        assert!(!invalid.is_unsupported() && !invalid.is_permission());
    }
}
