//! `isochrone advise`: what the map of this machine offers, and small programs under each lever.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::run::{UPGRADE, alike, installed};
use crate::suits::two_regions;
use crate::support::{
    folder, isochrone, json, library, map, mapped_machine, mpi_library, run, tool,
};

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// The lever of this name in what was written.
fn lever<'a>(figures: &'a serde_json::Value, name: &str) -> &'a serde_json::Value {
    let levers = figures["levers"].as_array().expect("a list");
    let of = |lever: &&serde_json::Value| lever["name"] == name || lever["lever"] == name;
    levers.iter().find(of).unwrap_or_else(|| panic!("no lever {name}: {figures}"))
}

#[test]
fn a_machine_is_told_in_twelve_lines_with_a_line_for_each_lever() {
    let narrow = |words: &[&str]| {
        let mut command = isochrone(&map().folder);
        said(&command.args(words).env("COLUMNS", "80").output().expect("it runs"))
    };
    let (code, out, err) = narrow(&["advise"]);
    assert!(code == Some(0) && err.is_empty(), "{err}");
    assert!(out.lines().count() <= 12, "{out}");
    let (_, long, _) = narrow(&["advise", "--long"]);
    let long: Vec<&str> = long.split_whitespace().collect();
    let long = long.join(" ");
    let (_, text, _) = run(&map().folder, &["advise", "--json"]);
    let figures = json(&text);
    for name in ["near lines", "core order", "regions", "collectives", "tier or zram", "huge pages"]
    {
        let lines = out.lines().filter(|line| line.trim_start().starts_with(name)).count();
        assert_eq!(lines, 1, "{name}: {out}");
        let lever = lever(&figures, name);
        let command = lever["command"].as_str();
        assert!(command.is_none_or(|command| out.contains(command)), "{lever}: {out}");
        assert!(long.contains(lever["what"].as_str().expect("words")), "{lever}: {long}");
        assert!(lever["offer"] != "depends" || command.is_some(), "{lever}");
    }
    let summary = figures["summary"].as_str().expect("a sentence");
    assert!(out.replace('\n', " ").starts_with(summary), "{out}");
    let (output, _, err) = run(&map().folder, &["advise", "--html=advice.html"]);
    assert!(output.status.success(), "{err}");
    let page = fs::read_to_string(map().folder.join("advice.html")).expect("it was written");
    assert!(page.contains("collectives") && page.starts_with("<!doctype html>"));
}

#[test]
fn near_lines_are_judged_as_run_judges_them() {
    let here = folder("advise-alike");
    let atlas = alike(&here);
    let words = ["advise", "--json", "--atlas", atlas.to_str().expect("a plain path")];
    let (_, out, err) = run(&here, &[&words[..1], &words[2..], &["--json"]].concat());
    let figures = json(&out);
    let near = lever(&figures, "near lines");
    assert_eq!(
        (&near["offer"], &near["number"]["reading"]),
        (&"nothing".into(), &"predicted".into()),
        "{err}"
    );
    assert!(
        near["what"].as_str().is_some_and(|what| what.contains("predicted gain 1.00")),
        "{near}"
    );
}

#[test]
fn two_regions_are_a_lever_with_the_command_that_places_memory() {
    let here = folder("advise-regions");
    two_regions(&here);
    let (output, out, err) = run(&here, &["advise", "--atlas", "two.atlas", "--json"]);
    assert!(output.status.success() && err.is_empty(), "{err}");
    let figures = json(&out);
    let regions = lever(&figures, "regions");
    assert_eq!(
        (&regions["offer"], &regions["number"]["reading"]),
        (&"depends".into(), &"predicted".into())
    );
    assert!(
        regions["command"].as_str().is_some_and(|command| command.ends_with("--memory")),
        "{regions}"
    );
}

