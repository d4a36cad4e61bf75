//! The 15-puzzle by A* (Listing 1.1 of the Euro-Par paper): open and closed sets, parent
//! pointers, one node in one cache line.
//!
//! In two shapes, since the paper's public code is not named in its text: [`Linear`], lists that
//! are searched from end to end, as the candidate code did; [`Hashed`], a hash table and a
//! bucket queue, as the paper's section 3 describes what is "normally utilized". Both decide by
//! costs and states alone, never by addresses, so with one budget of nodes every arm expands the
//! same nodes in the same order; the checksum says so.

mod course;
mod hashed;
mod korf;
mod linear;
mod puzzle;

pub use hashed::{Hashed, HashedNode, HashedShape};
pub use korf::{Instance, KORF_INSTANCES, korf, korf_instances};
pub use linear::{Linear, LinearNode, LinearShape};
pub use puzzle::{Move, Puzzle};

/// The program's ordinary arrays beside its nodes, which no arm places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// First node of each hash chain.
    Heads,
    /// First node of each bucket of the open list.
    Buckets,
    /// The open list's pointers.
    Open,
    /// The closed list's pointers.
    Closed,
}

/// What a search does beside following pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Takes the best open node and computes its moves.
    Expand,
    /// Makes one successor: board, distance, cost.
    Generate,
    /// Compares one node's board with a successor's, or two nodes' costs.
    Compare,
    /// Links a node into a list or out of it.
    Link,
}

/// Hears of everything that costs time and is not an access to a node. A live search hears
/// nothing and pays nothing (`()`); a simulated one adds it up.
pub trait Tally {
    /// Entry `index` of a table is read or written.
    fn table(&mut self, table: Table, index: usize);

    /// A step is done.
    fn step(&mut self, step: Step);
}

impl Tally for () {
    #[inline]
    fn table(&mut self, _: Table, _: usize) {}

    #[inline]
    fn step(&mut self, _: Step) {}
}

/// What a search came to so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Nodes expanded.
    pub expanded: u64,
    /// Successors made.
    pub generated: u64,
    /// Nodes held, open and closed.
    pub held: u64,
    /// Moves of the solution, once there is one.
    pub moves: Option<u32>,
    /// Of all boards expanded, in order: equal in every arm.
    pub checksum: u64,
}

