//! Programs that are run under a library of ours: what they are told, how they are started, what they leave.

pub mod aside;
pub mod atlas;
pub mod child;
pub mod digest;
pub mod ended;
pub mod library;
pub mod record;
pub mod setup;
pub mod signals;
pub mod spent;
pub mod start;
pub mod usage;
pub mod witness;
