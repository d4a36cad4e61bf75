//! `libisochrone_malloc.so`: the malloc family under the names that programs call, and functions that are
//! called as they were after the allocator was told: those by which programs install filters of system
//! calls or bind threads, and the one that loads libraries, without a flag that would keep these from the
//! same allocator. Load it with `LD_PRELOAD`; `isochrone run` does, and tells it what to do.
//!
//! It is thin on purpose: everything is `isochrone-malloc`'s, which is tested without interposing
//! the test itself. It reads one environment variable, neither allocates by `malloc` nor logs nor
//! unwinds, and without the variable every call goes straight to the next allocator.

#![no_std]
// Functions with the names and contracts of C can be nothing else.
#![allow(unsafe_code)]

#[cfg(not(target_env = "gnu"))]
compile_error!("the replacement of malloc stands on glibc; elsewhere use isochrone-malloc's types");

use core::arch::naked_asm;
use core::ffi::{c_char, c_int, c_long, c_ulong, c_void};
use isochrone_malloc::environment::variable;
use isochrone_malloc::links::{self, Name};
use isochrone_malloc::{CONFIG_VARIABLE, abi, affinity, code, filters, front, loading};

/// Run by the dynamic linker when the library is loaded; glibc hands the environment over.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = begin;

/// Run when the process ends by `exit`.
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

extern "C" fn begin(_: c_int, _: *const *const c_char, environment: *const *const c_char) {
    // SAFETY: glibc passes the environment to constructors (csu/init-first.c, elf/dl-init.c).
    isochrone_malloc::begin(unsafe { variable(environment, CONFIG_VARIABLE) });
    links::loaded(&[
        (Name::Malloc, (&raw const at::MALLOC).cast()),
        (Name::Calloc, (&raw const at::CALLOC).cast()),
        (Name::Realloc, (&raw const at::REALLOC).cast()),
        (Name::Free, (&raw const at::FREE).cast()),
        (Name::Free, (&raw const at::CFREE).cast()),
        (Name::Free, (&raw const at::FREE_SIZED).cast()),
        (Name::Free, (&raw const at::FREE_ALIGNED_SIZED).cast()),
        (Name::Memalign, (&raw const at::MEMALIGN).cast()),
        (Name::AlignedAlloc, (&raw const at::ALIGNED_ALLOC).cast()),
        (Name::Valloc, (&raw const at::VALLOC).cast()),
        (Name::Pvalloc, (&raw const at::PVALLOC).cast()),
    ]);
    affinity::resolve();
    let between = |start: *const u8, end: *const u8| start.addr()..end.addr();
    let whole = between(&raw const __ehdr_start, &raw const etext);
    let called = between(&raw const __start_isochrone_called, &raw const __stop_isochrone_called);
    // SAFETY: the linker defines all four in the library's own file, of which nothing before the end of the code is
    // ever written: relocations lie behind it (`-z text`, the linker's default).
    unsafe { code::loaded(&whole, &called) };
}

unsafe extern "C" {
    /// The first byte of the library's file, as it is mapped.
    static __ehdr_start: u8;
    /// What follows the last byte of its code.
    static etext: u8;
    /// The functions that programs call, which have a section of their own.
    static __start_isochrone_called: u8;
    /// What follows them.
    static __stop_isochrone_called: u8;
}

extern "C" fn end() {
    isochrone_malloc::end();
}

