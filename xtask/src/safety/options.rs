//! What the command line of `cargo xtask safety` says.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

#[derive(Debug)]
pub(super) struct Options {
    pub(super) isochrone: PathBuf,
    pub(super) atlas: Option<PathBuf>,
    pub(super) json: Option<PathBuf>,
    /// Blocks of timed runs of each program; none where only results are compared.
    pub(super) blocks: usize,
    pub(super) only: Vec<String>,
}

impl Options {
    pub(super) fn read(root: &Path, mut words: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self {
            isochrone: root.join("target/release/isochrone"),
            atlas: None,
            json: None,
            blocks: 0,
            only: Vec::new(),
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word}: a value is missing"));
            match word.as_str() {
                "--isochrone" => options.isochrone = value()?.into(),
                "--atlas" => options.atlas = Some(Path::new(&value()?).canonicalize()?),
                "--json" => options.json = Some(value()?.into()),
                "--blocks" => options.blocks = value()?.parse().context("--blocks: no number")?,
                name => options.only.push(name.to_owned()),
            }
        }
        let found = options.isochrone.canonicalize();
        options.isochrone = found.with_context(|| {
            format!(
                "{} is not there: cargo build --release && cargo preload",
                options.isochrone.display()
            )
        })?;
        Ok(options)
    }

    pub(super) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }
}
