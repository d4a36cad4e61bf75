//! The pages of the repository as one book: what its links name is there, no page is left out, the messages that a
//! reader looks up are those of the programs. Then mdBook draws it, where it can be had.

mod links;
mod messages;
mod pages;
mod stage;
mod summary;
mod tool;
mod tour;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::ci::say;
use pages::Page;

const USAGE: &str = "cargo xtask book [--out FOLDER | --check | --tour [ATLAS]]";

/// What is asked for.
#[derive(Debug, PartialEq)]
enum Task {
    /// The book, in this folder or where books lie.
    Build(Option<PathBuf>),
    Check,
    /// The output that the tour shows, anew, of this atlas or of one that is measured now.
    Tour(Option<PathBuf>),
}

impl Task {
    fn of(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let task = match words.next().as_deref() {
            None => Self::Build(None),
            Some("--out") => {
                Self::Build(Some(words.next().context("--out takes a folder")?.into()))
            }
            Some("--check") => Self::Check,
            Some("--tour") => Self::Tour(words.next().map(PathBuf::from)),
            Some(other) => bail!("unknown word {other:?}: {USAGE}"),
        };
        match words.next() {
            None => Ok(task),
            Some(other) => bail!("unknown word {other:?}: {USAGE}"),
        }
    }
}

/// Checks the pages, and builds the book unless only the check or the tour is asked for.
///
/// # Errors
/// Every fault of the pages at once, or why mdBook failed. That it cannot be had is no error.
pub(crate) fn run(root: &Path, words: impl Iterator<Item = String>) -> Result<()> {
    let task = Task::of(words)?;
    if let Task::Tour(atlas) = &task {
        return tour::draw(root, atlas.as_deref());
    }
    let pages = pages::all(root)?;
    check(root, &pages)?;
    say(&format!("{} pages: links, anchors, the table of contents and messages hold", pages.len()));
    match task {
        Task::Build(out) => build(root, &pages, out.as_deref()),
        _ => Ok(()),
    }
}

fn check(root: &Path, pages: &[Page]) -> Result<()> {
    let mut breaches = Vec::new();
    links::check(root, pages, &mut breaches);
    summary::check(pages, &mut breaches);
    messages::check(root, pages, &mut breaches)?;
    if breaches.is_empty() { Ok(()) } else { bail!("book:\n{}", breaches.join("\n")) }
}

fn build(root: &Path, pages: &[Page], out: Option<&Path>) -> Result<()> {
    let mdbook = match tool::find(root) {
        Ok(mdbook) => mdbook,
        Err(why) => {
            say(&format!("the book was not built: {why:#}"));
            return Ok(());
        }
    };
    let root = root.canonicalize()?;
    let folder = root.join("target/book");
    stage::lay_out(&root, &folder, pages)?;
    let out = std::path::absolute(out.unwrap_or(&folder.join("html")))?;
    tool::build(&mdbook, &folder, &out)?;
    say(&format!("the book is {}", out.join("index.html").display()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_choose_what_is_done() {
        let of = |words: &[&str]| Task::of(words.iter().map(|word| (*word).to_owned()));
        assert_eq!(of(&[]).unwrap(), Task::Build(None));
        assert_eq!(of(&["--out", "x"]).unwrap(), Task::Build(Some("x".into())));
        assert_eq!(of(&["--check"]).unwrap(), Task::Check);
        assert_eq!(of(&["--tour"]).unwrap(), Task::Tour(None));
        assert_eq!(of(&["--tour", "a"]).unwrap(), Task::Tour(Some("a".into())));
        assert!(
            of(&["--out"]).is_err() && of(&["--tour", "x", "y"]).is_err() && of(&["x"]).is_err()
        );
    }

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
    }

    /// The description that a page shows is one that is read.
    #[test]
    fn the_machine_that_a_page_describes_is_one() {
        let page = std::fs::read_to_string(root().join("docs/machines.md")).unwrap();
        let (_, rest) = page.split_once("```toml\n").unwrap();
        let (toml, _) = rest.split_once("```").unwrap();
        let machine = isochrone_host::machine_from_toml(toml, "docs/machines.md").unwrap();
        assert_eq!((machine.cores.len(), machine.regions.len()), (8, 2));
    }

    /// The pages of this repository, as `cargo xtask book --check` sees them.
    #[test]
    fn the_pages_of_this_repository_hold() {
        check(&root(), &pages::all(&root()).unwrap()).unwrap();
    }
}