/// The functions that lead somewhere: one jump through a word of the allocator's, with all arguments as they came.
macro_rules! led_on {
    ($($(#[$words:meta])* $name:ident by $entry:ident: ($($argument:ident: $of:ty),*) $(-> $gives:ty)?;)*) => {$(
        $(#[$words])*
        ///
        /// # Safety
        /// As in C.
        #[cfg(target_arch = "x86_64")]
        #[unsafe(no_mangle)]
        #[unsafe(link_section = "isochrone_called")]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name($($argument: $of),*) $(-> $gives)? {
            naked_asm!(
                concat!(".globl isochrone_at_", stringify!($name)),
                concat!(".hidden isochrone_at_", stringify!($name)),
                concat!("isochrone_at_", stringify!($name), ":"),
                "jmp qword ptr [rip + {entry}]",
                entry = sym front::$entry,
            )
        }

        $(#[$words])*
        ///
        /// # Safety
        /// As in C.
        #[cfg(target_arch = "aarch64")]
        #[unsafe(no_mangle)]
        #[unsafe(link_section = "isochrone_called")]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name($($argument: $of),*) $(-> $gives)? {
            naked_asm!(
                concat!(".globl isochrone_at_", stringify!($name)),
                concat!(".hidden isochrone_at_", stringify!($name)),
                concat!("isochrone_at_", stringify!($name), ":"),
                "adrp x16, {entry}",
                "ldr x16, [x16, :lo12:{entry}]",
                "br x16",
                entry = sym front::$entry,
            )
        }
    )*};
}

/// Where these functions lie in this library: under their own names lies whatever was loaded first.
mod at {
    unsafe extern "C" {
        #[link_name = "isochrone_at_malloc"]
        pub(super) static MALLOC: u8;
        #[link_name = "isochrone_at_calloc"]
        pub(super) static CALLOC: u8;
        #[link_name = "isochrone_at_realloc"]
        pub(super) static REALLOC: u8;
        #[link_name = "isochrone_at_free"]
        pub(super) static FREE: u8;
        #[link_name = "isochrone_at_cfree"]
        pub(super) static CFREE: u8;
        #[link_name = "isochrone_at_free_sized"]
        pub(super) static FREE_SIZED: u8;
        #[link_name = "isochrone_at_free_aligned_sized"]
        pub(super) static FREE_ALIGNED_SIZED: u8;
        #[link_name = "isochrone_at_memalign"]
        pub(super) static MEMALIGN: u8;
        #[link_name = "isochrone_at_aligned_alloc"]
        pub(super) static ALIGNED_ALLOC: u8;
        #[link_name = "isochrone_at_valloc"]
        pub(super) static VALLOC: u8;
        #[link_name = "isochrone_at_pvalloc"]
        pub(super) static PVALLOC: u8;
    }
}

led_on! {
    /// `malloc(3)`.
    malloc by MALLOC: (_size: usize) -> *mut c_void;
    /// `calloc(3)`.
    calloc by CALLOC: (_count: usize, _size: usize) -> *mut c_void;
    /// `realloc(3)`.
    realloc by REALLOC: (_old: *mut c_void, _size: usize) -> *mut c_void;
    /// `free(3)`.
    free by FREE: (_old: *mut c_void);
    /// `cfree`, an old name of `free` that old programs still call.
    cfree by FREE: (_old: *mut c_void);
    /// `__libc_free`, by which programs with a `free` of their own go on: they may free by it what another function of
    /// the family gave.
    __libc_free by FREE: (_old: *mut c_void);
    /// `__libc_realloc`, likewise.
    __libc_realloc by REALLOC: (_old: *mut c_void, _size: usize) -> *mut c_void;
    /// `free_sized` of C23.
    free_sized by FREE: (_old: *mut c_void, _size: usize);
    /// `free_aligned_sized` of C23.
    free_aligned_sized by FREE: (_old: *mut c_void, _align: usize, _size: usize);
    /// `memalign(3)`.
    memalign by MEMALIGN: (_align: usize, _size: usize) -> *mut c_void;
    /// `aligned_alloc(3)`.
    aligned_alloc by ALIGNED_ALLOC: (_align: usize, _size: usize) -> *mut c_void;
    /// `valloc(3)`.
    valloc by VALLOC: (_size: usize) -> *mut c_void;
    /// `pvalloc(3)`.
    pvalloc by PVALLOC: (_size: usize) -> *mut c_void;
}

/// `posix_memalign(3)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
#[unsafe(link_section = "isochrone_called")]
pub unsafe extern "C" fn posix_memalign(out: *mut *mut c_void, align: usize, size: usize) -> c_int {
    // SAFETY: the caller's contract is the same.
    unsafe { abi::posix_memalign(out, align, size) }
}

/// `reallocarray(3)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
#[unsafe(link_section = "isochrone_called")]
pub unsafe extern "C" fn reallocarray(old: *mut c_void, count: usize, size: usize) -> *mut c_void {
    // SAFETY: the caller's contract is the same.
    unsafe { abi::reallocarray(old, count, size) }
}

/// `malloc_usable_size(3)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
#[unsafe(link_section = "isochrone_called")]
pub unsafe extern "C" fn malloc_usable_size(old: *mut c_void) -> usize {
    // SAFETY: the caller's contract is the same.
    unsafe { abi::malloc_usable_size(old) }
}

/// `prctl(2)`, with the four arguments that the kernel takes, whatever was passed.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
#[unsafe(link_section = "isochrone_called")]
pub unsafe extern "C" fn prctl(option: c_int, a: usize, b: usize, c: usize, d: usize) -> c_int {
    // SAFETY: the caller's contract is the same.
    unsafe { filters::prctl(option, [a, b, c, d]) }
}

/// `sched_setaffinity(2)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
#[unsafe(link_section = "isochrone_called")]
pub unsafe extern "C" fn sched_setaffinity(
    thread: c_int,
    bytes: usize,
    cores: *const c_void,
) -> c_int {
    // SAFETY: the caller's contract is the same.
    unsafe { affinity::sched_setaffinity(thread, bytes, cores) }
}

/// `pthread_setaffinity_np(3)`; a thread's name is a machine word on Linux.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
#[unsafe(link_section = "isochrone_called")]
pub unsafe extern "C" fn pthread_setaffinity_np(
    thread: c_ulong,
    bytes: usize,
    cores: *const c_void,
) -> c_int {
    // SAFETY: the caller's contract is the same.
    unsafe { affinity::pthread_setaffinity_np(thread, bytes, cores) }
}

/// `pthread_attr_setaffinity_np(3)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
#[unsafe(link_section = "isochrone_called")]
pub unsafe extern "C" fn pthread_attr_setaffinity_np(
    attributes: *mut c_void,
    bytes: usize,
    cores: *const c_void,
) -> c_int {
    // SAFETY: the caller's contract is the same.
    unsafe { affinity::pthread_attr_setaffinity_np(attributes, bytes, cores) }
}

/// What is looked at before `syscall(2)`; gives the C library's function.
extern "C" fn before_syscall(
    number: c_long,
    first: usize,
    second: usize,
    third: usize,
) -> *mut c_void {
    affinity::before_syscall(number, first);
    filters::before_syscall(number, first, second, third)
}

/// `syscall(2)`, with whatever arguments: all registers that hold some, and the stack, are the C
/// library's function's as they were the caller's.
///
/// # Safety
/// As in C.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(link_section = "isochrone_called")]
#[unsafe(naked)]
pub unsafe extern "C" fn syscall() -> c_long {
    // Six pushes and eight bytes more make the stack a multiple of 16 (System V psABI, 3.2.2).
    naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "sub rsp, 8",
        "call {before}",
        "add rsp, 8",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        before = sym before_syscall,
    )
}

