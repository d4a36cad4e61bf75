//! Times that can be computed by hand, and the cost table found again by measuring in the engine.

use isochrone_machine::LineCosts;

use super::{add, many, program, read, sandy_bridge, wait, write};
use crate::lines::{Engine, Jitter, Lookup, Program, Protocol, Run, Step};

fn run(costs: &LineCosts, cores: &[usize], programs: &[Program]) -> Run {
    let mut engine = Engine::new(costs, cores, Protocol::Mesif, Lookup::Directory);
    let mut last = None;
    for program in programs {
        last = Some(engine.run(program, &Jitter::seed(1)).unwrap());
    }
    last.unwrap()
}

fn near(ns: f64, expected_ns: f64) {
    assert!((ns - expected_ns).abs() < 1e-6, "{ns} is not {expected_ns}");
}

#[test]
fn the_engine_measures_the_table_that_it_was_given() {
    let costs = sandy_bridge(8);
    for (a, b) in [(0, 1), (0, 8), (9, 10), (15, 7)] {
        let class = costs.pair(a, b).clone();
        let own = costs.pair(b, b).memory_ns;
        for lookup in [Lookup::Directory, Lookup::HomeSnoop] {
            let measured = |first: Vec<Step>, second: Vec<Step>| {
                let mut engine = Engine::new(&costs, &[a, b], Protocol::Mesif, lookup);
                engine.run(&program(vec![first, vec![]]), &Jitter::seed(7)).unwrap();
                engine.run(&program(vec![vec![], second]), &Jitter::seed(7)).unwrap().end_ns[1]
            };
            near(measured(vec![], vec![read(0)]), own);
            near(measured(vec![], vec![write(0, 1)]), own);
            near(measured(vec![read(0)], vec![read(0)]), class.transfer_ns);
            near(measured(vec![write(0, 1)], vec![read(0)]), class.transfer_ns);
            near(measured(vec![write(0, 1)], vec![write(0, 2)]), class.transfer_ns);
            near(measured(vec![write(0, 1)], vec![add(0)]), class.transfer_ns);
            near(measured(vec![], vec![write(0, 1), read(1), read(0)]), 2.0 * own + costs.local_ns);
            near(measured(vec![], vec![write(0, 1), read(0)]), own);
            let each = class.line_ns + class.congestion_ns;
            let written = (0..64).map(|line| write(line, 1)).collect();
            near(measured(written, vec![many(0..64)]), class.start_ns + 64.0 * each);
        }
    }
}

#[test]
fn a_flag_goes_there_and_back() {
    let costs = sandy_bridge(8);
    // Both poll: one has the line from memory, 70, the other from it, 35. The first writes: 35 takes the
    // line from the second, which reads it again: 35. It writes: 35, and the first reads: 35.
    let round = program(vec![
        vec![wait(0, 0), write(0, 1), wait(0, 2)],
        vec![wait(0, 1), write(0, 2), wait(0, 2)],
    ]);
    near(run(&costs, &[0, 1], std::slice::from_ref(&round)).end_ns[0], 70.0 + 5.0 * 35.0);
    let far = run(&costs, &[0, 8], std::slice::from_ref(&round));
    near(far.end_ns[0], 70.0 + 5.0 * 94.0);
    assert_eq!(far.traffic.fetches, 1);
}

#[test]
fn readers_do_not_hinder_one_another_and_a_writer_pays_for_each() {
    let costs = sandy_bridge(8);
    let warm = program(vec![vec![write(0, 1)], vec![], vec![], vec![], vec![]]);
    let all_read = vec![read(0)];
    let readers =
        program(vec![vec![], all_read.clone(), all_read.clone(), all_read.clone(), all_read]);
    let cores = [0, 1, 2, 3, 4];
    let read_at_once = run(&costs, &cores, &[warm.clone(), readers.clone()]);
    near(read_at_once.makespan_ns(), 35.0);
    let again = program(vec![vec![write(0, 2)], vec![], vec![], vec![], vec![]]);
    let paid = run(&costs, &cores, &[warm.clone(), readers.clone(), again.clone()]);
    near(paid.end_ns[0], 4.0 * 35.0);
    let mut overlapped = costs;
    overlapped.added.rfo_sharer_ns = Some(5.0);
    let paid = run(&overlapped, &cores, &[warm, readers, again]);
    near(paid.end_ns[0], 35.0 + 3.0 * 5.0);
}

