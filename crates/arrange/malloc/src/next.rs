//! The allocator underneath: what is not placed goes to the `malloc` that the program would have without us. That is
//! the next one in the order of symbols: one that the user preloads too (mimalloc, jemalloc, tcmalloc), or glibc's.
//!
//! It is looked up at the first call, which may come before any constructor. The dynamic linker may allocate
//! meanwhile; that comes from a few pages of our own ([`lent`]), which no allocator knows. Until it is known each
//! name leads to a function that looks it up, so that later calls are one jump through memory and no branch.
//!
//! A program without a dynamic linker has no order of symbols: glibc's own names serve there. Without glibc the
//! ordinary names serve: there this crate can be a Rust program's allocator, but not a replacement of `malloc`.

#[cfg(target_env = "gnu")]
mod found;
#[cfg(target_env = "gnu")]
mod lent;
#[cfg(not(target_env = "gnu"))]
mod plain;

#[cfg(target_env = "gnu")]
pub use found::{
    aligned_alloc, calloc, free, malloc, memalign, pvalloc, realloc, resolve, usable_size, valloc,
};
#[cfg(target_env = "gnu")]
pub(crate) use found::{found, found_back};
#[cfg(not(target_env = "gnu"))]
pub use plain::{
    aligned_alloc, calloc, free, malloc, memalign, pvalloc, realloc, resolve, usable_size, valloc,
};
#[cfg(not(target_env = "gnu"))]
pub(crate) use plain::{found, found_back};

/// Bytes of the object by which glibc learns to keep memory.
const KEPT_BYTES: usize = 4 << 20;

/// Has glibc keep up to twice [`KEPT_BYTES`] at the end of its heaps. It gives back what is free
/// there beyond 128 KiB, which small objects mostly prevent by lying in between; where these are
/// placed elsewhere, heaps were given back and faulted in again all the time (`mstress` of
/// mimalloc-bench: 17 700 page faults, 3050 without the library). Its threshold is twice the size
/// of the largest object freed that had a mapping of its own (mallopt(3), `M_MMAP_THRESHOLD`,
/// "dynamic"); such an object, of which nothing is touched, costs two system calls. Another allocator keeps what it
/// keeps.
pub(crate) fn keep_memory() {
    let object = malloc(KEPT_BYTES);
    // SAFETY: null, or just allocated and known to nobody else.
    unsafe { free(core::hint::black_box(object)) };
}
