//! The judging over made-up runs: rows hold and fail as their numbers say.

use std::collections::BTreeMap;

use isochrone_machine::Machine;
use isochrone_report::table::too_wide;
use isochrone_report::term::Colour;
use isochrone_tasks::Regime;
use isochrone_workloads::numa::{Bench, Variant};

use super::record::{Key, Record, parse_variants, skew};
use super::runs::{Depth, REGIMES, Runs, plan, rules};
use super::{NumaSpec, THREADS, Table2, numa_aware};
use crate::Shown;
use crate::exhibit::Tests;

const MACHINE: &str = "bullion-s-16s";

fn bundled() -> (Machine, NumaSpec) {
    let machine = isochrone_host::find_machine(MACHINE).expect("bundled");
    let spec = NumaSpec::of(&machine).expect("coherent");
    (machine, spec)
}

/// A run that took so long and moved so many lines from each module to the next.
fn record(key: Key, seconds: f64, lines: u64) -> Record {
    // DWB, DTC, HREQ, SNP, HRSP, NDR, in and out.
    let module =
        [[lines / 10; 2], [lines; 2], [lines; 2], [lines, 1], [1, lines], [lines / 2, lines]];
    Record {
        key,
        reading: isochrone_units::Reading::Simulated,
        verified: true,
        seconds,
        setup_seconds: 0.0,
        tasks: 1,
        messages: vec![module; 8],
        message_bytes: (16.0, 80.0),
        near_lines: vec![0; 16],
        memory_reads: vec![lines; 16],
        memory_writes: vec![lines; 16],
        from_caches: 0,
        homes: vec![1; 16],
        directories: vec![(0, 0, 0); 8],
        compute_ns: 1.0,
        lines_ns: 1.0,
        fault_ns: 0.0,
        task_ns: 2.0,
        runtime_ns: 0.0,
        energy_j: (1.0, 1.0, 1.0),
        declared_bytes: vec![0; 4],
        spread_bytes: 0,
        steals: 0,
        assumed: Vec::new(),
        assumptions: 0,
        touches: 1,
        solved: 1,
        host_seconds: 1.0,
        data_bytes: 1,
        state_bytes: 1,
        partition_seconds: 0.0,
    }
}

/// Runs in which NAFT moves so many lines of DI's 10 000.
fn runs(naft: u64) -> Runs {
    let mut records = BTreeMap::new();
    for bench in Bench::ALL {
        for regime in REGIMES {
            for threads in THREADS {
                let key = Key::new(MACHINE, bench, regime, threads).with(&rules(regime, None));
                let (seconds, lines) = match regime {
                    Regime::Naft => (1.0, naft),
                    Regime::Di => (2.66, 10_000),
                    _ => (10.0, 3_300),
                };
                records.insert(key.clone(), record(key, seconds, lines));
            }
        }
    }
    Runs { machine: MACHINE.into(), records, beside: Vec::new() }
}

fn pass(runs: Runs, id: &str) -> Option<bool> {
    let (_, spec) = bundled();
    let all = numa_aware(&spec, runs, Vec::new());
    all.rows.iter().find(|row| row.id == id).expect("a row").pass
}

#[test]
fn rows_hold_and_fail_as_their_numbers_say() {
    assert_eq!(pass(runs(900), "J3"), Some(true));
    assert_eq!(pass(runs(900), "J4"), Some(true));
    assert_eq!(pass(runs(900), "J6"), Some(false), "the histogram moves far too much");
    assert_eq!(pass(runs(20), "J6"), Some(true));
    assert_eq!(pass(runs(2), "J13"), Some(true));
    assert_eq!(pass(runs(900), "J13"), Some(false), "9 % of DI is not nothing");
    assert_eq!(pass(runs(20), "J17"), Some(false), "data of DFT are not skewed here");
    assert_eq!(pass(runs(20), "J14"), Some(false), "no peak is where the paper has it");
    let mut broken = runs(900);
    if let Some(record) = broken.records.values_mut().next() {
        record.messages[0][1][0] += 1;
    }
    assert_eq!(pass(broken, "J3"), Some(false), "data in are not data out");
}

#[test]
fn each_row_says_what_it_tests_and_the_denominator_stands() {
    let (_, spec) = bundled();
    let all = numa_aware(&spec, runs(900), Vec::new()).exhibits();
    let of = |tests| {
        let ids = all.iter().filter(|e| e.tests == tests).map(|e| e.id.as_str());
        ids.collect::<Vec<_>>().join(" ")
    };
    let out_of_sample = "J2b J5b J6b J7 J8 J9 J10 J11 J12 J13 J14 J15 J16 J19 J19b J20";
    assert_eq!(of(Tests::OutOfSample), out_of_sample);
    assert_eq!(of(Tests::InSample), "J4 J7b J17 J18 J20b");
    assert_eq!((of(Tests::Input), of(Tests::Invariant)), ("J1 J2".into(), "J3 J5 J6".into()));
    assert!(all.iter().all(|e| e.tolerance.contains(": ")), "how narrow each is");
}

