//! Code that CONTRIBUTING.md shows is code that compiles: above each block of Rust stands a file of the house, in which
//! the block stands word for word. Only the indentation of the whole block may differ.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

const FILE: &str = "CONTRIBUTING.md";
/// Opens a block of Rust, and what closes any block.
const OPEN: &str = "```rust";
const CLOSE: &str = "```";
/// Around the name of the file, on the line above the block.
const FROM: (&str, &str) = ("<!-- from ", " -->");

/// One block with the file that it names, if it names one.
#[derive(Debug, PartialEq)]
struct Quote<'t> {
    /// The line on which it opens, from 1.
    at: usize,
    file: Option<&'t str>,
    code: Vec<&'t str>,
}

/// Compares all blocks with their files.
pub(super) fn check(root: &Path, breaches: &mut Vec<String>) -> Result<()> {
    let text = fs::read_to_string(root.join(FILE)).with_context(|| FILE.to_owned())?;
    for Quote { at, file, code } in quotes(&text) {
        let Some(file) = file else {
            let (begin, end) = FROM;
            breaches.push(format!("{FILE}:{at}: Rust of no file: put {begin}PATH{end} above it"));
            continue;
        };
        let source = fs::read_to_string(root.join(file))
            .with_context(|| format!("{FILE}:{at} quotes {file}"))?;
        if !stands_in(&code, &source) {
            breaches.push(format!("{FILE}:{at}: {file} has other words than are shown here"));
        }
    }
    Ok(())
}

fn quotes(text: &str) -> Vec<Quote<'_>> {
    let lines: Vec<&str> = text.lines().collect();
    let opens = lines.iter().enumerate().filter(|(_, line)| line.trim() == OPEN);
    opens
        .map(|(open, _)| {
            let above = open.checked_sub(1).map_or("", |above| lines[above].trim());
            let file = above.strip_prefix(FROM.0).and_then(|rest| rest.strip_suffix(FROM.1));
            let code = lines[open + 1..].iter().take_while(|line| line.trim() != CLOSE);
            Quote { at: open + 1, file, code: code.copied().collect() }
        })
        .collect()
}

/// Whether the lines stand in the source one after the other.
fn stands_in(code: &[&str], source: &str) -> bool {
    let lines: Vec<&str> = source.lines().collect();
    let code = flush(code);
    !code.is_empty() && lines.windows(code.len()).any(|window| flush(window) == code)
}

/// The lines without the indentation that all of them share.
fn flush<'t>(lines: &[&'t str]) -> Vec<&'t str> {
    let indent = |line: &&str| line.len() - line.trim_start().len();
    let shared = lines.iter().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
    lines.iter().map(|line| line.get(shared..).unwrap_or("").trim_end()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "Prose.\n<!-- from a.rs -->\n```rust\nfn a() {\n    b();\n}\n```\n```rust\nc\n```\n";

    #[test]
    fn blocks_are_found_with_their_files() {
        let found = quotes(TEXT);
        assert_eq!(found[0].file, Some("a.rs"));
        assert_eq!((found[0].at, found[0].code.len()), (3, 3));
        assert_eq!((found[1].file, found.len()), (None, 2));
    }

    #[test]
    fn a_block_stands_in_its_file_word_for_word() {
        let code = &quotes(TEXT)[0].code;
        assert!(stands_in(code, "mod x {\n    fn a() {\n        b();\n    }\n}\n"));
        assert!(!stands_in(code, "fn a() {\n    b(1);\n}\n"), "another word");
        assert!(!stands_in(code, "fn a() {\n\n    b();\n}\n"), "a line in between");
        assert!(!stands_in(&[], "fn a() {}\n"), "nothing is shown");
    }

    #[test]
    fn what_differs_and_what_names_no_file_is_told() {
        let tree = tempfile::tempdir().unwrap();
        fs::write(tree.path().join(FILE), TEXT).unwrap();
        fs::write(tree.path().join("a.rs"), "//! A.\nfn a() {\n    b();\n}\n").unwrap();
        let told = || {
            let mut breaches = Vec::new();
            check(tree.path(), &mut breaches).unwrap();
            breaches
        };
        assert_eq!(told().len(), 1, "{:?}", told());
        fs::write(tree.path().join("a.rs"), "//! A.\n").unwrap();
        assert_eq!(told().len(), 2, "{:?}", told());
        fs::remove_file(tree.path().join("a.rs")).unwrap();
        assert!(check(tree.path(), &mut Vec::new()).is_err());
    }
}
