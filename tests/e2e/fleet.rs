//! Atlases of many nodes: ranks of a node that find one another, and nodes that deviate.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use isochrone_atlas_store::contents::{Contents, Graded};
use isochrone_atlas_store::{Experiment, load, save};
use isochrone_units::Grade;
use isochrone_view::fixtures::genoa;

use crate::support::{folder, isochrone, json, machine, run};

/// The least that measures something.
const LITTLE: [&str; 8] =
    ["map", "--quick", "--only", "region", "--buffer", "4M", "--memory=4M", "--fleet"];

/// A fleet of equal nodes but for what is done to the second.
pub(crate) fn fleet(name: &str, nodes: usize, spoil: impl Fn(&mut Contents)) -> PathBuf {
    let here = folder(name);
    for at in 0..nodes {
        let mut contents = genoa();
        // Nodes are equal, but for a percent or two.
        let factor = 1.0 + 0.004 * f64::from(u32::try_from(at % 5).unwrap_or(0));
        scaled(&mut contents, factor);
        if at == 1 {
            spoil(&mut contents);
        }
        save(&contents, &here.join(format!("n{at:02}.atlas"))).expect("it is saved");
    }
    here
}

pub(crate) fn scaled(contents: &mut Contents, factor: f64) {
    let matrices = contents.transfers.iter_mut().map(|map| &mut map.latency_ns);
    let matrices = matrices.chain(contents.regions.iter_mut().map(|map| &mut map.latency_ns));
    for cell in matrices.flat_map(|matrix| &mut matrix.cells).flatten() {
        (cell.median, cell.lo, cell.hi) =
            (factor * cell.median, factor * cell.lo, factor * cell.hi);
    }
}

#[test]
fn a_node_that_deviates_is_named_and_a_check_ends_with_4() {
    let here = fleet("fleet-slow", 24, |contents| scaled(contents, 2.0));
    fs::write(here.join("n90.atlas"), "no atlas").expect("it is written");
    let (output, out, err) = run(&here, &["fleet", "outliers", ".", "--check"]);
    assert_eq!(output.status.code(), Some(4), "{out}{err}");
    assert!(out.contains("n01") && out.contains("worse") && out.contains("n90"), "{out}");
    assert!(!out.contains("n02:"), "{out}");
    let (output, out, _) = run(&here, &["fleet", "outliers", ".", "--check", "--node", "n02"]);
    assert_eq!(output.status.code(), Some(0), "{out}");
    let (output, ..) = run(&here, &["fleet", "outliers", "."]);
    assert_eq!(output.status.code(), Some(0), "without --check a finding is none of the shell's");
    let (_, out, err) = run(&here, &["fleet", "outliers", ".", "--json"]);
    assert!(err.is_empty(), "{err}");
    let found = json(&out);
    assert_eq!(found["format"], "isochrone-fleet");
    let findings = found["findings"].as_array().expect("a list");
    assert!(findings.iter().all(|it| it["node"] == "n01") && !findings.is_empty(), "{findings:?}");
    assert_eq!(found["skipped"][0]["node"], "n90");
    let (output, ..) = run(&here, &["fleet", "show", ".", "--html=fleet.html"]);
    assert!(output.status.success());
    let page = fs::read_to_string(here.join("fleet.html")).expect("it was written");
    assert!(page.contains("n01") && page.contains("Groups of equal nodes"));
}

#[test]
fn a_node_in_another_mode_of_its_memory_deviates_in_its_settings() {
    let here = fleet("fleet-nps", 6, |contents| {
        let mut second = contents.machine.regions[0].clone();
        second.id = 1;
        contents.machine.regions.push(second);
        contents.fingerprint.words.push("regions: two".into());
        contents.fingerprint.hash = 2;
    });
    let (output, out, err) = run(&here, &["fleet", "outliers", ".", "--check"]);
    assert_eq!(output.status.code(), Some(4), "{out}{err}");
    assert!(out.contains("NPS") && out.contains("n01"), "{out}");
}

