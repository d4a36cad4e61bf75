//! What the house consists of: every manifest in the tree, as cargo reads it. A workspace inside the tree that ours
//! excludes is asked too, so no manifest escapes the rules. Nothing is downloaded: only own crates are read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A package of this repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// The package's name without `isochrone-`; the command's package, which is called like the product, is `cli`.
    pub(super) name: String,
    /// Where it lies, from the root of the repository.
    pub(super) folder: PathBuf,
    /// Own packages that it is built of; those of its build script count.
    pub(super) stands_on: BTreeSet<String>,
    /// Own packages that only its tests and examples need.
    pub(super) tested_with: BTreeSet<String>,
}

/// Every package below `root`, in the order of their folders.
pub(super) fn of(root: &Path) -> Result<Vec<Member>> {
    let root = &root.canonicalize().with_context(|| root.display().to_string())?;
    let mut all: Vec<Member> = Vec::new();
    for manifest in super::files::below(root, &|path| path.ends_with("Cargo.toml"))? {
        let folder = manifest.parent().and_then(|f| f.strip_prefix(root).ok()).unwrap_or(root);
        if all.iter().all(|member| member.folder != folder) {
            all.extend(workspace(root, &manifest)?);
        }
    }
    // A workspace may have been met by one of its members first.
    all.sort_by(|a, b| a.folder.cmp(&b.folder));
    all.dedup_by(|a, b| a.folder == b.folder);
    Ok(all)
}

/// The packages of the workspace to which a manifest belongs.
fn workspace(root: &Path, manifest: &Path) -> Result<Vec<Member>> {
    let told = Command::new("cargo")
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1", "--manifest-path"])
        .arg(manifest)
        .output()
        .context("cargo cannot be started")?;
    if !told.status.success() {
        bail!("{}: {}", manifest.display(), String::from_utf8_lossy(&told.stderr).trim());
    }
    let metadata: Value = serde_json::from_slice(&told.stdout)?;
    let packages = metadata["packages"].as_array().context("cargo lists no packages")?;
    packages.iter().map(|package| member(root, package)).collect()
}

fn member(root: &Path, package: &Value) -> Result<Member> {
    let manifest = Path::new(package["manifest_path"].as_str().context("a package lies nowhere")?);
    let folder = manifest.parent().and_then(|f| f.strip_prefix(root).ok());
    let mut found = Member {
        name: short(package["name"].as_str().context("a package without a name")?),
        folder: folder.context("a package outside of the repository")?.to_path_buf(),
        stands_on: BTreeSet::new(),
        tested_with: BTreeSet::new(),
    };
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        // Only own crates have a path.
        let (Some(name), Some(_)) = (dependency["name"].as_str(), dependency["path"].as_str())
        else {
            continue;
        };
        let dev = dependency["kind"] == "dev";
        if dev { &mut found.tested_with } else { &mut found.stands_on }.insert(short(name));
    }
    Ok(found)
}

fn short(package: &str) -> String {
    match package {
        "isochrone" => "cli".to_owned(),
        _ => package.strip_prefix("isochrone-").unwrap_or(package).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn package(root: &Path, folder: &str, name: &str, rest: &str) {
        let folder = root.join(folder);
        fs::create_dir_all(folder.join("src")).unwrap();
        fs::write(folder.join("src/lib.rs"), "//! A crate.\n").unwrap();
        let text = format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n{rest}");
        fs::write(folder.join("Cargo.toml"), text).unwrap();
    }

    #[test]
    fn members_are_those_of_the_workspace_and_those_that_it_excludes() {
        let tree = tempfile::tempdir().unwrap();
        let root = tree.path();
        let text =
            "[workspace]\nmembers = [\"crates/*/*\"]\nexclude = [\"fuzz\"]\nresolver = \"3\"\n";
        fs::write(root.join("Cargo.toml"), text).unwrap();
        package(root, "crates/ground/units", "isochrone-units", "");
        let rest = "[dependencies]\nisochrone-units = { path = \"../../ground/units\" }\n\
                    [dev-dependencies]\nisochrone-kit = { path = \"../kit\" }\n";
        package(root, "crates/use/cli", "isochrone", rest);
        let rest = "[build-dependencies]\nisochrone-units = { path = \"../../ground/units\" }\nlibc = \"0.2\"\n";
        package(root, "crates/use/kit", "isochrone-kit", rest);
        let rest =
            "[dependencies]\nisochrone-kit = { path = \"../crates/use/kit\" }\n[workspace]\n";
        package(root, "fuzz", "isochrone-fuzz", rest);
        // What was built is no part of the house.
        package(root, "target/package/old", "old", "[workspace]\n");

        let shown: Vec<String> = of(root).unwrap().iter().map(shown).collect();
        assert_eq!(
            shown,
            [
                "crates/ground/units: units [] []",
                "crates/use/cli: cli [units] [kit]",
                "crates/use/kit: kit [units] []",
                "fuzz: fuzz [kit] []",
            ]
        );
    }

    fn shown(member: &Member) -> String {
        let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(" ");
        let (on, with) = (list(&member.stands_on), list(&member.tested_with));
        format!("{}: {} [{on}] [{with}]", member.folder.display(), member.name)
    }
}
