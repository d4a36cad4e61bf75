//! A small part of the paper's plan: what must hold at any size.

use super::*;

fn card() -> Machine {
    isochrone_host::find_machine("xeon-phi-preproduction").expect("bundled")
}

fn small() -> Plan {
    Plan {
        rows: 1024,
        sweeps: 1,
        frames_of_a_worker: 256,
        window: 32,
        chunk: 16,
        most: 16,
        seed: 1,
        change: Change::None,
        beside: true,
    }
}

#[test]
fn a_small_plan_has_the_shape_of_the_paper() {
    let all = simulate(&card(), &small()).unwrap();
    let overhead = |mode, workers| all.overhead(mode, Smt::Off, workers).unwrap();
    assert!((overhead(Mode::Pspt, 8) - 0.38).abs() < 0.01, "the fitted cell");
    assert!((50_000.0..250_000.0).contains(&all.compute), "{}", all.compute);
    for workers in [2, 4, 8, 16] {
        assert!(overhead(Mode::Prefetch, workers) < overhead(Mode::Pspt, workers), "{workers}");
    }
    assert!(overhead(Mode::Regular, 16) > 2.0 * overhead(Mode::Pspt, 16));
    assert!(all.cells.iter().all(|cell| cell.outcome.stale == 0));
}

#[test]
fn a_change_changes_one_thing_of_the_card() {
    let card = Card::of(&card()).unwrap();
    assert_eq!(card.with(Change::None), card);
    let spec = |change| card.with(change).spec;
    let now = card.spec;
    use isochrone_sim::paging::{HandOff, InOrderCore, Spec};
    assert_eq!(spec(Change::OneEngine), Spec { each_way: false, ..now });
    assert_eq!(spec(Change::FreeHandOff), Spec { line: 0.0, ..now });
    assert_eq!(spec(Change::NearLines), Spec { line: 100.0, ..now });
    assert_eq!(spec(Change::HalfHandOff), Spec { hand_off: HandOff::HalfOwners, ..now });
    assert_eq!(spec(Change::QueueLock), Spec { hand_off: HandOff::OneLine, ..now });
    assert_eq!(spec(Change::ThreadsByIssue), Spec { core: InOrderCore::BY_ISSUE, ..now });
    assert_eq!(spec(Change::Before), Spec { each_way: false, line: 0.0, ..now });
}

#[test]
fn both_cards_say_the_same_of_threads_of_a_core() {
    use isochrone_sim::paging::InOrderCore;
    let of = |name| InOrderCore::of(&isochrone_host::find_machine(name).expect("bundled"));
    let [one, other] = ["xeon-phi-preproduction", "xeon-phi-5110p"].map(of);
    assert!(one.is_some());
    assert_eq!(one, other, "the two models of the chip differ");
}

#[test]
fn a_machine_that_is_not_the_card_is_refused() {
    let other = isochrone_host::find_machine("xeon-e5-2660-2s").expect("bundled");
    let why = simulate(&other, &small()).unwrap_err().to_string();
    assert!(why.contains("threads of a core do together"), "{why}");
}
