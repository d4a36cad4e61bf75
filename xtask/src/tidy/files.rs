//! The source files of the house, how each begins, and which lines are too wide.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Longest line of a source file, characters. A line with an address may be longer.
const LINE_CHARS_MAX: usize = 120;
/// Folders that hold what was built or kept, at any depth.
const NOT_SOURCES: &[&str] = &["target", "corpus", "artifacts"];

/// A source file.
pub(super) struct Source {
    /// Its place, from the root of the repository.
    pub(super) path: PathBuf,
    /// All of it.
    pub(super) text: String,
}

/// Every file of Rust below `root`, in order of place.
pub(super) fn sources(root: &Path) -> Result<Vec<Source>> {
    let rust = |path: &Path| path.extension().is_some_and(|e| e == "rs");
    below(root, &rust)?
        .into_iter()
        .map(|file| {
            let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            Ok(Source { path: file.strip_prefix(root).unwrap_or(&file).to_path_buf(), text })
        })
        .collect()
}

/// The files below a folder that are `wanted`, in order of place.
pub(super) fn below(root: &Path, wanted: &dyn Fn(&Path) -> bool) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type()?.is_dir() {
                if !name.starts_with('.') && !NOT_SOURCES.contains(&name.as_str()) {
                    folders.push(entry.path());
                }
            } else if wanted(&entry.path()) {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

/// A file says why it exists before anything else.
pub(super) fn check(source: &Source, breaches: &mut Vec<String>) {
    if !source.text.starts_with("//!") {
        let shown = source.path.display();
        breaches.push(format!("{shown}: begins without `//!` lines that say why it exists"));
    }
}

/// Lines that do not fit on a screen, from 1.
pub(super) fn wide_lines(text: &str) -> Vec<usize> {
    let wide = |line: &str| line.chars().count() > LINE_CHARS_MAX && !line.contains("http");
    let numbered = text.lines().enumerate().filter(|(_, line)| wide(line));
    numbered.map(|(number, _)| number + 1).collect()
}

/// Comments of one word that document something, from 1. A link, code and the place of a definition are more than
/// a word.
pub(super) fn one_word_comments(text: &str) -> Vec<usize> {
    let lines: Vec<Option<&str>> =
        text.lines().map(|line| line.trim_start().strip_prefix("///")).collect();
    let documents = |at: usize| lines.get(at).is_some_and(Option::is_some);
    let one_word = |at: &usize| {
        let goes_on = documents(at + 1) || (*at > 0 && documents(at - 1));
        !goes_on && lines[*at].is_some_and(|comment| is_a_word(comment.trim()))
    };
    (0..lines.len()).filter(one_word).map(|at| at + 1).collect()
}

fn is_a_word(comment: &str) -> bool {
    !comment.contains([' ', '`', '/']) && !comment.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_found_everywhere_but_where_things_are_built() {
        let tree = tempfile::tempdir().unwrap();
        for file in ["a/src/lib.rs", "a/build.rs", "target/x.rs", "a/.git/x.rs", "a/notes.md"] {
            let file = tree.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "//! A file.\n").unwrap();
        }
        let found = sources(tree.path()).unwrap();
        let places: Vec<_> = found.iter().map(|s| s.path.display().to_string()).collect();
        assert_eq!(places, ["a/build.rs", "a/src/lib.rs"]);
    }

    #[test]
    fn heads_and_widths_are_checked() {
        let told = |text: &str| {
            let mut breaches = Vec::new();
            check(&Source { path: "a.rs".into(), text: text.into() }, &mut breaches);
            breaches.len()
        };
        assert_eq!((told("//! Why.\n"), told("use x;\n")), (0, 1));
        let line =
            |text: &str, chars: usize| format!("//! Why.\n// {text}{}\n", "\u{e9}".repeat(chars));
        assert!(wide_lines(&line("", 117)).is_empty());
        assert!(wide_lines(&line("http://", 200)).is_empty());
        assert_eq!(wide_lines(&line("", 118)), [2]);
    }

    #[test]
    fn one_word_documents_nothing() {
        for text in
            ["/// Pages.\npages: u32,", "x\n    /// Both.\n    #[must_use]\n    pub fn and() {}"]
        {
            assert_eq!(one_word_comments(text).len(), 1, "{text}");
        }
        for text in [
            "/// Pages of a group.",
            "/// Pages.\n///\n/// More.",
            "/// More\n/// pages.",
            "/// [`Pages`].",
            "/// include/uapi/linux/io_uring.h",
            "// Pages.",
            "//! Pages.",
        ] {
            assert!(one_word_comments(text).is_empty(), "{text}");
        }
    }
}
