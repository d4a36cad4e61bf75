//! Memory near the cores that use it, for programs that ask for it.
//!
//! A [`Placement`] goes by an atlas of this machine. It hands out objects of up to 256 bytes on lines that are near the
//! core that asks, or a core that is named; everything else, and everything where nothing is to be gained, is the
//! ordinary allocator's, and [`Placement::why_not`] says why. Any number of threads share one. A [`Pool`] hands out
//! values of one type, for the core of each thread or for one core; [`Near`] owns a value as a `Box` does.
//!
//! It is the allocator of `libisochrone_malloc.so` with an address range of its own: both stand on
//! [`isochrone_malloc`]. The environment is not read here: where atlases lie is the caller's to say ([`Places`]).
//!
//! ```
//! use isochrone_near::{Options, Placement};
//! use isochrone_places::Places;
//!
//! let places = Places::of(None, |name| std::env::var_os(name));
//! let placement = Placement::open(&Options { places, ..Options::default() })?;
//! if let Some(why) = placement.why_not() {
//!     eprintln!("{why}");
//! }
//! let nodes = placement.pool::<(u64, u64)>();
//! let node = nodes.put((1, 2));
//! assert_eq!(node.0 + node.1, 3);
//! # Ok::<(), isochrone_near::OptionsError>(())
//! ```

// Memory without a type comes in and goes out; each `unsafe` block holds one operation and says what makes it sound.
#![allow(unsafe_code)]

pub mod gain;
mod options;
mod ordinary;
mod placement;
mod policy;
mod typed;
mod why;

pub use isochrone_malloc::Wrong;
pub use isochrone_places::Places;
pub use options::{Lists, Mix, Options, OptionsError};
pub use placement::{Distance, Placement, Statistics};
pub use typed::{Near, Pool};
pub use why::WhyNot;
