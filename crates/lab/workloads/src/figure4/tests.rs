//! Small figures: what must hold of any run, whatever its gain.

use super::*;

fn machine() -> Machine {
    isochrone_host::find_machine("xeon-phi-5110p").expect("bundled")
}

fn small() -> Plan {
    Plan {
        cores: vec![4, 12],
        repeats: 2,
        heap_pages: 8192,
        searches: vec![
            SearchPlan::Linear { nodes: 2000, expansions: 2 },
            SearchPlan::Hashed { before: 6000, nodes: 12_000 },
        ],
        learnt_at: vec![1, 12],
        orders: 1,
        ..Plan::paper(3)
    }
}

fn figure(plan: &Plan) -> Figure4 {
    let recorded = Recorded::new(plan).unwrap();
    figure4(&machine(), plan, &recorded, &mut Database::of_truth).unwrap()
}

#[test]
fn both_arms_do_the_same_work_and_aware_nodes_are_nearer() {
    let found = figure(&small());
    assert_eq!((found.reading, found.curves.len()), (Reading::Simulated, 2));
    for curve in &found.curves {
        for point in &curve.points {
            assert_eq!(point.runs.len(), 2);
            for run in &point.runs {
                assert_eq!(run.aware.len(), usize::from(point.cores));
                let expanded = |runs: &[CoreRun]| runs.iter().map(|r| r.expansions).collect();
                let [a, b]: [Vec<u64>; 2] = [expanded(&run.aware), expanded(&run.oblivious)];
                assert_eq!(a, b);
                let [oblivious, aware] = run.placed_cycles();
                assert!(aware < 0.95 * oblivious, "{aware} of {oblivious} cycles");
                assert!(run.aware.iter().all(|run| run.memory_cycles < run.cycles));
            }
        }
    }
    // The hash shape holds more than the caches, so it is the nearer lines that make it faster.
    let gain = found.curves[1].points[0].gain();
    assert!(gain.1 > 0.0 && gain.1 <= gain.0 && gain.0 <= gain.2, "{gain:?}");
}

#[test]
fn oblivious_lines_are_as_far_as_all_lines_are_on_average() {
    let found = figure(&small());
    let scene = Stage::new(&machine(), &Costs::of(&machine()).unwrap()).unwrap();
    let memory = scene.chip.memory(64, 1).unwrap();
    let map = Map::of(&memory).unwrap();
    let mean = map.cycles[..12].iter().flatten().sum::<f64>() / (12.0 * 64.0);
    let [oblivious, _] = found.curves[1].points[1].runs[0].placed_cycles();
    assert!((oblivious / mean - 1.0).abs() < 0.02, "{oblivious} of {mean}");
}

#[test]
fn one_seed_is_one_figure() {
    let plan = Plan { cores: vec![4], repeats: 1, ..small() };
    assert_eq!(figure(&plan), figure(&plan));
    assert_ne!(figure(&plan), figure(&Plan { seed: 4, ..plan }));
}

#[test]
fn a_database_of_another_memory_places_no_better_than_chance() {
    let plan = Plan { cores: vec![12], repeats: 1, ..small() };
    let recorded = Recorded::new(&plan).unwrap();
    // Keys shuffled among pages: what an atlas is worth whose codes are wrong.
    let mut wrong = |memory: &SyntheticMemory| {
        let mut database = Database::of_truth(memory)?;
        isochrone_stats::shuffle(&mut database.codes, &mut isochrone_stats::rng(1));
        Some(database)
    };
    let found = figure4(&machine(), &plan, &recorded, &mut wrong).unwrap();
    let [oblivious, aware] = found.curves[1].points[0].runs[0].placed_cycles();
    assert!((aware / oblivious - 1.0).abs() < 0.02, "{aware} against {oblivious}");
    let none = figure4(&machine(), &plan, &recorded, &mut |_| None);
    assert!(matches!(none, Err(Figure4Error::Database)));
}

