//! A stream of calls with roots in turn: each rank begins a call when its own part of the one before is done, as a
//! program's ranks do that meet in nothing else.
//!
//! What is fastest by itself need not be so in a stream: a flat tree's root is done when it has written, a deep tree's
//! last ranks begin late with what they are the root of.

use super::calls::judged;
use crate::collectives::{Options, Plan, Shape, Tree};
use crate::program::{Line, Operation, Place, Rank, Record, Recorded, Span, record};

/// Calls of a stream: so many roots in turn, from the one that is asked for on.
const CALLS: u16 = 4;

/// The programs of a stream, the last of which counts, and of how many calls it is.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) programs: Vec<Recorded>,
    pub(super) calls: u16,
}

impl Stream {
    /// Of the calls of `usual` and of those of other roots, each on lines of its own; `options` says how the calls of
    /// such a plan are done. `None` where one of them cannot be.
    pub(super) fn of(usual: &Plan, options: impl Fn(&Plan) -> Option<Options>) -> Option<Self> {
        let rooted = usual.collective().rooted();
        let calls = CALLS.min(usual.ranks());
        let mut programs: Vec<Recorded> = Vec::new();
        let mut lines = 0;
        for turn in 0..if rooted { calls } else { 1 } {
            let turned = turned(usual, turn)?;
            let (plan, numbers) = judged(&turned, options(&turned)?).ok()?;
            let (&last, earlier) = numbers.split_last()?;
            // Without a root the same lines serve all calls.
            let timed = if rooted { vec![last] } else { (last..last + u64::from(calls)).collect() };
            let all = earlier.iter().map(|&number| vec![number]).chain([timed]);
            for (at, numbers) in all.enumerate() {
                let members = plan.members();
                let call = record(plan.ranks(), |lines, rank| {
                    numbers.iter().try_for_each(|&n| members[rank.index()].run(lines, n))
                });
                append(&mut programs, at, call, lines);
            }
            lines += plan.lines();
        }
        Some(Self { programs, calls })
    }
}

/// Adds a call to what is done at one time, on lines that begin at `first`.
fn append(programs: &mut Vec<Recorded>, at: usize, call: Recorded, first: u32) {
    if programs.len() <= at {
        programs.push(Recorded { ranks: vec![Record::default(); call.ranks.len()] });
    }
    for (all, more) in programs[at].ranks.iter_mut().zip(call.ranks) {
        all.operations.extend(more.operations.into_iter().map(|one| moved(one, first)));
    }
}

/// The usual plan with the root `turn` ranks on, as the usual rule has it: places go round from the root.
fn turned(usual: &Plan, turn: u16) -> Option<Plan> {
    let ranks = usual.ranks();
    let on = |rank: Rank| Rank((rank.0 + turn) % ranks);
    let root = if usual.collective().rooted() { on(usual.root()) } else { usual.root() };
    let mut options = usual.options().clone();
    if let Shape::Tree(tree) = &options.shape {
        let mut parents = vec![None; usize::from(ranks)];
        for rank in (0..ranks).map(Rank) {
            parents[on(rank).index()] = tree.parent(rank).map(on);
        }
        let served: Vec<Rank> = tree.preorder().into_iter().map(on).collect();
        options.shape = Shape::Tree(Tree::served_in(&parents, &served).ok()?);
    }
    Plan::new(usual.collective(), ranks, root, usual.bytes(), options).ok()
}

/// The same on lines that lie `by` further.
fn moved(operation: Operation, by: u32) -> Operation {
    let line = |line: Line| line.plus(by);
    let span = |span: Span| match span.place {
        Place::Shared(of) => Span { place: Place::Shared(of.plus(by)), ..span },
        Place::Private(_) => span,
    };
    match operation {
        Operation::Copy { src, dst } => Operation::Copy { src: span(src), dst: span(dst) },
        Operation::Wait { line: of, compare, value } => {
            Operation::Wait { line: line(of), compare, value }
        }
        Operation::Write { line: of, value } => Operation::Write { line: line(of), value },
        Operation::Add { line: of, value } => Operation::Add { line: line(of), value },
        Operation::Claim { line: of, lines } => Operation::Claim { line: line(of), lines },
        Operation::Reduce { combine, src, dst } => {
            Operation::Reduce { combine, src: span(src), dst: span(dst) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::Collective;

    #[test]
    fn roots_go_round_on_lines_of_their_own() {
        let options = Options::tree(Tree::regular(6, Rank(5), 2), 8);
        let plan = Plan::new(Collective::Broadcast, 6, Rank(5), 8, options).expect("fits");
        let next = turned(&plan, 1).expect("fits");
        let Shape::Tree(tree) = &next.options().shape else { panic!("no tree") };
        assert_eq!((next.root(), tree), (Rank(0), &Tree::regular(6, Rank(0), 2)));
        let stream = Stream::of(&plan, |plan| Some(plan.options().clone())).expect("fits");
        let timed = stream.programs.last().expect("some");
        // Each root copies, writes and claims once, and each other rank has its own and those of its children.
        let writes = |rank: &Record| {
            rank.operations.iter().filter(|one| matches!(one, Operation::Write { .. })).count()
        };
        assert_eq!(stream.calls, 4);
        let written: usize = timed.ranks.iter().map(writes).sum();
        assert_eq!(written, 4 * 3, "three ranks of each tree have children");
        assert!(timed.lines() > 3 * plan.lines() / 16, "four times the lines of a call");
    }

    #[test]
    fn without_a_root_calls_go_on() {
        let plan =
            Plan::new(Collective::Barrier, 4, Rank(0), 0, Options::exchange(0)).expect("fits");
        let stream = Stream::of(&plan, |plan| Some(plan.options().clone())).expect("fits");
        let one = plan.record(0, 1).ranks[0].operations.len();
        let timed = stream.programs.last().expect("some");
        assert_eq!(timed.ranks[0].operations.len(), 4 * one);
    }
}
