//! The graph and its prices against the paper's own example and against brute force.

pub(crate) mod random;

use isochrone_machine::{ClassCost, LineCosts, PairClass};
use proptest::prelude::*;

use super::{EdgeKind, Graph, GraphError, PredictError, Prediction, Rules, Start, predict};
use crate::collectives::{Figure1, Tree};
use crate::program::{Compare, Line, Lines, Rank, Record, Recorded, record};

/// The machine of the paper: section 2.1 and Table 1.
pub(crate) fn sandy_bridge(sockets: usize, each: usize) -> LineCosts {
    let near = ClassCost {
        transfer_ns: 35.0,
        memory_ns: 70.0,
        start_ns: 63.4,
        line_ns: 11.1,
        congestion_ns: 0.0,
    };
    let far = ClassCost {
        transfer_ns: 94.0,
        memory_ns: 107.0,
        start_ns: 180.65,
        line_ns: 7.5,
        congestion_ns: 3.0,
    };
    let class = |a: usize, b: usize| PairClass(u8::from(a / each != b / each));
    LineCosts::new(sockets * each, vec![near, far], 2.3, class)
}

fn figure_2() -> Recorded {
    let tree = Tree::regular(4, Rank(0), 2);
    record(4, |lines, me| Figure1 { tree: &tree, bytes: 64 }.run(lines, me))
}

#[test]
fn figure_2_costs_what_the_printed_rules_say() {
    let costs = sandy_bridge(1, 8);
    let paper = predict(&figure_2(), Start::Memory, &costs, &[0, 1, 2, 3], Rules::Paper).unwrap();
    // Root: R_L + R_I + R_I. Child: R_R, R_R + R_L, R_I, R_I. Leaf: R_R, R_R + R_L, R_I. Child waits: R_R.
    // Both children add: R_I + R_R. Root waits: R_R.
    let expected =
        (2.3 + 140.0) + (35.0 + 37.3 + 140.0) + (35.0 + 37.3 + 70.0) + 35.0 + 105.0 + 35.0;
    assert!((paper.min.total_ns - expected).abs() < 1e-9, "{}", paper.min.total_ns);
    let timed = predict(&figure_2(), Start::Memory, &costs, &[0, 1, 2, 3], Rules::Timed).unwrap();
    assert!((timed.min.total_ns - 496.9).abs() < 1e-9, "{}", timed.min.total_ns);
    assert!(timed.max.total_ns > timed.min.total_ns);
    let edges = timed.graph.edges();
    let of = |kind| edges.iter().filter(|e| e.kind == kind).count();
    assert_eq!(of(EdgeKind::AnyOrder), 1, "t1 and t2 write the flag that t0 polls");
    assert_eq!(of(EdgeKind::Dependency), 3 + 3 + 3, "flags, data and notifications");
}

#[test]
fn the_critical_path_of_figure_2_goes_down_the_left_and_visits_both_notifications() {
    let costs = sandy_bridge(1, 8);
    let paper = predict(&figure_2(), Start::Memory, &costs, &[0, 1, 2, 3], Rules::Paper).unwrap();
    let path: Vec<(u16, usize)> = paper
        .min
        .path(&paper.graph)
        .into_iter()
        .map(|node| (paper.graph.nodes()[node].rank.0, paper.graph.nodes()[node].at))
        .collect();
    let down = [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (1, 3), (3, 0), (3, 1), (3, 2), (1, 4)];
    assert_eq!(path[..10], down, "the left subtree");
    assert_eq!(path[10..], [(1, 5), (2, 2), (0, 2)], "both adds, then the root's wait");
}

/// A rank's last write costs it nothing where stores are posted, and whoever waits for it still waits.
#[test]
fn posted_stores_are_waited_for_by_others_alone() {
    let costs = sandy_bridge(1, 2);
    let program = record(2, |lines, me| {
        if me.0 == 0 {
            lines.write(Line(0), 1);
            return Ok(());
        }
        lines.wait(Line(0), Compare::AtLeast, 1)?;
        lines.write(Line(2), 1);
        Ok(())
    });
    let found = predict(&program, Start::Memory, &costs, &[0, 1], Rules::Timed).unwrap();
    let (band, posted) = (found.band(), found.posted_band());
    // At the cheapest the poller has the flag: R_R for the write, R_R for the wait. The last write takes R_I.
    assert!((band.min_ns - 140.0).abs() < 1e-9, "{band:?}");
    assert!((posted.min_ns - 70.0).abs() < 1e-9, "{posted:?}");
    assert!(posted.max_ns < band.max_ns, "{posted:?} {band:?}");
}