#[test]
fn an_arena_that_is_too_small_is_said_to_be_full() {
    let plan = Plan { heap_pages: 64, cores: vec![4], repeats: 1, ..small() };
    let recorded = Recorded::new(&plan).unwrap();
    let why = figure4(&machine(), &plan, &recorded, &mut Database::of_truth).unwrap_err();
    assert!(why.to_string().contains("64 pages"), "{why}");
}

#[test]
fn every_assumption_is_varied_and_the_first_row_is_the_figure() {
    let plan =
        Plan { cores: vec![4], repeats: 1, searches: small().searches[1..].to_vec(), ..small() };
    let recorded = Recorded::new(&plan).unwrap();
    let rows = sweep(&machine(), &plan, &recorded, &mut Database::of_truth).unwrap();
    assert!(rows.len() >= 12, "{}", rows.len());
    let figure = figure4(&machine(), &plan, &recorded, &mut Database::of_truth).unwrap();
    assert_eq!(rows[0].gains[0].to_bits(), figure.curves[0].points[0].gain().0.to_bits());
    let gain = |what: &str| rows.iter().find(|row| row.what.contains(what)).unwrap().gains[0];
    assert!(gain("ring hop 5") > gain("ring hop 1"), "longer ways, more to gain");
    assert!(gain("times 0.5") > gain("times 2"), "less work, more waiting");
}

#[test]
fn the_range_of_a_hop_is_run_at_every_number_of_cores() {
    let plan = Plan { searches: small().searches[1..].to_vec(), repeats: 1, ..small() };
    let recorded = Recorded::new(&plan).unwrap();
    let range = hop_range(&machine(), &plan, &recorded, &mut Database::of_truth).unwrap().unwrap();
    assert_eq!(range.hop_cycles, [1.0, 5.0]);
    assert_eq!((range.gains.len(), range.gains[0].len()), (1, 2));
    // With 1.03 cycles a hop, as the published spread has it, the figure is next to the low end.
    let figure = figure4(&machine(), &plan, &recorded, &mut Database::of_truth).unwrap();
    for ([low, high], point) in range.gains[0].iter().zip(&figure.curves[0].points) {
        let gain = point.gain().0;
        assert!(*low <= gain && gain < *high, "{low} {gain} {high}");
        assert!(gain - low < 0.1 * (high - low), "{low} {gain} {high}");
    }
    // And nowhere does an end of it look at fewer cores than the sweep, which has one of them.
    let rows = sweep(&machine(), &plan, &recorded, &mut Database::of_truth).unwrap();
    let row = rows.iter().find(|row| row.what.contains("ring hop 5")).unwrap();
    assert_eq!(row.gains[0].to_bits(), range.gains[0][1][1].to_bits());
}

#[test]
fn every_reading_is_run_and_the_first_is_the_figure() {
    let plan = Plan { searches: small().searches[1..].to_vec(), cores: vec![4, 12], ..small() };
    let plan = Plan { repeats: 1, ..plan };
    let recorded = Recorded::new(&plan).unwrap();
    let found = readings(&machine(), &plan, &recorded, &mut Database::of_truth).unwrap();
    assert_eq!(found.cores, [12], "of the numbers that the text names");
    assert_eq!(found.runs.len() + found.contradicted as usize, 4, "two readings of two orders");
    let figure = figure4(&machine(), &plan, &recorded, &mut Database::of_truth).unwrap();
    let first = &found.runs[0];
    assert_eq!((first.spread, first.order), (Spread::AllPairs, None));
    let nearest = first.gains[0][0][Placing::Nearest as usize];
    assert_eq!(nearest.to_bits(), figure.curves[0].points[1].gain().0.to_bits());
    // A dearer hop is more to gain, whoever places.
    let second = &found.runs[1];
    assert!(second.spread == Spread::NamedPair && second.hop_cycles > first.hop_cycles);
    for placing in Placing::ALL {
        let [low, high] = found.interval(0, 12, placing).unwrap();
        let gain = |run: &ReadingRun| run.gains[0][0][placing as usize];
        assert!(gain(first) < gain(second), "{placing:?}");
        assert!(found.runs.iter().all(|run| (low..=high).contains(&gain(run))));
    }
    assert_eq!(found.interval(0, 4, Placing::Lists), None, "not named, not run");
}

