//! Random programs that can end, on random machines.
//!
//! A program is dealt out step by step in one global order, and a wait asks for what its line holds by
//! then. So the order in which it was dealt is one way to run it, and no rank waits in vain.

use std::ops::Range;

use isochrone_machine::{ClassCost, LineCosts, PairClass};
use proptest::prelude::*;

use crate::program::{Buffer, Compare, Line, Lines, Record, Recorded, Span};

/// A program of 2 to 5 ranks over flags (each written by one rank), counters and data lines.
pub(crate) fn programs() -> impl Strategy<Value = Recorded> {
    programs_of(1..40)
}

/// The same with as many operations in all.
pub(crate) fn programs_of(operations: Range<usize>) -> impl Strategy<Value = Recorded> {
    let step = (0..5_u16, 0..6_u8, 0..8_u32);
    (2..=5_u16, prop::collection::vec(step, operations)).prop_map(|(ranks, steps)| {
        let mut records: Vec<Record> = (0..ranks).map(|_| Record::default()).collect();
        let mut words = [0_u64; 8];
        for (rank, action, line) in steps {
            let rank = rank % ranks;
            deal(&mut records[usize::from(rank)], &mut words, (rank, ranks), action, line);
        }
        Recorded { ranks: records }
    })
}

/// Lines 0 to 4 are flags of the rank of that number, 5 and 6 counters, 7 is nobody's.
fn deal(record: &mut Record, words: &mut [u64; 8], of: (u16, u16), action: u8, line: u32) {
    let (rank, ranks) = of;
    let mine = Line(u32::from(rank));
    let any = Line(line % u32::from(ranks));
    let counter = Line(5 + line % 2);
    let ended = match action {
        0 => {
            words[mine.0 as usize] += 1;
            record.write(mine, words[mine.0 as usize]);
            Ok(())
        }
        1 => {
            words[counter.0 as usize] += 1;
            record.add(counter, 1);
            Ok(())
        }
        2 => record.wait(any, Compare::AtLeast, words[any.0 as usize]),
        3 => record.wait(counter, Compare::AtLeast, words[counter.0 as usize]),
        4 => {
            record.copy(Span::of(Buffer::Send, 0, 56), mine.payload(56));
            Ok(())
        }
        _ => {
            record.copy(any.payload(56), Span::of(Buffer::Receive, 0, 56));
            Ok(())
        }
    };
    assert_eq!(ended, Ok(()), "a recorder's waits succeed");
}

/// Five cores in one or two nested classes, with costs in the ranges of real machines.
pub(crate) fn machines() -> impl Strategy<Value = LineCosts> {
    let class = |low: f64, high: f64| {
        (low..high, 10.0..60.0_f64, 1.0..20.0_f64, 0.0..4.0_f64).prop_map(
            |(transfer_ns, more, line_ns, congestion_ns)| ClassCost {
                transfer_ns,
                memory_ns: transfer_ns + more,
                start_ns: transfer_ns + more,
                line_ns,
                congestion_ns,
            },
        )
    };
    (class(20.0, 60.0), class(60.0, 150.0), 0.5..4.0_f64, 1..=5_usize).prop_map(
        |(near, far, local_ns, cut)| {
            let class = |a: usize, b: usize| PairClass(u8::from((a < cut) != (b < cut)));
            LineCosts::new(5, vec![near, far], local_ns, class)
        },
    )
}
