//! The experiments of a map, one after the other, each with the time that it has.
//!
//! What they run on is a [`Ground`]: this machine ([`LiveGround`]), or a modelled one in virtual time
//! ([`SyntheticGround`]). Order, shares of the time, seeds and what is said of things left out are the same on both.
//! How far a run is, and when a part of it has to end, goes by a [`Course`]. Nothing here prints or saves.

mod course;
mod experiments;
pub mod figures;
mod grade;
mod ground;
mod live;
mod run;
mod size;
pub mod synthetic;
mod time;

pub use course::Course;
pub use experiments::all;
pub use ground::{Buffers, Chased, Ground};
pub use live::LiveGround;
pub use run::{Part, Run};
pub use size::{Memory, Size, Wishes};
pub use synthetic::SyntheticGround;
pub use time::Schedule;
