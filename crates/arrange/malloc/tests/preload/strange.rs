//! Programs that do what a library underneath `malloc` does not expect, and environments that nobody thought of: each
//! ends as without the library and prints the same, over glibc and over mimalloc, and its objects were placed.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::rules::held;
use crate::support::{installed, rule, rule_library, shared_library, strange_program};

/// Runs a program in every way; it succeeds, and so many objects are placed.
fn unbroken(program: &Path, change: impl Fn(&mut Command), objects: u64) {
    held(program, change, |way, [plain, placed], report| {
        let name = way.name;
        assert!(plain.status.success(), "{name}: {plain:?}");
        assert_eq!(placed.stderr, plain.stderr, "{name}");
        let found = report.map_or(0, |report| report.placed().objects);
        assert!(found >= objects, "{name}: {found} placed");
    });
}

fn c(name: &str) -> PathBuf {
    strange_program(&format!("{name}.c"), name, &[])
}

#[test]
fn keys_beyond_the_first_are_destroyed_and_no_thread_is_cancelled_in_malloc() {
    unbroken(&c("keys"), |_| {}, 100_000);
}

#[test]
fn all_of_an_object_is_used_and_it_grows_and_shrinks_while_the_heap_is_tuned() {
    unbroken(&c("whole"), |_| {}, 50_000);
}

#[test]
fn handlers_jump_out_with_what_they_made() {
    unbroken(&c("jumps"), |_| {}, 100_000);
}

#[test]
fn children_are_made_inside_of_what_runs_at_the_end() {
    for what in ["exit", "quick", "thread"] {
        unbroken(&c("ends"), |command| _ = command.arg(what), 20_000);
    }
}

#[test]
fn children_that_no_handler_hears_of_go_on() {
    unbroken(&c("raw"), |_| {}, 100_000);
}

#[test]
fn a_handler_walks_the_stack_wherever_it_comes() {
    unbroken(&c("profiled"), |_| {}, 500_000);
}

#[test]
fn a_process_that_has_all_the_mappings_it_may_have_goes_on() {
    // Before it has begun there may be no room for tables, and then nothing is placed.
    for (before, least) in [("0", 0), ("100000", 50_000)] {
        held(
            &c("maps"),
            |command| _ = command.arg(before),
            |way, [plain, _], report| {
                // mimalloc needs mappings itself.
                assert!(plain.status.success() || way.below.is_some(), "{}: {plain:?}", way.name);
                let placed = report.map_or(0, |report| report.placed().objects);
                assert!(placed >= least || way.below.is_some(), "{}: {placed}", way.name);
            },
        );
    }
}

#[test]
fn a_second_c_library_keeps_to_its_own() {
    let library = rule_library("of-another-space", &[]);
    unbroken(&c("spaces"), |command| _ = command.arg(&library), 100_000);
}

#[test]
fn glibcs_own_names_of_free_and_realloc_take_what_was_placed() {
    unbroken(&c("names"), |_| {}, 50_000);
    // The program's own `malloc` leaves nothing but what it forgot.
    let counts = strange_program("names.c", "counts", &["-DCOUNTS"]);
    unbroken(&counts, |_| {}, 5_000);
}

#[test]
fn operators_of_cpp_call_malloc_and_exceptions_come_and_go() {
    let Some(_) = installed("c++") else { return };
    let objects = strange_program("objects.cpp", "objects", &["-std=c++17"]);
    unbroken(&objects, |_| {}, 100_000);
}

/// Limits of a shell, in which the program runs.
fn within(limit: &str, program: &Path) -> impl Fn(&mut Command) {
    let line = format!("{limit} && exec \"$0\"");
    let program = program.to_owned();
    move |command| _ = command.args(["-c", &line]).arg(&program)
}

#[test]
fn limits_of_a_shell_leave_a_process_as_it_would_be() {
    let program = rule("atlas");
    // How memory is laid out, how much of it there may be, and how much of it may be written.
    for limit in ["ulimit -s unlimited", "ulimit -v 400000", "ulimit -d 100000", "ulimit -n 4"] {
        unbroken(Path::new("/bin/sh"), within(limit, &program), 50_000);
    }
    // A report would be longer than that: there is none.
    unbroken(Path::new("/bin/sh"), within("ulimit -f 0", &program), 0);
}

/// Preloads one library more, behind all others.
fn behind(command: &mut Command, library: &OsStr) {
    let is_it = |(name, _): &(&OsStr, Option<&OsStr>)| *name == "LD_PRELOAD";
    let mut all: OsString =
        command.get_envs().find(is_it).and_then(|it| it.1).unwrap_or_default().to_owned();
    if !all.is_empty() {
        all.push(":");
    }
    all.push(library);
    command.env("LD_PRELOAD", all);
}

#[test]
fn the_dynamic_linker_and_glibc_may_be_told_otherwise() {
    let program = rule("atlas");
    for (name, value) in [
        ("MALLOC_PERTURB_", "165"),
        ("MALLOC_ARENA_MAX", "1"),
        ("LD_BIND_NOT", "1"),
        ("GLIBC_TUNABLES", "glibc.pthread.rseq=0"),
        ("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0:glibc.rtld.optional_static_tls=0"),
    ] {
        unbroken(&program, |command| _ = command.env(name, value), 100_000);
    }
    let audit = strange_program("audit.c", "audit.so", &["-shared", "-fPIC"]);
    unbroken(&program, |command| _ = command.env("LD_AUDIT", &audit), 100_000);
    if let Some(debug) = shared_library("libc_malloc_debug.so.0") {
        let checked = |command: &mut Command| {
            behind(command, debug.as_os_str());
            command.env("MALLOC_CHECK_", "3");
        };
        unbroken(&program, checked, 100_000);
    }
    if let Some(setarch) = installed("setarch") {
        unbroken(&setarch, |command| _ = command.arg("-R").arg(&program), 100_000);
    }
}