#[test]
fn without_an_atlas_a_line_says_which_command_measures_one() {
    let here = folder("advise-none");
    let bare = |words: &[&str]| {
        let mut command = isochrone(&here);
        command.args(words).env("XDG_CACHE_HOME", &here).env("COLUMNS", "80");
        said(&command.output().expect("it runs"))
    };
    let (code, out, _) = bare(&["advise"]);
    assert_eq!(code, Some(0), "{out}");
    let words: Vec<&str> = out.split_whitespace().collect();
    assert!(words.join(" ").contains("isochrone map --quick"), "{out}");
    assert!(out.lines().count() <= 12, "{out}");
    let (_, out, _) = bare(&["advise", "--json"]);
    let figures = json(&out);
    assert!(figures["atlas"].is_null(), "{out}");
    assert_eq!(lever(&figures, "near lines")["offer"], "unknown");
    // One that was named and is of another machine, or none.
    let mut contents = isochrone_view::fixtures::genoa();
    contents.fingerprint.hash ^= 1;
    isochrone_atlas_store::save(&contents, &here.join("other.atlas")).expect("it is saved");
    for (name, words) in [("other.atlas", "another machine"), ("no.atlas", "no.atlas")] {
        let (code, _, err) = bare(&["advise", "--atlas", name]);
        assert_eq!(code, Some(1), "{err}");
        assert!(err.contains(words) && err.contains("isochrone map"), "{err}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let here = folder("advise-refused");
    fs::write(here.join("file"), "x").expect("a file");
    for (wrong, words) in [
        (&["--try"][..], "CMD"),
        (&["--working-set"], "CMD"),
        (&["--with-arguments"], "CMD"),
        (&["--long", "--", "true"], "--long"),
        (&["--from-outside"], "CMD"),
        (&["--allocations"], "CMD"),
        (&["--try", "--allocations", "--", "true"], "--try"),
        (&["--allocations", "--from-outside", "--", "true"], "--from-outside"),
        (&["--preload=x", "--from-outside", "--", "true"], "--preload"),
        (&["--try", "--from-outside", "--", "true"], "--try"),
        (&["--try", "--working-set", "--", "true"], "--try"),
        (&["--json=a", "--html=a", "--", "true"], "each needs its own"),
        (&["--try", "--budget", "0", "--", "true"], "not a time"),
        (&["--try", "--only", "magic", "--", "true"], "mimalloc"),
        (&["--try", "--input", "/dev/zero", "--", "true"], "a plain file"),
        (&["--try", "--input", "nothing", "--", "true"], "nothing"),
        (&["--budget", "5m"], "--try"),
        (&["--try", "--json=a", "--html=a", "--", "true"], "each needs its own"),
    ] {
        let (output, out, err) = run(&here, &[&["advise"], wrong].concat());
        assert_eq!((output.status.code(), out.as_str()), (Some(2), ""), "{wrong:?}: {err}");
        assert!(err.contains(words), "{wrong:?}: {err}");
    }
    for (wrong, words) in [
        (&["no-such-program-anywhere"][..], "not found"),
        (&["sh", "-c", "exit 3"], "ended with 3"),
        (&["sh", "-c", "kill -KILL $$"], "by a signal"),
    ] {
        let (output, _, err) =
            run(&here, &[&["advise", "--try", "--budget", "20s", "--"], wrong].concat());
        assert_eq!(output.status.code(), Some(1), "{wrong:?}: {err}");
        assert!(err.contains(words), "{wrong:?}: {err}");
    }
    let left: Vec<PathBuf> = entries(&here);
    assert_eq!(left, [here.join("file")], "a refusal leaves nothing");
}

/// `advise` of a program that is run once, with files of its own in `here`.
fn watched(here: &Path, options: &[&str], program: &[&str]) -> Command {
    let mut command = isochrone(here);
    command
        .arg("advise")
        .args(options)
        .arg("--")
        .args(program)
        .env("XDG_CACHE_HOME", here.join("cache"))
        .env("A_SECRET", "of-the-environment");
    command
}

/// The same of a shell script, with the map of this machine and figures in `seen.json`.
fn watched_script(here: &Path, options: &[&str], script: &str) -> (Option<i32>, String, String) {
    let atlas = map().folder.join("isochrone.atlas");
    let own = ["--json=seen.json", "--atlas", atlas.to_str().expect("a plain path")];
    let mut command = watched(here, &[&own, options].concat(), &["sh", "-c", script]);
    said(&command.output().expect("it runs"))
}

#[test]
fn a_program_is_watched_as_if_nobody_stood_before_it() {
    let here = folder("advise-watched");
    let atlas = map().folder.join("isochrone.atlas");
    let script = "read line; echo \"heard $line\"; echo aside >&2; env > env; \
                  i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done; sh -c 'sleep 0.3'; exit 3";
    let mut child =
        watched(&here, &["--json=seen.json", "--html=seen.html"], &["sh", "-c", script])
            .env("ISOCHRONE_ATLAS", &atlas)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
    let mut input = child.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut input, b"this\n").expect("it is read");
    drop(input);
    let (code, out, err) = said(&child.wait_with_output().expect("it ends"));
    assert_eq!((code, out.as_str()), (Some(3), "heard this\n"), "{err}");
    assert!(err.starts_with("aside\n") && err.contains("exit code 3"), "{err}");
    // What is said is said behind the program's own words, in lines that fit.
    assert!(err.lines().skip(2).all(|line| line.chars().count() <= 80), "{err}");
    let environment = fs::read_to_string(here.join("env")).expect("the program's");
    assert!(!environment.contains("LD_PRELOAD") && !environment.contains("ISOCHRONE_CONFIG"));
    let text = fs::read_to_string(here.join("seen.json")).expect("it was written");
    let figures = json(&text);
    let seen = &figures["seen"];
    assert_eq!((&figures["program"], &seen["code"]), (&"sh".into(), &3.into()), "{text}");
    assert!(
        figures["arguments"].is_null() && seen["looks"]["processes"].as_u64() >= Some(2),
        "{text}"
    );
    assert!(seen["looks"]["pages"]["anonymous"].as_u64() > Some(0), "{text}");
    assert!(seen["spent"]["minor_faults"].as_u64() > Some(0), "{text}");
    let flat: Vec<&str> = err.split_whitespace().collect();
    for lever in figures["levers"].as_array().expect("a list") {
        // No bound is measured, and what is unknown is no bound.
        assert_eq!(lever["at_most"].is_null(), lever["reading"].is_null(), "{lever}");
        assert!(lever["reading"].is_null() || lever["reading"] == "predicted", "{lever}");
        assert!(lever["says"] != "at_most" || lever["command"].is_string(), "{lever}");
        let name = lever["lever"].as_str().expect("a name");
        assert!(flat.join(" ").contains(name), "{name}: {err}");
    }
    let records = entries(&here.join("cache/isochrone/advice"));
    let kept = fs::read_to_string(records.first().expect("a record")).expect("it is read");
    assert_eq!((records.len(), &json(&kept)), (1, &figures));
    for private in ["of-the-environment", "heard"] {
        assert!(!kept.contains(private), "{kept}");
    }
    assert!(
        fs::read_to_string(here.join("seen.html")).expect("a page").contains("What sh could gain")
    );
}

#[test]
fn a_watched_program_that_is_killed_or_not_there_has_the_code_of_a_shell() {
    let here = folder("advise-watched-killed");
    for (script, code) in
        [("kill -KILL $$", 137), ("kill -SEGV $$", 139), ("exit 4", 4), ("exit 0", 0)]
    {
        let (found, _, err) = watched_script(&here, &[], script);
        assert_eq!(found, Some(code), "{script}: {err}");
        let figures = json(&fs::read_to_string(here.join("seen.json")).expect("it was written"));
        assert_eq!(figures["seen"]["code"], code, "{err}");
        assert!(err.contains("this short"), "{err}");
    }
    fs::write(here.join("plain"), "x").expect("a file");
    for (script, text) in [("bare", "echo\n"), ("lost", "#!/no/such/interpreter\n")] {
        let path = here.join(script);
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    }
    for (program, code) in [
        ("no-such-program-anywhere", 127),
        ("./none", 127),
        ("./plain", 126),
        ("./bare", 126),
        ("./lost", 126),
    ] {
        let output = watched(&here, &["--json=none.json"], &[program]).output().expect("it runs");
        let (found, out, err) = said(&output);
        assert_eq!((found, out.as_str()), (Some(code), ""), "{program}: {err}");
        assert!(!here.join("none.json").exists(), "{err}");
    }
}

#[test]
fn a_signal_goes_on_to_a_watched_program_and_what_it_leaves_behind_is_told() {
    let here = folder("advise-watched-signals");
    let script = "trap 'echo told; exit 7' TERM; (sleep 5 &) ; sleep 0.2; echo begun > begun; \
                  while :; do sleep 0.05; done";
    let child = watched(&here, &["--json=seen.json"], &["sh", "-c", script])
        .env("ISOCHRONE_ATLAS", map().folder.join("isochrone.atlas"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let begin = Instant::now();
    while !here.join("begun").exists() {
        assert!(begin.elapsed() < Duration::from_secs(60), "the program did not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
    let own = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(own, Signal::TERM).expect("it is there");
    let (code, out, err) = said(&child.wait_with_output().expect("it ends"));
    assert_eq!((code, out.as_str()), (Some(7), "told\n"), "{err}");
}

#[test]
fn a_record_that_cannot_be_kept_ends_nothing_and_is_told_another_folder() {
    let here = folder("advise-record");
    fs::write(here.join("file"), "x").expect("a file");
    let output = watched(&here, &[], &["sh", "-c", "exit 5"])
        .env("ISOCHRONE_ATLAS", map().folder.join("isochrone.atlas"))
        .env("XDG_CACHE_HOME", here.join("file"))
        .output()
        .expect("it runs");
    let (code, _, err) = said(&output);
    assert!(code == Some(5) && err.contains("XDG_CACHE_HOME names another folder"), "{err}");
}

/// So many calls of each kind; the last of 1000 bytes.
const CALLS: &str = r#"
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
  int rank, word = 1, sum;
  char bytes[1000];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int call = 0; call < 120000; call++) MPI_Barrier(MPI_COMM_WORLD);
  for (int call = 0; call < 30; call++)
    MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int call = 0; call < 7; call++) MPI_Bcast(bytes, 1000, MPI_BYTE, 0, MPI_COMM_WORLD);
  if (argc > 1 && rank == 1) kill(getpid(), SIGKILL);
  MPI_Finalize();
  return 0;
}
"#;

#[test]
fn calls_of_a_watched_job_are_counted_and_what_lines_save_takes_a_trial() {
    for mpi in ["openmpi", "mpich"] {
        let Some(compiler) = tool(&format!("mpicc.{mpi}")) else { continue };
        let here = folder(&format!("advise-watched-{mpi}"));
        fs::write(here.join("calls.c"), CALLS).expect("a source");
        let words = ["-O1", "-o", "calls", "calls.c"];
        let built = Command::new(compiler).args(words).current_dir(&here).status();
        assert!(built.expect("a compiler").success());
        let library = mpi_library();
        let preload = format!("--preload={}", library.display());
        let launcher = format!("mpirun.{mpi}");
        let run = |options: &[&str], words: &[&str]| {
            let program = [&[launcher.as_str(), "-n", "2", "./calls"], words].concat();
            let options = [&["--json=seen.json", "--html=seen.html"], options].concat();
            let mut command = watched(&here, &options, &program);
            command
                .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
                .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
                .env("OMPI_MCA_rmaps_base_oversubscribe", "1");
            let (code, _, err) = said(&command.output().expect("it runs"));
            let text = fs::read_to_string(here.join("seen.json")).expect("it was written");
            (code, json(&text), err)
        };
        let (code, figures, err) = run(&[&preload], &[]);
        let job = &figures["seen"]["mpi"];
        assert_eq!((code, &job["reports"], &job["ended"]), (Some(0), &2.into(), &true.into()));
        let calls = |name: &str| {
            let all = job["collectives"].as_array().expect("a list");
            let of = all.iter().find(|of| of["name"] == name).expect("it was called");
            (of["calls"].as_u64(), of["sizes"][0]["up_to"].as_u64())
        };
        assert_eq!(calls("barrier"), (Some(120_000), Some(56)), "{job}");
        assert_eq!(calls("allreduce"), (Some(30), Some(56)), "{job}");
        assert_eq!(calls("bcast"), (Some(7), Some(4096)), "{job}");
        let flat = err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains("collectives: rank") && flat.contains("30 allreduce"), "{err}");
        let page = fs::read_to_string(here.join("seen.html")).expect("a page");
        assert!(page.contains("by bytes from or to each rank"), "{mpi}");
        let of = lever(&figures, "collectives");
        if std::thread::available_parallelism().is_ok_and(|cores| cores.get() >= 2) {
            // 60 ns by a barrier are 7.2 ms, from when 2.5 ms are saved, less as much for taking over.
            let saved = |of: &str| job[of].as_f64().expect("a number");
            let saved = saved("saves_s") - saved("costs_s");
            assert!((1.9e-3..=2.3e-3).contains(&saved), "{job}: {saved}");
            assert_eq!((&of["says"], &of["about"]), (&"unknown".into(), &().into()), "{of}");
            assert!(of["why"].as_str().is_some_and(|why| why.contains("takes a trial")), "{of}");
        } else {
            assert_eq!(of["says"], "nothing", "{of}");
        }
        let (_, figures, _) = run(&["--from-outside"], &[]);
        assert!(figures["seen"]["mpi"].is_null(), "{figures}");
        assert_eq!(lever(&figures, "collectives")["says"], "unknown");
        let (code, figures, err) = run(&[&preload], &["killed"]);
        assert_ne!(code, Some(0), "{err}");
        let ends = &figures["seen"]["mpi"]["ended"];
        assert_eq!((ends, err.contains("a rank was killed")), (&false.into(), true), "{err}");
        // A program that is none of an MPI leaves no report.
        let (code, out, err) = said(
            &watched(&here, &["--json", &preload], &[&launcher, "-n", "1", "true"])
                .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
                .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
                .output()
                .expect("it runs"),
        );
        let of = json(&out);
        let why = lever(&of, "collectives")["why"].as_str().unwrap_or_default().to_owned();
        assert!(code == Some(0) && why.contains("no rank left a report"), "{why}: {err}");
    }
}

#[test]
fn what_a_watched_program_allocates_is_seen_where_that_was_asked_for() {
    let here = folder("advise-watched-allocations");
    let library = library();
    let preload = format!("--preload={}", library.display());
    if tool("perl").is_none() {
        return;
    }
    let script = "perl -e 'my @all = map { \"x$_\" } 1..100000'; true";
    let options = ["--allocations", &preload, "--html=seen.html"];
    let (code, _, err) = watched_script(&here, &options, script);
    assert_eq!(code, Some(0), "{err}");
    let figures = json(&fs::read_to_string(here.join("seen.json")).expect("it was written"));
    let all = &figures["seen"]["allocations"];
    assert_eq!(all["processes"], 2, "{all}");
    assert!(
        all["calls"].as_f64() > Some(10_000.0) && all["looked_at"].as_u64() > Some(40),
        "{all}"
    );
    for of in all["sizes"].as_array().expect("a list") {
        let gone: u64 = of["lived"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|lived| lived["objects"].as_u64().expect("a count"))
            .sum();
        let number = |name: &str| of[name].as_u64().expect("a count");
        assert_eq!(gone + number("stayed"), number("followed"), "{of}");
        assert!(number("followed") <= number("looked_at"), "{of}");
    }
    let flat = err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("allocations:") && flat.contains("a second) in 2 processes"), "{err}");
    let page = fs::read_to_string(here.join("seen.html")).expect("a page");
    assert!(page.contains("how long they lived"));
    // Nobody looks unless asked, and a library that is not there is told.
    let (_, _, err) = watched_script(&here, &[], "true");
    let figures = json(&fs::read_to_string(here.join("seen.json")).expect("it was written"));
    assert!(figures["seen"]["allocations"].is_null() && !err.contains("allocations:"), "{err}");
    let (code, _, err) = watched_script(&here, &["--allocations", "--preload=none.so"], "exit 3");
    assert_eq!(code, Some(3), "{err}");
    assert!(
        err.contains("what it allocates was not looked at") && err.contains("none.so"),
        "{err}"
    );
}

