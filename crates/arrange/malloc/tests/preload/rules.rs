//! One program in C for each rule that a process can rely on (docs/method/allocator.md, "What a process can rely
//! on"). Each runs as it is and under the library: over glibc with an atlas of alike lines, over glibc with one
//! that no core has and that is placed by all the same, and over mimalloc. It ends in the same way and prints the
//! same, and objects of it were placed, or nothing was tried.

mod hostile;
mod lives;
mod misuse;
mod space;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use isochrone_malloc::{Pin, Report};

use crate::support::{Rig, installed, rule, rule_library, shared_library};
use crate::vain::strange_atlas;

/// The allocator that everything is tested over beside glibc's.
const MIMALLOC: &str = "libmimalloc.so.2";

/// A way to run a program under the library: what is told, and what is preloaded behind it.
pub(crate) struct Way {
    pub(crate) name: &'static str,
    rig: Rig,
    pub(crate) below: Option<PathBuf>,
}

/// What lies below the library: glibc's alone, and mimalloc where it is installed.
fn belows() -> Vec<Option<PathBuf>> {
    std::iter::once(None).chain(shared_library(MIMALLOC).map(Some)).collect()
}

/// All ways; without mimalloc where that is not installed.
fn ways() -> Vec<Way> {
    let forced = |rig: Rig| rig.with(|config| config.force = true);
    let mut ways = vec![
        Way { name: "over glibc", rig: forced(Rig::new()), below: None },
        Way {
            name: "over glibc, by a strange atlas",
            rig: forced(Rig::of_atlas(&strange_atlas())),
            below: None,
        },
    ];
    if let Some(below) = shared_library(MIMALLOC) {
        ways.push(Way { name: "over mimalloc", rig: forced(Rig::new()), below: Some(below) });
    }
    ways
}

impl Way {
    /// A run without the library, over the same malloc.
    fn plain(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if let Some(below) = &self.below {
            command.env("LD_PRELOAD", below);
        }
        command
    }

    /// A run under the library.
    fn placed(&self, program: &Path) -> Command {
        self.rig.command_over(self.below.as_deref(), program)
    }
}

/// Runs a program in every way, as `change` says: each time it ends as without the library and prints the same. Gives
/// what was said without and with it, and the report of the process that had most to place, if one was left.
pub(crate) fn held(
    program: &Path,
    change: impl Fn(&mut Command),
    mut look: impl FnMut(&Way, [&Output; 2], Option<&Report>),
) {
    for way in ways() {
        let [plain, placed] = [way.plain(program), way.placed(program)].map(|mut command| {
            change(&mut command);
            command.output().expect("it runs")
        });
        let text = |output: &Output| {
            let [out, said] = [&output.stdout, &output.stderr].map(|t| String::from_utf8_lossy(t));
            format!("{}\n{out}{said}", output.status)
        };
        let (without, with) = (text(&plain), text(&placed));
        assert_eq!(placed.status, plain.status, "{}:\n{without}\n{with}", way.name);
        assert!(placed.stdout == plain.stdout, "{}:\n{without}\n{with}", way.name);
        let largest = way.rig.reports().into_iter().max_by_key(|report| report.placed().objects);
        look(&way, [&plain, &placed], largest.as_ref());
    }
}

/// The same of a program of the suite, which succeeds, says nothing, and of which so many objects are placed.
fn succeeds(program: &'static str, arguments: &[&str], objects: u64) {
    held(
        &rule(program),
        |command| _ = command.args(arguments),
        |way, [plain, placed], report| {
            let name = way.name;
            assert!(plain.status.success(), "{name}, {program} {arguments:?}: {plain:?}");
            assert_eq!(placed.stderr, plain.stderr, "{name}, {program} {arguments:?}");
            let found = report.map_or(0, |report| report.placed().objects);
            assert!(found >= objects, "{name}, {program} {arguments:?}: {found} placed");
        },
    );
}

/// What a program has said: a number.
fn number(output: &Output) -> i64 {
    let text = String::from_utf8_lossy(&output.stderr);
    text.trim().parse().unwrap_or_else(|_| panic!("no number: {text}"))
}

/// Rule 1: so much more of the stack than the next malloc takes, where the system is asked for something.
const STACK_MORE: i64 = 3 << 10;
/// And where it is not.
const STACK_MORE_QUIET: i64 = 2 << 10;

#[test]
fn rule_1_a_call_takes_little_more_of_the_stack() {
    for (what, more) in [("quiet", STACK_MORE_QUIET), ("all", STACK_MORE)] {
        held(
            &rule("stacks"),
            |command| _ = command.arg(what),
            |way, [plain, placed], report| {
                let taken = number(placed) - number(plain);
                assert!(taken <= more, "{}, {what}: {taken} bytes more", way.name);
                assert!(report.is_some_and(|report| report.placed().objects > 20_000));
            },
        );
    }
}

/// Arguments, environment and the dynamic linker have their part of it.
#[test]
fn rule_1_a_process_begins_on_a_small_stack() {
    const SMALL: &str = r#"ulimit -s 48
        exec env -i LD_PRELOAD="$LD_PRELOAD" ISOCHRONE_CONFIG="$ISOCHRONE_CONFIG" "$0" count"#;
    let program = rule("threads");
    held(
        Path::new("/bin/sh"),
        |command| _ = command.args(["-c", SMALL]).arg(&program),
        |way, [plain, _], report| {
            assert!(plain.status.success(), "{}: {plain:?}", way.name);
            assert!(report.is_some_and(|report| report.placed().objects > 300_000), "{}", way.name);
        },
    );
}

