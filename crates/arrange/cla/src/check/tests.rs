//! The checker on programs that are wrong, and on all collectives.

use proptest::prelude::*;

use super::explore::explore;
use super::state::Program;
use super::{Checked, Fault, FaultKind, STATES_MAX, check};
use crate::collectives::{Acks, Collective, Figure1, Options, Plan, Tree};
use crate::program::{
    Buffer, Combine, Compare, Element, Gone, Line, Lines, Operation, Rank, Record, Recorded, Span,
    record,
};

fn figure_1(tree: &Tree) -> Recorded {
    record(tree.ranks(), |lines, me| Figure1 { tree, bytes: 64 }.run(lines, me))
}

fn fault(calls: &[Recorded]) -> Fault {
    *check(calls, STATES_MAX).expect_err("a fault")
}

fn two(mut program: impl FnMut(&mut Record, Rank) -> Result<(), Gone>) -> Recorded {
    record(2, &mut program)
}

#[test]
fn figure_1_delivers_once() {
    for tree in [Tree::flat(4, Rank(0)), Tree::regular(4, Rank(1), 2), Tree::regular(4, Rank(0), 1)]
    {
        let Checked { delivered, .. } = check(&[figure_1(&tree)], STATES_MAX).unwrap();
        assert_eq!(delivered.len(), 3, "{delivered:?}");
        for one in delivered {
            assert_eq!((one.offset, one.bytes), (0, 64));
            assert_eq!(one.from, format!("{}'s Send, byte 0, call 1", tree.root()));
        }
    }
}

#[test]
fn figure_1_is_refused_twice() {
    for tree in [Tree::flat(2, Rank(0)), Tree::flat(3, Rank(0)), Tree::regular(4, Rank(0), 2)] {
        let call = figure_1(&tree);
        let fault = fault(&[call.clone(), call]);
        let reuse = matches!(
            fault.kind,
            FaultKind::Together { .. } | FaultKind::Depends { .. } | FaultKind::Unwritten { .. }
        );
        assert!(reuse, "{fault}");
        let words = fault.to_string();
        assert!(words.starts_with("reuse: ") && words.contains("call 2"), "{words}");
    }
}

#[test]
fn a_circle_of_waits_is_a_deadlock() {
    let program = two(|lines, me| {
        lines.wait(Line(u32::from(me.0)), Compare::AtLeast, 1)?;
        lines.write(Line(1 - u32::from(me.0)), 1);
        Ok(())
    });
    let fault = fault(&[program]);
    assert!(
        matches!(&fault.kind, FaultKind::Deadlock { waiting } if waiting.len() == 2),
        "{fault}"
    );
}

#[test]
fn a_value_that_passes_by_is_a_lost_wake_up() {
    let program = two(|lines, me| {
        if me.0 == 0 {
            lines.write(Line(0), 1);
            lines.write(Line(0), 2);
            Ok(())
        } else {
            lines.wait(Line(0), Compare::Equal, 1)
        }
    });
    let fault = fault(&[program]);
    let FaultKind::LostWakeUp { word, .. } = fault.kind else { panic!("{fault}") };
    assert_eq!(word, 2);
    assert_eq!(fault.after.len(), 2, "a shortest example: {fault}");
}

#[test]
fn what_is_read_too_early_is_found() {
    let early = two(|lines, me| {
        if me.0 == 0 {
            lines.write(Line(0), 1);
            lines.copy(Span::of(Buffer::Send, 0, 56), Line(0).payload(56));
            Ok(())
        } else {
            lines.wait(Line(0), Compare::AtLeast, 1)?;
            lines.copy(Line(0).payload(56), Span::of(Buffer::Receive, 0, 56));
            Ok(())
        }
    });
    assert!(matches!(fault(&[early]).kind, FaultKind::Together { line: 0, .. }));
    let never = two(|lines, me| {
        if me.0 == 1 {
            lines.copy(Line(0).payload(8), Span::of(Buffer::Receive, 0, 8));
        }
        Ok(())
    });
    assert!(matches!(fault(&[never]).kind, FaultKind::Unwritten { line: 0, .. }));
}

#[test]
fn payload_on_a_flag_is_refused() {
    let program = two(|lines, me| {
        if me.0 == 0 {
            lines.copy(Span::of(Buffer::Send, 0, 64), Line(0).whole(64));
            lines.write(Line(0), 1);
            Ok(())
        } else {
            lines.wait(Line(0), Compare::AtLeast, 1)
        }
    });
    assert!(matches!(fault(&[program]).kind, FaultKind::Word { line: 0, .. }));
}

#[test]
fn too_many_states_are_no_proof() {
    let tree = Tree::flat(4, Rank(0));
    let counted = check(&[figure_1(&tree)], 10).unwrap_err();
    assert_eq!(counted.kind, FaultKind::TooMany { states: 10 });
}

/// All collectives over trees and options, for some calls.
fn plans(ranks: u16, bytes: u32) -> Vec<Plan> {
    let sum = Combine::Sum(Element::I64);
    let root = Rank(ranks - 1);
    let mut plans = Vec::new();
    for collective in Collective::all(sum) {
        let mut add = |options| {
            plans.extend(Plan::new(collective, ranks, root, bytes, options));
        };
        add(Options { ring: 2, ..Options::exchange(bytes) });
        for tree in
            [Tree::flat(ranks, root), Tree::regular(ranks, root, 2), Tree::binomial(ranks, root)]
        {
            let usual = Options::tree(tree, bytes);
            for (acks, acks_in_call, ring) in
                [(Acks::PerChild, false, 2), (Acks::Counter, false, 2), (Acks::Counter, true, 1)]
            {
                add(Options { acks, acks_in_call, ring, ..usual.clone() });
            }
        }
    }
    plans
}

