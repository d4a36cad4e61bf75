//! Which C library the programs and libraries of a tree need, read from their symbols; and whether that is no newer
//! than was promised.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use super::tool;

/// A version of glibc.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version(u32, u32);

/// The oldest one that packages are made for: that of RHEL 8.
pub(super) const FLOOR: Version = Version(2, 28);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl Version {
    /// As manylinux tags have it.
    pub(super) fn tag(self) -> String {
        format!("{}_{}", self.0, self.1)
    }

    /// `2.28` or `2.2.5`.
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('.').map(|part| part.parse::<u32>().ok());
        Some(Self(parts.next()??, parts.next()??))
    }
}

/// What a tree needs of a machine.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Needs {
    /// The newest version of a symbol in each file that has one.
    pub(super) files: Vec<(String, Version)>,
    /// The newest of all.
    pub(super) glibc: Version,
    /// The file that asks for it.
    by: String,
    /// Libraries that are no part of glibc.
    pub(super) libraries: BTreeSet<String>,
}

impl Needs {
    const NONE: Self = Self {
        files: Vec::new(),
        glibc: Version(2, 0),
        by: String::new(),
        libraries: BTreeSet::new(),
    };

    /// Asks programs and libraries of a tree.
    pub(super) fn of(tree: &Path, files: &[&str]) -> Result<Self> {
        let mut needs = Self::NONE;
        for file in files {
            let mut objdump = Command::new("objdump");
            let text = tool::output(objdump.args(["-T", "-p"]).arg(tree.join(file)), "binutils")?;
            needs.add(file, &text);
        }
        Ok(needs)
    }

    fn add(&mut self, file: &str, text: &str) {
        if let Some(newest) = newest(text) {
            self.files.push((file.to_owned(), newest));
            if newest > self.glibc {
                (self.glibc, self.by) = (newest, file.to_owned());
            }
        }
        self.libraries.extend(needed(text).filter(|name| !is_glibc(name)).map(str::to_owned));
    }

    /// Fails where a symbol is newer than what was promised.
    pub(super) fn hold(&self, promised: Version) -> Result<()> {
        ensure!(
            self.glibc <= promised,
            "{} needs glibc {}, and {promised} was promised: `objdump -T` names the symbol",
            self.by,
            self.glibc
        );
        Ok(())
    }

    /// The other libraries in words.
    pub(super) fn beside(&self) -> String {
        self.libraries.iter().map(|name| format!(", {name}")).collect()
    }
}

/// The newest version of glibc among `objdump`'s words.
fn newest(text: &str) -> Option<Version> {
    let versions = text.split("GLIBC_").skip(1);
    let end =
        |rest: &str| rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    versions.filter_map(|rest| Version::read(&rest[..end(rest)])).max()
}

/// Libraries that the loader brings.
fn needed(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.trim().strip_prefix("NEEDED")).map(str::trim)
}

fn is_glibc(name: &str) -> bool {
    const PARTS: [&str; 7] =
        ["libc.so", "libm.so", "libdl.so", "librt.so", "libpthread.so", "libutil.so", "ld-linux"];
    PARTS.iter().any(|part| name.starts_with(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &str = "Dynamic Section:\n  NEEDED               libgcc_s.so.1\n  \
        NEEDED               libc.so.6\n  NEEDED   ld-linux-x86-64.so.2\n\
        0000000000000000      DF *UND*  0000000000000000 (GLIBC_2.2.5) free\n\
        0000000000000000  w   DF *UND*  0000000000000000 (GLIBC_2.28) statx\n\
        0000000000000000      DF *UND*  0000000000000000  GLIBC_2.9 pipe2\n";

    #[test]
    fn the_newest_symbol_and_other_libraries_are_read() {
        let mut needs = Needs::NONE;
        needs.add("lib/a.so", WORDS);
        needs.add("lib/b.so", "(GLIBC_2.4) a (GLIBC_PRIVATE) b\n");
        assert_eq!((needs.glibc, needs.by.as_str()), (Version(2, 28), "lib/a.so"));
        assert_eq!(needs.beside(), ", libgcc_s.so.1");
        assert!(needs.hold(FLOOR).is_ok());
        needs.add("lib/c.so", "(GLIBC_2.36) arc4random\n");
        let said = needs.hold(FLOOR).expect_err("newer").to_string();
        assert!(said.starts_with("lib/c.so needs glibc 2.36, and 2.28"), "{said}");
    }

    #[test]
    fn versions_are_numbers() {
        assert!(Version(2, 9) < Version(2, 28));
        assert_eq!(Version::read("2.2.5"), Some(Version(2, 2)));
        assert_eq!(Version::read("PRIVATE"), None);
        assert_eq!(FLOOR.tag(), "2_28");
    }
}
