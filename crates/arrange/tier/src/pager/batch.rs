//! Groups on their way out, cut into runs that one call of the kernel can treat.

use crate::directory::{Directory, Flags, State, Word};
use crate::names::{Actor, Group, Run};
use crate::policy::View;

/// Most groups of one batch.
pub const BATCH_MOST: u32 = 256;

/// Groups that one actor has claimed.
pub(super) struct Batch {
    groups: [Group; BATCH_MOST as usize],
    len: usize,
}

impl Batch {
    pub(super) const fn new() -> Self {
        Self { groups: [Group(0); BATCH_MOST as usize], len: 0 }
    }

    pub(super) fn push(&mut self, group: Group) {
        self.groups[self.len] = group;
        self.len += 1;
    }

    pub(super) fn groups(&self) -> &[Group] {
        &self.groups[..self.len]
    }

    pub(super) const fn is_full(&self) -> bool {
        self.len == BATCH_MOST as usize
    }

    pub(super) fn sort(&mut self) {
        self.groups[..self.len].sort_unstable();
    }

    /// The run that begins at place `from` of a sorted batch: neighbours that the same tables map and
    /// that have the same flags.
    pub(super) fn run(&self, from: usize, directory: &Directory<'_>) -> Option<(Run, Flags)> {
        let groups = self.groups();
        let first = *groups.get(from)?;
        let flags = directory.look(first).flags();
        let alike =
            |next: &Group| directory.look(*next).flags() == flags && directory.alike(first, *next);
        let follows =
            groups[from..].iter().zip(first.0..).take_while(|(g, n)| g.0 == *n && alike(g));
        let count = u32::try_from(follows.count()).unwrap_or(1);
        Some((Run { first, groups: count }, flags))
    }
}

/// Claims the victims that a policy offers.
pub(super) struct Claims<'b, 'a> {
    pub(super) directory: Directory<'a>,
    pub(super) me: Actor,
    pub(super) state: State,
    pub(super) batch: &'b mut Batch,
    /// Candidates that somebody was at.
    pub(super) busy: bool,
    /// What a candidate must be beside resident.
    pub(super) wanted: fn(Word) -> bool,
}

impl View for Claims<'_, '_> {
    fn count(&self, group: Group) -> u32 {
        self.directory.count(group)
    }

    fn take(&mut self, group: Group) -> bool {
        let seen = self.directory.look(group);
        if seen.state() != State::Resident {
            self.busy = true;
            return false;
        }
        if self.batch.is_full() || self.directory.is_pinned(group) || !(self.wanted)(seen) {
            return false;
        }
        let claimed = self.directory.claim(group, seen, self.state, self.me).is_ok();
        self.busy |= !claimed;
        if claimed {
            self.batch.push(group);
        }
        claimed
    }
}
