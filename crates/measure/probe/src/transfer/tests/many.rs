//! Machines of up to 576 cores whose every pair has a known cost: how a plan fits its time, what a sample says of the
//! rest, and what is left when a core never answers. The stage is a table of costs, since what is tried here is the
//! plan; a model of caches behind each of ten million samples would add nothing but time.

use std::collections::BTreeMap;

use isochrone_atlas_store::contents::{Clock, Contents};
use isochrone_atlas_store::group_levels;
use isochrone_machine::Machine;
use isochrone_stats::{Xoshiro256PlusPlus, median, rng, uniform};
use isochrone_units::{CoreId, Cycles, LineState, Reading, RegionId};

use crate::seats::tests::{ids, machine};
use crate::seats::{Seats, Stratum};
use crate::target::{TargetClock, TargetError};
use crate::transfer::agreement::Untried;
use crate::transfer::scene::{Act, Operation, Samples, Scene, Stage};
use crate::transfer::{Kind, Options, TransferPlan, TransferReport, budget_s, run};

/// Cycles of a nanosecond: a tenth of one can be told.
const CYCLES_PER_NS: f64 = 10.0;
/// Seconds of a play, and more for each core of it.
const PLAY_S: f64 = 40e-6;
const PLAY_CORE_S: f64 = 3e-6;
/// Of a pair's cost, how far it is from that of its kind at most, and how far a sample is from it.
const PAIR_SHARE: f64 = 0.08;
const SAMPLE_SHARE: f64 = 0.06;

/// Cores that hand each other lines at known costs.
struct Table {
    seats: Seats,
    cores: Vec<CoreId>,
    /// What a transfer costs more for each other pair at the same time.
    disturbed_ns: f64,
    /// What each play takes besides, and whether pairs that play at once take it in turns.
    slow_s: f64,
    in_turns: bool,
    /// It never answers.
    dead: Option<CoreId>,
    now_s: f64,
    plays: u32,
    random: Xoshiro256PlusPlus,
}

impl Table {
    fn new(machine: &Machine) -> Self {
        let cores = ids(machine);
        let seats = Seats::of(machine, &cores);
        Self {
            seats,
            cores,
            disturbed_ns: 0.0,
            slow_s: 0.0,
            in_turns: false,
            dead: None,
            now_s: 0.0,
            plays: 0,
            random: rng(9),
        }
    }

    /// What a pair costs: its kind's cost, and a share of it that is the pair's own.
    fn truth_ns(&self, a: usize, b: usize) -> f64 {
        let kind_ns = match self.seats.stratum(a, b) {
            Stratum::Core => 15.0,
            Stratum::Cache => 35.0,
            Stratum::Region => 90.0,
            Stratum::Between(RegionId(x), RegionId(y)) if x % 2 == y % 2 => 180.0,
            Stratum::Between(..) => 260.0,
        };
        let (least, most) = (a.min(b) as u64, a.max(b) as u64);
        let own = uniform(&mut rng(least << 20 | most));
        kind_ns * (1.0 + PAIR_SHARE * (2.0 * own - 1.0))
    }
}

impl Stage for Table {
    fn cores(&self) -> &[CoreId] {
        &self.cores
    }

    fn lines(&self) -> u64 {
        1 << 17
    }

    fn clock(&self) -> TargetClock {
        TargetClock { hz: CYCLES_PER_NS * 1e9, tick: 1, overhead: 0.0 }
    }

