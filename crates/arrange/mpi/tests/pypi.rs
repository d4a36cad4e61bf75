//! Programs of C and Python under the MPIs of PyPI: MPICH 5 by its own ABI and by the standard one, Open MPI 5.
//! `cargo xtask mpis` brings these and runs this; without it a line says that nothing was run.

#![allow(clippy::tests_outside_test_module, reason = "the whole file is tests")]

mod support;

use isochrone_mpi::{CONFIG_VARIABLE, Config};
use std::path::Path;
use std::process::Command;
use support::{Program, at_once, finished, left, library, of_pypi};

#[test]
fn programs_of_c_are_in_lines() {
    for source in ["all.c", "threads.c", "comms.c", "large.c"] {
        for program in Program::of_pypi(source) {
            for report in program.done(2, at_once()) {
                let lines = report.calls.get("allreduce").map_or(0, |calls| calls.lines);
                assert!(report.communicators > 0 && lines > 10, "{}: {report:?}", program.mpi);
            }
        }
    }
}

#[test]
fn programs_of_python_are_in_lines() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/python.py");
    for (mpi, _, programs) in of_pypi().into_iter().filter(|(mpi, ..)| *mpi != "standard ABI") {
        let folder = tempfile::tempdir().expect("a folder");
        let (reports, told) = (folder.path().join("reports"), folder.path().join("told"));
        std::fs::create_dir(&reports).expect("a folder");
        let config = Config { reports: Some(reports.clone()), ..at_once() };
        std::fs::write(&told, serde_json::to_string(&config).expect("plain")).expect("room");
        let mut job = Command::new("timeout");
        job.args(["-k", "10", "180"]).arg(programs.join("mpirun")).args(["-n", "2"]);
        job.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        job.arg(programs.join("python")).arg(&script);
        let output = finished(job.env("LD_PRELOAD", library()).env(CONFIG_VARIABLE, told));
        let said = String::from_utf8_lossy(&output.stdout);
        // Every thread of it may call the MPI.
        assert_eq!(said.matches("done True").count(), 2, "{mpi}: {output:?}");
        let reports = left(&reports);
        assert_eq!(reports.len(), 2, "{mpi}");
        for report in reports {
            for name in ["allreduce", "bcast", "barrier", "allgather"] {
                let lines = report.calls.get(name).map_or(0, |calls| calls.lines);
                assert!(lines > 100, "{mpi} {name}: {report:?}");
            }
        }
    }
}
