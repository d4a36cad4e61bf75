//! Buffers in the memory of a device, which only its own library, and an MPI that knows it, may touch.
//!
//! A process that has no such library pays a look at a coarse clock for each call. Whether one was loaded since is
//! looked at once in each of its steps (1 to 10 ms): no library sets up a device and hands out memory of it within one.
//! With a library each buffer is asked for anew, since an address may be another memory's by then.

use crate::abi::Buffer;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// `cuPointerGetAttribute` of `libcuda.so.1`: answers into a place what it is asked of an address.
type CudaAsk = unsafe extern "C" fn(*mut c_void, c_int, u64) -> c_int;
/// `hipPointerGetAttributes` of `libamdhip64.so`: answers all that it knows of an address.
type HipAsk = unsafe extern "C" fn(*mut c_void, *const c_void) -> c_int;

/// `CU_POINTER_ATTRIBUTE_MEMORY_TYPE` (cuda.h).
const MEMORY_TYPE: c_int = 2;
/// `CU_MEMORYTYPE_DEVICE` (cuda.h).
const ON_DEVICE: c_uint = 2;

/// A library that hands out memory of devices, and whom to ask there.
struct Library {
    name: &'static [u8],
    function: &'static CStr,
    found: AtomicPtr<c_void>,
}

static CUDA: Library = Library::new(b"libcuda.so", c"cuPointerGetAttribute");
static HIP: Library = Library::new(b"libamdhip64.so", c"hipPointerGetAttributes");
/// The coarse time of the last look.
static LOOKED: AtomicU64 = AtomicU64::new(u64::MAX);
/// How many libraries had been loaded then.
static LOADED: AtomicU64 = AtomicU64::new(0);
/// Whether one of those above is there.
static ANY: AtomicBool = AtomicBool::new(false);

/// Whether this process has a library that hands out memory of devices.
#[inline]
pub(crate) fn any() -> bool {
    let now = coarse_ns();
    if LOOKED.load(Ordering::Relaxed) != now {
        look(now);
    }
    // Partner: `look`.
    ANY.load(Ordering::Acquire)
}

/// Whether a buffer is memory of a device.
#[cold]
pub(crate) fn has(buffer: Buffer) -> bool {
    CUDA.says(buffer, by_cuda) || HIP.says(buffer, by_hip)
}

impl Library {
    const fn new(name: &'static [u8], function: &'static CStr) -> Self {
        Self { name, function, found: AtomicPtr::new(std::ptr::null_mut()) }
    }

    fn says(&self, buffer: Buffer, ask: fn(*mut c_void, Buffer) -> bool) -> bool {
        let found = self.found.load(Ordering::Acquire);
        !(found.is_null() || buffer.is_null()) && ask(found, buffer)
    }

    /// Whether the library in this file is it.
    fn is_in(&self, path: &[u8]) -> bool {
        path.rsplit(|&byte| byte == b'/').next().is_some_and(|file| file.starts_with(self.name))
    }

    /// Finds the function, in a library that is loaded; it stays so from now on.
    fn find(&self, path: &CStr) {
        // SAFETY: a C string; nothing is loaded that is not.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if library.is_null() {
            return;
        }
        // SAFETY: the handle of a library, and a C string.
        let function = unsafe { libc::dlsym(library, self.function.as_ptr()) };
        self.found.store(function, Ordering::Release);
        if !function.is_null() {
            // Partner: `any`.
            ANY.store(true, Ordering::Release);
        }
    }
}

fn by_cuda(function: *mut c_void, buffer: Buffer) -> bool {
    // SAFETY: a function of this name is of this type in every version of CUDA since 4.0, and was found.
    let Some(ask) = (unsafe { std::mem::transmute::<*mut c_void, Option<CudaAsk>>(function) })
    else {
        return false;
    };
    let mut kind: c_uint = 0;
    let address = buffer.addr() as u64;
    // SAFETY: any address may be asked about, and the answer is an unsigned int, for which there is room.
    let failed = unsafe { ask((&raw mut kind).cast(), MEMORY_TYPE, address) };
    failed == 0 && kind == ON_DEVICE
}