/// Calls that ended one after the other leave a line where the last of them put it.
#[test]
fn calls_in_windows_leave_no_doubt_about_their_order() {
    let costs = sandy_bridge(1, 2);
    let call = |n: u64| {
        record(2, |lines, me| {
            if me.0 == 0 {
                lines.write(Line(0), n);
                return Ok(());
            }
            lines.wait(Line(0), Compare::AtLeast, n.saturating_sub(1))
        })
    };
    let before = [call(1), call(2)];
    let joined = record(2, |lines, me| {
        for n in 1..=2 {
            lines.operations.extend_from_slice(&call(n).ranks[me.index()].operations);
        }
        Ok(())
    });
    let now = record(2, |lines, me| {
        if me.0 == 0 {
            lines.write(Line(0), 3);
        }
        Ok(())
    });
    let min = |start| predict(&now, start, &costs, &[0, 1], Rules::Timed).unwrap().min.total_ns;
    // In windows the second call's wait surely came after nothing of rank 0 took the line back.
    assert!(min(Start::AfterEach(&before)) >= min(Start::After(&joined)));
}

#[test]
fn pictures_have_every_node_and_a_thick_critical_path() {
    let costs = sandy_bridge(1, 8);
    let paper = predict(&figure_2(), Start::Memory, &costs, &[0, 1, 2, 3], Rules::Paper).unwrap();
    let nodes = paper.graph.nodes().len();
    let path = paper.min.path(&paper.graph);
    let text = super::dot(&paper, &paper.min, "Figure 2");
    assert_eq!(text.matches(" ns\"").count(), nodes);
    assert!(text.matches("style=dotted, penwidth=3]").count() >= path.len());
    assert!(text.contains("dir=none, constraint=false, penwidth=3"), "E3 is on the path");
    let text = super::svg(&paper, &paper.min, "Figure <2>");
    assert_eq!(text.matches("<rect x=").count(), nodes);
    // Every step of the path but those that follow an E3's other end is drawn thick.
    assert_eq!(text.matches("stroke-width=\"4\"").count(), path.len() - 1);
    assert!(text.contains("Figure &lt;2&gt;"));
}

/// Two ranks of a warm broadcast whose payload travels with the flag.
fn hop(rank: Rank, lines: &mut impl Lines, epoch: u64) -> Result<(), crate::program::Gone> {
    message(rank, lines, epoch, 8)
}

/// The same with a payload that may run on into the lines behind the flag's.
fn message(
    rank: Rank,
    lines: &mut impl Lines,
    epoch: u64,
    bytes: u32,
) -> Result<(), crate::program::Gone> {
    use crate::program::{Buffer, Span};
    if rank.0 == 0 {
        lines.copy(Span::of(Buffer::Send, 0, bytes), Line(0).payload(bytes));
        lines.write(Line(0), epoch);
    } else {
        lines.wait(Line(0), Compare::AtLeast, epoch)?;
        lines.copy(Line(0).payload(bytes), Span::of(Buffer::Receive, 0, bytes));
    }
    Ok(())
}

#[test]
fn a_warm_hop_is_two_transfers_at_least_and_three_at_most() {
    let costs = sandy_bridge(1, 8);
    let warm = record(2, |lines, me| hop(me, lines, 1));
    let now = record(2, |lines, me| hop(me, lines, 2));
    let hot = predict(&now, Start::After(&warm), &costs, &[0, 1], Rules::Timed).unwrap();
    // The root takes the line from the child, the child takes it back; what is in the cache is free of
    // transfers. Nothing else can happen: the child has the line when it begins to poll.
    assert!((hot.min.total_ns - (2.0 * 35.0 + 2.0 * 2.3)).abs() < 1e-9, "{}", hot.min.total_ns);
    assert!((hot.max.total_ns - (2.0 * 35.0 + 4.0 * 2.3)).abs() < 1e-9, "{}", hot.max.total_ns);
    // From memory the child's first poll may be under way when the root wants the line; only one of
    // the two gets it from there.
    let cold = predict(&now, Start::Memory, &costs, &[0, 1], Rules::Timed).unwrap();
    assert!(
        (cold.max.total_ns - (70.0 + 2.0 * 35.0 + 4.0 * 2.3)).abs() < 1e-9,
        "{}",
        cold.max.total_ns
    );
}

