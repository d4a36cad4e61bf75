//! Where a map goes: opened before anything is measured, so that nothing measured is lost for a place that
//! cannot be written. It decides what may be replaced, and never measures.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use isochrone_atlas_store::Destination;
use isochrone_atlas_store::contents::Contents;

use super::replace::{beside, place_for};
use crate::args::MapArgs;
use isochrone_console::output::Terminal;
use isochrone_console::run::atlas::keep;
use isochrone_console::written::{Place, asked, on_stdout, write_to};
use isochrone_places::kept;

/// Space that is taken for the atlas before measuring; one of 1 GiB of pages has 1 MB.
const RESERVED_BYTES: usize = 1 << 20;

/// All places of one map.
#[derive(Debug)]
pub(super) struct Targets {
    atlas: Destination,
    texts: Texts,
    force: bool,
    /// Whether it is one of a fleet.
    is_of_fleet: bool,
    /// The user's cache folder, for an atlas whose place is lost.
    cache: Option<PathBuf>,
}

/// What became of an atlas.
#[derive(Debug)]
pub(super) struct Saved {
    pub(super) path: PathBuf,
    /// Why it is not where it was to go.
    pub(super) why: Option<String>,
    /// Whether the place where it was to go was lost.
    pub(super) is_lost: bool,
}

impl Targets {
    /// Opens all. Nothing is changed by it, and nothing is left where the program ends before it has measured.
    ///
    /// # Errors
    /// [`isochrone_console::output::WrongUsage`] where one file is named twice; otherwise which option cannot be
    /// written,
    /// and why.
    pub(super) fn open(args: &MapArgs, cache: Option<PathBuf>) -> Result<Self> {
        let refused = |option| format!("nothing is measured, since {option} cannot be written");
        let mut atlas = Destination::file(&args.out).with_context(|| refused("--out"))?;
        atlas.reserve(RESERVED_BYTES).with_context(|| refused("--out"))?;
        let html = if args.fleet.is_some() { None } else { args.html.html.as_ref() };
        let places = Place::open_all([asked("--html", html), args.json.asked()])?;
        for place in places.iter().flatten() {
            place.refuse("--out", &args.out, &atlas)?;
        }
        let (force, is_of_fleet) = (args.force, args.fleet.is_some());
        Ok(Self { atlas, texts: Texts { places }, force, is_of_fleet, cache })
    }

    /// Whether report or figures go to standard output.
    pub(super) fn on_stdout(&self) -> bool {
        self.texts.on_stdout()
    }

    /// Where the atlas is to go.
    pub(super) fn atlas(&self) -> &Path {
        self.atlas.path()
    }

    /// All of them in words.
    pub(super) fn words(&self) -> String {
        let mut words = format!("the atlas goes to {}", self.atlas.path().display());
        for (what, place) in ["the report", "the figures"].into_iter().zip(&self.texts.places) {
            if let Some(path) = place.as_ref().and_then(Place::file) {
                words += &format!(", {what} to {}", path.display());
            }
        }
        words
    }

    /// Saves the atlas: where it was to go, beside what must stay there, or in the cache folder where its
    /// place is lost. The places of what else is to be written come back.
    pub(super) fn save(self, new: &Contents, bytes: &[u8]) -> (Result<Saved>, Texts) {
        let wanted = self.atlas.path().to_owned();
        // Of a fleet the last whole map of a node is what it is compared by, whatever machine it was before.
        let (path, why) = match (self.force, self.is_of_fleet) {
            (true, _) => (wanted, None),
            (false, true) if new.complete || !wanted.exists() => (wanted, None),
            (false, true) => {
                let why = format!("{} stays: the new map was interrupted", wanted.display());
                (beside(&wanted, new), Some(why))
            }
            (false, false) => place_for(&wanted, new),
        };
        let name = path.file_name().map(OsString::from).unwrap_or_default();
        let saved = match self.atlas.named(&name).write(bytes) {
            Ok(()) => Ok(Saved { path, why, is_lost: false }),
            Err(lost) => elsewhere(new, self.cache)
                .with_context(|| format!("{lost}, and the atlas cannot be kept elsewhere"))
                .map(|path| {
                    let why = format!("{lost}; the atlas is kept as {}", path.display());
                    Saved { path, why: Some(why), is_lost: true }
                }),
        };
        let stays = saved.as_ref().is_ok_and(|saved| saved.why.is_some() && !saved.is_lost);
        (saved, if stays { self.texts.beside() } else { self.texts })
    }
}

