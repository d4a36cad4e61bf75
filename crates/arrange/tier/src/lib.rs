//! Memory larger than fast memory.
//!
//! A program gets an area of which only a part is in fast memory at a time; the rest is in a far tier: a
//! file, compressed memory, another region. Pages come when a worker touches them, and go when their room
//! is needed. Workers may be threads, which share one set of page tables, or processes with tables of
//! their own: then a page that is taken away is taken only from those that map it, and nobody else is
//! interrupted. That is the idea of Gerofi, Shimada, Hori and Ishikawa, "Partially Separated Page Tables
//! for Efficient Operating System Assisted Hierarchical Memory Management on Heterogeneous Architectures"
//! (CCGrid 2013), here on an unchanged Linux.
//!
//! * [`directory`]: who has which group of pages, and what is being done to it.
//! * [`policy`]: which group goes when room is needed; [`prefetch`]: which will be touched next; [`streams`]: how many
//!   one fault is worth.
//! * [`regions`]: which regions of memory are fast and far, by distances.
//! * [`pages`]: what a pager needs of a machine; [`pager`]: the drivers, written once over it.
//! * [`live`]: on this machine; [`simulated`]: on a many-core processor in virtual time.

pub mod directory;
#[cfg(not(all(loom, test)))]
pub mod live;
pub mod names;
#[cfg(not(all(loom, test)))]
pub mod pager;
pub mod pages;
pub mod policy;
pub mod prefetch;
pub mod regions;
#[cfg(not(all(loom, test)))]
pub mod simulated;
pub mod streams;
mod sync;

pub use names::{Access, Actor, Group, Run, Space};