/// A load of the second line may be on its way when the flag comes, so it need not cost a transfer.
#[test]
fn the_line_behind_a_flag_costs_at_least_what_a_further_line_of_a_message_does() {
    let costs = sandy_bridge(1, 8);
    let min_ns = |bytes| {
        let warm = record(2, |lines, me| message(me, lines, 1, bytes));
        let now = record(2, |lines, me| message(me, lines, 2, bytes));
        let hot = predict(&now, Start::After(&warm), &costs, &[0, 1], Rules::Timed).unwrap();
        hot.min.total_ns
    };
    let further = min_ns(64) - min_ns(8);
    // The writer fetches two lines, no dearer than one by one; the reader one more.
    assert!((further - (35.0 + 11.1)).abs() < 1e-9, "{further}");
}

#[test]
fn a_claim_takes_a_transfer_off_the_way_unless_a_poll_takes_the_line_back() {
    let costs = sandy_bridge(1, 8);
    let claims = |lines: &mut Record, me: Rank| {
        hop(me, lines, 1)?;
        if me.0 == 0 {
            lines.claim(Line(0), 1);
        }
        Ok(())
    };
    let warm = record(2, claims);
    let now = record(2, |lines, me| hop(me, lines, 2));
    let hot = predict(&now, Start::After(&warm), &costs, &[0, 1], Rules::Timed).unwrap();
    assert!((hot.min.total_ns - (35.0 + 3.0 * 2.3)).abs() < 1e-9, "{}", hot.min.total_ns);
    // At worst the child takes the claimed line, the root takes it back, and the child once more.
    assert!((hot.max.total_ns - (3.0 * 35.0 + 4.0 * 2.3)).abs() < 1e-9, "{}", hot.max.total_ns);
}

#[test]
fn what_cannot_be_priced_is_refused_with_the_reason() {
    let costs = sandy_bridge(1, 8);
    let waits = record(2, |lines, me| lines.wait(Line(u32::from(me.0)), Compare::AtLeast, 1));
    let deadlock = GraphError::Deadlock { rank: Rank(0), at: 0, line: 0, value: 1 };
    assert_eq!(Graph::of(&waits, None).unwrap_err(), deadlock);
    let twice = predict(&figure_2(), Start::Memory, &costs, &[0, 1, 2, 2], Rules::Timed);
    assert_eq!(twice.unwrap_err(), PredictError::Cores { ranks: 4, cores: 3 });
}

#[test]
fn a_line_that_may_come_from_memory_may_still_come_over_a_busy_link() {
    // Rank 3 polls a line that rank 0 may be writing, while rank 1 waits for rank 3: all far transfers.
    let program = record(4, |lines, me| {
        match me.0 {
            0 => lines.write(Line(0), 1),
            1 => lines.wait(Line(3), Compare::AtLeast, 1)?,
            2 => lines.write(Line(2), 1),
            _ => {
                lines.write(Line(3), 1);
                lines.wait(Line(0), Compare::AtLeast, 0)?;
            }
        }
        Ok(())
    });
    let with_memory = |memory_ns: f64| {
        let near = ClassCost {
            transfer_ns: 30.0,
            memory_ns,
            start_ns: 40.0,
            line_ns: 5.0,
            congestion_ns: 0.0,
        };
        let far = ClassCost { transfer_ns: 100.0, congestion_ns: 4.0, ..near };
        let class = |a: usize, b: usize| PairClass(u8::from((a < 2) != (b < 2)));
        let costs = LineCosts::new(4, vec![near, far], 2.0, class);
        let timed = predict(&program, Start::Memory, &costs, &[0, 1, 2, 3], Rules::Timed);
        timed.unwrap().max.total_ns
    };
    let ends: Vec<f64> = (95..115).map(|ns| with_memory(f64::from(ns))).collect();
    assert!(ends.is_sorted(), "dearer memory makes it cheaper: {ends:?}");
}

