//! The pages of the repository, and what of a page is prose, a heading or a link.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};

/// The pages beside those below `docs`.
const ROOT: &[&str] = &["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
/// Where all others lie.
const DOCS: &str = "docs";
/// The table of contents.
pub(super) const SUMMARY: &str = "docs/SUMMARY.md";

/// A page.
#[derive(Debug)]
pub(super) struct Page {
    /// Its place, from the root of the repository.
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// A link within the repository.
#[derive(Debug, PartialEq)]
pub(super) struct Link {
    /// The line on which it stands, from 1.
    pub(super) at: usize,
    /// The file that it names, from the root of the repository; where it leads out of it, with `..`.
    pub(super) file: PathBuf,
    pub(super) anchor: Option<String>,
}

impl Page {
    /// The lines with their numbers, from 1, without blocks of code, and without `code` unless it is wanted.
    fn prose(&self, with_code: bool) -> Vec<(usize, String)> {
        let mut fence: Option<String> = None;
        let mut lines = Vec::new();
        for (number, line) in self.text.lines().enumerate() {
            let marks: String =
                line.trim_start().chars().take_while(|c| matches!(c, '`' | '~')).collect();
            match &fence {
                Some(open) if marks.starts_with(open.as_str()) => fence = None,
                Some(_) => {}
                None if marks.len() >= 3 => fence = Some(marks),
                None if with_code => lines.push((number + 1, line.to_owned())),
                None => lines.push((number + 1, without_code(line))),
            }
        }
        lines
    }

    /// All links but those to other places of the world, in their order.
    pub(super) fn links(&self) -> Vec<Link> {
        let mut links = Vec::new();
        for (at, line) in self.prose(false) {
            let inline = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            let defined = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let defined = defined.and_then(|(_, rest)| rest.strip_prefix(": ")).map(str::trim);
            let defined = defined.filter(|target| !target.contains(' '));
            for target in inline.chain(defined) {
                // A chapter that has no page of its own names nothing.
                let Some(target) = target.split_whitespace().next() else { continue };
                if !target.contains("://") && !target.starts_with("mailto:") {
                    links.push(self.link(at, target));
                }
            }
        }
        links
    }

    fn link(&self, at: usize, target: &str) -> Link {
        let (file, anchor) = match target.split_once('#') {
            Some((file, anchor)) => (file, Some(anchor.to_owned())),
            None => (target, None),
        };
        let file = match file {
            "" => self.path.clone(),
            file => plain(&self.path.parent().unwrap_or(Path::new("")).join(file)),
        };
        Link { at, file, anchor }
    }

    /// What links can name on this page: its headings, as forges and mdBook write them, and ids of its own.
    pub(super) fn anchors(&self) -> Vec<String> {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let mut anchors = Vec::new();
        for (_, line) in self.prose(true) {
            if let Some(heading) = heading(&line) {
                let slug = slug(heading);
                let before = seen.entry(slug.clone()).or_default();
                anchors.push(if *before == 0 { slug } else { format!("{slug}-{before}") });
                *before += 1;
            }
            let ids = line.split("<a id=\"").skip(1).filter_map(|rest| rest.split('"').next());
            anchors.extend(ids.map(str::to_owned));
        }
        anchors
    }
}

/// All pages, in order of place.
pub(super) fn all(root: &Path) -> Result<Vec<Page>> {
    let mut paths: Vec<PathBuf> = ROOT.iter().map(PathBuf::from).collect();
    let mut folders = vec![PathBuf::from(DOCS)];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(root.join(&folder));
        for entry in entries.with_context(|| folder.display().to_string())? {
            let path = folder.join(entry?.file_name());
            if root.join(&path).is_dir() {
                folders.push(path);
            } else if is_page(&path) {
                paths.push(path);
            }
        }
    }
    // A page of another folder is one where the table of contents names it.
    let summary = read(root, Path::new(SUMMARY))?;
    let named = summary.links().into_iter().map(|link| link.file);
    paths.extend(named.filter(|file| is_page(file) && root.join(file).is_file()));
    paths.sort();
    paths.dedup();
    paths.iter().map(|path| read(root, path)).collect()
}

/// Whether a file is a page, by its name.
pub(super) fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

fn read(root: &Path, path: &Path) -> Result<Page> {
    let text = fs::read_to_string(root.join(path)).with_context(|| path.display().to_string())?;
    Ok(Page { path: path.to_owned(), text })
}

/// A line without what stands between back quotes.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

/// The words of a heading.
fn heading(line: &str) -> Option<&str> {
    let words = line.trim_start_matches('#');
    let depth = line.len() - words.len();
    ((1..=6).contains(&depth) && words.starts_with(' ')).then(|| words.trim())
}

/// The name of a heading in links: its words in small letters, without marks, blanks as hyphens.
fn slug(heading: &str) -> String {
    // Of a link only what is shown.
    let mut shown = String::new();
    for (number, part) in heading.split("](").enumerate() {
        shown += if number == 0 { part } else { part.split_once(')').map_or("", |(_, rest)| rest) };
    }
    let small = shown.to_lowercase();
    let marks = |c: char| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        c => c.is_alphanumeric().then_some(c),
    };
    small.chars().filter_map(marks).collect()
}

/// A path without `.`, and without `..` as far as that goes.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if out.file_name().is_some() => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, text: &str) -> Page {
        Page { path: path.into(), text: text.into() }
    }

    #[test]
    fn links_are_found_and_code_and_the_world_are_not() {
        let text = "a [b](c.md) ![d\ne](../f.png \"g\") `[h](i.md)` [j](#k)\n```rust\nl[m](n)\n```\n\
                    [o](https://p.q) [r](../../s.md#t) [w]()\n[u]: v.md\n[0.9, 1.1]: no link\n[x](y.md) [1]: no\n";
        let links = page("docs/x/y.md", text).links();
        let shown: Vec<_> = links
            .iter()
            .map(|link| (link.at, link.file.to_str().unwrap(), link.anchor.as_deref()))
            .collect();
        assert_eq!(
            shown,
            [
                (1, "docs/x/c.md", None),
                (2, "docs/f.png", None),
                (2, "docs/x/y.md", Some("k")),
                (6, "s.md", Some("t")),
                (7, "docs/x/v.md", None),
                (9, "docs/x/y.md", None),
            ]
        );
    }

    #[test]
    fn what_leads_out_of_the_repository_keeps_its_dots() {
        assert_eq!(page("README.md", "[a](../b.md)").links()[0].file, Path::new("../b.md"));
    }

    #[test]
    fn headings_have_names_as_forges_write_them() {
        let text = "# What do I *gain*, `x --try`?\n## A\n```sh\n# no heading\n```\n## A\n#no\n\
                    ### [A link](b.md) \u{b5}s_1\n<a id=\"own\"></a>text\n";
        assert_eq!(
            page("a.md", text).anchors(),
            ["what-do-i-gain-x---try", "a", "a-1", "a-link-\u{b5}s_1", "own"]
        );
    }

    #[test]
    fn a_longer_fence_holds_shorter_ones() {
        let text = "````md\n```\n[a](b.md)\n````\n[c](d.md)\n";
        assert_eq!(page("x.md", text).links().len(), 1);
    }
}
