//! Whether memory of a program may be adopted, by what the kernel says of its mappings (proc_pid_smaps(5)): before
//! anything is done to it.

use std::ops::Range;

use isochrone_os::OsError;

/// Flags of a mapping (`VmFlags`) with which it is not taken, and why.
const REFUSED: &[(&str, &str)] = &[
    ("sh", "it is shared with other processes"),
    ("lo", "it is locked in memory: munlock it before"),
    ("gd", "it is a stack"),
    ("ss", "it is a stack"),
    ("ht", "it has huge pages of hugetlbfs"),
    ("io", "it is a device's"),
    ("pf", "it is a device's"),
    ("mm", "it is a device's"),
    ("de", "it is a device's"),
    ("dc", "children get none of it (MADV_DONTFORK), as of buffers of devices"),
    ("wf", "children find zeros there (MADV_WIPEONFORK)"),
    ("dp", "the kernel may drop it (MAP_DROPPABLE)"),
    ("um", "it is adopted already, or another userfaultfd's"),
    ("uw", "another userfaultfd has it"),
    ("ui", "another userfaultfd has it"),
    ("ex", "it is executable"),
];

/// Looks at a range of this process: what of it cannot be taken, and why; nothing where all can.
///
/// # Errors
/// [`OsError`] where it cannot be looked at.
pub(super) fn look(range: &Range<usize>) -> Result<Option<String>, OsError> {
    let text = std::fs::read_to_string("/proc/self/smaps").map_err(|error| OsError {
        what: "cannot read /proc/self/smaps",
        errno: error.raw_os_error().unwrap_or(0),
        advice: "mount procfs, and let the process be dumpable (prctl PR_SET_DUMPABLE)",
    })?;
    let here = std::ptr::from_ref(&text).addr();
    if range.contains(&here) {
        return Ok(Some(format!(
            "memory at {here:#x} cannot be adopted: it is the caller's stack"
        )));
    }
    Ok(judge(&text, range).err())
}

/// A mapping as its first line says: its addresses, permissions, and what is behind it.
fn first_line(line: &str) -> Option<(Range<usize>, &str, &str)> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let hex = |text| usize::from_str_radix(text, 16).ok();
    let (range, access) = (hex(start)?..hex(end)?, words.next()?);
    Some((range, access, words.nth(3).unwrap_or("").trim()))
}

fn judge(smaps: &str, range: &Range<usize>) -> Result<(), String> {
    let (mut next, mut at, mut inside) = (range.start, range.start, false);
    for line in smaps.lines() {
        let flags = line.strip_prefix("VmFlags:");
        if let Some(flags) = flags.filter(|_| inside) {
            let why = |word: &str| REFUSED.iter().find(|(flag, _)| *flag == word);
            if let Some((_, why)) = flags.split_whitespace().find_map(why) {
                return Err(format!("memory at {at:#x} cannot be adopted: {why}"));
            }
            continue;
        }
        let Some((mapping, access, behind)) = first_line(line) else { continue };
        inside = mapping.start < range.end && range.start < mapping.end;
        if !inside {
            continue;
        }
        if mapping.start > next {
            return Err(format!("memory at {next:#x} cannot be adopted: it is not mapped"));
        }
        at = next;
        if let Some(why) = why_not(access, behind) {
            return Err(format!("memory at {at:#x} cannot be adopted: {why}"));
        }
        next = mapping.end.min(range.end);
    }
    if next < range.end {
        return Err(format!("memory at {next:#x} cannot be adopted: it is not mapped"));
    }
    Ok(())
}

/// What is wrong with a mapping by its first line.
fn why_not(access: &str, behind: &str) -> Option<&'static str> {
    match (access, behind) {
        (access, _) if access.ends_with('s') => Some("it is shared with other processes"),
        (_, name) if name.starts_with("[stack") => Some("it is a stack"),
        // The program's heap, and what programs name (prctl(2), PR_SET_VMA).
        (_, name) if !(name.is_empty() || name == "[heap]" || name.starts_with("[anon:")) => {
            Some("a file is behind it")
        }
        ("rw-p", _) => None,
        _ => Some("it must be readable and writable, and not executable"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
00400000-00402000 r-xp 00000000 fe:00 1234       /usr/bin/program
VmFlags: rd ex mr mw me sd
00402000-00404000 rw-p 00000000 00:00 0          [heap]
Rss:                   8 kB
VmFlags: rd wr mr mw me ac sd
7f0000000000-7f0000010000 rw-p 00000000 00:00 0 
VmFlags: rd wr mr mw me ac sd
7f0000010000-7f0000020000 rw-p 00000000 00:00 0          [anon: named]
VmFlags: rd wr mr mw me ac sd
7f0000020000-7f0000030000 rw-p 00000000 00:00 0 
VmFlags: rd wr mr mw me lo ac sd
7f0000040000-7f0000050000 rw-p 00000000 fe:00 99         /tmp/a file
VmFlags: rd wr mr mw me ac sd
7f0000050000-7f0000060000 rw-s 00000000 00:01 7          /dev/zero (deleted)
VmFlags: rd wr sh mr mw me ms sd
7f0000060000-7f0000070000 rw-p 00000000 00:00 0 
VmFlags: rd wr mr mw me ac sd um
7f0000070000-7f0000080000 r--p 00000000 00:00 0 
VmFlags: rd mr mw me ac sd
7ffc00000000-7ffc00020000 rw-p 00000000 00:00 0          [stack]
VmFlags: rd wr mr mw me gd ac
";

    #[test]
    fn what_may_be_adopted_is_told_from_what_may_not() {
        let good = [
            0x0040_2000..0x0040_4000,
            0x7f00_0000_0000..0x7f00_0002_0000,
            0x7f00_0000_1000..0x7f00_0000_2000,
        ];
        for range in good {
            assert_eq!(judge(SMAPS, &range), Ok(()), "{range:x?}");
        }
        let bad = [
            (0x0040_0000..0x0040_4000, "a file"),
            (0x0040_3000..0x0040_5000, "0x404000 cannot be adopted: it is not mapped"),
            (0x7f00_0001_0000..0x7f00_0003_0000, "locked"),
            (0x7f00_0004_0000..0x7f00_0005_0000, "a file"),
            (0x7f00_0005_0000..0x7f00_0006_0000, "shared"),
            (0x7f00_0006_0000..0x7f00_0006_1000, "adopted already"),
            (0x7f00_0007_0000..0x7f00_0007_1000, "readable and writable"),
            (0x7ffc_0001_0000..0x7ffc_0001_1000, "a stack"),
            (0x1000..0x2000, "0x1000 cannot be adopted: it is not mapped"),
            (0x7eff_ffff_f000..0x7f00_0000_1000, "not mapped"),
        ];
        for (range, why) in bad {
            let said = judge(SMAPS, &range).unwrap_err();
            assert!(said.contains(why), "{range:x?}: {said}");
        }
    }
}
