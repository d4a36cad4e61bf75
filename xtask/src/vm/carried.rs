//! What an emulated machine has on its disk: the two programs as they are built for people, the library that is
//! preloaded, and the shared libraries that they need, where the loader looks for them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::archive::File;

/// The programs, in `/bin`.
const PROGRAMS: [&str; 2] = ["isochrone", "isochrone-lab"];
const PRELOAD: &str = "libisochrone_malloc.so";

/// Builds both programs and the library, and reads them with all that they need.
pub(super) fn files(root: &Path) -> Result<Vec<File>> {
    cargo(root, &["build", "--release", "--locked", "-p", "isochrone", "-p", "isochrone-lab"])?;
    cargo(root, &["preload", "--locked"])?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let built = target.join("release");
    let mut files = Vec::new();
    let mut needed = Vec::new();
    for name in PROGRAMS.iter().chain([&PRELOAD]) {
        files.push(File::program(&format!("bin/{name}"), &built.join(name))?);
        needed.extend(libraries(&built.join(name))?);
    }
    needed.sort_unstable();
    needed.dedup();
    for path in needed {
        files.push(File::program(path.trim_start_matches('/'), Path::new(&path))?);
    }
    Ok(files)
}

fn cargo(root: &Path, words: &[&str]) -> Result<()> {
    let status = Command::new("cargo").args(words).current_dir(root).status();
    let status = status.context("cargo cannot be started")?;
    ensure!(status.success(), "`cargo {}` failed", words.join(" "));
    Ok(())
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