#[test]
fn a_static_program_is_told_why_without_advice_on_running_it() {
    let here = folder("advise-watched-static");
    fs::write(here.join("s.c"), "int main(void) { return 5; }\n").expect("a file");
    let built = Command::new("cc").args(["-static", "s.c", "-o", "s"]).current_dir(&here).status();
    if !built.is_ok_and(|status| status.success()) {
        return crate::support::skip("no static program can be linked");
    }
    let output = watched(&here, &["--json=seen.json"], &["./s"]).output().expect("it runs");
    let (code, _, err) = said(&output);
    assert_eq!(code, Some(5), "{err}");
    let figures = json(&fs::read_to_string(here.join("seen.json")).expect("it was written"));
    for name in ["near lines", "huge pages", "allocators"] {
        let lever = lever(&figures, name);
        let why = lever["why"].as_str().expect("a reason");
        assert_eq!(lever["says"], "not_applicable", "{lever}");
        assert!(why.contains("statically linked") && !why.contains("directly"), "{why}");
    }
}

#[test]
fn a_watched_program_needs_no_atlas_and_what_is_unknown_names_the_command() {
    let here = folder("advise-watched-none");
    let output = watched(&here, &["--json"], &["sleep", "0.3"]).output().expect("it runs");
    let (code, out, err) = said(&output);
    assert_eq!(code, Some(0), "{err}");
    let figures = json(&out);
    assert!(figures["atlas"].is_null() && err.contains("no atlas"), "{err}");
    let near = lever(&figures, "near lines");
    assert_eq!((&near["says"], &near["command"]), (&"unknown".into(), &"isochrone map".into()));
    assert!(figures["arguments"].is_null(), "{out}");
    let output = watched(&here, &["--json", "--with-arguments"], &["sleep", "0.1"]).output();
    let (_, out, _) = said(&output.expect("it runs"));
    assert_eq!(json(&out)["arguments"][0], "0.1");
}

