//! Programs of C and Fortran, built with the MPIs that are installed and run unmodified under the
//! library: every byte is compared by the programs themselves, and what was done in lines by the reports.

#![allow(clippy::print_stderr, reason = "a test says why it was skipped")]
#![allow(clippy::tests_outside_test_module, reason = "the whole file is tests")]

use isochrone_mpi::{CONFIG_VARIABLE, Config, Counts, Report};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// The MPIs of Debian, which lie beside each other by these suffixes.
const MPIS: [&str; 2] = ["openmpi", "mpich"];

/// Whether `program` can be started at all. With `CI=true` what is missing is a failure.
fn there(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        assert!(std::env::var_os("CI").is_none(), "{program} is not installed");
        eprintln!(
            "skipped: {program} is not installed (openmpi-bin libopenmpi-dev mpich libmpich-dev)"
        );
    }
    found
}

/// The library that was built with this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test is a program");
    let path = test.with_file_name("libisochrone_mpi.so");
    assert!(path.exists(), "{} was not built", path.display());
    path
}

/// One program, built with one MPI.
struct Program {
    mpi: &'static str,
    folder: TempDir,
    path: PathBuf,
}

impl Program {
    /// Builds `source` with each MPI that is installed.
    fn each(source: &str) -> Vec<Self> {
        let compiler = if Path::new(source).extension().is_some_and(|e| e == "f90") {
            "mpif90"
        } else {
            "mpicc"
        };
        let built = |mpi: &'static str| Self::build(mpi, &format!("{compiler}.{mpi}"), source);
        MPIS.into_iter().filter_map(built).collect()
    }

    fn build(mpi: &'static str, compiler: &str, source: &str) -> Option<Self> {
        if !there(compiler) || !there(&format!("mpirun.{mpi}")) {
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("program");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
        let built = Command::new(compiler)
            .arg("-O1")
            .arg("-o")
            .arg(&path)
            .arg(&source)
            .current_dir(folder.path())
            .output()
            .expect("it was there");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Some(Self { mpi, folder, path })
    }

    /// More ranks than cores, for an MPI that bears it: MPICH's ranks never give a core away.
    fn crowds<T>(&self, mpich: &'static [T], openmpi: &'static [T]) -> &'static [T] {
        if self.mpi == "mpich" { mpich } else { openmpi }
    }

    /// Runs it under the library.
    fn run(&self, ranks: u32, config: Config, arguments: &[&str]) -> Output {
        let reports = self.folder.path().join("reports");
        let _older = std::fs::remove_dir_all(&reports);
        std::fs::create_dir(&reports).expect("a folder");
        let config = Config { reports: Some(reports), ..config };
        let path = self.folder.path().join("config");
        std::fs::write(&path, serde_json::to_string(&config).expect("plain")).expect("room");
        let mut command = Command::new("timeout");
        command.args(["60", &format!("mpirun.{}", self.mpi)]);
        if self.mpi == "openmpi" {
            command.args(["--oversubscribe", "--mca", "orte_enable_recovery", "1"]);
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        }
        command
            .args(["-n", &ranks.to_string()])
            .arg(&self.path)
            .args(arguments)
            .env("LD_PRELOAD", library())
            .env(CONFIG_VARIABLE, path)
            .output()
            .expect("timeout is part of every system")
    }

    /// Runs it, and sees that all ranks reached their end; returns what they reported.
    fn done(&self, ranks: u32, config: Config) -> Vec<Report> {
        let output = self.run(ranks, config, &[]);
        let said = String::from_utf8_lossy(&output.stdout);
        let complained = String::from_utf8_lossy(&output.stderr);
        let done = said.lines().filter(|line| line.trim_start().starts_with("done")).count();
        assert!(
            output.status.success() && done == ranks as usize,
            "{} with {ranks} ranks: {said}{complained}",
            self.mpi
        );
        let mut reports = Vec::new();
        for entry in std::fs::read_dir(self.folder.path().join("reports")).expect("a folder") {
            let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("a file");
            reports.push(serde_json::from_str::<Report>(&text).expect("a report"));
        }
        reports.sort_by_key(|report| report.rank);
        reports
    }
}

fn calls(report: &Report, name: &str) -> Counts {
    report.calls.get(name).copied().unwrap_or_default()
}

const NAMES: [&str; 7] =
    ["bcast", "barrier", "reduce", "allreduce", "scatter", "gather", "allgather"];

