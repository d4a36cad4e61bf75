//! Breadth first through all states, so that an example of a fault is a shortest one.

use std::collections::{HashMap, HashSet, VecDeque};

use super::contents::{Content, Contents, Delivered};
use super::fault::{Fault, FaultKind, Step};
use super::independent::alone;
use super::state::{Action, Program, Read, State};
use crate::program::Rank;

/// What was found in a program without a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// States that were visited.
    pub states: usize,
    /// What each rank's buffers hold in the end, rank by rank: the same in every order.
    pub delivered: Vec<Delivered>,
}

/// How a state was reached: from which other one, by which rank.
#[derive(Clone, Copy, Debug)]
struct Way {
    from: usize,
    rank: usize,
}

/// A search.
#[derive(Debug)]
struct Search<'a> {
    program: &'a Program,
    contents: Contents,
    ways: Vec<Way>,
    /// What each operation has read.
    reads: HashMap<(usize, usize), Vec<Content>>,
}

/// Visits every state, or, if `reduce`, enough of them: orders that differ only in operations that have
/// nothing to do with one another are one.
pub(super) fn explore(
    program: &Program,
    states_max: usize,
    reduce: bool,
) -> Result<Checked, Box<Fault>> {
    let mut contents = program.contents();
    let start = program.start(&mut contents);
    let mut search = Search { program, contents, ways: Vec::new(), reads: HashMap::new() };
    search.ways.push(Way { from: 0, rank: 0 });
    let mut seen = HashSet::from([start.fingerprint()]);
    let mut open = VecDeque::from([(0, start)]);
    let mut delivered = None;
    while let Some((at, state)) = open.pop_front() {
        search.look(at, &state)?;
        let ranks = match alone(program, &state).filter(|_| reduce) {
            Some(rank) => vec![rank],
            None => (0..program.ranks()).filter(|&rank| state.goes_on(program, rank)).collect(),
        };
        if ranks.is_empty() {
            delivered.get_or_insert_with(|| search.delivered(&state));
        }
        for rank in ranks {
            let mut next = state.clone();
            let read = next.advance(program, &mut search.contents, rank);
            search.ways.push(Way { from: at, rank });
            search.judge(read, &state, rank)?;
            if !seen.insert(next.fingerprint()) {
                search.ways.pop();
                continue;
            }
            if seen.len() > states_max {
                let kind = FaultKind::TooMany { states: states_max };
                return Err(Box::new(Fault { kind, after: Vec::new() }));
            }
            open.push_back((search.ways.len() - 1, next));
        }
    }
    Ok(Checked { states: seen.len(), delivered: delivered.unwrap_or_default() })
}