#[test]
fn lists_place_otherwise_than_the_nearest_quarter_and_gain_as_it_does() {
    let plan = Plan { searches: small().searches[1..].to_vec(), cores: vec![20], ..small() };
    let plan = Plan { repeats: 1, orders: 0, heap_pages: 1 << 14, ..plan };
    let recorded = Recorded::new(&plan).unwrap();
    let found = readings(&machine(), &plan, &recorded, &mut Database::of_truth).unwrap();
    assert_eq!(found.runs.len(), 2);
    for run in &found.runs {
        let [lists, nearest] = run.gains[0][0];
        assert!(lists > 0.0 && nearest > 0.0 && lists != nearest, "{lists} {nearest}");
    }
}

#[test]
fn blocks_of_the_chip_are_as_far_apart_as_their_reading_says() {
    let plan = Plan { repeats: 1, ..small() };
    let blocks = chip_blocks(&machine(), &plan, &mut Database::of_truth).unwrap();
    assert_eq!(blocks.len(), 2);
    for (blocks, most) in blocks.iter().zip([1.6, 1.6]) {
        let of = |core: usize| &blocks.cores[core].1;
        assert_eq!((blocks.cores.len(), of(0).len()), (4, 128));
        let ratios = of(3).iter().zip(of(0)).map(|(slow, fast)| slow / fast);
        let ratio = ratios.fold(0.0, f64::max);
        assert!(ratio <= most + 1e-9, "{ratio}");
        assert!(blocks.spread == Spread::AllPairs || ratio > 1.5, "the named pair: {ratio}");
    }
}

#[test]
fn queues_change_a_gain_by_little() {
    let plan = Plan { searches: small().searches[1..].to_vec(), cores: vec![12], ..small() };
    let recorded = Recorded::new(&plan).unwrap();
    let rows = sweep(&machine(), &plan, &recorded, &mut Database::of_truth).unwrap();
    let gain = |what: &str| rows.iter().find(|row| row.what.contains(what)).unwrap().gains[0];
    let [without, peak, half] = ["without queues", "of 40 GB/s", "of 20 GB/s"].map(gain);
    assert!(
        [peak, half].iter().all(|gain| (gain - without).abs() < 0.01),
        "{half} {peak} {without}"
    );
    assert!(peak != without && half != peak, "{half} {peak} {without}");
}

#[test]
fn chips_that_agree_on_orders_share_replays_and_no_number_changes() {
    let plan = Plan { cores: vec![12], repeats: 1, ..small() };
    let frozen = Costs::of(&machine()).unwrap();
    let shared = Recorded::new(&plan).unwrap();
    let pairs = |costs: &Costs, recorded: &Recorded| {
        let stage = Stage::new(&machine(), costs).unwrap();
        let scene = stage.scene(&plan, 0, &mut Database::of_truth).unwrap();
        stage.pairs(&plan, &scene, &recorded.each(&plan.cores)).unwrap()
    };
    // Work and waiting stores order nothing anew; another order of stops does.
    let same = [
        frozen,
        Costs { hop: Some(2.0), ..frozen },
        Costs { hop: Some(5.0), ..frozen },
        Costs { memory: 2.0 * frozen.memory, work: 2.0, ..frozen },
        Costs { stores_wait: true, ..frozen },
    ];
    let all: Vec<Vec<Pair>> = same.iter().map(|costs| pairs(costs, &shared)).collect();
    let done = shared.replays.len();
    assert!(
        (4..4 * same.len()).contains(&done),
        "two shapes, two arms, and some are shared: {done}"
    );
    let other = Costs { order: Some(1), ..frozen };
    let ordered = pairs(&other, &shared);
    assert_eq!(shared.replays.len(), done + 4);
    for (costs, found) in same.iter().zip(&all).chain([(&other, &ordered)]) {
        let alone = Recorded::new(&plan).unwrap();
        assert_eq!(pairs(costs, &alone), *found, "{costs:?}");
    }
    assert!(all.windows(2).all(|two| two[0] != two[1]), "each has its own costs");
}

