//! Fuzzing, with what it finds kept apart from the stored corpus: tests replay that corpus, and a file in it that
//! nobody has looked at fails them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::ci::say;

/// Time for each target where none is given.
const SECONDS: u32 = 120;

/// The targets, each with folders of inputs to begin from beside its corpus.
const TARGETS: &[(&str, &[&str])] = &[
    ("alloc_ops", &[]),
    ("atlas_reader", &[]),
    ("cla_program", &["examples/cla"]),
    ("machine_toml", &[]),
];

/// What is fuzzed, and for how long.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    seconds: u32,
    targets: Vec<&'static str>,
}

impl Wanted {
    fn of(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let mut wanted = Self { seconds: SECONDS, targets: Vec::new() };
        while let Some(word) = words.next() {
            if word == "--seconds" {
                let value = words.next().context("--seconds needs a number")?;
                wanted.seconds =
                    value.parse().with_context(|| format!("{value:?} is no number of seconds"))?;
            } else if let Some((name, _)) = TARGETS.iter().find(|(name, _)| *name == word) {
                wanted.targets.push(name);
            } else {
                let names: Vec<_> = TARGETS.iter().map(|(name, _)| *name).collect();
                bail!("unknown target {word:?}; there are {}", names.join(", "));
            }
        }
        if wanted.targets.is_empty() {
            wanted.targets = TARGETS.iter().map(|(name, _)| *name).collect();
        }
        Ok(wanted)
    }
}

/// Fuzzes the targets that `words` name, or all. Errors: a word that is neither, or an input that fails, which
/// `cargo fuzz` has printed.
pub(crate) fn run(root: &Path, words: impl Iterator<Item = String>) -> Result<()> {
    let wanted = Wanted::of(words)?;
    for target in wanted.targets {
        let folders = folders(root, target)?;
        let status = Command::new("cargo")
            .args(["+nightly", "fuzz", "run", target])
            .args(&folders)
            .arg("--")
            .arg(format!("-max_total_time={}", wanted.seconds))
            .current_dir(root)
            .status()
            .context("cargo cannot be started")?;
        if !status.success() {
            bail!(
                "{target}: {status}; needs `rustup toolchain install nightly` and `cargo install cargo-fuzz`"
            );
        }
        say(&format!("{target}: nothing found in {} s", wanted.seconds));
    }
    Ok(())
}

/// Folders of inputs for a target: first the one that libFuzzer adds to, which is made.
fn folders(root: &Path, target: &str) -> Result<Vec<PathBuf>> {
    let found = Path::new("target/fuzz-found").join(target);
    std::fs::create_dir_all(root.join(&found))
        .with_context(|| format!("{} cannot be made", found.display()))?;
    let seeds = TARGETS.iter().find(|(name, _)| *name == target).map_or(&[][..], |(_, more)| *more);
    let corpus = Path::new("fuzz/corpus").join(target);
    Ok([found, corpus].into_iter().chain(seeds.iter().map(PathBuf::from)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Result<Wanted> {
        Wanted::of(words.iter().map(|word| (*word).to_owned()))
    }

    #[test]
    fn all_targets_are_fuzzed_where_none_is_named() {
        assert_eq!(of(&[]).expect("all").targets.len(), TARGETS.len());
        let one = of(&["--seconds", "5", "atlas_reader"]).expect("one");
        assert_eq!(one, Wanted { seconds: 5, targets: vec!["atlas_reader"] });
        assert!(of(&["atlas"]).is_err() && of(&["--seconds"]).is_err());
        assert!(of(&["--seconds", "x"]).is_err());
    }

    #[test]
    fn targets_are_those_of_the_manifest_and_have_a_corpus() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let manifest = std::fs::read_to_string(root.join("fuzz/Cargo.toml")).expect("a manifest");
        assert_eq!(manifest.matches("[[bin]]").count(), TARGETS.len());
        for (name, seeds) in TARGETS {
            assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
            assert!(root.join("fuzz/corpus").join(name).is_dir(), "{name}");
            assert!(seeds.iter().all(|folder| root.join(folder).is_dir()), "{name}");
        }
    }
}
