//! What the command line of `cargo xtask mpich-suite` says.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::numbers::number;

/// The folders of the suite that concern collectives.
const PARTS: [&str; 6] = ["coll", "comm", "datatype", "errors/coll", "errors/comm", "threads/coll"];
/// The MPIs, as Debian names their commands.
const MPIS: [&str; 2] = ["openmpi", "mpich"];
const RANKS: [u32; 5] = [2, 3, 4, 5, 8];
/// Limit of a run, s.
const SECONDS: u32 = 60;

/// What is run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Options {
    /// The suite's `test/mpi`.
    pub(super) sources: PathBuf,
    pub(super) library: PathBuf,
    pub(super) mpis: Vec<String>,
    pub(super) parts: Vec<String>,
    pub(super) ranks: Vec<u32>,
    /// These programs alone; empty: all.
    only: Vec<String>,
    pub(super) seconds: u32,
    pub(super) json: Option<PathBuf>,
}

impl Options {
    pub(super) fn read(root: &Path, mut words: impl Iterator<Item = String>) -> Result<Self> {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let mut options = Self {
            sources: PathBuf::new(),
            library: root.join("target/release/libisochrone_mpi.so"),
            mpis: owned(&MPIS),
            parts: owned(&PARTS),
            ranks: RANKS.to_vec(),
            only: Vec::new(),
            seconds: SECONDS,
            json: None,
        };
        while let Some(word) = words.next() {
            let value = words.next().with_context(|| format!("{word}: a value is missing"));
            let list = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
            match word.as_str() {
                "--sources" => options.sources = value?.into(),
                "--library" => options.library = value?.into(),
                "--json" => options.json = Some(value?.into()),
                "--mpi" => options.mpis = known(&list(&value?), &MPIS)?,
                "--parts" => options.parts = known(&list(&value?), &PARTS)?,
                "--only" => options.only = list(&value?),
                "--ranks" => {
                    let numbers = list(&value?);
                    options.ranks =
                        numbers.iter().map(|text| number(text)).collect::<Result<_>>()?;
                }
                "--seconds" => options.seconds = number(&value?)?,
                _ => bail!(
                    "{word} is no option; there are --sources, --library, --mpi, --parts, --only, --ranks, \
                     --seconds, --json"
                ),
            }
        }
        let below = options.sources.join("test/mpi");
        if below.is_dir() {
            options.sources = below;
        }
        let configure = options.sources.join("configure");
        ensure!(
            configure.is_file(),
            "{} is not there: --sources names the folder of MPICH's sources (apt-get source mpich)",
            configure.display()
        );
        Ok(options)
    }

    pub(super) fn wants(&self, program: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == program)
    }

    /// What was asked for, in words.
    pub(super) fn words(&self) -> String {
        format!("MPIs {:?}, folders {:?}, programs {:?}", self.mpis, self.parts, self.only)
    }
}

/// Words that are all among those that there are.
fn known(words: &[String], there: &[&str]) -> Result<Vec<String>> {
    if let Some(other) = words.iter().find(|word| !there.contains(&word.as_str())) {
        bail!("there is no {other:?}; there are {}", there.join(", "));
    }
    Ok(words.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_is_run() {
        let sources = tempfile::tempdir().expect("a folder");
        let below = sources.path().join("test/mpi");
        std::fs::create_dir_all(&below).expect("room");
        std::fs::write(below.join("configure"), "").expect("room");
        let there = sources.path().display().to_string();
        let read = |words: &[&str]| {
            let words = ["--sources", &there].into_iter().chain(words.iter().copied());
            Options::read(Path::new("/r"), words.map(str::to_owned).collect::<Vec<_>>().into_iter())
        };
        let options =
            read(&["--ranks", "2,4", "--mpi", "mpich", "--only", "allred"]).expect("valid");
        assert_eq!(
            (&options.ranks[..], &options.mpis[..]),
            (&[2, 4][..], &["mpich".to_owned()][..])
        );
        assert_eq!((&options.sources, options.parts.len()), (&below, 6));
        assert!(options.wants("allred") && !options.wants("allred2"));
        for (words, named) in [
            (&["--ranks", "two"][..], "two"),
            (&["--seconds", "0"], "\"0\""),
            (&["--rank", "2"], "--rank is no option"),
            (&["--mpi", "lam"], "lam"),
            (&["--parts", "io"], "errors/coll"),
            (&["--json"], "--json: a value"),
            (&["--sources", "/no/mpich"], "apt-get source"),
        ] {
            let why = read(words).expect_err("not valid").to_string();
            assert!(why.contains(named), "{why}");
        }
    }
}
