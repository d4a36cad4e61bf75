//! The latency-aware allocator: small objects on the lines that are near the core that asks.
//!
//! It hands out slot numbers of an arena and never touches the memory behind them, so that the
//! same heap serves a live program and a simulated machine. Classified pages join a [`Heap`];
//! their lines lie, free, in [`Bins`] of lines that are alike to every core; an [`Order`] says in
//! which sequence one core takes bins, and [`Magazines`] keep what one thread has at hand.
//!
//! It stands below the malloc replacement: nothing here allocates, blocks or panics on any use,
//! and nothing outside `live` talks to the system.
//!
//! ```
//! use isochrone_alloc::{
//!     Bins, CoreTable, CurrentBases, Heap, Magazines, PageCodes, Policy, Shared, SizeClass, Tables,
//! };
//! use isochrone_atlas::{Code, PatternTable, Period};
//!
//! // Every eighth line is near.
//! let pattern: Vec<f32> = (0..64).map(|line| if line % 8 == 3 { 30.0 } else { 40.0 }).collect();
//! let base = PatternTable::new(Period::Lines64, [pattern.as_slice()]).unwrap();
//! let bins = Bins::new([base.clone()].into_iter(), std::iter::empty());
//!
//! fn zeroed<T: Default>(count: usize) -> Vec<T> {
//!     (0..count).map(|_| T::default()).collect()
//! }
//! let (pages, next, masks) = (zeroed(1), zeroed(64), zeroed(64));
//! let (cores, shared) = ([CoreTable::default()], Shared::default());
//! let tables = Tables {
//!     pages: &pages,
//!     next: &next,
//!     masks: &masks,
//!     owners: &[],
//!     ranks: &[],
//!     cores: &cores,
//!     shared: &shared,
//! };
//! // Memory is no matter: of each page the near lines only.
//! let heap = Heap::new(tables, &bins, Policy { near: 0.125, waste: 7.0, ..Policy::default() });
//! heap.page_ready(0, PageCodes { llc: Code(5), dram: Code::UNKNOWN });
//! heap.set_bases(0, &CurrentBases::of(Some(&base), None));
//!
//! let mut magazines = Magazines::new();
//! let slot = magazines.take(&heap, 0, SizeClass::B64).unwrap();
//! assert_eq!((slot.line_in_page() ^ 5) % 8, 3);
//! assert_eq!(heap.distance(slot, 0).llc, Some(30.0));
//! assert_eq!(magazines.put(&heap, 0, slot), Ok(SizeClass::B64));
//! ```

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod bins;
mod check;
mod class;
mod depot;
mod distance;
mod drawn;
mod fork;
mod groups;
mod growth;
mod heap;
mod kept;
mod leave;
pub mod live;
mod magazine;
mod model;
mod open;
mod order;
mod page;
mod policy;
mod promise;
mod refill;
#[cfg(test)]
mod rig;
mod slot;
mod stack;
mod stats;
mod sync;
mod tables;
mod wish;

pub use bins::{Bins, MAX_BINS, oracle_rank};
pub use check::Misuse;
pub use class::{SizeClass, UnitLines};
pub use distance::{Distance, DistanceSum, Survey};
pub use drawn::Drawn;
pub use heap::{Heap, mixed};
pub use magazine::{Magazines, ThreadCounts};
pub use model::{Prediction, predict};
pub use order::Order;
pub use page::{PageCodes, PageState};
pub use policy::{Mode, Policy};
pub use promise::Promise;
pub use slot::{GRANULE_BYTES, Slot};
pub use stats::Stats;
pub use tables::{CoreTable, Shared, Tables};
pub use wish::{CurrentBases, Wish};