/// `syscall(2)`, with whatever arguments, as on x86-64.
///
/// # Safety
/// As in C.
#[cfg(target_arch = "aarch64")]
#[unsafe(no_mangle)]
#[unsafe(link_section = "isochrone_called")]
#[unsafe(naked)]
pub unsafe extern "C" fn syscall() -> c_long {
    naked_asm!(
        "stp x29, x30, [sp, #-80]!",
        "stp x0, x1, [sp, #16]",
        "stp x2, x3, [sp, #32]",
        "stp x4, x5, [sp, #48]",
        "stp x6, x7, [sp, #64]",
        "bl {before}",
        "mov x16, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x2, x3, [sp, #32]",
        "ldp x4, x5, [sp, #48]",
        "ldp x6, x7, [sp, #64]",
        "ldp x29, x30, [sp], #80",
        "br x16",
        before = sym before_syscall,
    )
}

/// `dlopen(3)`. A jump: the C library's function finds the caller's return address, by which the dynamic linker knows
/// whose path it looks along.
///
/// # Safety
/// As in C.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(link_section = "isochrone_called")]
#[unsafe(naked)]
pub unsafe extern "C" fn dlopen(_file: *const c_char, _flags: c_int) -> *mut c_void {
    // One push makes the stack a multiple of 16. Both words of the answer come in registers (System V psABI, 3.2.3).
    naked_asm!(
        "push rdi",
        "mov edi, esi",
        "call {before}",
        "pop rdi",
        "mov esi, edx",
        "jmp rax",
        before = sym loading::before_dlopen,
    )
}

/// `dlopen(3)`, as on x86-64.
///
/// # Safety
/// As in C.
#[cfg(target_arch = "aarch64")]
#[unsafe(no_mangle)]
#[unsafe(link_section = "isochrone_called")]
#[unsafe(naked)]
pub unsafe extern "C" fn dlopen(_file: *const c_char, _flags: c_int) -> *mut c_void {
    naked_asm!(
        "stp x29, x30, [sp, #-32]!",
        "str x0, [sp, #16]",
        "mov w0, w1",
        "bl {before}",
        "mov x16, x0",
        "ldr x0, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        "br x16",
        before = sym loading::before_dlopen,
    )
}

/// Nothing here panics on purpose. If something does, it is a mistake of ours, and the process
/// ends with one fixed line: unwinding into a C program is not possible.
#[panic_handler]
fn panicked(_: &core::panic::PanicInfo<'_>) -> ! {
    isochrone_malloc::die(b"isochrone: a mistake in libisochrone_malloc.so; please report it\n")
}
