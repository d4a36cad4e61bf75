//! Rooms: the only places where something may stand. A breach is something outside of its rooms, or a room in which
//! nothing needs to be allowed any more.

use std::path::Path;

use super::files::Source;
use super::{code, files};

/// A place, from the root of the repository: a folder, or a file without `.rs` together with the folder of its
/// modules. With it, why something may stand there.
type Room = (&'static str, &'static str);

/// Where `unsafe` may be, in any form.
const UNSAFE: &[Room] = &[
    ("crates/ground/os", "the machine itself"),
    ("crates/atlas/store/src/load", "an atlas is mapped"),
    ("crates/arrange/malloc", "pointers of C programs"),
    ("crates/arrange/near", "memory without a type, for programs that ask for it"),
    ("crates/arrange/pager", "names that C programs call"),
    ("crates/arrange/preload", "names that C programs call"),
    ("crates/arrange/cla/src/live", "lines that threads and processes share"),
    ("crates/arrange/mpi", "names that MPI programs call"),
    ("crates/arrange/tasks/src/arena", "objects that workers share"),
    ("crates/arrange/tasks/src/live", "data of tasks that run at once"),
    ("crates/arrange/tasks/src/simulated", "the same tasks in virtual time"),
    ("crates/arrange/tier/src/live", "pages that move"),
    ("crates/arrange/tier/tests/live", "signals and pages of the tests"),
    ("crates/use/capi", "names that C programs call"),
    ("crates/lab/isochrone-lab/src/bench/cholesky/foreign", "libraries of others"),
    ("crates/lab/isochrone-lab/src/bench/lu/kernels", "tiles that libraries of others hand over"),
    ("crates/lab/isochrone-lab/src/bench/tiled", "libraries of others"),
    ("crates/lab/workloads/src/tiered/tasks", "tasks on an area of the tier"),
];

/// Where the environment and the arguments of a process may be read.
const ENVIRONMENT: &[Room] = &[
    ("crates/use/console/src/output", "for both programs"),
    ("crates/use/console/build", "what cargo tells a build script"),
    ("crates/use/cli/src/lib", "words of the command line before they are parsed"),
    ("crates/use/capi/src/atlas", "where atlases lie"),
    ("crates/arrange/mpi/src/config", "the library's own variables, and the launcher's"),
    ("crates/ground/os/src/rseq", "a test asks what glibc was told"),
    ("crates/ground/report/examples", "where a gallery goes"),
    ("crates/atlas/view/examples", "where pages to look at go"),
    ("crates/arrange/alloc/tests/live", "whether a test may be left out"),
    ("crates/arrange/cla/tests", "what a test tells its processes"),
    ("crates/arrange/malloc/tests", "programs of the system"),
    ("crates/arrange/mpi/tests", "programs of the system"),
    ("crates/arrange/tasks/tests", "a harness of its own"),
    ("crates/arrange/tier/tests", "a harness of its own"),
    ("tests", "programs of the system, and the emulated machine's words"),
    ("xtask", "a developer's words"),
];

/// Where lines may be too wide for a screen.
const WIDE: &[Room] = &[("xtask/src/safety/programs", "programs in other languages")];

/// Where something may be documented by one word, which says nothing that its name does not: no unit, range or
/// meaning. What is private needs no comment.
const ONE_WORD: &[Room] = &[
    ("crates/arrange/alloc/src/open", "what is known of open pages moves"),
    ("crates/atlas/decode/src/tables", "tables move with the allocator's decoder"),
];

/// What reads the environment, or hands it out: functions of `std::env`. `temp_dir` and `home_dir` do too.
const READERS: &[&str] = &[
    "args",
    "args_os",
    "home_dir",
    "remove_var",
    "set_var",
    "temp_dir",
    "var",
    "var_os",
    "vars",
    "vars_os",
];

/// Checks all files against all lists of rooms.
pub(super) fn check(sources: &[Source], breaches: &mut Vec<String>) {
    held(sources, "unsafe", UNSAFE, &unsafe_lines, breaches);
    held(sources, "the environment is read", ENVIRONMENT, &environment_reads, breaches);
    held(sources, "a line is too wide", WIDE, &files::wide_lines, breaches);
    held(sources, "a comment has one word", ONE_WORD, &files::one_word_comments, breaches);
}

