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

    /// The system's word for [`Self::errno`], or `None` where [`word`] has none.
    #[must_use]
    pub const fn word(&self) -> Option<&'static str> {
        word(self.errno)
    }
}

/// The system's word for an error number: of those that the kernel gives where files are opened, written and read,
/// memory is mapped, and threads are started; `None` for others.
///
/// The C library's own words are those of the program's language, for which it may allocate; here nothing does.
#[must_use]
pub const fn word(errno: i32) -> Option<&'static str> {
    Some(match errno {
        libc::EPERM => "operation not permitted",
        libc::ENOENT => "no such file",
        libc::ESRCH => "no such thread",
        libc::EINTR => "interrupted",
        libc::EIO => "input/output error",
        libc::ENXIO => "no such device or address",
        libc::EBADF => "not open",
        libc::EAGAIN => "resource temporarily unavailable",
        libc::ENOMEM => "out of memory",
        libc::EACCES => "permission denied",
        libc::EFAULT => "bad address",
        libc::EBUSY => "busy",
        libc::EEXIST => "exists already",
        libc::EXDEV => "on another file system",
        libc::ENODEV => "no such device",
        libc::ENOTDIR => "not a folder",
        libc::EISDIR => "a folder",
        libc::EINVAL => "invalid argument",
        libc::ENFILE | libc::EMFILE => "too many open files",
        libc::ENOTTY => "not a request for this device",
        libc::ETXTBSY => "a program that runs",
        libc::EFBIG => "file too large",
        libc::ENOSPC => "no space left on device",
        libc::ESPIPE => "not a file with places",
        libc::EROFS => "read-only file system",
        libc::EMLINK => "too many links",
        libc::EPIPE => "nobody reads it",
        libc::EDEADLK => "a wait without end",
        libc::ENAMETOOLONG => "name too long",
        libc::ENOLCK => "no locks available",
        libc::ENOSYS => "not implemented by this kernel",
        libc::ELOOP => "too many symbolic links",
        libc::EPROTO => "protocol error",
        libc::EBADMSG => "the medium's checksum is wrong",
        libc::EOVERFLOW => "value too large",
        libc::EOPNOTSUPP => "not supported",
        libc::ENOBUFS => "no buffer space available",
        libc::ENOTCONN => "not connected",
        libc::ESHUTDOWN => "shut down",
        libc::ETIMEDOUT => "timed out",
        libc::EHOSTDOWN | libc::EHOSTUNREACH => "the host cannot be reached",
        libc::ESTALE => "stale file handle",
        libc::EUCLEAN => "damaged content",
        libc::EREMOTEIO => "remote input/output error",
        libc::EDQUOT => "disk quota exceeded",
        libc::ENOMEDIUM => "no medium found",
        libc::ECANCELED => "cancelled",
        libc::ENOKEY => "required key not available",
        libc::EHWPOISON => "memory with a hardware error",
        _ => return None,
    })
}

/// An error number as text: its [`word`], or else the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match word(self.0) {
            Some(word) => f.write_str(word),
            None => write!(f, "error {}", self.0),
        }
    }
}

impl fmt::Display for OsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.what, Errno(self.errno), self.advice)
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

    /// What open(2), write(2), fallocate(2), fsync(2), mmap(2), madvise(2), mprotect(2), clone(2), memfd_create(2) and
    /// ioctl_userfaultfd(2) say that they return, and what network and encrypted file systems give beside.
    #[test]
    fn what_the_kernel_may_say_has_a_word() {
        for errno in [
            libc::EACCES,
            libc::EAGAIN,
            libc::EBADF,
            libc::EBUSY,
            libc::EDQUOT,
            libc::EEXIST,
            libc::EFAULT,
            libc::EFBIG,
            libc::EINTR,
            libc::EINVAL,
            libc::EIO,
            libc::EISDIR,
            libc::ELOOP,
            libc::EMFILE,
            libc::ENAMETOOLONG,
            libc::ENFILE,
            libc::ENODEV,
            libc::ENOENT,
            libc::ENOMEM,
            libc::ENOSPC,
            libc::ENOSYS,
            libc::ENOTDIR,
            libc::ENOTTY,
            libc::ENXIO,
            libc::EOPNOTSUPP,
            libc::EOVERFLOW,
            libc::EPERM,
            libc::EPIPE,
            libc::EROFS,
            libc::ESPIPE,
            libc::ESRCH,
            libc::ETXTBSY,
            libc::EXDEV,
            libc::EHWPOISON,
            libc::ESTALE,
            libc::ETIMEDOUT,
            libc::EREMOTEIO,
            libc::EUCLEAN,
            libc::EBADMSG,
            libc::ENOKEY,
            libc::ENOTCONN,
        ] {
            assert!(word(errno).is_some(), "{}", std::io::Error::from_raw_os_error(errno));
        }
        assert_eq!(word(0), None, "no error");
    }

    #[test]
    fn kinds_are_told_apart() {
        assert!(OsError::unsupported("a", "b").is_unsupported());
        assert!(OsError::new("a", libc::EPERM, "b").is_permission());
        let invalid = OsError::invalid("a", "b");
        assert!(!invalid.is_unsupported() && !invalid.is_permission());
    }
}