#[test]
fn readers_in_turn_come_one_after_the_other_and_a_writer_is_none() {
    let costs = sandy_bridge(8);
    let ends = |reader_ns, last: fn() -> Vec<Step>| {
        let engine = Engine::new(&costs, &[0, 1, 2, 3], Protocol::Mesif, Lookup::Directory);
        let mut engine = engine.with_readers_in_turn(reader_ns);
        let written = program(vec![vec![write(0, 1)], vec![], vec![], vec![]]);
        engine.run(&written, &Jitter::seed(1)).unwrap();
        let next = program(vec![vec![], last(), last(), last()]);
        let mut ends = engine.run(&next, &Jitter::seed(1)).unwrap().end_ns;
        ends.sort_by(f64::total_cmp);
        ends
    };
    let reads = || vec![read(0)];
    for (ends, expected) in ends(5.0, reads).iter().zip([0.0, 35.0, 40.0, 45.0]) {
        near(*ends, expected);
    }
    assert_eq!(ends(0.0, reads)[1..], [35.0; 3]);
    let writes = || vec![write(0, 2)];
    assert_eq!(ends(5.0, writes), ends(0.0, writes));
}

#[test]
fn a_request_on_its_way_takes_nothing_from_an_access_without_rivals() {
    let mut costs = sandy_bridge(8);
    for left_shared_ns in [None, Some(8.0)] {
        costs.added.left_shared_ns = left_shared_ns;
        let owned = left_shared_ns.unwrap_or(94.0);
        let ends = |part, first: Vec<Step>, second: Vec<Step>, last: [Vec<Step>; 2]| {
            let engine = Engine::new(&costs, &[0, 8], Protocol::Mesif, Lookup::Directory);
            let mut engine = engine.with_requests_on_their_way(part);
            engine.run(&program(vec![first, vec![]]), &Jitter::seed(7)).unwrap();
            engine.run(&program(vec![vec![], second]), &Jitter::seed(7)).unwrap();
            engine.run(&program(last.to_vec()), &Jitter::seed(7)).unwrap().end_ns
        };
        for part in [0.0, 0.25, 0.5, 1.0] {
            near(ends(part, vec![write(0, 1)], vec![], [vec![], vec![read(0)]])[1], 94.0);
            near(ends(part, vec![write(0, 1)], vec![], [vec![], vec![write(0, 2)]])[1], 94.0);
            near(
                ends(part, vec![write(0, 1)], vec![read(0)], [vec![write(0, 2)], vec![]])[0],
                owned,
            );
        }
    }
}

#[test]
fn who_writes_what_it_has_does_so_before_a_request_has_come() {
    let costs = sandy_bridge(8);
    let both = program(vec![vec![write(0, 2)], vec![wait(0, 2)]]);
    let ends = |part: f64| {
        let one = |seed| {
            let engine = Engine::new(&costs, &[0, 1], Protocol::Mesif, Lookup::Directory);
            let mut engine = engine.with_requests_on_their_way(part);
            engine.run(&program(vec![vec![write(0, 1)], vec![]]), &Jitter::seed(1)).unwrap();
            engine.run(&both, &Jitter::seed(seed)).unwrap().end_ns
        };
        (0..20).map(one).collect::<Vec<_>>()
    };
    // The write takes what a line at hand does, and the poll brings it: one transfer.
    for end_ns in ends(0.5) {
        near(end_ns[0], costs.local_ns);
        near(end_ns[1], 35.0);
    }
    // Asked for in no time, the line is gone before the write, which has to take it back.
    assert!(ends(0.0).iter().any(|end_ns| end_ns[1] > 90.0));
}

