//! What the tests of the preloaded library share: the library, built as it is shipped; C programs;
//! an atlas in which nothing has to be timed; and runs of programs with and without the library.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, OnceLock};

use isochrone_alloc::Policy;
use isochrone_malloc::{
    CONFIG_VARIABLE, Config, CoreList, PathBytes, REPORT_SUFFIX, Reason, Report,
};
use isochrone_units::CoreId;

use crate::atlas::flat_atlas;

/// Where this test binary may write. Cargo has made it where the test was built.
fn scratch() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(&folder).expect("writable");
    folder
}

/// Where the library lies on a machine that has no cargo.
const LIBRARY_VARIABLE: &str = "ISOCHRONE_TEST_LIBRARY";

/// The shared library, as `cargo preload` builds it.
pub(crate) fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        if let Some(library) = std::env::var_os(LIBRARY_VARIABLE) {
            return PathBuf::from(library);
        }
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../preload/Cargo.toml");
        let target = scratch().join("preload");
        let built = Command::new(env!("CARGO"))
            .args(["build", "--release", "--locked", "--manifest-path"])
            .arg(&manifest)
            .arg("--target-dir")
            .arg(&target)
            // Those are of the build that this test belongs to.
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .output()
            .expect("cargo runs");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        target.join("release/libisochrone_malloc.so")
    })
}

/// A C program of `tests/preload/c`, compiled so that the compiler leaves calls of `malloc` alone.
pub(crate) fn program(name: &'static str) -> PathBuf {
    built(&format!("c/{name}.c"), name.to_owned(), &[])
}

/// The same, whose words for calls the dynamic linker makes read-only before it begins.
pub(crate) fn program_bound_at_start(name: &'static str) -> PathBuf {
    built(&format!("c/{name}.c"), format!("bound-{name}"), &["-Wl,-z,now,-z,relro"])
}

/// A C program of `tests/preload/rules`. Its own calls take no more of the stack the first time than later.
pub(crate) fn rule(name: &'static str) -> PathBuf {
    built(&format!("rules/{name}.c"), format!("rule-{name}"), &["-Wl,-z,now"])
}

/// The same, linked with all that it needs.
pub(crate) fn static_rule(name: &'static str) -> PathBuf {
    built(&format!("rules/{name}.c"), format!("static-{name}"), &["-static"])
}

/// The library of `tests/preload/rules`, under this name and linked with these arguments.
pub(crate) fn rule_library(name: &'static str, arguments: &[&str]) -> PathBuf {
    let all: Vec<&str> = ["-shared", "-fPIC"].iter().chain(arguments).copied().collect();
    built("rules/library.c", format!("lib{name}.so"), &all)
}

/// A program of `tests/preload/strange`, under this name and compiled with these arguments.
pub(crate) fn strange_program(source: &str, name: &str, arguments: &[&str]) -> PathBuf {
    built(&format!("strange/{source}"), format!("strange-{name}"), arguments)
}

/// What a source of `tests/preload` becomes. Each once: a program cannot be written while another test runs it.
fn built(source: &str, name: String, arguments: &[&str]) -> PathBuf {
    static BUILT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let folder = scratch().join(format!("programs-{}", std::process::id()));
    let out = folder.join(name);
    let mut built = BUILT.lock().expect("no compiler panicked");
    if built.insert(out.clone()) {
        std::fs::create_dir_all(&folder).expect("writable");
        compile(source, &out, arguments);
    }
    out
}

fn compile(source: &str, out: &Path, arguments: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/preload");
    let compiled = Command::new(if source.ends_with(".cpp") { "c++" } else { "cc" })
        .args(["-O1", "-g", "-w", "-fno-builtin", "-pthread"])
        .args(arguments)
        .arg("-o")
        .arg(out)
        .arg(folder.join(source))
        .output()
        .expect("compilers of C and C++ are installed");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
}

/// A way to run programs: with the library, told by this configuration.
pub(crate) struct Rig {
    folder: tempfile::TempDir,
    pub(crate) config: Config,
}

