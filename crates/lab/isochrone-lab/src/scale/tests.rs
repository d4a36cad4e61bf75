//! A small machine is mapped whole, twice alike, and its truth is found.

use clap::Parser;
use isochrone_console::args::ColourChoice;
use isochrone_probe::watch::Silent;
use isochrone_report::json::Format;
use isochrone_schemas::drawn;
use serde_json::Value;

use super::*;
use crate::args::{Cli, Command};

/// What depends on the processor of this machine.
const OF_THIS_MACHINE: [&str; 7] = [
    "whole_seconds",
    "planning_cpu_seconds",
    "between_cpu_seconds",
    "inference_cpu_seconds",
    "show_ms",
    "goals",
    "parts",
];

/// What the errors of block latency in memory are called.
const LINES_IN_MEMORY: &str = "latency of lines, dram";

fn figures(line: &str) -> Figures {
    let words = ["isochrone-lab", "scale"].into_iter().chain(line.split_whitespace());
    match Cli::parse_from(words).command {
        Command::Scale(args) => {
            let terminal = Terminal::detect(ColourChoice::Never);
            let order = order(&args);
            let surveyed = survey(order.clone(), &mut Silent).expect("it is mapped");
            judged(&args, &order, &surveyed, &terminal).expect("it is held against it")
        }
        other => panic!("{other:?} is not scale"),
    }
}

/// What a seed decides alone.
fn seeded(figures: &Figures) -> Value {
    let mut value = serde_json::to_value(figures).expect("plain");
    let fields = value.as_object_mut().expect("an object");
    let parts = fields["parts"].as_array().expect("a list").clone();
    OF_THIS_MACHINE.iter().for_each(|field| drop(fields.remove(*field)));
    let times = parts.iter().map(|part| part["virtual_seconds"].clone());
    fields.insert("times".to_owned(), times.collect());
    value
}

#[test]
fn a_small_machine_is_mapped_whole_and_one_seed_finds_the_same() {
    let line = "--cores 8 --regions 2 --quick --budget 100s --seed 3";
    let found = figures(line);
    assert!(found.virtual_seconds < 100.0, "{}", found.virtual_seconds);
    for errors in &found.errors {
        assert_eq!(errors.cells, errors.of, "{errors:?}");
        assert!(errors.median().is_some_and(|error| error < 0.05), "{errors:?}");
    }
    let experiments: Vec<&str> = found.parts.iter().map(|part| part.experiment()).collect();
    let order = ["block", "transfer", "multiline", "terms", "region", "bandwidth", "placement"];
    assert_eq!(experiments, order);
    assert!(found.errors.len() > 10, "{:?}", found.errors);
    assert_eq!(seeded(&found), seeded(&figures(line)));
    let text = found.text(100);
    assert!(text.starts_with("simulated: a quick map of 8 cores in 2 regions"), "{text}");
}

/// Cores of the two regions see the first region's memory in the same pattern, 90 cycles apart.
#[test]
fn lines_in_memory_are_as_far_as_their_region_is() {
    for regions in [2, 4] {
        let line =
            format!("--cores 8 --regions {regions} --quick --budget 100s --only block --seed 3");
        let found = figures(&line);
        let errors = found.errors.iter().find(|errors| errors.what() == LINES_IN_MEMORY);
        let errors = errors.expect("it is measured");
        assert!(errors.median().is_some_and(|error| error < 0.05), "{regions}: {errors:?}");
    }
}

#[test]
fn where_time_is_over_it_is_over_in_virtual_time_and_what_is_left_out_is_said() {
    let found = figures("--cores 32 --regions 4 --quick --budget 2s --seed 3");
    assert!(found.virtual_seconds < 3.0, "{}", found.virtual_seconds);
    assert!(found.missing.iter().any(|line| line.contains("left out")), "{:?}", found.missing);
}

#[test]
fn pairs_that_disturb_each_other_take_turns() {
    let line = "--cores 6 --regions 1 --quick --only transfer --seed 3";
    let crowded = figures(&format!("{line} --crowded"));
    assert!(crowded.virtual_seconds > figures(line).virtual_seconds);
    assert!(crowded.error_against_truth.is_some_and(|error| error < 0.05));
}

#[test]
fn what_stands_in_for_pairs_that_were_not_measured_is_judged_apart() {
    let found = figures("--cores 48 --regions 2 --quick --only transfer --seed 3 --crowded");
    let (measured, predicted): (Vec<_>, Vec<_>) =
        found.errors.iter().partition(|errors| errors.is_measured());
    let modified = measured.iter().find(|one| one.what() == "line transfers, modified");
    let left = modified.map(|one| one.of - one.cells).expect("it is measured");
    let [stand_ins] = &predicted[..] else { panic!("{predicted:?}") };
    assert!(left > 100 && stand_ins.of == left, "{left}: {stand_ins:?}");
    let beyond = "beyond its interval: line transfers, modified, by their groups";
    assert!(stand_ins.goal().is_some_and(|(what, ..)| what == beyond), "{stand_ins:?}");
    assert_eq!(found.predicted_error_against_truth, stand_ins.median());
}

#[test]
fn schemas_are_drawn_from_the_types() {
    drawn::<Figures>(Format::Scale).expect("`cargo xtask schemas` draws it");
}