#[test]
fn who_polls_has_asked_again_by_the_time_that_a_write_is_done() {
    let costs = sandy_bridge(8);
    let engine = Engine::new(&costs, &[0, 1], Protocol::Mesif, Lookup::Directory);
    let mut engine = engine.with_requests_on_their_way(0.5);
    engine.run(&program(vec![vec![write(0, 1)], vec![]]), &Jitter::seed(1)).unwrap();
    // The child has a copy of what is not yet what it waits for, and the root takes the line from it, 35: half of that
    // is the request. The child asks when it lost its copy, and has half of a transfer left when the write is done.
    let root = vec![read(1), read(2), write(0, 2)];
    let run = engine.run(&program(vec![root, vec![wait(0, 2)]]), &Jitter::seed(1)).unwrap();
    let write = run.steps_ns[0][2] - run.steps_ns[0][1];
    near(write, 35.0);
    near(run.end_ns[1] - run.end_ns[0], 17.5);
}

#[test]
fn adds_follow_one_another() {
    let costs = sandy_bridge(8);
    let counted = program(vec![vec![wait(0, 3)], vec![add(0)], vec![add(0)], vec![add(0)]]);
    let warm = program(vec![vec![write(0, 0)], vec![], vec![], vec![]]);
    let times = run(&costs, &[0, 1, 2, 3], &[warm, counted]);
    let mut ends = times.end_ns.clone();
    ends.sort_by(f64::total_cmp);
    // The counter goes from add to add, 35 each, and the poll that was lost at the first comes last.
    near(ends[0], 35.0);
    near(ends[1], 70.0);
    near(ends[2], 105.0);
    near(ends[3], 140.0);
}

#[test]
fn a_link_between_sockets_is_shared() {
    let costs = sandy_bridge(8);
    let write_all = |from: u32| (from..from + 200).map(|line| write(line, 1)).collect::<Vec<_>>();
    let mut warm = vec![Vec::new(); 16];
    let mut copy = vec![Vec::new(); 16];
    for pair in 0..8_u32 {
        warm[pair as usize] = write_all(200 * pair);
        copy[8 + pair as usize] = vec![many(200 * pair..200 * (pair + 1))];
    }
    let cores: Vec<usize> = (0..16).collect();
    let all = run(&costs, &cores, &[program(warm), program(copy)]).makespan_ns();
    let class = costs.pair(0, 8);
    let alone = class.start_ns + 200.0 * (class.line_ns + class.congestion_ns);
    let equation = class.start_ns + 200.0 * (class.line_ns + 8.0 * class.congestion_ns);
    // The link carries 8 x 200 lines of 3 ns each.
    assert!(all >= 8.0 * 200.0 * class.congestion_ns, "{all}");
    assert!(alone < all && all <= equation, "{alone} {all} {equation}");
}

#[test]
fn overlapped_acknowledgements_cost_what_the_term_says() {
    let mut costs = sandy_bridge(8);
    let flags = program((0..8_u32).map(|core| vec![write(core, 1)]).collect());
    let mut gather = vec![Vec::new(); 8];
    gather[0] = (1..8).map(|line| wait(line, 1)).collect();
    let gather = program(gather);
    let cores: Vec<usize> = (0..8).collect();
    near(run(&costs, &cores, &[flags.clone(), gather.clone()]).end_ns[0], 7.0 * 35.0);
    costs.added.overlapped_ack_ns = Some(6.0);
    near(run(&costs, &cores, &[flags, gather]).end_ns[0], 35.0 + 6.0 * 6.0);
}

#[test]
fn terms_of_neighbours_and_remote_readers_count() {
    let mut costs = sandy_bridge(8);
    costs.added.adjacent_line_ns = 4.0;
    costs.added.first_remote_reader_ns = 60.0;
    let warm = program(vec![vec![write(0, 1)], vec![], vec![]]);
    let both = program(vec![vec![], vec![read(0)], vec![read(0)]]);
    near(run(&costs, &[0, 1, 2], &[warm.clone(), both.clone()]).end_ns[1], 35.0);
    near(run(&costs, &[0, 1, 8], &[warm.clone(), both]).end_ns[1], 35.0 + 60.0);
    let pair = program(vec![vec![], vec![read(0)], vec![write(1, 1)]]);
    near(run(&costs, &[0, 1, 2], &[warm, pair]).end_ns[1], 35.0 + 4.0);
}

