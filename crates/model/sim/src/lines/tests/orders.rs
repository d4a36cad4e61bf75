//! Small programs under every order of events: who waits is woken, and who is woken sees what was written
//! before.

use std::collections::HashSet;

use super::{add, program, read, wait, write};
use crate::lines::line::LineState;
use crate::lines::message::Core;
use crate::lines::rules::{Lookup, Protocol, Rules};
use crate::lines::world::{Event, Pace, Setting, World};
use crate::lines::{Program, Step, Touch};

/// Cores that always ask for all they lack at once.
#[derive(Debug)]
struct Eager;

impl Pace for Eager {
    fn streams(&self, _: &[LineState], _: Core, _: &[Touch]) -> bool {
        true
    }

    fn overlaps(&self) -> bool {
        true
    }
}

/// Every order of events of a program. `check` sees each state in which nothing can happen any more.
fn every_order(program: &Program, rules: &Rules, check: impl Fn(&World)) -> usize {
    let setting = Setting { rules, program, pace: &Eager };
    let mut world = World::new(program.lines());
    world.begin(program);
    let begin: Vec<Event> = (0..).zip(&program.cores).map(|(core, _)| Event::Begin(core)).collect();
    let mut seen = HashSet::new();
    let mut open = vec![(world, begin)];
    while let Some((world, events)) = open.pop() {
        if events.is_empty() {
            for core in 0..program.cores.len() {
                assert!(world.has_ended(core), "core {core} sleeps for ever: {world:?}");
            }
            check(&world);
        }
        for (at, &event) in events.iter().enumerate() {
            let (mut after, mut left) = (world.clone(), events.clone());
            left.remove(at);
            after.happen(setting, event, &mut left);
            left.sort_unstable();
            if seen.insert((after.clone(), left.clone())) {
                open.push((after, left));
            }
        }
    }
    seen.len()
}

fn everywhere(cores: Vec<Vec<Step>>, check: impl Fn(&World)) {
    let sockets = (0..cores.len()).map(|core| u16::from(core > 1)).collect::<Vec<_>>();
    let program = program(cores);
    for protocol in [Protocol::Mesi, Protocol::Mesif] {
        for lookup in [Lookup::Directory, Lookup::HomeSnoop] {
            let rules = Rules::new(protocol, lookup, sockets.clone());
            let states = every_order(&program, &rules, &check);
            assert!(states > 10, "{states}");
        }
    }
}

#[test]
fn a_waiter_is_woken() {
    everywhere(vec![vec![write(0, 1)], vec![wait(0, 1)]], |_| ());
    everywhere(vec![vec![wait(0, 1), write(0, 2)], vec![write(0, 1), wait(0, 2)]], |_| ());
}

#[test]
fn a_waiter_among_many_writers_is_woken() {
    let counted = vec![vec![wait(0, 2)], vec![add(0)], vec![add(0)]];
    everywhere(counted, |world| assert_eq!(world.lines[0].word(), 2));
}

#[test]
fn many_waiters_are_woken() {
    everywhere(vec![vec![write(0, 1)], vec![wait(0, 1)], vec![wait(0, 1)]], |_| ());
}

#[test]
fn what_was_written_before_the_flag_is_seen_after_it() {
    // Line 0 carries data, line 1 the flag. The reader's own word is what it read, passed on by a wait:
    // it ends only if the data are those of the write.
    let writer = vec![write(0, 7), write(1, 1)];
    let reader = vec![wait(1, 1), wait(0, 7), read(0)];
    everywhere(vec![writer, reader], |world| assert_eq!(world.lines[0].word(), 7));
}

#[test]
fn loads_in_advance_lose_no_wake_up() {
    let gather = vec![wait(0, 1), wait(1, 1)];
    everywhere(vec![gather, vec![write(0, 1)], vec![write(1, 1)]], |_| ());
}

#[test]
fn dropped_lines_come_back() {
    let drops = Step::Drop { line: 0 };
    let writer = vec![write(0, 1), drops.clone(), add(0), drops.clone(), add(0)];
    everywhere(vec![writer, vec![wait(0, 3), drops]], |world| {
        assert_eq!(world.lines[0].word(), 3);
    });
}

#[test]
fn claimed_lines_are_waited_for() {
    let claim = Step::Claim { line: 0, lines: 2 };
    let writer = vec![claim.clone(), write(0, 1), write(1, 2), claim];
    everywhere(vec![writer, vec![wait(0, 1), wait(1, 2), read(0)]], |world| {
        assert_eq!((world.lines[0].word(), world.lines[1].word()), (1, 2));
    });
}
