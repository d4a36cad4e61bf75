//! The book's sources, laid out as mdBook takes them: pages at their places below one folder, the table of contents at
//! its root, and beside them every file that a page links to.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::pages::{Page, SUMMARY, is_page};

/// The book's settings and its style, in this folder and where it is built.
const SETTINGS: &[(&str, &str)] =
    &[("docs/book/book.toml", "book.toml"), ("docs/book/book.css", "book.css")];
/// The first page of a folder: its name here, and in the book, whose links would miss it by the other one.
const FIRST: (&str, &str) = ("README.md", "index.md");
/// Where pages lie in the folder of the book.
const SOURCES: &str = "src";

/// Puts the pages into `folder` anew.
pub(super) fn lay_out(root: &Path, folder: &Path, pages: &[Page]) -> Result<()> {
    let sources = folder.join(SOURCES);
    if sources.exists() {
        fs::remove_dir_all(&sources).with_context(|| sources.display().to_string())?;
    }
    fs::create_dir_all(&sources).with_context(|| sources.display().to_string())?;
    for (from, to) in SETTINGS {
        copy(&root.join(from), &folder.join(to))?;
    }
    for file in linked(pages) {
        copy(&root.join(&file), &sources.join(&file))?;
    }
    for page in pages {
        let (place, text) = match page.path.to_str() {
            Some(SUMMARY) => (PathBuf::from("SUMMARY.md"), contents(&page.text)),
            _ if page.path.ends_with(FIRST.0) => {
                (page.path.with_file_name(FIRST.1), page.text.clone())
            }
            _ => (page.path.clone(), page.text.clone()),
        };
        put(&sources.join(place), to_first(&text).as_bytes())?;
    }
    Ok(())
}

/// What pages link to that is no page.
fn linked(pages: &[Page]) -> BTreeSet<PathBuf> {
    let linked = pages.iter().flat_map(Page::links).map(|link| link.file);
    linked.filter(|file| !is_page(file)).collect()
}

/// A page whose links to the first page of a folder name it as it is called in the book.
fn to_first(text: &str) -> String {
    let mut parts = text.split("](");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (target, rest) = part.split_at(part.find(')').unwrap_or(0));
        out = out + "](" + &target.replace(FIRST.0, FIRST.1) + rest;
    }
    out
}

/// The table of contents, with places from the root of the repository instead of from `docs`. A chapter without a page
/// stays one.
fn contents(summary: &str) -> String {
    summary.replace("](", "](docs/").replace("](docs/../", "](").replace("](docs/)", "]()")
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    put(to, &fs::read(from).with_context(|| from.display().to_string())?)
}

fn put(to: &Path, bytes: &[u8]) -> Result<()> {
    let folder = to.parent().context("a path without a folder")?;
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    fs::write(to, bytes).with_context(|| to.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_the_table_of_contents_begin_at_the_root() {
        let summary = "[Isochrone](../README.md)\n- [Tour](tour.md)\n- [B]()\n  - [A](../crates/a/README.md)\n";
        assert_eq!(
            contents(summary),
            "[Isochrone](README.md)\n- [Tour](docs/tour.md)\n- [B]()\n  - [A](crates/a/README.md)\n"
        );
    }

    #[test]
    fn pages_and_what_they_link_to_are_laid_out_and_what_was_there_is_gone() {
        let tree = tempfile::tempdir().unwrap();
        let (root, folder) = (tree.path(), tree.path().join("target/book"));
        let put = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("docs/book/book.toml", "[book]\n");
        put("docs/book/book.css", "");
        put("docs/SUMMARY.md", "- [A](a.md)\n");
        put("docs/a.md", "README.md [x](b/x.json) [r](../README.md#a)\n");
        put("README.md", "# A\n");
        put("docs/b/x.json", "{}");
        put("docs/b/y.json", "{}");
        put("target/book/src/docs/old.md", "");
        let pages = ["docs/SUMMARY.md", "docs/a.md", "README.md"].map(|path| Page {
            path: path.into(),
            text: fs::read_to_string(root.join(path)).unwrap(),
        });
        lay_out(root, &folder, &pages).unwrap();
        let sources = folder.join("src");
        assert_eq!(fs::read_to_string(sources.join("SUMMARY.md")).unwrap(), "- [A](docs/a.md)\n");
        let a = fs::read_to_string(sources.join("docs/a.md")).unwrap();
        assert_eq!(a, "README.md [x](b/x.json) [r](../index.md#a)\n");
        assert!(folder.join("book.toml").is_file() && sources.join("index.md").is_file());
        assert!(sources.join("docs/b/x.json").is_file());
        for absent in ["docs/b/y.json", "docs/old.md", "docs/SUMMARY.md", "README.md"] {
            assert!(!sources.join(absent).exists(), "{absent}");
        }
    }
}
