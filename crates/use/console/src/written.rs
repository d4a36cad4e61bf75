//! Where commands write: files that are whole or not there, tried before the work, or standard output.
//!
//! Every text that an option asks for goes through a [`Place`]. It is opened before anything is done, so that a folder
//! that is not there, a missing permission and a full disk are found while nothing is lost by them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use isochrone_atlas_store::Destination;
use tempfile::TempDir;

use crate::args::STDOUT;
pub use crate::args::{Asked, asked};
use crate::output::{Terminal, WrongUsage};

/// Space that is taken for each file before the work; a report of two cores has 0.4 MB.
const RESERVED_BYTES: usize = 1 << 20;

/// A folder of this process alone, which goes with the value. A signal that ends the process leaves it behind: whoever
/// makes one holds signals or looks for them from before on.
///
/// # Errors
/// Where no folder can be made.
pub fn scratch() -> Result<TempDir> {
    let made = tempfile::Builder::new().prefix("isochrone-").tempdir();
    made.context("there is no place for temporary files; set TMPDIR")
}

/// A place for one text, as an option names it.
#[derive(Debug)]
pub struct Place {
    option: &'static str,
    path: PathBuf,
    to: To,
}

#[derive(Debug)]
enum To {
    Stdout,
    At(Destination),
}

impl Place {
    /// Opens the place that `option` names; `-` is standard output. Nothing is changed by it, and nothing is left where
    /// the program ends before there is a text.
    ///
    /// # Errors
    /// Which option cannot be written, and why.
    pub fn open(option: &'static str, path: &Path) -> Result<Self> {
        let to = if path == Path::new(STDOUT) {
            To::Stdout
        } else {
            let refused = || format!("nothing is done, since {option} cannot be written");
            let mut destination = Destination::text(path).with_context(refused)?;
            destination.reserve(RESERVED_BYTES).with_context(refused)?;
            To::At(destination)
        };
        Ok(Self { option, path: path.to_owned(), to })
    }

