//! Every order of the steps in which one page is given up, filled, taken out and looked at: what the program, the
//! kernel and the handlers do between two of them is not seen by the others. The list of calls, the places and what
//! becomes of a page are those of the pager; the kernel is written down as it is (mm/madvise.c and fs/userfaultfd.c
//! of Linux 6.18).

use std::collections::HashSet;

use super::super::book::{Book, Marks};
use super::super::places::{Heard, Place};
use super::Fate;
use crate::names::{Group, Run};

/// How the program gives the page up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Advice {
    DontNeed,
    Free,
}

/// Which rule takes the mark down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// That of the pager.
    Ours,
    /// A page that is still there after a while stays: what the pager did once.
    Timed,
    /// There is no mark.
    None,
}

/// What a page holds: nothing, or what the program wrote in a round; what it had before is of round 0.
type Content = Option<u8>;

/// How far the program's thread is in a round: it gives the page up, goes on, and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Thread {
    /// Before the call.
    Before,
    /// It waits until it is heard; nothing can be moved or filled.
    Tells,
    /// It was heard, and has not run since.
    Heard,
    /// It is on its way to take the page out of the tables, or to let it be.
    OnItsWay,
    /// Its call is over; it has not written.
    Returned,
    /// It wrote.
    Wrote,
}

/// The entry of the directory, with what its owner has in hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Entry {
    Absent,
    Resident,
    /// A handler is about to fill it.
    Filling(Content),
    /// A handler is about to take it out.
    Evicting,
    /// It took this out, and is to write it to the far tier.
    Lifted(Content),
    /// It could not be written, and is to be put back.
    Lowering(Content),
}

/// What a handler saw that looks at the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Look {
    Elsewhere,
    Saw(bool),
    Forgot,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    round: u8,
    thread: Thread,
    /// What is in the tables, and whether the kernel may drop it (`MADV_FREE`).
    page: Option<(Content, bool)>,
    far: Option<Content>,
    entry: Entry,
    mark: bool,
    heard: Heard,
    look: Look,
    /// How many calls had been heard when the thread was last seen outside.
    outside: u64,
}

const PAGE: Run = Run { first: Group(0), groups: 1 };

struct Model {
    rounds: Vec<Advice>,
    rule: Rule,
    book: Book,
}

impl Model {
    fn place(&self, state: &State) -> Place {
        let emptied = if state.mark { Marks::EMPTIED } else { Marks::default() };
        self.book.set(0..1, Marks::USED.and(emptied));
        state.heard.of(&self.book, PAGE).0
    }

    /// All states that one step leads to.
    fn after(&self, state: &State) -> Vec<State> {
        let mut next = Vec::new();
        self.program(state, &mut next);
        self.handlers(state, &mut next);
        self.looks(state, &mut next);
        next
    }

    fn program(&self, state: &State, next: &mut Vec<State>) {
        let mut to = |change: &dyn Fn(&mut State)| {
            let mut after = state.clone();
            change(&mut after);
            next.push(after);
        };
        let last = usize::from(state.round) == self.rounds.len();
        match state.thread {
            Thread::Before => to(&|s| s.thread = Thread::Tells),
            // A handler reads it, which notes it under the lock of all that moves and fills.
            Thread::Tells => to(&|s| {
                s.thread = Thread::Heard;
                if self.rule != Rule::None {
                    s.mark = true;
                    s.heard.give_up(0..1);
                }
            }),
            Thread::Heard => to(&|s| s.thread = Thread::OnItsWay),
            Thread::OnItsWay => to(&|s| {
                s.thread = Thread::Returned;
                s.page = match self.rounds[usize::from(s.round) - 1] {
                    Advice::DontNeed => None,
                    Advice::Free => s.page.map(|(content, _)| (content, true)),
                };
            }),
            Thread::Returned if state.page.is_some() => to(&|s| {
                s.thread = Thread::Wrote;
                s.page = Some((Some(s.round), false));
            }),
            Thread::Wrote if !last => to(&|s| {
                s.thread = Thread::Before;
                s.round += 1;
            }),
            Thread::Returned | Thread::Wrote => {}
        }
        if matches!(state.page, Some((_, true))) {
            to(&|s| s.page = None);
        }
    }

    /// Handlers move and fill while the kernel lets them, each step by the place of the page at that moment.
    fn handlers(&self, state: &State, next: &mut Vec<State>) {
        let refused = matches!(state.thread, Thread::Tells | Thread::Heard);
        let place = self.place(state);
        let mut to = |entry, page, far| {
            next.push(State { entry, page, far, ..state.clone() });
        };
        let (page, far) = (state.page, state.far);
        match state.entry {
            // Somebody touches it: the thread, or any other at any time.
            Entry::Absent if page.is_none() && !state.mark => {
                to(Entry::Filling(far.unwrap_or(None)), page, far);
            }
            Entry::Resident => {
                to(Entry::Evicting, page, far);
                if page.is_none() && !state.mark {
                    to(Entry::Filling(None), page, far);
                }
            }
            Entry::Filling(_) if place == Place::Emptied => to(Entry::Resident, page, far),
            Entry::Filling(content) if !refused => {
                to(Entry::Resident, page.or(Some((content, false))), far);
            }
            Entry::Evicting if place == Place::Emptied => to(Entry::Resident, page, far),
            Entry::Evicting if !refused => {
                to(Entry::Lifted(page.and_then(|(content, _)| content)), None, far);
            }
            Entry::Lifted(content) => {
                to(Entry::Absent, page, Some(content));
                to(Entry::Lowering(content), page, far);
            }
            Entry::Lowering(_) if place == Place::Emptied => to(Entry::Resident, page, far),
            Entry::Lowering(content) if !refused => {
                assert!(page.is_none(), "nobody else fills it: {state:?}");
                to(Entry::Resident, Some((content, false)), far);
            }
            Entry::Absent | Entry::Filling(_) | Entry::Evicting | Entry::Lowering(_) => {}
        }
    }

