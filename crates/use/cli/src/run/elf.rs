//! What of an ELF file says whether a library can be preloaded into a program, and which allocator it brings
//! (System V ABI, chapters 4 and 5; 64-bit, little-endian).
//!
//! It reads names and never trusts a length: what lies outside of the file, or is larger than any linker writes, counts
//! as not there. It runs nothing.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// More program headers than any linker writes.
const HEADERS_MAX: u16 = 256;
/// More sections than programs have.
const SECTIONS_MAX: u16 = 1024;
/// The largest table of symbols or names that is read.
const TABLE_BYTES_MAX: u64 = 64 << 20;

const CLASS_64: u8 = 2;
const PT_INTERP: u32 = 3;
const SHT_SYMTAB: u32 = 2;
const SHT_DYNAMIC: u32 = 6;
const SHT_DYNSYM: u32 = 11;
const SECTION_BYTES: usize = 64;
const SYMBOL_BYTES: usize = 24;
const DYNAMIC_BYTES: usize = 16;
const DT_NEEDED: u64 = 1;

/// What of the header is needed.
#[derive(Debug)]
pub(super) struct Elf {
    /// Class and machine.
    pub(super) identity: (u8, u16),
    headers_at: u64,
    header_bytes: u16,
    headers: u16,
    sections_at: u64,
    section_bytes: u16,
    sections: u16,
    /// The section that has the names of sections.
    names_in: u16,
}

/// A section: the place of its name, its kind, where it lies, and the section that has the names in it.
#[derive(Clone, Copy)]
struct Section {
    name: u32,
    kind: u32,
    offset: u64,
    length: u64,
    link: u32,
}

impl Elf {
    /// The identity of programs that this process can share a library with.
    pub(super) fn here() -> (u8, u16) {
        let machine = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
        (CLASS_64, machine)
    }

    /// The head of a file; `None` for what is no ELF file.
    pub(super) fn parse(head: &[u8]) -> Option<Self> {
        let head = head.strip_prefix(b"\x7fELF").map(|_| head)?;
        let class = *head.get(4)?;
        let wide = class == CLASS_64;
        let half = |at| if wide { Some(u16::from_le_bytes(bytes(head, at)?)) } else { Some(0) };
        let long = |at| if wide { Some(u64::from_le_bytes(bytes(head, at)?)) } else { Some(0) };
        Some(Self {
            identity: (class, u16::from_le_bytes(bytes(head, 18)?)),
            headers_at: long(32)?,
            header_bytes: half(54)?,
            headers: half(56)?,
            sections_at: long(40)?,
            section_bytes: half(58)?,
            sections: half(60)?,
            names_in: half(62)?,
        })
    }

    /// The dynamic linker that the program asks for.
    pub(super) fn linker(&self, file: &File) -> Option<String> {
        for number in 0..self.headers.min(HEADERS_MAX) {
            let at = u64::from(number) * u64::from(self.header_bytes);
            let mut header = [0; 40];
            file.read_exact_at(&mut header, self.headers_at.checked_add(at)?).ok()?;
            if u32::from_le_bytes(bytes(&header, 0)?) != PT_INTERP {
                continue;
            }
            let offset = u64::from_le_bytes(bytes(&header, 8)?);
            let length = u64::from_le_bytes(bytes(&header, 32)?).min(4096);
            let mut name = vec![0; usize::try_from(length).ok()?];
            file.read_exact_at(&mut name, offset).ok()?;
            return Some(String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned());
        }
        None
    }

    /// Whether it has a section of this name.
    pub(super) fn has_section(&self, file: &File, name: &str) -> bool {
        let names = self.section(file, self.names_in).and_then(|section| table(file, section));
        let Some(names) = names else { return false };
        self.all_sections(file)
            .any(|section| name_at(&names, section.name) == Some(name.as_bytes()))
    }

    /// The libraries that it asks for.
    pub(super) fn needed(&self, file: &File) -> Vec<String> {
        let mut needed = Vec::new();
        for section in self.all_sections(file).filter(|section| section.kind == SHT_DYNAMIC) {
            let Some((entries, names)) = self.with_names(file, section) else { continue };
            for entry in entries.chunks_exact(DYNAMIC_BYTES) {
                let word = |at| bytes(entry, at).map(u64::from_le_bytes);
                let place = word(8).filter(|_| word(0) == Some(DT_NEEDED));
                let name = place.and_then(|place| name_at(&names, u32::try_from(place).ok()?));
                needed.extend(name.map(|name| String::from_utf8_lossy(name).into_owned()));
            }
        }
        needed
    }

