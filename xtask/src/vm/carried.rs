//! What an emulated machine has on its disk: the first process, the two programs with the library that is preloaded,
//! and the shared libraries that they need, where the loader looks for them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::archive::File;

/// What is built as the first process.
const FIRST: &str = "isochrone-vm-tests";
/// The programs, in `/bin`.
const PROGRAMS: [&str; 2] = ["isochrone", "isochrone-lab"];
const PRELOAD: &str = "libisochrone_malloc.so";

/// The first process; `with_programs` the two programs and the library too. `folder` is for what is made of them.
pub(super) fn files(root: &Path, folder: &Path, with_programs: bool) -> Result<Vec<File>> {
    build(root)?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let mut places = vec![("init".to_owned(), target.join("debug").join(FIRST))];
    if with_programs {
        cargo(root, &["preload", "--locked"])?;
        let of = |name: &str| (format!("bin/{name}"), target.join("debug").join(name));
        places.extend(PROGRAMS.map(of));
        places.push((format!("bin/{PRELOAD}"), target.join("release").join(PRELOAD)));
    }
    let (mut files, mut needed) = (Vec::new(), Vec::new());
    for (place, built) in places {
        files.push(File::program(&place, &stripped(&built, folder)?)?);
        needed.extend(libraries(&built)?);
    }
    needed.sort_unstable();
    needed.dedup();
    for path in needed {
        files.push(File::program(path.trim_start_matches('/'), Path::new(&path))?);
    }
    Ok(files)
}

/// Builds all programs as tests have them: no time is judged there. Features are unified over what is built together,
/// and with a test among it they are those of `cargo test --workspace`. So after the tests of the gate all libraries
/// are there.
fn build(root: &Path) -> Result<()> {
    let mut words = vec!["build", "--workspace", "--locked", "--test", "e2e"];
    for name in PROGRAMS.iter().chain([&FIRST]) {
        words.extend(["--bin", name]);
    }
    cargo(root, &words)
}

fn cargo(root: &Path, words: &[&str]) -> Result<()> {
    let status = Command::new("cargo").args(words).current_dir(root).status();
    let status = status.context("cargo cannot be started")?;
    ensure!(status.success(), "`cargo {}` failed", words.join(" "));
    Ok(())
}

/// A copy without what only debuggers read, which is most of it: a machine of little memory unpacks it.
fn stripped(program: &Path, folder: &Path) -> Result<PathBuf> {
    let copy = folder.join(program.file_name().context("a program without a name")?);
    let status =
        Command::new("strip").arg("--strip-debug").arg("-o").arg(&copy).arg(program).status();
    let status = status.context("strip cannot be started: install the package binutils")?;
    ensure!(status.success(), "strip does not understand {}", program.display());
    Ok(copy)
}

/// The shared libraries of a program and the loader itself, as the loader finds them here.
fn libraries(program: &Path) -> Result<Vec<String>> {
    let asked = Command::new("ldd").arg(program).output().context("ldd cannot be started")?;
    ensure!(asked.status.success(), "ldd does not understand {}", program.display());
    Ok(paths(&String::from_utf8_lossy(&asked.stdout)))
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
