//! Every JSON of the laboratory that other tests do not make, with as little work as it takes, as the schemas in
//! `docs/schemas` have it. No figure is judged.

use std::path::Path;

use serde_json::Value;

use crate::support::{folder, json, machine, run};

/// Runs a command that writes its figures to standard output.
fn written(here: &Path, words: &[&str]) -> Value {
    let (output, out, err) = run(here, &[words, &["--json", "-"]].concat());
    assert!(output.status.success(), "{words:?}: {err}");
    json(&out)
}

#[test]
fn task_benchmarks_write_one_format() {
    let here = folder("formats-tasks");
    let _machine = machine();
    let small: [&[&str]; 5] = [
        &["cholesky", "--rows", "64", "--tile", "16", "--record", "schedule.json"],
        &["smi", "--rows", "64", "--tile", "16"],
        &["streamcluster", "--points", "64", "--chunk", "32", "--block", "16"],
        &["jacobi", "--row-blocks", "2", "--rows", "4", "--columns", "64", "--sweeps", "2"],
        &["inthist", "--image-blocks", "2", "--side", "16"],
    ];
    for words in small {
        let common = ["--blocks", "2", "--seed", "5", "--threads", "2"];
        let found = written(&here, &[&["bench"], words, &common[..]].concat());
        assert_eq!(
            (&found["format"], &found["bench"]),
            (&"isochrone-bench-tasks".into(), &words[0].into())
        );
        assert_eq!(found["verified"], true, "{found}");
    }
    let text = std::fs::read_to_string(here.join("schedule.json")).expect("it was recorded");
    let schedule = json(&text);
    assert_eq!(schedule["version"], schedule["format_version"], "the older name stays");
    let replay =
        ["bench", "cholesky", "--rows", "64", "--tile", "16", "--threads", "2", "--replay"];
    let found = written(&here, &[&replay[..], &["schedule.json", "--blocks", "2"]].concat());
    assert_eq!(found["verified"], true, "{found}");
}

#[test]
fn simulated_runs_write_what_their_schemas_say() {
    let here = folder("formats-sim");
    let small = ["--size", "small"];
    let found = written(&here, &[&["sim", "inthist", "--threads", "32"], &small[..]].concat());
    assert_eq!(
        (&found["format"], &found["reading"]),
        (&"isochrone-sim".into(), &"simulated".into())
    );
    let sweep = ["sim", "sweep", "--bench", "inthist", "--regime", "di", "--threads", "32"];
    let (output, _, err) = run(&here, &[&sweep[..], &small, &["--out", "sweep.jsonl"]].concat());
    assert!(output.status.success(), "{err}");
    let lines = std::fs::read_to_string(here.join("sweep.jsonl")).expect("it was written");
    assert_eq!(lines.lines().map(json).filter(|line| line["bench"] == "inthist").count(), 1);
    let speed = ["bench", "sim", "--bench", "inthist", "--repeats", "1"];
    assert_eq!(written(&here, &[&speed[..], &small].concat())["verified"], true);
}

#[test]
fn a_map_in_virtual_time_is_written_as_its_schema_says() {
    let here = folder("formats-scale");
    let machine = ["scale", "--cores", "2", "--regions", "1", "--quick", "--budget", "1s"];
    let transfers = [&machine[..], &["--only", "transfer", "--out"]].concat();
    let found = written(&here, &[&transfers[..], &["map.atlas"]].concat());
    assert_eq!(
        (&found["format"], &found["reading"]),
        (&"isochrone-scale".into(), &"simulated".into())
    );
    let kept = isochrone_atlas_store::load(&here.join("map.atlas")).expect("the atlas was kept");
    assert_eq!(kept.reading, isochrone_units::Reading::Simulated);
    let one = [&transfers[..], &["figures", "--json", "figures"]].concat();
    let (output, _, err) = run(&here, &one);
    assert_eq!(output.status.code(), Some(2), "{err}");
    let (output, _, err) = run(&here, &[&transfers[..], &["nowhere/map.atlas"]].concat());
    assert!(!output.status.success() && err.contains("--out cannot be written"), "{err}");
}

#[test]
fn what_is_held_against_published_figures_is_written_as_its_schema_says() {
    let here = folder("formats-published");
    let (output, _, err) = run(&here, &["verify", "published", "--json", "published.json"]);
    assert!(output.status.success(), "{err}");
    let text = std::fs::read_to_string(here.join("published.json")).expect("it was written");
    assert_eq!(json(&text)["format"], "isochrone-verify-published");
}

#[test]
fn benchmarks_beside_peers_write_what_their_schemas_say() {
    let here = folder("formats-peers");
    let _machine = machine();
    let cholesky = ["bench", "cholesky", "--peers", "--only", "isochrone", "--rows", "256"];
    let found = written(
        &here,
        &[&cholesky[..], &["--tiles", "64", "--threads", "2", "--blocks", "2"]].concat(),
    );
    assert_eq!(found["format"], "isochrone-bench-cholesky");
    assert!(found["systems"].as_array().is_some_and(|systems| !systems.is_empty()), "{found}");
    let lu = ["bench", "lu", "--rows", "200", "--threads", "2", "--blocks", "2"];
    let found = written(&here, &lu);
    assert_eq!(
        (&found["verified"], &found["rows"], &found["tasks"]),
        (&true.into(), &256.into(), &30.into())
    );
    let names = found["systems"].as_array().expect("systems").iter().map(|system| &system["name"]);
    assert!(names.clone().any(|name| name == "isochrone") && names.count() > 1, "{found}");
    let taskbench =
        ["bench", "taskbench", "--patterns", "trivial", "--widths", "2", "--steps", "50"];
    let few = ["--tasks", "1000", "--threads", "2", "--blocks", "2"];
    assert_eq!(written(&here, &[&taskbench[..], &few].concat())["verified"], true);
}

#[test]
fn tables_are_printed_though_figures_cannot_be_written() {
    let here = folder("formats-full");
    let _machine = machine();
    let bench =
        ["bench", "jacobi", "--row-blocks", "2", "--rows", "4", "--columns", "64", "--blocks", "2"];
    let simulated = ["sim", "inthist", "--size", "small", "--threads", "32"];
    let published = ["verify", "published"];
    for (words, said) in [(&bench[..], "jacobi"), (&simulated, "inthist"), (&published, "median")] {
        let (output, out, err) = run(&here, &[words, &["--json=/dev/full"]].concat());
        assert_eq!(output.status.code(), Some(1), "{words:?}: {err}");
        assert!(err.contains("/dev/full: no space left"), "{words:?}: {err}");
        assert!(out.contains(said), "{words:?}: {out}");
    }
}