#[test]
fn a_peak_is_none_where_numbers_of_threads_are_missing() {
    let mut few = runs(20);
    few.records.retain(|key, _| [16, 96, 288].contains(&key.threads));
    assert_eq!(few.peak(Bench::Jacobi, Regime::Naft), None);
    assert_eq!(pass(few, "J14"), None, "a part of the curve has no peak");
}

#[test]
fn table_2_comes_out_of_the_model() {
    let (_, spec) = bundled();
    let found = Table2::of(&spec);
    let [latency, bandwidth, switches] = super::rows::table_2(&found);
    assert_eq!(latency.pass, Some(true), "{latency:?}");
    assert_eq!(bandwidth.pass, Some(true), "{bandwidth:?}");
    assert_eq!([latency.tests, bandwidth.tests], [Tests::Input; 2]);
    assert_eq!(switches.tests, Tests::OutOfSample);
}

#[test]
fn every_table_and_figure_stands_in_text_page_and_json() {
    let (machine, spec) = bundled();
    let constants = super::constants::constants(&machine);
    let all = numa_aware(&spec, runs(900), constants);
    for width in [60, 80, 120] {
        assert_eq!(too_wide(&all.text(Colour::None, width), width), None);
    }
    let text = all.text(Colour::None, 160);
    for words in
        ["Free constants", "Table 2", "far-window-30", "Table 3a", "Table 3b", "Figure 2", "(must)"]
    {
        assert!(text.contains(words), "{words}:\n{text}");
    }
    assert!(!text.contains("NaN"), "{text}");
    let json = all.json();
    isochrone_schemas::hold(all.format(), &json).expect("as its schema says");
    let rows = json["rows"].as_array().expect("rows");
    for row in rows {
        for field in ["id", "paper", "ours", "tolerance", "must", "note"] {
            assert!(!row[field].is_null(), "{field} of {row}");
        }
    }
    let must: Vec<&str> = rows
        .iter()
        .filter(|row| row["must"] == true)
        .filter_map(|row| row["id"].as_str())
        .collect();
    assert_eq!(must, ["J4", "J13", "J17"], "what is input or invariant proves nothing");
    let page = all.page().render();
    for figure in ["Figure 2", "Figure 3", "Figure 4", "Figure 5", "Figure 6", "Figure 7"] {
        assert!(page.contains(figure), "{figure}");
    }
}

#[test]
fn a_plan_has_each_run_once_and_quick_is_part_of_paper() {
    let [quick, paper, full] =
        [Depth::Quick, Depth::Paper, Depth::Full].map(|d| plan(MACHINE, d, &[]));
    assert_eq!(quick.len(), 45);
    assert!(
        quick.iter().all(|key| paper.contains(key)) && paper.iter().all(|key| full.contains(key))
    );
    assert!(paper.windows(2).all(|two| two[0] < two[1]));
    let curves = plan(MACHINE, Depth::Curves, &[Variant::Turbo]);
    assert_eq!(curves.len(), 2 * 150, "with the change as without");
    assert!(quick.iter().all(|key| curves.contains(key)));
    let beside = plan(MACHINE, Depth::Quick, &[Variant::Directory1300k, Variant::Turbo]);
    assert_eq!(beside.len(), 3 * quick.len());
}

#[test]
fn a_change_stands_beside_every_row_that_was_run_with_it() {
    let (_, spec) = bundled();
    let mut both = runs(900);
    for (key, made) in runs(20).records {
        let regime = key.regime.parse().expect("a regime");
        let key = key.clone().with(&rules(regime, Some(Variant::Directory1300k)));
        // One with another change is no such run.
        let other = key.clone().with(&rules(regime, Some(Variant::Directory5M)));
        both.records.insert(key.clone(), Record { key, ..made.clone() });
        both.records.insert(other.clone(), Record { key: other, ..made });
    }
    both.beside = vec![Variant::Directory1300k, Variant::Turbo];
    assert_eq!(both.under(Variant::Directory1300k).records, runs(20).records);
    let all = numa_aware(&spec, both, Vec::new());
    let note = |id: &str| &all.rows.iter().find(|row| row.id == id).expect("a row").note;
    assert!(note("J6").contains("with directory-1.3M: ") && note("J6").contains("which holds"));
    assert!(note("J9").contains("equal with directory-1.3M"), "{}", note("J9"));
    assert!(!note("J9").contains("turbo"), "nothing was run with it");
}

