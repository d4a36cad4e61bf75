//! What an emulated machine has on its disk: the first process, the two programs with the library that is preloaded,
//! and the shared libraries that they need, where the loader looks for them.

mod cross;
mod library;

pub(super) use cross::{ATLAS, PROGRAMS as C_PROGRAMS};

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::arch::Arch;
use super::archive::File;
use crate::arm;
use library::Library;

/// What is built as the first process.
const FIRST: &str = "isochrone-vm-tests";
/// The programs, in `/bin`.
const PROGRAMS: [&str; 2] = ["isochrone", "isochrone-lab"];
const PRELOAD: &str = "libisochrone_malloc.so";

/// The first process; `with_programs` the two programs and the library too. `folder` is for what is made of them.
pub(super) fn files(
    root: &Path,
    folder: &Path,
    arch: Arch,
    with_programs: bool,
) -> Result<Vec<File>> {
    if arch == Arch::Arm {
        arm::ready()?;
    }
    build(root, arch)?;
    let target = target(root, arch);
    let mut places = vec![("init".to_owned(), target.join("debug").join(FIRST))];
    if with_programs {
        build_preload(root, arch)?;
        let of = |name: &str| (format!("bin/{name}"), target.join("debug").join(name));
        places.extend(PROGRAMS.map(of));
        places.push((format!("bin/{PRELOAD}"), target.join("release").join(PRELOAD)));
    }
    let (mut files, mut needed) = (Vec::new(), Vec::new());
    for (place, built) in places {
        files.push(File::program(&place, &stripped(&built, folder, arch)?)?);
        needed.extend(match arch {
            Arch::X86 => libraries(&built)?,
            Arch::Arm => cross::libraries(&built)?,
        });
    }
    needed.sort_unstable();
    needed.dedup();
    for library in needed {
        files.push(File::program(&library.place, &library.here)?);
    }
    if arch == Arch::Arm && with_programs {
        files.extend(cross::files(root, folder, &target)?);
    }
    Ok(files)
}

/// Builds all programs as tests have them: no time is judged there. Features are unified over what is built together,
/// and with a test among it they are those of `cargo test --workspace`. So after the tests of the gate all libraries
/// are there.
fn build(root: &Path, arch: Arch) -> Result<()> {
    let mut words = vec!["build", "--workspace", "--locked", "--test", "e2e"];
    for name in PROGRAMS.iter().chain([&FIRST]) {
        words.extend(["--bin", name]);
    }
    match arch {
        Arch::X86 => cargo(root, &words),
        Arch::Arm => {
            // Programs in C are linked with one of them, and a program of MPI's would be with another.
            words.push("--lib");
            arm::cargo(root, &words)
        }
    }
}

/// The command of this machine's, as the tests of the gate have it.
pub(super) fn program_here(root: &Path) -> Result<PathBuf> {
    build(root, Arch::X86)?;
    Ok(target(root, Arch::X86).join("debug").join(PROGRAMS[0]))
}

/// Where cargo puts what it builds.
fn target(root: &Path, arch: Arch) -> PathBuf {
    match arch {
        Arch::X86 => {
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
        }
        Arch::Arm => root.join(arm::FOLDER).join(arm::TARGET),
    }
}

/// The library as it is shipped.
fn build_preload(root: &Path, arch: Arch) -> Result<()> {
    match arch {
        Arch::X86 => cargo(root, &["preload", "--locked"]),
        Arch::Arm => {
            arm::cargo(root, &["build", "--release", "--locked", "--manifest-path", arm::PRELOAD])
        }
    }
}

fn cargo(root: &Path, words: &[&str]) -> Result<()> {
    let status = Command::new("cargo").args(words).current_dir(root).status();
    let status = status.context("cargo cannot be started")?;
    ensure!(status.success(), "`cargo {}` failed", words.join(" "));
    Ok(())
}

/// A copy without what only debuggers read, which is most of it: a machine of little memory unpacks it.
fn stripped(program: &Path, folder: &Path, arch: Arch) -> Result<PathBuf> {
    let copy = folder.join(program.file_name().context("a program without a name")?);
    let (tool, package) = match arch {
        Arch::X86 => ("strip", "binutils"),
        Arch::Arm => ("aarch64-linux-gnu-strip", "binutils-aarch64-linux-gnu"),
    };
    let status = Command::new(tool).arg("--strip-debug").arg("-o").arg(&copy).arg(program).status();
    let status = status
        .with_context(|| format!("{tool} cannot be started: install the package {package}"))?;
    ensure!(status.success(), "strip does not understand {}", program.display());
    Ok(copy)
}

/// The shared libraries of a program and the loader itself, as the loader finds them here.
fn libraries(program: &Path) -> Result<Vec<Library>> {
    let asked = Command::new("ldd").arg(program).output().context("ldd cannot be started")?;
    ensure!(asked.status.success(), "ldd does not understand {}", program.display());
    let library = |path: String| Library {
        place: path.trim_start_matches('/').to_owned(),
        here: PathBuf::from(path),
    };
    Ok(paths(&String::from_utf8_lossy(&asked.stdout)).into_iter().map(library).collect())
}

/// The paths in what `ldd` prints: `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x...)`, and for the loader
/// `/lib64/ld-linux-x86-64.so.2 (0x...)`. What the kernel brings itself has none.
fn paths(text: &str) -> Vec<String> {
    let path = |line: &str| {
        let found = line.split_once("=> ").map_or(line, |(_, found)| found).trim();
        let path = found.split_whitespace().next()?;
        path.starts_with('/').then(|| path.to_owned())
    };
    text.lines().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_with_their_loader() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\
                    \tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        assert_eq!(paths(text), ["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/ld-linux-x86-64.so.2"]);
        assert_eq!(paths("\tstatically linked\n"), [""; 0]);
    }
}