impl Rig {
    /// A rig with a flat atlas, which places from 64 KiB on, though nothing is to be gained.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let atlas = folder.path().join("flat.atlas");
        std::fs::write(&atlas, flat_atlas()).expect("writable");
        let reports = folder.path().join("reports");
        std::fs::create_dir(&reports).expect("writable");
        let config = Config {
            policy: Policy::default(),
            start_bytes: 64 << 10,
            arena_bytes_max: 1 << 30,
            cores: CoreList::new(&[CoreId(0)]).expect("short"),
            atlas: path_bytes(&atlas),
            reports: path_bytes(&reports),
            filters: isochrone_malloc::filters::count().expect("/proc is mounted"),
            force: true,
            ..Config::default()
        };
        Self { folder, config }
    }

    /// A rig with these bytes as its atlas.
    pub(crate) fn of_atlas(atlas: &[u8]) -> Self {
        let rig = Self::new();
        std::fs::write(rig.folder.path().join("flat.atlas"), atlas).expect("writable");
        rig
    }

    /// The same with another configuration.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// The file that tells the library what to do.
    pub(crate) fn config_file(&self) -> PathBuf {
        let file = self.folder.path().join("config");
        std::fs::write(&file, self.config.to_bytes()).expect("writable");
        file
    }

    /// A command that will run under the library.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        self.command_over(None, program)
    }

    /// The same where another allocator is preloaded behind the library.
    pub(crate) fn command_over(&self, below: Option<&Path>, program: impl AsRef<OsStr>) -> Command {
        let mut libraries = library().as_os_str().to_owned();
        if let Some(below) = below {
            libraries.push(":");
            libraries.push(below);
        }
        let mut command = Command::new(program);
        command.env("LD_PRELOAD", libraries).env(CONFIG_VARIABLE, self.config_file());
        command
    }

    /// Runs a command with the library and without it: both must end well and print the same.
    pub(crate) fn same(&self, program: impl AsRef<OsStr>, change: impl Fn(&mut Command)) -> Output {
        self.same_over(None, program, change)
    }

    /// The same where another allocator is preloaded both times, behind the library.
    pub(crate) fn same_over(
        &self,
        below: Option<&Path>,
        program: impl AsRef<OsStr>,
        change: impl Fn(&mut Command),
    ) -> Output {
        let mut plain = Command::new(program.as_ref());
        let mut placed = self.command_over(below, program.as_ref());
        if let Some(below) = below {
            plain.env("LD_PRELOAD", below);
        }
        change(&mut plain);
        change(&mut placed);
        let (plain, placed) = (plain.output().expect("it runs"), placed.output().expect("it runs"));
        assert!(plain.status.success(), "without: {}", String::from_utf8_lossy(&plain.stderr));
        assert_eq!(placed.status, plain.status, "{}", String::from_utf8_lossy(&placed.stderr));
        if placed.stdout != plain.stdout {
            let texts =
                [&plain, &placed].map(|run| String::from_utf8_lossy(&run.stdout).into_owned());
            let differs = texts[0].lines().zip(texts[1].lines()).find(|(a, b)| a != b);
            panic!("the library changes what is printed: {differs:?}");
        }
        placed
    }

    /// What processes left, and removes it.
    pub(crate) fn reports(&self) -> Vec<Report> {
        let mut reports = Vec::new();
        for path in self.report_files() {
            assert!(path.to_string_lossy().ends_with(REPORT_SUFFIX), "{}", path.display());
            let bytes = std::fs::read(&path).expect("readable");
            reports.push(Report::from_bytes(&bytes).expect("a report"));
            std::fs::remove_file(&path).expect("removable");
        }
        reports.sort_by_key(Report::process);
        reports
    }

    /// What processes have counted so far; of one that is about to begin its record, nothing.
    pub(crate) fn seen(&self) -> Vec<Report> {
        let bytes = self.report_files().into_iter().filter_map(|file| std::fs::read(file).ok());
        bytes.filter_map(|bytes| Report::from_bytes(&bytes)).collect()
    }

    fn report_files(&self) -> Vec<PathBuf> {
        let folder = self.folder.path().join("reports");
        let files = std::fs::read_dir(folder).expect("readable");
        files.map(|entry| entry.expect("readable").path()).collect()
    }

    /// The report of the process that had most to place.
    pub(crate) fn largest(&self) -> Report {
        let reports = self.reports();
        let largest = reports.into_iter().max_by_key(|report| report.placeable().bytes);
        largest.expect("a process left a report")
    }
}

/// The share that was placed of what came after the start. Who begins may lose its core meanwhile, for as long as
/// others want it, and what other threads allocate by then is not placed.
#[allow(clippy::cast_precision_loss, reason = "a share needs no more")]
pub(crate) fn share_since_start(report: &Report) -> f64 {
    let before = report.delegated(Reason::BeforeStart).objects;
    report.placed().objects as f64 / (report.placeable().objects - before) as f64
}

pub(crate) fn path_bytes(path: &Path) -> PathBytes {
    PathBytes::new(path.as_os_str().as_bytes()).expect("a short path")
}

/// Where a program is, if it is installed. With `CI=true` it must be there.
pub(crate) fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    found_in(std::env::split_paths(&path), name)
}

/// Where a shared library of Debian's is, likewise.
pub(crate) fn shared_library(name: &str) -> Option<PathBuf> {
    let folder = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    found_in(std::iter::once(PathBuf::from(folder)), name)
}

#[allow(clippy::print_stderr, reason = "a test says why it was skipped")]
fn found_in(folders: impl Iterator<Item = PathBuf>, name: &str) -> Option<PathBuf> {
    let found = folders.map(|folder| folder.join(name)).find(|file| file.is_file());
    if found.is_none() {
        let in_ci = std::env::var_os("CI").is_some_and(|v| v == "true");
        assert!(!in_ci, "{name} is not installed; .ci/run installs it");
        eprintln!("skipped: {name} is not installed");
    }
    found
}
