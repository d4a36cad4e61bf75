//! Programs that are built with the MPIs that are installed, run under the library, and what they report.

#![allow(clippy::print_stderr, reason = "a test says why it was skipped")]
#![allow(dead_code, reason = "each binary of tests takes a part")]

use isochrone_mpi::{CONFIG_VARIABLE, Config, Report};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// The MPIs of Debian, which lie beside each other by these suffixes.
const MPIS: [&str; 2] = ["openmpi", "mpich"];

/// Seconds after which a job hangs. On two emulated cores three ranks that never give one away took more than a minute.
const HANGS_S: &str = "180";

/// What starts a job of an MPI.
fn launcher(mpi: &str) -> String {
    // PyPI's MPICH has Hydra by its own name.
    if mpi == "hydra" { "mpiexec.hydra".to_owned() } else { format!("mpirun.{mpi}") }
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
}

impl Program {
    /// Builds `source` with each MPI that is installed.
    pub(crate) fn each(source: &str) -> Vec<Self> {
        let compiler = if Path::new(source).extension().is_some_and(|e| e == "f90") {
            "mpif90"
        } else {
            "mpicc"
        };
        let built = |mpi: &'static str| Self::build(mpi, &format!("{compiler}.{mpi}"), source);
        MPIS.into_iter().filter_map(built).collect()
    }

    /// Builds `source` with MPICH's compiler for the standard ABI, where there is one.
    pub(crate) fn of_the_standard_abi(source: &str) -> Option<Self> {
        if Command::new("mpicc_abi").arg("--version").output().is_err() {
            eprintln!("skipped: mpicc_abi is not in PATH (pip install mpich)");
            return None;
        }
        Self::build("hydra", "mpicc_abi", source)
    }

    fn build(mpi: &'static str, compiler: &str, source: &str) -> Option<Self> {
        if !there(compiler) || !there(&launcher(mpi)) {
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("program");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
        compiled(compiler, &["-O1"], &source, &path, folder.path());
        Some(Self { mpi, folder, path })
    }

    /// A library of the tests, built with this program's MPI, that is preloaded behind the one that is tested.
    pub(crate) fn beside(&self, source: &str, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
        let compiler = format!("mpicc.{}", self.mpi);
        compiled(&compiler, &["-O1", "-shared", "-fPIC"], &source, &path, self.folder.path());
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
        command.args(["-k", "10", HANGS_S, &launcher(self.mpi)]);
        if self.mpi == "openmpi" {
            command.args(["--oversubscribe", "--mca", "orte_enable_recovery", "1"]);
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        }
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

fn compiled(compiler: &str, how: &[&str], source: &Path, path: &Path, folder: &Path) {
    let built = Command::new(compiler)
        .args(how)
        .arg("-o")
        .arg(path)
        .arg(source)
        .current_dir(folder)
        .output()
        .expect("it was there");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
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
        let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("a file");
        reports.push(serde_json::from_str::<Report>(&text).expect("a report"));
    }
    reports.sort_by_key(|report| report.rank);
    reports
}

/// Every communicator after a few calls, however long it lives.
pub(crate) fn at_once() -> Config {
    Config { calls_before: 4, costs_before: 0, ..Config::default() }
}
