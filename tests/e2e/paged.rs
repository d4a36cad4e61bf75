//! `isochrone run --fast-memory`: a program of which a part is in fast memory, as its user sees it.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use isochrone_tier::live::guest::may_be_tiered;

use crate::support::{folder, json, tool};

const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words) {
  unsigned long bytes = 24ul << 20, sum = 0;
  unsigned char *block = malloc(count > 1 ? strtoul(words[1], 0, 10) : bytes);
  if (count > 1) return block == 0;
  for (unsigned long at = 0; at < bytes; at += 64) block[at] = (unsigned char)(at >> 6);
  for (unsigned long at = 0; at < bytes; at += 64) sum = sum * 31 + block[at];
  printf("%lu\n", sum);
  return 7;
}
"#;

fn program(here: &Path, name: &str, options: &[&str]) -> PathBuf {
    let (source, out) = (here.join("program.c"), here.join(name));
    std::fs::write(&source, PROGRAM).expect("a source");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-w", "-o"]).arg(&out).args(options).arg(&source);
    let built = compiler.output().expect("a compiler");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    out
}

/// The library, as it is shipped.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| crate::support::preload("isochrone-pager").join("libisochrone_pager.so"))
}

struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

fn run(here: &Path, options: &[&str], command: &[&str]) -> Said {
    // Killed with all that it started after a minute and a half, whatever becomes of it.
    let mut words = Command::new("timeout");
    words.args(["-s", "KILL", "90"]).arg(crate::command()).current_dir(here).env("NO_COLOR", "1");
    words.arg("run").args(options).args(["--preload"]).arg(library()).arg("--").args(command);
    let output = words.stdin(std::process::Stdio::null()).output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Said { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
}

#[test]
fn a_program_is_paged_and_a_report_says_what_happened() {
    let here = folder("paged");
    let program = program(&here, "program", &[]);
    let program = program.to_str().expect("UTF-8");
    let plain = Command::new(program).output().expect("it runs");
    let options = ["--fast-memory", "4M", "--report", "--json", "run.json"];
    let said = run(&here, &options, &[program]);
    assert_eq!(said.code, Some(7), "{}", said.err);
    assert_eq!(said.out.as_bytes(), plain.stdout);
    let record = json(&std::fs::read_to_string(here.join("run.json")).expect("it was written"));
    if may_be_tiered().is_err() {
        assert!(said.err.contains("untiered"), "{}", said.err);
        assert_eq!(record["grade"], "c");
        return;
    }
    assert!(said.err.starts_with("isochrone: grade a, "), "{}", said.err);
    assert_eq!((&record["grade"], &record["far"]), (&"a".into(), &"lz4".into()));
    let process = &record["processes"][0];
    assert!(process["evicted_pages"].as_u64() > Some(0), "{record}");
    assert!(process["peak_fast_bytes"].as_u64() <= Some(4 << 20), "{record}");
    assert!(process["far_bytes"].as_u64() > Some(0), "{record}");
    assert_eq!(process["compressed_bytes"], process["far_bytes"], "lz4 compresses: {record}");
    assert_eq!(process["ended"], true, "{record}");
    for far in ["region:0", "zstd", "file:."] {
        let said = run(&here, &["--fast-memory", "4M", "--far", far], &[program]);
        assert_eq!((said.code, said.out.as_bytes()), (Some(7), &plain.stdout[..]), "{}", said.err);
    }
    for far in ["region:63", "file:nowhere"] {
        let said = run(&here, &["--fast-memory", "4M", "--far", far], &[program]);
        assert_eq!(said.code, Some(125), "{}", said.err);
        assert!(said.err.contains("nowhere") || said.err.contains(far), "{}", said.err);
        assert!(said.out.is_empty(), "{}", said.out);
    }
}

#[test]
fn a_static_program_is_left_alone_with_one_line() {
    let here = folder("paged-static");
    let program = program(&here, "static", &["-static"]);
    let said = run(&here, &["--fast-memory", "4M"], &[program.to_str().expect("UTF-8")]);
    assert_eq!(said.code, Some(7), "{}", said.err);
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    assert!(said.err.contains("untiered") && said.err.contains("static"), "{}", said.err);
}

#[test]
fn what_is_not_there_or_may_not_be_executed_is_refused_as_a_shell_refuses_it() {
    let here = folder("paged-refused");
    std::fs::write(here.join("plain"), "echo ran\n").expect("a file");
    std::fs::create_dir_all(here.join("inner")).expect("a folder");
    for (name, code, words) in [
        ("no-such-program-anywhere", 127, "not found"),
        ("./absent", 127, "no such file"),
        ("./plain", 126, "not executable"),
        ("./inner", 126, "inner"),
    ] {
        let said = run(&here, &["--fast-memory", "4M", "--report"], &[name]);
        assert_eq!(said.code, Some(code), "{name}: {}", said.err);
        assert!(said.err.contains(words) && said.out.is_empty(), "{name}: {}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{name}: {}", said.err);
    }
    // The system refuses these: the second line says so, and the first why they would not be paged.
    for (name, text) in [("text", "words\n"), ("script", "#!/absent/interpreter\n")] {
        let path = here.join(name);
        std::fs::write(&path, text).expect("a file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("its mode");
        let said = run(&here, &["--fast-memory", "4M"], &[&format!("./{name}")]);
        assert_eq!(said.code, Some(126), "{name}: {}", said.err);
        assert!(said.err.contains("cannot be started"), "{name}: {}", said.err);
    }
}

/// The words that make an ordinary user of root.
const ORDINARY: [&str; 4] =
    ["--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"];

#[test]
fn an_ordinary_user_is_told_what_mends_it_and_who_becomes_one_says_so() {
    if !rustix::process::geteuid().is_root() {
        // Then the other tests show the first half.
        return;
    }
    let Some(setpriv) = tool("setpriv") else { return };
    // The build folder may lie where only root may go.
    let scratch = tempfile::tempdir().expect("a folder");
    let here = scratch.path();
    std::fs::set_permissions(here, std::fs::Permissions::from_mode(0o777)).expect("its mode");
    let program = program(here, "program", &[]);
    for file in [crate::command().as_path(), library()] {
        std::fs::copy(file, here.join(file.file_name().expect("a file"))).expect("a copy");
    }
    // The library is found beside the command.
    let isochrone = || {
        let mut words = vec!["-s".into(), "KILL".into(), "90".into()];
        words.push(here.join("isochrone").into_os_string());
        words.extend(["run", "--fast-memory", "4M", "--report", "--"].map(OsString::from));
        words
    };
    let ended = |command: &mut Command| {
        let output = command.current_dir(here).env("TMPDIR", here).output().expect("it starts");
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(7), "{err}");
        assert!(!output.stdout.is_empty(), "{err}");
        err
    };
    let as_one =
        ended(Command::new(&setpriv).args(ORDINARY).arg("timeout").args(isochrone()).arg(&program));
    // Some systems let everybody be paged.
    let is_paged = as_one.starts_with("isochrone: grade a, ");
    let is_told = as_one.contains("untiered") && as_one.contains("vm.unprivileged_userfaultfd");
    assert!(is_paged || is_told, "{as_one}");
    let becomes_one =
        ended(Command::new("timeout").args(isochrone()).arg(&setpriv).args(ORDINARY).arg(&program));
    assert!(becomes_one.contains("cannot write its record"), "{becomes_one}");
}

#[test]
fn wrong_words_are_wrong_usage_and_name_the_bound() {
    let here = folder("paged-words");
    for (options, bound) in [
        (&["--fast-memory", "4K"][..], "1M at least"),
        (&["--fast-memory", "4M", "--far", "file:"], "file:DIR"),
        (&["--fast-memory", "4M", "--far", "tape"], "lz4, zstd, file:DIR or region:N"),
        (&["--far", "lz4"], "--fast-memory"),
        (&["--fast-memory", "4M", "--force"], "--force"),
    ] {
        let said = run(&here, options, &["true"]);
        assert_eq!(said.code, Some(2), "{options:?}: {}", said.err);
        assert!(said.err.contains(bound), "{options:?}: {}", said.err);
    }
}
