//! Messages that the page of troubleshooting quotes are those of the programs. Each line of its blocks of text is one
//! message, in which an ellipsis stands for what differs from case to case; all that stands between is in one source.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::pages::Page;

const PAGE: &str = "docs/troubleshooting.md";
const OPEN: &str = "```text";
const CLOSE: &str = "```";
/// What differs.
const GAP: char = '\u{2026}';
/// A message whose longest piece is shorter would be found in some source whatever it says.
const SHORTEST: usize = 12;

/// Every message that no source has any more.
pub(super) fn check(root: &Path, pages: &[Page], breaches: &mut Vec<String>) -> Result<()> {
    let Some(page) = pages.iter().find(|page| page.path.to_str() == Some(PAGE)) else {
        breaches.push(format!("there is no {PAGE}"));
        return Ok(());
    };
    let sources = sources(root)?;
    for (at, message) in quoted(&page.text) {
        let pieces: Vec<&str> = message.split(GAP).map(str::trim).collect();
        let longest = pieces.iter().map(|piece| piece.chars().count()).max();
        if longest.is_none_or(|chars| chars < SHORTEST) {
            breaches.push(format!("{PAGE}:{at}: {message:?} is too short to be looked for"));
        } else if !sources.iter().any(|source| pieces.iter().all(|piece| source.contains(piece))) {
            breaches.push(format!("{PAGE}:{at}: no source says {message:?}"));
        }
    }
    Ok(())
}

/// The lines of blocks of text, with their numbers from 1.
fn quoted(text: &str) -> Vec<(usize, &str)> {
    let mut is_inside = false;
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        match line.trim() {
            OPEN => is_inside = true,
            CLOSE => is_inside = false,
            line if is_inside && !line.is_empty() => lines.push((number + 1, line)),
            _ => {}
        }
    }
    lines
}

/// What the programs can say.
fn sources(root: &Path) -> Result<Vec<String>> {
    let files = crate::readings::sources(&root.join("crates"))?;
    let read = |file: &std::path::PathBuf| {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        Ok(spoken(&text))
    };
    files.iter().map(read).collect()
}

/// A source without its remarks and tests; texts that go on in the next line are joined as the compiler does.
fn spoken(source: &str) -> String {
    let code = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let mut text = String::new();
    for line in code.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
        match line.strip_suffix('\\') {
            Some(begin) => text += begin,
            None => text = text + line + "\n",
        }
    }
    text.replace("\\\"", "\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_as_the_compiler_reads_them_and_remarks_and_tests_are_left_out() {
        let source =
            "// a remark\nlet a = \"one \\\n    \\\"two\\\"\";\n#[cfg(test)]\nmod tests {\n\"x\"";
        assert_eq!(spoken(source), "let a = \"one \"two\"\";\n");
    }

    #[test]
    fn a_message_that_no_source_has_is_named() {
        let tree = tempfile::tempdir().unwrap();
        let folder = tree.path().join("crates/a/src");
        fs::create_dir_all(&folder).unwrap();
        let code = "bail!(\"{other} measures this machine now: \\\n    try again\");\n// said in a remark\n";
        fs::write(folder.join("lib.rs"), code).unwrap();
        let told = |message: &str| {
            let text = format!("words\n\n```text\n{message}\n```\n```sh\nno such message\n```\n");
            let pages = [Page { path: PAGE.into(), text }];
            let mut breaches = Vec::new();
            check(tree.path(), &pages, &mut breaches).unwrap();
            breaches
        };
        let good = "\u{2026} measures this machine now: try again";
        assert!(told(good).is_empty(), "{:?}", told(good));
        assert!(told("\u{2026} measures this machine now: \u{2026} try \u{2026}").is_empty());
        let bad = told("measures that machine now");
        assert_eq!(
            bad,
            ["docs/troubleshooting.md:4: no source says \"measures that machine now\""]
        );
        assert_eq!(told("said in a remark").len(), 1);
        assert_eq!(told("now").len(), 1, "found anywhere");
        assert_eq!(told("measures this machine now: \u{2026} never").len(), 1);
        let mut none = Vec::new();
        check(tree.path(), &[], &mut none).unwrap();
        assert_eq!(none.len(), 1);
    }
}
