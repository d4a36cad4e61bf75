//! The command on the paper's program and machine.

use clap::Parser;
use isochrone_cla::language::{Program, parse};
use isochrone_machine::LineCosts;

use super::{Found, line_costs, tree};
use crate::args::{ClaArgs, Cli, ColourChoice, Command, TreeAsked};
use isochrone_console::output::{Terminal, WrongUsage};

const FIGURE_1: &str = include_str!("../../../../../examples/cla/figure1.cla");

fn args(rest: &str) -> ClaArgs {
    let line = format!("isochrone cla figure1.cla --machine xeon-e5-2660-2s {rest}");
    match Cli::try_parse_from(line.split_whitespace()).unwrap_or_else(|e| panic!("{e}")).command {
        Command::Cla(args) => args,
        other => panic!("{other:?} is not cla"),
    }
}

fn found(args: &ClaArgs, program: &Program, costs: &LineCosts) -> anyhow::Result<Found> {
    super::found(args, program, tree(args)?, costs)
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
    let same = self::args("--tree -,0,0,1 --seeds 5 --live 20");
    assert!(matches!(same.tree, TreeAsked::Parents(_)) && same.threads.is_none());
    let same = found(&same, &program, &table.costs).unwrap_or_else(|e| panic!("{e:#}"));
    assert!((same.prediction.band().min_ns - 496.9).abs() < 1e-6);
    let unknown = ClaArgs { values: vec![("rounds".to_owned(), 1)], ..args };
    let said = found(&unknown, &program, &table.costs).err().map(|fault| fault.to_string());
    assert!(said.is_some_and(|said| said.ends_with("it takes: none at all: leave --set out")));
}

#[test]
fn a_tree_that_is_named_rank_by_rank_says_how_many_ranks_there_are_and_which_is_the_root() {
    let ranks_and_root = |rest: &str| {
        let found = tree(&args(rest)).unwrap_or_else(|e| panic!("{rest}: {e:#}"));
        (found.ranks(), found.root().0)
    };
    assert_eq!(ranks_and_root(""), (2, 0));
    assert_eq!(ranks_and_root("--tree flat --threads 3 --root 2"), (3, 2));
    assert_eq!(ranks_and_root("--tree=1,-,1"), (3, 1));
    assert_eq!(ranks_and_root("--tree -,0,0,1 --threads 4 --root 0"), (4, 0));
    for rest in
        ["--tree -,0,0,1 --threads 3", "--tree 1,- --root 0", "--root 2", "--threads 9 --root 9"]
    {
        let refused = tree(&args(rest)).err();
        assert!(refused.is_some_and(|error| error.is::<WrongUsage>()), "{rest}");
    }
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
