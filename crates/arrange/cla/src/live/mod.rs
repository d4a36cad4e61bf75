//! The live reading: programs on real lines, between threads and between processes.
//!
//! A [`Team`] is some ranks that share an area of lines (a memfd, mapped once in each process). A
//! collective opens a channel the first time it is called: the lines of its plan, handed out in the same
//! order by every rank, and this rank's member of the plan. After that a call is the member's function,
//! monomorphised over real lines. Where too few lines are left, all ranks meet and begin again with all of them. A
//! program that is text is written down first, and a [`Player`] follows the list.
//!
//! ```
//! use isochrone_cla::live::{Reduction, Settings, Team};
//! use isochrone_cla::program::Rank;
//!
//! let team = Team::threads(2, &Settings::default())?;
//! std::thread::scope(|scope| {
//!     for mut me in team {
//!         scope.spawn(move || {
//!             let mut word = [if me.rank() == Rank(0) { 42_u64 } else { 0 }];
//!             me.broadcast(&mut word, Rank(0)).expect("nobody ends");
//!             assert_eq!(word, [42]);
//!             let mut sum = [0.0];
//!             me.allreduce(Reduction::Sum, &[1.5], &mut sum).expect("nobody ends");
//!             assert_eq!(sum, [3.0]);
//!         });
//!     }
//! });
//! # Ok::<(), isochrone_cla::live::TeamError>(())
//! ```

// The one folder of this crate in which memory is touched by address: lines are shared with other
// processes. Each `unsafe` block holds one operation and names what makes it sound.
#![allow(unsafe_code)]

mod agreed;
mod area;
mod arena;
mod assembly;
mod channel;
mod choose;
mod choosing;
mod classes;
mod counters;
mod differing;
mod error;
mod kind;
mod layout;
mod lines;
mod measure;
#[cfg(test)]
mod models;
mod openings;
mod patience;
mod pieces;
mod plain;
mod player;
mod said;
mod settings;
mod sort;
mod supply;
mod sync;
mod taking;
mod team;
mod turns;
mod waits;
mod windows;
mod word;

pub use arena::{Arena, Piece};
pub use choose::{Choose, Usual, channel_plan};
pub use choosing::Chosen;
pub use classes::{BYTES_MAX, CLASSES};
pub use error::TeamError;
pub use isochrone_os::shared::{Place, register_barriers};
pub use kind::Kind;
pub use measure::{Loads, Which};
pub use patience::Patience;
pub use plain::{Number, Plain, Reduction};
pub use player::Player;
pub use settings::{Crowd, Settings};
pub use sort::{Nearness, cycle_ns};
pub use team::Team;
pub use waits::{NOTICE, Stopper, poll_cycles};
pub use windows::{Isolated, Meeting, Times, late_ns};
