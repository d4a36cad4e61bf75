//! Collectives by the real commands: the comparison with an MPI, lines near and far, and the model against live calls.
//! No time is judged.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{
    folder, isochrone, json, machine, map, mapped_machine, mpi_library, run, skip, tool,
};

/// Runs the command, which writes its figures to standard output.
fn figures(here: &Path, words: &[&str]) -> Value {
    let output = isochrone(here).args(words).output().expect("it runs");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{err}");
    json(&String::from_utf8_lossy(&output.stdout))
}

/// How often the model is held against live calls, where the host moves the cores all the time.
const ATTEMPTS: usize = 3;

/// Whether two cores may be used. If not, the test is skipped.
fn two_cores() -> bool {
    let several = std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1);
    if !several {
        skip("there is one core, and lines go between two");
    }
    several
}

/// Whether some rank of a benchmark goes on that was told to write below a folder.
fn is_a_rank(below: &str) -> bool {
    let processes = fs::read_dir("/proc").expect("Linux has it").flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.into_iter().any(|line| {
        let has = |what: &str| {
            line.split(|byte| *byte == 0).any(|word| word.starts_with(what.as_bytes()))
        };
        // A launcher has both words, too.
        line.starts_with(env!("CARGO_BIN_EXE_isochrone-lab").as_bytes())
            && has("coll-rank")
            && has(below)
    })
}

#[test]
fn a_signal_leaves_no_rank_and_no_file_of_the_mpi() {
    /// Far more than it takes on any machine: this finds hangs, and measures nothing.
    const HANGS: Duration = Duration::from_secs(120);
    if !two_cores() || tool("mpirun.openmpi").is_none() {
        return;
    }
    let (here, library) = (folder("coll-signal"), mpi_library().display().to_string());
    let files = here.join("files");
    fs::create_dir(&files).expect("a folder");
    let _machine = machine();
    let words = ["bench", "coll", "--only", "openmpi", "--preload", &library];
    let mut child = isochrone(&here)
        .args(words)
        .env("TMPDIR", &files)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let begin = Instant::now();
    let own = files.display().to_string();
    // They are told to write there, once there is an atlas.
    while !is_a_rank(&own) && child.try_wait().expect("it can be asked").is_none() {
        assert!(begin.elapsed() < HANGS, "no rank is started");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(500));
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, Signal::TERM).expect("the process is there");
    assert_eq!(child.wait().expect("it ends").code(), Some(3));
    assert!(!is_a_rank(&own), "a rank goes on");
    let left: Vec<_> = fs::read_dir(&files).expect("a folder").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn collectives_are_compared_cell_by_cell() {
    if !two_cores() || tool("mpirun.openmpi").is_none() {
        return;
    }
    let here = folder("coll-bench");
    let library = mpi_library().display().to_string();
    let _machine = machine();
    let found = figures(
        &here,
        &[
            "bench",
            "coll",
            "--only",
            "openmpi",
            "--jobs",
            "1",
            "--blocks",
            "2",
            "--seed",
            "5",
            "--json",
            "-",
            "--preload",
            &library,
        ],
    );
    assert_eq!((&found["bench"], &found["ranks"]), (&"coll".into(), &2.into()));
    let cells = found["cells"].as_array().expect("a list");
    for op in ["bcast", "barrier", "reduce", "allreduce", "scatter", "gather"] {
        assert!(cells.iter().any(|cell| cell["op"] == op), "{op} is missing");
    }
    for cell in cells {
        assert!(cell["ours_ns"].as_f64().is_some_and(|ns| ns > 0.0), "{cell}");
        assert!(cell["peer_ns"].as_f64().is_some_and(|ns| ns > 0.0), "{cell}");
        let inside = cell["inside_band"].as_f64();
        assert!(["median", "lo", "hi"].iter().all(|of| cell["ratio"][of].is_number()), "{cell}");
        assert_eq!(cell["ours_ns"], cell["peers"]["openmpi"]["ours_ns"], "of the same job");
        if cell["mode"] == "isolated" {
            // No share is judged, and there is none where no call began in time or a core was always moved.
            let held = cell["held"]["samples"].as_u64().unwrap_or(0);
            assert_eq!(held > 0, inside.is_some(), "{cell}");
            assert!(inside.is_none_or(|share| (0.0..=1.0).contains(&share)), "{cell}");
            let end = |name: &str| cell[name].as_f64().unwrap_or(0.0);
            assert!(
                held == 0 || 0.0 < end("t_min_ns") && end("t_min_ns") <= end("t_max_ns"),
                "{cell}"
            );
        } else {
            assert!(inside.is_none(), "{cell}");
        }
    }
    let goals = found["goals"].as_array().expect("a list");
    assert_eq!(goals.len(), 6);
    assert!(goals.iter().all(|goal| goal["met"].is_null()), "of two blocks: {goals:?}");
    assert!(found["late_ns"].as_f64().is_some_and(|ns| ns > 0.0), "measured by the ranks");
}

#[test]
fn more_ranks_than_cores_are_refused_before_a_job_is_started() {
    let here = folder("coll-ranks");
    let library = mpi_library().display().to_string();
    let words = ["bench", "coll", "--ranks", "1000", "--cores", "0", "--preload", &library];
    let output = isochrone(&here).args(words).output().expect("it runs");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && err.contains("1000 ranks need 1000 cores"), "{err}");
}

#[test]
fn an_mpi_that_nobody_knows_is_wrong_usage_and_the_known_ones_are_named() {
    let here = folder("coll-only");
    for only in ["foo", "", "openmpi,foo"] {
        let words = ["bench", "coll", "--peer", "own=a.so=/bin/false", "--only", only];
        let (output, out, err) = run(&here, &words);
        assert_eq!((output.status.code(), out.as_str()), (Some(2), ""), "{err}");
        assert!(err.contains("there are openmpi, openmpi-sm, mpich, own"), "{err}");
    }
}