/// Keeps an atlas in the user's cache folder, under the name by which `isochrone run` finds it.
fn elsewhere(new: &Contents, cache: Option<PathBuf>) -> Result<PathBuf> {
    let cache = cache.context("there is no cache folder: set HOME or XDG_CACHE_HOME")?;
    let (path, _) = place_for(&kept(&cache, new.fingerprint.hash), new);
    keep(new, &path)?;
    Ok(path)
}

/// The places of report and figures.
#[derive(Debug)]
pub(super) struct Texts {
    places: [Option<Place>; 2],
}

impl Texts {
    /// Whether one of them goes to standard output.
    pub(super) fn on_stdout(&self) -> bool {
        on_stdout(&self.places)
    }

    /// The report of an atlas that went beside another: the other's report stays. Figures are those of this run
    /// wherever they are asked for.
    fn beside(self) -> Self {
        let [html, json] = self.places;
        Self { places: [html.map(Place::beside), json] }
    }

    /// The report's file.
    pub(super) fn report(&self) -> Option<PathBuf> {
        self.places[0].as_ref().and_then(Place::file).map(Path::to_owned)
    }

    /// Writes report and figures, the one although the other fails.
    pub(super) fn write(self, html: &str, json: &str, terminal: &Terminal) -> [Result<()>; 2] {
        let [html_to, json_to] = self.places;
        let html = write_to(html_to, terminal, || Ok(html.to_owned()));
        let json = write_to(json_to, terminal, || Ok(json.to_owned()));
        [html.context("the report is not written"), json.context("the figures are not written")]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, ColourChoice, Command};
    use clap::Parser;
    use isochrone_atlas_store::{encode, load};
    use isochrone_console::output::WrongUsage;
    use isochrone_view::fixtures::genoa;
    use std::fs;
    use std::path::Path;

