//! What `cargo xtask ci --full` takes of a machine, asked for before its first step: whoever waits for hours is not
//! told at their end that a program was not there. All that lacks is one message, with the commands that bring it.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::safety;

/// What is asked whether something is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// A program of this name.
    Program(&'static str),
    /// A shared library of this name where Debian has libraries.
    Library(&'static str),
    /// A file.
    File(&'static str),
    /// A command that ends with 0.
    Answers(&'static [&'static str]),
}

/// What brings it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bring {
    /// Packages of Debian.
    Packages(&'static [&'static str]),
    /// A command of its own.
    Run(&'static str),
}

/// One thing that a step needs.
#[derive(Clone, Copy, Debug)]
struct Need {
    look: Look,
    bring: Bring,
}

const fn program(name: &'static str, packages: &'static [&'static str]) -> Need {
    Need { look: Look::Program(name), bring: Bring::Packages(packages) }
}

const fn library(name: &'static str, packages: &'static [&'static str]) -> Need {
    Need { look: Look::Library(name), bring: Bring::Packages(packages) }
}

const fn answers(words: &'static [&'static str], brought_by: &'static str) -> Need {
    Need { look: Look::Answers(words), bring: Bring::Run(brought_by) }
}

/// Whether the compiler has what a program without a C library of the system is linked with.
const MUSL: &str = "test -d $(rustc --print target-libdir --target x86_64-unknown-linux-musl)";

/// All of it: what `.ci/run` installs, and what the longer steps take beside that.
const NEEDS: &[Need] = &[
    program("cc", &["build-essential"]),
    program("g++", &["g++"]),
    program("clang", &["clang"]),
    program("clang++", &["clang"]),
    program("chromium", &["chromium"]),
    program("lstopo-no-graphics", &["hwloc-nox"]),
    program("python3", &["python3"]),
    Need {
        look: Look::Answers(&["python3", "-c", "import ensurepip, venv"]),
        bring: Bring::Packages(&["python3-venv"]),
    },
    program("perl", &["perl"]),
    program("sqlite3", &["sqlite3"]),
    program("git", &["git"]),
    program("awk", &["gawk"]),
    program("strace", &["strace"]),
    program("php", &["php-cli", "php-mbstring", "php-xml"]),
    program("numactl", &["numactl"]),
    program("mpicc.openmpi", &["openmpi-bin", "libopenmpi-dev"]),
    program("mpirun.openmpi", &["openmpi-bin", "libopenmpi-dev"]),
    program("mpicc.mpich", &["mpich", "libmpich-dev"]),
    program("gfortran", &["gfortran"]),
    library("libmimalloc.so.2", &["libmimalloc2.0"]),
    library("libjemalloc.so.2", &["libjemalloc2"]),
    library("libtcmalloc_minimal.so.4", &["libtcmalloc-minimal4"]),
    // Emulated machines, and what they are made of.
    program("qemu-system-x86_64", &["qemu-system-x86"]),
    program("qemu-system-aarch64", &["qemu-system-arm"]),
    program("apt-get", &["apt"]),
    program("dpkg-deb", &["dpkg"]),
    // Packages, and the root in which they are tried.
    program("objcopy", &["binutils"]),
    program("xz", &["xz-utils"]),
    program("lintian", &["lintian"]),
    program("mmdebstrap", &["mmdebstrap"]),
    program("unshare", &["util-linux"]),
    // AArch64.
    program("aarch64-linux-gnu-gcc", &["gcc-aarch64-linux-gnu"]),
    Need {
        look: Look::File("/usr/aarch64-linux-gnu/lib/crt1.o"),
        bring: Bring::Packages(&["libc6-dev-arm64-cross"]),
    },
    program("qemu-aarch64-static", &["qemu-user-static"]),
    // Real programs under the preloaded library.
    program("redis-server", &["redis-server"]),
    program("redis-benchmark", &["redis-tools"]),
    program("postgres", &["postgresql"]),
    program("pgbench", &["postgresql"]),
    program("memcached", &["memcached"]),
    program("mariadbd", &["mariadb-server"]),
    program("mariadb-slap", &["mariadb-client"]),
    program("nginx", &["nginx"]),
    program("ab", &["apache2-utils"]),
    program("node", &["nodejs"]),
    // Compilers and what runs below them.
    program("rustc", &["rustc"]),
    answers(&["cargo", "fmt", "--version"], "rustup component add rustfmt"),
    answers(&["cargo", "clippy", "--version"], "rustup component add clippy"),
    answers(&["sh", "-c", MUSL], "rustup target add x86_64-unknown-linux-musl"),
    answers(&["cargo", "+nightly", "--version"], "rustup toolchain install nightly"),
    answers(&["cargo", "fuzz", "--version"], "cargo install cargo-fuzz"),
];

/// Whether all that the longer steps take is there.
///
/// # Errors
/// What is not, in one message that says how it is had.
pub(super) fn all_there() -> Result<()> {
    match message(NEEDS, &is_there) {
        None => Ok(()),
        Some(message) => bail!("{message}"),
    }
}

/// What is said where something lacks; `None` where nothing does.
fn message(needs: &[Need], is_there: &dyn Fn(Look) -> bool) -> Option<String> {
    let (mut what, mut packages, mut commands) = (Vec::new(), BTreeSet::new(), Vec::new());
    for need in needs.iter().filter(|need| !is_there(need.look)) {
        what.push(name(need.look));
        match need.bring {
            Bring::Packages(all) => packages.extend(all),
            Bring::Run(command) => commands.push(command.to_owned()),
        }
    }
    if what.is_empty() {
        return None;
    }
    if !packages.is_empty() {
        let names: Vec<&str> = packages.into_iter().collect();
        let install = format!("apt-get install --no-install-recommends {}", names.join(" "));
        commands.insert(0, install);
    }
    Some(format!(
        "nothing was run: `cargo xtask ci --full` needs {}, not found here. To install them:\n  {}",
        what.join(", "),
        commands.join("\n  ")
    ))
}

/// How it is called in the message.
fn name(look: Look) -> String {
    match look {
        Look::Program(name) | Look::Library(name) | Look::File(name) => name.to_owned(),
        Look::Answers(words) => format!("`{}`", words.join(" ")),
    }
}

fn is_there(look: Look) -> bool {
    match look {
        Look::Program(name) => safety::is_installed(name),
        Look::Library(name) => has_library(Path::new("/usr/lib"), name),
        Look::File(path) => Path::new(path).exists(),
        Look::Answers(words) => answers_now(words),
    }
}

/// Whether Debian's folder of one kind of processor holds the library.
fn has_library(libraries: &Path, name: &str) -> bool {
    let folders = std::fs::read_dir(libraries).into_iter().flatten().flatten();
    folders.map(|folder| folder.path()).any(|folder| {
        folder.to_string_lossy().ends_with("-linux-gnu") && folder.join(name).exists()
    })
}

fn answers_now(words: &[&str]) -> bool {
    let Some((program, rest)) = words.split_first() else { return false };
    let mut command = Command::new(program);
    command.args(rest).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lacks_is_one_message_with_the_commands_that_bring_it() {
        assert_eq!(message(NEEDS, &|_| true), None);
        let lacks = [
            Look::Program("qemu-system-aarch64"),
            Look::Program("redis-server"),
            Look::Program("pgbench"),
            Look::Program("postgres"),
            Look::Answers(&["cargo", "fuzz", "--version"]),
        ];
        let said = message(NEEDS, &|look| !lacks.contains(&look)).expect("something lacks");
        assert_eq!(
            said,
            "nothing was run: `cargo xtask ci --full` needs qemu-system-aarch64, redis-server, postgres, pgbench, \
             `cargo fuzz --version`, not found here. To install them:\n  \
             apt-get install --no-install-recommends postgresql qemu-system-arm redis-server\n  \
             cargo install cargo-fuzz"
        );
        let nightly = message(NEEDS, &|look| name(look) != "`cargo +nightly --version`");
        assert!(nightly.expect("it lacks").ends_with("\n  rustup toolchain install nightly"));
    }

    #[test]
    fn every_real_program_is_asked_for() {
        for program in safety::needed() {
            let asked = NEEDS.iter().any(|need| need.look == Look::Program(program));
            assert!(asked, "`cargo xtask safety` runs {program}, which nothing asks for");
        }
    }

    /// `.ci/run` names what the usual gate takes.
    #[test]
    fn what_the_gate_installs_is_asked_for() {
        let script = include_str!("../../../.ci/run");
        let asked: Vec<&str> = script
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'))
            .flat_map(|line| line.split("need+=(").skip(1))
            .filter_map(|rest| rest.split_once(')'))
            .flat_map(|(packages, _)| packages.split_whitespace())
            .filter(|package| !package.starts_with('"'))
            .collect();
        assert!(asked.len() > 10, "{asked:?}");
        for package in asked {
            let named = NEEDS
                .iter()
                .any(|need| matches!(need.bring, Bring::Packages(all) if all.contains(&package)));
            assert!(named, "{package} is installed by .ci/run, and nothing asks for it");
        }
    }

    #[test]
    fn programs_files_libraries_and_commands_are_looked_for() {
        assert!(is_there(Look::Program("sh")) && !is_there(Look::Program("no-such-program")));
        assert!(is_there(Look::File("/")) && !is_there(Look::File("/no/such/file")));
        assert!(is_there(Look::Answers(&["true"])) && !is_there(Look::Answers(&["false"])));
        assert!(!is_there(Look::Answers(&["no-such-program"])) && !is_there(Look::Answers(&[])));
        let libraries = tempfile::tempdir().expect("a folder");
        let folder = libraries.path().join("riscv64-linux-gnu");
        std::fs::create_dir(&folder).expect("made");
        assert!(!has_library(libraries.path(), "liba.so"));
        std::fs::write(folder.join("liba.so"), "").expect("written");
        assert!(has_library(libraries.path(), "liba.so"));
    }
}