    fn play(&mut self, scenes: &[Scene], repeats: u32) -> Result<Vec<Vec<Samples>>, TargetError> {
        self.plays += 1;
        let beside_ns = self.disturbed_ns * (scenes.len() - 1) as f64;
        let mut longest_ns: f64 = 0.0;
        let mut played = Vec::new();
        for scene in scenes {
            let [asker, owner] = [0, 1].map(|part| scene.parts[part].core);
            if self.dead.is_some_and(|dead| scene.parts.iter().any(|part| part.core == dead)) {
                return Err(TargetError::System {
                    what: format!("{asker} waited for another core"),
                    why: "no answer".to_owned(),
                    advice: "measure fewer".to_owned(),
                });
            }
            let ns = self.truth_ns(owner.0.into(), asker.0.into()) + beside_ns;
            let timed = scene.parts[0].acts.iter().map(Act::samples).sum::<usize>();
            let mut raw = Vec::with_capacity(timed * repeats as usize);
            for _ in 0..timed * repeats as usize {
                let share = SAMPLE_SHARE * (2.0 * uniform(&mut self.random) - 1.0);
                raw.push(Cycles(rounded(ns * (1.0 + share) * CYCLES_PER_NS)));
            }
            longest_ns = longest_ns.max(raw.len() as f64 * 2.0 * ns);
            let of_asker = Samples { per_repeat: timed, raw, ..Samples::default() };
            played.push(vec![of_asker, Samples::default(), Samples::default()]);
        }
        let parts: usize = scenes.iter().map(|scene| scene.parts.len()).sum();
        let turns = if self.in_turns { scenes.len() as f64 } else { 1.0 };
        self.now_s += PLAY_S + self.slow_s * turns + PLAY_CORE_S * parts as f64 + longest_ns / 1e9;
        Ok(played)
    }

