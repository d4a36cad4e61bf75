//! Many interleavings of four to eight ranks over several calls, at random and by priorities.

use super::{Memory, rank};
use crate::collectives::{Acks, Collective, Options, Plan, Tree};
use crate::program::{Combine, Element, Line, Rank};
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicU64, Ordering};

const SUM: Combine = Combine::Sum(Element::I64);

/// Lines: a word, and payload of which every access is a step.
struct Shuttled(Vec<[AtomicU64; 9]>);

impl Shuttled {
    fn new(lines: u32) -> Self {
        Self((0..lines).map(|_| std::array::from_fn(|_| AtomicU64::new(0))).collect())
    }

    fn word(&self, line: Line) -> &AtomicU64 {
        &self.0[line.0 as usize][8]
    }
}

impl Memory for Shuttled {
    fn load(&self, line: Line) -> u64 {
        self.word(line).load(Ordering::SeqCst)
    }

    fn store(&self, line: Line, value: u64) {
        self.word(line).store(value, Ordering::SeqCst);
    }

    fn add(&self, line: Line, value: u64) {
        self.word(line).fetch_add(value, Ordering::SeqCst);
    }

    fn read(&self, line: Line, at: usize) -> u64 {
        self.0[line.0 as usize][at].load(Ordering::SeqCst)
    }

    fn write(&self, line: Line, at: usize, value: u64) {
        self.0[line.0 as usize][at].store(value, Ordering::SeqCst);
    }

    fn rest() {
        shuttle::thread::yield_now();
    }
}

/// One order of all ranks' steps.
fn once(plan: &Plan, calls: u64) {
    let memory = Arc::new(Shuttled::new(plan.lines()));
    let ranks: Vec<_> = (0..plan.ranks())
        .map(|me| {
            let (memory, plan) = (Arc::clone(&memory), plan.clone());
            shuttle::thread::spawn(move || rank(&plan, Rank(me), &*memory, calls))
        })
        .collect();
    ranks.into_iter().for_each(|rank| rank.join().unwrap());
}

/// Orders that are tried of each plan, by each way.
const ORDERS: usize = 30;
/// Priorities change so often in one order.
const CHANGES: usize = 3;
/// Calls of a plan: the ring goes round twice.
const CALLS: u64 = 5;

fn many(collective: Collective, ranks: u16, bytes: u32, options: Options) {
    let options = Options { ring: 2, ..options };
    let plan = Plan::new(collective, ranks, Rank(0), bytes, options).unwrap();
    let (random, ranked) = (plan.clone(), plan);
    shuttle::check_random(move || once(&random, CALLS), ORDERS);
    shuttle::check_pct(move || once(&ranked, CALLS), ORDERS, CHANGES);
}

#[test]
fn trees_of_four_to_eight_ranks() {
    for (ranks, degree) in [(4, 3), (5, 2), (8, 2)] {
        let over = |bytes| Options::tree(Tree::regular(ranks, Rank(0), degree), bytes);
        many(Collective::Broadcast, ranks, 8, over(8));
        // Three chunks of a line each: they flow while the ring goes round.
        let flowing = Options { chunk_lines: 1, acks: Acks::Counter, ..over(8) };
        many(Collective::Broadcast, ranks, 2 * Line::PAYLOAD_BYTES + 8, flowing);
        many(Collective::Reduce(SUM), ranks, 16, over(16));
        many(Collective::Allreduce(SUM), ranks, 8, over(8));
        many(Collective::Barrier, ranks, 0, over(0));
    }
}

#[test]
fn exchanges_of_four_to_eight_ranks() {
    for ranks in [4, 6, 8] {
        many(Collective::Barrier, ranks, 0, Options::exchange(0));
        many(Collective::Allreduce(SUM), ranks, 8, Options::exchange(8));
        many(Collective::Allgather, ranks, 8, Options::exchange(8));
    }
}

#[test]
fn blocks_of_six_ranks() {
    let over = |bytes| Options::tree(Tree::flat(6, Rank(0)), bytes);
    many(Collective::Scatter, 6, 64, over(64));
    many(Collective::Gather, 6, 64, over(64));
}

#[test]
#[should_panic(expected = "call")]
fn a_program_that_uses_its_lines_again_too_early_is_found() {
    // Every call begins in the same slot, as if it were the first: Figure 1 of the paper without epochs.
    let options = Options { ring: 2, ..Options::tree(Tree::flat(4, Rank(0)), 8) };
    let plan = Plan::new(Collective::Broadcast, 4, Rank(0), 8, options).unwrap();
    let again = move || {
        let memory = Arc::new(Shuttled::new(plan.lines()));
        let ranks: Vec<_> = (0..plan.ranks())
            .map(|me| {
                let (memory, plan) = (Arc::clone(&memory), plan.clone());
                shuttle::thread::spawn(move || {
                    for call in 0..2 {
                        one_call(&plan, Rank(me), &memory, call);
                    }
                })
            })
            .collect();
        ranks.into_iter().for_each(|rank| rank.join().unwrap());
    };
    shuttle::check_random(again, 200);
}

/// A call whose payload is its own but whose epoch is the first one's.
fn one_call(plan: &Plan, me: Rank, memory: &Shuttled, call: u64) {
    let (gives, gets) = plan.buffers(me);
    let send = super::given(me.0, call, gives as usize / 8);
    let mut lines = super::Modelled { memory, send, receive: vec![0; gets as usize / 8] };
    plan.member(me).run(&mut lines, 0).expect("nobody ends");
    assert_eq!(lines.receive, super::expected(plan, me, call), "call {call}");
}
