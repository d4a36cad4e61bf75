//! What a refill gives.

/// What a refill found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    /// Slots, from the front of the caller's list.
    pub slots: usize,
    /// How many of them were near.
    pub near: usize,
    /// The rank of the farthest bin worth keeping slots of: of the farthest that was drawn from,
    /// or of the farthest near one.
    pub reach: u8,
}
