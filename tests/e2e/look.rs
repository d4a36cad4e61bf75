//! Everything that looks at a map: its figures, show, export, diff, query.

use crate::support::{json, machine, map, run, tool};

/// The names that the contract fixes.
#[test]
fn the_figures_have_their_names() {
    let figures = &map().figures;
    for name in [
        "cores",
        "regions",
        "seconds",
        "atlas_bytes",
        "atlas_bytes_per_page",
        "query_ns_p50",
        "block",
        "line_transfer",
        "drift_events",
        "placement",
        "reading",
    ] {
        assert!(figures.get(name).is_some(), "{name} is missing");
    }
    for level in ["llc", "dram"] {
        for name in [
            "r2_heldout",
            "lines_per_page",
            "us_per_page",
            "key_accuracy",
            "near_regret",
            "spread_p90_p10",
        ] {
            assert!(figures["block"][level].get(name).is_some(), "block.{level}.{name} is missing");
        }
    }
    assert_eq!(figures["reading"], "measured");
    assert_eq!(figures["complete"], true);
    let per_page = figures["atlas_bytes_per_page"].as_f64();
    // A list of the codes that occur, some bytes for all pages together, shows in so small a map.
    assert!(per_page.is_none_or(|b| b < 2.01), "{per_page:?} bytes a page");
}

#[test]
fn the_summary_says_what_was_found_in_words() {
    let summary = &map().summary;
    assert!(summary.contains("measured"), "{summary}");
    assert!(summary.contains("core 0"), "{summary}");
    assert!(!summary.contains("NaN"), "{summary}");
    assert!(!summary.contains('\u{1b}'), "no colours were asked for");
}

#[test]
fn show_repeats_the_summary_and_answers_a_query() {
    let map = map();
    let (output, out, err) = run(&map.folder, &["show", "isochrone.atlas"]);
    assert!(output.status.success(), "{err}");
    assert_eq!(out.trim(), map.summary.split("\natlas   ").next().unwrap_or("").trim());
    let (_, out, _) = run(&map.folder, &["export", "--csv", "-"]);
    assert!(out.lines().count() > 10, "{out}");
    let (output, _, err) = run(&map.folder, &["show", "--query", "0:zzz"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err.contains("hexadecimal"), "{err}");
}

#[test]
fn an_atlas_differs_in_nothing_from_itself() {
    let map = map();
    let args = ["diff", "isochrone.atlas", "isochrone.atlas", "--check"];
    let (output, out, err) = run(&map.folder, &args);
    assert!(output.status.success(), "{out}{err}");
    assert!(out.contains("nothing differs"), "{out}");
}

#[test]
fn hwloc_reads_the_export() {
    let map = map();
    let (output, _, err) = run(&map.folder, &["export", "--hwloc-xml", "topo.xml"]);
    assert!(output.status.success(), "{err}");
    let Some(lstopo) = tool("lstopo-no-graphics") else { return };
    let read = std::process::Command::new(lstopo)
        .args(["-i", "topo.xml", "--of", "console", "--distances"])
        .current_dir(&map.folder)
        .output()
        .expect("lstopo starts");
    let text = String::from_utf8_lossy(&read.stdout);
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    // Where the machine was too busy for a round between every pair in their time, there are no distances to print.
    let transfers = &map.figures["line_transfer"];
    let cores = map.figures["cores"].as_u64().expect("the number of cores");
    let has_distances =
        transfers["pairs"].as_u64().is_some_and(|pairs| pairs == cores * (cores - 1));
    assert!(!has_distances || text.contains("PU") || text.contains("Core"), "{text}");
}

#[test]
fn a_topology_of_hwloc_is_read_as_a_machine() {
    let map = map();
    let (output, _, err) = run(&map.folder, &["export", "--hwloc-xml", "ours.xml"]);
    assert!(output.status.success(), "{err}");
    let (_, this, _) = run(&map.folder, &["machine", "--json"]);
    let same = |name: &str| {
        let (output, out, err) = run(&map.folder, &["machine", "--hwloc", name, "--json"]);
        assert!(output.status.success(), "{err}");
        let (read, this) = (json(&out), json(&this));
        for part in ["id", "region", "package", "smt_siblings"] {
            let of = |machine: &serde_json::Value| -> Vec<serde_json::Value> {
                machine["cores"]
                    .as_array()
                    .expect("cores")
                    .iter()
                    .map(|c| c[part].clone())
                    .collect()
            };
            assert_eq!(of(&read), of(&this), "{part} of {name}");
        }
        assert_eq!(read["caches"], this["caches"], "caches of {name}");
    };
    same("ours.xml");
    let (output, _, err) = run(&map.folder, &["machine", "--hwloc", "isochrone.atlas"]);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("isochrone.atlas"), "{err}");
    if let Some(lstopo) = tool("lstopo-no-graphics") {
        let mut lstopo = std::process::Command::new(lstopo);
        lstopo.args(["-f", "theirs.xml"]).current_dir(&map.folder);
        assert!(lstopo.status().expect("lstopo starts").success());
        same("theirs.xml");
    }
}

#[test]
fn machines_of_the_papers_print_with_their_caveats() {
    let here = &map().folder;
    let (_, list, _) = run(here, &["machine", "--list"]);
    for name in ["xeon-phi-5110p", "xeon-e5-2660-2s", "bullion-s-16s", "epyc-7702-2s-nps4"] {
        assert!(list.contains(name), "{list}");
    }
    let (output, out, _) = run(here, &["machine", "xeon-phi-5110p"]);
    assert!(output.status.success());
    assert!(out.contains("caveat"), "{out}");
    let (_, out, _) = run(here, &["machine"]);
    assert!(out.contains("\ncores allowed: ") && !out.contains('{'), "{out}");
    let (output, out, _) = run(here, &["machine", "--json"]);
    assert!(output.status.success());
    let value = json(&out);
    assert!(value["cores"].as_array().is_some_and(|c| !c.is_empty()));
}

#[test]
fn the_posters_grids_stand_beside_this_machine() {
    let map = map();
    let (output, out, err) =
        run(&map.folder, &["reproduce", "latency-checker", "--json", "r.json"]);
    assert!(output.status.success(), "{err}");
    for word in ["simulated", "measured", "published"] {
        assert!(out.to_lowercase().contains(word), "{word} is missing:\n{out}");
    }
    let text = std::fs::read_to_string(map.folder.join("r.json")).expect("rows are written");
    let value = json(&text);
    assert!(value["rows"].as_array().is_some_and(|r| r.len() > 100));
}

#[test]
fn help_man_and_completions_come_from_one_definition() {
    let here = &map().folder;
    let (_, help, _) = run(here, &["map", "--help"]);
    assert!(help.contains("Examples:"), "{help}");
    let (_, man, _) = run(here, &["man"]);
    assert!(man.contains(".TH isochrone"), "{man}");
    let (_, bash, _) = run(here, &["completions", "bash"]);
    assert!(bash.contains("_isochrone"), "{bash}");
    let (output, _, _) = run(here, &["map", "--nonsense"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn the_forced_eviction_path_and_small_pages_work() {
    let folder = crate::support::folder("evict");
    let _machine = machine();
    let args = [
        "map",
        "--quick",
        "--evict",
        "--small-pages",
        "--only",
        "block",
        "--memory",
        "16M",
        "--json",
        "-",
    ];
    let (output, out, err) = run(&folder, &args);
    assert!(output.status.success(), "{err}");
    let figures = json(&out);
    assert_eq!(figures["block"]["llc"]["method"], "eviction");
    assert!(figures["line_transfer"].is_null());
}
