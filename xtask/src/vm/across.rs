//! An atlas goes from one kind of processor to the other: what a machine reads in a file that was made here is what
//! this machine reads in it, and the other way round.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::brought::Found;
use super::carried::{ATLAS, program_here};
use super::judge::Verdict;

/// Both ways. `place` is where the machine's files lie.
pub(super) fn all(root: &Path, place: &Path, found: &Found) -> Vec<Verdict> {
    vec![
        ("an atlas made here is read there", there(root, found)),
        ("an atlas made there is read here", here(root, place, found)),
    ]
}

fn there(root: &Path, found: &Found) -> Result<String> {
    same("foreign", found, &exported(root, &root.join(ATLAS.0))?)
}

fn here(root: &Path, place: &Path, found: &Found) -> Result<String> {
    let Some(Ok(Value::String(digits))) = found.get("atlas") else { bail!("no atlas came out") };
    let atlas = place.join("brought.atlas");
    std::fs::write(&atlas, bytes(digits).context("no hexadecimal digits")?)?;
    same("export", found, &exported(root, &atlas)?)
}

/// What a command of this machine's says of an atlas.
fn exported(root: &Path, atlas: &Path) -> Result<Value> {
    let command = program_here(root)?;
    let said = Command::new(&command).arg("export").arg(atlas).arg("--json=-").output();
    let said = said.with_context(|| command.display().to_string())?;
    ensure!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    serde_json::from_slice(&said.stdout).context("no JSON")
}

fn same(name: &str, found: &Found, here: &Value) -> Result<String> {
    let Some(Ok(there)) = found.get(name) else { bail!("{name} was not brought out") };
    ensure!(there == here, "{name}: both read something else in it");
    Ok(format!("all {} bytes of JSON alike", here.to_string().len()))
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_bytes() {
        assert_eq!(bytes("00ff1a"), Some(vec![0, 255, 26]));
        assert_eq!((bytes(""), bytes("0g")), (Some(Vec::new()), None));
    }

    #[test]
    fn what_did_not_come_is_an_error() {
        let place = tempfile::tempdir().unwrap();
        assert!(here(Path::new("."), place.path(), &Found::new()).is_err());
    }
}
