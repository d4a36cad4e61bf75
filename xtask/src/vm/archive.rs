//! The first file system of the machine: one program, as `/init`, in the kernel's cpio format
//! (Documentation/driver-api/early-userspace/buffer-format.rst, "newc").

use anyhow::{Context, Result};

/// Program that anybody may run, as `mode` of a file.
const PROGRAM: u32 = 0o100_755;
/// A folder that anybody may enter.
const FOLDER: u32 = 0o040_755;

/// An archive whose only program is `/init`, with the folders that it mounts the kernel's files on.
pub(super) fn with_init(program: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(program.len() + 1024);
    for folder in ["proc", "sys", "dev", "tmp"] {
        entry(&mut out, folder, FOLDER, &[])?;
    }
    entry(&mut out, "init", PROGRAM, program)?;
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
