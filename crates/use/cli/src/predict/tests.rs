//! The command on a described machine, as programs read it.

use clap::Parser;
use isochrone_atlas_store::contents::{Cell, CostTerm};
use isochrone_report::table::too_wide;

use isochrone_report::json::Format;

use super::{line_costs, row, show, terms};
use crate::args::{Cli, ColourChoice, Command, PredictArgs};
use isochrone_console::output::Terminal;

fn args(line: &str) -> PredictArgs {
    let cli = Cli::try_parse_from(line.split_whitespace()).unwrap_or_else(|e| panic!("{e}"));
    match cli.command {
        Command::Predict(args) => args,
        other => panic!("{other:?} is not predict"),
    }
}

fn plain() -> Terminal {
    Terminal::detect(ColourChoice::Never)
}

fn json(line: &str) -> serde_json::Value {
    let args = args(line);
    let table = line_costs::of(args.machine.as_deref(), None, args.smt.is_some(), &plain());
    let table = table.unwrap_or_else(|e| panic!("{e:#}"));
    let terms = terms::asked(&args.terms, &table).unwrap_or_else(|e| panic!("{e:#}"));
    let threads = args.threads.as_ref().map(|t| t.0.clone()).unwrap_or_default();
    let rows: Vec<_> = threads
        .iter()
        .map(|&n| row::row(&args, &table, &terms.known, n).unwrap_or_else(|e| panic!("{n}: {e:#}")))
        .collect();
    for width in [60, 80, 120] {
        let text = show::text(&args, &table, &terms, &rows, width);
        assert_eq!(too_wide(&text, width), None, "{text}");
    }
    let found = show::json(&args, &table, &terms, &rows);
    isochrone_schemas::hold(Format::Predict, &found).unwrap_or_else(|fault| panic!("{fault}"));
    found
}

fn number(value: &serde_json::Value, field: &str) -> f64 {
    value[field].as_f64().unwrap_or_else(|| panic!("{field} of {value}"))
}

#[test]
fn the_simulated_median_is_inside_the_band_for_every_number_of_threads() {
    let line =
        "isochrone predict bcast --machine xeon-e5-2660-2s --threads 2..16 --simulate --seeds 5";
    for rest in ["", " --acks counter --acks-in-call --start memory"] {
        let found = json(&format!("{line}{rest}"));
        let rows = found["threads"].as_array().expect("rows");
        assert_eq!(rows.len(), 15);
        for row in rows {
            assert_eq!(row["inside_band"], true, "{row}");
            assert!(number(row, "t_min_ns") <= number(row, "t_max_ns"), "{row}");
            assert!(number(row, "t_min_ns") <= number(row, "flat_t_min_ns"), "{row}");
            assert!(row["tree"].as_str().is_some_and(|t| t.starts_with("0(")), "{row}");
        }
        assert!(rows[14]["runner_up"]["tree"].is_string(), "{}", rows[14]);
        let as_paper = &rows[14]["as_paper"];
        assert!(
            number(as_paper, "flat_t_min_ns") > 1.2 * number(as_paper, "t_min_ns"),
            "{as_paper}"
        );
    }
}

#[test]
fn hardware_threads_are_marked_as_assumed() {
    let found =
        json("isochrone predict bcast --machine xeon-e5-2660-2s --threads 32 --smt assumed");
    let assumed = found["assumed"].as_array().expect("a list");
    assert!(assumed.iter().any(|a| a.as_str().is_some_and(|a| a.contains("R_S"))), "{found}");
    let refused = args("isochrone predict bcast --machine xeon-e5-2660-2s --threads 32");
    assert!(super::run(&refused, &Terminal::detect(ColourChoice::Never)).is_err());
}

#[test]
fn every_collective_is_chosen_and_simulated_inside_its_band() {
    for name in ["barrier", "reduce", "allreduce", "scatter", "gather", "allgather"] {
        let found = json(&format!(
            "isochrone predict {name} --machine xeon-e5-2660-2s --threads 4,9 --simulate --seeds 3"
        ));
        for row in found["threads"].as_array().expect("rows") {
            assert_eq!(row["inside_band"], true, "{name}: {row}");
        }
    }
}

