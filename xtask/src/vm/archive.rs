//! The first file system of the machine, in the kernel's cpio format
//! (Documentation/driver-api/early-userspace/buffer-format.rst, "newc").

use std::collections::HashSet;
use std::io::Write;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Program that anybody may run, as `mode` of a file.
const PROGRAM: u32 = 0o100_755;
/// A folder that anybody may enter.
const FOLDER: u32 = 0o040_755;
/// A name for another place.
const LINK: u32 = 0o120_777;
/// Folders that are there in any case: what the kernel's files are mounted on, and where programs write.
const ALWAYS: [&str; 5] = ["proc", "sys", "dev", "tmp", "run"];

/// A file of the archive.
#[derive(Clone, Debug)]
pub(super) struct File {
    /// From the root, without the first slash.
    path: String,
    mode: u32,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    /// That of a file which lies here.
    Here(PathBuf),
    /// A text, or where a link leads.
    Text(String),
}

impl File {
    /// A file at `path` that may be run, with the content of one that is here.
    pub(super) fn program(path: &str, from: &Path) -> Self {
        Self { path: path.to_owned(), mode: PROGRAM, content: Content::Here(from.to_owned()) }
    }

    /// A file at `path` with this text.
    pub(super) fn text(path: &str, text: String) -> Self {
        Self { path: path.to_owned(), mode: PROGRAM, content: Content::Text(text) }
    }

    /// A link at `path` to another place.
    pub(super) fn link(path: &str, to: &str) -> Self {
        Self { path: path.to_owned(), mode: LINK, content: Content::Text(to.to_owned()) }
    }

    /// All files below `from`, which come to lie below `path`, but those that `wanted` does not want by their place
    /// there. An empty `path` is the root.
    pub(super) fn below(
        path: &str,
        from: &Path,
        wanted: &dyn Fn(&str) -> bool,
        all: &mut Vec<Self>,
    ) -> Result<()> {
        for entry in std::fs::read_dir(from).with_context(|| from.display().to_string())? {
            let here = entry?.path();
            let name = here.file_name().context("a name")?.to_string_lossy().into_owned();
            let place = if path.is_empty() { name } else { format!("{path}/{name}") };
            let kind = here.symlink_metadata()?;
            if !wanted(&place) {
                continue;
            }
            if kind.is_dir() {
                Self::below(&place, &here, wanted, all)?;
            } else if kind.is_symlink() {
                all.push(Self::link(&place, &std::fs::read_link(&here)?.to_string_lossy()));
            } else {
                let mode = kind.permissions().mode();
                all.push(Self { path: place, mode, content: Content::Here(here) });
            }
        }
        Ok(())
    }

    /// The folders above it, the uppermost first.
    fn folders(&self) -> impl Iterator<Item = &str> {
        self.path.match_indices('/').map(|(at, _)| &self.path[..at])
    }

    fn bytes(&self) -> Result<Vec<u8>> {
        match &self.content {
            Content::Here(path) => std::fs::read(path).with_context(|| path.display().to_string()),
            Content::Text(text) => Ok(text.clone().into_bytes()),
        }
    }
}

/// Writes an archive of these files, with their folders and those that are always there.
pub(super) fn write(files: &[File], out: &mut dyn Write) -> Result<()> {
    let mut number = 0;
    let mut entry = |name: &str, mode: u32, content: &[u8]| {
        number += 1;
        entry(out, number, name, mode, content)
    };
    let mut folders = HashSet::new();
    for folder in ALWAYS.into_iter().chain(files.iter().flat_map(File::folders)) {
        if folders.insert(folder) {
            entry(folder, FOLDER, &[])?;
        }
    }
    for file in files {
        entry(&file.path, file.mode, &file.bytes()?)?;
    }
    entry("TRAILER!!!", 0, &[])
}

/// One file: a head of 13 numbers of eight hexadecimal digits, the name, the content, each padded to
/// four bytes.
fn entry(out: &mut dyn Write, number: u32, name: &str, mode: u32, content: &[u8]) -> Result<()> {
    let bytes = u32::try_from(content.len()).context("a program of more than 4 GiB")?;
    let name_bytes = u32::try_from(name.len() + 1)?;
    // Number, mode, user, group, links, time, bytes, four device numbers, bytes of the name, no sum.
    let fields = [number, mode, 0, 0, 1, 0, bytes, 0, 0, 0, 0, name_bytes, 0];
    let mut head = b"070701".to_vec();
    head.extend(fields.iter().flat_map(|field| format!("{field:08x}").into_bytes()));
    head.extend(name.as_bytes());
    head.push(0);
    pad(&mut head);
    out.write_all(&head)?;
    out.write_all(content)?;
    let rest = content.len().next_multiple_of(4) - content.len();
    Ok(out.write_all(&[0; 3][..rest])?)
}

fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_once_and_before_what_is_in_them() {
        let file = |path| File::text(path, "x".to_owned());
        let mut out = Vec::new();
        write(&[file("lib/a/b"), file("lib/c"), file("init")], &mut out).unwrap();
        let text = String::from_utf8_lossy(&out);
        let at = |name: &str| text.find(&format!("{name}\0")).expect("an entry");
        assert!(
            at("lib") < at("lib/a") && at("lib/a") < at("lib/a/b") && at("lib/a/b") < at("lib/c")
        );
        assert_eq!(text.matches("lib\0").count(), 1);
        assert!(at("lib/c") < at("init") && at("init") < at("TRAILER!!!"));
    }

    #[test]
    fn an_archive_has_its_parts_where_the_format_says() {
        let mut out = Vec::new();
        entry(&mut out, 1, "init", PROGRAM, b"#!").unwrap();
        assert_eq!(&out[..14], b"07070100000001");
        assert_eq!(&out[14..22], b"000081ed", "mode");
        assert_eq!(&out[54..62], b"00000002", "bytes");
        assert_eq!(&out[94..102], b"00000005", "bytes of the name");
        assert_eq!(&out[110..115], b"init\0");
        assert_eq!(&out[116..120], b"#!\0\0", "content begins and ends on four bytes");
    }

    #[test]
    fn a_folder_goes_with_its_links_and_without_what_is_not_wanted() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("a/doc")).unwrap();
        std::fs::write(folder.path().join("a/doc/text"), "").unwrap();
        std::fs::write(folder.path().join("a/b"), "").unwrap();
        std::os::unix::fs::symlink("b", folder.path().join("a/c")).unwrap();
        let mut all = Vec::new();
        File::below("x", folder.path(), &|place| place != "x/a/doc", &mut all).unwrap();
        let mut places: Vec<_> = all.iter().map(|file| (file.path.as_str(), file.mode)).collect();
        places.sort_unstable();
        assert_eq!((places[0].0, places[1]), ("x/a/b", ("x/a/c", LINK)));
        assert_eq!((places.len(), all.iter().any(|file| file.bytes().unwrap() == b"b")), (2, true));
    }
}
