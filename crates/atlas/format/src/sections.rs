//! The parts of a file: its header and its table of sections, checked before anything in them is looked at.

use crate::error::AtlasError;
use crate::format::{
    self, HEADER_BYTES, Header, MAJOR, MAJOR_FIRST, MAX_SECTIONS, SECTION_BYTES, Section,
    SectionEntry,
};
use crate::pages::PageTable;

/// A part of the file that contradicts another.
pub(crate) const fn bad(part: &'static str, why: &'static str) -> AtlasError {
    AtlasError::Inconsistent { part, why }
}

/// Checks everything that holds for every version, and then the version.
pub(crate) fn check_header(bytes: &[u8], hash: bool) -> Result<Header, AtlasError> {
    let found = bytes.len() as u64;
    let magic = bytes.len().min(format::MAGIC.len());
    if bytes[..magic] != format::MAGIC[..magic] {
        return Err(AtlasError::Foreign);
    }
    let Some(head) = bytes.first_chunk::<HEADER_BYTES>() else {
        return Err(AtlasError::Truncated { found, expected: HEADER_BYTES as u64 });
    };
    let header = Header::from_bytes(head);
    if header.byte_order == format::BYTE_ORDER.swap_bytes() {
        return Err(AtlasError::ByteOrder);
    }
    let expected = header.length;
    if found < expected {
        return Err(AtlasError::Truncated { found, expected });
    }
    if found > expected {
        return Err(AtlasError::TooLong { found, expected });
    }
    let checksum = if hash { format::checksum(bytes) } else { header.checksum };
    if checksum != header.checksum {
        return Err(AtlasError::Checksum { found: checksum, expected: header.checksum });
    }
    if header.byte_order != format::BYTE_ORDER {
        return Err(bad("header", "unknown byte order"));
    }
    if header.major > MAJOR {
        return Err(AtlasError::Future { found: header.major, known: MAJOR });
    }
    if header.major < MAJOR_FIRST {
        return Err(AtlasError::Past { found: header.major, known: MAJOR_FIRST });
    }
    Ok(header)
}

/// The sections of a file by kind.
pub(crate) struct Sections<'a>([Option<&'a [u8]>; Section::COUNT]);

impl<'a> Sections<'a> {
    /// Those of a file with so many.
    pub(crate) fn open(bytes: &'a [u8], count: u32) -> Result<Self, AtlasError> {
        const PART: &str = "section table";
        let count = usize::try_from(count.min(MAX_SECTIONS + 1)).unwrap_or(usize::MAX);
        if count > MAX_SECTIONS as usize {
            return Err(bad(PART, "too many entries"));
        }
        let end = HEADER_BYTES + count * SECTION_BYTES;
        let table = bytes.get(HEADER_BYTES..end).ok_or(bad(PART, "beyond the end of the file"))?;
        let mut sections = Self([None; Section::COUNT]);
        for entry in table.as_chunks::<SECTION_BYTES>().0 {
            let entry = SectionEntry::from_bytes(entry);
            let start = usize::try_from(entry.offset).unwrap_or(usize::MAX);
            let length = usize::try_from(entry.length).unwrap_or(usize::MAX);
            let body = start.checked_add(length).and_then(|stop| bytes.get(start..stop));
            let body = body.ok_or(bad(PART, "a section lies beyond the end of the file"))?;
            if start < end || start % format::ALIGN != 0 {
                return Err(bad(PART, "a section overlaps the table or is not aligned"));
            }
            let kind = usize::try_from(entry.kind).unwrap_or(usize::MAX);
            if let Some(slot) = sections.0.get_mut(kind)
                && slot.replace(body).is_some()
            {
                return Err(bad(PART, "a section comes twice"));
            }
        }
        Ok(sections)
    }

    /// The bytes of one.
    pub(crate) fn get(&self, section: Section) -> Option<&'a [u8]> {
        self.0[section as usize]
    }

    /// Records of one size.
    pub(crate) fn records<const N: usize>(
        &self,
        section: Section,
        part: &'static str,
    ) -> Result<&'a [[u8; N]], AtlasError> {
        let (records, rest) = self.get(section).unwrap_or(&[]).as_chunks();
        if rest.is_empty() { Ok(records) } else { Err(bad(part, "its last record is cut short")) }
    }
}

pub(crate) fn open_pages<'a>(sections: &Sections<'a>) -> Result<Option<PageTable<'a>>, AtlasError> {
    let parts = [Section::PageIndex, Section::LlcCodes, Section::DramCodes];
    match parts.map(|part| sections.get(part)) {
        [None, None, None] => Ok(None),
        [Some(index), Some(llc), Some(dram)] => {
            PageTable::open(index, llc, dram, sections.get(Section::PageWords)).map(Some)
        }
        _ => Err(bad("page table", "one of index, LLC codes and DRAM codes is missing")),
    }
}