fn beside(plan: &Plan, learn: Learn<'_>) -> Learning {
    let recorded = Recorded::new(plan).unwrap();
    learnt(&machine(), plan, &recorded, learn).unwrap()
}

#[test]
fn the_oracle_is_a_whole_of_itself_and_gains_what_the_figure_says() {
    let plan = Plan { searches: small().searches[1..].to_vec(), cores: vec![12], ..small() };
    let found = beside(&plan, &mut Database::of_truth);
    let whole = Knowledge { cores: 1.0, bases: 60, indices: 64, decoded: 1.0, right: 1.0 };
    assert_eq!(found.knowledge, [whole; 2]);
    let recorded = Recorded::new(&plan).unwrap();
    let figure = figure4(&machine(), &plan, &recorded, &mut Database::of_truth).unwrap();
    for (pair, arms) in figure.curves[0].points[0].runs.iter().zip(&found.curves[0].points[1].runs)
    {
        assert_eq!(arms.gain(Measure::Speed, Arm::Oracle).to_bits(), pair.gain().to_bits());
        assert_eq!(arms.of(Arm::Learnt), arms.of(Arm::Oracle));
        assert_eq!(arms.of(Arm::LearntCodes), arms.of(Arm::Oracle));
    }
    for point in &found.curves[0].points {
        for measure in [Measure::Speed, Measure::Time, Measure::NearShare] {
            let part = point.of_oracle(measure, Arm::Learnt).unwrap();
            assert_eq!((part.lo, part.median, part.hi), (1.0, 1.0, 1.0));
            let control = point.of_oracle(measure, Arm::Again).unwrap();
            assert!(control.median.abs() < 0.2, "{control:?} at {}", point.cores);
        }
        let near = |arm| point.over_runs(|run| run.near_share(arm)).unwrap().median;
        assert!(near(Arm::Oracle) > 0.9 && (near(Arm::Oblivious) - 0.25).abs() < 0.05);
    }
}

#[test]
fn what_is_half_right_gains_a_part_and_what_is_wrong_gains_nothing() {
    let plan = Plan { searches: small().searches[1..].to_vec(), learnt_at: vec![12], ..small() };
    let spoilt = |every: usize| {
        move |memory: &SyntheticMemory| {
            let mut database = Database::of_truth(memory)?;
            let mut rng = isochrone_stats::rng(1);
            for code in database.codes.iter_mut().step_by(every) {
                // Another key than its own.
                *code ^= u16::try_from(1 + isochrone_stats::below(&mut rng, 63)).ok()?;
            }
            Some(database)
        }
    };
    let part = |every: usize, arm| {
        let found = beside(&plan, &mut spoilt(every));
        let right = found.knowledge[0].right;
        assert!((right - (1.0 - 1.0 / every as f64)).abs() < 0.05, "{right} of {every}");
        let of = |measure| found.curves[0].points[0].of_oracle(measure, arm).unwrap().median;
        [Measure::Speed, Measure::Time, Measure::NearShare].map(of)
    };
    let half = part(2, Arm::Learnt);
    assert!(half.iter().all(|part| (0.3..0.7).contains(part)), "{half:?}");
    let none = part(1, Arm::Learnt);
    assert!(none.iter().all(|part| part.abs() < 0.2), "{none:?}");
}

#[test]
fn of_an_oracle_that_gains_nothing_there_is_no_part() {
    // All of the lines count as near.
    let searches = small().searches[1..].to_vec();
    let plan = Plan { near: 1.0, searches, learnt_at: vec![4], ..small() };
    let found = beside(&plan, &mut Database::of_truth);
    let point = &found.curves[0].points[0];
    assert_eq!(point.of_oracle(Measure::NearShare, Arm::Learnt), None);
}