#[test]
fn a_working_set_is_seen_where_it_was_asked_for() {
    let here = folder("advise-watched-set");
    let script = "i=0; while [ $i -lt 3000000 ]; do i=$((i + 1)); done; sleep 1";
    let (code, _, err) = watched_script(&here, &["--working-set"], script);
    assert_eq!(code, Some(0), "{err}");
    let figures = json(&fs::read_to_string(here.join("seen.json")).expect("it was written"));
    let set = &figures["seen"]["looks"]["working_set"];
    // A kernel may have no referenced bits to clear, and says so.
    assert!(set["cleared"].as_u64() > Some(0) || err.contains("no working set"), "{figures}");
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(folder).expect("a folder");
    let mut all: Vec<PathBuf> = all.map(|entry| entry.expect("an entry").path()).collect();
    all.sort();
    all
}

/// `advise --try` of a shell script, with files of its own in `here`.
fn tried(here: &Path, options: &[&str], script: &str) -> (Option<i32>, String, String) {
    let atlas = map().folder.join("isochrone.atlas");
    fs::create_dir_all(here.join("tmp")).expect("a folder");
    let output = isochrone(here)
        .args(["advise", "--try", "--seed", "5", "--atlas"])
        .arg(atlas)
        .args(options)
        .args(["--", "sh", "-c", script])
        .env("XDG_CACHE_HOME", here.join("cache"))
        .env("TMPDIR", here.join("tmp"))
        .env("A_SECRET", "of-the-environment")
        .output()
        .expect("it runs");
    assert!(entries(&here.join("tmp")).is_empty(), "temporary files are left");
    said(&output)
}

