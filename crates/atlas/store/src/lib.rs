//! Atlases as programs keep them: the records, the file, the comparison of two, other formats.
//!
//! `isochrone-atlas` answers queries from the bytes of a file; this crate makes those bytes, puts
//! them on disk so that no half file ever exists, and reads them back whole. It never measures
//! and never prints.

mod bench;
pub mod contents;
mod convert;
mod costs;
mod description;
mod diff;
mod encode;
mod error;
pub mod export;
mod groups;
mod links;
mod load;
pub mod made;
mod matrices;
mod pages;
mod save;
mod words;

#[cfg(test)]
mod damage;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod sizes;
#[cfg(test)]
mod tests;

pub use bench::{PageModel, QueryTime, bench_query, model_pages};
pub use diff::{BaseChange, CellChange, Diff, PageChange, diff};
pub use encode::encode;
pub use error::{EncodeError, LoadError, SaveError};
pub use groups::{GroupLevel, MatrixClasses, group_levels, matrix_classes};
pub use isochrone_units::{Experiment, Grade};
pub use links::refuse_planted;
pub use load::{MappedAtlas, decode, load};
pub use save::{Destination, save, save_text};
