//! Runs the command, and makes the one map that most tests look at. For the tests of both programs; each says in its
//! `main.rs` where the command is (`crate::command`).

#![allow(clippy::print_stderr, reason = "a test says why it was skipped")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, OnceLock};

/// Measuring runs pin threads to cores: two at a time would measure each other.
static MACHINE: Mutex<()> = Mutex::new(());

/// Takes the machine for a measuring run.
pub(crate) fn machine() -> MutexGuard<'static, ()> {
    MACHINE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Takes the machine for a run that reads its map, which must be there before.
pub(crate) fn mapped_machine() -> MutexGuard<'static, ()> {
    map();
    machine()
}

/// The command with arguments, in `folder`, without colours.
pub(crate) fn isochrone(folder: &Path) -> Command {
    let mut command = Command::new(crate::command());
    command
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .env_remove("COLORTERM")
        .env_remove("ISOCHRONE_ATLAS");
    command
}

/// Runs to the end; the output as text.
pub(crate) fn run(folder: &Path, args: &[&str]) -> (Output, String, String) {
    let output = isochrone(folder).args(args).output().expect("the binary starts");
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, out, err)
}

/// A folder for one test, below Cargo's own.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

/// What `map --quick` left behind.
pub(crate) struct Map {
    pub(crate) folder: PathBuf,
    pub(crate) summary: String,
    pub(crate) figures: serde_json::Value,
}

/// One quick map of this machine, made once.
pub(crate) fn map() -> &'static Map {
    static MAP: OnceLock<Map> = OnceLock::new();
    MAP.get_or_init(|| {
        let _machine = machine();
        let folder = folder("map");
        let args = ["map", "--quick", "--seed", "7", "--json", "map.json"];
        let (output, summary, err) = run(&folder, &args);
        assert!(output.status.success(), "{err}");
        let text = std::fs::read_to_string(folder.join("map.json")).expect("figures are written");
        let figures = json(&text);
        Map { folder, summary, figures }
    })
}

/// The library that `isochrone run` preloads, as it is shipped. It is built by a command of its
/// own, since it must not share features with programs that have std.
pub(crate) fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| preload("isochrone-preload").join("libisochrone_malloc.so"))
}

/// The folder in which a package of the workspace of preloaded libraries was built: that of `cargo preload`, so that
/// after it there is nothing to be done.
pub(crate) fn preload(package: &str) -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../arrange/preload/Cargo.toml");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a folder of cargo's");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--locked", "--package", package, "--manifest-path"])
        .arg(&manifest)
        .arg("--target-dir")
        .arg(target)
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output()
        .expect("cargo runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    target.join("release")
}

/// `libisochrone_mpi.so` of this build, which lies beside the command or beside the tests: the newer one, since an
/// older build may have left the other.
pub(crate) fn mpi_library() -> PathBuf {
    let here = crate::command().with_file_name("libisochrone_mpi.so");
    let test = std::env::current_exe().expect("a test is a program");
    let places = [here, test.with_file_name("libisochrone_mpi.so")];
    let built = |path: &PathBuf| path.metadata().and_then(|of| of.modified()).ok();
    let newest = places.into_iter().filter(|path| path.exists()).max_by_key(built);
    newest.expect("it was built with this test")
}

/// What a command wrote as JSON, as its schema says.
pub(crate) fn json(text: &str) -> serde_json::Value {
    isochrone_schemas::parse(text).unwrap_or_else(|fault| panic!("{fault}\n{text}"))
}

/// Says why a test shows nothing here. With `CI=true` that is a failure.
pub(crate) fn skip(why: &str) {
    let in_ci = std::env::var_os("CI").is_some_and(|v| v == "true");
    assert!(!in_ci, "{why}");
    eprintln!("skipped: {why}");
}

/// A program from a package, or `None` where it is not installed. With `CI=true` it must be there.
pub(crate) fn tool(name: &str) -> Option<PathBuf> {
    let found = std::env::var_os("PATH")
        .into_iter()
        .flat_map(|p| std::env::split_paths(&p).collect::<Vec<_>>())
        .map(|folder| folder.join(name))
        .find(|path| path.is_file());
    if found.is_none() {
        skip(&format!("{name} is not installed; .ci/run installs it"));
    }
    found
}
