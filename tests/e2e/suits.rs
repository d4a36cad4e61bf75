//! `isochrone machine --suits` and `isochrone pin --memory`: this machine's atlas, and one in which a second region has
//! been written that is farther and wider.

use std::path::{Path, PathBuf};

use isochrone_atlas_store::contents::{Bandwidth, Cell, RegionMap};
use isochrone_machine::{Region, RegionKind};
use isochrone_units::{CoreId, RegionId};

use crate::support::{folder, isochrone, json, map, run};

/// The map of this machine with a region 1 that is 170 ns away and moves 400 GB/s, beside a region 0 of 147 ns and 90
/// GB/s.
pub(crate) fn two_regions(here: &Path) -> PathBuf {
    let own = map().folder.join("isochrone.atlas");
    let mut contents = isochrone_atlas_store::load(&own).expect("the map of this machine");
    let cores: Vec<u16> = contents.machine.cores.iter().map(|core| core.id).collect();
    contents.machine.regions.truncate(1);
    contents.machine.regions[0].id = 0;
    let wide = Region { id: 1, kind: RegionKind::Hbm, ..Region::default() };
    contents.machine.regions.push(wide);
    let ns = |_: &u16| [147.0, 170.0].map(|ns| Some(Cell::single(ns)));
    contents.regions = vec![RegionMap::of_chase(
        "random",
        1 << 28,
        cores.iter().copied().map(CoreId),
        [0, 1].map(RegionId),
        cores.iter().flat_map(ns).collect(),
    )];
    let together =
        |(region, gb)| Bandwidth { cores: cores.clone(), region, gb_per_s: Cell::single(gb) };
    contents.bandwidth = [(0, 90.0), (1, 400.0)].map(together).to_vec();
    contents.quality.clear();
    let atlas = here.join("two.atlas");
    isochrone_atlas_store::save(&contents, &atlas).expect("it is saved");
    atlas
}

#[test]
fn the_near_region_is_for_latency_and_the_wide_one_from_the_crossing_on() {
    let here = folder("suits");
    two_regions(&here);
    let args = ["machine", "--suits", "--atlas", "two.atlas"];
    let (output, out, err) = run(&here, &args);
    assert!(output.status.success() && err.is_empty(), "{err}");
    for words in ["wait for one another: region 0\n", "region 1 from 239 lines on", "predicted"] {
        assert!(out.contains(words), "no {words:?} in\n{out}");
    }
    let (_, out, _) = run(&here, &[&args[..], &["--json"]].concat());
    let found = json(&out);
    let set = &found["sets"][0];
    assert_eq!((&set["latency_bound"], &set["bandwidth_bound"]), (&0.into(), &1.into()));
    let crossing = set["crossing_lines"]["value"].as_f64().expect("they cross");
    assert!((crossing - 90.0 * 170.0 / 64.0).abs() < 1e-3, "{crossing}");
    assert_eq!(set["with_turns"][1]["regions"], serde_json::json!([0, 1]));
    let (output, _, err) = run(&here, &[&args[..], &["--cores", "4097"]].concat());
    assert!(output.status.code() == Some(2) && err.contains("has no cores 4097"), "{err}");
}

#[test]
fn memory_is_printed_as_numactl_takes_it() {
    let here = folder("suits-pin");
    two_regions(&here);
    let (output, out, _) = run(&here, &["pin", "--memory", "--atlas", "two.atlas"]);
    assert!(output.status.success(), "{out}");
    let policies: Vec<&str> = out
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.rsplit(' ').next().expect("a word"))
        .collect();
    assert_eq!(policies, ["--preferred=0", "--interleave=0-1", "--preferred=1"], "{out}");
    assert!(out.contains("# from 478 lines on"), "{out}");
}

#[test]
fn a_described_machine_is_predicted_and_says_what_it_assumes() {
    let here = folder("suits-described");
    let (output, out, err) = run(&here, &["machine", "xeon-phi-7285-all2all", "--suits"]);
    assert!(output.status.success() && err.is_empty(), "{err}");
    assert!(out.contains("region 1 from 237 lines [183, 306] on"), "{out}");
    assert!(out.contains("assumed: region 1 bandwidth: 400 GB/s, 300 to 500"), "{out}");
    let (_, out, _) = run(&here, &["machine", "bullion-s-16s", "--suits", "--json=-"]);
    assert_eq!(json(&out)["sets"].as_array().map(Vec::len), Some(17));
    let (output, _, err) = run(&here, &["machine", "xeon-e5-2660-2s", "--suits"]);
    assert!(output.status.code() == Some(1) && err.contains("region 0 latency"), "{err}");
    for wrong in [
        &["machine", "--cores", "0"][..],
        &["machine", "--suits", "--list"],
        &["machine", "xeon-e5-2660-2s", "--suits", "--atlas", "two.atlas"],
        &["machine", "xeon-e5-2660-2s", "--suits", "--cores", "16"],
    ] {
        let (output, _, err) = run(&here, wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {err}");
    }
}

#[test]
fn a_described_machine_fits_a_terminal() {
    let here = folder("machine-width");
    for name in ["bullion-s-16s", "epyc-7702-2s-nps4", "xeon-phi-7285-all2all"] {
        let output = isochrone(&here)
            .args(["machine", name])
            .env("COLUMNS", "80")
            .output()
            .expect("it runs");
        let out = String::from_utf8_lossy(&output.stdout);
        assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
        assert!(!out.contains("cores \n"), "{out}");
    }
}

#[test]
fn where_there_is_one_region_there_is_nothing_to_choose() {
    let here = folder("suits-one");
    let (output, out, err) = run(&here, &["machine", "xeon-phi-5110p", "--suits"]);
    assert!(output.status.success() && err.is_empty(), "{err}");
    let words: Vec<&str> = out.split_whitespace().collect();
    assert!(words.join(" ").ends_with(": one region, there is nothing to choose"), "{out}");
    let own = map().figures["regions"].as_u64();
    if own != Some(1) {
        return;
    }
    let without = |words: &[&str]| {
        isochrone(&here).args(words).env("XDG_CACHE_HOME", &here).output().expect("it runs")
    };
    let output = without(&["machine", "--suits", "--json"]);
    let found = json(&String::from_utf8_lossy(&output.stdout));
    assert_eq!(found["nothing"], "one region, there is nothing to choose");
    let output = without(&["pin", "1", "--memory"]);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && err.contains("nothing to choose"), "{err}");
    assert!(String::from_utf8_lossy(&output.stdout).trim().ends_with("--localalloc"));
}