#[test]
fn rule_2_a_process_has_the_threads_that_it_made() {
    for what in ["count", "user", "enter", "last"] {
        succeeds("threads", &[what], 300_000);
    }
}

#[test]
fn rule_3_a_process_asks_the_system_for_what_the_next_malloc_asks() {
    succeeds("calls", &["library", "0"], 0);
    succeeds("calls", &["library", "100000"], 50_000);
    held(
        &rule("calls"),
        |command| _ = command.args(["clock", "100000"]),
        |way, [plain, _], report| {
            // mimalloc reads the clock by itself, and the process ends with it or without.
            assert_eq!(plain.status.success(), way.below.is_none());
            assert!(report.is_some_and(|report| report.placed().objects > 50_000));
        },
    );
}

#[test]
fn rule_6_affinity_is_the_programs() {
    succeeds("affinity", &["none"], 100_000);
    succeeds("affinity", &["own"], 100_000);
    // Who asks for binding is not bound where a thread has bound itself.
    for (pin, below) in [Pin::Compact, Pin::Spread]
        .into_iter()
        .flat_map(|pin| belows().into_iter().map(move |b| (pin, b)))
    {
        let rig = Rig::new().with(|config| {
            config.pin = pin;
            config.policy.l2_bytes = 2048;
        });
        rig.same_over(below.as_deref(), rule("affinity"), |command| _ = command.arg("own"));
        assert!(rig.largest().placed().objects > 100_000);
    }
}

#[test]
fn rule_8_children_come_in_every_state() {
    for arguments in [
        ["storm", "60", "16"],
        ["handlers", "40", ""],
        ["vfork", "40", ""],
        ["spawn", "40", ""],
        ["generations", "5", ""],
    ] {
        succeeds("forks", &arguments, 50_000);
    }
}

#[test]
#[ignore = "takes minutes"]
fn rule_8_ten_thousand_children_come_while_sixteen_threads_allocate() {
    for way in ways() {
        let [plain, placed] = [way.plain(&rule("forks")), way.placed(&rule("forks"))]
            .map(|mut command| command.args(["storm", "10000", "16"]).output().expect("it runs"));
        assert!(plain.status.success() && plain.stdout == b"ok\n", "{}: {plain:?}", way.name);
        assert_eq!(placed, plain, "{}", way.name);
        let reports = way.rig.reports();
        // A child whose threads lost their cores within a call at the fork places nothing: its locks are held for good.
        assert!(reports.len() > 1_000, "{}, children place as well: {}", way.name, reports.len());
        assert!(reports.iter().all(|report| report.placed().objects > 0), "{}", way.name);
    }
}

#[test]
fn rule_9_libraries_that_bind_to_the_c_librarys_malloc_do_not() {
    let inner = rule_library("inner", &[]);
    // Along the path of this one alone the other is found.
    let path = format!("-Wl,-rpath,{}", inner.parent().expect("a folder").display());
    let outer = rule_library("outer", &[&path]);
    let name = inner.file_name().expect("a name");
    for before in ["0", "100000"] {
        // Under mimalloc alone they do, and the process ends.
        let plain = Command::new(rule("deepbind")).arg(&outer).arg(name).arg(before).output();
        let plain = plain.expect("it runs");
        assert!(plain.status.success(), "{plain:?}");
        let lines = ["not the program's", "found by the library", "/nonexistent.so"];
        let text = String::from_utf8_lossy(&plain.stdout).into_owned();
        assert!(lines.iter().all(|line| text.contains(line)), "{text}");
        for way in ways() {
            let mut command = way.placed(&rule("deepbind"));
            let placed = command.arg(&outer).arg(name).arg(before).output().expect("it runs");
            assert_eq!(placed.status, plain.status, "{}, {before}: {placed:?}", way.name);
            assert_eq!(String::from_utf8_lossy(&placed.stdout), text, "{}", way.name);
            assert!(way.rig.largest().placed().objects > 50_000);
        }
    }
}

/// PHP loads its extensions with that flag. Under mimalloc alone it crashes.
#[test]
fn rule_9_php_runs_with_its_extensions() {
    const SCRIPT: &str = r#"
        $texts = [];
        for ($i = 0; $i < 30000; $i++) $texts[] = mb_strtoupper("text $i");
        $document = new DOMDocument;
        $document->loadXML("<a>" . str_repeat("<b>x</b>", 20000) . "</a>");
        echo count($texts), " ", $document->getElementsByTagName("b")->length, "\n";
        echo implode(",", get_loaded_extensions()), "\n";"#;
    let Some(php) = installed("php") else { return };
    for (script, objects) in [("echo 1;", 0), (SCRIPT, 50_000)] {
        let plain = Command::new(&php).args(["-r", script]).output().expect("it runs");
        assert!(plain.status.success(), "{plain:?}");
        let text = String::from_utf8_lossy(&plain.stdout).into_owned();
        assert!(text == "1" || text.contains("mbstring") && text.contains("dom"), "{text}");
        for way in ways() {
            let placed = way.placed(&php).args(["-r", script]).output().expect("it runs");
            assert_eq!(placed, plain, "{}", way.name);
            let report = way.rig.largest();
            assert!(report.placed().objects >= objects, "{}: {report:?}", way.name);
        }
    }
}