#[test]
fn why_no_job_succeeded_is_said() {
    if !two_cores() {
        return;
    }
    let (here, library) = (folder("coll-fails"), mpi_library().display().to_string());
    let bench = |words: &[&str]| {
        let all = ["bench", "coll", "--jobs", "1", "--blocks", "2", "--preload", &library];
        let (output, out, err) = run(&here, &[&all[..], words].concat());
        assert_eq!((output.status.code(), out.as_str()), (Some(1), ""), "{err}");
        err.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let silent = "--peer=own=a.so=/bin/false";
    let err = bench(&[silent, "--only", "own"]);
    assert!(err.contains("`/bin/false -n 2 ...`: nothing was said"), "{err}");
    // On standard output, as some launchers do.
    let err = bench(&[silent, "--peer=two=a.so=/bin/ls --no-such-option", "--only", "own,two"]);
    assert!(err.contains("no job of any MPI succeeded: own: a job of own failed"), "{err}");
    assert!(err.contains("two: a job of two failed") && err.contains("no-such-option"), "{err}");
    // It ends well, and starts nothing.
    let err = bench(&["--peer=echo=a.so=/bin/echo hello", "--only", "echo"]);
    assert!(err.contains("a job of echo failed") && err.contains("hello -n 2 "), "{err}");
    let err = bench(&["--peer=none=a.so=/no/such/mpirun", "--only", "none"]);
    assert!(err.contains("none: /no/such/mpirun cannot be started"), "{err}");
}

#[test]
fn a_job_whose_time_is_over_has_one_cell_of_all_arms() {
    if !two_cores() || tool("mpirun.openmpi").is_none() {
        return;
    }
    let here = folder("coll-short");
    let _machine = machine();
    let output = Command::new("mpirun.openmpi")
        .args(["--bind-to", "none", "-n", "2", env!("CARGO_BIN_EXE_isochrone-lab"), "coll-rank"])
        .args(["--library", "libmpi.so.40", "--cores", "0,1", "--seed", "5", "--blocks", "9"])
        .args(["--seconds", "0", "--first", "0", "--out", "job.json"])
        .current_dir(&here)
        .env("LD_PRELOAD", mpi_library())
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(here.join("job.json")).expect("it was written");
    let job: Value = serde_json::from_str(&text).expect("JSON");
    let cells = job["cells"].as_array().expect("a list").iter();
    let cells: Vec<&Value> = cells
        .filter(|cell| cell["block_ns"].as_object().is_some_and(|arms| !arms.is_empty()))
        .collect();
    assert_eq!(cells.len(), 1, "{text}");
    assert_eq!(cells[0]["cell"]["op"], "barrier");
    for arm in ["ours", "control", "peer"] {
        assert!(cells[0]["block_ns"][arm].as_array().is_some_and(|blocks| blocks.len() == 1));
    }
}

#[test]
fn lines_near_and_far_are_told_apart() {
    if !two_cores() {
        return;
    }
    let here = folder("coll-flags");
    let _machine = machine();
    let words =
        ["bench", "flags", "--blocks", "2", "--windows", "50", "--seed", "5", "--json", "-"];
    let found = figures(&here, &words);
    let trip = |name: &str| found["round_trip"][name].as_f64().expect("a number");
    assert!(trip("candidates") >= 512.0);
    assert!(0.0 < trip("best_ns") && trip("best_ns") <= trip("median_ns"));
    assert!(trip("median_ns") <= trip("worst_ns"));
    let collectives = found["collectives"].as_array().expect("a list");
    let names: Vec<&str> = collectives.iter().filter_map(|c| c["collective"].as_str()).collect();
    assert_eq!(names, ["bcast", "barrier"]);
    for one in collectives {
        assert!(
            one["gain"]["median"].is_number() && one["aa_control"]["median"].is_number(),
            "{one}"
        );
        assert!(one["blocks_ns"].as_array().is_some_and(|arms| arms.len() == 5), "{one}");
    }
    let locked = found["locked"].as_array().expect("a list");
    assert_eq!(locked.len(), 3);
    for one in locked {
        assert!(
            one["stores_ns"].is_number() && one["locked_over_stores"]["median"].is_number(),
            "{one}"
        );
    }
}

#[test]
fn a_model_with_doubled_costs_is_found_wrong() {
    if !two_cores() {
        return;
    }
    let here = folder("coll-verify");
    let atlas = map().folder.join("isochrone.atlas");
    let _machine = mapped_machine();
    let words = ["verify", "model", "--windows", "1000", "--scale", "2", "--json", "model.json"];
    let mut attempts = (0..ATTEMPTS).map(|_| {
        let mut command = isochrone(&here);
        let output = command.args(words).arg("--atlas").arg(&atlas).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), said, String::from_utf8_lossy(&output.stderr).into_owned())
    });
    let Some((code, said, err)) =
        attempts.find(|(_, _, err)| !err.contains("moves these cores all the time"))
    else {
        return skip("the host moves these cores all the time");
    };
    assert_eq!(code, Some(4), "{said}{err}");
    assert!(said.contains("the model is wrong"), "{said}");
    let text = std::fs::read_to_string(here.join("model.json")).expect("it was written");
    let found = json(&text);
    let collectives = found["collectives"].as_array().expect("a list");
    assert_eq!(collectives.len(), 4);
    for one in collectives {
        let number = |name: &str| one[name].as_u64().expect("a number");
        assert!(number("below") + number("above") <= number("samples"), "{one}");
        assert!(one["calls"].as_array().is_some_and(|calls| !calls.is_empty()), "{one}");
    }
}
