//! Memory and files without `malloc`: mappings for tables and thread blocks, a copy of the atlas,
//! the report as a shared file. System calls are made directly, so `errno` stays as it was.
//!
//! What is mapped for a process stays until it ends. Nothing here is ever on a fast path.

use crate::config::PathBytes;
use crate::counters::Counters;
use crate::report::{REPORT_BYTES, REPORT_SUFFIX};
use core::ffi::CStr;
use core::ptr::{self, NonNull};
use isochrone_units::PAGE_BYTES;
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, fstat, ftruncate, open, openat};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous};
use rustix::process::{Resource, getrlimit};

/// Zeroed memory, present where it is touched. Nobody gives it back.
pub(crate) fn zeroed(bytes: usize) -> Option<NonNull<u8>> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    let bytes = bytes.max(1).checked_next_multiple_of(PAGE_BYTES)?;
    // SAFETY: a new range wherever the kernel finds room disturbs nobody.
    let found = unsafe { mmap_anonymous(ptr::null_mut(), bytes, access, flags) };
    NonNull::new(found.ok()?.cast())
}

/// Whether new mappings are locked, and present as a whole at once, since the program wants it so
/// (mlockall(2), `MCL_FUTURE`). Asked by a call that allocators make: a locked mapping cannot be given back.
pub(crate) fn locks_new_mappings() -> bool {
    let Some(place) = zeroed(PAGE_BYTES) else { return false };
    let start = place.as_ptr().cast();
    // SAFETY: a mapping of this function's own that nobody uses.
    let given =
        unsafe { rustix::mm::madvise(start, PAGE_BYTES, rustix::mm::Advice::LinuxDontNeed) };
    // SAFETY: as above; nobody uses it afterwards.
    let _ = unsafe { rustix::mm::munmap(start, PAGE_BYTES) };
    given == Err(rustix::io::Errno::INVAL)
}

/// Reads a small file from its beginning; how many bytes there were, at most `out.len()`. By the
/// calls by which the dynamic linker reads libraries: filters may allow no others.
pub(crate) fn read_file(path: &CStr, out: &mut [u8]) -> Option<usize> {
    fill(&openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?, out)
}

/// Reads until `out` is full or the file ends; how many bytes there were.
fn fill(file: &OwnedFd, out: &mut [u8]) -> Option<usize> {
    let mut filled = 0;
    while filled < out.len() {
        match rustix::io::read(file, out.get_mut(filled..)?) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    Some(filled)
}

/// A whole file of so many bytes at most, as it is now, until the process ends. A copy: what is mapped
/// ends the process when somebody writes the file anew in place.
pub(crate) fn whole_file(path: &CStr, most: usize) -> Option<&'static [u8]> {
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let bytes = usize::try_from(fstat(&file).ok()?.st_size).ok()?;
    if bytes == 0 || bytes > most {
        return None;
    }
    let place = zeroed(bytes)?;
    // SAFETY: so many bytes were mapped, are zero, are never unmapped, and nobody else has them.
    let whole = unsafe { core::slice::from_raw_parts_mut(place.as_ptr(), bytes) };
    let length = fill(&file, whole)?;
    whole.get(..length)
}

/// Gives the memory of a file's copy back. It reads as zeros from now on.
pub(crate) fn give_back(copy: &'static [u8]) {
    let start = copy.as_ptr().cast_mut().cast();
    // SAFETY: `whole_file` has mapped the range for this alone, privately and of no file; whoever reads it later reads
    // zeros, and nobody has a reference that relies on more. Nothing happens where it is refused.
    let _ = unsafe { rustix::mm::madvise(start, copy.len(), rustix::mm::Advice::LinuxDontNeed) };
}

/// A new report in a folder, shared with whoever reads the file. Its name holds process and time,
/// since a process that replaces itself by `exec` keeps its number. None where the process may make no file so long:
/// it would be sent a signal that ends it (setrlimit(2), `RLIMIT_FSIZE`).
pub(crate) fn map_report(folder: &PathBytes, process: u32, time: u64) -> Option<&'static Counters> {
    if getrlimit(Resource::Fsize).current.is_some_and(|most| most < REPORT_BYTES as u64) {
        return None;
    }
    let mut path = Path::new(folder.as_bytes());
    path.push(b"/");
    path.push_number(u64::from(process), 10);
    path.push(b"-");
    path.push_number(time, 16);
    path.push(REPORT_SUFFIX.as_bytes());
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = open(path.as_c_str()?, flags, Mode::RUSR | Mode::WUSR).ok()?;
    share(&file)
}