#[test]
fn a_program_is_tried_under_each_lever_and_the_record_is_kept() {
    let here = folder("advise-try");
    let _machine = mapped_machine();
    let script = "echo run >> runs; echo heard; read line && [ \"$line\" = this ] || exit 9";
    fs::write(here.join("in"), "this\n").expect("a file");
    let options = ["--budget", "6s", "--input", "in", "--json=try.json", "--html=try.html"];
    let (code, out, err) = tried(&here, &options, script);
    let text = fs::read_to_string(here.join("try.json")).expect("it was written");
    let figures = json(&text);
    let wanted = match figures["outcome"].as_str() {
        Some("gain") => 4,
        Some("no_gain" | "nothing_to_try") => 0,
        Some("too_few_runs") => 1,
        other => panic!("{other:?}: {text}"),
    };
    assert_eq!(code, Some(wanted), "{out}{err}");
    assert_eq!(figures["best"].is_null(), figures["outcome"] != "gain", "{text}");
    assert!(!out.contains("heard"), "the program's output goes nowhere: {out}");
    let ran = fs::read_to_string(here.join("runs")).map_or(0, |runs| runs.lines().count());
    // The last one may be ended by the clock before it says anything.
    let made = figures["runs"].as_u64().and_then(|runs| usize::try_from(runs).ok());
    assert!(made.is_some_and(|made| made == ran || made == ran + 1), "{ran} runs: {text}");
    for lever in figures["levers"].as_array().expect("a list") {
        let is_measured = lever["ratio"].is_object();
        let is_told = lever["why"].is_string() || lever["verdict"] == "too_few_runs";
        assert!(is_measured != is_told || lever["verdict"] == "too_few_runs", "{lever}");
        assert!(!is_measured || lever["control"]["median"].is_f64(), "{lever}");
        let name = lever["name"].as_str().expect("a name");
        assert!(out.contains(name), "{name} is not told: {out}");
        // Numbers say of which lever they are.
        let told = out.contains(&format!("\n  {name}: "));
        assert!(lever["stage"] != "confirmation" || !is_measured || told, "{name}: {out}");
    }
    let records = entries(&here.join("cache/isochrone/advice"));
    let kept = fs::read_to_string(records.first().expect("a record")).expect("it is read");
    assert_eq!((records.len(), &json(&kept)), (1, &figures));
    for private in ["heard", "of-the-environment"] {
        assert!(!kept.contains(private), "{kept}");
    }
    assert!(fs::read_to_string(here.join("try.html")).expect("a page").contains("What sh gains"));
}