#[test]
fn nodes_are_compared_cell_by_cell() {
    let here = fleet("fleet-diff", 3, |contents| scaled(contents, 3.0));
    let (output, out, err) = run(&here, &["fleet", "diff", ".", "--node", "n01", "--check"]);
    assert_eq!(output.status.code(), Some(4), "{out}{err}");
    assert!(out.contains("n01 against n00") && out.contains("became"), "{out}");
    let (_, out, err) = run(&here, &["fleet", "diff", ".", "--against", "n02", "--json"]);
    assert!(err.is_empty(), "{err}");
    let found = json(&out);
    assert_eq!(found["format"], "isochrone-fleet-diff");
    assert_eq!(found["nodes"].as_array().map(Vec::len), Some(2), "{found}");
}

#[test]
fn what_cannot_be_is_wrong_usage_and_an_empty_folder_is_said() {
    let here = fleet("fleet-wrong", 3, |_| ());
    fs::create_dir(here.join("empty")).expect("a folder");
    for (line, code, word) in [
        ("fleet outliers . --node n77", 2, "n77"),
        ("fleet outliers . --least 5000", 2, "percentage"),
        ("fleet outliers . --level 1", 2, "chance"),
        ("fleet show empty", 1, "map --fleet"),
        ("fleet show no/such", 1, "no/such"),
        ("fleet", 2, "outliers"),
        ("map --fleet x --out y", 2, "--out"),
        ("map --hash-names", 2, "--fleet"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let (output, out, err) = run(&here, &words);
        assert_eq!(output.status.code(), Some(code), "{line}: {out}{err}");
        assert!(err.contains(word), "{line}: {err}");
    }
}

/// A rank of a job that a launcher has started with others on this node.
fn rank(here: &Path, job: &str) -> Child {
    isochrone(here)
        .args(LITTLE)
        .arg("atlases")
        .env("PMIX_NAMESPACE", job)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts")
}

fn ended(rank: Child) -> (Option<i32>, String) {
    let output = rank.wait_with_output().expect("it ends");
    let words = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&words).into_owned())
}

/// The files of the fleet that end like this.
fn files(here: &Path, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(here.join("atlases")).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| path.to_string_lossy().ends_with(end)).collect()
}

#[test]
fn of_the_ranks_of_a_node_one_measures_and_the_others_sleep() {
    let here = folder("fleet-ranks");
    let _machine = machine();
    let ranks: Vec<Child> = (0..3).map(|_| rank(&here, "7")).collect();
    let said: Vec<(Option<i32>, String)> = ranks.into_iter().map(ended).collect();
    assert!(said.iter().all(|(code, _)| *code == Some(0)), "{said:?}");
    let slept = said.iter().filter(|(_, words)| words.contains("by another rank")).count();
    assert_eq!(slept, 2, "{said:?}");
    let atlases = files(&here, ".atlas");
    assert_eq!(atlases.len(), 1, "{atlases:?}");
    let first = load(&atlases[0]).expect("an atlas").provenance.seed;
    // The next job measures anew, and its map takes the place of the first.
    let (code, words) = ended(rank(&here, "8"));
    assert_eq!(code, Some(0), "{words}");
    assert!(!words.contains("another rank"), "{words}");
    assert_ne!(load(&atlases[0]).expect("an atlas").provenance.seed, first);
    assert_eq!(fs::read_dir(here.join("atlases")).expect("a folder").count(), 2, "atlas and state");
    assert_eq!(fs::read_dir(&here).expect("a folder").count(), 1, "no report is left");
}

#[test]
fn where_a_rank_dies_another_measures_and_that_is_seen() {
    let here = folder("fleet-dies");
    let _machine = machine();
    let mut first = rank(&here, "9");
    let deadline = Instant::now() + Duration::from_secs(60);
    while files(&here, ".state").is_empty() {
        assert!(Instant::now() < deadline, "it never began");
        std::thread::sleep(Duration::from_millis(5));
    }
    first.kill().expect("it is there");
    let killed = first.wait_with_output().expect("it ends").status;
    assert_eq!(killed.signal(), Some(9), "it was killed while it measured");
    let (_, out, err) = run(&here, &["fleet", "show", "atlases"]);
    assert!(format!("{out}{err}").contains("began"), "{out}{err}");
    let (code, words) = ended(rank(&here, "9"));
    assert_eq!(code, Some(0), "{words}");
    assert!(words.contains("once more"), "{words}");
    let (_, out, _) = run(&here, &["fleet", "show", "atlases"]);
    assert!(out.contains("1 node in 1 group") && !out.contains("began"), "{out}");
}

