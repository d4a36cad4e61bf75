//! A collective that this library does not have: the example of CONTRIBUTING.md, word for word.
//!
//! It is built with the tests alone, so that what is written there compiles and does what it says.

use super::kind::{Amount, Touched, kinds};
use super::layout::{Layout, Needs};
use super::ring::{Call, Cells, Ring};
use super::way::{Ranks, Shapes, Way};
use crate::program::{Buffer, Combine, Compare, Element, Gone, Line, Lines, Memory, Rank, record};

/// What each rank gives goes in blocks: one to each rank.
#[derive(Clone, Debug)]
pub(super) struct Alltoall {
    ring: Ring,
    me: Rank,
    others: Vec<Other>,
}

/// The ways to another rank and back.
#[derive(Clone, Copy, Debug)]
struct Other {
    rank: Rank,
    /// Own chunks for it, and where it says how far it has read.
    to: Cells,
    read_there: Line,
    /// Its chunks for this rank, and where this rank says how far it has read.
    from: Cells,
    read_here: Line,
}

impl Way for Alltoall {
    const SHAPES: Shapes = Shapes::Any;
    const IN_PLACE: bool = false;

    fn needs(ranks: &Ranks<'_>, _me: Rank) -> Needs {
        let others = usize::from(ranks.count) - 1;
        Needs { rings: others, flags: others, ..Needs::default() }
    }

    fn new(ranks: &Ranks<'_>, layout: &Layout, me: Rank) -> Self {
        // A rank has lines for all others, in their order.
        let place = |of: Rank, to: Rank| usize::from(if to.0 < of.0 { to.0 } else { to.0 - 1 });
        let other = |rank: Rank| Other {
            rank,
            to: layout.cells(me, place(me, rank)),
            read_there: layout.flag(rank, place(rank, me)),
            from: layout.cells(rank, place(rank, me)),
            read_here: layout.flag(me, place(me, rank)),
        };
        let others = (0..ranks.count).map(Rank).filter(|rank| *rank != me);
        Self { ring: layout.ring(), me, others: others.map(other).collect() }
    }

    #[inline]
    fn run<L: Lines>(&self, lines: &mut L, call: Call) -> Result<(), Gone> {
        for piece in call.pieces() {
            let block = |buffer, rank: Rank| piece.within(buffer, u32::from(rank.0) * call.bytes);
            for other in &self.others {
                if let Some(due) = self.ring.due(piece.s) {
                    lines.wait(other.read_there, Compare::AtLeast, due)?;
                }
                lines.copy(block(Buffer::Send, other.rank), piece.inside(other.to));
                other.to.raise(lines, piece);
            }
            lines.copy(block(Buffer::Send, self.me), block(Buffer::Receive, self.me));
            for other in &self.others {
                other.from.wait_piece(lines, piece)?;
                lines.copy(piece.inside(other.from), block(Buffer::Receive, other.rank));
                if self.ring.acknowledged(piece.s) {
                    lines.write(other.read_here, piece.s);
                }
            }
        }
        Ok(())
    }
}

kinds! {
    /// Block `r` of rank `s`'s `Send` arrives as block `s` of rank `r`'s `Receive`.
    Alltoall {
        names: alltoall ALLTOALL isochrone_alltoall MPI_Alltoall,
        takes: blocks,
        sends: All All, receives: All All,
        ways: Alltoall,
    }
}

#[test]
fn the_row_says_what_the_file_does() {
    let [kind] = Kind::ALL;
    assert_eq!((kind.name(), kind.rooted()), ("alltoall", false));
    let all = Touched { send: Amount::All, receive: Amount::All };
    assert_eq!([true, false].map(|root| kind.touched(root)), [all, all]);
    assert_eq!(kind.collective(Combine::Sum(Element::I32)).kind(), kind);
}

#[test]
fn every_rank_gets_its_block_of_every_rank() {
    const BYTES: u32 = 200;
    for (count, ring) in [(1, 1), (2, 1), (3, 2), (5, 16)] {
        let options = super::Options { ring, chunk_lines: 1, ..super::Options::exchange(BYTES) };
        let ranks = Ranks { count, options: &options };
        let all = || (0..count).map(Rank);
        let layout = Layout::new(&options, all().map(|me| Alltoall::needs(&ranks, me)));
        let parts: Vec<_> = all().map(|me| Alltoall::new(&ranks, &layout, me)).collect();
        let first = Call {
            before: 0,
            bytes: BYTES,
            chunk: options.chunk_bytes(),
            combine: Combine::Sum(Element::I32),
        };
        let recorded = record(count, |lines, me| {
            let call = |n| Call { before: n * first.chunks(), ..first };
            (0..20).try_for_each(|n| parts[me.index()].run(lines, call(n)))
        });
        let byte = |from: Rank, to: Rank| u8::try_from(from.0 * 16 + to.0).expect("few ranks");
        let of = |block: &dyn Fn(Rank) -> u8| -> Vec<u8> {
            all().flat_map(|rank| vec![block(rank); BYTES as usize]).collect()
        };
        let send = all().map(|me| of(&|to| byte(me, to))).collect();
        let receive = vec![vec![0; BYTES as usize * usize::from(count)]; usize::from(count)];
        let mut memory = Memory::new(layout.lines(), send, receive);
        assert!(memory.call(&recorded), "{count} ranks and rings of {ring} stop");
        for me in all() {
            assert_eq!(memory.receive[me.index()], of(&|from| byte(from, me)), "{me} of {count}");
        }
    }
}