/// What a program sees of any lever of others.
const SEEN: &str = "\"$LD_PRELOAD$GLIBC_TUNABLES\"";

#[test]
fn a_lever_that_changes_the_output_or_makes_the_program_fail_is_left_out() {
    let here = folder("advise-differs");
    let _machine = mapped_machine();
    for (script, why) in [
        (format!("echo {SEEN}"), "its output differs"),
        (format!("[ -z {SEEN} ]"), "it ended with 1"),
        (format!("[ -z {SEEN} ] || kill -SEGV $$"), "ended by a signal"),
    ] {
        let options = [
            "--budget",
            "20s",
            "--only",
            "huge-pages,mimalloc,jemalloc,tcmalloc",
            "--json=try.json",
        ];
        let (code, out, err) = tried(&here, &options, &script);
        let figures = json(&fs::read_to_string(here.join("try.json")).expect("it was written"));
        let can_be_used = |lever: &&serde_json::Value| lever["verdict"] != "not_applicable";
        for lever in figures["levers"].as_array().expect("a list").iter().filter(can_be_used) {
            assert_eq!(lever["verdict"], "excluded", "{lever}");
            assert!(lever["why"].as_str().is_some_and(|words| words.contains(why)), "{lever}");
        }
        assert_eq!((code, &figures["outcome"]), (Some(0), &"nothing_to_try".into()), "{out}{err}");
    }
}