    /// Opens the places of all options that were given.
    ///
    /// # Errors
    /// As [`Place::open`], and [`WrongUsage`] where two of them are one.
    pub fn open_all<const N: usize>(asked: [Asked<'_>; N]) -> Result<[Option<Self>; N]> {
        let mut places: [Option<Self>; N] = std::array::from_fn(|_| None);
        for (at, Asked { option, path }) in asked.into_iter().enumerate() {
            let Some(path) = path else { continue };
            let place = Self::open(option, path)?;
            if let Some(other) = places.iter().flatten().find(|other| other.is_same(&place)) {
                return Err(place.is_also(other.option, &other.path));
            }
            places[at] = Some(place);
        }
        Ok(places)
    }

    /// Whether it is standard output, where then nothing else may stand.
    pub fn is_stdout(&self) -> bool {
        matches!(self.to, To::Stdout)
    }

    /// The file; `None` for standard output.
    pub fn file(&self) -> Option<&Path> {
        if let To::At(destination) = &self.to { Some(destination.path()) } else { None }
    }

    /// Another file in the same folder where one is at this place already: `report.html` becomes
    /// `report.partial.html`, which takes the place of an older one of that name.
    #[must_use]
    pub fn beside(mut self) -> Self {
        self.to = match self.to {
            To::At(destination) if destination.path().is_file() => {
                let name = beside(destination.path());
                To::At(destination.named(&name))
            }
            to => to,
        };
        self
    }

    /// Refuses the file that `option` writes to, at `path`.
    ///
    /// # Errors
    /// [`WrongUsage`] where it is this one.
    pub fn refuse(&self, option: &str, path: &Path, destination: &Destination) -> Result<()> {
        if self.is_at(destination) { Err(self.is_also(option, path)) } else { Ok(()) }
    }

    fn is_at(&self, destination: &Destination) -> bool {
        matches!(&self.to, To::At(own) if own.is_same(destination))
    }

    fn is_same(&self, other: &Self) -> bool {
        match &other.to {
            To::Stdout => self.is_stdout(),
            To::At(other) => self.is_at(other),
        }
    }

    /// Another option names the same file, and the later would destroy the earlier.
    fn is_also(&self, option: &str, path: &Path) -> anyhow::Error {
        WrongUsage::error(format!(
            "{option} {} and {} {} are one file: each needs its own",
            path.display(),
            self.option,
            self.path.display()
        ))
    }

    /// Writes all of a text.
    ///
    /// # Errors
    /// Where it cannot be written; a file is then as it was.
    pub fn write(self, text: &str, terminal: &Terminal) -> Result<()> {
        match self.to {
            To::Stdout => terminal.print(text),
            To::At(destination) => Ok(destination.write(text.as_bytes())?),
        }
    }
}

/// `report.partial.html`
fn beside(path: &Path) -> OsString {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(".partial");
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    name
}

/// Writes what an option asks for, where it was given; else the text is not even made.
///
/// # Errors
/// As [`Place::write`], and what `text` has.
pub fn write_to(
    place: Option<Place>,
    terminal: &Terminal,
    text: impl FnOnce() -> Result<String>,
) -> Result<()> {
    place.map_or(Ok(()), |place| place.write(&text()?, terminal))
}

/// What came of several texts, each of which was written whatever became of those before: a pipe that nobody reads
/// keeps no figures from their file, and a full disk keeps no summary from whoever looks.
///
/// # Errors
/// The first of them.
pub fn each_written<const N: usize>(outcomes: [Result<()>; N]) -> Result<()> {
    outcomes.into_iter().fold(Ok(()), Result::and)
}

/// Whether one of these is standard output: what a command says for people is then left out.
pub fn on_stdout(places: &[Option<Place>]) -> bool {
    places.iter().flatten().any(Place::is_stdout)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::args::ColourChoice;

    #[test]
    fn all_places_are_tried_before_anything_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
        fs::write(&a, "old").unwrap();
        let stdout = PathBuf::from("-");
        for (one, other) in [(&a, &a), (&b, &folder.path().join("./b")), (&stdout, &stdout)] {
            let refused =
                Place::open_all([asked("--json", Some(one)), asked("--html", Some(other))]);
            let refused = refused.unwrap_err();
            assert!(
                refused.is::<WrongUsage>() && refused.to_string().contains("--html"),
                "{refused}"
            );
        }
        let gone = folder.path().join("no/such");
        let refused =
            Place::open_all([asked("--json", Some(&a)), asked("--dot", Some(&gone))]).unwrap_err();
        let words = format!("{refused:#}");
        assert!(words.contains("--dot") && words.contains("mkdir -p"), "{words}");
        assert_eq!(fs::read_to_string(&a).unwrap(), "old");
        assert!(!b.exists());
    }

    #[test]
    fn what_is_written_is_whole_and_what_is_not_asked_for_is_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
        let terminal = Terminal::detect(ColourChoice::Never);
        let [first, none, last] = Place::open_all([
            asked("--json", Some(&a)),
            asked("--html", None),
            asked("--csv", Some(&b)),
        ])
        .unwrap();
        assert!(!on_stdout(&[None]) && !first.as_ref().unwrap().is_stdout());
        write_to(first, &terminal, || Ok("words".to_owned())).unwrap();
        write_to(none, &terminal, || panic!("nobody asked")).unwrap();
        assert!(write_to(last, &terminal, || anyhow::bail!("no figures")).is_err());
        assert_eq!(fs::read_to_string(&a).unwrap(), "words");
        assert!(!b.exists(), "nothing is left of what failed");
        let stdout = PathBuf::from("-");
        assert!(on_stdout(&Place::open_all([asked("--json", Some(&stdout))]).unwrap()));
    }

    #[test]
    fn no_text_takes_the_place_of_an_atlas() {
        let folder = tempfile::tempdir().unwrap();
        let atlas = folder.path().join("isochrone.atlas");
        let bytes = [&isochrone_atlas::format::MAGIC[..], b"and more"].concat();
        fs::write(&atlas, &bytes).unwrap();
        let refused = format!("{:#}", Place::open("--html", &atlas).unwrap_err());
        assert!(refused.contains("is an atlas"), "{refused}");
        assert_eq!(fs::read(&atlas).unwrap(), bytes);
    }
}
