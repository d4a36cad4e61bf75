//! What a rank remembers of the channels of its team: how they were opened, and which could not be.

use super::channel::Opened;
use super::error::TeamError;
use std::collections::BTreeMap;

/// What a rank remembers of channels that it opened, or could not.
#[derive(Debug, Default)]
pub(super) struct Openings {
    /// The channel that the last call opened, if it did, with what was left before.
    pub(super) last: Option<Opened>,
    /// How often this rank has waited for all others to take lines back.
    pub(super) came: u64,
    /// The call in which it did so last; 0 where all of them have begun that one anew.
    pub(super) met_at: u64,
    /// Whether all ranks are to meet before this one uses lines again.
    pub(super) due: bool,
    /// Whether they have met, and the call that this rank is in begins anew.
    pub(super) anew: bool,
    /// Plans that were made to open a channel.
    pub(super) plans: u64,
    /// The first call at which lines may be taken back again, in an arena.
    pub(super) back_from: u64,
    /// Channels that cannot be opened, by their numbers.
    pub(super) lacking: BTreeMap<usize, Lack>,
}

/// Why a channel cannot be opened.
#[derive(Debug)]
pub(super) struct Lack {
    pub(super) why: TeamError,
    /// The first call at which it is worth another look.
    pub(super) until: u64,
}
