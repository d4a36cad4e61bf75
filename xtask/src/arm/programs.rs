//! Whether the compiler of AArch64 takes the C programs of tests: system calls and headers of one kind of processor are
//! not those of another, and the emulated machine that runs these tests is booted seldom.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::LINKER;
use crate::ci::say;

/// Where those programs lie that ask the system itself.
const FOLDERS: [&str; 3] = [
    "crates/arrange/malloc/tests/preload/c",
    "crates/arrange/malloc/tests/preload/rules",
    "crates/arrange/tier/tests/pager/c",
];

/// Reads all of them as the compiler would. Nothing is written.
///
/// # Errors
/// The first that the compiler refuses, with its words.
pub(super) fn check(root: &Path) -> Result<()> {
    let programs = programs(root)?;
    for program in &programs {
        taken(LINKER, program)?;
    }
    say(&format!("aarch64: the compiler takes {} C programs of tests", programs.len()));
    Ok(())
}

/// The programs, in the order of their names.
fn programs(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        for entry in root.join(folder).read_dir().with_context(|| folder.to_owned())? {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "c") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Whether `compiler` takes this program.
fn taken(compiler: &str, program: &Path) -> Result<()> {
    let asked = Command::new(compiler)
        .args(["-fsyntax-only", "-w", "-pthread"])
        .arg(program)
        .output()
        .with_context(|| format!("{compiler} cannot be started"))?;
    let words = String::from_utf8_lossy(&asked.stderr);
    ensure!(asked.status.success(), "{compiler} refuses {}:\n{words}", program.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_refused_where_the_compiler_refuses_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("a.c");
        std::fs::write(&program, "int main(void) { return 0; }\n").expect("written");
        taken("cc", &program).expect("it is a program");
        std::fs::write(&program, "int main(void) { return SYS_no_such; }\n").expect("written");
        let refused = taken("cc", &program).expect_err("it is none").to_string();
        assert!(refused.contains("SYS_no_such") && refused.contains("a.c"), "{refused}");
    }

    #[test]
    fn the_programs_of_the_preload_are_found() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let found = programs(&root).expect("folders");
        assert!(found.iter().any(|program| program.ends_with("sandbox.c")), "{found:?}");
    }
}