#[test]
fn a_trial_without_a_whole_block_says_how_much_time_it_takes_in_lines_that_fit() {
    let here = folder("advise-few");
    let _machine = mapped_machine();
    // Each arm once takes more than the part of the time in which blocks of all are begun.
    let options = ["--budget", "4s", "--only", "huge-pages,tier,openmp-order", "--json=try.json"];
    let (code, out, err) = tried(&here, &options, "sleep 0.8");
    let figures = json(&fs::read_to_string(here.join("try.json")).expect("it was written"));
    assert!(out.contains("\n  tier          programs ask"), "names stand in a column: {out}");
    assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
    if figures["outcome"] == "nothing_to_try" {
        return;
    }
    assert_eq!((code, &figures["outcome"]), (Some(1), &"too_few_runs".into()), "{out}{err}");
    assert!(err.contains("1 lever,"), "{err}");
    assert!(figures["needs_s"].as_f64() > figures["budget_s"].as_f64(), "{out}");
}

#[test]
fn a_program_that_never_says_the_same_is_tried_without_a_comparison_of_outputs() {
    let here = folder("advise-clock");
    let _machine = mapped_machine();
    let options = ["--budget", "3s", "--only", "huge-pages,mimalloc", "--json=try.json"];
    let (_, out, err) = tried(&here, &options, "cat /proc/sys/kernel/random/uuid");
    let figures = json(&fs::read_to_string(here.join("try.json")).expect("it was written"));
    let excluded =
        figures["levers"].as_array().expect("a list").iter().any(|of| of["verdict"] == "excluded");
    assert!(!excluded, "{out}{err}");
    assert_eq!(figures["compared_output"], false);
}