    fn looks(&self, state: &State, next: &mut Vec<State>) {
        let mut to = |change: &dyn Fn(&mut State)| {
            let mut after = state.clone();
            change(&mut after);
            next.push(after);
        };
        // The thread sleeps in another call, or has a fault: it is seen outside, and later the calls of before are
        // over.
        if !matches!(state.thread, Thread::Tells | Thread::Heard | Thread::OnItsWay) {
            to(&|s| s.outside = s.heard.put_off().heard());
        }
        to(&|s| s.heard.put_off().end(s.outside));
        match state.look {
            Look::Elsewhere if state.mark => to(&|s| s.look = Look::Saw(s.page.is_some())),
            Look::Elsewhere => {}
            Look::Saw(is_there) => {
                let are_over =
                    state.heard.clone().put_off().are_over(0) || self.rule == Rule::Timed;
                match Fate::of(is_there, are_over) {
                    Fate::Waits => to(&|s| s.look = Look::Elsewhere),
                    Fate::Stays => to(&|s| {
                        s.look = Look::Elsewhere;
                        s.take_down();
                    }),
                    Fate::Gone if matches!(state.entry, Entry::Absent | Entry::Resident) => {
                        to(&|s| {
                            s.look = Look::Forgot;
                            (s.entry, s.far) = (Entry::Absent, None);
                        });
                    }
                    Fate::Gone => to(&|s| s.look = Look::Elsewhere),
                }
            }
            Look::Forgot => to(&|s| {
                s.look = Look::Elsewhere;
                s.take_down();
            }),
        }
    }

    /// What is wrong with a state, if anything.
    fn wrong(&self, state: &State) -> Option<&'static str> {
        let advice = self.rounds[usize::from(state.round) - 1];
        let there = state.page.map(|(content, _)| content);
        let before = state.round - 1;
        match (state.thread, there) {
            (Thread::Returned, Some(Some(_))) if advice == Advice::DontNeed => {
                Some("old data come back")
            }
            (Thread::Returned, Some(Some(old))) if old != before => Some("older data come back"),
            (Thread::Wrote, Some(content)) if content != Some(state.round) => Some("data are lost"),
            _ if there.is_some() && state.entry == Entry::Absent => Some("a frame is not counted"),
            _ => None,
        }
    }

    /// Goes through all that can be, and says what is wrong with the first state that is, and how many there are.
    fn explore(rounds: &[Advice], rule: Rule) -> Result<usize, String> {
        let model = Self { rounds: rounds.to_vec(), rule, book: Book::new(1).unwrap() };
        let begin = |page, far, entry| State {
            round: 1,
            thread: Thread::Before,
            page,
            far,
            entry,
            mark: false,
            heard: Heard::told(),
            look: Look::Elsewhere,
            outside: 0,
        };
        let mut open = vec![
            begin(Some((Some(0), false)), None, Entry::Resident),
            begin(None, Some(Some(0)), Entry::Absent),
        ];
        let mut known: HashSet<State> = open.iter().cloned().collect();
        while let Some(state) = open.pop() {
            if let Some(wrong) = model.wrong(&state) {
                return Err(format!("{wrong}: {state:?}"));
            }
            let next = model.after(&state);
            let done = state.thread == Thread::Wrote && usize::from(state.round) == rounds.len();
            // Whatever is left of the mark can still be taken down.
            assert!(!done || !state.mark || next.iter().any(|after| *after != state), "{state:?}");
            open.extend(next.into_iter().filter(|after| known.insert(after.clone())));
        }
        Ok(known.len())
    }
}

impl State {
    /// The mark is taken down, under the lock by which calls are heard.
    fn take_down(&mut self) {
        self.mark = false;
        self.heard.put_off().trim(|_| false);
    }
}

const BOTH: [Advice; 2] = [Advice::DontNeed, Advice::Free];

#[test]
fn in_no_order_is_anything_lost_or_back() {
    for first in BOTH {
        for second in BOTH {
            for third in BOTH {
                let states = Model::explore(&[first, second, third], Rule::Ours);
                assert!(states.as_ref().is_ok_and(|states| *states > 1000), "{states:?}");
            }
        }
    }
}

#[test]
fn with_another_rule_there_is_an_order_in_which_old_data_come_back() {
    for rule in [Rule::Timed, Rule::None] {
        let found = Model::explore(&[Advice::DontNeed], rule);
        assert!(found.is_err_and(|found| found.starts_with("old data come back")), "{rule:?}");
    }
}
