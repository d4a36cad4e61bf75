//! The picture of the floors in ARCHITECTURE.md: drawn from the manifests, never by hand.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::members::Member;
use super::{arrows, bare};

const FILE: &str = "ARCHITECTURE.md";
const BEGIN: &str = "<!-- floors: drawn by `cargo xtask tidy --draw` -->\n";
const END: &str = "<!-- end of floors -->\n";
/// What is written above the columns.
const HEAD: [&str; 4] = ["folder", "crate", "library", "stands on, besides what these stand on"];

/// Checks that the picture in the file is the one that the manifests give.
pub(super) fn check(root: &Path, members: &[Member], breaches: &mut Vec<String>) -> Result<()> {
    let text = read(root)?;
    match with_picture(&text, &drawn(members)) {
        None => breaches.push(format!("{FILE} has no place for the picture: {BEGIN}{END}")),
        Some(true_text) if true_text != text => {
            breaches.push(format!("{FILE} shows other floors: run `cargo xtask tidy --draw`"));
        }
        Some(_) => {}
    }
    Ok(())
}

/// Writes the picture into the file.
pub(super) fn draw(root: &Path, members: &[Member]) -> Result<()> {
    let text = with_picture(&read(root)?, &drawn(members));
    let text =
        text.with_context(|| format!("{FILE} has no place for the picture: {BEGIN}{END}"))?;
    fs::write(root.join(FILE), text).with_context(|| FILE.to_owned())
}

fn read(root: &Path) -> Result<String> {
    fs::read_to_string(root.join(FILE)).with_context(|| FILE.to_owned())
}

/// The text with this picture between its marks, if it has them.
fn with_picture(text: &str, picture: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}```text\n{picture}```\n{END}{after}"))
}

/// A line for each crate: who stands highest comes first, and each stands on crates further down. A rule is between
/// two floors. A crate that is reached through another one is not named again.
fn drawn(members: &[Member]) -> String {
    let mut order: Vec<&Member> = members.iter().collect();
    let floor = |member: &Member| arrows::floor(&member.folder).unwrap_or(0);
    order.sort_by_key(|m| (Reverse((floor(m), arrows::below(members, &m.name).len())), &m.folder));
    let rows: Vec<[String; 4]> = order.iter().map(|member| row(members, member)).collect();

    let mut widths = HEAD.map(str::len);
    for row in &rows {
        for (width, word) in widths.iter_mut().zip(row) {
            *width = (*width).max(word.len());
        }
    }
    let rule = format!("{}\n", "-".repeat(widths.iter().sum::<usize>() + 2 * (widths.len() - 1)));
    let mut text = line(&HEAD.map(str::to_owned), widths);
    let mut last = None;
    for (member, row) in order.iter().zip(&rows) {
        if last != Some(floor(member)) {
            text.push_str(&rule);
        }
        last = Some(floor(member));
        text.push_str(&line(row, widths));
    }
    text
}

fn row(members: &[Member], member: &Member) -> [String; 4] {
    let through: BTreeSet<&str> =
        member.stands_on.iter().flat_map(|on| arrows::below(members, on)).collect();
    let direct = member.stands_on.iter().map(String::as_str).filter(|on| !through.contains(on));
    let folder = member.folder.strip_prefix("crates").unwrap_or(&member.folder);
    [
        folder.display().to_string(),
        member.name.clone(),
        bare::words(&member.name).to_owned(),
        direct.collect::<Vec<_>>().join(", "),
    ]
}

fn line(words: &[String; 4], widths: [usize; 4]) -> String {
    let mut text = String::new();
    for (word, width) in words.iter().zip(widths) {
        text.push_str(&format!("{word:<width$}  "));
    }
    format!("{}\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(folder: &str, stands_on: &[&str]) -> Member {
        Member {
            name: folder.rsplit('/').next().unwrap_or(folder).to_owned(),
            folder: folder.into(),
            stands_on: stands_on.iter().map(|name| (*name).to_owned()).collect(),
            tested_with: BTreeSet::new(),
        }
    }

    fn house() -> Vec<Member> {
        vec![
            member("crates/atlas/store", &["machine", "units"]),
            member("crates/ground/machine", &["units"]),
            member("crates/ground/units", &[]),
            member("fuzz", &["store", "units"]),
        ]
    }

    #[test]
    fn floors_come_from_above_and_name_no_crate_twice() {
        let expected = "\
folder          crate    library           stands on, besides what these stand on
---------------------------------------------------------------------------------
fuzz            fuzz                       store
---------------------------------------------------------------------------------
atlas/store     store                      machine
---------------------------------------------------------------------------------
ground/machine  machine  no std            units
ground/units    units    no std, no alloc
";
        assert_eq!(drawn(&house()), expected);
    }

    #[test]
    fn another_picture_is_a_breach_until_it_is_drawn() {
        let tree = tempfile::tempdir().unwrap();
        let told = |members: &[Member]| {
            let mut breaches = Vec::new();
            check(tree.path(), members, &mut breaches).unwrap();
            breaches
        };
        fs::write(tree.path().join(FILE), format!("before\n{BEGIN}{END}after\n")).unwrap();
        assert_eq!(told(&house()).len(), 1);
        draw(tree.path(), &house()).unwrap();
        assert!(told(&house()).is_empty());
        let mut changed = house();
        changed.pop();
        assert_eq!(told(&changed).len(), 1);
        draw(tree.path(), &changed).unwrap();
        let text = read(tree.path()).unwrap();
        assert!(text.starts_with("before\n") && text.ends_with("after\n"), "{text}");
        assert_eq!(text.matches("```").count(), 2);

        fs::write(tree.path().join(FILE), "no marks\n").unwrap();
        assert!(told(&house())[0].contains("no place"));
        assert!(draw(tree.path(), &house()).is_err());
    }
}
