//! The rules of the house that a compiler does not check: which crate may stand on which, where
//! `unsafe` may be, how a file begins, how long a line is, and which crates may print.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// What each crate may depend on, of this workspace. The floors of ARCHITECTURE.md.
const FLOORS: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("machine", &["units"]),
    ("stats", &[]),
    ("os", &["units"]),
    ("atlas", &["units"]),
    ("decode", &["units", "atlas"]),
    ("distance", &["units", "machine", "atlas"]),
    ("alloc", &["units", "atlas", "decode", "os"]),
    ("malloc", &["units", "atlas", "os", "alloc"]),
    ("preload", &["malloc"]),
    ("report", &["units"]),
    ("sim", &["units", "machine", "stats"]),
    ("host", &["units", "machine", "os"]),
    ("atlas-store", &["units", "machine", "stats", "atlas"]),
    ("places", &["host", "atlas-store"]),
    (
        "probe",
        &["units", "machine", "stats", "os", "host", "sim", "atlas", "decode", "atlas-store"],
    ),
    ("cla", &["units", "machine", "stats", "sim", "distance", "os"]),
    ("mpi", &["cla"]),
    ("capi", &["atlas-store", "cla", "host", "places", "tasks", "tier"]),
    ("tier", &["units", "machine", "stats", "sim", "atlas", "distance", "os", "cla"]),
    ("tasks", &["units", "machine", "stats", "atlas", "distance", "sim", "os"]),
    (
        "workloads",
        &["units", "machine", "stats", "sim", "atlas", "alloc", "malloc", "tasks", "tier"],
    ),
    (
        "console",
        &[
            "units",
            "machine",
            "stats",
            "os",
            "host",
            "places",
            "distance",
            "atlas-store",
            "alloc",
            "malloc",
            "cla",
            "probe",
            "report",
        ],
    ),
    (
        "cli",
        &[
            "units",
            "machine",
            "stats",
            "os",
            "host",
            "places",
            "atlas",
            "atlas-store",
            "probe",
            "alloc",
            "malloc",
            "cla",
            "console",
            "mpi",
            "tier",
            "report",
        ],
    ),
    (
        "lab",
        &[
            "units",
            "machine",
            "stats",
            "os",
            "host",
            "sim",
            "atlas",
            "atlas-store",
            "probe",
            "alloc",
            "malloc",
            "cla",
            "console",
            "mpi",
            "tasks",
            "tier",
            "workloads",
            "report",
        ],
    ),
];
/// Crates that must build without the standard library.
const NO_STD: &[&str] = &[
    "units", "machine", "stats", "os", "atlas", "decode", "distance", "alloc", "malloc", "preload",
];
/// Crates that must not allocate: the malloc replacement stands on them.
const NO_ALLOC: &[&str] =
    &["units", "os", "atlas", "decode", "distance", "alloc", "malloc", "preload"];
/// Crates in which `unsafe` may appear.
const UNSAFE: &[&str] = &["os", "atlas-store", "malloc", "preload", "mpi", "capi"];
/// Files in other crates in which it may appear: a folder, or a file without `.rs`.
const UNSAFE_IN: &[&str] = &[
    "cla/src/live",
    "lab/src/bench/cholesky/foreign",
    "tasks/src/arena",
    "tasks/src/live",
    "tasks/src/simulated",
    "tier/src/live",
    "workloads/src/tiered/tasks",
];
/// Longest line of a source file.
const LINE_CHARS_MAX: usize = 120;

/// Checks every rule and reports all breaches at once.
pub(crate) fn run(root: &Path) -> Result<()> {
    let mut breaches = Vec::new();
    for (name, allowed) in FLOORS {
        let folder = root.join("crates").join(name);
        floors(&folder, name, allowed, &mut breaches)?;
        for file in rust_files(&folder.join("src"))? {
            source(name, &file, &mut breaches)?;
        }
        attributes(&folder, name, &mut breaches)?;
    }
    unlisted(root, &mut breaches)?;
    crate::readings::check(root, &mut breaches)?;
    if breaches.is_empty() { Ok(()) } else { bail!("tidy:\n{}", breaches.join("\n")) }
}

fn floors(folder: &Path, name: &str, allowed: &[&str], breaches: &mut Vec<String>) -> Result<()> {
    let path = folder.join("Cargo.toml");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let manifest: toml::Table = text.parse().with_context(|| path.display().to_string())?;
    let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
    let names = dependencies.into_iter().flat_map(toml::Table::keys);
    for dependency in names.filter_map(|n| n.strip_prefix("isochrone-")) {
        if !allowed.contains(&dependency) {
            breaches.push(format!("{name} must not depend on {dependency} (see ARCHITECTURE.md)"));
        }
    }
    Ok(())
}

fn source(name: &str, file: &Path, breaches: &mut Vec<String>) -> Result<()> {
    let text = fs::read_to_string(file)?;
    let shown = file.display();
    if !text.starts_with("//!") {
        breaches.push(format!("{shown}: begins without `//!` lines that say why it exists"));
    }
    for (number, line) in text.lines().enumerate() {
        if line.chars().count() > LINE_CHARS_MAX && !line.contains("http") {
            breaches.push(format!("{shown}:{}: longer than {LINE_CHARS_MAX}", number + 1));
        }
        let code = line.split("//").next().unwrap_or("");
        let unsafe_block = code.contains("unsafe {") || code.contains("unsafe fn");
        if unsafe_block && !UNSAFE.contains(&name) && !may_be_unsafe(file) {
            breaches.push(format!("{shown}:{}: unsafe outside {UNSAFE:?}", number + 1));
        }
    }
    Ok(())
}

fn may_be_unsafe(file: &Path) -> bool {
    let stem = file.with_extension("");
    let inside = |part: &&str| stem.ancestors().any(|above| above.ends_with(part));
    UNSAFE_IN.iter().any(inside)
}

fn attributes(folder: &Path, name: &str, breaches: &mut Vec<String>) -> Result<()> {
    let entry = ["src/lib.rs", "src/main.rs"].map(|f| folder.join(f));
    let entry = entry.iter().find(|f| f.exists()).context("a crate without lib.rs or main.rs")?;
    let text = fs::read_to_string(entry)?;
    if NO_STD.contains(&name) && !text.contains("#![no_std]") {
        breaches.push(format!("{name} must be no_std"));
    }
    if NO_ALLOC.contains(&name) && text.contains("extern crate alloc") {
        breaches.push(format!("{name} must not allocate"));
    }
    Ok(())
}

/// Every folder under crates/ has its place on a floor.
fn unlisted(root: &Path, breaches: &mut Vec<String>) -> Result<()> {
    let known: BTreeMap<&str, &[&str]> = FLOORS.iter().copied().collect();
    for entry in fs::read_dir(root.join("crates"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !known.contains_key(name.as_str()) {
            breaches.push(format!("crates/{name} has no floor: add it to xtask/src/tidy.rs"));
        }
    }
    Ok(())
}

fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}
