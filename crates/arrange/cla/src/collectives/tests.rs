//! Every collective, over trees, roots, sizes and rings, in random interleavings: does everybody get
//! what it should, call after call?
//!
//! One operation of one rank is interpreted at a time, in an order that the seed decides.
//! A slot that is written too early, or a flag that is raised too early, shows as wrong bytes; a wait
//! that nobody ends shows as ranks that cannot go on.

use super::member::AnyWay;
use super::{Acks, Collective, Kind, Options, Plan, PlanError, Shape, Tree};
use crate::program::{Combine, Element, Memory, Rank, Record, Recorded};
use proptest::prelude::*;

/// A small generator: which rank goes next.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % n
    }
}

/// Bytes that differ by rank, call and place; small enough that floating-point sums are exact.
fn given(combine: Option<Combine>, rank: u16, epoch: u64, bytes: u32) -> Vec<u8> {
    let seed = u64::from(rank) * 31 + epoch * 7;
    let number = |i: u64| (seed + i * 3) % 97;
    match combine.map(Combine::element) {
        Some(Element::F64) => {
            (0..u64::from(bytes / 8)).flat_map(|i| (number(i) as f64).to_ne_bytes()).collect()
        }
        _ => (0..u64::from(bytes)).map(|i| u8::try_from(number(i)).expect("below 97")).collect(),
    }
}

/// What `rank` must have in `Receive` after call `epoch`.
fn expected(plan: &Plan, rank: Rank, epoch: u64) -> Vec<u8> {
    let combine = plan.collective().combine();
    let of = |rank: u16| given(combine, rank, epoch, plan.buffers(Rank(rank)).0);
    let root = plan.root().0;
    let block = |r: u16| r as usize * plan.bytes() as usize;
    let joined =
        || (0..plan.ranks()).flat_map(|r| of(r)[..plan.bytes() as usize].to_vec()).collect();
    let combined = |combine: Combine, ranks: u16| {
        let mut all = of(0);
        (1..ranks).for_each(|r| combine.combine(&mut all, &of(r)));
        all
    };
    match plan.collective() {
        _ if plan.buffers(rank).1 == 0 => Vec::new(),
        Collective::Broadcast => of(root),
        Collective::Barrier => Vec::new(),
        Collective::Reduce(combine) | Collective::Allreduce(combine) => {
            combined(combine, plan.ranks())
        }
        Collective::Scatter => of(root)[block(rank.0)..block(rank.0 + 1)].to_vec(),
        Collective::Gather | Collective::Allgather => joined(),
        Collective::Alltoall => (0..plan.ranks())
            .flat_map(|r| of(r)[block(rank.0)..block(rank.0 + 1)].to_vec())
            .collect(),
        Collective::ReduceScatter(combine) => {
            combined(combine, plan.ranks())[block(rank.0)..block(rank.0 + 1)].to_vec()
        }
        Collective::Scan(combine) => combined(combine, rank.0 + 1),
        // As it was before the call.
        Collective::Exscan(_) if rank.0 == 0 => vec![if epoch == 0 { 0 } else { 0xee }; block(1)],
        Collective::Exscan(combine) => combined(combine, rank.0),
    }
}

