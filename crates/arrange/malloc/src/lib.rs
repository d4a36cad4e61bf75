//! `malloc` by distance: everything between the C functions that a program calls and the slot
//! numbers that `isochrone-alloc` hands out.
//!
//! For a process: [`begin`], the functions of [`abi`], [`end`]; the preloaded library exports them
//! and nothing else. For a Rust program: [`IsochroneAlloc`] as the global allocator, or a
//! [`Pool`] of its own for records of one type, of which several in different modes may live side
//! by side; or a [`Placer`] that its threads share. For whoever starts a process: [`Config`] and
//! [`Report`], plain records.
//!
//! No call allocates through `malloc`, takes a lock on its fast path, formats text or unwinds. It
//! never prints, but for one line before a process that frees what it has not is ended, as glibc does.

#![no_std]
// Pointers come in and go out; each `unsafe` block holds one operation and says what makes it
// sound.
#![allow(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod abi;
pub mod affinity;
mod alone;
mod beforehand;
mod bindings;
mod blocks;
mod close;
pub mod code;
mod config;
mod counters;
mod counting;
pub mod entry;
pub mod environment;
mod errno;
pub mod filters;
mod footprint;
mod fork;
pub mod front;
mod global;
mod growth;
mod instance;
mod life;
#[cfg(target_env = "gnu")]
pub mod links;
pub mod loading;
mod lock;
mod memory;
mod misuse;
mod names;
pub mod next;
mod objects;
#[cfg(feature = "arms")]
mod oracle;
mod pin;
mod placer;
mod pool;
mod process;
mod range;
mod report;
mod room;
mod settings;
mod slab;
mod status;
mod tables;
mod thread;
mod tls;
mod told;
mod until_looked;
mod watched;
mod without_block;

pub use abi::begin;
pub use beforehand::Measured;
pub use bindings::BINDINGS_BYTES;
pub use config::{
    CONFIG_BYTES, CONFIG_VARIABLE, CORES_MAX, Config, ConfigError, CoreList, PATH_BYTES_MAX,
    PathBytes, Pin, START_BYTES,
};
pub use global::IsochroneAlloc;
pub use instance::Instance;
pub use life::end;
pub use misuse::die;
pub use pin::place;
pub use placer::{Over, Placed, Placer, Wrong};
pub use pool::{Handle, Pool};
pub use report::{
    CLASSES, LIVES_NS, LiveOfCore, REPORT_BYTES, REPORT_SUFFIX, Reason, Report, SIZES, Tally,
    Watched, WatchedSize, class_bytes,
};
pub use settings::{InstanceError, Settings};
