//! Commands of the laboratory: handed on to `isochrone-lab` of the same build, which is looked for beside the command
//! and in `../libexec`, and named where it is absent.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::{folder, run};

/// The command alone, in a folder `bin`.
fn alone(name: &str) -> PathBuf {
    let bin = folder(name).join("bin");
    fs::create_dir(&bin).expect("a folder");
    let program = bin.join("isochrone");
    fs::copy(crate::command(), &program).expect("a copy");
    program
}

/// A laboratory that says what it is told, one word a line.
fn stand_in(place: &Path) {
    fs::create_dir_all(place.parent().expect("a folder")).expect("it can be made");
    fs::write(place, "#!/bin/sh\nprintf '%s\\n' \"$@\"\nexit 7\n").expect("a script");
    fs::set_permissions(place, fs::Permissions::from_mode(0o755)).expect("its mode");
}

/// Another test's child may hold a program's file open, as it was written, until it is another program itself.
fn ended(command: &mut Command) -> Output {
    loop {
        match command.output() {
            Err(busy) if busy.kind() == ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            ended => break ended.expect("it runs"),
        }
    }
}

fn output(program: &Path, words: &[&str]) -> Output {
    ended(Command::new(program).args(words))
}

#[test]
fn an_absent_laboratory_is_named_with_the_command_that_builds_it() {
    let program = alone("lab-absent");
    let elsewhere = program.with_file_name("elsewhere");
    stand_in(&elsewhere.join("isochrone-lab"));
    for name in ["bench", "reproduce", "sim", "verify"] {
        let mut command = Command::new(&program);
        let output =
            ended(command.args([name, "--help"]).env("PATH", &elsewhere).current_dir(&elsewhere));
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(127), "{name}: {err}");
        assert!(err.contains("cargo build") && err.contains("-p isochrone-lab"), "{name}: {err}");
        assert_eq!(err.lines().count(), 1, "{err}");
    }
}

#[test]
fn every_word_goes_on_to_the_laboratory_in_libexec() {
    let program = alone("lab-libexec");
    stand_in(&program.with_file_name("../libexec/isochrone-lab"));
    let words = ["--color", "never", "bench", "chase", "--help", "--sizes", "1,2", "--", "-x"];
    let output = output(&program, &words);
    assert_eq!(output.status.code(), Some(7), "its exit code comes back");
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut told = out.lines();
    assert_eq!(told.next(), Some("--of-build"));
    let version = self::output(&program, &["--version"]);
    let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
    assert_eq!(told.next(), version.strip_prefix("isochrone "), "{out}");
    assert_eq!(told.collect::<Vec<_>>(), words);
}

#[test]
fn help_and_completions_name_its_commands() {
    let here = folder("lab-help");
    let (_, help, _) = run(&here, &["--help"]);
    let (_, completions, _) = run(&here, &["completions", "bash"]);
    for name in ["bench", "reproduce", "sim", "verify"] {
        let line = help.lines().find(|line| line.trim_start().starts_with(name));
        assert!(line.is_some_and(|line| line.contains("Laboratory")), "{name}: {help}");
        assert!(completions.contains(name), "{name}");
    }
}