/// Whether what `found` finds in a file lies in the rooms, and every room is needed.
fn held(
    sources: &[Source],
    what: &str,
    rooms: &[Room],
    found: &dyn Fn(&str) -> Vec<usize>,
    breaches: &mut Vec<String>,
) {
    let mut needed = vec![false; rooms.len()];
    for source in sources {
        let lines = found(&source.text);
        if lines.is_empty() {
            continue;
        }
        match rooms.iter().position(|(room, _)| inside(&source.path, room)) {
            Some(room) => needed[room] = true,
            None => breaches.extend(lines.iter().map(|line| {
                format!(
                    "{}:{line}: {what} outside of its rooms (xtask/src/tidy/rooms.rs)",
                    source.path.display()
                )
            })),
        }
    }
    for ((room, _), _) in rooms.iter().zip(needed).filter(|(_, needed)| !needed) {
        breaches.push(format!("{room}: no longer a room where {what}: take it off the list"));
    }
}

fn inside(file: &Path, room: &str) -> bool {
    file.with_extension("").starts_with(room)
}

/// Lines with `unsafe` as a word of the language, whatever follows.
fn unsafe_lines(text: &str) -> Vec<usize> {
    code::lines_with_word(&code::bare(text), "unsafe")
}

/// Lines that name a reader of the environment, or take one in by a name of its own.
fn environment_reads(text: &str) -> Vec<usize> {
    let code = code::bare(text);
    let reads = |line: &str| {
        line.match_indices("env::").any(|(at, found)| {
            let whole_word = !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            // A module of ours may have that name too: `super::env`.
            let foreign = line[..at].ends_with("std::") || !line[..at].ends_with("::");
            let rest = &line[at + found.len()..];
            let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
            whole_word && foreign && (READERS.contains(&name) || rest.starts_with(['{', '*']))
        })
    };
    let numbered = code.lines().enumerate().filter(|(_, line)| reads(line));
    let mut lines: Vec<usize> = numbered.map(|(number, _)| number + 1).collect();
    for word in ["getenv", "secure_getenv", "environ"] {
        lines.extend(code::lines_with_word(&code, word));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOMS: &[Room] = &[("crates/a/src/live", "why"), ("crates/b", "why")];

    fn told(files: &[(&str, &str)], found: &dyn Fn(&str) -> Vec<usize>) -> Vec<String> {
        let source =
            |(path, text): &(&str, &str)| Source { path: path.into(), text: (*text).into() };
        let sources: Vec<Source> = files.iter().map(source).collect();
        let mut breaches = Vec::new();
        held(&sources, "it", ROOMS, found, &mut breaches);
        breaches
    }

    #[test]
    fn unsafe_is_seen_in_every_form_and_held_in_its_rooms() {
        let rooms =
            [("crates/a/src/live.rs", "unsafe { x() }"), ("crates/b/tests/c.rs", "unsafe fn x();")];
        assert!(told(&rooms, &unsafe_lines).is_empty());
        for form in [
            "fn a() { unsafe { b() } }",
            "unsafe fn a() {}",
            "unsafe impl Send for A {}",
            "unsafe extern \"C\" {}",
            "#[unsafe(no_mangle)]",
            "unsafe\n{",
            "let f: unsafe extern \"C\" fn();",
        ] {
            let outside = ("crates/a/src/lives.rs", form);
            let breaches = told(&[rooms[0], rooms[1], outside], &unsafe_lines);
            assert!(
                matches!(&breaches[..], [one] if one.starts_with("crates/a/src/lives.rs:1: ")),
                "{breaches:?}"
            );
        }
        for none in ["#![forbid(unsafe_code)]", "// unsafe {", "print(\"unsafe fn\")"] {
            assert!(
                told(&[rooms[0], rooms[1], ("crates/c.rs", none)], &unsafe_lines).is_empty(),
                "{none}"
            );
        }
    }

    #[test]
    fn a_room_that_nothing_needs_is_a_breach() {
        let breaches = told(
            &[("crates/a/src/live/b.rs", "unsafe {}"), ("crates/b/c.rs", "safe")],
            &unsafe_lines,
        );
        assert!(
            matches!(&breaches[..], [one] if one.starts_with("crates/b: no longer")),
            "{breaches:?}"
        );
    }

    #[test]
    fn reads_of_the_environment_are_seen_in_every_form() {
        for read in [
            "std::env::var(\"A\")",
            "env::vars_os()",
            "std::env::args().nth(1)",
            "use std::env::{self, var};",
            "use std::env::*;",
            "use std::env::var_os as told;",
            "std::env::temp_dir()",
            "libc::getenv(name)",
        ] {
            assert_eq!(environment_reads(read), [1], "{read}");
        }
        for none in [
            "use super::env::{Shared, block_on};",
            "std::env::current_exe()",
            "std::env::split_paths(&path)",
            "env!(\"CARGO_MANIFEST_DIR\")",
            "// std::env::var",
            "self.environment()",
            "my_env::var()",
        ] {
            assert!(environment_reads(none).is_empty(), "{none}");
        }
    }
}