    /// What `isochrone map` takes, in a folder.
    fn args(folder: &Path, line: &str) -> MapArgs {
        let at = |word: &str| word.replace("@", &format!("{}/", folder.display()));
        let words = ["isochrone", "map"].map(str::to_owned).into_iter();
        let cli = Cli::parse_from(words.chain(line.split_whitespace().map(at)));
        match cli.command {
            Command::Map(args) => args,
            other => panic!("{other:?} is not map"),
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn save(args: &MapArgs, new: &Contents) -> Saved {
        let targets = Targets::open(args, None).unwrap();
        targets.save(new, &encode(new).unwrap()).0.unwrap()
    }

    #[test]
    fn one_file_for_two_outputs_is_wrong_usage() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), b"old").unwrap();
        fs::hard_link(folder.path().join("a"), folder.path().join("b")).unwrap();
        for line in [
            "--out @x --html @x",
            "--out @x --html @./x",
            "--out @a --html @b",
            "--out @x --html @y --json @x",
            "--out @x --html @y --json @y",
            "--out @x --html - --json -",
        ] {
            let refused = Targets::open(&args(folder.path(), line), None).unwrap_err();
            assert!(refused.is::<WrongUsage>(), "{line}: {refused}");
            assert!(refused.to_string().contains("one file"), "{refused}");
        }
        let null = args(folder.path(), "--out @x --html /dev/null --json /dev/null");
        assert!(Targets::open(&null, None).is_ok(), "it takes any number of texts");
        assert_eq!(names(folder.path()), ["a", "b"]);
        assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"old");
    }

    #[test]
    fn a_lesser_atlas_replaces_a_complete_one_by_force_only() {
        let folder = tempfile::tempdir().unwrap();
        let line = "--out @a.atlas --html @a.html";
        let whole = genoa();
        let stopped = Contents { complete: false, ..genoa() };
        let first = save(&args(folder.path(), line), &whole);
        assert_eq!((first.path.clone(), first.why), (folder.path().join("a.atlas"), None));
        let second = save(&args(folder.path(), line), &stopped);
        assert_eq!(second.path, folder.path().join("a.atlas.partial"));
        assert!(second.why.is_some_and(|why| why.contains("stays")));
        assert!(load(&first.path).unwrap().complete);
        assert!(!load(&second.path).unwrap().complete);
        assert_eq!(names(folder.path()), ["a.atlas", "a.atlas.partial"]);
        let forced = save(&args(folder.path(), &format!("{line} --force")), &stopped);
        assert_eq!((forced.path, forced.why), (first.path.clone(), None));
        assert!(!load(&first.path).unwrap().complete);
    }

    #[test]
    fn the_report_of_an_atlas_that_stays_does_too() {
        let folder = tempfile::tempdir().unwrap();
        let line = "--out @a.atlas --html @a.html --json @a.json";
        let terminal = Terminal::detect(ColourChoice::Never);
        let write = |new: &Contents, text: &str| {
            let targets = Targets::open(&args(folder.path(), line), None).unwrap();
            let (saved, texts) = targets.save(new, &encode(new).unwrap());
            saved.unwrap();
            let report = texts.report().unwrap();
            texts.write(text, text, &terminal).into_iter().for_each(Result::unwrap);
            report
        };
        let stopped = Contents { complete: false, ..genoa() };
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(write(&genoa(), "whole"), folder.path().join("a.html"));
        assert_eq!(write(&stopped, "part"), folder.path().join("a.partial.html"));
        assert_eq!((read("a.html"), read("a.partial.html")), ("whole".into(), "part".into()));
        assert_eq!(read("a.json"), "part", "figures are those of the run");
        assert_eq!(write(&genoa(), "again"), folder.path().join("a.html"));
        assert_eq!(read("a.html"), "again");
    }

    #[test]
    fn an_atlas_whose_place_is_lost_goes_to_the_cache_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (gone, cache) = (folder.path().join("gone"), folder.path().join("cache"));
        fs::create_dir(&gone).unwrap();
        let args = args(&gone, "--out @a.atlas --html @a.html");
        let bytes = encode(&genoa()).unwrap();
        let opened = |cache| {
            fs::create_dir_all(&gone).unwrap();
            let targets = Targets::open(&args, cache).unwrap();
            fs::remove_dir(&gone).unwrap();
            targets.save(&genoa(), &bytes).0
        };
        let saved = opened(Some(cache.clone())).unwrap();
        assert_eq!(saved.path, cache.join("isochrone/000000000000feed.atlas"));
        assert!(
            saved.is_lost && saved.why.is_some_and(|why| why.contains("there is no directory"))
        );
        assert_eq!(load(&saved.path).unwrap(), load_of(&bytes));
        let error = format!("{:#}", opened(None).unwrap_err());
        assert!(error.contains("cannot be kept") && error.contains("XDG_CACHE_HOME"), "{error}");
    }

    fn load_of(bytes: &[u8]) -> Contents {
        isochrone_atlas_store::decode(bytes).unwrap()
    }

    #[test]
    fn figures_are_written_though_the_report_cannot_be() {
        let folder = tempfile::tempdir().unwrap();
        let args = args(folder.path(), "--out @a.atlas --html /dev/full --json @a.json");
        let targets = Targets::open(&args, None).unwrap();
        let (_, texts) = targets.save(&genoa(), &encode(&genoa()).unwrap());
        let terminal = Terminal::detect(ColourChoice::Never);
        let [html, json] = texts.write("page", "figures", &terminal);
        assert!(format!("{:#}", html.unwrap_err()).contains("no space left"));
        json.unwrap();
        assert_eq!(fs::read(folder.path().join("a.json")).unwrap(), b"figures");
        assert_eq!(names(folder.path()), ["a.atlas", "a.json"]);
    }
}
