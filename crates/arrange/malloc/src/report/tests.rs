//! What is counted is what is read.

use super::*;
use crate::counters::Counters;
extern crate std;
use isochrone_alloc::{Distance, DistanceSum, Survey};
use isochrone_units::CoreId;
use std::vec::Vec;

fn bytes_of(counters: &Counters) -> Vec<u8> {
    counters.snapshot().words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn what_is_counted_is_read() {
    let counters = Counters::new();
    counters.begin(77, Mode::Oblivious, 2_000_000_000);
    counters.placed(1, Tally { objects: 3, bytes: 90 });
    counters.placed(4, Tally { objects: 1, bytes: 200 });
    counters.delegated(Reason::Size, Tally { objects: 9, bytes: 9000 });
    counters.delegated(Reason::NoMemory, Tally { objects: 1, bytes: 10 });
    counters.add(Word::Drawn, 4);
    counters.add(Word::Near, 3);
    let (none, mut sum) = (DistanceSum::default(), DistanceSum::default());
    sum.add(Distance { llc: Some(40.5), dram: None });
    sum.add(Distance { llc: Some(40.5), dram: None });
    counters.distances(Lines::HandedOut, Level::Llc, &sum, &none);
    let before = sum;
    sum.add(Distance { llc: Some(39.75), dram: None });
    sum.add(Distance { llc: Some(39.75), dram: None });
    counters.distances(Lines::HandedOut, Level::Llc, &sum, &before);
    let mut pool = none;
    pool.add(Distance { llc: None, dram: Some(361.25) });
    counters.distances(Lines::Pool, Level::Dram, &pool, &none);
    counters.raise(Word::PeakBytes, 50);
    counters.raise(Word::PeakBytes, 40);
    let report = Report::from_bytes(&bytes_of(&counters)).expect("a record");
    assert_eq!(report, counters.snapshot());
    assert_eq!((report.process(), report.mode()), (77, Some(Mode::Oblivious)));
    assert_eq!(report.placed(), Tally { objects: 4, bytes: 290 });
    assert_eq!(report.placed_of_class(1), Tally { objects: 3, bytes: 90 });
    assert_eq!(report.placed_of_class(CLASSES), Tally::default());
    assert_eq!(report.delegated(Reason::Size), Tally { objects: 9, bytes: 9000 });
    assert_eq!(report.placeable(), Tally { objects: 5, bytes: 300 });
    assert_eq!(report.placed_share(), Some(290.0 / 300.0));
    assert_eq!(report.near_share(), Some(0.75));
    assert_eq!(report.distance_cycles(Level::Llc), Some(40.125));
    assert_eq!(report.distance_cycles(Level::Dram), None);
    assert_eq!(report.oblivious_cycles(Level::Dram), Some(361.25));
    assert_eq!(report.peak_live_bytes(), 50);
    assert_eq!(report.live_of_cores().count(), 0);
    let mut survey = Survey { taken_bytes: 640, ..Survey::default() };
    survey.taken.add(Distance { llc: Some(31.5), dram: None });
    counters.live(0, CoreId(0), &survey);
    counters.live(LIVE_CORES - 1, CoreId(299), &Survey::default());
    counters.live(LIVE_CORES, CoreId(7), &survey);
    let live: Vec<_> = counters.snapshot().live_of_cores().collect();
    let first = LiveOfCore { core: 0, bytes: 640, cycles: [Some(31.5), None] };
    assert_eq!(live, [first, LiveOfCore { core: 299, bytes: 0, cycles: [None; 2] }]);
    assert!(!report.has_ended());
}

#[test]
fn nothing_counted_is_none_and_not_zero() {
    let counters = Counters::new();
    counters.begin(1, Mode::Aware, 0);
    let report = counters.snapshot();
    assert_eq!((report.placed_share(), report.near_share()), (None, None));
    assert_eq!((report.distance_cycles(Level::Llc), report.clock_hz()), (None, None));
}

#[test]
fn other_bytes_are_refused() {
    assert_eq!(Report::from_bytes(&[0; REPORT_BYTES]), None);
    assert_eq!(Report::from_bytes(&[]), None);
    let counters = Counters::new();
    counters.begin(1, Mode::Aware, 0);
    counters.set(Word::Mode, 99);
    assert_eq!(Report::from_bytes(&bytes_of(&counters)), None);
}

#[test]
fn a_late_file_keeps_what_came_before() {
    let (early, late) = (Counters::new(), Counters::new());
    early.begin(5, Mode::Aware, 1);
    early.delegated(Reason::NoMemory, Tally { objects: 2, bytes: 64 });
    late.begin(5, Mode::Aware, 1);
    late.absorb(&early);
    assert_eq!(late.snapshot(), early.snapshot());
}