#[test]
fn the_state_left_behind_is_what_the_next_write_pays() {
    let mut costs = sandy_bridge(8);
    let written = program(vec![vec![write(0, 1)], vec![], vec![]]);
    let was_read = program(vec![vec![], vec![read(0)], vec![]]);
    let again = |core: usize| {
        let mut steps = vec![vec![]; 3];
        steps[core] = vec![write(0, 2)];
        program(steps)
    };
    let paid = |costs: &LineCosts, core: usize| {
        let programs = [written.clone(), was_read.clone(), again(core)];
        run(costs, &[0, 1, 2], &programs).end_ns[core]
    };
    near(paid(&costs, 0), 35.0);
    costs.added.left_shared_ns = Some(12.0);
    near(paid(&costs, 0), 12.0);
    near(paid(&costs, 1), 12.0);
    // The third has no copy: the line has to come.
    costs.added.rfo_sharer_ns = Some(5.0);
    near(paid(&costs, 2), 35.0 + 5.0);
    // Nobody has read it: nothing was left.
    near(run(&costs, &[0, 1, 2], &[written.clone(), again(0)]).end_ns[0], costs.local_ns);
}

#[test]
fn mesi_reads_shared_lines_from_memory() {
    let costs = sandy_bridge(8);
    let measured = |protocol| {
        let mut engine = Engine::new(&costs, &[0, 1, 2], protocol, Lookup::Directory);
        engine.run(&program(vec![vec![write(0, 1)], vec![], vec![]]), &Jitter::seed(0)).unwrap();
        engine.run(&program(vec![vec![], vec![read(0)], vec![]]), &Jitter::seed(0)).unwrap();
        let third = program(vec![vec![], vec![], vec![read(0)]]);
        engine.run(&third, &Jitter::seed(0)).unwrap().end_ns[2]
    };
    near(measured(Protocol::Mesif), 35.0);
    near(measured(Protocol::Mesi), 70.0);
}

#[test]
fn one_seed_replays_bit_for_bit_and_another_differs() {
    let costs = sandy_bridge(8);
    let storm = program(
        (0..8).map(|core| vec![add(0), read(1), add(core % 3), write(1, 1), add(0)]).collect(),
    );
    let cores: Vec<usize> = (0..8).collect();
    let times = |seed| {
        let mut engine = Engine::new(&costs, &cores, Protocol::Mesif, Lookup::HomeSnoop);
        let jitter = Jitter { seed, begin_ns: 20.0, poll_ns: 2.0 };
        engine.run(&storm, &jitter).unwrap()
    };
    assert_eq!(times(3), times(3));
    let different = (0..8).filter(|&seed| times(seed) != times(3)).count();
    assert!(different >= 6, "{different} of 7 other seeds differ");
}

#[test]
fn who_waits_for_nothing_is_named() {
    let costs = sandy_bridge(8);
    let mut engine = Engine::new(&costs, &[0, 1], Protocol::Mesif, Lookup::Directory);
    let hangs = program(vec![vec![read(1), wait(0, 2)], vec![write(0, 1)]]);
    let stuck = engine.run(&hangs, &Jitter::seed(0)).unwrap_err();
    assert_eq!((stuck.core, stuck.step, stuck.waiting, stuck.cores), (0, 1, 1, 2));
}

#[test]
fn a_claim_takes_the_line_while_the_core_goes_on() {
    let costs = sandy_bridge(8);
    let warm = program(vec![vec![write(0, 1)], vec![]]);
    let claim = Step::Claim { line: 0, lines: 1 };
    let at_once = program(vec![vec![], vec![claim.clone(), write(0, 2)]]);
    near(run(&costs, &[0, 1], &[warm.clone(), at_once]).end_ns[1], 35.0);
    let later = program(vec![vec![], vec![claim, read(1), read(2), write(0, 2)]]);
    near(run(&costs, &[0, 1], &[warm, later]).end_ns[1], 2.0 * 70.0 + 2.3);
}
