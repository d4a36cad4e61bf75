//! The collectives by name alone, as a team's channels are kept.

pub use crate::collectives::Kind;