/// The longest of all paths, each followed to its end, with the price of each node taken from `timing`.
fn longest_path(prediction: &Prediction) -> f64 {
    fn until(p: &Prediction, node: usize) -> f64 {
        let mut before: Vec<usize> = p.graph.previous(node).into_iter().collect();
        before.extend(p.graph.sources(node));
        let from = before.iter().map(|&n| p.max.end_ns[n]).fold(0.0, f64::max);
        let own = p.max.end_ns[node] - from;
        before.into_iter().map(|n| until(p, n)).fold(0.0, f64::max) + own
    }
    let nodes = 0..prediction.graph.nodes().len();
    nodes.map(|node| until(prediction, node)).fold(0.0, f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_band_is_a_band_and_its_top_the_longest_path(
        program in random::programs(),
        costs in random::machines(),
    ) {
        let cores: Vec<usize> = (0..program.ranks.len()).collect();
        for start in [Start::Memory, Start::After(&program)] {
            let Ok(timed) = predict(&program, start, &costs, &cores, Rules::Timed) else {
                // Words go on growing from call to call; a second round of the same program may not.
                prop_assert!(matches!(start, Start::After(_)));
                continue;
            };
            prop_assert!(timed.min.total_ns <= timed.max.total_ns + 1e-9);
            for node in timed.graph.topological() {
                prop_assert!(timed.min.end_ns[node] <= timed.max.end_ns[node] + 1e-9);
            }
            let paper = predict(&program, start, &costs, &cores, Rules::Paper).unwrap();
            prop_assert!(paper.min.total_ns <= paper.max.total_ns + 1e-9);
        }
    }

    #[test]
    fn brute_force_finds_the_same_longest_path(
        program in random::programs_of(1..17),
        costs in random::machines(),
    ) {
        let cores: Vec<usize> = (0..program.ranks.len()).collect();
        let timed = predict(&program, Start::Memory, &costs, &cores, Rules::Timed).unwrap();
        prop_assert!((longest_path(&timed) - timed.max.total_ns).abs() < 1e-6);
        let path = timed.max.path(&timed.graph);
        let last = path.last().map_or(0.0, |&n| timed.max.end_ns[n]);
        prop_assert!((last - timed.max.total_ns).abs() < 1e-9, "the path ends with the program");
    }

    #[test]
    fn dearer_lines_never_make_a_program_cheaper(
        program in random::programs(),
        costs in random::machines(),
        factors in prop::array::uniform6(1.0..2.0_f64),
    ) {
        let cores: Vec<usize> = (0..program.ranks.len()).collect();
        let mut dearer = costs.clone();
        for class in &mut dearer.classes {
            class.transfer_ns *= factors[0];
            class.memory_ns *= factors[1];
            class.start_ns *= factors[2];
            class.line_ns *= factors[3];
            class.congestion_ns *= factors[4];
        }
        dearer.local_ns *= factors[5];
        for rules in [Rules::Paper, Rules::Timed] {
            let before = predict(&program, Start::Memory, &costs, &cores, rules).unwrap();
            let after = predict(&program, Start::Memory, &dearer, &cores, rules).unwrap();
            prop_assert!(after.min.total_ns >= before.min.total_ns - 1e-9, "{rules:?} T_min");
            prop_assert!(after.max.total_ns >= before.max.total_ns - 1e-9, "{rules:?} T_max");
        }
    }

    /// E3: whoever comes first goes first. No order of adds ends earlier.
    #[test]
    fn no_order_of_adds_beats_the_one_that_is_taken(
        adds in prop::collection::vec((0.0..200.0_f64, 1.0..100.0_f64), 1..6),
    ) {
        let (end, _) = super::cheapest::in_turn(adds.iter().copied().enumerate());
        let mut best = f64::INFINITY;
        let mut order: Vec<usize> = (0..adds.len()).collect();
        permutations(&mut order, 0, &mut |order| {
            let one = |end: f64, &n: &usize| end.max(adds[n].0) + adds[n].1;
            best = best.min(order.iter().fold(0.0, one));
        });
        prop_assert!((end - best).abs() < 1e-9);
    }

    /// The way from write to write that ends at the polling rank, where near classes are nested in far
    /// ones: a shortest spanning tree is as long as the best of all orders.
    #[test]
    fn no_order_of_writes_has_fewer_far_transfers(
        boards in prop::collection::vec((0..2_usize, 0..2_usize), 2..7),
    ) {
        let ns = |a: usize, b: usize| match (boards[a], boards[b]) {
            ((x, _), (y, _)) if x != y => 94.0,
            ((_, x), (_, y)) if x != y => 60.0,
            _ => 35.0,
        };
        let last = boards.len() - 1;
        let tree = super::paper::spanning(last, last, ns);
        let mut best = f64::INFINITY;
        let mut order: Vec<usize> = (0..last).collect();
        permutations(&mut order, 0, &mut |order| {
            let hops: f64 = order.windows(2).map(|w| ns(w[0], w[1])).sum();
            best = best.min(hops + order.last().map_or(0.0, |&w| ns(w, last)));
        });
        prop_assert!((tree - best).abs() < 1e-9, "{tree} {best}");
    }
}

fn permutations(items: &mut [usize], from: usize, visit: &mut impl FnMut(&[usize])) {
    if from == items.len() {
        return visit(items);
    }
    for n in from..items.len() {
        items.swap(from, n);
        permutations(items, from + 1, visit);
        items.swap(from, n);
    }
}
