//! What the kernel says of the process when the library is loaded: `/proc/self/status`, read once.

use crate::memory;

/// Room for the text, bytes; it grows with the groups that the user is in.
const STATUS_BYTES: usize = 16_384;

/// What of it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    /// Filters of system calls; `None` where the kernel does not count those that there are.
    pub(crate) filters: Option<u32>,
    /// Another process has it under ptrace(2), as debuggers do.
    pub(crate) is_traced: bool,
}

impl Status {
    /// That of this process; `None` without `/proc`.
    pub(crate) fn of_process() -> Option<Self> {
        let mut status = [0; STATUS_BYTES];
        let length = memory::read_file(c"/proc/self/status", &mut status)?;
        Some(Self::of(status.get(..length).filter(|status| status.len() < STATUS_BYTES)?))
    }

    /// The same, from the text of that file.
    fn of(status: &[u8]) -> Self {
        // A kernel without filters has no such line.
        let filters = match field(status, b"Seccomp:").map_or(Some(0), number) {
            Some(0) => Some(0),
            Some(2) => field(status, b"Seccomp_filters:").and_then(number),
            _ => None,
        };
        Self { filters, is_traced: field(status, b"TracerPid:").and_then(number) != Some(0) }
    }
}

fn field<'a>(status: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    status.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(name))
}

fn number(text: &[u8]) -> Option<u32> {
    core::str::from_utf8(text).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_counted_where_the_kernel_says() {
        let filters = |text: &[u8]| Status::of(text).filters;
        assert_eq!(filters(b"Name:\ta\nSeccomp:\t0\nSeccomp_filters:\t0\n"), Some(0));
        assert_eq!(filters(b"Name:\ta\nSeccomp:\t2\nSeccomp_filters:\t3\n"), Some(3));
        assert_eq!(filters(b"Name:\ta\nSeccomp:\t2\n"), None);
        assert_eq!(filters(b"Name:\ta\nSeccomp:\t1\nSeccomp_filters:\t0\n"), None);
        assert_eq!(filters(b"Name:\ta\n"), Some(0));
        let here = Status::of_process().expect("/proc is mounted here");
        assert!(here.filters.is_some());
    }

    #[test]
    fn who_is_not_said_to_be_untraced_may_be_traced() {
        let is_traced = |text: &[u8]| Status::of(text).is_traced;
        assert!(!is_traced(b"Name:\ta\nTracerPid:\t0\nUid:\t0\t0\t0\t0\n"));
        assert!(is_traced(b"Name:\ta\nTracerPid:\t41\nUid:\t0\t0\t0\t0\n"));
        assert!(is_traced(b"Name:\ta\n"));
    }
}
