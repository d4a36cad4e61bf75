//! What the library asks the system for, after it was loaded: what the next allocator asks for, and nothing else.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::support::{Rig, installed, program};
use crate::vain::strange;

/// What glibc's allocator asks for (malloc/arena.c, sysmalloc, systrim, heap_trim, munmap_chunk, lll_lock).
const ALLOCATORS: [&str; 7] = ["brk", "futex", "madvise", "mmap", "mprotect", "mremap", "munmap"];
/// What the library adds. While it works on a stack of its own, which the kernel does not know of, no handler must
/// run on what is left behind on the thread's alternate one; and when it begins it asks once for the limit of the
/// address space, which the program may have set after it was loaded.
const OWN: [&str; 2] = ["rt_sigprocmask", "prlimit64"];

/// Names of the calls of a program and its children after its first line.
fn calls(strace: &Path, mut command: Command) -> BTreeSet<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    let mut traced = Command::new(strace);
    traced.args(["-f", "-o"]).arg(&trace);
    for (name, value) in command.get_envs() {
        // Of the program alone.
        let (name, value) = (name.to_str().expect("text"), value.expect("set"));
        traced.arg("-E").arg(format!("{name}={}", value.to_str().expect("text")));
    }
    traced.arg(command.get_program()).args(command.get_args());
    let output = traced.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(trace).expect("it was traced");
    let after = text.split_once("\"begins").expect("its first line").1;
    let name = |line: &str| {
        // `PID name(...`; or a call that goes on, or ends, or a signal.
        let (name, _) = line.split_once(' ')?.1.trim().split_once('(')?;
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_').then(|| name.to_owned())
    };
    command.env_clear();
    after.lines().skip(1).filter_map(name).collect()
}

fn command(rig: Option<&Rig>, rounds: &str) -> Command {
    let program = program("asks");
    let mut command = rig.map_or_else(|| Command::new(&program), |rig| rig.command(&program));
    command.arg(rounds);
    command
}

#[test]
fn after_it_was_loaded_it_asks_only_for_what_allocators_ask_for() {
    let Some(strace) = installed("strace") else { return };
    let plain = calls(&strace, command(None, "3"));
    assert!(plain.contains("clone3") || plain.contains("clone"), "{plain:?}");
    let silent = |rig: Rig| rig.with(|config| config.reports = isochrone_malloc::PathBytes::NONE);
    // Placing all the time; and learning, in vain.
    for rig in [silent(Rig::new()), silent(strange())] {
        let placed = calls(&strace, command(Some(&rig), "30"));
        let more: Vec<&String> = placed
            .difference(&plain)
            .filter(|name| !ALLOCATORS.contains(&name.as_str()) && !OWN.contains(&name.as_str()))
            .collect();
        assert!(more.is_empty(), "{more:?}");
        assert!(OWN.iter().all(|own| placed.contains(*own)), "it began, and learnt: {placed:?}");
    }
}