impl Search<'_> {
    /// What is wrong with a state.
    fn look(&self, at: usize, state: &State) -> Result<(), Box<Fault>> {
        let program = self.program;
        let ranks = program.ranks();
        for one in 0..ranks {
            for other in one + 1..ranks {
                if let Some(line) = self.clash(state, one, other) {
                    let [one, other] = [one, other].map(|rank| self.step(state, rank));
                    return Err(self.fault(at, FaultKind::Together { one, other, line }));
                }
            }
        }
        let open: Vec<usize> =
            (0..ranks).filter(|&rank| state.action(program, rank).is_some()).collect();
        if open.is_empty() || open.iter().any(|&rank| state.goes_on(program, rank)) {
            return Ok(());
        }
        let lost = open.iter().find_map(|&rank| self.lost(at, state, rank));
        let kind = lost.unwrap_or_else(|| {
            let waiting = open.iter().map(|&rank| (self.step(state, rank), self.word(state, rank)));
            FaultKind::Deadlock { waiting: waiting.collect() }
        });
        Err(self.fault(at, kind))
    }

    /// The line that two ranks would use at once in their next operations, one of them writing.
    fn clash(&self, state: &State, one: usize, other: usize) -> Option<u32> {
        let [one, other] = [one, other].map(|rank| state.action(self.program, rank));
        match (one?, other?) {
            (Action::Move { src, dst, .. }, Action::Move { src: from, dst: to, .. }) => {
                let unit = dst.meets(to).or_else(|| dst.meets(from)).or_else(|| src.meets(to))?;
                Some(self.program.line_of(unit))
            }
            (Action::Write { line, value }, Action::Write { line: l, value: v })
                if line == l && value != v =>
            {
                u32::try_from(line).ok()
            }
            (Action::Write { line, .. }, Action::Add { line: l, .. })
            | (Action::Add { line, .. }, Action::Write { line: l, .. })
                if line == l =>
            {
                u32::try_from(line).ok()
            }
            _ => None,
        }
    }

    /// What an operation read, against what it read before in other orders. The way that was added last
    /// ends in this operation.
    fn judge(&mut self, read: Read, before: &State, rank: usize) -> Result<(), Box<Fault>> {
        let step = self.step(before, rank);
        let at = self.ways.len() - 1;
        let contents = match read {
            Read::Nothing => return Ok(()),
            Read::Unwritten(unit) => {
                let line = self.program.line_of(unit);
                return Err(self.fault(at, FaultKind::Unwritten { step, line }));
            }
            Read::Contents(contents) => contents,
        };
        let known = self.reads.entry((rank, before.next[rank])).or_insert_with(|| contents.clone());
        let differ = contents.iter().zip(known.iter()).find(|(here, known)| here != known);
        let Some((&here, &elsewhere)) = differ else { return Ok(()) };
        let [here, elsewhere] = [here, elsewhere].map(|content| self.contents.words(content));
        Err(self.fault(at, FaultKind::Depends { step, here, elsewhere }))
    }

    /// The operation that took away the word that a rank waits for, while it waited.
    fn lost(&self, at: usize, end: &State, rank: usize) -> Option<FaultKind> {
        let Some(Action::Wait { line, compare, value }) = end.action(self.program, rank) else {
            return None;
        };
        let mut contents = self.program.contents();
        let mut state = self.program.start(&mut contents);
        let mut gone = None;
        for way in self.way(at) {
            let held = compare.holds(state.words[line], value);
            let waited = state.next[rank] == end.next[rank];
            let step = self.step(&state, way.rank);
            state.advance(self.program, &mut contents, way.rank);
            if waited && held && !compare.holds(state.words[line], value) {
                gone = Some(step);
            }
        }
        let waiting = self.step(end, rank);
        gone.map(|gone| FaultKind::LostWakeUp { waiting, word: end.words[line], gone })
    }

    fn step(&self, state: &State, rank: usize) -> Step {
        self.program.steps[rank][state.next[rank]]
    }

    fn word(&self, state: &State, rank: usize) -> u64 {
        match state.action(self.program, rank) {
            Some(Action::Wait { line, .. }) => state.words[line],
            _ => 0,
        }
    }

    /// The steps from the start to a state.
    fn way(&self, mut at: usize) -> Vec<Way> {
        let mut ways = Vec::new();
        while at > 0 {
            ways.push(self.ways[at]);
            at = self.ways[at].from;
        }
        ways.reverse();
        ways
    }

    fn fault(&self, at: usize, kind: FaultKind) -> Box<Fault> {
        let mut next = vec![0; self.program.ranks()];
        let step = |way: Way| {
            let step = self.program.steps[way.rank][next[way.rank]];
            next[way.rank] += 1;
            step
        };
        Box::new(Fault { kind, after: self.way(at).into_iter().map(step).collect() })
    }

    fn delivered(&self, state: &State) -> Vec<super::Delivered> {
        let one = |rank: usize| {
            let of = Rank(u16::try_from(rank).unwrap_or(u16::MAX));
            self.contents.stretches(of, self.program.received(state, rank))
        };
        (0..self.program.ranks()).flat_map(one).collect()
    }
}
