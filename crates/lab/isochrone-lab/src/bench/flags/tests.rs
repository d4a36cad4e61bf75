//! What an atlas says of made-up lines, and what is printed of it.

use super::super::fixtures::{fits, ratio};
use super::*;
use crate::verify::live::LineTimes;

#[test]
fn tables_fit_a_terminal() {
    let blocks = |arm: usize| vec![Some(187.3 * (1.0 + arm as f64)); 6];
    let one = |what: What| Collective::of(what, std::array::from_fn(blocks));
    let locked = Locked {
        collective: "bcast",
        calls: "alternating",
        stores_ns: Some(187.3),
        locked_ns: Some(1187.3),
        locked_over_stores: ratio(),
        aa_control: ratio(),
    };
    fits(&Figures {
        metric: "",
        round_trip: Trips::of(&[vec![60.0, 70.0]]),
        by_atlas: ByAtlas::default(),
        better: "atlas",
        collectives: CALLS.map(one).to_vec(),
        locked: vec![locked],
        late_windows: 3,
        late_ns: 40.0,
    });
}

/// What an atlas says of four lines whose round trips were measured.
fn by_atlas(llc: [f64; 4], dram: [f64; 4]) -> ByAtlas {
    let trips_ns = vec![60.0, 70.0, 80.0, 90.0];
    let block = Block {
        samples: Vec::new(),
        late: 0,
        lines: [LineTimes::default(), LineTimes::default()],
        ahead_ns: [0.0; 2],
        polls_ns: Vec::new(),
        trips_ns,
        distances: llc.to_vec(),
    };
    let mut against = Against::default();
    let found = Distances { llc: llc.to_vec(), dram: dram.to_vec(), decoded: 1.0 };
    against.add(&block, &Ok(found));
    against.figures()
}

#[test]
fn lines_that_are_all_equally_far_have_no_correlation_and_a_reason() {
    let found = by_atlas([5.0; 4], [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(found.rank_correlation_llc, None);
    assert_eq!(found.rank_correlation_note, Some(ALL_EQUAL));
    assert!(found.text().contains("cache none (all lines are equally far), in memory 1.00"));
    let found = by_atlas([1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0]);
    assert_eq!(found.rank_correlation_note, None);
    assert!(found.text().contains("cache 1.00, in memory -1.00"), "{}", found.text());
}
