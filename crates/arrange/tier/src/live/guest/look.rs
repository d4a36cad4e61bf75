//! Looks at what the program gave up and may still be there ([`super::put_off`]): what is gone is forgotten, what stays
//! may leave again. A look waits for nobody.

use isochrone_os::others::each_thread;

use super::actor::Hand;
use super::book::Marks;
use super::orders::run_of;
use super::pagemap::AT_ONCE;
use super::put_off::Fate;
use crate::directory::State;
use crate::live::acting::at_once;
use crate::names::{Group, Run};

/// Looks at some of it; at all where a page is wanted that has a mark. Nothing where another handler looks.
pub(super) fn again(hand: &Hand) {
    let places = &hand.ground.places;
    let Some(_alone) = places.alone_now() else { return };
    if places.is_to_ask() {
        ask(hand);
        while let Some(pages) = places.piece() {
            look(hand, &pages);
        }
    } else if let Some(pages) = places.piece() {
        look(hand, &pages);
    }
    places.trim(&hand.ground.book);
}

/// Looks at one page, which somebody touched; whether it has no mark any more.
pub(super) fn at(hand: &Hand, group: Group) -> bool {
    let (places, page) = (&hand.ground.places, group.index());
    let _alone = places.alone();
    look(hand, &(page..page + 1));
    !hand.ground.book.of(page).has(Marks::EMPTIED)
}

fn look(hand: &Hand, pages: &std::ops::Range<usize>) {
    let ground = &hand.ground;
    let mut there = [None; AT_ONCE];
    ground.places.look(pages, |page, is_there| there[page - pages.start] = Some(is_there));
    for (page, is_there) in pages.clone().zip(there) {
        let marks = ground.book.of(page);
        let Some(is_there) = is_there.filter(|_| marks.has(Marks::EMPTIED) && marks.is_ours())
        else {
            continue;
        };
        match Fate::of(is_there, ground.places.are_over(page)) {
            Fate::Waits => {}
            Fate::Stays => ground.places.stays(&ground.book, page),
            Fate::Gone if is_forgotten(hand, page) => ground.places.emptied(&ground.book, page),
            // Another handler is at it.
            Fate::Gone => {}
        }
    }
}

/// Forgets what a page held that is gone, unless somebody is at it.
fn is_forgotten(hand: &Hand, page: usize) -> bool {
    let pager = hand.ground.pager(1);
    let run = run_of(&(page..page + 1));
    let is_at_rest =
        matches!(pager.directory().look(run.first).state(), State::Resident | State::Absent);
    is_at_rest && at_once(pager.give_up(hand, hand.caller, run)).is_ok()
}

/// Forgets what the far tier has of pages that were moved after they had been given up.
pub(super) fn forget_of(hand: &Hand, run: Run) {
    let pager = hand.ground.pager(1);
    for group in run.iter() {
        let is_given_up = hand.ground.book.of(group.index()).has(Marks::EMPTIED);
        if is_given_up && pager.directory().look(group).state() == State::Absent {
            let _ = at_once(pager.give_up(hand, hand.caller, Run::of(group)));
        }
    }
}

/// Asks where all threads are: calls are over that none of them can be in.
fn ask(hand: &Hand) {
    let places = &hand.ground.places;
    // Before they are looked at: who is seen outside is so after these.
    let heard = places.calls();
    let (mut over, mut threads) = (heard, 0);
    let are_all = each_thread(|thread, is_outside| {
        threads += 1;
        if !is_outside && !places.is_handler(thread) {
            over = over.min(places.outside_of(thread));
        }
    });
    if are_all {
        places.end(over);
    }
    places.asked(threads);
}
