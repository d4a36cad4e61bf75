//! `libisochrone`: the parts of Isochrone for programs in C.
//!
//! Every part has one file here and one section of `include/isochrone.h`, where users read what a
//! function does. What the parts share is in [`status`]: each function returns a number, and
//! `isochrone_error` has the words. How a part is added is in `docs/method/c-interface.md`.
//!
//! A panic never leaves a function: `extern "C"` ends the process there.

// An interface of C takes addresses on trust. Each block holds one operation and names what makes it sound.
#![allow(unsafe_code)]

pub mod adopted;
pub mod arrays;
mod atlas;
pub mod collectives;
pub mod kind;
pub mod place;
pub mod queries;
mod sized;
pub mod status;
pub mod tasks;
pub mod team;
pub mod tier;
