//! The library, built as it is shipped; programs; and runs of them that end.

use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use isochrone_tier::live::far::FarKind;
use isochrone_tier::live::guest::may_be_tiered;
use isochrone_tier::live::guest::record::Record;
use isochrone_tier::live::guest::told::{SUFFIX, Told, VARIABLE};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// After this a program is killed: many times what the longest takes beside other work.
const BOUND: Duration = Duration::from_secs(240);
/// Between two looks whether it has ended.
const LOOK: Duration = Duration::from_millis(5);
const LARGE_BYTES: usize = 1 << 20;
/// Where the library lies, if it is not to be built.
const PLACE: &str = "ISOCHRONE_TEST_PAGER";

/// Where this test binary may write.
fn scratch() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(&folder).expect("writable");
    folder
}

/// The library, as `cargo preload --package isochrone-pager` builds it, and in the same folder: after it there is
/// nothing to be done.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        if let Some(library) = std::env::var_os(PLACE) {
            return PathBuf::from(library);
        }
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../preload/Cargo.toml");
        let target = scratch().join("..");
        let built = Command::new(env!("CARGO"))
            .args(["build", "--release", "--locked", "--package", "isochrone-pager"])
            .arg("--manifest-path")
            .arg(&manifest)
            .arg("--target-dir")
            .arg(&target)
            // Those are of the build that this test belongs to.
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .stdin(Stdio::null())
            .output()
            .expect("cargo runs");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        target.join("release/libisochrone_pager.so")
    })
}

/// A program, and a folder for what its runs leave.
pub(crate) struct Rig {
    program: PathBuf,
    folder: tempfile::TempDir,
    far: FarKind,
}

/// What became of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) record: Option<Record>,
}

impl Rig {
    /// A program of `tests/pager/c`; nothing where this process may not be tiered, or where neither a library nor a
    /// cargo is, as on an emulated machine, and then it says why.
    pub(crate) fn new(name: &str) -> Option<Self> {
        if std::env::var_os(PLACE).is_none() && !Path::new(env!("CARGO")).exists() {
            eprintln!("skipped: {PLACE} does not say where the library is");
            return None;
        }
        if let Err(error) = may_be_tiered() {
            eprintln!("skipped: {error}");
            return None;
        }
        let folder = tempfile::tempdir_in(scratch()).expect("writable");
        let program = folder.path().join(name);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/pager/c/{name}.c"));
        let compiled = Command::new("cc")
            .args(["-O1", "-g", "-Wall", "-Werror", "-fno-builtin", "-pthread", "-o"])
            .arg(&program)
            .arg(source)
            .stdin(Stdio::null())
            .output()
            .expect("a C compiler is installed");
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        Some(Self { program, folder, far: FarKind::Lz4 })
    }

    /// The same with another far tier.
    pub(crate) fn with(self, far: FarKind) -> Self {
        Self { far, ..self }
    }

    /// Runs it where no file may have more than some MiB.
    pub(crate) fn with_short_files(&self, args: &[&str], fast: usize) -> Ran {
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -f 16384 && exec \"$0\" \"$@\""]).arg(&self.program);
        self.started(shell, args, Some(fast))
    }

    /// Runs it, with so much fast memory or without the pager.
    pub(crate) fn run(&self, args: &[&str], fast: Option<usize>) -> Ran {
        self.started(Command::new(&self.program), args, fast)
    }

    /// Runs it with so many KiB of addresses.
    pub(crate) fn limited(&self, args: &[&str], fast: usize, kib: usize) -> Ran {
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -v $0 && exec \"$@\"", &kib.to_string()]).arg(&self.program);
        self.started(shell, args, Some(fast))
    }

    fn started(&self, mut command: Command, args: &[&str], fast: Option<usize>) -> Ran {
        let run = tempfile::tempdir_in(self.folder.path()).expect("writable");
        let path = |name: &str| run.path().join(name);
        let file = |name: &str| File::create(path(name)).expect("writable");
        command.args(args).current_dir(run.path()).process_group(0);
        command.stdin(Stdio::null()).stdout(file("out")).stderr(file("err"));
        if let Some(fast_bytes) = fast {
            let reports = run.path().to_str().expect("UTF-8").to_owned();
            let told =
                Told { fast_bytes, large_bytes: LARGE_BYTES, far: self.far.clone(), reports };
            command.env("LD_PRELOAD", library()).env(VARIABLE, told.to_string());
        }
        let status = bounded(&mut command);
        let text = |name: &str| std::fs::read_to_string(path(name)).expect("it was made");
        let left = std::fs::read_dir(run.path()).expect("it was made").map(|entry| {
            let path = entry.expect("it can be read").path();
            let is_record = path.to_string_lossy().ends_with(SUFFIX);
            is_record.then(|| std::fs::read(path).expect("it can be read"))
        });
        let records: Vec<Record> =
            left.flatten().filter_map(|bytes| Record::from_bytes(&bytes)).collect();
        let record = records.first().copied();
        Ran {
            code: status.code(),
            signal: status.signal(),
            out: text("out"),
            err: text("err"),
            record,
        }
    }
}

/// Runs a command that leads a group, and ends all of the group after it, or after the bound.
fn bounded(command: &mut Command) -> ExitStatus {
    let mut child = command.spawn().expect("it starts");
    let group = Pid::from_raw(i32::try_from(child.id()).expect("small"));
    let end = Instant::now() + BOUND;
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            // Whatever it started and left; mostly nothing.
            let _ = killpg(group, Signal::SIGKILL);
            return status;
        }
        if Instant::now() > end {
            let _ = killpg(group, Signal::SIGKILL);
            let _ = child.wait();
            panic!("killed after {BOUND:?}: {command:?}");
        }
        std::thread::sleep(LOOK);
    }
}

/// Runs it under the pager: it succeeds.
pub(crate) fn tiered(rig: &Rig, args: &[&str], fast: usize) -> Ran {
    let ran = rig.run(args, Some(fast));
    assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
    ran
}

/// Runs it alone and under the pager: both succeed and say the same. What the second left.
pub(crate) fn alike(rig: &Rig, args: &[&str], fast: usize) -> Record {
    let alone = rig.run(args, None);
    assert_eq!(alone.code, Some(0), "{args:?}: {alone:?}");
    let ran = tiered(rig, args, fast);
    assert_eq!((&ran.out, &ran.err), (&alone.out, &alone.err), "{args:?}");
    ran.record.expect("it had large mappings")
}
