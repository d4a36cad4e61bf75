//! The command on the paper's program and machine.

use clap::Parser;
use isochrone_cla::language::parse;

use super::{found, line_costs};
use crate::args::{ClaArgs, Cli, Command};

const FIGURE_1: &str = include_str!("../../../../fuzz/corpus/cla_program/valid-figure1.cla");

fn args(rest: &str) -> ClaArgs {
    let line = format!("isochrone cla figure1.cla --machine xeon-e5-2660-2s {rest}");
    match Cli::try_parse_from(line.split_whitespace()).unwrap_or_else(|e| panic!("{e}")).command {
        Command::Cla(args) => args,
        other => panic!("{other:?} is not cla"),
    }
}

#[test]
fn figure_1_is_predicted_simulated_and_refused_twice() {
    let args = args("--threads 4 --tree 2 --seeds 5");
    let program = parse("figure1.cla", FIGURE_1).unwrap_or_else(|e| panic!("{e}"));
    let table = line_costs::of(args.machine.as_deref(), &args.atlas, false)
        .unwrap_or_else(|e| panic!("{e:#}"));
    let once = found(&args, &program, &table.costs).unwrap_or_else(|e| panic!("{e:#}"));
    // The tests of the predictor add these up by hand.
    assert!((once.prediction.band().min_ns - 496.9).abs() < 1e-6);
    assert!(once.prediction.band().holds(once.simulated_ns[1]));
    assert!(once.checked.is_ok());
    let twice = ClaArgs { calls: Some(2), ..args.clone() };
    let twice = found(&twice, &program, &table.costs).unwrap_or_else(|e| panic!("{e:#}"));
    assert!(twice.checked.is_err_and(|fault| fault.to_string().starts_with("reuse: ")));
    let same = ClaArgs { tree: "-,0,0,1".to_owned(), ..args.clone() };
    let same = found(&same, &program, &table.costs).unwrap_or_else(|e| panic!("{e:#}"));
    assert!((same.prediction.band().min_ns - 496.9).abs() < 1e-6);
    let unknown = ClaArgs { values: vec![("rounds".to_owned(), 1)], ..args };
    assert!(found(&unknown, &program, &table.costs).is_err());
}