/// A launcher of MPI by its name, so that a lever starts the command once more.
#[test]
fn a_trial_goes_on_with_the_command_that_began_it() {
    let here = folder("advise-upgrade");
    let own = installed(&here);
    std::os::unix::fs::symlink(mpi_library(), here.join("bin/libisochrone_mpi.so"))
        .expect("a link");
    let script = format!("#!/bin/sh\n[ -e done ] || {{ : > done; {UPGRADE}; }}\n");
    fs::write(here.join("mpirun"), script).expect("a program");
    fs::set_permissions(here.join("mpirun"), fs::Permissions::from_mode(0o755)).expect("ours");
    let output = Command::new(own)
        .args(["advise", "--try", "--budget", "4s", "--only", "collectives", "--json=try.json"])
        .arg("--atlas")
        .arg(map().folder.join("isochrone.atlas"))
        .args(["--", "./mpirun"])
        .current_dir(&here)
        .env("XDG_CACHE_HOME", here.join("cache"))
        .output()
        .expect("it runs");
    let (_, out, err) = said(&output);
    assert!(here.join("done").exists(), "another file lies there: {out}{err}");
    let figures = json(&fs::read_to_string(here.join("try.json")).expect("it was written"));
    let lever = lever(&figures, "collectives");
    let left_out = ["not_applicable", "excluded"];
    assert!(left_out.iter().all(|word| lever["verdict"] != *word), "{lever}: {err}");
    assert!(figures["runs"].as_u64() > Some(2), "{figures}");
}

#[test]
fn an_interrupted_trial_ends_its_program_and_leaves_nothing() {
    let here = folder("advise-interrupted");
    fs::create_dir_all(here.join("tmp")).expect("a folder");
    let mut child = isochrone(&here)
        .args(["advise", "--try", "--json=try.json", "--html=try.html", "--atlas"])
        .arg(map().folder.join("isochrone.atlas"))
        .args([
            "--only",
            "huge-pages,mimalloc",
            "--",
            "sh",
            "-c",
            "echo $$ > pid; sleep 1000; true",
        ])
        .env("XDG_CACHE_HOME", here.join("cache"))
        .env("TMPDIR", here.join("tmp"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let begin = Instant::now();
    let pid = loop {
        let text = fs::read_to_string(here.join("pid")).unwrap_or_default();
        if let Ok(pid) = text.trim().parse::<i32>() {
            break pid;
        }
        // A hang is found, and no time is judged.
        assert!(begin.elapsed() < Duration::from_secs(60), "the program did not begin");
        std::thread::sleep(Duration::from_millis(10));
    };
    let own = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(own, Signal::INT).expect("it is there");
    let output = child.wait().expect("it ends");
    assert_eq!(output.code(), Some(3));
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    assert!(status.is_empty() || status.contains("State:\tZ"), "the program goes on: {status}");
    assert!(entries(&here.join("tmp")).is_empty(), "temporary files are left");
    assert_eq!(entries(&here), [here.join("pid"), here.join("tmp")]);
}
