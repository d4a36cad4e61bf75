//! Programs in C, compiled against the header and run with the library; and header and library beside each
//! other, name by name.

#![allow(clippy::tests_outside_test_module, reason = "the whole file is tests")]

mod support;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::process::Command;
use support::{Program, SHARED, libraries, of_crate, succeeded, succeeded_or_left_out};

const EXAMPLE: &str = "examples/collectives.c";

#[test]
fn the_example_runs_between_threads_and_between_processes() {
    let program = Program::build("cc", &["-std=c99"], EXAMPLE, SHARED);
    for (how, ranks) in [("threads", 1), ("threads", 4), ("processes", 2), ("processes", 3)] {
        let output = program.run(&[how, &ranks.to_string()]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(said, format!("libisochrone {version}: {ranks} ranks, all as it should be\n"));
    }
}

#[test]
fn the_archive_serves_as_well() {
    let needs = "LIBRARIES/libisochrone.a -lgcc_s -lpthread -lrt -lm -ldl";
    Program::build("cc", &["-std=c11"], EXAMPLE, needs).run(&["threads", "2"]);
    Program::build("cc", &["-std=c11"], TASKS, needs).run(&["threads", "2"]);
}

const TASKS: &str = "examples/tasks.c";

#[test]
fn the_example_of_tasks_runs_on_threads_and_on_processes() {
    let program = Program::build("cc", &["-std=c99"], TASKS, SHARED);
    let runs = [
        ("threads", "1", "naft"),
        ("threads", "2", "di"),
        ("threads", "4", "dft"),
        ("processes", "2", "isochrone"),
    ];
    for (how, workers, regime) in runs {
        let output = program.run(&[how, workers, regime]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = env!("CARGO_PKG_VERSION");
        let wanted =
            format!("libisochrone {version}: {workers} workers, 1008 tasks, all as it should be\n");
        assert_eq!(said, wanted);
    }
}

#[test]
fn wrong_tasks_are_refused_and_failures_reach_who_waits() {
    let program = Program::build("cc", &["-std=c99"], "tests/programs/tasks_wrong.c", SHARED);
    let folder = tempfile::tempdir().expect("a folder");
    let traces = ["threads.json", "processes.json"].map(|name| folder.path().join(name));
    program.run(&[&traces[0].display().to_string(), &traces[1].display().to_string()]);
    for trace in traces {
        let text = std::fs::read_to_string(trace).expect("the program wrote it");
        assert_eq!(slices(&text).iter().filter(|name| *name == "reduce").count(), 100);
    }
}

/// The names of slices in a trace, which is whole by Chrome's format of trace events, as Perfetto reads it: an object
/// with a list of events, of which each has its kind, process and track, and each slice a time and a duration.
fn slices(trace: &str) -> Vec<String> {
    let trace: serde_json::Value = serde_json::from_str(trace).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("a list");
    let number = |event: &serde_json::Value, field: &str| {
        event[field].as_f64().filter(|value| *value >= 0.0).is_some()
    };
    let mut tracks = BTreeSet::new();
    let mut slices = Vec::new();
    for event in events {
        let track = (event["pid"].to_string(), event["tid"].to_string());
        assert!(number(event, "pid") && number(event, "tid"), "{event}");
        let name = event["name"].as_str().expect("a name");
        match event["ph"].as_str() {
            Some("M") => {
                assert!(event["args"]["name"].is_string(), "{event}");
                tracks.extend((name == "thread_name").then_some(track));
            }
            Some("X") => {
                assert!(number(event, "ts") && number(event, "dur"), "{event}");
                assert!(tracks.contains(&track), "the track of {event} has a name");
                slices.push(name.to_owned());
            }
            _ => panic!("{event}"),
        }
    }
    slices
}

#[test]
fn what_is_wrong_is_refused_and_a_killed_rank_is_noticed() {
    Program::build("cc", &["-std=c99"], "tests/programs/wrong.c", SHARED).run(&[]);
}

#[test]
fn memory_larger_than_fast_memory_serves_threads_and_processes() {
    let program = Program::build("cc", &["-std=c99"], "examples/tier.c", SHARED);
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().display().to_string();
    let runs: [&[&str]; 5] = [
        &["processes", "1"],
        &["processes", "3"],
        &["host", "2"],
        &["threads", "2"],
        &["processes", "2", &folder],
    ];
    for arguments in runs {
        let said = String::from_utf8_lossy(&program.run(arguments).stdout).into_owned();
        let workers = arguments[1];
        let end = format!(": {workers} workers, every bit as in plain memory\n");
        assert!(said.ends_with(&end), "{arguments:?}: {said}");
    }
}

#[test]
fn what_is_wrong_of_larger_memory_is_refused_and_a_killed_worker_is_noticed() {
    Program::build("cc", &["-std=c99"], "tests/programs/wrong_tier.c", SHARED).run(&[]);
}

#[test]
fn larger_memory_bears_with_the_programs_signals_forks_and_threads() {
    let program = Program::build("cc", &["-std=c99"], "tests/programs/tier_edges.c", SHARED);
    for mode in ["threads", "sigbus"] {
        program.run(&[mode]);
    }
}

#[test]
fn objects_of_larger_memory_hold_what_was_written_whoever_frees_them() {
    let program = Program::build("cc", &["-std=c99"], "tests/programs/tier_kind.c", SHARED);
    for mode in ["threads", "sigbus"] {
        program.run(&[mode]);
    }
}

/// Whose user may not be told of the kernel's faults has nothing of what is tried here.
#[test]
fn memory_that_a_program_has_is_adopted_and_released() {
    let program = Program::build("cc", &["-std=c99"], "tests/programs/tier_adopt.c", SHARED);
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().display().to_string();
    for arguments in [&["memory"][..], &["lz4"], &["zstd"], &["file", &folder], &["nobody"]] {
        let output = program.output(arguments);
        succeeded_or_left_out(&output);
    }
}

/// However long the scheduler keeps a thread in the midst of a call. Where it never did that, nothing is found out.
#[test]
fn what_a_thread_gives_up_that_is_put_off_does_not_come_back() {
    let program = Program::build("cc", &["-std=c99"], "tests/programs/tier_put_off.c", SHARED);
    succeeded_or_left_out(&program.output(&[]));
}

#[test]
fn standard_containers_lie_in_larger_memory() {
    let compilers = [("c++", "-std=c++17"), ("clang++", "-std=c++17"), ("c++", "-std=c++20")];
    for (compiler, standard) in compilers {
        Program::build(compiler, &[standard], TIER_PMR, SHARED).run(&[]);
    }
}

const TIER_PMR: &str = "tests/programs/tier_pmr.cpp";

/// Whose user may not lock memory has none to lock.
#[test]
fn larger_memory_keeps_to_its_limit_where_the_program_locks_its_memory() {
    let program = Program::build("cc", &["-std=c99"], "tests/programs/tier_locked.c", SHARED);
    for mode in ["threads", "sigbus"] {
        let output = program.output(&[mode]);
        succeeded_or_left_out(&output);
    }
}

/// `ulimit -v` is what valgrind and ThreadSanitizer amount to.
#[test]
fn tasks_run_where_addresses_are_few_and_data_many() {
    let program = Program::build("cc", &["-std=c99"], "tests/programs/tasks_small.c", SHARED);
    for how in ["threads", "processes"] {
        program.run(&[how]);
        program.run_limited(&[how], 2 << 20);
    }
}

#[test]
fn tasks_may_have_functions_names_long_arguments_and_handles_and_be_cancelled() {
    let program = Program::build("cc", &["-std=c99"], "tests/programs/tasks_more.c", SHARED);
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace.json").display().to_string();
    program.run(&[&trace, "processes"]);
    let text = std::fs::read_to_string(trace).expect("the program wrote it");
    for name in ["named", "waits", "inner", "add_all", "increment"] {
        assert_eq!(text.matches(&format!("\"name\":\"{name}\"")).count(), 1, "{name}");
    }
}

#[test]
fn a_run_in_the_wrong_hands_is_refused_and_what_does_not_fit_is_said() {
    for compiler in ["cc", "clang"] {
        let program =
            Program::build(compiler, &["-std=c99"], "tests/programs/tasks_misused.c", SHARED);
        program.run(&[]);
    }
}

#[test]
fn tasks_in_cpp_throw_own_and_are_given_what_they_need() {
    let compilers = [("c++", "-std=c++17"), ("clang++", "-std=c++17"), ("c++", "-std=c++20")];
    for (compiler, standard) in compilers {
        let options = [standard, "-Wconversion", "-Wshadow"];
        Program::build(compiler, &options, TASKS_WRAPPED, SHARED).run(&[]);
    }
}

const TASKS_WRAPPED: &str = "tests/programs/tasks_wrapped.cpp";

#[test]
fn a_program_of_openmp_and_its_port_come_to_the_same_bits() {
    let options = ["-std=c99", "-fopenmp"];
    Program::build("cc", &options, OPENMP, SHARED).run(&[]);
    if has_openmp("clang") {
        Program::build("clang", &options, OPENMP, SHARED).run(&[]);
    } else {
        Program::compiles("clang", &options, OPENMP);
    }
}

const OPENMP: &str = "examples/openmp.c";

/// Whether a compiler finds its library of OpenMP: clang's is a package of its own.
fn has_openmp(compiler: &str) -> bool {
    let asked = Command::new(compiler).arg("-print-file-name=libomp.so").output();
    let said = asked.expect("a compiler, which building this needs as well").stdout;
    String::from_utf8_lossy(&said).trim() != "libomp.so"
}

#[test]
fn the_example_in_cpp_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace.json").display().to_string();
    for compiler in ["c++", "clang++"] {
        let program = Program::build(compiler, &["-std=c++17"], WRAPPED, SHARED);
        program.run(&["1"]);
        program.run(&["4", &trace]);
        let text = std::fs::read_to_string(&trace).expect("the program wrote it");
        assert_eq!(text.matches("\"name\":\"update\"").count(), 55, "a slice for each task");
    }
}

const WRAPPED: &str = "examples/wrapped.cpp";

/// Sources of a folder of this crate, by their paths in it.
fn sources(folder: &str) -> Vec<String> {
    let found = std::fs::read_dir(of_crate(folder)).expect("a folder of this crate");
    let names = found.map(|entry| entry.expect("it is read").file_name().into_string());
    let names = names.map(|name| format!("{folder}/{}", name.expect("plain names")));
    names.filter(|name| [".c", ".cpp"].iter().any(|end| name.ends_with(end))).collect()
}

/// Without a warning; what is new in these folders is among them.
#[test]
fn every_example_and_program_is_for_gcc_and_for_clang() {
    let all: Vec<String> =
        ["examples", "tests/programs"].iter().flat_map(|it| sources(it)).collect();
    assert!(all.len() > 20, "{all:?}");
    for source in all {
        let (compilers, standard) = match source.ends_with(".c") {
            true => (["gcc", "clang"], "-std=c99"),
            false => (["g++", "clang++"], "-std=c++17"),
        };
        let openmp = (source == OPENMP).then_some("-fopenmp");
        for compiler in compilers {
            let options: Vec<&str> = [standard].into_iter().chain(openmp).collect();
            Program::compiles(compiler, &options, &source);
        }
    }
}

/// Two tasks that write one word which neither declares, on two workers at once; and nothing where all is declared.
#[test]
fn a_race_in_a_kernel_is_found_by_thread_sanitizer() {
    let options = ["-std=c99", "-g", "-fsanitize=thread"];
    let program = Program::build("cc", &options, "tests/programs/tasks_race.c", SHARED);
    for _ in 0..5 {
        let output = program.output(&["race"]);
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && words.contains("data race"), "{words}");
        assert!(words.contains("undeclared"), "{words}");
        program.run(&["declared"]);
    }
}

