//! Which crates do without the standard library, and which without memory from an allocator.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::members::Member;

/// Crates that must build without the standard library.
const NO_STD: &[&str] =
    &["units", "machine", "stats", "os", "atlas", "distance", "alloc", "malloc", "preload"];
/// Crates that must not allocate: the malloc replacement stands on them.
const NO_ALLOC: &[&str] = &["units", "os", "atlas", "distance", "alloc", "malloc", "preload"];

/// What a crate may use of the standard library, in words.
pub(super) fn words(name: &str) -> &'static str {
    match (NO_STD.contains(&name), NO_ALLOC.contains(&name)) {
        (false, _) => "",
        (true, false) => "no std",
        (true, true) => "no std, no alloc",
    }
}

/// Checks the first file of each crate, where both are declared.
pub(super) fn check(root: &Path, members: &[Member], breaches: &mut Vec<String>) -> Result<()> {
    for name in NO_STD {
        let member = members.iter().find(|member| member.name == *name);
        let Some(member) = member else {
            breaches.push(format!("there is no crate {name}: take it off the list in bare.rs"));
            continue;
        };
        let entry = root.join(&member.folder).join("src/lib.rs");
        let text = fs::read_to_string(&entry).with_context(|| entry.display().to_string())?;
        attributes(name, &text, NO_ALLOC.contains(name), breaches);
    }
    Ok(())
}

fn attributes(name: &str, text: &str, no_alloc: bool, breaches: &mut Vec<String>) {
    if !text.contains("#![no_std]") {
        breaches.push(format!("{name} must be no_std"));
    }
    if no_alloc && text.contains("extern crate alloc") {
        breaches.push(format!("{name} must not allocate"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_needed() {
        let told = |text: &str| {
            let mut breaches = Vec::new();
            attributes("units", text, true, &mut breaches);
            breaches
        };
        assert!(told("#![no_std]\n").is_empty());
        assert_eq!(told("//! Units.\n"), ["units must be no_std"]);
        assert_eq!(told("#![no_std]\nextern crate alloc;\n"), ["units must not allocate"]);
    }

    #[test]
    fn who_must_not_allocate_is_without_std_too() {
        assert!(NO_ALLOC.iter().all(|name| NO_STD.contains(name)));
    }
}
