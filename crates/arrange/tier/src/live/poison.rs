//! Pages that could not be had, where threads of ours resolve faults: who touches one is sent `SIGBUS`, and a system
//! call fails. The kernel does that by a poison in this process's tables, and tells us of no access to it any more. So
//! a poison does not stay: it is taken out again after a while, and as soon as the program gives something back; then
//! the next access is tried as any other.
//!
//! A poison is put in and taken out by who owns the entry of an absent group, so it never lies on what somebody has
//! brought meanwhile.

use isochrone_os::clock;
use isochrone_os::userfault::{Features, Userfault};
use isochrone_units::PAGE_BYTES;

use super::acting::at_once;
use super::context::Context;
use crate::directory::State;
use crate::names::Access;

/// A poison stays so long: long enough for whoever waits for the page to be sent the signal. One who was not sees that
/// it is tried again.
const STAYS_NS: u64 = 20_000_000;

/// What became of a page that could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// Whoever touches it is sent `SIGBUS`.
    Poisoned,
    /// Somebody else brought it, or is about to: the access is tried again.
    Brought,
    /// This kernel cannot.
    Refused,
}

/// Poisons a page that could not be had.
pub(super) fn put(context: &Context<'_>, table: &Userfault, page: usize) -> Put {
    let Some(group) = context.process.area.group_at(page) else { return Put::Refused };
    if !table.features().has(Features::POISON) {
        return Put::Refused;
    }
    let poisons = &context.process.poisons;
    let (had, is_there) = (poisons.had(page), poisons.has(page));
    let mut oldest = None;
    // Noted before, and both while the group is claimed: who was woken by it and makes room finds it noted, and waits
    // for the claim.
    let poison = || {
        oldest = poisons.note(page);
        // Refused where there is one already, or a page, of a group that came in part.
        let done = table.poison(page, PAGE_BYTES).is_ok();
        if !done && !is_there {
            poisons.forget(page, had);
        }
        done
    };
    let done = context.process.pager().while_absent(context, context.caller, group, poison);
    if let Some(oldest) = oldest {
        take_out(context, oldest);
    }
    match done {
        Some(true) => Put::Poisoned,
        Some(false) if had => Put::Poisoned,
        None | Some(false) => Put::Brought,
    }
}

/// Takes out those that have been there for a while.
pub(super) fn age(context: &Context<'_>) {
    let poisons = &context.process.poisons;
    if !poisons.are_none() {
        let until = clock::monotonic_ns().saturating_sub(STAYS_NS);
        poisons.lift(until, |page| take_out(context, page));
    }
}

/// Takes all of them out: the program gave something back.
pub(super) fn clear(context: &Context<'_>) {
    let poisons = &context.process.poisons;
    if !poisons.are_none() {
        poisons.lift(u64::MAX, |page| take_out(context, page));
    }
}

fn take_out(context: &Context<'_>, page: usize) {
    let process = context.process;
    let Some(group) = process.area.group_at(page) else { return };
    let pager = process.pager();
    let unmap = || process.area.unmap_page(page);
    while pager.while_absent(context, context.caller, group, unmap).is_none() {
        // It came, perhaps into no table or another one: mapped here the poison is written over. Where that fails it is
        // absent again.
        let came = at_once(pager.fault(context, context.caller, group, Access::Read));
        if came.is_ok() || pager.directory().look(group).state() != State::Absent {
            return;
        }
    }
}
