//! `cargo xtask schemas`: the schemas in `docs/schemas`, drawn anew from the types; and whether tests have seen every
//! format. What a schema is, the tests of the crates know: they leave drawings and notes beside what was built.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// Where tests leave drawings and notes (`crates/ground/schemas`): beside this program, which is of the same profile.
fn notes() -> Result<PathBuf> {
    let here = std::env::current_exe().context("this program lies nowhere")?;
    Ok(here.parent().context("a program lies in a folder")?.join("schemas"))
}

/// The names of the files in a folder, in order; none where there is no folder.
fn names(folder: &Path) -> Result<Vec<String>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Draws all schemas and puts those that differ into the tree; their names.
pub(crate) fn draw(root: &Path) -> Result<Vec<String>> {
    let drawn = notes()?.join("drawn");
    if drawn.exists() {
        fs::remove_dir_all(&drawn).with_context(|| drawn.display().to_string())?;
    }
    // It fails where a schema differs, which is what is to be mended.
    let _differs = Command::new("cargo")
        .args([
            "test",
            "--no-fail-fast",
            "--quiet",
            "-p",
            "isochrone",
            "-p",
            "isochrone-lab",
            "schemas_are_drawn",
        ])
        .current_dir(root)
        .output()
        .context("cargo cannot be started")?;
    let names = names(&drawn)?;
    ensure!(
        !names.is_empty(),
        "nothing was drawn: see what `cargo test -p isochrone schemas_are_drawn` says"
    );
    let mut differ = Vec::new();
    for name in names {
        let (new, old) = (drawn.join(&name), root.join("docs/schemas").join(&name));
        let text = fs::read_to_string(&new).with_context(|| new.display().to_string())?;
        if fs::read_to_string(&old).is_ok_and(|before| before == text) {
            continue;
        }
        fs::write(&old, text).with_context(|| old.display().to_string())?;
        differ.push(name);
    }
    Ok(differ)
}

/// Forgets which formats were seen.
pub(crate) fn forget() -> Result<()> {
    let seen = notes()?.join("seen");
    if seen.exists() {
        fs::remove_dir_all(&seen).with_context(|| seen.display().to_string())?;
    }
    Ok(())
}

/// Fails where the tests since [`forget`] have held no output of some format against its schema.
pub(crate) fn all_seen(root: &Path) -> Result<()> {
    let seen = names(&notes()?.join("seen"))?;
    let schemas = names(&root.join("docs/schemas"))?;
    let formats = schemas.iter().filter_map(|name| name.strip_suffix(".schema.json"));
    let missed: Vec<&str> = formats.filter(|name| !seen.iter().any(|one| one == name)).collect();
    if !missed.is_empty() {
        bail!("no test has held an output against the schema of: {}", missed.join(", "));
    }
    Ok(())
}
