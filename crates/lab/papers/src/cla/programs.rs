//! The programs of Figure 3 that differ by socket: Figure 1 with a synchronisation line for each socket (section 4,
//! rule 2), and HMPI's flat tree between barriers. Single-shot, as Figure 1 is: they are predicted and simulated,
//! never run.

use isochrone_cla::collectives::{Figure1, Tree};
use isochrone_cla::program::{Buffer, Compare, Gone, Line, Lines, Rank, Recorded, Span, record};

/// Sockets of the paper's machine, and cores of one.
const SOCKETS: u32 = 2;
pub(super) const SOCKET: usize = 8;
/// Bytes that every rank gets.
const BYTES: u32 = 64;
/// Lines of a rank: a flag and a counter for each socket, twice (HMPI has two barriers), and the data.
const LINES: u32 = 4 * SOCKETS + 1;

/// How many synchronisation lines a parent has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flags {
    /// One, as Figure 1 is printed.
    One,
    /// One for each socket, once both have threads.
    EachSocket,
}

/// Figure 1 over a tree. Rank `r` is on core `r`.
pub(super) fn broadcast(tree: &Tree, flags: Flags) -> Recorded {
    if flags == Flags::One || tree.ranks() as usize <= SOCKET {
        return record(tree.ranks(), |lines, me| Figure1 { tree, bytes: BYTES }.run(lines, me));
    }
    record(tree.ranks(), |lines, me| one_line(tree, lines, me))
}

/// The socket of a rank.
fn socket(rank: Rank) -> u32 {
    u32::from(rank.index() >= SOCKET)
}

/// A flag of `rank` for a socket, in one of the two rounds.
fn ready(rank: Rank, socket: u32, round: u32) -> Line {
    Line(LINES * u32::from(rank.0) + 2 * SOCKETS * round + socket)
}

/// A counter of `rank` for a socket, in one of the two rounds.
fn copied(rank: Rank, socket: u32, round: u32) -> Line {
    Line(LINES * u32::from(rank.0) + 2 * SOCKETS * round + SOCKETS + socket)
}

/// Where others copy from `rank`.
fn data(rank: Rank) -> Span {
    Line(LINES * u32::from(rank.0) + LINES - 1).whole(BYTES)
}

/// Of `ranks` those in each socket that has any.
fn by_socket(ranks: impl Iterator<Item = Rank> + Clone) -> impl Iterator<Item = (u32, u64)> {
    (0..SOCKETS).filter_map(move |of| {
        let count = ranks.clone().filter(|rank| socket(*rank) == of).count();
        u64::try_from(count).ok().filter(|count| *count > 0).map(|count| (of, count))
    })
}

fn mine(is_root: bool) -> Span {
    Span::of(if is_root { Buffer::Send } else { Buffer::Receive }, 0, BYTES)
}

fn one_line<L: Lines>(tree: &Tree, lines: &mut L, me: Rank) -> Result<(), Gone> {
    let mine = mine(me == tree.root());
    if let Some(parent) = tree.parent(me) {
        lines.wait(ready(parent, socket(me), 0), Compare::Equal, 1)?;
        lines.copy(data(parent), mine);
    }
    let children = tree.children(me);
    if !children.is_empty() {
        lines.copy(mine, data(me));
        for (of, _) in by_socket(children.iter().copied()) {
            lines.write(ready(me, of, 0), 1);
        }
        for (of, count) in by_socket(children.iter().copied()) {
            lines.wait(copied(me, of, 0), Compare::Equal, count)?;
        }
    }
    if let Some(parent) = tree.parent(me) {
        lines.add(copied(parent, socket(me), 0), 1);
    }
    Ok(())
}

/// HMPI's broadcast: all meet, read from the root, and meet again. Without the second barrier it is the least that
/// it can be.
pub(super) fn hmpi(ranks: u16, barriers: u32) -> Recorded {
    record(ranks, |lines, me| {
        let root = Rank(0);
        if me == root {
            lines.copy(mine(true), data(root));
        }
        for round in 0..barriers {
            barrier(lines, me, ranks, round)?;
            if round == 0 && me != root {
                lines.copy(data(root), mine(false));
            }
        }
        Ok(())
    })
}

/// A counter and a flag for each socket at the root.
fn barrier<L: Lines>(lines: &mut L, me: Rank, ranks: u16, round: u32) -> Result<(), Gone> {
    let root = Rank(0);
    if me != root {
        lines.add(copied(root, socket(me), round), 1);
        return lines.wait(ready(root, socket(me), round), Compare::Equal, 1);
    }
    let others = || (1..ranks).map(Rank);
    for (of, count) in by_socket(others()) {
        lines.wait(copied(root, of, round), Compare::Equal, count)?;
    }
    for (of, _) in by_socket(others()) {
        lines.write(ready(root, of, round), 1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use isochrone_cla::program::Operation;

    use super::*;

    fn count(recorded: &Recorded, rank: usize, wanted: fn(&Operation) -> bool) -> usize {
        recorded.ranks[rank].operations.iter().filter(|operation| wanted(operation)).count()
    }

    #[test]
    fn a_parent_has_a_flag_and_a_counter_for_each_socket_where_it_has_children() {
        let write = |operation: &Operation| matches!(operation, Operation::Write { .. });
        let wait = |operation: &Operation| matches!(operation, Operation::Wait { .. });
        for (ranks, sockets) in [(8, 1), (9, 2), (16, 2)] {
            let flat = Tree::flat(ranks, Rank(0));
            let found = broadcast(&flat, Flags::EachSocket);
            assert_eq!([count(&found, 0, write), count(&found, 0, wait)], [sockets; 2], "{ranks}");
            let one = broadcast(&flat, Flags::One);
            assert_eq!([count(&one, 0, write), count(&one, 0, wait)], [1; 2], "{ranks}");
        }
        let found = broadcast(&Tree::flat(16, Rank(0)), Flags::EachSocket);
        let waits: Vec<u64> = found.ranks[0]
            .operations
            .iter()
            .filter_map(|operation| match operation {
                Operation::Wait { value, .. } => Some(*value),
                _ => None,
            })
            .collect();
        assert_eq!(waits, [7, 8], "seven beside the root, eight in the other socket");
    }

    #[test]
    fn hmpi_meets_before_and_after_it_reads() {
        let add = |operation: &Operation| matches!(operation, Operation::Add { .. });
        let copy = |operation: &Operation| matches!(operation, Operation::Copy { .. });
        for barriers in [1, 2] {
            let found = hmpi(12, barriers);
            assert_eq!(count(&found, 11, add), barriers as usize);
            assert_eq!((count(&found, 11, copy), count(&found, 0, copy)), (1, 1));
        }
    }
}
