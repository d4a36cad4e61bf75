//! What passes between a policy, its shards, and who asks it for victims.

use super::lists::List;
use crate::names::Group;

/// What a policy asks of the directory, and how it hands a victim over.
pub trait View {
    /// How many tables map the group.
    fn count(&self, group: Group) -> u32;
    /// Tries to take the group as a victim; false leaves it where it is.
    fn take(&mut self, group: Group) -> bool;
}

/// A part of a policy with a lock of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard(pub u32);

/// What every policy does. All but `shards` and `home` are called with the shard's lock held.
pub(super) trait Order {
    /// A group came; `count` tables map it.
    fn insert(&self, shard: Shard, group: Group, count: u32);
    /// One more table maps a group that stands in the shard.
    fn mapped(&self, shard: Shard, group: Group, count: u32);
    /// Offers victims until `want` were taken; returns how many were.
    fn evict(&self, shard: Shard, want: u32, view: &mut dyn View) -> u32;
    /// Empties the shard, to be filled again by inserts.
    fn clear(&self, shard: Shard);
    /// The list from whose old end victims come first.
    fn front(&self, shard: Shard) -> List;
}
