//! `isochrone run`: the program as if it were run directly, and what is said of it.

use std::fs;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::support::{folder, isochrone, json, library, map, mapped_machine, run, tool};

/// `isochrone run` with the library of this build and the map of this machine, which places whatever
/// the map promises.
fn under(folder: &Path, options: &[&str]) -> Command {
    let mut command = judged(folder, &map().folder.join("isochrone.atlas"), options);
    command.args(["--force", "--"]);
    command
}

/// The same with an atlas, where that promises something; the words before the program are missing.
fn judged(folder: &Path, atlas: &Path, options: &[&str]) -> Command {
    let mut command = isochrone(folder);
    command.args(["run", "--preload"]).arg(library()).arg("--atlas").arg(atlas).args(options);
    command.env("TMPDIR", folder);
    command
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// A program that allocates a good deal of small objects by `malloc`, and prints something.
const BUSY: [&str; 3] =
    ["perl", "-e", r#"my @a = map { "x" x 24 . $_ } 1..300000; print scalar(@a), "\n";"#];

#[test]
fn status_input_and_output_are_the_programs() {
    let here = folder("run-status");
    let status = |words: &[&str]| under(&here, &[]).args(words).output().expect("it runs");
    assert_eq!(status(&["sh", "-c", "exit 7"]).status.code(), Some(7));
    assert_eq!(status(&["sh", "-c", "kill -KILL $$"]).status.code(), Some(137));
    let mut child = under(&here, &[])
        .args(["sh", "-c", "read line; echo got $line; echo oops >&2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    child.stdin.take().expect("a pipe").write_all(b"this\n").expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(said(&output), ("got this\n".into(), "oops\n".into()));
    let left: Vec<PathBuf> =
        fs::read_dir(&here).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    assert!(left.is_empty(), "temporary files are left: {left:?}");
}

#[test]
fn small_objects_are_placed_and_the_report_says_so() {
    let Some(_) = tool("perl") else { return };
    let here = folder("run-report");
    let _machine = mapped_machine();
    // Pages are decoded in a part of the time that the program takes, so it takes some.
    let again = format!("for my $round (1..12) {{ {} }}", BUSY[2]);
    let words = [BUSY[0], BUSY[1], &again];
    let direct = Command::new(words[0]).args(&words[1..]).output().expect("perl runs");
    let args = ["--report", "--json", "report.json"];
    let output = under(&here, &args).args(words).output().expect("it runs");
    let (out, err) = said(&output);
    assert!(output.status.success(), "{err}");
    assert_eq!(out, said(&direct).0, "the same output as without");
    for words in ["placed", "near", "classified", "delegated", "slices"] {
        assert!(err.contains(words), "{words} is missing:\n{err}");
    }
    let text = fs::read_to_string(here.join("report.json")).expect("it was written");
    let record = json(&text);
    assert_eq!((&record["code"], &record["mode"]), (&0.into(), &"aware".into()));
    let processes = record["processes"].as_array().expect("a list");
    let most = |p: &&serde_json::Value| p["placeable"]["bytes"].as_u64();
    let process = processes.iter().max_by_key(most).expect("a process");
    // A quick atlas may not hold what the cores see now; then placing ends, and that is said.
    let bytes = |count: &serde_json::Value| count["bytes"].as_u64().unwrap_or(0);
    let reasons = process["delegated"].as_array().expect("a list");
    let unknown = reasons.iter().find(|one| one["reason"] == "unknown_base").map_or(0, bytes);
    let (placed, all) = (bytes(&process["placed"]), bytes(&process["placeable"]));
    assert!(placed > 0 && (placed + unknown) * 10 >= all * 9, "{placed} of {all} bytes\n{text}");
    assert!(process["placed_share"].is_number(), "{text}");
    let classified = process["classified_pages"].as_u64().is_some_and(|pages| pages > 0);
    assert!(classified || err.contains("no base of the atlas"), "{err}\n{text}");
    assert!(process["startup_us"].is_number() && process["drift_events"].is_number(), "{text}");
    // Each round makes 300,000 strings, and more. They are counted as long as the library places.
    let rate = record["malloc_calls_per_s"].as_f64().zip(record["seconds"].as_f64());
    let has_ended = processes.iter().any(|process| process["placed_no_more"].is_string());
    assert!(has_ended || rate.is_some_and(|(calls, s)| calls * s > 300_000.0), "{text}");
}

#[test]
fn each_mode_and_a_small_limit_lose_nothing() {
    let Some(_) = tool("perl") else { return };
    let here = folder("run-modes");
    let _machine = mapped_machine();
    let modes: [&[&str]; 4] = [
        &["--mode", "oblivious"],
        &["--arena-limit", "1M"],
        &["--check", "--pin", "spread"],
        &["--pin", "compact", "--waste", "100%", "--slack", "4M"],
    ];
    for options in modes {
        let output = under(&here, options).args(BUSY).output().expect("it runs");
        let (out, err) = said(&output);
        assert!(output.status.success(), "{options:?}: {err}");
        assert_eq!(out, "300000\n", "{options:?}");
    }
}

#[test]
fn a_program_may_receive_what_it_could_receive_without_us() {
    let here = folder("run-mask");
    let blocked = |output: &Output| {
        let (out, err) = said(output);
        let line = out.lines().find(|line| line.starts_with("SigBlk:"));
        line.unwrap_or_else(|| panic!("no mask: {out}{err}")).to_owned()
    };
    let words = ["cat", "/proc/self/status"];
    let direct = Command::new(words[0]).arg(words[1]).output().expect("cat runs");
    let output = under(&here, &[]).args(words).output().expect("it runs");
    assert_eq!(blocked(&output), blocked(&direct));
    // A shell waits for its children by their signal.
    let output = under(&here, &[]).args(["sh", "-c", "true & true & wait; echo done"]).output();
    assert_eq!(said(&output.expect("it runs")).0, "done\n");
}

#[test]
fn a_program_has_no_descriptor_that_it_would_not_have_without_us() {
    let here = folder("run-descriptors");
    let listing = "for f in 3 4 5 6 7 8 9; do [ -e /proc/$$/fd/$f ] && echo $f; done; echo end";
    let words = ["sh", "-c", listing];
    let direct = Command::new(words[0]).args(&words[1..]).output().expect("a shell runs");
    let output = under(&here, &[]).args(words).output().expect("it runs");
    assert_eq!(said(&output).0, said(&direct).0);
}

#[test]
fn processes_of_a_run_are_bound_to_different_cores() {
    let (Some(_), Some(_)) = (tool("perl"), tool("taskset")) else { return };
    let here = folder("run-bound");
    let _machine = mapped_machine();
    // Each says where it is bound, and stays while the other one begins.
    let script = r#"open F, "/proc/self/status"; my @a = map { "x" x 24 . $_ } 1..200000;
        while (<F>) { print if /Cpus_allowed_list/ } $| = 1;
        for (1..50) { last if -e $ARGV[0]; select undef, undef, undef, 0.1 }"#;
    let both = format!(
        "perl -e '{script}' stop > a & perl -e '{script}' stop > b & \
         sleep 1; touch stop; wait; cat a b; \
         taskset -c 1 perl -e '{script}' stop"
    );
    let bound = ["--pin", "compact"];
    let output = under(&here, &bound).args(["sh", "-c", &both]).current_dir(&here).output();
    let (out, err) = said(&output.expect("it runs"));
    let mut cores: Vec<&str> =
        out.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(cores.len(), 3, "{out}{err}");
    if std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1) {
        assert_eq!(cores.pop(), Some("1"), "what the program itself has bound stays");
        assert!(cores.iter().all(|core| core.parse::<u16>().is_ok()), "one core each: {out}{err}");
        assert_ne!(cores[0], cores[1], "two processes have a core each: {out}{err}");
    }
}

#[test]
fn without_being_asked_no_thread_is_bound_and_the_report_says_what_that_means() {
    let Some(_) = tool("perl") else { return };
    let here = folder("run-unbound");
    let _machine = mapped_machine();
    // It looks when it has more in use than a second-level cache holds.
    let script = r#"my @a = map { "x" x 24 . $_ } 1..200000; open F, "/proc/self/status";
        while (<F>) { print if /Cpus_allowed_list/ }"#;
    let direct = Command::new("perl").args(["-e", script]).output().expect("perl runs");
    let output =
        under(&here, &["--report"]).args(["perl", "-e", script]).output().expect("it runs");
    let (out, err) = said(&output);
    assert_eq!(out, said(&direct).0, "{err}");
    assert!(err.contains("threads are not bound (--pin none)"), "{err}");
}

/// An atlas of this machine in which all lines of the cache are equally far.
pub(crate) fn alike(folder: &Path) -> PathBuf {
    let own = map().folder.join("isochrone.atlas");
    let mut contents = isochrone_atlas_store::load(&own).expect("the map of this machine");
    for level in contents.levels.iter_mut().filter(|level| level.level == "llc") {
        let patterns = level.bases.iter_mut().flat_map(|base| &mut base.patterns);
        patterns.for_each(|pattern| pattern.fill(40.0));
    }
    // Other tests beside this one are no reason here.
    contents.quality.clear();
    let atlas = folder.join("alike.atlas");
    isochrone_atlas_store::save(&contents, &atlas).expect("it is saved");
    atlas
}

#[test]
fn where_the_atlas_predicts_no_gain_nothing_is_placed_unless_it_is_forced() {
    let here = folder("run-no-gain");
    let atlas = alike(&here);
    let run = |options: &[&str], words: &[&str]| {
        let output =
            judged(&here, &atlas, options).arg("--").args(words).output().expect("it runs");
        let (out, err) = said(&output);
        (output.status.code(), out, err)
    };
    let (code, out, err) = run(&["--json", "run.json"], &["sh", "-c", "echo $LD_PRELOAD; exit 7"]);
    assert_eq!((code, out.as_str()), (Some(7), "\n"), "as without the library: {err}");
    let begins = err.starts_with("isochrone: predicted gain 1.00: nothing is placed, since ");
    assert!(begins && err.ends_with("(--force places all the same)\n"), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
    let text = fs::read_to_string(here.join("run.json")).expect("it was written");
    let record = json(&text);
    assert!(record["nothing_placed"].as_str().is_some_and(|why| why.contains("1.00")), "{text}");
    assert_eq!(record["judgement"]["places"], false, "{text}");
    assert!(record["malloc_calls_per_s"].is_null(), "nobody counted: {text}");
    let (code, out, err) = run(&["--force"], &["sh", "-c", "echo $LD_PRELOAD; exit 7"]);
    assert!(code == Some(7) && out.contains("libisochrone") && err.is_empty(), "{out}{err}");
    // The allocator that was asked for is there either way.
    let own = ["--malloc", library().to_str().expect("a plain path")];
    let (_, out, err) = run(&own, &["sh", "-c", "echo $LD_PRELOAD"]);
    assert_eq!(Path::new(out.trim_end()), library(), "{err}");
    let forced = [&own[..], &["--force"]].concat();
    let (_, out, _) = run(&forced, &["sh", "-c", "echo $LD_PRELOAD"]);
    assert_eq!(out.trim_end().split(':').count(), 2, "{out}");
}

/// Learning begins earlier in a process that is told so.
#[test]
fn processes_are_told_whether_the_atlas_promises_a_gain() {
    let here = folder("run-promised");
    let own = map().folder.join("isochrone.atlas");
    let told = |atlas: &Path, options: &[&str], copy: &str| {
        let mut command = judged(&here, atlas, options);
        let output = command.args(["--", "sh", "-c", copy]).output().expect("it runs");
        assert!(output.status.success(), "{}", said(&output).1);
        let bytes = fs::read(here.join("told")).expect("it was copied");
        fs::remove_file(here.join("told")).expect("ours");
        isochrone_malloc::Config::from_bytes(&bytes).expect("a configuration").promised
    };
    let config = r#"cp "$ISOCHRONE_CONFIG" told"#;
    // By this one a line of eight is far, so that much is to be gained.
    let atlas = format!(r#"{config}; cp "${{ISOCHRONE_CONFIG%/*}}/strange.atlas" ."#);
    assert!(!told(&own, &["--aside"], &atlas), "it steps aside");
    let strange = here.join("strange.atlas");
    let mut contents = isochrone_atlas_store::load(&strange).expect("an atlas");
    // Other tests beside this one are no reason here.
    contents.quality.clear();
    isochrone_atlas_store::save(&contents, &strange).expect("it is saved");
    assert!(told(&strange, &[], config));
    assert!(!told(&strange, &["--force"], config), "it places at once");
}

#[test]
fn where_nothing_is_placed_the_command_becomes_the_program() {
    let here = folder("run-becomes");
    let atlas = alike(&here);
    let under = |words: &[&str]| {
        let mut command = judged(&here, &atlas, &[]);
        command.arg("--").args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let child = under(&["sh", "-c", "echo $$ $PPID"]).spawn().expect("it starts");
    let own = format!("{} {}\n", child.id(), std::process::id());
    assert_eq!(said(&child.wait_with_output().expect("it ends")).0, own, "no process of ours");
    // What it finds is what it would find.
    let looks = "grep -E '^(Sig[^Q]|Shd|Cpus_allowed_list|Seccomp)' /proc/self/status; \
                 ls /proc/self/fd; env | grep -v ^_=";
    let mut direct = Command::new("sh");
    for (name, value) in under(&[]).get_envs() {
        match value {
            Some(value) => direct.env(name, value),
            None => direct.env_remove(name),
        };
    }
    let direct = direct.current_dir(&here).args(["-c", looks]).output().expect("it runs");
    let output = under(&["sh", "-c", looks]).output().expect("it runs");
    assert_eq!(said(&output).0, said(&direct).0, "{}", said(&output).1);
    // A shell tells a signal from an exit code; so does who waits for this one.
    let output = under(&["sh", "-c", "kill -KILL $$"]).output().expect("it runs");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&output.status), Some(9));
    let output = under(&["sh", "-c", "exit 7"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(7));
    let left: Vec<PathBuf> =
        fs::read_dir(&here).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    assert_eq!(left, [atlas], "no temporary file is left");
}

#[test]
fn a_program_that_brings_its_own_allocator_is_told_of() {
    let Some(_) = tool("python3") else { return };
    let here = folder("run-own");
    let words = ["python3", "-c", "print(1)"];
    let mut command = under(&here, &[]);
    let output = command.args(words).env_remove("PYTHONMALLOC").output().expect("it runs");
    let (out, err) = said(&output);
    assert_eq!(out, "1\n", "{err}");
    if fs::read(tool("python3").expect("it is there"))
        .is_ok_and(|bytes| bytes.starts_with(b"\x7fELF"))
    {
        assert!(err.contains("a heap of its own (PYTHONMALLOC=malloc"), "{err}");
    }
    let mut command = under(&here, &[]);
    let output = command.args(words).env("PYTHONMALLOC", "malloc").output().expect("it runs");
    assert_eq!(said(&output), ("1\n".into(), String::new()));
}

#[test]
fn stepping_aside_changes_nothing_of_what_a_program_says() {
    let Some(_) = tool("perl") else { return };
    let here = folder("run-aside");
    let atlas = map().folder.join("isochrone.atlas");
    let options = ["--aside", "--json", "run.json", "--"];
    let output = judged(&here, &atlas, &options).args(BUSY).output().expect("it runs");
    let (out, err) = said(&output);
    assert_eq!(out, "300000\n", "{err}");
    let text = fs::read_to_string(here.join("run.json")).expect("it was written");
    let record = json(&text);
    let process = &record["processes"][0];
    // What comes after placing has ended is not counted.
    assert!(
        record["judgement"].is_null() && process["placeable"]["objects"].as_u64() > Some(0),
        "{text}"
    );
    // No line is known to be near by an atlas that fits no machine.
    assert!(process["llc"]["handed_out_ns"].is_null(), "{text}");
}

#[test]
fn signals_reach_the_program_once() {
    let here = folder("run-signals");
    let script = "trap 'exit 42' TERM; echo ready; while :; do sleep 0.1; done";
    let mut child = under(&here, &[])
        .args(["sh", "-c", script])
        // Its own group: what is passed on is passed on by isochrone.
        .process_group(0)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut ready = String::new();
    let mut out = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
    std::io::BufRead::read_line(&mut out, &mut ready).expect("it says so");
    std::thread::sleep(Duration::from_millis(50));
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, Signal::TERM).expect("it is there");
    assert_eq!(child.wait().expect("it ends").code(), Some(42));
}

#[test]
fn a_signal_to_the_whole_group_reaches_the_program_once() {
    let here = folder("run-group-signals");
    // It counts what is delivered; two that come at once are counted as two.
    let script = "$| = 1; my $n = 0; $SIG{USR1} = sub { $n++ }; print \"ready\\n\"; \
                  while (<STDIN>) { select undef, undef, undef, 0.3; print \"$n\\n\" }";
    let mut child = under(&here, &[])
        .args(["perl", "-e", script])
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut out = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = move || {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut out, &mut line).expect("it says so");
        line.trim().to_owned()
    };
    assert_eq!(line(), "ready");
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process id");
    let mut asks = child.stdin.take().expect("a pipe");
    let mut count = || {
        std::thread::sleep(Duration::from_millis(300));
        asks.write_all(b"\n").expect("it reads");
        line()
    };
    kill_process_group(pid, Signal::USR1).expect("it is there");
    assert_eq!(count(), "1", "to the group");
    kill_process(pid, Signal::USR1).expect("it is there");
    assert_eq!(count(), "2", "to isochrone alone");
    kill_process_group(pid, Signal::USR1).expect("it is there");
    assert_eq!(count(), "3", "to the group again");
    drop(asks);
    assert!(child.wait().expect("it ends").success());
}

/// Neither one that comes while the program is started is lost, nor one to a program that has a group of its own.
#[test]
fn a_signal_to_the_whole_group_is_never_lost() {
    let here = folder("run-group-signals-early");
    let ended = |words: &[&str], after: Duration| {
        let mut child = under(&here, &[]).args(words).process_group(0).spawn().expect("it starts");
        std::thread::sleep(after);
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process_group(pid, Signal::TERM).expect("it is there");
        let status = child.wait().expect("it ends");
        status.signal().map(|signal| 128 + signal).or(status.code())
    };
    for step in 0..24 {
        let after = Duration::from_micros(500 * step);
        assert_eq!(ended(&["sleep", "60"], after), Some(143), "after {after:?}");
    }
    if tool("timeout").is_some() {
        let own_group = ["timeout", "60", "sleep", "60"];
        assert_eq!(ended(&own_group, Duration::from_secs(1)), Some(143));
    }
}

/// What comes before there is a program comes to it, whether it asks for an end or not.
#[test]
fn a_signal_before_the_program_starts_reaches_it() {
    let here = folder("run-early-signals");
    for step in 0..16 {
        for options in [&[][..], &["--report"]] {
            let mut run = under(&here, options);
            let mut child = run.args(["sleep", "60"]).process_group(0).spawn().expect("it starts");
            std::thread::sleep(Duration::from_micros(1500 * step));
            let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("an id");
            kill_process(pid, Signal::USR1).expect("it is there");
            let status = child.wait().expect("it ends");
            let code = status.signal().map(|signal| 128 + signal).or(status.code());
            assert_eq!(code, Some(138), "step {step}, {options:?}");
        }
    }
}

/// A process whose parent ignores ends of children has to wait for the program all the same, which ignores them, too.
#[test]
fn a_program_ends_where_ends_of_children_are_ignored() {
    let here = folder("run-no-children");
    let run = under(&here, &["--report"]);
    let ended = |words: &[&str]| {
        let mut perl = Command::new("perl");
        perl.args(["-e", "$SIG{CHLD} = 'IGNORE'; exec @ARGV"]).arg(run.get_program());
        perl.args(run.get_args()).args(words).current_dir(&here).output().expect("it runs")
    };
    assert_eq!(ended(&["sh", "-c", "sleep 0.2; exit 5"]).status.code(), Some(5));
    let (out, err) = said(&ended(&["grep", "SigIgn", "/proc/self/status"]));
    let ignored =
        out.trim().rsplit('\t').next().and_then(|mask| u64::from_str_radix(mask, 16).ok());
    let sigchld = 1 << (17 - 1);
    assert!(ignored.is_some_and(|mask| mask & sigchld != 0), "{out}{err}");
}

/// At a terminal isochrone stops with the program. Who lets that go on may know nothing of isochrone.
#[test]
fn a_program_that_stops_at_a_terminal_goes_on_and_ends() {
    let here = folder("run-stops");
    let Some(script) = tool("script") else { return };
    let run = under(&here, &[]);
    let words = std::iter::once(run.get_program()).chain(run.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let stops = "(sleep 0.3; kill -CONT $$) & kill -STOP $$; echo back; exit 3";
    let line = format!("{} sh -c '{stops}'; echo code $?", words.join(" "));
    let mut typed = Command::new("timeout");
    typed.args(["-k", "1", "30"]).arg(script).args(["-qec", &line, "/dev/null"]);
    let output = typed.current_dir(&here).stdin(Stdio::null()).output().expect("it runs");
    let (out, err) = said(&output);
    assert!(out.contains("back") && out.contains("code 3"), "{out}{err}");
}

/// What a program sends to its parent comes to the one that it would have.
#[test]
fn a_signal_to_the_parent_comes_to_isochrones_own() {
    let here = folder("run-parent");
    let run = under(&here, &[]);
    let counts = "$SIG{USR1} = sub { $n++ }; system(@ARGV); print $n, ' ', $? >> 8";
    let mut perl = Command::new("perl");
    perl.args(["-e", counts]).arg(run.get_program()).args(run.get_args());
    perl.args(["sh", "-c", "kill -USR1 $PPID; sleep 0.2; exit 4"]);
    let (out, err) = said(&perl.current_dir(&here).output().expect("it runs"));
    assert_eq!(out, "1 4", "{err}");
}

#[test]
fn what_was_preloaded_before_stays() {
    let here = folder("run-preload");
    let output = under(&here, &[])
        .args(["sh", "-c", "echo $LD_PRELOAD"])
        .env("LD_PRELOAD", "libm.so.6")
        .output()
        .expect("it runs");
    let (out, err) = said(&output);
    assert!(out.trim_end().ends_with(":libm.so.6") && out.contains("libisochrone"), "{out}{err}");
}

/// Compiles a C program there; whether it worked.
fn compiled(folder: &Path, arguments: &[&str], text: &str) -> bool {
    fs::write(folder.join("source.c"), text).expect("a file");
    let mut compiler = Command::new("cc");
    compiler.current_dir(folder).arg("source.c").args(arguments);
    compiler.status().expect("a C compiler is installed").success()
}

#[test]
fn what_cannot_work_is_refused_with_the_reason() {
    let here = folder("run-refused");
    let refused = |words: &[&str]| {
        let output = under(&here, &[]).args(words).output().expect("it runs");
        (output.status.code(), said(&output).1)
    };
    let (code, err) = refused(&["no-such-program-anywhere"]);
    assert!(code == Some(127) && err.contains("not found"), "{code:?} {err}");
    fs::write(here.join("text"), "hello").expect("a file");
    let (code, err) = refused(&["./text"]);
    assert!(code == Some(126) && err.contains("not executable"), "{code:?} {err}");
    assert!(compiled(
        &here,
        &["-shared", "-o", "libasan.so.9", "-Wl,-soname,libasan.so.9"],
        "int asan;"
    ));
    let asks = ["-o", "checked", "libasan.so.9", "-Wl,--no-as-needed"];
    assert!(compiled(&here, &asks, "extern int asan; int main(void) { return asan; }"));
    let (code, err) = refused(&["./checked"]);
    assert!(code == Some(126) && err.contains("AddressSanitizer"), "{code:?} {err}");
    // Debian links it statically, so that it works when no library does.
    if Path::new("/sbin/ldconfig").exists() {
        let (code, err) = refused(&["/sbin/ldconfig", "--version"]);
        assert!(code == Some(126) && err.contains("statically linked"), "{code:?} {err}");
    }
    let (output, _, err) = run(&here, &["run", "--malloc", "nomalloc", "--", "true"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(err.contains("jemalloc") || err.contains("cargo preload"), "{err}");
    let (output, _, err) = run(&here, &["run", "--preload", "none.so", "--", "true"]);
    assert!(output.status.code() == Some(125) && err.contains("none.so"), "{err}");
    let (output, _, _) = run(&here, &["run", "--near", "5/4", "--", "true"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn another_machines_atlas_is_refused_where_it_is_named() {
    let here = folder("run-other-atlas");
    let own = map().folder.join("isochrone.atlas");
    let mut contents = isochrone_atlas_store::load(&own).expect("the map of this machine");
    contents.fingerprint.words[1] = "cpu: another".into();
    contents.fingerprint.hash ^= 1;
    isochrone_atlas_store::save(&contents, &here.join("other.atlas")).expect("it is saved");
    let output = isochrone(&here)
        .args(["run", "--atlas", "other.atlas", "--preload"])
        .arg(library())
        .args(["--", "true"])
        .output()
        .expect("it runs");
    let (_, err) = said(&output);
    assert_eq!(output.status.code(), Some(125), "{err}");
    assert!(err.contains("another machine") && err.contains("isochrone map"), "{err}");
}

#[test]
fn without_an_atlas_one_is_measured_and_kept() {
    let here = folder("run-first");
    let _machine = mapped_machine();
    let first = |words: &[&str]| {
        let output = isochrone(&here)
            .args(["run", "--force", "--preload"])
            .arg(library())
            .args(words)
            .env("XDG_CACHE_HOME", here.join("cache"))
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{}", said(&output).1);
        said(&output).1
    };
    let err = first(&["--", "true"]);
    assert!(err.contains("measuring a quick one") && err.contains("kept as"), "{err}");
    let kept = fs::read_dir(here.join("cache/isochrone")).expect("a folder").count();
    assert_eq!(kept, 1);
    assert_eq!(first(&["--", "true"]), "", "the second time it is there");
}

#[test]
fn runs_are_compared_by_turns_and_the_program_is_heard_once() {
    let Some(_) = tool("perl") else { return };
    let here = folder("run-compare");
    let _machine = mapped_machine();
    let args = ["--compare", "--budget", "4s", "--json", "run.json"];
    // Every run reads the same; what is left in the folder says how many there were.
    let script = r#"open F, ">>runs"; print F "x\n"; close F; my $l = <STDIN>;
        die "no input" unless $l eq "this\n"; my @a = map { "x" x 24 . $_ } 1..300000; print "heard $l""#;
    let mut child = under(&here, &args)
        .args(["perl", "-e", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    child.stdin.take().expect("a pipe").write_all(b"this\n").expect("it reads");
    let (out, err) = said(&child.wait_with_output().expect("it ends"));
    assert_eq!(out, "heard this\n", "the other runs' output is thrown away: {err}");
    assert!(err.contains("resident memory") && err.contains("with glibc"), "{err}");
    let text = fs::read_to_string(here.join("run.json")).expect("it was written");
    let record = json(&text);
    let compare = &record["compare"];
    let ratio = compare["rss_ratio"].as_f64();
    assert!(ratio.is_some_and(|r| r > 0.5 && r < 20.0), "{text}");
    let verdicts = ["faster", "slower", "no_difference", "too_few_runs"];
    assert!(verdicts.iter().any(|word| compare["verdict"] == *word), "{text}");
    let runs: usize = compare["series"]["blocks"]
        .as_array()
        .expect("blocks")
        .iter()
        .map(|block| block["runs"].as_array().expect("runs").len())
        .sum();
    let made = fs::read_to_string(here.join("runs")).expect("it ran").lines().count();
    // The first run is not compared, and a block that had no time for its end counts for nothing.
    assert!(made > runs && made <= runs + 1 + 5, "{made} runs, {runs} that count: {text}");
}

/// What an upgrade does amid a comparison: another file lies where the command was.
pub(crate) const UPGRADE: &str =
    "printf '#!/bin/sh\\nexit 99\\n' > new && chmod +x new && mv new bin/isochrone";

/// The command under a name of its own, which may be taken from it.
pub(crate) fn installed(here: &Path) -> PathBuf {
    let own = here.join("bin/isochrone");
    fs::create_dir_all(here.join("bin")).expect("a folder");
    fs::hard_link(crate::command(), &own).expect("of one file system");
    own
}

#[test]
fn a_comparison_goes_on_with_the_command_that_began_it() {
    let here = folder("run-compare-upgrade");
    let script = format!("echo run >> runs; [ -e done ] || {{ : > done; {UPGRADE}; }}");
    let output = Command::new(installed(&here))
        .args(["run", "--force", "--compare", "--budget", "2s", "--json=run.json", "--atlas"])
        .arg(map().folder.join("isochrone.atlas"))
        .arg("--preload")
        .arg(library())
        .args(["--", "sh", "-c", &script])
        .current_dir(&here)
        .env("TMPDIR", &here)
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    let err = said(&output).1;
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(here.join("done").exists(), "another file lies there: {err}");
    let record = json(&fs::read_to_string(here.join("run.json")).expect("it was written"));
    assert_eq!(record["compare"]["without"]["code"], 0, "{err}");
    assert!(fs::read_to_string(here.join("runs")).expect("it ran").lines().count() > 1, "{err}");
}

#[test]
fn a_program_that_fails_is_not_compared_and_its_code_comes_back() {
    let here = folder("run-compare-fails");
    let run = |script: &str| {
        let mut command = under(&here, &["--compare", "--budget", "60s"]);
        let output = command.args(["sh", "-c", script]).current_dir(&here).output();
        let output = output.expect("it runs");
        (output.status.code(), said(&output).1)
    };
    let (code, err) = run("exit 7");
    assert!(code == Some(7) && err.contains("ended with 7: nothing is compared"), "{err}");
    let (code, err) = run("[ -e once ] && exit 5; touch once");
    assert!(code == Some(5) && err.contains("ended with 5, and the first one with 0"), "{err}");
}

#[test]
fn a_comparison_that_is_asked_to_end_ends_by_that_signal_whenever_it_comes() {
    let here = folder("run-compare-signal");
    // One that makes nothing of it, and one that ends well.
    for script in ["sleep 0.1", "trap 'exit 0' TERM; sleep 0.1 & wait"] {
        for after_ms in [5, 15, 30, 100, 400, 1200] {
            let child = under(&here, &["--compare", "--budget", "60s"])
                .args(["sh", "-c", script])
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("it starts");
            std::thread::sleep(Duration::from_millis(after_ms));
            let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a number");
            kill_process(pid, Signal::TERM).expect("it is there");
            let output = child.wait_with_output().expect("it ends");
            // Before anything was started it ends as any program does.
            let shell = output.status.code().or(output.status.signal().map(|by| 128 + by));
            assert_eq!(shell, Some(143), "{script:?}, {after_ms} ms: {}", said(&output).1);
        }
    }
}
