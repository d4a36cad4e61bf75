//! Numbers in memory that somebody else may take away and bring back: the kernel, for ordinary memory or a file
//! that is mapped, or another pager. For runs beside a pager of our own.

use core::ffi::c_void;
use core::ptr::{self, NonNull};

use rustix::fd::AsFd;
use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::error::OsError;
use crate::library::Library;

/// Zeros at first, or what the file holds.
#[derive(Debug)]
pub struct Doubles {
    base: NonNull<f64>,
    count: usize,
    /// Unmapped in the end.
    ours: bool,
}

// SAFETY: the memory belongs to the value, not to a thread, and any thread may use and unmap it.
unsafe impl Send for Doubles {}

const HELP: &str = "ask for less memory";

impl Doubles {
    /// Ordinary memory in small pages.
    ///
    /// # Errors
    /// [`OsError`] where there is no such room.
    pub fn anonymous(count: usize) -> Result<Self, OsError> {
        let bytes = Self::bytes(count)?;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory in use.
        let base = unsafe {
            let rw = ProtFlags::READ | ProtFlags::WRITE;
            rustix::mm::mmap_anonymous(ptr::null_mut(), bytes, rw, MapFlags::PRIVATE)
        };
        Self::mapped(base, count)
    }

    /// The numbers of a file, which has at least so many; what is written goes back to it.
    ///
    /// # Errors
    /// [`OsError`] where it cannot be mapped.
    pub fn of_file(file: &impl AsFd, count: usize) -> Result<Self, OsError> {
        let bytes = Self::bytes(count)?;
        let held = rustix::fs::fstat(file)
            .is_ok_and(|stat| usize::try_from(stat.st_size).is_ok_and(|size| size >= bytes));
        if !held {
            return Err(OsError::invalid("cannot map a file that is too short", "make it longer"));
        }
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory in use.
        let base = unsafe {
            let rw = ProtFlags::READ | ProtFlags::WRITE;
            rustix::mm::mmap(ptr::null_mut(), bytes, rw, MapFlags::SHARED, file, 0)
        };
        Self::mapped(base, count)
    }

    /// Memory that another pager gives: what `void *isochrone_map(size_t bytes)` of its library returns, which is
    /// zeros, page-aligned, of so many bytes, and stays until the process ends.
    ///
    /// # Errors
    /// [`OsError`] where the library has no such function, or there is no such room.
    pub fn of_library(library: Library, count: usize) -> Result<Self, OsError> {
        type Map = extern "C" fn(usize) -> *mut c_void;
        let bytes = Self::bytes(count)?;
        let found = library.symbol(c"isochrone_map");
        let found = found
            .ok_or(OsError::invalid("the library has no isochrone_map", "build it from ours"))?;
        // SAFETY: who names the library says that its function is of this type.
        let map = unsafe { core::mem::transmute::<NonNull<c_void>, Map>(found) };
        let base = NonNull::new(map(bytes).cast::<f64>());
        let base = base.filter(|base| base.is_aligned());
        let base = base.ok_or(OsError::invalid("the other pager has no memory", HELP))?;
        Ok(Self { base, count, ours: false })
    }

    fn bytes(count: usize) -> Result<usize, OsError> {
        let bytes = count.checked_mul(size_of::<f64>()).filter(|bytes| *bytes > 0);
        bytes.ok_or(OsError::invalid("cannot map nothing, or more than there are addresses", HELP))
    }

    fn mapped(base: Result<*mut c_void, rustix::io::Errno>, count: usize) -> Result<Self, OsError> {
        let base = base.map_err(|errno| OsError::of("cannot map memory", errno, HELP))?;
        let base = NonNull::new(base.cast::<f64>())
            .ok_or(OsError::invalid("the kernel mapped address 0", HELP))?;
        let mapped = Self { base, count, ours: true };
        // SAFETY: the range is this value's own mapping; huge pages are only declined.
        let _ = unsafe {
            rustix::mm::madvise(base.as_ptr().cast(), mapped.len_bytes(), Advice::LinuxNoHugepage)
        };
        Ok(mapped)
    }

    const fn len_bytes(&self) -> usize {
        self.count * size_of::<f64>()
    }

    /// All of them.
    pub fn as_mut_slice(&mut self) -> &mut [f64] {
        // SAFETY: the memory is readable and writable, aligned, as long as `count` numbers and lives
        // as long as the value; every pattern of bits is a number; the slice borrows the value alone.
        unsafe { core::slice::from_raw_parts_mut(self.base.as_ptr(), self.count) }
    }
}

impl Drop for Doubles {
    fn drop(&mut self) {
        if !self.ours {
            return;
        }
        // SAFETY: the range is this value's own mapping, and no slice of it lives any more.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len_bytes()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_kept_in_memory_and_in_a_file() {
        let mut memory = Doubles::anonymous(1000).unwrap();
        memory.as_mut_slice()[999] = 2.5;
        assert_eq!((memory.as_mut_slice()[999], memory.as_mut_slice()[0]), (2.5, 0.0));
        let file = rustix::fs::memfd_create(c"numbers", rustix::fs::MemfdFlags::CLOEXEC);
        let file = std::fs::File::from(file.unwrap());
        file.set_len(8000).unwrap();
        Doubles::of_file(&file, 1000).unwrap().as_mut_slice()[7] = 4.0;
        assert_eq!(Doubles::of_file(&file, 1000).unwrap().as_mut_slice()[7], 4.0);
        assert!(Doubles::of_file(&file, 1001).is_err(), "the file is too short");
        assert!(Doubles::anonymous(0).is_err());
    }

    #[test]
    fn a_library_without_the_function_has_no_memory() {
        let libc = Library::open(c"libc.so.6").unwrap();
        assert!(Doubles::of_library(libc, 1000).is_err());
    }
}
