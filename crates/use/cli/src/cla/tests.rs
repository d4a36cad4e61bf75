//! The command on the paper's program and machine.

use clap::Parser;
use isochrone_cla::language::parse;

use super::{found, line_costs};
use crate::args::{ClaArgs, Cli, ColourChoice, Command};
use crate::output::Terminal;

const FIGURE_1: &str = include_str!("../../../../../examples/cla/figure1.cla");

fn args(rest: &str) -> ClaArgs {
    let line = format!("isochrone cla figure1.cla --machine xeon-e5-2660-2s {rest}");
    match Cli::try_parse_from(line.split_whitespace()).unwrap_or_else(|e| panic!("{e}")).command {
        Command::Cla(args) => args,
        other => panic!("{other:?} is not cla"),
    }
}

fn plain() -> Terminal {
    Terminal::detect(ColourChoice::Never)
}

#[test]
fn figure_1_is_predicted_simulated_and_refused_twice() {
    let args = args("--threads 4 --tree 2 --seeds 5 --live 20");
    let program = parse("figure1.cla", FIGURE_1).unwrap_or_else(|e| panic!("{e}"));
    let table = line_costs::of(args.machine.as_deref(), None, false, &plain())
        .unwrap_or_else(|e| panic!("{e:#}"));
    let once = found(&args, &program, &table.costs).unwrap_or_else(|e| panic!("{e:#}"));
    // The tests of the predictor add these up by hand.
    assert!((once.prediction.band().min_ns - 496.9).abs() < 1e-6);
    assert!(once.prediction.band().holds(once.simulated_ns[1]));
    assert!(once.checked.is_ok());
    assert_eq!(once.live.as_ref().map(|live| live.wrong), Ok(None));
    let twice = ClaArgs { calls: Some(2), ..args.clone() };
    let twice = found(&twice, &program, &table.costs).unwrap_or_else(|e| panic!("{e:#}"));
    assert_eq!(twice.live, Err("the checker found a fault".to_owned()));
    assert!(twice.checked.is_err_and(|fault| fault.to_string().starts_with("reuse: ")));
    let same = ClaArgs { tree: "-,0,0,1".to_owned(), ..args.clone() };
    let same = found(&same, &program, &table.costs).unwrap_or_else(|e| panic!("{e:#}"));
    assert!((same.prediction.band().min_ns - 496.9).abs() < 1e-6);
    let unknown = ClaArgs { values: vec![("rounds".to_owned(), 1)], ..args };
    assert!(found(&unknown, &program, &table.costs).is_err());
}

/// Every example in the repository runs, on more ranks than cores as well, and leaves what it should.
#[test]
fn examples_run_live() {
    for (example, threads) in [
        ("figure1", 1),
        ("figure1", 2),
        ("figure1", 6),
        ("broadcast", 2),
        ("broadcast", 7),
        ("barrier", 4),
        ("reduce", 2),
    ] {
        let rounds = if example == "barrier" { "--set rounds=2" } else { "" };
        let args = args(&format!("--threads {threads} {rounds} --seeds 1 --live 30"));
        let path = format!("{}/../../../examples/cla/{example}.cla", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        let program = parse(example, &text).unwrap_or_else(|e| panic!("{e}"));
        let table = line_costs::of(args.machine.as_deref(), None, false, &plain())
            .unwrap_or_else(|e| panic!("{e:#}"));
        let found = found(&args, &program, &table.costs).unwrap_or_else(|e| panic!("{e:#}"));
        let live = found.live.unwrap_or_else(|why| panic!("{example}: {why}"));
        assert_eq!((live.wrong, live.calls), (None, 94), "{example} over {threads}");
    }
}