#[test]
fn all_collectives_are_accepted_over_several_calls() {
    for (ranks, bytes, calls) in [(2, 8, 5), (3, 8, 4), (4, 8, 3), (2, 1024, 2)] {
        for plan in plans(ranks, bytes) {
            let recorded: Vec<Recorded> =
                (0..calls).map(|epoch| plan.record(epoch, epoch + 1)).collect();
            let checked = check(&recorded, STATES_MAX);
            let what = || format!("{:?}", (plan.collective(), ranks, bytes, plan.options()));
            let checked = checked.unwrap_or_else(|fault| panic!("{}\n{fault}", what()));
            let receivers = match plan.collective() {
                Collective::Barrier => 0,
                Collective::Broadcast => usize::from(ranks) - 1,
                Collective::Reduce(_) => 1,
                Collective::Allreduce(_) | Collective::Scatter => usize::from(ranks),
                Collective::Gather => usize::from(ranks),
                Collective::Allgather | Collective::Alltoall => usize::from(ranks * ranks),
                Collective::ReduceScatter(_) | Collective::Scan(_) => usize::from(ranks),
                Collective::Exscan(_) => usize::from(ranks) - 1,
            };
            assert_eq!(checked.delivered.len(), receivers, "{}: {:?}", what(), checked.delivered);
            for one in &checked.delivered {
                assert_eq!(one.bytes, bytes, "{}: {one}", what());
                assert!(one.from.contains(&format!("call {calls}")), "{}: {one}", what());
            }
        }
    }
}

#[test]
fn eight_ranks_are_few_states_where_flags_have_one_writer() {
    let tree = Tree::binomial(8, Rank(0));
    let plan = Plan::new(Collective::Broadcast, 8, Rank(0), 8, Options::tree(tree, 8)).unwrap();
    let recorded: Vec<Recorded> = (0..3).map(|epoch| plan.record(epoch, epoch + 1)).collect();
    let checked = check(&recorded, STATES_MAX).unwrap();
    assert!(checked.states < 1000, "{}", checked.states);
}

/// The calls without one operation.
fn without(calls: &[Recorded], call: usize, rank: usize, at: usize) -> Vec<Recorded> {
    let mut calls = calls.to_vec();
    calls[call].ranks[rank].operations.remove(at);
    calls
}

#[test]
fn every_wait_of_a_broadcast_over_one_slot_is_needed() {
    for acks in [Acks::PerChild, Acks::Counter] {
        let tree = Tree::regular(3, Rank(0), 1);
        let options = Options { acks, ring: 1, ..Options::tree(tree, 8) };
        let plan = Plan::new(Collective::Broadcast, 3, Rank(0), 8, options).unwrap();
        let calls: Vec<Recorded> = (0..3).map(|epoch| plan.record(epoch, epoch + 1)).collect();
        let mut waits = 0;
        for (rank, record) in calls[1].ranks.iter().enumerate() {
            for (at, operation) in record.operations.iter().enumerate() {
                if matches!(operation, Operation::Wait { .. }) {
                    waits += 1;
                    let checked = check(&without(&calls, 1, rank, at), STATES_MAX);
                    assert!(checked.is_err(), "{acks:?}: {rank} goes on without {operation:?}");
                }
            }
        }
        assert!(waits >= 4, "{waits}");
    }
}

/// Programs of which many are wrong, though there is an order in which each of them ends: they are dealt
/// out step by step, and a wait asks for what its line holds by then.
fn programs() -> impl Strategy<Value = Recorded> {
    let step = (0..3_usize, 0..7_u8, 0..3_u32);
    prop::collection::vec(step, 1..16).prop_map(|steps| {
        let mut recorded = record(3, |_, _| Ok(()));
        let (mut words, mut written) = ([0_u64; 3], [false; 3]);
        for (rank, action, line) in steps {
            let to = &mut recorded.ranks[rank];
            let (word, data) = (Line(line), Line(line + 3));
            let (held, full) = (&mut words[line as usize], &mut written[line as usize]);
            let ended = match action {
                0 => {
                    *held += 1;
                    to.write(word, *held);
                    Ok(())
                }
                1 => {
                    *held += 1;
                    to.add(word, 1);
                    Ok(())
                }
                2 | 3 => to.wait(word, Compare::AtLeast, *held),
                4 => to.wait(word, Compare::Equal, *held),
                5 if *full => {
                    to.copy(data.whole(8), Span::of(Buffer::Receive, 0, 8));
                    Ok(())
                }
                _ => {
                    *full = true;
                    to.copy(Span::of(Buffer::Send, 0, 8), data.whole(8));
                    Ok(())
                }
            };
            assert_eq!(ended, Ok(()), "a recorder waits for nobody");
        }
        recorded
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn leaving_orders_out_hides_no_fault(program in programs()) {
        let program = Program::of(&[program], 3).unwrap();
        let all = explore(&program, STATES_MAX, false);
        let some = explore(&program, STATES_MAX, true);
        prop_assert_eq!(all.is_ok(), some.is_ok(), "{:?} {:?}", all, some);
        if let (Ok(all), Ok(some)) = (all, some) {
            prop_assert!(some.states <= all.states);
            prop_assert_eq!(all.delivered, some.delivered);
        }
    }
}
