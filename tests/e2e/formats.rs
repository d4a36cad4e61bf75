//! Every JSON of the command, as the schemas in `docs/schemas` have it. Formats that other tests make are held against
//! them there.

use crate::support::{folder, json, map, run};

/// Runs the command where the map is; what it wrote to standard output.
fn written(words: &[&str]) -> serde_json::Value {
    let (_, out, err) = run(&map().folder, words);
    assert!(err.is_empty(), "{words:?}: {err}");
    json(&out)
}

#[test]
fn what_looks_at_an_atlas_writes_what_its_schema_says() {
    for (words, format) in [
        (&["show", "--json"][..], "isochrone-map"),
        (&["export", "--json", "-"], "isochrone-atlas"),
        (&["diff", "isochrone.atlas", "isochrone.atlas", "--json"], "isochrone-diff"),
    ] {
        assert_eq!(written(words)["format"], format);
    }
}

#[test]
fn two_atlases_that_differ_are_a_diff_with_all_its_parts() {
    let here = folder("formats-diff");
    let mut contents = isochrone_view::fixtures::genoa();
    let save = |contents: &_, name: &str| {
        isochrone_atlas_store::save(contents, &here.join(name)).expect("it is saved");
    };
    save(&contents, "a.atlas");
    contents.machine.title = "another".into();
    contents.transfers.iter_mut().flat_map(|map| &mut map.latency_ns.cells).flatten().for_each(
        |cell| {
            (cell.median, cell.lo, cell.hi) = (9.0 * cell.median, 9.0 * cell.lo, 9.0 * cell.hi);
        },
    );
    save(&contents, "b.atlas");
    let (_, out, err) = run(&here, &["diff", "a.atlas", "b.atlas", "--json"]);
    assert!(err.is_empty(), "{err}");
    let found = json(&out);
    assert!(found["cells"].as_array().is_some_and(|cells| !cells.is_empty()), "{found}");
}

#[test]
fn machines_are_written_as_their_schema_says() {
    for name in ["xeon-phi-5110p", "xeon-e5-2660-2s", "bullion-s-16s", "epyc-7702-2s-nps4"] {
        assert_eq!(written(&["machine", name, "--json"])["name"], name);
    }
}

#[test]
fn all_machines_are_a_list_of_what_is_written_of_one() {
    let (_, out, err) = run(&map().folder, &["machine", "--list", "--json"]);
    assert!(err.is_empty(), "{err}");
    let all: Vec<serde_json::Value> = serde_json::from_str(&out).expect("a list");
    assert!(all.len() > 3, "{out}");
    all.iter().for_each(|one| drop(json(&one.to_string())));
}

#[test]
fn what_an_atlas_knows_of_a_line_is_written_as_its_schema_says() {
    let here = folder("formats-line");
    let contents = isochrone_view::fixtures::genoa();
    isochrone_atlas_store::save(&contents, &here.join("genoa.atlas")).expect("it is saved");
    let query = ["show", "genoa.atlas", "--query", "0:0x1000040", "--json"];
    let (_, out, err) = run(&here, &query);
    assert!(err.is_empty(), "{err}");
    let found = json(&out);
    assert_eq!((&found["format"], &found["line"]), (&"isochrone-line".into(), &"0x1000040".into()));
    assert!(found["dram_ns"].is_f64(), "{found}");
}

#[test]
fn what_is_predicted_is_written_as_its_schema_says() {
    let predict = ["predict", "bcast", "--machine", "xeon-e5-2660-2s", "--threads", "2,16"];
    let (_, out, err) =
        run(&map().folder, &[&predict[..], &["--simulate", "--json", "predict.json"]].concat());
    assert!(err.is_empty() && out.contains("predicted"), "{err}");
    let text = std::fs::read_to_string(map().folder.join("predict.json")).expect("it was written");
    assert_eq!(json(&text)["collective"], "bcast");
}

#[test]
fn a_program_in_cache_lines_is_written_as_its_schema_says() {
    let here = folder("formats-cla");
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples/cla/figure1.cla");
    let words = ["cla", program, "--threads", "2", "--machine", "xeon-e5-2660-2s"];
    let (output, _, err) = run(&here, &[&words[..], &["--json", "cla.json"]].concat());
    assert!(output.status.success(), "{err}");
    let text = std::fs::read_to_string(here.join("cla.json")).expect("it was written");
    assert_eq!(json(&text)["threads"], 2);
}

#[test]
fn what_the_kernel_lacks_is_written_as_its_schema_says() {
    let found = written(&["tier", "check", "--json"]);
    assert!(found["missing"].is_array(), "{found}");
}