#[test]
fn terms_are_switched_on_one_by_one() {
    let line = "isochrone predict bcast --machine xeon-e5-2660-2s --threads 12 --acks-in-call --start memory";
    let found = json(&format!("{line} --term first-remote-reader=300 --term rfo-sharer=1"));
    let row = &found["threads"][0];
    let terms = row["terms"].as_array().expect("a list");
    let names: Vec<_> = terms.iter().filter_map(|with| with["terms"].as_str()).collect();
    assert_eq!(names, ["none", "first-remote-reader=300", "rfo-sharer=1", "all"]);
    let [none, reader, sharer, all] = [0, 1, 2, 3].map(|n| &terms[n]);
    assert!(number(reader, "t_min_ns") > number(none, "t_min_ns"), "{row}");
    assert!(number(sharer, "t_max_ns") < number(none, "t_max_ns"), "{row}");
    assert!(number(all, "t_max_ns") < number(reader, "t_max_ns"), "{row}");
    let without = json(line);
    assert!(without["threads"][0]["terms"].as_array().is_some_and(Vec::is_empty), "{without}");
}

#[test]
fn terms_of_an_atlas_are_switched_on_and_what_it_lacks_is_said() {
    let cell = |ns: f64| Cell { median: ns, lo: ns, hi: ns, p5: ns, p95: ns, n: 32 };
    let term = |name: &str, ns: Option<f64>| CostTerm {
        name: name.into(),
        what: "with / without".into(),
        with_ns: None,
        without_ns: None,
        ns: ns.map(cell),
        missing: ns.is_none().then(|| "needs 3 cores, 2 may be used".into()),
    };
    let mut table = line_costs::of(Some("xeon-e5-2660-2s"), None, false, &plain())
        .unwrap_or_else(|e| panic!("{e:#}"));
    let all = args("isochrone predict bcast --term measured");
    assert!(terms::asked(&all.terms, &table).is_err(), "a described machine has measured none");
    table.terms = vec![
        term("first-remote-reader", None),
        term("overlapped-ack", Some(6.5)),
        term("rfo-sharer", None),
        term("adjacent-line", Some(-1.25)),
        term("adjacent-write", Some(30.0)),
        term("left-shared", Some(41.0)),
    ];
    let found = terms::asked(&all.terms, &table).unwrap_or_else(|e| panic!("{e:#}"));
    let known: Vec<(String, f64)> =
        found.known.iter().map(|term| (terms::name(term.name), term.ns)).collect();
    let expected = [("overlapped-ack", 6.5), ("adjacent-line", 0.0), ("left-shared", 41.0)];
    assert_eq!(known, expected.map(|(name, ns)| (name.to_owned(), ns)));
    assert_eq!(found.notes.len(), 5);
    assert_eq!(found.notes[0], "first-remote-reader: left out, needs 3 cores, 2 may be used");
    assert!(found.notes[3].contains("below 0"), "{:?}", found.notes);
    let one = args("isochrone predict bcast --term left-shared");
    let found = terms::asked(&one.terms, &table).unwrap_or_else(|e| panic!("{e:#}"));
    assert_eq!((found.known.len(), found.known[0].ns), (1, 41.0));
}

#[test]
fn the_state_left_behind_is_what_a_writer_without_claims_pays() {
    let line = "isochrone predict bcast --machine xeon-e5-2660-2s --threads 2 --no-claims";
    let found = json(&format!("{line} --term left-shared=5"));
    let terms = &found["threads"][0]["terms"];
    assert_eq!(terms[1]["terms"], "left-shared=5");
    assert!(number(&terms[1], "t_min_ns") < number(&terms[0], "t_min_ns"), "{found}");
    assert_eq!(found["terms_on"][0]["term"], "left-shared");
}

#[test]
fn a_tree_of_ones_own_is_predicted_and_each_thread_has_its_time() {
    let line =
        "isochrone predict bcast --machine xeon-e5-2660-2s --threads 8 --each --simulate --seeds 3";
    let best = &json(line)["threads"][0];
    let asked = &json(&format!("{line} --tree -,0,1,2,3,4,5,6"))["threads"][0];
    assert_eq!(asked["tree_name"], "asked for");
    assert_eq!(asked["runner_up"]["tree"], best["tree"]);
    assert!(number(asked, "t_min_ns") > number(best, "t_min_ns"), "{asked}");
    for done in [&asked["done"], &asked["simulated_done"]] {
        let times: Vec<f64> = serde_json::from_value(done["threads_ns"].clone()).expect("numbers");
        assert_eq!(times.len(), 8);
        // Each of a chain is done after the one that it hangs below.
        assert!(times[1..].is_sorted(), "{times:?}");
        assert!(number(done, "mean_ns") < number(done, "last_ns"), "{done}");
    }
    assert!((number(&asked["done"], "last_ns") - number(asked, "t_min_ns")).abs() < 1.0, "{asked}");
}