fn by_hip(function: *mut c_void, buffer: Buffer) -> bool {
    // SAFETY: a function of this name is of this type in every version of HIP, and was found.
    let Some(ask) = (unsafe { std::mem::transmute::<*mut c_void, Option<HipAsk>>(function) })
    else {
        return false;
    };
    // The numbers of kinds changed with version 6. In all versions the second word is the address for devices, and the
    // third that for the host, which memory of a device does not have.
    let mut answer = [0_usize; 32];
    // SAFETY: any address may be asked about, and there is more room than any version answers.
    let failed = unsafe { ask(answer.as_mut_ptr().cast(), buffer.cast_const()) };
    failed == 0 && answer[1] != 0 && answer[2] == 0
}

/// The time of the clock that goes by steps, ns.
#[inline]
fn coarse_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: room for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut time) };
    // Each by itself: read as one of 16 bytes they would wait for the two stores that have just been made.
    let (seconds, ns) = (time.tv_sec.cast_unsigned(), time.tv_nsec.cast_unsigned());
    seconds.wrapping_mul(1_000_000_000).wrapping_add(ns)
}

/// What is heard of the libraries of this process.
#[derive(Default)]
struct Heard {
    /// How many were loaded ever.
    loaded: u64,
    /// Files of those that are asked for.
    files: Vec<CString>,
}

/// Looks which libraries there are, if that changed since the last look.
#[cold]
fn look(now: u64) {
    let mut heard = Heard::default();
    // SAFETY: the function takes what it is given here, and the place lives as long as the call.
    unsafe { libc::dl_iterate_phdr(Some(hear), (&raw mut heard).cast()) };
    for library in [&CUDA, &HIP] {
        if !library.found.load(Ordering::Relaxed).is_null() {
            continue;
        }
        let files = heard.files.iter().filter(|file| library.is_in(file.to_bytes()));
        files.for_each(|file| library.find(file));
    }
    LOADED.store(heard.loaded, Ordering::Relaxed);
    LOOKED.store(now, Ordering::Relaxed);
}

/// One library of this process. Ends the look at the first one where none was loaded since the last.
unsafe extern "C" fn hear(one: *mut libc::dl_phdr_info, _size: usize, heard: *mut c_void) -> c_int {
    // SAFETY: `look` passes a place that nobody else uses meanwhile.
    let heard = unsafe { &mut *heard.cast::<Heard>() };
    // SAFETY: the system passes what it knows of a library.
    let one = unsafe { &*one };
    heard.loaded = one.dlpi_adds;
    if heard.loaded == LOADED.load(Ordering::Relaxed) {
        return 1;
    }
    let name: *const c_char = one.dlpi_name;
    if name.is_null() {
        return 0;
    }
    // SAFETY: a C string that lives as long as the library is loaded, which it is during this call.
    let name = unsafe { CStr::from_ptr(name) };
    if [&CUDA, &HIP].iter().any(|library| library.is_in(name.to_bytes())) {
        heard.files.push(name.to_owned());
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_known_by_its_file() {
        for path in [&b"/usr/lib/libcuda.so.1"[..], b"libcuda.so.550.54", b"/x/libcuda.so"] {
            assert!(CUDA.is_in(path) && !HIP.is_in(path));
        }
        for path in [&b"/usr/lib/libcudart.so.12"[..], b"", b"/libcuda.so/other.so", b"libc.so.6"] {
            assert!(!CUDA.is_in(path));
        }
        assert!(HIP.is_in(b"/opt/rocm/lib/libamdhip64.so.6"));
    }

    #[test]
    fn a_process_without_such_a_library_has_none() {
        assert!(!any());
        assert_ne!(LOADED.load(Ordering::Relaxed), 0, "libraries were counted");
        let mut ordinary = [0_u8; 1];
        assert!(!has(ordinary.as_mut_ptr().cast()));
    }
}
