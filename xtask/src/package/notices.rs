//! Licences of what is linked into programs and libraries, as their authors ask for: the texts that lie in their
//! packages, each once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::tool;

/// What the compiler brings; its packages hold no texts.
const COMPILER: &str = "\
The Rust standard library: MIT OR Apache-2.0, copyright The Rust Project Developers.
musl, in a program without a C library of the system: MIT, copyright 2005-2020 Rich Felker and others.
Both texts are among those below.
";

/// The notices of all packages that `roots` are linked with.
pub(super) fn of(root: &Path, roots: &[&str]) -> Result<String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--format-version=1", "--locked", "--filter-platform"]);
    cargo.arg(super::zig::Zig::target()).current_dir(root);
    let all: Value = serde_json::from_str(&tool::output(&mut cargo, "cargo")?)?;
    let linked = linked(&all, roots);
    let packages = all["packages"].as_array().context("cargo names no packages")?;
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut lines = COMPILER.to_owned();
    // What has no source is ours.
    let others = packages.iter().filter(|package| !package["source"].is_null());
    for package in others.filter(|package| linked.contains(text(&package["id"]))) {
        let name = format!("{} {}", text(&package["name"]), text(&package["version"]));
        lines += &format!("{name}: {}\n", text(&package["license"]));
        for file in files(Path::new(text(&package["manifest_path"])))? {
            texts.entry(file).or_default().push(name.clone());
        }
    }
    for (text, names) in texts {
        let line = "-".repeat(80);
        lines += &format!("\n{line}\n{}\n{line}\n\n{}\n", names.join(", "), text.trim_end());
    }
    Ok(lines)
}

/// All packages that are linked, and not only built or tested with: their names for cargo.
fn linked<'a>(all: &'a Value, roots: &[&str]) -> BTreeSet<&'a str> {
    let nodes = all["resolve"]["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let packages = all["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let named = packages.iter().filter(|package| roots.contains(&text(&package["name"])));
    let mut open: Vec<&str> = named.map(|package| text(&package["id"])).collect();
    let mut found = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !found.insert(id) {
            continue;
        }
        let node = nodes.iter().find(|node| text(&node["id"]) == id);
        let needs = node.and_then(|node| node["deps"].as_array()).map(Vec::as_slice);
        open.extend(
            needs
                .unwrap_or_default()
                .iter()
                .filter(|need| is_linked(need))
                .map(|need| text(&need["pkg"])),
        );
    }
    found
}

fn is_linked(need: &Value) -> bool {
    need["dep_kinds"]
        .as_array()
        .is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The texts beside a manifest.
fn files(manifest: &Path) -> Result<Vec<String>> {
    let folder = manifest.parent().context("a manifest in a folder")?;
    let all = super::tree::files(folder)?.into_iter().filter(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        let starts = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];
        file.is_file() && starts.iter().any(|start| name.starts_with(start))
    });
    all.map(|file| Ok(String::from_utf8_lossy(&std::fs::read(file)?).into_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_has_its_texts_and_what_only_tests_use_has_none() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let said = of(&root, &["isochrone"]).expect("cargo knows");
        assert!(said.contains("\nclap 4.") && said.contains("Permission is hereby granted"));
        assert!(said.contains("\nzstd-sys 2.") && said.contains("For Zstandard software"));
        assert!(!said.contains("\nproptest ") && !said.contains("\nisochrone-os "));
        assert!(of(&root, &["no-such-package"]).expect("nothing").lines().count() < 5);
    }
}
