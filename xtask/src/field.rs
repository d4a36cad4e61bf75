//! `cargo xtask field`: the whole battery of measurements on a machine that is lent for a while, in a time that is
//! said before. It needs no cargo there: `--pack` carries it with the programs in one archive.
//!
//! What it leaves is one folder: figures and logs of each part, the atlases, how each part went, and the machine as
//! its kernel describes it. A part that is done is not done again, and one that fails is a line.

mod battery;
mod capture;
mod gather;
mod record;
mod step;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use isochrone_host::{SysRoot, machine_state};

use super::ci::say;
use battery::{PARTS, Part};
use record::{Record, Results, State, write};
use step::Time;

/// What the command line says.
#[derive(Debug, PartialEq)]
struct Options {
    out: PathBuf,
    bin: Option<PathBuf>,
    pack: Option<PathBuf>,
    profile: String,
    minutes: f64,
}

impl Options {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self {
            out: "field-results".into(),
            bin: None,
            pack: None,
            profile: "dist".to_owned(),
            minutes: 40.0,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word}: a value is missing"));
            match word.as_str() {
                "--out" => options.out = value()?.into(),
                "--bin" => options.bin = Some(value()?.into()),
                "--pack" => options.pack = Some(value()?.into()),
                "--profile" => options.profile = value()?,
                "--minutes" => {
                    let text = value()?;
                    let minutes: f64 =
                        text.parse().ok().filter(|minutes| *minutes > 0.0).with_context(|| {
                            format!("--minutes {text:?} is no number of minutes")
                        })?;
                    options.minutes = minutes;
                }
                _ => bail!(
                    "unknown word {word:?}: cargo xtask field [--out FOLDER] [--bin FOLDER] [--minutes 40] \
                     [--profile dist], or --pack FILE.tar"
                ),
            }
        }
        ensure!(options.bin.is_none() || options.pack.is_none(), "--pack builds what --bin has");
        Ok(options)
    }
}

/// Packs, or runs the battery.
pub(crate) fn run(root: &Path, words: impl Iterator<Item = String>) -> Result<()> {
    let options = Options::read(words)?;
    if let Some(archive) = &options.pack {
        gather::pack(root, &options.profile, archive)?;
        say(&format!("{}: carry it to the machine and read its README.txt", archive.display()));
        return Ok(());
    }
    let bin = match &options.bin {
        Some(bin) => bin.clone(),
        None => {
            let bin = root.join("target/field/run");
            gather::dynamic(root, &options.profile, &bin)?;
            bin
        }
    };
    let (programs, said) = gather::find(&bin)?;
    for line in said {
        say(&format!("field: {line}"));
    }
    battery(&programs, &options)
}

/// Runs what is not done yet.
fn battery(programs: &Path, options: &Options) -> Result<()> {
    let mut results = Results::open(&options.out)?;
    if let Some(line) = step::end_left_over(&results)? {
        say(&format!("field: {line}"));
    }
    describe(&results, "begin")?;
    let begin = Instant::now();
    let all = Duration::from_secs_f64(60.0 * options.minutes);
    let before = Duration::from_secs_f64(results.seconds());
    if before > Duration::ZERO {
        let before = before.as_secs();
        say(&format!("field: parts that are done took {before} s and are not done again"));
    }
    for (at, part) in PARTS.iter().enumerate() {
        if results.is_done(part.name) {
            continue;
        }
        let left = all.saturating_sub(before + begin.elapsed());
        let to_do: Vec<&Part> =
            PARTS[at..].iter().filter(|part| !results.is_done(part.name)).collect();
        let record = match share(&to_do, left) {
            Some(share) => {
                say(&format!("field: {}: {} s", part.name, share.as_secs()));
                step::run(part, Time { share, left }, programs, &results)?
            }
            None => late(part),
        };
        if let Some(why) = &record.why {
            say(&format!("field: {}: {why}", part.name));
        }
        results.keep(record)?;
    }
    describe(&results, "end")?;
    let table = results.table();
    write(&results.folder.join("summary.txt"), &table)?;
    say(&table);
    say(&format!("field: all of it is in {}", results.folder.display()));
    let done = PARTS.iter().filter(|part| results.is_done(part.name)).count();
    ensure!(
        done == PARTS.len(),
        "{} of {} parts are not done: start it again for these",
        PARTS.len() - done,
        PARTS.len()
    );
    Ok(())
}

/// The least time in which a part can do anything.
const LEAST: Duration = Duration::from_secs(2);

/// The time for the first of these parts, out of what is left for all of them; `None` where that is nothing.
fn share(to_do: &[&Part], left: Duration) -> Option<Duration> {
    let all: f64 = to_do.iter().map(|part| part.weight).sum();
    let first = to_do.first()?.weight;
    (left > LEAST).then(|| left.mul_f64(first / all))
}

/// The record of a part for which there is no time.
fn late(part: &Part) -> Record {
    Record {
        name: part.name.to_owned(),
        command: Vec::new(),
        state: State::Late,
        code: None,
        why: Some("no time was left: start it again with more --minutes".to_owned()),
        seconds: 0.0,
        load: None,
        started_unix_s: 0,
    }
}

/// The machine's description, and its state now.
fn describe(results: &Results, when: &str) -> Result<()> {
    let capture = results.folder.join("machine.capture.txt");
    if !capture.exists() {
        write(&capture, &capture::of(Path::new("/")))?;
    }
    let state = serde_json::to_string_pretty(&machine_state(&SysRoot::live()))? + "\n";
    write(&results.folder.join(format!("state-{when}.json")), &state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_nonsense_is_refused() {
        let of = |line: &str| Options::read(line.split_whitespace().map(str::to_owned));
        let found = of("--out o --bin b --minutes 2.5").expect("sound");
        assert_eq!((found.out, found.bin, found.pack), ("o".into(), Some("b".into()), None));
        assert!((found.minutes - 2.5).abs() < 1e-9);
        assert!((of("").expect("nothing").minutes - 40.0).abs() < 1e-9);
        for line in ["--minutes 0", "--minutes x", "--out", "--bin a --pack b", "now"] {
            assert!(of(line).is_err(), "{line}");
        }
    }

    #[test]
    fn time_that_a_part_does_not_take_is_for_the_others() {
        let all: Vec<&Part> = PARTS.iter().collect();
        let hour = Duration::from_secs(3600);
        let of = |from: usize, left| share(&all[from..], left).expect("a share");
        let first = of(0, hour);
        assert!(of(1, hour - first) < of(1, hour), "more is left");
        let mut left = hour;
        for at in 0..all.len() - 1 {
            left -= of(at, left);
        }
        assert_eq!(of(all.len() - 1, left), left, "the last has the rest");
        assert_eq!(share(&all, Duration::from_secs(1)), None);
        assert_eq!(share(&[], hour), None);
    }
}
