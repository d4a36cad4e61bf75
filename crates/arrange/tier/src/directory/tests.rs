//! The directory by itself: words, claims, sharers of any number.

use super::*;

fn zeroed(groups: u32, spaces: u16) -> Vec<AtomicU32> {
    (0..Directory::words(groups, spaces)).map(|_| AtomicU32::new(0)).collect()
}

#[test]
fn zeroed_memory_is_an_empty_directory() {
    let words = zeroed(3, 40);
    let directory = Directory::new(&words, 3, 40);
    for group in (0..3).map(Group) {
        assert_eq!(directory.look(group), Word::at_rest(State::Absent, Flags::default()));
        assert_eq!(directory.count(group), 0);
        assert_eq!(directory.home(group), NO_HOME);
        assert!(!directory.is_pinned(group));
    }
}

#[test]
fn a_word_keeps_its_parts_apart() {
    let states = [
        State::Absent,
        State::Filling,
        State::Resident,
        State::Mapping,
        State::Writing,
        State::Evicting,
        State::Punching,
        State::Seeking,
    ];
    for state in states {
        for bits in 0..8 {
            let flags =
                Flags { stored: bits & 1 != 0, clean: bits & 2 != 0, marker: bits & 4 != 0 };
            for owner in [0, 1, 4095, Actor::MOST].map(Actor) {
                let word = Word::at_rest(state, flags).with_owner(owner).with_waiters();
                assert_eq!(word.state(), state);
                assert_eq!(word.flags(), flags);
                assert_eq!(word.owner(), owner);
                assert!(word.has_waiters());
            }
        }
    }
}

#[test]
fn one_of_two_claims_holds_and_waiters_are_told_of() {
    let words = zeroed(1, 1);
    let directory = Directory::new(&words, 1, 1);
    let seen = directory.look(Group(0));
    let mine = directory.claim(Group(0), seen, State::Filling, Actor(3)).unwrap();
    assert_eq!((mine.state(), mine.owner()), (State::Filling, Actor(3)));
    assert_eq!(directory.claim(Group(0), seen, State::Filling, Actor(4)), Err(mine));
    let announced = directory.announce(Group(0), mine).unwrap();
    assert_eq!(directory.announce(Group(0), announced), Ok(announced), "once is enough");
    let stored = Flags { stored: true, ..Flags::default() };
    assert!(directory.release(Group(0), State::Resident, stored), "somebody waits");
    assert_eq!(directory.look(Group(0)), Word::at_rest(State::Resident, stored));
    let seen = directory.look(Group(0));
    assert!(directory.claim(Group(0), seen, State::Mapping, Actor(4)).is_ok());
    assert!(!directory.release(Group(0), State::Resident, stored), "nobody waits any more");
}

#[test]
fn sharers_of_any_number_are_told_apart() {
    for spaces in [1, 28, 29, 32, 33, 384, 385, 1000] {
        let words = zeroed(2, spaces);
        let directory = Directory::new(&words, 2, spaces);
        let some: Vec<Space> = (0..spaces).step_by(3).map(Space).collect();
        for space in &some {
            directory.join(Group(1), *space);
            directory.join(Group(1), *space);
        }
        assert_eq!(directory.sharers(Group(1)).collect::<Vec<_>>(), some);
        assert_eq!(directory.count(Group(1)) as usize, some.len());
        assert_eq!(directory.count(Group(0)), 0, "the neighbour has none");
        assert!(!directory.alike(Group(0), Group(1)));
        directory.part(Group(1));
        assert!(directory.alike(Group(0), Group(1)));
    }
}

#[test]
fn a_dead_owner_s_entry_is_taken_over_as_it_is() {
    let words = zeroed(1, 1);
    let directory = Directory::new(&words, 1, 1);
    let seen = directory.look(Group(0));
    let dead = directory.claim(Group(0), seen, State::Filling, Actor(1)).unwrap();
    let mine = directory.take_over(Group(0), dead, Actor(2)).unwrap();
    assert_eq!((mine.state(), mine.owner()), (State::Filling, Actor(2)));
    assert_eq!(directory.take_over(Group(0), dead, Actor(3)), Err(mine), "one survivor only");
}

#[test]
fn pins_are_counted() {
    let words = zeroed(1, 1);
    let directory = Directory::new(&words, 1, 1);
    let era = directory.pin(Group(0));
    directory.pin(Group(0));
    assert!(directory.unpin(Group(0), era));
    assert!(directory.is_pinned(Group(0)));
    assert!(directory.unpin(Group(0), era));
    assert!(!directory.is_pinned(Group(0)));
    assert!(!directory.unpin(Group(0), era), "none is left");
    assert!(!directory.is_pinned(Group(0)));
}

#[test]
fn pins_that_ended_are_not_taken_from_those_that_came_after() {
    let words = zeroed(1, 1);
    let directory = Directory::new(&words, 1, 1);
    let ended = directory.pin(Group(0));
    directory.end_pins(Group(0));
    assert!(!directory.is_pinned(Group(0)));
    let era = directory.pin(Group(0));
    assert!(!directory.unpin(Group(0), ended));
    assert!(directory.is_pinned(Group(0)));
    assert!(directory.unpin(Group(0), era));
}
