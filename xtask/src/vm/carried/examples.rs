//! The examples in C and C++ as programs, with the library that they are linked to: for the machine of 16 regions,
//! which has no compiler (`tests/vm/src/examples.rs` runs them).

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::super::archive::File;
use super::library::{Library, libraries};
use super::stripped::stripped;
use crate::vm::arch::Arch;

/// Where they lie here.
const CAPI: &str = "crates/use/capi";
/// By their names, and by what each is compiled.
const EXAMPLES: [(&str, &str); 7] = [
    ("tasks.c", "cc"),
    ("openmp.c", "cc"),
    ("collectives.c", "cc"),
    ("tier.c", "cc"),
    ("place.c", "cc"),
    ("wrapped.cpp", "c++"),
    ("place.cpp", "c++"),
];
/// The library as its name is built, and as programs look for it.
const BUILT: &str = "libisochrone.so";
const SONAME: &str = "libisochrone.so.0";

/// Compiles them with the library that lies in `target`; what they need beside that is added to `needed`.
pub(super) fn files(
    root: &Path,
    target: &Path,
    folder: &Path,
    needed: &mut Vec<Library>,
) -> Result<Vec<File>> {
    let built = target.join(BUILT);
    ensure!(built.exists(), "{} was not built", built.display());
    // Linked where it lies, so that the loader of this machine finds it as well, which says what else is needed.
    let beside = folder.join("libraries");
    std::fs::create_dir_all(&beside)?;
    let soname = beside.join(SONAME);
    std::fs::copy(&built, &soname)?;
    let mut files =
        vec![File::program(&format!("lib/{SONAME}"), &stripped(&soname, folder, Arch::X86)?)];
    for (source, compiler) in EXAMPLES {
        let name = source.replace(".cpp", "-cpp").replace(".c", "");
        let program = folder.join(&name);
        let output = Command::new(compiler)
            .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread", "-fopenmp"])
            .arg(if compiler == "cc" { "-std=c99" } else { "-std=c++17" })
            .arg("-I")
            .arg(root.join(CAPI).join("include"))
            .arg(root.join(CAPI).join("examples").join(source))
            .arg("-o")
            .arg(&program)
            .arg(&soname)
            .arg(format!("-Wl,-rpath,{}", beside.display()))
            .output()
            .with_context(|| format!("{compiler} cannot be started"))?;
        let words = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{source} cannot be compiled: {words}");
        files.push(File::program(&format!("examples/{name}"), &program));
        let found = libraries(&program)?.into_iter();
        needed.extend(found.filter(|library| !library.here.ends_with(SONAME)));
    }
    Ok(files)
}