#[test]
fn a_miss_that_holds_with_one_change_is_explained_by_it() {
    let (_, spec) = bundled();
    let mut both = runs(900);
    let exhibit = |runs: &Runs, id: &str| {
        let all = numa_aware(&spec, runs.clone(), Vec::new()).exhibits();
        all.into_iter().find(|exhibit| exhibit.id == id).expect("a row")
    };
    assert!(exhibit(&both, "J13").reason.starts_with("unexplained"), "9 % of DI is not nothing");
    for (key, made) in runs(2).records {
        let regime = key.regime.parse().expect("a regime");
        let key = key.with(&rules(regime, Some(Variant::Turbo)));
        both.records.insert(key.clone(), Record { key, ..made });
    }
    both.beside = vec![Variant::Turbo];
    let found = exhibit(&both, "J13");
    assert_eq!(found.holds, Some(false), "no change makes the default hold");
    assert!(found.reason.contains("with turbo") && found.reason.contains("which holds"));
    assert!(!found.reason.contains("unexplained"), "{}", found.reason);
}

#[test]
fn names_of_variants_are_sets() {
    assert_eq!(parse_variants("plain").expect("none"), []);
    let both = [Variant::InoutTwice, Variant::Panels];
    assert_eq!(parse_variants("inout-twice+panels").expect("two"), both);
    assert!(parse_variants("inout-twice+nonsense").is_err());
    let key = Key::new(MACHINE, Bench::Inthist, Regime::Naft, 32).with(&both);
    assert_eq!(parse_variants(&key.variant).expect("its own words"), both);
}

#[test]
fn uneven_is_most_over_median() {
    assert_eq!(skew(&[1.0, 1.0, 1.0, 4.0]), Some(4.0));
    assert_eq!(skew(&[0.0, 0.0]), None);
    assert_eq!(skew(&[0.0, 0.0, 1.0]), Some(f64::INFINITY));
}

#[test]
fn a_mechanism_stands_with_what_it_made_better_and_what_worse() {
    let (_, spec) = bundled();
    let mut all = runs(900);
    let none = numa_aware(&spec, all.clone(), Vec::new());
    assert!(none.mechanisms.is_empty() && none.markdown().is_none(), "no arm was run");
    // With turbo NAFT takes three times as long.
    let plain: Vec<Record> = all.records.values().cloned().collect();
    for record in plain {
        let regime = record.key.regime.parse().expect("its own");
        let seconds = record.seconds * if regime == Regime::Naft { 3.0 } else { 1.0 };
        let key = record.key.clone().with(&rules(regime, Some(Variant::Turbo)));
        all.records.insert(key.clone(), Record { key, seconds, ..record });
    }
    let all = numa_aware(&spec, all, Vec::new());
    let json = all.json();
    let did = json["mechanisms"].as_array().expect("a list");
    assert_eq!(did.len(), 1, "arms of one were run");
    assert_eq!((&did[0]["name"], &did[0]["default"]), (&"turbo".into(), &false.into()));
    let row = |id: &str| {
        let rows = did[0]["rows"].as_array().expect("rows");
        rows.iter().find(|row| row["id"] == id).expect("a row").clone()
    };
    // 10 over 1 and over 3, beside 9.97 6.76 3.14 4.46 6.19.
    let (nearer, away) = (row("J9")["nearer"].clone(), row("J9")["away"].clone());
    assert_eq!((nearer, away), (3.into(), 2.into()));
    assert_eq!(row("J9")["before"][0], 10.0);
    // 2.66 over 1 and over 3, beside 2.66 1.81 1.91 4.57 3.15.
    assert_eq!((row("J10")["nearer"].clone(), row("J10")["away"].clone()), (0.into(), 5.into()));
    let page = all.page().render();
    assert!(
        page.contains("What each mechanism did") && page.contains("3 nearer; 2 away"),
        "{page}"
    );
    assert_eq!(too_wide(&all.text(Colour::None, 80), 80), None);
    let markdown = all.markdown().expect("a mechanism was switched");
    let j9 = markdown.lines().find(|line| line.starts_with("| J9 |")).expect("a row");
    assert!(j9.contains("| 3.33 3.33 3.33 3.33 3.33; 3 nearer; 2 away |"), "{j9}");
    assert!(markdown.contains("| turbo | 45 of 45 | 105 of 105 |"), "{markdown}");
    assert!(markdown.contains("| queues | 0 of 45 | 0 of 105 |"), "{markdown}");
    let whole = super::arms();
    assert!(whole.contains(&Variant::PageTies) && whole.contains(&Variant::RuntimeOurs));
}
