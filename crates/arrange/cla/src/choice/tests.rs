//! The shortlist against the search, the ranking under costs that turn out otherwise, and what travels.

use super::judge::Judge;
use super::rank::{best, most_events};
use super::sketch::{Costs, Sketch};
use super::synthetic::Synthetic;
use super::*;
use crate::collectives::{Options, Plan, Shape, Tree};
use crate::live::{CLASSES, Kind, Usual, channel_plan};
use crate::predicted::Start;
use crate::program::{Line, Rank, Recorded};
use crate::search::{Objective, Question, State};
use crate::simulated::{Hot, Model, many};
use isochrone_machine::LineCosts;
use isochrone_stats as stats;
use isochrone_units::CoreId;

/// Collectives whose shape is chosen.
const CHOSEN: [Kind; 5] =
    [Kind::Broadcast, Kind::Barrier, Kind::Reduce, Kind::Allreduce, Kind::Allgather];

fn known(on: &Synthetic) -> Known {
    let ranks: Vec<Vec<CoreId>> = on.cores().into_iter().map(|core| vec![core]).collect();
    Known::of(on, &ranks).expect("all is known")
}

fn usual(kind: Kind, ranks: u16, root: u16, class: usize) -> Plan {
    channel_plan(&Usual, kind, ranks, Rank(root), CLASSES[class] as usize).expect("fits")
}

/// The shortest of some runs, microseconds: so many that one had a core for itself.
fn shortest_us<T>(mut of: impl FnMut() -> T) -> u128 {
    let one = |_| {
        let begin = std::time::Instant::now();
        std::hint::black_box(of());
        begin.elapsed().as_micros()
    };
    (0..40).map(one).min().unwrap_or(0)
}

#[test]
#[ignore = "prints how long choices take; a look, not a check"]
#[allow(clippy::print_stdout, reason = "that is what it is for")]
fn how_long_choices_take() {
    let of_192 = Synthetic::new(&[8, 96, 192], &[25.0, 120.0, 220.0]);
    for on in [Synthetic::of_16(), Synthetic::of_64(), of_192] {
        let ranks = u16::try_from(on.cores().len()).expect("few");
        println!("{ranks} ranks: {} us to know their cores", shortest_us(|| known(&on)));
        let known = known(&on);
        let costs = known.costs.as_ref().expect("few ranks");
        for (kind, class) in
            CHOSEN.into_iter().flat_map(|kind| [0, 1, 2].map(|class| (kind, class)))
        {
            let plan = usual(kind, ranks, 0, class);
            let entry = choose(&plan, &known);
            let all = shortest_us(|| choose(&plan, &known));
            let ns = |entry| judged(&plan, entry, costs, &known.groups);
            println!(
                "{} {class}: {entry:?} in {all} us; {:.0} ns instead of {:.0}",
                kind.name(),
                ns(entry),
                ns(Entry::USUAL),
            );
        }
    }
}

#[test]
fn what_travels_comes_back() {
    let groups = Groups::new([vec![0, 0, 1, 1, 2, 2, 3, 3], vec![0, 0, 0, 0, 1, 1, 1, 1]]);
    let entries = shortlist(usual(Kind::Broadcast, 8, 0, 0).collective(), &groups);
    assert_eq!(entries.len(), 3 * 10);
    assert_eq!(entries[0], Entry::USUAL);
    for (n, entry) in entries.iter().enumerate() {
        assert_eq!(Entry::of_code(entry.code()), Some(*entry));
        assert!(entries[..n].iter().all(|other| other.code() != entry.code()));
    }
    let long = usual(Kind::Broadcast, 8, 0, 2);
    let varied = entries.iter().flat_map(|entry| variants(*entry, &long));
    let varied: Vec<Entry> = varied.collect();
    assert_eq!(varied.len(), 4 * entries.len(), "three chunks, or counters");
    for (n, entry) in varied.iter().enumerate() {
        assert_eq!(Entry::of_code(entry.code()), Some(*entry));
        assert!(!entries.contains(entry) && !varied[..n].contains(entry));
    }
    let short = usual(Kind::Reduce, 8, 0, 1);
    assert_eq!(variants(Entry::USUAL, &short), [], "one chunk, and no acknowledgements");
    for unknown in [11, 0x600, 0x4_0000, 0x200_0000, u32::MAX] {
        assert_eq!(Entry::of_code(unknown), None, "{unknown:x}");
    }
    assert_eq!(shortlist(usual(Kind::Scatter, 8, 0, 0).collective(), &groups), [Entry::USUAL]);
}

