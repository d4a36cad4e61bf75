//! First in, first out: the paper's policy (section IV-B), one queue for all.

use super::lists::{List, Lists};
use super::order::{Order, Shard, View};
use crate::names::Group;

pub(super) struct Fifo<'a>(pub(super) Lists<'a>);

const QUEUE: List = List(0);

impl Order for Fifo<'_> {
    fn insert(&self, _: Shard, group: Group, _: u32) {
        self.0.push(QUEUE, group);
    }

    fn mapped(&self, _: Shard, _: Group, _: u32) {}

    fn evict(&self, _: Shard, want: u32, view: &mut dyn View) -> u32 {
        self.0.offer(QUEUE, want, &mut |group| view.take(group))
    }

    fn clear(&self, _: Shard) {
        self.0.clear(QUEUE);
    }
    fn front(&self, _: Shard) -> List {
        QUEUE
    }
}
