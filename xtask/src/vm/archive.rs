//! The first file system of the machine, in the kernel's cpio format
//! (Documentation/driver-api/early-userspace/buffer-format.rst, "newc").

use std::path::Path;

use anyhow::{Context, Result};

/// Program that anybody may run, as `mode` of a file.
const PROGRAM: u32 = 0o100_755;
/// A folder that anybody may enter.
const FOLDER: u32 = 0o040_755;

/// A file of the archive.
#[derive(Clone, Debug)]
pub(super) struct File {
    /// From the root, without the first slash.
    path: String,
    content: Vec<u8>,
}

impl File {
    /// A file at `path` that may be run, with the content of one that is here.
    pub(super) fn program(path: &str, from: &Path) -> Result<Self> {
        let content = std::fs::read(from).with_context(|| from.display().to_string())?;
        Ok(Self { path: path.to_owned(), content })
    }

    /// A file at `path` with this text.
    pub(super) fn text(path: &str, text: String) -> Self {
        Self { path: path.to_owned(), content: text.into_bytes() }
    }

    /// The folders above it, the uppermost first.
    fn folders(&self) -> impl Iterator<Item = &str> {
        self.path.match_indices('/').map(|(at, _)| &self.path[..at])
    }
}

/// An archive of these files, with their folders and those that the kernel's files are mounted on.
pub(super) fn of(files: &[File]) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(files.iter().map(|file| file.content.len() + 1024).sum());
    let mut folders = vec!["proc", "sys", "dev", "tmp"];
    for folder in files.iter().flat_map(File::folders) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    for folder in folders {
        entry(&mut out, folder, FOLDER, &[])?;
    }
    for file in files {
        entry(&mut out, &file.path, PROGRAM, &file.content)?;
    }
    entry(&mut out, "TRAILER!!!", 0, &[])?;
    Ok(out)
}

/// One file: a head of 13 numbers of eight hexadecimal digits, the name, the content, each padded to
/// four bytes.
fn entry(out: &mut Vec<u8>, name: &str, mode: u32, content: &[u8]) -> Result<()> {
    let bytes = u32::try_from(content.len()).context("a program of more than 4 GiB")?;
    let name_bytes = u32::try_from(name.len() + 1)?;
    let number = u32::try_from(out.len())?;
    // Number, mode, user, group, links, time, bytes, four device numbers, bytes of the name, no sum.
    let head = [number, mode, 0, 0, 1, 0, bytes, 0, 0, 0, 0, name_bytes, 0];
    out.extend(b"070701");
    out.extend(head.iter().flat_map(|field| format!("{field:08x}").into_bytes()));
    out.extend(name.as_bytes());
    out.push(0);
    pad(out);
    out.extend(content);
    pad(out);
    Ok(())
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
        let out = of(&[file("lib/a/b"), file("lib/c"), file("init")]).unwrap();
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
        entry(&mut out, "init", PROGRAM, b"#!").unwrap();
        assert_eq!(&out[..14], b"07070100000000");
        assert_eq!(&out[14..22], b"000081ed", "mode");
        assert_eq!(&out[54..62], b"00000002", "bytes");
        assert_eq!(&out[94..102], b"00000005", "bytes of the name");
        assert_eq!(&out[110..115], b"init\0");
        assert_eq!(&out[116..120], b"#!\0\0", "content begins and ends on four bytes");
    }
}
