//! Measures a machine, live or synthetic, and fills an atlas.
//!
//! Each experiment is a plan (pure data: what, in which order, how often) and a runner over the
//! small trait of the memory it measures, so the same code runs on this machine ([`live`]) and on
//! a modelled one whose truth is known ([`synthetic`]). Results are the records of
//! `isochrone_atlas_store::contents`; nothing here prints, and nothing decides what to do with a
//! distance.

pub mod awake;
pub mod bandwidth;
pub mod block;
pub mod capacity;
pub mod live;
pub mod multiline;
pub mod region;
pub mod sample;
pub mod seats;
pub mod shift;
pub mod synthetic;
pub mod target;
pub mod terms;
pub mod transfer;
pub mod watch;
