//! Collectives over modelled memory: every access is a step at which another rank may go on.
//!
//! The programs are those that run live, a member of a plan for each rank. Loom tries all interleavings of two
//! or three ranks, with what a weak memory may show them; shuttle tries many of up to eight.

#[cfg(loom)]
mod loom_tests;
#[cfg(not(loom))]
mod shuttle_tests;

use crate::collectives::{Collective, Plan};
use crate::program::{Buffer, Combine, Compare, Gone, Line, Lines, Place, Rank, Span};

/// Memory of one modelling tool.
pub(super) trait Memory {
    /// The word of a line, and all that its writer did before.
    fn load(&self, line: Line) -> u64;
    /// Publishes a word.
    fn store(&self, line: Line, value: u64);
    /// Adds to a word in one step.
    fn add(&self, line: Line, value: u64);
    /// Eight bytes of payload: the line, and which of its eight.
    fn read(&self, line: Line, at: usize) -> u64;
    /// Writes them.
    fn write(&self, line: Line, at: usize, value: u64);
    /// Lets another rank go on.
    fn rest();
}

/// One rank's lines and buffers, of whole words.
struct Modelled<'a, M> {
    memory: &'a M,
    send: Vec<u64>,
    receive: Vec<u64>,
}

/// Where word `n` of a span lies.
fn place(span: Span, n: usize) -> (usize, usize) {
    let byte = span.offset as usize + 8 * n;
    (byte / Line::BYTES as usize, byte % Line::BYTES as usize / 8)
}

impl<M: Memory> Modelled<'_, M> {
    fn get(&self, span: Span, n: usize) -> u64 {
        let (line, at) = place(span, n);
        match span.place {
            Place::Shared(first) => {
                self.memory.read(first.plus(u32::try_from(line).expect("few lines")), at)
            }
            Place::Private(Buffer::Send) => self.send[8 * line + at],
            Place::Private(Buffer::Receive) => self.receive[8 * line + at],
        }
    }

    fn put(&mut self, span: Span, n: usize, value: u64) {
        let (line, at) = place(span, n);
        match span.place {
            Place::Shared(first) => {
                let line = first.plus(u32::try_from(line).expect("few lines"));
                self.memory.write(line, at, value);
            }
            Place::Private(Buffer::Send) => self.send[8 * line + at] = value,
            Place::Private(Buffer::Receive) => self.receive[8 * line + at] = value,
        }
    }
}

impl<M: Memory> Lines for Modelled<'_, M> {
    fn copy(&mut self, src: Span, dst: Span) {
        for n in 0..src.bytes as usize / 8 {
            let value = self.get(src, n);
            self.put(dst, n, value);
        }
    }

    fn wait(&mut self, line: Line, compare: Compare, value: u64) -> Result<(), Gone> {
        while !compare.holds(self.memory.load(line), value) {
            M::rest();
        }
        Ok(())
    }

    fn write(&mut self, line: Line, value: u64) {
        self.memory.store(line, value);
    }

    fn add(&mut self, line: Line, value: u64) {
        self.memory.add(line, value);
    }

    fn claim(&mut self, _line: Line, _lines: u32) {}

    fn reduce(&mut self, combine: Combine, src: Span, dst: Span) {
        for n in 0..src.bytes as usize / 8 {
            let mut left = self.get(dst, n).to_ne_bytes();
            combine.combine(&mut left, &self.get(src, n).to_ne_bytes());
            self.put(dst, n, u64::from_ne_bytes(left));
        }
    }
}

/// What a rank gives: all words of all calls differ.
fn given(rank: u16, call: u64, words: usize) -> Vec<u64> {
    (0..words as u64).map(|n| u64::from(rank) * 1_000_000 + call * 1000 + n).collect()
}

/// What `me` must have after a call that sums, copies or does nothing.
fn expected(plan: &Plan, me: Rank, call: u64) -> Vec<u64> {
    let words = plan.bytes() as usize / 8;
    let of = |rank: u16| given(rank, call, plan.buffers(Rank(rank)).0 as usize / 8);
    let ranks = 0..plan.ranks();
    let sum_of = |ranks: std::ops::Range<u16>, n: usize| ranks.map(|r| of(r)[n]).sum();
    let sum = |n: usize| sum_of(ranks.clone(), n);
    match plan.collective() {
        _ if plan.buffers(me).1 == 0 => Vec::new(),
        Collective::Barrier => Vec::new(),
        Collective::Broadcast => of(plan.root().0),
        Collective::Reduce(_) | Collective::Allreduce(_) => (0..words).map(sum).collect(),
        Collective::Scatter => of(plan.root().0)[me.index() * words..][..words].to_vec(),
        Collective::Gather | Collective::Allgather => ranks.flat_map(of).collect(),
        Collective::Alltoall => {
            ranks.flat_map(|r| of(r)[me.index() * words..][..words].to_vec()).collect()
        }
        Collective::ReduceScatter(_) => (0..words).map(|n| sum(me.index() * words + n)).collect(),
        Collective::Scan(_) => (0..words).map(|n| sum_of(0..me.0 + 1, n)).collect(),
        Collective::Exscan(_) => (0..words).map(|n| sum_of(0..me.0, n)).collect(),
    }
}

/// What one rank does: so many calls one after another, each compared.
fn rank<M: Memory>(plan: &Plan, me: Rank, memory: &M, calls: u64) {
    let member = plan.member(me);
    let (gives, gets) = plan.buffers(me);
    for call in 0..calls {
        let send = given(me.0, call, gives as usize / 8);
        let mut lines = Modelled { memory, send, receive: vec![0; gets as usize / 8] };
        member.run(&mut lines, call).expect("nobody ends");
        assert_eq!(lines.receive, expected(plan, me, call), "{me}, call {call} of {plan:?}");
    }
}