/// How a call to a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// As many expansions as asked for were done.
    Paused,
    /// The board is solved.
    Solved,
    /// As many nodes as allowed are held.
    Budget,
    /// The allocator refused a node.
    NoMemory,
    /// No open node is left: the board cannot be solved.
    Impossible,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::{Boxed, Chest, Nodes, Slab};

    fn start(number: u8) -> Puzzle {
        Puzzle::new(&korf(number).unwrap().board).unwrap()
    }

    fn hashed<N: Nodes<HashedShape>>(nodes: &mut N, number: u8, most: usize) -> (Ended, Found) {
        let mut search = Hashed::start(nodes, start(number), most).expect("one node fits");
        let ended = search.run(nodes, &mut (), u64::MAX);
        let found = search.found();
        if ended == Ended::Solved {
            let path = search.solution(nodes);
            assert_eq!(path.len(), found.moves.unwrap() as usize + 1);
            assert_eq!((path[0], path.last().unwrap().manhattan()), (start(number), 0));
            let neighbours = |pair: &[Puzzle]| {
                let (from, to) = (pair[0].blank(), pair[1].blank());
                Move::ALL.iter().any(|m| m.from_cell(from) == Some(to))
                    && pair[0].slid(from, to, pair[0].manhattan()).0 == pair[1]
            };
            assert!(path.windows(2).all(neighbours), "each step is a move");
        }
        search.clear(nodes);
        (ended, found)
    }

    #[test]
    fn easy_instances_are_solved_in_the_published_number_of_moves() {
        for number in [12, 79, 42, 55] {
            let most = 2_000_000;
            let mut slab = Slab::new(most);
            let (ended, found) = hashed(&mut slab, number, most);
            let optimal = u32::from(korf(number).unwrap().optimal_moves);
            assert_eq!((ended, found.moves), (Ended::Solved, Some(optimal)), "instance {number}");
            assert_eq!(slab.live(), 0);
        }
    }

    #[test]
    fn arms_expand_the_same_nodes_and_stop_at_the_budget() {
        let most = 30_000;
        let (ended, found) = hashed(&mut Slab::new(most), 1, most);
        assert_eq!(ended, Ended::Budget);
        assert!(found.held <= 30_000 && found.held > 29_990, "{found:?}");
        let chest = Chest::new();
        let mut boxed = Boxed::new(&chest);
        assert_eq!(hashed(&mut boxed, 1, most), (ended, found), "other addresses");
        assert_eq!(hashed(&mut boxed, 1, most), (ended, found), "and in another order");
        assert_ne!(hashed(&mut boxed, 2, most).1.checksum, found.checksum);
        assert_eq!(hashed(&mut Slab::new(1000), 1, most).0, Ended::NoMemory);
    }

    /// A board some moves from solved, so that the quadratic shape gets there.
    fn shallow(moves: usize) -> Puzzle {
        let mut board = Puzzle::new(&core::array::from_fn(|c| u8::try_from(c).unwrap())).unwrap();
        let (mut blank, mut before, mut word) = (0, None, 5_u64);
        let mut done = 0;
        while done < moves {
            word = crate::number::mixed(word + 1);
            let Some(to) = Move::ALL[usize::from(word.to_le_bytes()[0]) % 4].from_cell(blank)
            else {
                continue;
            };
            if before == Some(to) {
                continue;
            }
            board = board.slid(blank, to, board.manhattan()).0;
            (before, blank) = (Some(blank), to);
            done += 1;
        }
        board
    }

    #[test]
    fn both_shapes_find_equally_short_solutions() {
        for moves in [1, 8, 20, 34] {
            let board = shallow(moves);
            let mut slab = Slab::new(1 << 20);
            let mut search = Hashed::start(&mut slab, board, 1 << 20).unwrap();
            assert_eq!(search.run(&mut slab, &mut (), u64::MAX), Ended::Solved);
            let mut other = Slab::new(1 << 20);
            let mut linear = Linear::start(&mut other, board, 1 << 20).unwrap();
            assert_eq!(linear.run(&mut other, &mut (), u64::MAX), Ended::Solved);
            assert_eq!(linear.found().moves, search.found().moves, "{moves} random moves");
            assert!(search.found().moves.unwrap() as usize <= moves);
            assert_eq!(linear.solution(&other).len(), search.solution(&slab).len());
            linear.clear(&mut other);
            assert_eq!(other.live(), 0, "and gives every node back");
        }
    }

    #[test]
    fn the_linear_shape_too_expands_the_same_nodes_in_every_arm() {
        let run = |nodes: &mut Slab<LinearShape>| {
            let mut search = Linear::start(nodes, start(79), 3000).unwrap();
            let ended = search.run(nodes, &mut (), u64::MAX);
            search.clear(nodes);
            (ended, search.found())
        };
        let mut slab = Slab::new(4000);
        let (ended, found) = run(&mut slab);
        assert_eq!(ended, Ended::Budget);
        assert_eq!(run(&mut slab), (ended, found), "places in another order");
        let chest = Chest::<LinearShape>::new();
        let mut boxed = Boxed::new(&chest);
        let mut search = Linear::start(&mut boxed, start(79), 3000).unwrap();
        assert_eq!(search.run(&mut boxed, &mut (), u64::MAX), ended);
        assert_eq!(search.found(), found);
    }

    #[test]
    fn a_search_in_parts_is_the_search_in_one() {
        let most = 20_000;
        let whole = hashed(&mut Slab::new(most), 3, most).1;
        let mut slab = Slab::new(most);
        let mut search = Hashed::start(&mut slab, start(3), most).unwrap();
        let mut parts = 0;
        while search.run(&mut slab, &mut (), 1000) == Ended::Paused {
            parts += 1;
        }
        assert!(parts > 5);
        assert_eq!(search.found(), whole);
    }
}