/// The first `bytes` of a file that other processes have mapped too. `None` where it is shorter.
/// It must not be cut short, and is never unmapped.
pub(crate) fn map_shared(path: &CStr, bytes: usize) -> Option<NonNull<u8>> {
    let file = open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let length = usize::try_from(fstat(&file).ok()?.st_size).ok()?;
    if length < bytes { None } else { shared(&file, bytes) }
}

fn shared(file: &OwnedFd, bytes: usize) -> Option<NonNull<u8>> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new range wherever the kernel finds room disturbs nobody.
    let found = unsafe { mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, file, 0) };
    NonNull::new(found.ok()?.cast())
}

fn share(file: &OwnedFd) -> Option<&'static Counters> {
    ftruncate(file, REPORT_BYTES as u64).ok()?;
    let counters = shared(file, REPORT_BYTES)?.cast::<Counters>();
    // SAFETY: the range is page-aligned, as large as the record, zeroed by the kernel, never
    // unmapped, and touched through atomics only.
    Some(unsafe { counters.as_ref() })
}

/// A path that is put together on the stack.
struct Path {
    bytes: [u8; 4096],
    length: usize,
    fits: bool,
}

impl Path {
    fn new(start: &[u8]) -> Self {
        let mut path = Self { bytes: [0; 4096], length: 0, fits: true };
        path.push(start);
        path
    }

    fn push(&mut self, part: &[u8]) {
        // One byte is left for the terminating zero.
        let last = self.bytes.len() - 1;
        match self.bytes[..last].get_mut(self.length..self.length + part.len()) {
            Some(place) => {
                place.copy_from_slice(part);
                self.length += part.len();
            }
            None => self.fits = false,
        }
    }

    fn push_number(&mut self, mut number: u64, base: u64) {
        let mut digits = [0; 64];
        let mut first = digits.len();
        loop {
            let digit = (number % base).to_le_bytes()[0];
            first -= 1;
            digits[first] = if digit < 10 { b'0' + digit } else { b'a' + digit - 10 };
            number /= base;
            if number == 0 {
                break;
            }
        }
        self.push(&digits[first..]);
    }

    fn as_c_str(&self) -> Option<&CStr> {
        if !self.fits {
            return None;
        }
        CStr::from_bytes_until_nul(&self.bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Report, Tally};
    extern crate std;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn a_report_is_in_its_file_while_it_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = PathBytes::new(folder.path().as_os_str().as_bytes()).expect("short");
        let counters = map_report(&path, 4321, 0xabc).expect("a new file");
        counters.begin(4321, isochrone_alloc::Mode::Aware, 7);
        counters.placed(0, Tally { objects: 1, bytes: 16 });
        let file = folder.path().join("4321-abc.isochrone-report");
        let report = Report::from_bytes(&std::fs::read(file).expect("written")).expect("a record");
        assert_eq!(report, counters.snapshot());
        assert!(map_report(&path, 4321, 0xabc).is_none(), "a report replaces no other");
        let nowhere = PathBytes::new(b"/nonexistent/folder").expect("short");
        assert!(map_report(&nowhere, 1, 1).is_none());
    }

    #[test]
    fn files_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        std::fs::write(&path, b"some bytes").expect("writable");
        let path = CString::new(path.as_os_str().as_bytes()).expect("no zero");
        let mut out = [0; 4];
        assert_eq!(read_file(&path, &mut out), Some(4));
        assert_eq!(&out, b"some");
        assert_eq!(whole_file(&path, 10), Some(b"some bytes".as_slice()));
        assert_eq!(whole_file(&path, 9), None);
        assert_eq!(whole_file(c"/nonexistent", 10), None);
        assert_eq!(read_file(c"/nonexistent", &mut out), None);
    }

    #[test]
    fn memory_comes_zeroed() {
        let start = zeroed(10_000).expect("memory");
        // SAFETY: so many bytes were just mapped and are initialised.
        let bytes = unsafe { core::slice::from_raw_parts(start.as_ptr(), 10_000) };
        assert!(bytes.iter().all(|&byte| byte == 0));
    }

    #[test]
    fn a_path_that_does_not_fit_is_none() {
        let mut path = Path::new(&[b'a'; 4000]);
        assert!(path.as_c_str().is_some());
        path.push_number(u64::MAX, 16);
        path.push(&[b'b'; 100]);
        assert!(path.as_c_str().is_none());
    }
}