/// Runs `calls` calls of every rank, interleaved by `seed`, and compares after each call of each rank.
fn check(plan: &Plan, calls: u64, seed: u64) -> Result<(), String> {
    let combine = plan.collective().combine();
    let sizes = (0..plan.ranks()).map(|r| plan.buffers(Rank(r))).collect::<Vec<_>>();
    let programs = (0..calls).map(|e| plan.record(e, e + 1)).collect::<Vec<Recorded>>();
    let mut dice = Dice(seed);
    let mut ranks = Memory::new(
        plan.lines(),
        sizes.iter().zip(0..).map(|(size, r)| given(combine, r, 0, size.0)).collect(),
        sizes.iter().map(|size| vec![0; size.1 as usize]).collect(),
    );
    let mut at = vec![(0_u64, 0_usize); sizes.len()];
    let mut open = (0..sizes.len()).collect::<Vec<_>>();
    let mut idle = 0;
    while !open.is_empty() {
        let pick = dice.below(open.len());
        let rank = open[pick];
        let (epoch, next) = at[rank];
        let Record { operations } = &programs[usize::try_from(epoch).expect("few")].ranks[rank];
        let me = Rank(u16::try_from(rank).expect("few"));
        if let Some(operation) = operations.get(next) {
            idle = if ranks.step(me, operation) {
                at[rank].1 += 1;
                0
            } else {
                idle + 1
            };
            if idle > 200 * open.len() {
                return Err(format!("stuck: {at:?} in {plan:?}"));
            }
            continue;
        }
        if ranks.receive[rank] != expected(plan, me, epoch) {
            return Err(format!("{me} got wrong bytes in call {epoch} of {plan:?}"));
        }
        at[rank] = (epoch + 1, 0);
        if epoch + 1 == calls {
            open.swap_remove(pick);
        } else {
            ranks.send[rank] = given(combine, me.0, epoch + 1, sizes[rank].0);
            ranks.receive[rank].fill(0xee);
        }
    }
    Ok(())
}

fn collectives() -> [Collective; Kind::COUNT] {
    Collective::all(Combine::Sum(Element::F64))
}

fn shapes(ranks: u16, root: Rank, rooted: bool) -> Vec<Shape> {
    let mut shapes = vec![
        Shape::Tree(Tree::flat(ranks, root)),
        Shape::Tree(Tree::binomial(ranks, root)),
        Shape::Tree(Tree::regular(ranks, root, 1)),
        Shape::Tree(Tree::regular(ranks, root, 3)),
    ];
    if !rooted {
        shapes.push(Shape::Exchange);
    }
    shapes
}