    fn seconds(&mut self) -> f64 {
        self.now_s
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some thousand cycles")]
fn rounded(cycles: f64) -> u32 {
    cycles.round() as u32
}

const LOAD: Kind = Kind::Timed(LineState::Modified, Operation::Load);

fn measure(stage: &mut Table, budget_s: f64) -> TransferReport {
    let seats = Some(stage.seats.clone());
    let options = Options { budget_s, seats, ..Options::new(LOAD, 3) };
    let plan = TransferPlan::new(&stage.cores, stage.lines(), options).unwrap();
    run(stage, &plan, &mut || false).unwrap()
}

/// Medians of the pairs that have a number, the smaller place first.
fn found(report: &TransferReport) -> BTreeMap<(usize, usize), f64> {
    let cores = report.map.latency_ns.rows.len();
    let cells = report.map.latency_ns.cells.iter().enumerate();
    cells
        .filter_map(|(at, cell)| Some(((at / cores, at % cores), (*cell)?.median)))
        .filter(|((a, b), _)| a < b)
        .collect()
}

/// The share of pairs without a number that lie within what their kind says of them.
fn inside(stage: &Table, report: &TransferReport) -> f64 {
    let found = found(report);
    let told: BTreeMap<&str, _> =
        report.map.strata.iter().map(|stratum| (stratum.what.as_str(), stratum)).collect();
    let (mut inside, mut all) = (0_u32, 0_u32);
    for a in 0..stage.cores.len() {
        for b in (a + 1..stage.cores.len()).filter(|b| !found.contains_key(&(a, *b))) {
            let stratum = told[stage.seats.stratum(a, b).words().as_str()];
            let (median, error) = (stratum.median_ns.unwrap(), stratum.error_ns.unwrap());
            inside += u32::from((stage.truth_ns(a, b) - median).abs() <= error);
            all += 1;
        }
    }
    f64::from(inside) / f64::from(all)
}

/// Whether the groups of cores at equal distance are those that the machine has.
fn has_groups(stage: &Table, machine: &Machine, report: TransferReport) -> bool {
    let clock = Clock { hz: 1e9, tick_cycles: 1, overhead_cycles: 0.0 };
    let contents = Contents {
        transfers: vec![report.map],
        ..Contents::begun(Reading::Simulated, machine.clone(), clock)
    };
    let levels = group_levels(&contents);
    let same = |level: usize, name: &dyn Fn(usize) -> u16| {
        let of = &levels[level].group;
        let mut names: BTreeMap<u16, u16> = BTreeMap::new();
        (0..stage.cores.len()).all(|at| {
            of[at].is_some_and(|group| *names.entry(group).or_insert(name(at)) == name(at))
        }) && names.len() == names.values().collect::<std::collections::BTreeSet<_>>().len()
    };
    let seat = |at: usize| stage.seats.all()[at];
    assert!(levels.len() >= 3, "{levels:?}");
    same(0, &|at| seat(at).physical)
        && same(1, &|at| seat(at).cache)
        && same(2, &|at| seat(at).region.0)
}

/// 64, 192, 384 and 576 cores.
fn machines() -> [Machine; 4] {
    [machine(2, 2, 8), machine(4, 3, 8), machine(16, 3, 4), machine(16, 3, 6)]
}

#[test]
fn where_pairs_disturb_each_other_a_sample_stands_for_all_within_what_it_says() {
    for machine in machines() {
        let mut stage = Table::new(&machine);
        stage.disturbed_ns = 4.0;
        let cores = stage.cores.len();
        let budget_s = budget_s(cores, false);
        let report = measure(&mut stage, budget_s);
        assert!(!report.agreement.agrees && report.complete, "{cores}: {:?}", report.agreement);
        assert!(report.seconds < 1.05 * budget_s, "{cores}: {} s", report.seconds);
        let found = found(&report);
        for (&(a, b), ns) in &found {
            let truth = stage.truth_ns(a, b);
            assert!((ns / truth - 1.0).abs() < 0.02, "{cores}: {a} {b}: {ns} {truth}");
        }
        let pairs = cores * (cores - 1) / 2;
        assert!(cores < 192 || found.len() < pairs, "{cores}: {} of {pairs}", found.len());
        if found.len() < pairs {
            let share = inside(&stage, &report);
            assert!(share > 0.95, "{cores}: {share}");
            let line =
                format!("{} of {pairs} pairs of cores were measured, one at a time", found.len());
            assert!(report.missing[0].contains(&line), "{:?}", report.missing);
        }
        assert!(has_groups(&stage, &machine, report), "{cores}");
    }
}

#[test]
fn the_stated_error_is_that_of_a_kind_with_two_distances_too() {
    let machine = machine(16, 3, 4);
    let mut stage = Table::new(&machine);
    stage.disturbed_ns = 4.0;
    // As if the machine did not say in which regions cores sit: near and far are of one kind.
    let told = stage.seats.clone();
    stage.seats = Seats::unknown(&stage.cores);
    let seats = Some(stage.seats.clone());
    let options = Options { budget_s: 2.0, seats, ..Options::new(LOAD, 3) };
    let plan = TransferPlan::new(&stage.cores, stage.lines(), options).unwrap();
    stage.seats = told;
    let report = run(&mut stage, &plan, &mut || false).unwrap();
    let stratum = &report.map.strata[0];
    assert_eq!(report.map.strata.len(), 1);
    let (centre, error) = (stratum.median_ns.unwrap(), stratum.error_ns.unwrap());
    let truths: Vec<f64> = (0..384)
        .flat_map(|a| (a + 1..384).map(move |b| (a, b)))
        .map(|(a, b)| stage.truth_ns(a, b))
        .collect();
    let inside = truths.iter().filter(|truth| (*truth - centre).abs() <= error).count();
    assert!(inside as f64 / truths.len() as f64 > 0.94, "{inside}: {centre} {error}");
    assert!((centre / median(&truths).unwrap() - 1.0).abs() < 0.05);
}

#[test]
fn together_every_pair_is_measured_and_with_more_cores_less_of_each() {
    let mut lines = u32::MAX;
    for machine in [machine(2, 2, 8), machine(2, 3, 8)] {
        let mut stage = Table::new(&machine);
        let cores = stage.cores.len();
        let report = measure(&mut stage, budget_s(cores, false));
        assert!(report.agreement.agrees && report.complete && report.missing.is_empty());
        assert!(report.map.strata.is_empty() && report.map.lines <= lines);
        lines = report.map.lines;
        let found = found(&report);
        assert_eq!(found.len(), cores * (cores - 1) / 2);
        for (&(a, b), ns) in &found {
            assert!((ns / stage.truth_ns(a, b) - 1.0).abs() < 0.02, "{cores}: {a} {b}: {ns}");
        }
        assert!(has_groups(&stage, &machine, report), "{cores}");
    }
}

/// The time of a quick map holds a part of a tournament.
#[test]
fn time_that_ends_within_the_first_sweep_ends_it_and_what_was_measured_is_kept() {
    for (regions, caches, cores) in [(2, 2, 8), (16, 3, 4), (16, 3, 6)] {
        let machine = machine(regions, caches, cores);
        let mut stage = Table::new(&machine);
        let cores = stage.cores.len();
        let report = measure(&mut stage, 0.25);
        assert!(report.seconds < 0.27, "{cores}: {} s", report.seconds);
        if cores == 64 {
            continue;
        }
        assert!(!report.complete, "{cores}");
        let found = found(&report);
        assert!(found.len() > cores * 10, "{cores}: {}", found.len());
        assert!(inside(&stage, &report) > 0.95, "{cores}");
        assert!(report.missing.iter().any(|line| line.contains("its time was over")));
    }
}

/// As under an emulator, or a limit on processor time: the time of a quick map does not hold a single sweep.
#[test]
fn a_slow_machine_has_one_sweep_if_it_is_given_time_and_one_pair_at_a_time_where_more_save_none() {
    let machine = machine(2, 2, 8);
    let measure = |in_turns: bool, patience_s: f64| {
        let mut stage = Table::new(&machine);
        (stage.slow_s, stage.in_turns) = (0.05, in_turns);
        let seats = Some(stage.seats.clone());
        let options = Options { budget_s: 0.5, patience_s, seats, ..Options::new(LOAD, 3) };
        let plan = TransferPlan::new(&stage.cores, stage.lines(), options).unwrap();
        let report = run(&mut stage, &plan, &mut || false).unwrap();
        (found(&report).len(), report)
    };
    let all = 64 * 63 / 2;
    for (in_turns, patience_s, pairs) in
        [(false, 0.0, 0..all), (false, 60.0, all..all + 1), (true, 60.0, 100..all)]
    {
        let (found, report) = measure(in_turns, patience_s);
        assert!(pairs.contains(&found), "{in_turns} {patience_s}: {found}");
        assert_eq!(report.agreement.untried == Some(Untried::TooLong), in_turns);
        assert!(report.seconds < f64::max(patience_s, 0.5) + 0.2, "{} s", report.seconds);
        let said = |words: &str| report.missing.iter().any(|line| line.contains(words));
        assert_eq!(said("together take too long"), in_turns, "{:?}", report.missing);
    }
}

#[test]
fn a_core_that_never_answers_costs_its_pairs() {
    let machine = machine(2, 2, 8);
    let mut stage = Table::new(&machine);
    stage.dead = Some(CoreId(40));
    let report = measure(&mut stage, 1e9);
    let found = found(&report);
    assert!(found.keys().all(|(a, b)| *a != 40 && *b != 40));
    // Of two others, both at the same time as it, some pairs are left out until it is known.
    assert!(found.len() >= 63 * 62 / 2 - 4, "{}", found.len());
    let line = report.missing.iter().find(|line| line.contains("core 40 were left out"));
    assert!(
        line.is_some_and(|line| line.contains("waited for another core")),
        "{:?}",
        report.missing
    );
    // What was refused keeps neither the others from being enough, nor the reason from being told.
    assert!(report.half_width.is_some_and(|width| width < 0.005), "{:?}", report.half_width);
    assert_eq!(report.agreement.untried, Some(Untried::Refused));
    let why = "could not be tried since some pairs were refused";
    assert!(report.missing.iter().any(|line| line.contains(why)), "{:?}", report.missing);
    stage.dead = None;
    let all: Vec<CoreId> = vec![CoreId(0), CoreId(40)];
    let plan = TransferPlan::new(&all, stage.lines(), Options::new(LOAD, 1)).unwrap();
    stage.dead = Some(CoreId(40));
    assert!(run(&mut stage, &plan, &mut || false).is_err(), "nothing was measured");
}

#[test]
fn a_stop_is_heard_before_the_next_play() {
    let machine = machine(16, 3, 4);
    for disturbed_ns in [0.0, 4.0] {
        let mut stage = Table::new(&machine);
        stage.disturbed_ns = disturbed_ns;
        let seats = Some(stage.seats.clone());
        let options = Options { budget_s: 1e9, seats, ..Options::new(LOAD, 3) };
        let plan = TransferPlan::new(&stage.cores, stage.lines(), options).unwrap();
        let mut asked = 0_u32;
        let report = run(&mut stage, &plan, &mut || {
            asked += 1;
            asked > 60
        });
        let report = report.unwrap();
        assert!(!report.complete && stage.plays <= 60, "{}", stage.plays);
    }
}
