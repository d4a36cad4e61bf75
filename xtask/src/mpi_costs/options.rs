//! What the command line of `cargo xtask mpi-costs` says.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::numbers::number;

/// The MPIs, as Debian names their commands.
const MPIS: [&str; 2] = ["openmpi", "mpich"];

/// What is measured.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) library: PathBuf,
    pub(super) mpis: Vec<String>,
    /// Of a job that measures times, s.
    pub(super) seconds: u32,
    /// How often each time is measured, one after the other.
    pub(super) runs: u32,
    /// Communicators that come and go.
    pub(super) churn: u32,
    /// Ranks of jobs whose communicators' memory is looked at.
    pub(super) memory: Vec<u32>,
    /// Ranks of jobs that have more of them than cores.
    pub(super) ranks: Vec<u32>,
    pub(super) json: Option<PathBuf>,
}

impl Options {
    pub(super) fn read(root: &Path, mut words: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self {
            library: root.join("target/release/libisochrone_mpi.so"),
            mpis: MPIS.map(str::to_owned).to_vec(),
            seconds: 10,
            runs: 2,
            churn: 100_000,
            memory: vec![2],
            ranks: vec![8, 16],
            json: None,
        };
        while let Some(word) = words.next() {
            let value = words.next().with_context(|| format!("{word}: a value is missing"));
            match word.as_str() {
                "--library" => options.library = value?.into(),
                "--json" => options.json = Some(value?.into()),
                "--mpi" => options.mpis = value?.split(',').map(known).collect::<Result<_>>()?,
                "--seconds" => options.seconds = number(&value?)?,
                "--runs" => options.runs = number(&value?)?,
                "--churn" => options.churn = number(&value?)?.max(10),
                "--memory" => options.memory = numbers(&value?)?,
                "--ranks" => options.ranks = numbers(&value?)?,
                _ => bail!(
                    "{word} is no option; there are --mpi, --library, --seconds, --runs, --churn, --memory, --ranks, \
                     --json"
                ),
            }
        }
        Ok(options)
    }
}

fn known(mpi: &str) -> Result<String> {
    if MPIS.contains(&mpi) {
        return Ok(mpi.to_owned());
    }
    bail!("there is no {mpi:?}; there are {}", MPIS.join(", "))
}

/// None of them where the text is `none`.
fn numbers(text: &str) -> Result<Vec<u32>> {
    if text == "none" { Ok(Vec::new()) } else { text.split(',').map(number).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_is_measured() {
        let read = |words: &[&str]| {
            Options::read(Path::new("/r"), words.iter().map(|&word| word.to_owned()))
        };
        let options = read(&["--mpi", "mpich", "--ranks", "none", "--memory", "2,128"]);
        let options = options.expect("valid");
        assert_eq!((&options.mpis[..], &options.ranks[..]), (&["mpich".to_owned()][..], &[][..]));
        assert_eq!((&options.memory[..], options.churn), (&[2, 128][..], 100_000));
        for (words, named) in [
            (&["--mpi", "lam"][..], "lam"),
            (&["--seconds", "0"], "\"0\""),
            (&["--rank", "2"], "--rank is no option"),
            (&["--json"], "--json: a value"),
        ] {
            let why = read(words).expect_err("not valid").to_string();
            assert!(why.contains(named), "{why}");
        }
    }
}
