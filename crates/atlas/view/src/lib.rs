//! An atlas as people look at it: the summary for a terminal, the report as a page, and the
//! figure that a paper drew for its machine.
//!
//! Everything here is a pure function of [`Contents`](isochrone_atlas_store::contents::Contents)
//! to text. It never measures, never reads a file or the environment, and never prints; what an
//! atlas does not hold is named in one line, with the reason, and is never shown as 0.
//!
//! [`level`] answers questions about lines and pages, [`words`] says them in sentences,
//! [`figures`] draws them; [`summary()`] and [`page()`] only put these in order.

mod calendar;
mod clusters;
mod figures;
mod level;
mod page;
mod summary;
mod text;
mod words;

#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
#[cfg(test)]
mod tests;

pub use calendar::utc;
pub use figures::block::block_figure;
pub use page::page;
pub use summary::summary;
pub use words::machine::state_rows;