#[test]
fn no_choice_needs_more_lines_than_the_usual_plan() {
    let mut compared = 0;
    for ranks in [3, 5, 8, 9, 16, 33, 64] {
        let on = Synthetic::new(&[2, 8, 32, 64], &[20.0, 30.0, 100.0, 200.0]);
        let ranks_on: Vec<Vec<CoreId>> = (0..ranks).map(|core| vec![CoreId(core)]).collect();
        let groups = Known::of(&on, &ranks_on).expect("known").groups;
        for (kind, class) in
            CHOSEN.into_iter().flat_map(|kind| (0..3).map(move |class| (kind, class)))
        {
            let plan = usual(kind, ranks, ranks - 1, class);
            let shapes = shortlist(plan.collective(), &groups).into_iter();
            for entry in shapes.flat_map(|of| [vec![of], variants(of, &plan)].concat()) {
                let Some(options) = entry.options(&plan, &groups) else { continue };
                let other = Plan::new(plan.collective(), ranks, plan.root(), plan.bytes(), options);
                let other = other.expect("options of a plan");
                assert!(other.lines() <= plan.lines(), "{entry:?} of {ranks} for {kind:?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 3000, "{compared}");
}

#[test]
fn a_tree_by_groups_enters_each_once_and_its_root_leads() {
    let inner = [3, 3, 1, 1, 3, 1, 2, 2, 0, 0, 0, 2].to_vec();
    let outer = inner.iter().map(|group| group / 2).collect::<Vec<u16>>();
    let groups = Groups::new([inner.clone(), outer.clone()]);
    for (kind, form) in [
        (Kind::Broadcast, Form::Flat),
        (Kind::Broadcast, Form::Binomial),
        (Kind::Reduce, Form::Degree(3)),
    ] {
        let entry = Entry::shaped(form, Some(0));
        let plan = usual(kind, 12, 6, 0);
        let Shape::Tree(tree) = entry.options(&plan, &groups).expect("fits").shape else {
            panic!("an exchange");
        };
        let crossing = |level: &[u16]| {
            let ranks = (0..12).map(Rank);
            let parents = ranks.filter_map(|rank| Some((rank, tree.parent(rank)?)));
            parents.filter(|(rank, parent)| level[rank.index()] != level[parent.index()]).count()
        };
        assert_eq!((tree.root(), crossing(&inner), crossing(&outer)), (Rank(6), 3, 1), "{form:?}");
        let served = tree.children(Rank(6));
        let far = |rank: &Rank| outer[rank.index()] != outer[6];
        assert_eq!(
            served.iter().position(far),
            Some(if kind == Kind::Broadcast { 0 } else { served.len() - 1 })
        );
    }
}

fn judged(plan: &Plan, entry: Entry, costs: &LineCosts, groups: &Groups) -> f64 {
    let options = entry.options(plan, groups).expect("means something");
    judge(plan, options, costs).expect("ends")
}

/// Costs that turn out otherwise, each by up to 20 %.
fn perturbed(costs: &LineCosts, seed: u64) -> LineCosts {
    let mut random = stats::rng(seed);
    let mut factor = || 0.8 + 0.4 * stats::uniform(&mut random);
    let mut costs = costs.clone();
    for class in &mut costs.classes {
        class.transfer_ns *= factor();
        class.start_ns *= factor();
        class.line_ns *= factor();
        class.congestion_ns *= factor();
    }
    costs.added.rfo_sharer_ns = costs.added.rfo_sharer_ns.map(|ns| ns * factor());
    costs.added.overlapped_ack_ns = costs.added.overlapped_ack_ns.map(|ns| ns * factor());
    costs
}

#[test]
fn a_choice_stays_right_where_costs_turn_out_otherwise_by_a_fifth() {
    let mut changed = 0;
    for (on, seeds) in [(Synthetic::of_16(), 0..20), (Synthetic::of_64(), 0..5)] {
        let ranks = u16::try_from(on.cores().len()).expect("few");
        let known = known(&on);
        let costs = known.costs.as_ref().expect("few ranks");
        for (kind, class) in CHOSEN.into_iter().flat_map(|kind| [0, 1].map(|class| (kind, class))) {
            let plan = usual(kind, ranks, ranks / 3, class);
            let entry = choose(&plan, &known);
            if entry == Entry::USUAL {
                continue;
            }
            changed += 1;
            for seed in seeds.clone() {
                let costs = perturbed(costs, seed);
                let ns = |entry| judged(&plan, entry, &costs, &known.groups);
                let (chosen, usual) = (ns(entry), ns(Entry::USUAL));
                assert!(
                    chosen < usual,
                    "{kind:?} class {class}, {ranks} ranks, {entry:?}: {chosen} {usual}"
                );
            }
        }
    }
    assert!(changed >= 4, "{changed} choices");
}

/// How far the shortlist may be behind the search, both by the simulator.
const BEHIND_SIMULATED: f64 = 1.1;
/// The same by the price that the search goes by, `T_min` of a hot call, in which a root always writes before anybody
/// looks. Of barriers it is no price to compare by: a flat one has 235 ns by it, and 900 simulated.
const BEHIND_PRICED: f64 = 2.0;

#[test]
fn the_shortlist_is_not_far_behind_the_search() {
    let few = Synthetic::of_16();
    let many = Synthetic::of_64();
    let rooted = [Kind::Broadcast, Kind::Reduce];
    let [all @ .., _] = CHOSEN;
    for (on, kind) in all.map(|kind| (&few, kind)).into_iter().chain(rooted.map(|k| (&many, k))) {
        let ranks = u16::try_from(on.cores().len()).expect("few");
        let known = known(on);
        let costs = known.costs.as_ref().expect("few ranks");
        let cores: Vec<usize> = (0..usize::from(ranks)).collect();
        let plan = usual(kind, ranks, ranks / 2, 0);
        let entry = choose(&plan, &known);
        let question = Question {
            collective: plan.collective(),
            root: plan.root(),
            bytes: plan.bytes(),
            costs,
            cores: &cores,
            objective: Objective::Isolated,
            state: State::Hot,
            options: plan.options().clone(),
        };
        let options = entry.options(&plan, &known.groups).expect("chosen");
        let best = question.choose().expect("priced").chosen;
        let simulated = |options| judge(&plan, options, costs).expect("ends");
        let behind = simulated(options.clone()) / simulated(best.options.clone());
        assert!(
            behind <= BEHIND_SIMULATED,
            "{kind:?} of {ranks}: {entry:?} {behind}, {}",
            best.name
        );
        let behind = question.ns(options).expect("priced") / best.ns;
        assert!(
            behind <= BEHIND_PRICED || kind == Kind::Barrier,
            "{kind:?} of {ranks}: {entry:?} {behind}, {}",
            best.name
        );
    }
}

#[test]
fn another_machine_is_another_choice() {
    let ranks = |count| (0..count).map(|core| vec![CoreId(core)]).collect::<Vec<_>>();
    let plan = usual(Kind::Reduce, 16, 0, 0);
    let near = Known::of(&Synthetic::new(&[16], &[35.0]), &ranks(16)).expect("known");
    let apart = Known::of(&Synthetic::new(&[8, 16], &[35.0, 400.0]), &ranks(16)).expect("known");
    let [near, apart] = [choose(&plan, &near), choose(&plan, &apart)];
    assert_eq!(near.level, None, "there are no groups: {near:?}");
    assert_eq!(apart.level, Some(0), "the far way is gone once: {apart:?}");
}

#[test]
fn readers_that_wait_for_one_another_are_another_choice() {
    let plan = usual(Kind::Broadcast, 16, 0, 0);
    let entry = |reader_ns| {
        let on = Synthetic { reader_ns, ..Synthetic::of_16() };
        choose(&plan, &known(&on))
    };
    assert_eq!(entry(Some(0.0)), Entry::shaped(Form::Flat, None), "all read at once");
    assert_ne!(entry(Some(60.0)), Entry::shaped(Form::Flat, None));
    assert_eq!(entry(None), entry(Some(5.0)), "what is assumed");
}

#[test]
fn the_usual_rule_stays_unless_the_gain_exceeds_the_error() {
    let plan = usual(Kind::Reduce, 16, 0, 0);
    let surely = known(&Synthetic::of_16());
    assert!((surely.error - (MODEL_ERROR + 0.05)).abs() < 1e-9);
    let entry = choose(&plan, &surely);
    assert_ne!(entry, Entry::USUAL);
    let costs = surely.costs.as_ref().expect("few ranks");
    let ns = |entry| judged(&plan, entry, costs, &surely.groups);
    let gain = 1.0 - ns(entry) / ns(Entry::USUAL);
    assert_eq!(choose(&plan, &Known { error: gain + 0.01, ..surely.clone() }), Entry::USUAL);
    assert_eq!(choose(&plan, &Known { error: gain - 0.01, ..surely.clone() }), entry);
    let unsure = known(&Synthetic { interval: 0.3, ..Synthetic::of_16() });
    assert!((unsure.error - (MODEL_ERROR + 0.3)).abs() < 1e-9);
    let paper = known(&Synthetic { term_ns: None, ..Synthetic::of_16() });
    assert!((paper.error - (PAPER_ERROR + 0.05)).abs() < 1e-9);
}

#[test]
fn whatever_is_chosen_gains_more_than_the_error() {
    let on = Synthetic::of_16();
    let known = known(&on);
    let costs = known.costs.as_ref().expect("few ranks");
    let cases = CHOSEN.into_iter().flat_map(|kind| [0, 1, 2].map(|class| (kind, class)));
    let mut chunks = 0;
    for (kind, class) in cases.filter(|(kind, class)| *kind != Kind::Barrier || *class == 0) {
        let plan = usual(kind, 16, 5, class);
        let entry = choose(&plan, &known);
        let ns = |entry| judged(&plan, entry, costs, &known.groups);
        let (chosen, before) = (ns(entry), ns(Entry::USUAL));
        assert!(
            entry == Entry::USUAL || chosen < before * (1.0 - known.error),
            "{kind:?} class {class}, {entry:?}: {chosen} {before}"
        );
        chunks += usize::from(entry.chunk_lines.is_some());
    }
    assert!(chunks > 0, "no long message has other chunks");
}

#[test]
fn two_ranks_and_what_has_no_shape_go_by_the_usual_rule() {
    let two = Known::of(&Synthetic::of_16(), &[vec![CoreId(0)], vec![CoreId(9)]]).expect("known");
    assert_eq!(choose(&usual(Kind::Broadcast, 2, 0, 0), &two), Entry::USUAL);
    let many = known(&Synthetic::of_16());
    for kind in [Kind::Scatter, Kind::Gather] {
        assert_eq!(choose(&usual(kind, 16, 0, 0), &many), Entry::USUAL);
    }
}

#[test]
fn beyond_what_is_priced_the_usual_trees_lie_inside_groups() {
    let ranks = RANKS_MOST + 8;
    let on = Synthetic::new(&[8, 40, ranks], &[25.0, 110.0, 210.0]);
    let known = known(&on);
    assert!(known.costs.is_none());
    let inside = Entry::shaped(Form::Usual, Some(0));
    let plan = usual(Kind::Broadcast, ranks, 5, 0);
    assert_eq!(choose(&plan, &known), inside);
    let options = inside.options(&plan, &known.groups).expect("fits");
    assert_ne!(options.shape, Shape::Tree(Tree::regular(ranks, Rank(5), 4)));
    assert_eq!(
        choose(&usual(Kind::Barrier, ranks, 0, 0), &known),
        Entry::USUAL,
        "an exchange stays"
    );
    assert_eq!(choose(&plan, &Known { groups: Groups::default(), ..known }), Entry::USUAL);
}

#[test]
fn a_sketch_is_not_far_from_the_simulator() {
    for (on, classes) in [(Synthetic::of_16(), [0, 1]), (Synthetic::of_64(), [1, 1])] {
        let ranks = u16::try_from(on.cores().len()).expect("few");
        let known = known(&on);
        let costs = known.costs.as_ref().expect("few ranks");
        let [shaped @ .., _] = CHOSEN;
        for (kind, class) in shaped.into_iter().zip(classes.into_iter().cycle()) {
            let plan = usual(kind, ranks, ranks / 2, class);
            let mut judge = Judge::new(&plan, costs, plan.options().chunk_lines, u64::MAX);
            for entry in shortlist(plan.collective(), &known.groups) {
                let Some(options) = entry.options(&plan, &known.groups) else { continue };
                let (shape, groups) = (&options.shape, &options.groups);
                let sketch = Sketch::of(plan.collective(), shape, groups, judge.costs());
                let off = judge.ns(options, f64::INFINITY).expect("ends") / sketch.ns();
                let [least, most] = sketch.off;
                assert!(least <= off, "{kind:?} of {ranks}: {entry:?} {off}");
                assert!(entry != Entry::USUAL || off <= most, "{kind:?} of {ranks}: {off}");
            }
        }
    }
}

/// Machines of many kinds: levels, sizes that are no powers of two, far sockets, terms that were not measured.
fn machines() -> Vec<Synthetic> {
    let sizes: [(&[u16], &[f64]); 13] = [
        (&[8, 16], &[35.0, 95.0]),
        (&[8, 32, 64], &[25.0, 110.0, 210.0]),
        (&[64], &[60.0]),
        (&[2, 8, 16, 64], &[15.0, 30.0, 100.0, 150.0]),
        (&[32, 64], &[50.0, 200.0]),
        (&[4, 16, 48], &[25.0, 60.0, 130.0]),
        (&[8, 33], &[25.0, 90.0]),
        (&[4, 24], &[20.0, 120.0]),
        (&[2, 6, 12], &[20.0, 50.0, 140.0]),
        (&[3, 5], &[20.0, 80.0]),
        (&[4, 8], &[30.0, 300.0]),
        (&[8, 64], &[25.0, 400.0]),
        (&[16, 32, 64], &[40.0, 70.0, 90.0]),
    ];
    let first = sizes.map(|(sizes, ns)| Synthetic::new(sizes, ns));
    let others = first.clone().into_iter().zip([Some(2.0), Some(15.0), None].into_iter().cycle());
    let others = others.map(|(on, term_ns)| Synthetic { term_ns, interval: 0.02, ..on });
    first.clone().into_iter().chain(others).collect()
}

#[test]
#[ignore = "prints what is chosen on many machines, to compare one build with another"]
#[allow(clippy::print_stdout, reason = "that is what it is for")]
fn what_is_chosen_on_many_machines() {
    for on in machines() {
        let ranks = u16::try_from(on.cores().len()).expect("few");
        let known = known(&on);
        let roots = [0, 1, ranks / 3, ranks - 1].into_iter();
        let cases = roots.flat_map(|root| CHOSEN.map(|kind| (kind, root)));
        let cases = cases.filter(|(kind, root)| *root == 0 || kind.rooted());
        for ((kind, root), class) in cases.flat_map(|case| [0, 1, 2].map(|class| (case, class))) {
            let entry = choose(&usual(kind, ranks, root, class), &known);
            let (sizes, ns, term) = (&on.sizes, &on.ns, on.term_ns);
            let code = entry.code();
            println!("{sizes:?} {ns:?} {term:?} {} {class} {root}: {code:x}", kind.name());
        }
    }
}

/// Shapes of a collective to look at, as options of a plan.
fn some_shapes(plan: &Plan, groups: &Groups) -> Vec<Options> {
    let entries = [
        Entry::USUAL,
        Entry::shaped(Form::Flat, None),
        Entry::shaped(Form::Binomial, Some(0)),
        Entry::shaped(Form::Degree(4), Some(0)),
        Entry::shaped(Form::Degree(6), None),
    ];
    entries.into_iter().filter_map(|entry| entry.options(plan, groups)).collect()
}

#[test]
fn lines_that_are_left_without_times_are_those_that_are_left_with_them() {
    let mut compared = 0;
    for on in machines().iter().filter(|on| on.cores().len() <= 24) {
        let ranks = u16::try_from(on.cores().len()).expect("few");
        let known = known(on);
        let costs = known.costs.as_ref().expect("few ranks");
        let cores: Vec<usize> = (0..usize::from(ranks)).collect();
        // Allgather is not simulated.
        let [simulated @ .., _] = CHOSEN;
        for (kind, class) in simulated.into_iter().flat_map(|kind| [0, 2].map(|of| (kind, of))) {
            let plan = usual(kind, ranks, ranks / 3, class);
            for options in some_shapes(&plan, &known.groups) {
                let bytes = plan.bytes().min(2 * Line::PAYLOAD_BYTES) & !7;
                let options = Options { chunk_lines: 1, ring: 16, ..options };
                let of = Plan::new(plan.collective(), ranks, plan.root(), bytes, options);
                let of = of.expect("fits");
                let all: Vec<Recorded> = (0..19).map(|call| of.record(call, call + 1)).collect();
                let (now, before) = all.split_last().expect("some");
                let before = Start::AfterEach(before);
                let model = Model::default();
                let timed = many(now, before, costs, &cores, &model, 0..2).expect("ends");
                let mut hot = Hot::new(costs, &cores, &model).expect("a core for each");
                let settled = hot.mean_ns(&all, 0..2, f64::INFINITY).expect("ends").expect("all");
                let mean = timed.total_ns.iter().sum::<f64>() / 2.0;
                let off = settled / mean - 1.0;
                assert!(off.abs() < 1e-9, "{kind:?} {class} of {ranks}, {}: {off}", of.options());
                compared += 1;
            }
        }
    }
    assert!(compared > 150, "{compared}");
}

#[test]
fn a_choice_that_may_simulate_little_takes_what_it_knows() {
    let on = Synthetic::of_64();
    let known = known(&on);
    let costs = known.costs.as_ref().expect("few ranks");
    for (kind, root) in CHOSEN.map(|kind| (kind, if kind.rooted() { 5 } else { 0 })) {
        let plan = usual(kind, 64, root, 0);
        let within = |events| best(&plan, costs, &known, events).unwrap_or(Entry::USUAL);
        let all = within(u64::MAX);
        assert_eq!(within(most_events(64)), all, "{kind:?}: nothing of one chunk takes as much");
        if kind == Kind::Allgather {
            continue;
        }
        // By sketches alone.
        let unseen = within(0);
        let sketch = |entry: Entry| {
            let shape = entry.shape(&plan, &known.groups).expect("means something");
            Sketch::of(plan.collective(), &shape, entry.lines(&known.groups), Costs::lines(costs))
                .ns()
        };
        let gains = |entry: Entry| sketch(entry) < sketch(Entry::USUAL) * (1.0 - known.error);
        assert_eq!(gains(unseen), unseen != Entry::USUAL, "{kind:?}: {unseen:?}");
        assert!(unseen != Entry::USUAL || !gains(all), "{kind:?}: {all:?}");
        let some: Vec<Entry> = (0..40).map(|tenth| within(tenth * 1000)).collect();
        let known = |entry: &&Entry| [unseen, Entry::USUAL, all].contains(entry);
        assert!(some.iter().filter(known).count() > 30, "{kind:?}: {some:?}");
    }
}