#[test]
fn everybody_gets_what_it_should() {
    for collective in collectives() {
        for ranks in [1, 2, 3, 5, 8, 16] {
            let roots = if collective.rooted() { vec![0, ranks / 2, ranks - 1] } else { vec![0] };
            for root in roots.into_iter().map(Rank) {
                for shape in shapes(ranks, root, collective.rooted()) {
                    for bytes in [8, 56, 64, 1000] {
                        let mut options = Options::exchange(bytes);
                        options.shape = shape.clone();
                        options.ring = 4;
                        let plan =
                            Plan::new(collective, ranks, root, bytes, options).expect("fits");
                        check(&plan, 6, u64::from(ranks) + u64::from(bytes)).expect("right bytes");
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_choice_is_right(
        which in 0..Kind::COUNT, ranks in 1_u16..9, root in 0_u16..9, degree in 1_u16..5,
        bytes in 0_u32..60, chunk_lines in 1_u32..4, ring in 0_u32..4, exchange: bool,
        counter: bool, acks_in_call: bool, claims: bool, grouped: bool, seed: u64,
    ) {
        let collective = collectives()[which];
        let root = Rank(root % ranks);
        let bytes = bytes * 8;
        let exchange = exchange && !collective.rooted();
        let least = if matches!(collective, Collective::Allgather)
            || exchange && matches!(collective, Collective::Allreduce(_)) { 2 } else { 1 };
        let options = Options {
            shape: if exchange { Shape::Exchange }
                else { Shape::Tree(Tree::regular(ranks, root, degree)) },
            acks: if counter { Acks::Counter } else { Acks::PerChild },
            acks_in_call,
            claims,
            groups: if grouped { (0..ranks).map(|r| r % 2).collect() } else { Vec::new() },
            chunk_lines,
            ring: (1 << ring).max(least),
        };
        let plan = Plan::new(collective, ranks, root, bytes, options).expect("fits");
        prop_assert_eq!(check(&plan, 9, seed), Ok(()));
    }
}

#[test]
fn a_program_stays_within_its_lines() {
    for collective in collectives() {
        for shape in shapes(6, Rank(2), collective.rooted()) {
            let mut options = Options::exchange(400);
            options.shape = shape;
            let plan = Plan::new(collective, 6, Rank(2), 400, options).expect("fits");
            let recorded = plan.record(0, 40);
            assert!(recorded.lines() <= plan.lines(), "{plan:?}");
            assert!(plan.runs().iter().all(|(first, count)| first + count <= plan.lines()));
        }
    }
}

#[test]
fn one_line_broadcast_is_three_operations_for_the_root() {
    let options = Options::tree(Tree::flat(2, Rank(0)), 8);
    let plan = Plan::new(Collective::Broadcast, 2, Rank(0), 8, options).expect("fits");
    let recorded = plan.record(3, 4);
    assert_eq!(recorded.ranks[0].operations.len(), 3, "copy, write and claim");
    assert_eq!(recorded.ranks[1].operations.len(), 2, "wait and copy");
}

#[test]
fn every_collective_goes_over_trees_and_those_without_a_root_by_exchange() {
    let tree = Shape::Tree(Tree::flat(2, Rank(0)));
    for kind in Kind::ALL {
        assert!(AnyWay::of(kind, &tree).is_some(), "{}", kind.name());
        assert_eq!(AnyWay::of(kind, &Shape::Exchange).is_some(), !kind.rooted(), "{}", kind.name());
    }
    let words = PlanError::Exchange("bcast").to_string();
    assert!(
        words.ends_with("allgather, alltoall, reduce_scatter_block, scan and exscan"),
        "{words}"
    );
}

#[test]
fn what_does_not_fit_is_refused_with_the_reason() {
    let sum = Collective::Allreduce(Combine::Sum(Element::F64));
    let plan = |collective, ranks, root, bytes, options| {
        Plan::new(collective, ranks, Rank(root), bytes, options).map(|_| ())
    };
    let tree = |ranks, root| Options::tree(Tree::flat(ranks, Rank(root)), 8);
    let broadcast = Collective::Broadcast;
    assert_eq!(plan(broadcast, 4, 4, 8, tree(4, 0)), Err(PlanError::Root { root: 4, ranks: 4 }));
    assert_eq!(
        plan(broadcast, 4, 1, 8, tree(3, 1)),
        Err(PlanError::TreeRanks { tree: 3, ranks: 4 })
    );
    assert_eq!(
        plan(broadcast, 4, 1, 8, tree(4, 0)),
        Err(PlanError::TreeRoot { tree: Rank(0), root: Rank(1) })
    );
    assert_eq!(plan(broadcast, 4, 1, 8, Options::exchange(8)), Err(PlanError::Exchange("bcast")));
    assert_eq!(plan(sum, 4, 0, 12, tree(4, 0)), Err(PlanError::Elements { bytes: 12, element: 8 }));
    let bits = Collective::Reduce(Combine::Xor(Element::F32));
    assert_eq!(plan(bits, 4, 0, 8, tree(4, 0)), Err(PlanError::Bits(Element::F32)));
    let ring = Options { ring: 6, ..tree(4, 0) };
    assert_eq!(
        plan(broadcast, 4, 0, 8, ring),
        Err(PlanError::Ring { ring: 6, what: "bcast", least: 1 })
    );
    let one = Options { ring: 1, ..Options::exchange(8) };
    assert_eq!(
        plan(sum, 4, 0, 8, one),
        Err(PlanError::Ring { ring: 1, what: "allreduce", least: 2 })
    );
    let chunk = Options { chunk_lines: 0, ..tree(4, 0) };
    assert_eq!(plan(broadcast, 4, 0, 8, chunk), Err(PlanError::Chunk { lines: 0, ring: 16 }));
    let groups = Options { groups: vec![0, 1], ..tree(4, 0) };
    assert_eq!(plan(broadcast, 4, 0, 8, groups), Err(PlanError::Groups { groups: 2, ranks: 4 }));
    assert_eq!(
        plan(Collective::Allgather, 4, 0, 1 << 30, tree(4, 0)),
        Err(PlanError::Size { ranks: 4, bytes: 1 << 30 })
    );
    assert_eq!(plan(Collective::Barrier, 0, 0, 0, tree(1, 0)), Err(PlanError::Nobody));
}
