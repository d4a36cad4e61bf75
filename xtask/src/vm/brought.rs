//! Files that an emulated machine brings out on its second console: `== NAME BYTES` and a line break, then so many
//! bytes of text. The console ends lines as terminals do, which JSON does not mind.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

/// The JSON of each name, or why it is none. Each is also left in `folder` as a file.
pub(super) type Found = BTreeMap<String, Result<Value>>;

/// What a machine brought out.
pub(super) fn read(console: &Path, folder: &Path) -> Result<Found> {
    let bytes = std::fs::read(console).with_context(|| console.display().to_string())?;
    let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
    let mut found = Found::new();
    for (name, content) in parts(&text) {
        std::fs::write(folder.join(format!("{name}.json")), content)?;
        let value = serde_json::from_str(content)
            .with_context(|| format!("{name} is not JSON, or not whole"));
        found.insert(name.to_owned(), value);
    }
    Ok(found)
}

/// Names and contents, as far as they are whole.
fn parts(text: &str) -> Vec<(&str, &str)> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((name, bytes, content)) = head(rest) {
        let Some((content, next)) = content.split_at_checked(bytes) else {
            parts.push((name, content));
            break;
        };
        parts.push((name, content));
        rest = next.trim_start_matches('\n');
    }
    parts
}

/// The head of a part: its name, its bytes, and what follows.
fn head(text: &str) -> Option<(&str, usize, &str)> {
    let (line, rest) = text.split_once('\n')?;
    let (name, bytes) = line.strip_prefix("== ")?.split_once(' ')?;
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_name.then_some((name, bytes.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_apart_by_their_sizes() {
        let text = "== map 7\n{\n== 1}\n== show 2\n[]\n== run 9\n{";
        assert_eq!(parts(text), [("map", "{\n== 1}"), ("show", "[]"), ("run", "{")]);
        assert_eq!(parts("== ../x 1\na"), []);
        assert_eq!(parts(""), []);
    }

    #[test]
    fn what_is_cut_off_is_an_error_of_its_name_alone() {
        let folder = tempfile::tempdir().unwrap();
        let console = folder.path().join("console");
        std::fs::write(&console, "== map 8\r\n{\"a\":\r\n1}\r\n== show 9\r\n{\"b\":").unwrap();
        let found = read(&console, folder.path()).unwrap();
        assert_eq!(found["map"].as_ref().unwrap()["a"], 1);
        assert!(found["show"].is_err());
        assert!(folder.path().join("map.json").exists());
    }
}
