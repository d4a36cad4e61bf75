//! Times that can be worked out by hand.

use super::*;

/// Two siblings do 1.5 together.
fn spec() -> Spec {
    Spec {
        core: InOrderCore::new([1.0, 1.5, 1.5, 1.2]).expect("within the slots"),
        siblings: true,
        polls: true,
        send: 10.0,
        deliver: 100.0,
        service: 50.0,
        engines: 1,
        each_way: false,
        line: 0.0,
        hand_off: HandOff::Owners,
        setup: 2.0,
        transfer: 28.0,
        latency: 7.0,
        translations: 4,
    }
}

fn ends(hardware: &mut Hardware) -> Vec<(f64, usize)> {
    let mut all = Vec::new();
    while let Some(ended) = hardware.next() {
        let (Ended::Work { thread } | Ended::Time { thread, .. }) = ended;
        all.push((hardware.now().round(), thread));
    }
    all
}

#[test]
fn siblings_share_and_others_do_not() {
    let mut shared = Hardware::new(spec(), &[0, 0, 1]);
    (0..3).for_each(|thread| shared.work(thread, 300.0));
    // Two siblings do 1.5 together: 0.75 each.
    assert_eq!(ends(&mut shared), [(300.0, 2), (400.0, 0), (400.0, 1)]);
    let mut apart = Hardware::new(Spec { siblings: false, ..spec() }, &[0, 0]);
    (0..2).for_each(|thread| apart.work(thread, 300.0));
    assert_eq!(ends(&mut apart), [(300.0, 0), (300.0, 1)]);
}

#[test]
fn who_is_left_alone_goes_faster() {
    let mut hardware = Hardware::new(spec(), &[0, 0]);
    hardware.work(0, 75.0);
    hardware.work(1, 300.0);
    // At 100 the first is done, the second has done 75 and needs 225 more, alone.
    assert_eq!(ends(&mut hardware), [(100.0, 0), (325.0, 1)]);
}

#[test]
fn who_polls_takes_slots_until_it_leaves() {
    let mut hardware = Hardware::new(spec(), &[0, 0]);
    hardware.work(0, 300.0);
    hardware.poll(1);
    hardware.tell_at(200.0, 1, 0);
    assert_eq!(hardware.next(), Some(Ended::Time { thread: 1, token: 0 }));
    hardware.leave(1);
    // 0.75 each until 200, so 150 are left, alone.
    assert_eq!(ends(&mut hardware), [(350.0, 0)]);
    let mut waiting = Hardware::new(spec(), &[0]);
    waiting.poll(0);
    let _ = waiting.interrupt([0].into_iter());
    assert_eq!(
        (waiting.next(), waiting.interrupts()),
        (None, (1, 0)),
        "nothing is taken from who waits"
    );
}

#[test]
fn a_handler_is_slower_beside_siblings_that_compute() {
    let mut hardware = Hardware::new(spec(), &[0, 1, 1]);
    // One request of 10, 100 on the way, and 50 of a core that it has alone.
    assert_eq!(hardware.round([1].into_iter()).round(), 160.0);
    hardware.work(2, 1000.0);
    // A sibling computes: 0.75 of the core's speed is left for the handler.
    assert_eq!(hardware.round([1].into_iter()).round(), 177.0);
    assert_eq!(hardware.round(core::iter::empty()), 0.0);
}

#[test]
fn interrupts_go_one_by_one_and_take_time_from_who_computes() {
    let mut hardware = Hardware::new(spec(), &[0, 1, 2]);
    hardware.work(1, 300.0);
    assert_eq!(hardware.interrupt([1, 2].into_iter()), 20.0 + 100.0 + 50.0);
    assert_eq!(hardware.interrupt(std::iter::empty()), 0.0);
    assert_eq!(ends(&mut hardware), [(350.0, 1)]);
    assert_eq!(hardware.interrupts(), (2, 1));
}

#[test]
fn engines_are_finite_unless_they_are_not() {
    let mut one = Hardware::new(spec(), &[0]);
    assert_eq!(
        [one.transfer(1, Way::In), one.transfer(2, Way::In), one.transfer(1, Way::In)],
        [37.0, 95.0, 125.0]
    );
    let mut two = Hardware::new(Spec { engines: 2, ..spec() }, &[0]);
    assert_eq!(
        [two.transfer(1, Way::In), two.transfer(2, Way::In), two.transfer(1, Way::In)],
        [37.0, 65.0, 67.0]
    );
    let mut any = Hardware::new(Spec { engines: 0, ..spec() }, &[0]);
    assert_eq!([any.transfer(1, Way::In), any.transfer(1, Way::In)], [37.0, 37.0]);
    assert_eq!(one.copied(), (4, 118.0));
}

#[test]
fn each_way_has_an_engine_of_its_own_or_both_share_one() {
    let transfers = |each_way| {
        let mut hardware = Hardware::new(Spec { each_way, ..spec() }, &[0]);
        [Way::In, Way::Out, Way::In, Way::Out].map(|way| hardware.transfer(1, way))
    };
    assert_eq!(transfers(false), [37.0, 67.0, 97.0, 127.0]);
    assert_eq!(transfers(true), [37.0, 37.0, 67.0, 67.0]);
}

#[test]
fn a_time_is_told_with_its_token_and_in_order() {
    let mut hardware = Hardware::new(spec(), &[0, 0]);
    hardware.tell_at(20.0, 1, 5);
    hardware.tell_at(10.0, 0, 9);
    assert_eq!(hardware.next(), Some(Ended::Time { thread: 0, token: 9 }));
    assert_eq!(hardware.next(), Some(Ended::Time { thread: 1, token: 5 }));
    assert_eq!(hardware.next(), None);
}

#[test]
fn a_core_that_is_not_told_uses_a_stale_entry() {
    let mut tables = Tables::new(2, 8, 2, 4);
    assert_eq!(tables.access(0, 0, 3, false), Translation::Fault);
    tables.map(0, 3, false);
    assert_eq!(tables.access(0, 0, 3, false), Translation::Hit);
    assert_eq!(tables.access(0, 0, 3, true), Translation::Fault, "it may not be written");
    assert_eq!(tables.access(1, 1, 3, false), Translation::Fault, "another table");
    tables.unmap(0, 3);
    assert_eq!((tables.access(0, 0, 3, false), tables.stale()), (Translation::Fault, 1));
    tables.invalidate(0, 3);
    assert_eq!((tables.access(0, 0, 3, false), tables.stale()), (Translation::Fault, 1));
}

#[test]
fn work_ends_however_late_it_is_begun() {
    let mut hardware = Hardware::new(spec(), &[0]);
    // By then the clock's smallest step is 2^-12 of a cycle: what is to be done is less than half of it.
    hardware.tell_at(2.0_f64.powi(40), 0, 0);
    assert_eq!(hardware.next(), Some(Ended::Time { thread: 0, token: 0 }));
    hardware.work(0, 1e-5);
    assert_eq!(hardware.next(), Some(Ended::Work { thread: 0 }));
}
