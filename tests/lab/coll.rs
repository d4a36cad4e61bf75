//! Collectives by the real commands: an MPI program that is run in lines, the comparison with an MPI, lines
//! near and far, and the model against live calls. No time is judged.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{folder, isochrone, machine, map, mapped_machine, tool};

/// `libisochrone_mpi.so` of this build, which lies beside the command or beside the tests.
fn library() -> PathBuf {
    let here = Path::new(env!("CARGO_BIN_EXE_isochrone")).with_file_name("libisochrone_mpi.so");
    let test = std::env::current_exe().expect("a test is a program");
    let places = [here, test.with_file_name("libisochrone_mpi.so")];
    places.into_iter().find(|path| path.exists()).expect("it was built with this test")
}

/// Runs the command, which writes its figures to standard output.
fn figures(here: &Path, words: &[&str]) -> Value {
    let output = isochrone(here).args(words).output().expect("it runs");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{err}");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("only JSON on stdout: {e}\n{err}"))
}

/// Cores of this machine that the test may use.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

const PROGRAM: &str = r#"
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
  int rank, word = 0, sum = 0, wrong = 0;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int round = 0; round < 1300; round++) {
    word = rank == round % 2 ? round : -1;
    MPI_Bcast(&word, 1, MPI_INT, round % 2, MPI_COMM_WORLD);
    MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    wrong += word != round || sum != 2 * round;
    if (round == 0) usleep(200000);
  }
  if (rank == 0) printf("wrong: %d\n", wrong);
  MPI_Finalize();
  return wrong != 0;
}
"#;

#[test]
fn an_mpi_program_runs_in_lines() {
    for mpi in ["openmpi", "mpich"] {
        let Some(compiler) = tool(&format!("mpicc.{mpi}")) else { continue };
        let here = folder(&format!("coll-run-{mpi}"));
        std::fs::write(here.join("program.c"), PROGRAM).expect("a source");
        let built = Command::new(compiler)
            .args(["-O1", "-o", "program", "program.c"])
            .current_dir(&here)
            .output()
            .expect("a compiler");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let output = isochrone(&here)
            .args(["run", "--mpi", "--report", "--json", "job.json", "--preload"])
            .arg(library())
            .args(["--", &format!("mpirun.{mpi}"), "-n", "2", "./program"])
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
            .env("TMPDIR", &here)
            .output()
            .expect("it runs");
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{mpi}: {err}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "wrong: 0\n", "{mpi}");
        assert!(err.contains("in lines"), "{mpi}: {err}");
        let text = std::fs::read_to_string(here.join("job.json")).expect("it was written");
        let record: Value = serde_json::from_str(&text).expect("JSON");
        let ranks = record["ranks"].as_array().expect("a list");
        assert_eq!(ranks.len(), 2, "{record}");
        for rank in ranks {
            let lines = |name: &str| rank["calls"][name]["lines"].as_u64().unwrap_or(0);
            // The MPI does the first 1023 calls of a communicator.
            assert!(lines("bcast") == 788 && lines("allreduce") == 789, "{mpi}: {rank}");
        }
    }
}

#[test]
fn collectives_are_compared_cell_by_cell() {
    if cores() < 2 || tool("mpirun.openmpi").is_none() {
        return;
    }
    let here = folder("coll-bench");
    let library = library().display().to_string();
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
        assert!(["median", "lo", "hi"].iter().all(|of| cell["ratio"][of].is_number()), "{cell}");
        let inside = cell["inside_band"].as_f64();
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
    assert!(found["goals"].as_array().is_some_and(|goals| goals.len() == 6));
}

#[test]
fn lines_near_and_far_are_told_apart() {
    if cores() < 2 {
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
    if cores() < 2 {
        return;
    }
    let here = folder("coll-verify");
    let atlas = map().folder.join("isochrone.atlas");
    let _machine = mapped_machine();
    let output = isochrone(&here)
        .args([
            "verify",
            "model",
            "--windows",
            "1000",
            "--scale",
            "2",
            "--json",
            "model.json",
            "--atlas",
        ])
        .arg(&atlas)
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    if err.contains("moves these cores all the time") {
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{said}{err}");
    assert!(said.contains("the model is wrong"), "{said}");
    let text = std::fs::read_to_string(here.join("model.json")).expect("it was written");
    let found: Value = serde_json::from_str(&text).expect("JSON");
    let collectives = found["collectives"].as_array().expect("a list");
    assert_eq!(collectives.len(), 4);
    for one in collectives {
        let number = |name: &str| one[name].as_u64().expect("a number");
        assert!(number("below") + number("above") <= number("samples"), "{one}");
        assert!(one["calls"].as_array().is_some_and(|calls| !calls.is_empty()), "{one}");
    }
}
