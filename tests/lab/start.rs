//! How the laboratory is started: by the command of the same sources, and by nobody else's.

use std::process::Command;

use crate::support::{folder, isochrone, json, run};

#[test]
fn the_command_starts_it() {
    let here = folder("lab-start");
    for name in ["bench", "reproduce", "sim", "verify"] {
        let (output, out, err) = run(&here, &[name, "--help"]);
        assert!(output.status.success(), "{err}");
        assert!(out.contains(&format!("Usage: isochrone-lab {name}")), "{out}");
    }
}

#[test]
fn a_command_of_other_sources_is_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_isochrone-lab"))
        .args(["--of-build", "0.1.0-0123456789abcdef", "verify", "published"])
        .output()
        .expect("it runs");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(126), "{err}");
    assert!(output.stdout.is_empty());
    assert!(err.contains("other sources") && err.contains("0123456789abcdef"), "{err}");
    assert!(err.contains("cargo build") && err.contains("-p isochrone-lab"), "{err}");
}

#[test]
fn it_has_a_manual_page_and_completions_of_its_own() {
    let of = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_isochrone-lab")).args(words).output();
        String::from_utf8_lossy(&output.expect("it runs").stdout).into_owned()
    };
    let manual = of(&["man"]);
    assert!(manual.contains(".TH") && manual.contains("isochrone-lab"), "{manual}");
    assert!(manual.contains("reproduce") && !manual.contains("tier-arm"), "{manual}");
    for shell in ["bash", "zsh", "fish"] {
        let script = of(&["completions", shell]);
        assert!(script.contains("isochrone-lab") && script.contains("astar"), "{shell}");
    }
}

#[test]
fn what_needs_an_atlas_has_the_command_measure_one() {
    let here = folder("lab-quick");
    let _machine = crate::support::machine();
    let output = isochrone(&here)
        .args(["reproduce", "latency-checker", "--json", "grids.json"])
        .env("XDG_CACHE_HOME", here.join("cache"))
        .output()
        .expect("it runs");
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{err}");
    assert!(err.contains("measuring a quick one") && !err.contains("region: pages"), "{err}");
    let text = std::fs::read_to_string(here.join("grids.json")).expect("it was written");
    let grids = json(&text);
    assert_eq!(grids["measured"]["reading"], "measured", "{out}");
}

#[test]
fn an_atlas_that_was_named_and_cannot_be_used_ends_every_command_before_any_work() {
    let here = folder("lab-wished");
    std::fs::write(here.join("no.atlas"), "words").expect("it is written");
    let benches = [
        "chase",
        "structures",
        "astar",
        "malloc",
        "cholesky",
        "cholesky --peers",
        "lu",
        "smi",
        "streamcluster",
        "jacobi",
        "inthist",
        "taskbench",
        "tier",
        "coll",
        "flags",
        "advise",
    ];
    let papers = ["latency-checker", "hidden-numa", "pspt", "numa-aware-runtime", "cla", "all"];
    let lines = benches.map(|name| format!("bench {name} --json=x")).into_iter();
    let lines = lines.chain(papers.map(|name| format!("reproduce {name}")));
    for line in lines.chain(["verify model --json=x".to_owned()]) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (output, out, err) = run(&here, &[&words[..], &["--atlas", "/nope"]].concat());
        let seen = (output.status.code(), out.as_str());
        assert_eq!(seen, (Some(1), ""), "{line}: {err}");
        assert!(err.contains("/nope: no atlas"), "{line}: {err}");
    }
    for file in ["no.atlas", "/dev/zero", "."] {
        let (output, out, err) = run(&here, &["bench", "flags", "--atlas", file]);
        assert_eq!((output.status.code(), out.as_str()), (Some(1), ""), "{file}: {err}");
        assert!(err.contains(file), "{err}");
    }
    let by_variable =
        isochrone(&here).args(["bench", "coll"]).env("ISOCHRONE_ATLAS", "/nope").output();
    let by_variable = by_variable.expect("it runs");
    let err = String::from_utf8_lossy(&by_variable.stderr);
    assert!(by_variable.status.code() == Some(1) && err.contains("/nope: no atlas"), "{err}");
    let left = std::fs::read_dir(&here).expect("a folder").count();
    assert_eq!(left, 1, "nothing is left but what lay there");
}

#[test]
fn what_an_atlas_lacks_of_a_paper_is_said() {
    let here = folder("lab-lacks");
    let _machine = crate::support::machine();
    let run = |words: &[&str]| {
        let output = isochrone(&here).args(words).output().expect("it runs");
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{err}");
        err
    };
    let places = ["--out", "block.atlas", "--html=block.html"];
    run(&[&["map", "--quick", "--only", "block"][..], &places].concat());
    let words = ["--atlas", "block.atlas", "--json", "grids.json"];
    let err = run(&[&["reproduce", "latency-checker"][..], &words].concat());
    assert!(err.contains("block.atlas has no region latency"), "{err}");
    assert!(!err.contains("has no block latency"), "{err}");
}