#[test]
fn every_collective_of_c_inside_a_node() {
    for program in Program::each("all.c") {
        for ranks in [2, 3] {
            let reports = program.done(ranks, Config::default());
            assert_eq!(reports.len(), ranks as usize);
            for report in &reports {
                assert_eq!(report.communicators, 1, "{report:?}");
                assert_eq!(report.refusals, []);
                assert_eq!(report.calls, reports[0].calls, "all ranks decide alike");
                for name in NAMES {
                    let Counts { lines, across, mpi } = calls(report, name);
                    // Calls of no bytes, to which the first few belong, and elements that lines do not know.
                    let mpis = 6 * match name {
                        "barrier" => 0,
                        "bcast" => ranks,
                        "allgather" => 2,
                        "allreduce" => 2 + 3,
                        _ => 2 * ranks,
                    };
                    assert!(lines > 40 && across == 0, "{name}: {report:?}");
                    assert_eq!(mpi, u64::from(mpis), "{name}: {report:?}");
                }
            }
        }
    }
}

#[test]
fn across_nodes_the_mpi_works_between_their_first_ranks() {
    for program in Program::each("all.c") {
        let config = Config { ranks_per_node: Some(2), ..Config::default() };
        // The last node has one rank.
        for &ranks in program.crowds(&[3], &[4, 5]) {
            let reports = program.done(ranks, config.clone());
            for report in &reports {
                for name in ["bcast", "barrier", "reduce", "allreduce"] {
                    let Counts { lines, across, .. } = calls(report, name);
                    assert!(lines == 0 && across > 40, "{name}: {report:?}");
                }
                assert_eq!(calls(report, "scatter").across, 0);
            }
        }
    }
    for program in Program::each("derived.c") {
        let reports = program.done(2, Config { ranks_per_node: Some(1), ..Config::default() });
        assert!(reports.iter().all(|r| r.refusals[0].why == "no two ranks share a node"));
    }
}

#[test]
fn types_that_exist_on_one_rank_only() {
    for program in Program::each("derived.c") {
        for ranks in [2, 3] {
            for report in program.done(ranks, Config::default()) {
                assert!(calls(&report, "bcast").lines >= 50, "{report:?}");
            }
        }
        let config = Config { ranks_per_node: Some(2), ..Config::default() };
        for report in program.done(program.crowds(&[3], &[4])[0], config) {
            assert!(calls(&report, "bcast").across >= 50, "{report:?}");
        }
    }
}

#[test]
fn communicators_come_and_go_and_messages_move_while_ranks_wait() {
    for program in Program::each("comms.c") {
        let crowds: &[_] = program.crowds(&[(2, None)], &[(2, None), (4, None), (4, Some(2))]);
        for &(ranks, nodes) in crowds {
            let config = Config { ranks_per_node: nodes, ..Config::default() };
            for report in program.done(ranks, config) {
                assert!(report.communicators > 12, "{report:?}");
            }
        }
        let config = Config { communicators_max: 0, ..Config::default() };
        for report in program.done(2, config) {
            assert!(report.refusals.iter().any(|r| r.why.contains("many")), "{report:?}");
        }
    }
}

#[test]
fn a_rank_with_many_threads_is_agreed_on() {
    for program in Program::each("threads.c") {
        for report in program.done(2, Config::default()) {
            assert_eq!(report.communicators, 0);
            assert_eq!(calls(&report, "allreduce"), Counts { mpi: 50, ..Counts::default() });
        }
    }
}

#[test]
fn it_can_be_switched_off() {
    for program in Program::each("derived.c") {
        for report in program.done(2, Config { enabled: false, ..Config::default() }) {
            assert_eq!((report.communicators, calls(&report, "bcast").lines), (0, 0));
        }
    }
}

#[test]
fn fortran_by_either_module() {
    for source in ["all.f90", "module.f90"] {
        for program in Program::each(source) {
            for report in program.done(2, Config::default()) {
                for name in ["bcast", "barrier", "allreduce"] {
                    assert!(calls(&report, name).lines > 10, "{name}: {report:?}");
                }
            }
        }
    }
}

/// MPICH's launcher ends all ranks itself when one is killed, and nobody is left to see an error.
#[test]
fn a_killed_rank_is_an_error_to_the_others_within_the_stated_time() {
    for program in Program::each("killed.c").iter().filter(|program| program.mpi == "openmpi") {
        let out = program.folder.path().join("words");
        let _killed = program.run(3, Config::default(), &[out.to_str().expect("plain")]);
        let text = std::fs::read_to_string(&out).expect("the others go on");
        let (seconds, words) = text.trim().split_once(' ').expect("two words at least");
        let wanted = "isochrone: rank 2 ended in the middle of a collective; \
                      end the others and run the program again";
        assert_eq!(words, wanted);
        let seconds: f64 = seconds.parse().expect("a number");
        assert!(seconds < 5.0, "noticed after {seconds} s");
    }
}