    /// The first of these names that the program defines, in the order of the list.
    pub(super) fn defines(&self, file: &File, wanted: &[&'static str]) -> Option<&'static str> {
        let mut best = wanted.len();
        let tables = |section: &Section| matches!(section.kind, SHT_SYMTAB | SHT_DYNSYM);
        for section in self.all_sections(file).filter(tables) {
            let Some((symbols, names)) = self.with_names(file, section) else { continue };
            for symbol in symbols.chunks_exact(SYMBOL_BYTES) {
                let is_defined = bytes(symbol, 6).map(u16::from_le_bytes) != Some(0);
                let name = bytes(symbol, 0).and_then(|at| name_at(&names, u32::from_le_bytes(at)));
                let Some(name) = name.filter(|_| is_defined) else { continue };
                let better = wanted.iter().take(best).position(|one| one.as_bytes() == name);
                best = better.unwrap_or(best);
            }
        }
        wanted.get(best).copied()
    }

    fn all_sections(&self, file: &File) -> impl Iterator<Item = Section> {
        (0..self.sections.min(SECTIONS_MAX)).filter_map(|number| self.section(file, number))
    }

    fn section(&self, file: &File, number: u16) -> Option<Section> {
        let at = u64::from(number) * u64::from(self.section_bytes);
        let mut header = [0; SECTION_BYTES];
        file.read_exact_at(&mut header, self.sections_at.checked_add(at)?).ok()?;
        Some(Section {
            name: u32::from_le_bytes(bytes(&header, 0)?),
            kind: u32::from_le_bytes(bytes(&header, 4)?),
            offset: u64::from_le_bytes(bytes(&header, 24)?),
            length: u64::from_le_bytes(bytes(&header, 32)?),
            link: u32::from_le_bytes(bytes(&header, 40)?),
        })
    }

    /// A section's bytes, and those of the section that has its names.
    fn with_names(&self, file: &File, section: Section) -> Option<(Vec<u8>, Vec<u8>)> {
        let names = self.section(file, u16::try_from(section.link).ok()?)?;
        Some((table(file, section)?, table(file, names)?))
    }
}

fn table(file: &File, section: Section) -> Option<Vec<u8>> {
    let length = file.metadata().ok()?.len();
    let inside = section.offset.checked_add(section.length)? <= length;
    let fits = inside && section.length <= TABLE_BYTES_MAX;
    let mut table = vec![0; usize::try_from(section.length).ok().filter(|_| fits)?];
    file.read_exact_at(&mut table, section.offset).ok()?;
    Some(table)
}

/// The name that begins at a place of a table of names.
fn name_at(names: &[u8], at: u32) -> Option<&[u8]> {
    names.get(usize::try_from(at).ok()?..)?.split(|byte| *byte == 0).next()
}

fn bytes<const N: usize>(of: &[u8], at: usize) -> Option<[u8; N]> {
    of.get(at..at.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn of(file: &File) -> Elf {
        let mut head = vec![0; 256];
        (&mut &*file).read_exact(&mut head).expect("a program has a head");
        Elf::parse(&head).expect("an ELF file")
    }

    #[test]
    fn this_very_program_has_names() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let elf = of(&file);
        assert_eq!(elf.identity, Elf::here());
        assert!(elf.linker(&file).is_some_and(|linker| linker.contains("ld-linux")));
        assert!(
            elf.needed(&file).iter().any(|name| name == "libc.so.6"),
            "{:?}",
            elf.needed(&file)
        );
        assert!(elf.has_section(&file, ".text") && !elf.has_section(&file, ".go.buildinfo"));
        assert_eq!(elf.defines(&file, &["no_such_name", "main", "_start"]), Some("main"));
        assert_eq!(elf.defines(&file, &["malloc"]), None, "what it asks for it does not define");
    }

    #[test]
    fn lengths_are_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cut");
        let mut all = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let tried = |all: &[u8]| {
            std::fs::write(&path, all).unwrap();
            let file = File::open(&path).unwrap();
            let elf = of(&file);
            (elf.needed(&file), elf.defines(&file, &["main"]), elf.has_section(&file, ".text"))
        };
        let sections = usize::try_from(u64::from_le_bytes(bytes(&all, 40).unwrap())).unwrap();
        assert_eq!(tried(&all[..sections]), (Vec::new(), None, false), "without its sections");
        let lengths: Vec<usize> = (sections + 32..all.len() - 8).step_by(SECTION_BYTES).collect();
        lengths.iter().for_each(|at| all[*at..*at + 8].fill(0xff));
        assert_eq!(tried(&all), (Vec::new(), None, false), "with impossible ones");
    }
}
