//! A reading is a type, not a word: the words of readings stand in `units` and nowhere else.
//!
//! A field name in JSON may be such a word (`"published": 3.1`), and a test may look for one in what is printed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use isochrone_units::Reading;

/// Where the words are defined.
const GROUND: &str = "units/src/reading.rs";

/// Every source below `root` that has the word of a reading as a value.
pub(crate) fn check(root: &Path, breaches: &mut Vec<String>) -> Result<()> {
    for folder in [root.join("crates"), root.join("xtask/src")] {
        for file in sources(&folder)? {
            let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            for (line, word) in words(&text) {
                breaches.push(format!(
                    "{}:{line}: \"{word}\" is a reading; take it from isochrone_units::Reading",
                    file.display()
                ));
            }
        }
    }
    Ok(())
}

/// Lines, from 1, with the word on them. What follows the first `#[cfg(test)] mod … {` is a test.
fn words(text: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    let mut test_follows = false;
    for (number, line) in text.lines().enumerate() {
        if test_follows && line.trim_end().ends_with('{') {
            break;
        }
        test_follows = line.trim() == "#[cfg(test)]";
        let code = line.trim_start();
        if code.starts_with("//") {
            continue;
        }
        let of_line =
            Reading::ALL.map(Reading::as_str).into_iter().filter(|word| is_value(code, word));
        found.extend(of_line.map(|word| (number + 1, word)));
    }
    found
}

/// Whether the word stands there as a whole literal that is no field's name.
fn is_value(code: &str, word: &str) -> bool {
    let literal = format!("\"{word}\"");
    let after = code.match_indices(&literal).map(|(at, _)| code[at + literal.len()..].trim_start());
    after.into_iter().any(|rest| !rest.starts_with(':') || rest.starts_with("::"))
}

/// All Rust sources that are no tests, and not the one that defines the words.
pub(crate) fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default();
            if path.is_dir() {
                if name != "tests" && name != "target" {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|e| e == "rs")
                && name != "tests.rs"
                && !path.ends_with(GROUND)
            {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_as_a_value_is_found_and_a_name_a_remark_or_a_test_is_not() {
        let of = |text: &str| words(text).into_iter().map(|(line, _)| line).collect::<Vec<_>>();
        assert_eq!(of("let a = 1;\nreading: \"measured\".into(),\n"), [2]);
        assert_eq!(of("\"reading\": \"simulated\",\n"), [1]);
        assert_eq!(of("if x == \"published\" {\n"), [1]);
        assert_eq!(of("\"published\": published, \"measured\" : null,\n"), Vec::<usize>::new());
        assert_eq!(of("/// \"measured\" or so\n\"measured one by one\"\n"), Vec::<usize>::new());
        assert_eq!(of("#[cfg(test)]\nmod tests {\n\"measured\"\n"), Vec::<usize>::new());
        assert_eq!(of("#[cfg(test)]\nmod tests;\nf(\"predicted\")\n"), [3]);
    }
}
