//! What a process does when it places no more after it has placed. A child of the test is that process: it is told to
//! place by an atlas of alike lines, and placing is ended in it.

use super::*;
use crate::config::{Config, PathBytes};
use crate::process::ARENA;
use crate::{abi, filters};
use core::ffi::c_void;
use core::ptr;
use isochrone_atlas_store::made;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::vec::Vec;

const BYTES: usize = 48;
const OBJECTS: u8 = 200;

fn write(folder: &Path, name: &str, bytes: &[u8]) -> std::path::PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("writable");
    path
}

/// How a process ends that is told to place and does this.
fn ended(does: fn()) -> i32 {
    let folder = tempfile::tempdir().expect("a folder");
    let mut contents = made::lines(64, |_, _| None, &[]);
    contents.levels = ["llc", "dram"].map(|name| made::flat_level(name, 50.0, &contents)).to_vec();
    let atlas = isochrone_atlas_store::encode(&contents).expect("a sound atlas");
    let atlas = write(folder.path(), "flat.atlas", &atlas);
    let config = Config {
        start_bytes: 1024,
        arena_bytes_max: 1 << 24,
        atlas: PathBytes::new(atlas.as_os_str().as_bytes()).expect("short"),
        filters: filters::count().expect("/proc is mounted"),
        force: true,
        ..Config::default()
    };
    let told = write(folder.path(), "config", &config.to_bytes());
    let told = CString::new(told.as_os_str().as_bytes()).expect("no zero");
    // SAFETY: the child calls what any thread may call, and ends without returning.
    let child = unsafe { libc::fork() };
    if child == 0 {
        abi::begin(Some(&told));
        does();
        // SAFETY: it ends this process.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: the status is ours to be written.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

/// Ends this process where something is not as it should be. Not by a panic, which is the test's.
fn must(holds: bool) {
    if !holds {
        // SAFETY: it ends this process.
        unsafe { libc::_exit(7) };
    }
}

/// An object that was placed, once placing has begun.
fn placed() -> *mut u8 {
    let mut object = ptr::null_mut::<c_void>();
    for _ in 0..1000 {
        object = abi::malloc(BYTES);
        if ARENA.offset(object).is_some() {
            return object.cast();
        }
    }
    must(false);
    object.cast()
}

/// Objects that were placed, each full of its number; placing has ended since.
fn placed_before() -> Vec<*mut u8> {
    let objects: Vec<_> = (0..OBJECTS).map(|_| placed()).collect();
    for (number, object) in (0..).zip(&objects) {
        // SAFETY: so many bytes were just allocated there.
        unsafe { object.write_bytes(number, BYTES) };
    }
    let Some(instance) = instance() else { return Vec::new() };
    instance.end_placing(&mut instance.growth.hold(), Reason::NoGain);
    objects
}

fn free(object: *mut u8) {
    // SAFETY: it came from these functions; where it is free already the process is to end.
    unsafe { abi::free(object.cast()) };
}

fn what_was_placed_is_used_on() {
    let objects = placed_before();
    must(objects.len() == usize::from(OBJECTS) && PROCESS.is_over());
    must(ARENA.offset(abi::malloc(BYTES)).is_none());
    for (number, object) in (0..).zip(objects) {
        let kept = if number % 2 == 0 {
            // SAFETY: it was allocated and is not free.
            unsafe { abi::realloc(object.cast(), 2 * BYTES) }.cast()
        } else {
            object
        };
        must(ARENA.offset(kept.cast()).is_some() == (number % 2 != 0));
        // SAFETY: so many bytes were written to it, and it is not free.
        let bytes = unsafe { core::slice::from_raw_parts(kept, BYTES) };
        must(bytes.iter().all(|byte| *byte == number));
        // SAFETY: it is not free.
        must(unsafe { abi::malloc_usable_size(kept.cast()) } >= BYTES);
        free(kept);
    }
}

fn it_is_freed_twice() {
    let objects = placed_before();
    let Some(first) = objects.first() else { return };
    free(*first);
    free(*first);
}

#[test]
fn what_was_placed_before_it_ended_is_kept_and_freed_once() {
    assert_eq!(ended(what_was_placed_is_used_on), 0);
    let status = ended(it_is_freed_twice);
    assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGABRT, "{status}");
}
