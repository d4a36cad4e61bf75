//! The choice that runs: which shape a team's collective takes on its cores, by what is known of their
//! distances.
//!
//! One rank chooses for a team, so what it says must be small and must mean the same to all: an [`Entry`]
//! of a shortlist, which with the ranks' [`Groups`] gives the options of a plan wherever it is read
//! ([`Entry::options`]). Entries are ranked by the simulator ([`choose`]), and the usual rule stays unless
//! another gains more than the simulator may be wrong by. [`crate::search`] looks further and takes
//! longer; tests hold the shortlist against it. Nothing here times anything or touches a live team.

mod form;
mod groups;
mod judge;
mod nested;
mod rank;
mod shortlist;
mod sketch;
#[cfg(test)]
pub(crate) mod synthetic;
#[cfg(test)]
mod tests;

pub use form::Form;
pub(crate) use form::{DEGREE, FEW};
pub use groups::{Groups, LEVELS_MAX, Placed, placed};
pub use judge::judge;
pub use rank::{Known, MODEL_ERROR, PAPER_ERROR, RANKS_LEAST, RANKS_MOST, choose};
pub use shortlist::{Entry, is_chosen, shortlist, variants};