#[test]
fn nodes_of_one_machine_measure_one_after_another() {
    let here = folder("fleet-neighbours");
    fs::create_dir(here.join("atlases")).expect("a folder");
    // What another container has while it measures.
    let boot = isochrone_host::node_identity(&isochrone_host::SysRoot::live()).boot;
    let held = File::create(here.join(format!("atlases/{boot:016x}.turn"))).expect("a file");
    held.lock().expect("nobody has it");
    let _machine = machine();
    let mut waits = rank(&here, "11");
    let said = waits.stderr.take().map(BufReader::new).expect("a pipe").lines();
    let mut said = said.map_while(Result::ok);
    let told = said.find(|line| line.contains("another node of this machine"));
    assert!(told.is_some(), "it measured beside another one");
    assert!(files(&here, ".atlas").is_empty() && !files(&here, ".state").is_empty());
    drop(held);
    let rest: Vec<String> = said.collect();
    let (code, out) = ended(waits);
    assert_eq!(code, Some(0), "{rest:?}{out}");
    assert_eq!(files(&here, ".atlas").len(), 1, "{rest:?}{out}");
    assert_eq!(fs::read_dir(here.join("atlases")).expect("a folder").count(), 2, "and the state");
}

/// What four containers left that measured at once beside other work, in which no experiment came to a number.
#[test]
fn maps_of_nodes_that_measured_one_another_say_so() {
    let here = folder("fleet-at-once");
    for at in 0..4_u64 {
        let mut contents = genoa();
        (contents.transfers, contents.regions, contents.bandwidth) = Default::default();
        for quality in contents.levels.iter_mut().flat_map(|level| &mut level.quality) {
            quality.mean_ns = None;
        }
        let over = "since its share of the time was over";
        contents.provenance.started_unix_s = 1_000 + at % 2;
        contents.provenance.seconds = 9.4;
        contents.provenance.missing = vec![
            format!("block latency (llc): 2 of 2 cores were neither scored nor verified, {over}"),
            format!("line transfers, cas: 2 of 2 pairs were left out, {over}"),
            format!("region latency: not measured, {over}"),
            format!("bandwidth: 3 of 3 groups were left out, {over}"),
        ];
        let reason =
            "others took 97.1 % of the processors' time, the host 0 %; and more".to_owned();
        contents.quality.insert(Experiment::Block, Graded { grade: Grade::Disturbed, reason });
        save(&contents, &here.join(format!("n{at}.atlas"))).expect("it is saved");
        let state = format!("isochrone-fleet done 0 a5f8 {at} 1\n");
        fs::write(here.join(format!("n{at}.state")), state).expect("it is written");
    }
    for words in [&["show", "."][..], &["outliers", ".", "--check"]] {
        let (output, out, err) = run(&here, &[&["fleet"], words].concat());
        assert_eq!(output.status.code(), Some(0), "{out}{err}");
        let flat = out.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "4 nodes in 1 group: nothing could be compared",
            "block latency, line transfers, region latency, bandwidth: its share of the time was over",
            "Meanwhile others took 97.1 %",
            "n0, n1, n2, n3 are of one machine and were measured at the same time: map one after",
        ] {
            assert!(flat.contains(words), "{words}: {out}");
        }
    }
}

#[test]
fn hosts_can_have_names_that_say_nothing() {
    let here = folder("fleet-names");
    let _machine = machine();
    let words = [&LITTLE[..], &["atlases", "--hash-names"]].concat();
    let (output, out, err) = run(&here, &words);
    assert!(output.status.success(), "{out}{err}");
    let atlases = files(&here, ".atlas");
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("Linux has it");
    let name = atlases[0].file_name().expect("a name").to_string_lossy().into_owned();
    assert!(name.starts_with("node-") && !name.contains(host.trim()), "{name}");
    let bytes = fs::read(&atlases[0]).expect("an atlas");
    let text = format!("{:?}", load(&atlases[0]).expect("an atlas"));
    assert!(host.trim().len() < 3 || !text.contains(host.trim()), "the host's name is in it");
    assert!(!bytes.is_empty());
}
