//! Shared libraries that a program on an emulated machine needs.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Where it lies, here and there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Library {
    /// Where the loader of the machine looks for it, without the first slash.
    pub(super) place: String,
    /// Where it lies here.
    pub(super) here: PathBuf,
}

/// The shared libraries of a program and the loader itself, as the loader finds them here.
pub(super) fn libraries(program: &Path) -> Result<Vec<Library>> {
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