#[test]
fn examples_run_under_sanitizers() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace.json").display().to_string();
    // As the header says: what the library does to its own memory is not looked at.
    let suppressed = folder.path().join("suppressed");
    std::fs::write(&suppressed, "called_from_lib:libisochrone.so\n").expect("it is ours");
    // What is too much to be had is refused by the allocators of both, too, and not the end.
    let null = "allocator_may_return_null=1";
    let told = format!("{null}:suppressions={}", suppressed.display());
    for sanitizer in ["address", "thread"] {
        let flag = format!("-fsanitize={sanitizer}");
        let build = |compiler, standard, source| {
            Program::build(compiler, &[standard, "-g", &flag], source, SHARED)
        };
        let openmp = Program::build("cc", &["-std=c99", "-g", "-fopenmp", &flag], OPENMP, SHARED);
        let runs: [(Program, &[&str]); 13] = [
            (build("cc", "-std=c99", TASKS), &["threads", "2", "naft"]),
            (build("cc", "-std=c99", "examples/tier.c"), &["threads", "2"]),
            (build("cc", "-std=c99", EXAMPLE), &["threads", "2"]),
            (build("cc", "-std=c99", "examples/place.c"), &["2"]),
            (build("c++", "-std=c++17", "examples/place.cpp"), &[]),
            (openmp, &[]),
            (build("cc", "-std=c99", "tests/programs/tasks_more.c"), &[&trace]),
            (build("cc", "-std=c99", "tests/programs/tasks_misused.c"), &["no forks"]),
            (build("c++", "-std=c++17", TASKS_WRAPPED), &[]),
            (build("c++", "-std=c++17", WRAPPED), &["2"]),
            (build("cc", "-std=c99", "tests/programs/tier_kind.c"), &["threads", "no forks"]),
            (build("c++", "-std=c++17", TIER_PMR), &[]),
            (build("cc", "-std=c99", "tests/programs/tier_adopt.c"), &["memory", "sanitized"]),
        ];
        let variables = [
            ("TSAN_OPTIONS", told.as_str()),
            ("ASAN_OPTIONS", null),
            // ThreadSanitizer is not told of what the library of OpenMP does.
            ("OMP_NUM_THREADS", "1"),
            ("ISOCHRONE_ATLAS", "/no/such/file"),
        ];
        for (program, arguments) in runs {
            succeeded_or_left_out(&program.output_with(arguments, variables));
        }
    }
}

