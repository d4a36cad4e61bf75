//! Why a team cannot be made, or a collective not be done.

use crate::collectives::PlanError;
use crate::program::{Gone, Rank};
use isochrone_os::OsError;

/// Why a team cannot be made, or a collective not be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TeamError {
    /// The system refused something.
    #[error(transparent)]
    Os(#[from] OsError),
    /// Root or sizes do not fit.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A rank has ended.
    #[error(transparent)]
    Gone(#[from] Gone),
    /// More ranks than a team has, or none.
    #[error("a team of {0} ranks; it can have 1 to 1024")]
    Ranks(u16),
    /// No rank of this team.
    #[error("{rank} is not one of the team's {ranks} ranks; ranks are 0 to {}", ranks.saturating_sub(1))]
    Rank {
        /// The rank asked for.
        rank: Rank,
        /// Ranks of the team.
        ranks: u16,
    },
    /// Two took the same rank.
    #[error("{0} is taken by another process or thread; give each its own rank")]
    Taken(Rank),
    /// Not an area of this version.
    #[error("the shared memory is not a team's, or one of another version of this library")]
    Foreign,
    /// Some rank did not come.
    #[error(
        "{missing} of {ranks} ranks did not come within {seconds} s; start them, or wait longer"
    )]
    Late {
        /// Ranks that did not come.
        missing: u16,
        /// Ranks of the team.
        ranks: u16,
        /// How long was waited.
        seconds: u64,
    },
    /// A collective whose lines do not fit, though it had all of them.
    #[error(
        "a collective needs {wanted} lines of the team's shared memory, which has {left}; give it more"
    )]
    Full {
        /// Lines wanted.
        wanted: usize,
        /// Lines that there are.
        left: usize,
    },
    /// Lines are in use already.
    #[error("lines are chosen before a team's first collective; make another team")]
    Begun,
    /// Ranks gave different bytes to one collective.
    #[error("ranks call a collective with different bytes: {mine} here; give all of them the same")]
    Unlike {
        /// Bytes of this rank.
        mine: usize,
        /// Those of another, where they are known.
        theirs: Option<u32>,
    },
    /// Ranks called different collectives, or one with different roots.
    #[error(
        "ranks call different collectives at once, or one with different roots; let all make the same calls"
    )]
    Apart,
    /// Ranks gave different bytes to a collective, and some have gone on since.
    #[error(
        "ranks gave different bytes to an earlier collective, and some have gone on too far to begin anew; \
         give all of them the same"
    )]
    Ahead,
    /// The root does this call by other means, and so must this rank.
    #[error("the root of a collective does it by other means")]
    Elsewhere,
    /// A buffer of the wrong size.
    #[error("{what} holds {have} elements, {need} are needed")]
    Length {
        /// Which buffer.
        what: &'static str,
        /// Elements that it needs.
        need: usize,
        /// Elements that it has.
        have: usize,
    },
    /// More bytes than one call moves.
    #[error("{0} bytes in one call; the most is 1 GiB over all ranks: split the call")]
    Bytes(usize),
}

/// Whether a buffer has as many elements as are needed.
pub(super) fn length(what: &'static str, need: usize, have: usize) -> Result<(), TeamError> {
    if need == have { Ok(()) } else { Err(TeamError::Length { what, need, have }) }
}