#[test]
fn usual_teams_do_every_collective_with_every_root() {
    Program::build("cc", &["-std=c99"], "tests/programs/roots.c", SHARED).run(&[]);
}

#[test]
fn a_team_of_three_looks_for_an_atlas_and_goes_by_the_rule_without_one() {
    let program = Program::build("cc", &["-std=c99"], "tests/programs/teams_atlas.c", SHARED);
    program.run_with(&[], [("ISOCHRONE_ATLAS", "/no/such/file")]);
}

/// The names of the functions that C code declares.
fn declared(code: &str) -> BTreeSet<String> {
    let before = |at: usize| code[..at].chars().next_back();
    let names = code.match_indices("isochrone_").filter_map(|(at, _)| {
        let rest = &code[at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
        let word = before(at).is_none_or(|c| c.is_whitespace() || c == '*');
        (word && rest[end..].starts_with('(')).then(|| rest[..end].to_owned())
    });
    names.collect()
}

/// Structs that a program fills, or has filled, may grow: each begins with its size and has room that must be zeros.
#[test]
fn structs_of_options_and_counts_say_how_long_they_are() {
    let header = std::fs::read_to_string(of_crate("include/isochrone.h")).expect("the header");
    let mut found = Vec::new();
    for part in header.split("typedef struct ").skip(1) {
        let Some((name, body)) = part.split_once(" {") else { continue };
        let ends = ["_options", "_submission", "_counts", "_statistics"];
        if !ends.iter().any(|end| name.ends_with(end)) {
            continue;
        }
        let (body, _) = body.split_once("\n}").expect("it ends");
        let first = body.trim_start();
        assert!(
            ["uint64_t size;", "size_t size;"].iter().any(|size| first.starts_with(size)),
            "{name}"
        );
        assert!(body.contains("uint64_t reserved["), "{name}");
        found.push(name.to_owned());
    }
    assert_eq!(found.len(), 8, "{found:?}");
}

/// The names that the library exports.
fn exported() -> BTreeSet<String> {
    let output = Command::new("nm")
        .args([OsStr::new("-D"), OsStr::new("--defined-only")])
        .arg(libraries().join("libisochrone.so"))
        .output()
        .expect("nm comes with the linker");
    succeeded(&output);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let last = text.lines().filter_map(|line| line.split_whitespace().last());
    last.map(str::to_owned).collect()
}

#[test]
fn header_and_library_have_the_same_functions() {
    let header = std::fs::read_to_string(of_crate("include/isochrone.h")).expect("the header");
    // What is said of functions in comments is not declared there.
    let code: String = header
        .split("/*")
        .enumerate()
        .map(|(n, part)| if n == 0 { part } else { part.split_once("*/").map_or("", |p| p.1) })
        .collect();
    let (ours, others): (BTreeSet<_>, BTreeSet<_>) =
        exported().into_iter().partition(|name| name.starts_with("isochrone_"));
    assert_eq!(declared(&code), ours);
    // A program may have a zstd of its own, of another version.
    let is_zstd = |name: &String| {
        ["ZSTD", "HUF", "FSE", "HIST", "XXH"].iter().any(|start| name.starts_with(start))
    };
    assert!(!others.iter().any(is_zstd), "{others:?}");
}

#[test]
fn the_soname_and_the_package_file_say_the_same_version() {
    let output = Command::new("readelf")
        .arg("-d")
        .arg(libraries().join("libisochrone.so"))
        .output()
        .expect("readelf comes with the linker");
    succeeded(&output);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("[libisochrone.so.0]"), "{text}");
    let package = std::fs::read_to_string(of_crate("isochrone.pc")).expect("the package file");
    let version = package.lines().find_map(|line| line.strip_prefix("Version: "));
    assert_eq!(version, Some(env!("CARGO_PKG_VERSION")));
}
