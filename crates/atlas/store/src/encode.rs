//! Makes the bytes of an atlas from its contents.
//!
//! Every list is checked against what it describes before it is written, and the finished bytes
//! are opened once as any reader would, so that a file that was saved can be read. It never
//! touches the disk: `save` does.

use crate::contents::{Contents, Form, LevelMap};
use crate::convert::{level_of, single};
use crate::error::EncodeError;
use crate::pages::encode_pages;
use crate::{costs, description, matrices};
use isochrone_atlas::format::{
    ALIGN, BYTE_ORDER, CHECKSUM_AT, CodeRecord, FLAG_COMPLETE, FLAG_MEASURED, FormTag,
    HEADER_BYTES, Header, LevelRecord, LinesRecord, MAGIC, MAJOR, MINOR, NONE_U16, PenaltiesRecord,
    SECTION_BYTES, Section, SectionEntry, checksum, level_tag,
};
use isochrone_atlas::{Atlas, PatternTable, Period};
use isochrone_units::Reading;

/// Pages measured line by line that a file may hold: 17 MiB of records.
pub(crate) const MAX_LINES_RECORDS: usize = 65_536;

/// The bytes of an atlas.
///
/// # Errors
/// [`EncodeError`] if a list contradicts another or a number is not finite.
pub fn encode(contents: &Contents) -> Result<Vec<u8>, EncodeError> {
    let mut sections = description::sections(contents)?;
    let ids = contents.machine.cores.iter().flat_map(|core| core.id.to_le_bytes());
    sections.push((Section::Cores, ids.collect()));
    encode_levels(contents, &mut sections)?;
    if let Some(pages) = encode_pages(&contents.pages, keyed_by(&contents.pages_keyed_by)?)? {
        sections.push((Section::PageIndex, pages.index));
        sections.push((Section::LlcCodes, pages.llc));
        sections.push((Section::DramCodes, pages.dram));
        sections.extend(pages.words.map(|words| (Section::PageWords, words)));
    }
    sections.push((Section::PackedMatrices, matrices::section(contents)?));
    sections.push((Section::Lines, lines(contents)?));
    sections.push((Section::Penalties, penalties(contents)?));
    sections.extend(costs::sections(contents)?);
    sections.push((Section::Histograms, description::histograms(contents)?));
    let bytes = assemble(contents, &sections)?;
    Atlas::open(&bytes).map_err(EncodeError::Unreadable)?;
    Ok(bytes)
}

/// Header, section table, sections; each section starts at a multiple of eight.
fn assemble(contents: &Contents, sections: &[(Section, Vec<u8>)]) -> Result<Vec<u8>, EncodeError> {
    let mut body = Vec::new();
    let mut table = Vec::new();
    let start = HEADER_BYTES + sections.len() * SECTION_BYTES;
    for (section, bytes) in sections {
        let offset = (start + body.len()) as u64;
        let entry = SectionEntry { kind: *section as u32, offset, length: bytes.len() as u64 };
        table.extend(entry.to_bytes());
        body.extend(bytes);
        body.resize(body.len().next_multiple_of(ALIGN), 0);
    }
    let measured = match contents.reading {
        Reading::Measured => FLAG_MEASURED,
        Reading::Simulated => 0,
        found @ (Reading::Predicted | Reading::Published) => {
            return Err(EncodeError::Word {
                what: "the reading",
                found: found.as_str().to_owned(),
                expected: "measured or simulated",
            });
        }
    };
    let header = Header {
        magic: MAGIC,
        byte_order: BYTE_ORDER,
        major: MAJOR,
        minor: MINOR,
        length: (start + body.len()) as u64,
        checksum: 0,
        flags: measured | if contents.complete { FLAG_COMPLETE } else { 0 },
        sections: u32::try_from(sections.len())
            .map_err(|_| EncodeError::TooLarge("section table"))?,
        fingerprint: contents.fingerprint.hash,
        clock_hz: contents.clock.hz,
        overhead_cycles: single(contents.clock.overhead_cycles),
        tick_cycles: contents.clock.tick_cycles,
    };
    let mut bytes = header.to_bytes().to_vec();
    bytes.extend(table);
    bytes.extend(body);
    let sum = checksum(&bytes);
    bytes[CHECKSUM_AT].copy_from_slice(&sum.to_le_bytes());
    Ok(bytes)
}

fn encode_levels(
    contents: &Contents,
    sections: &mut Vec<(Section, Vec<u8>)>,
) -> Result<(), EncodeError> {
    let (mut records, mut bases) = (Vec::new(), Vec::<u8>::new());
    let (mut core_base, mut codes) = (Vec::new(), Vec::new());
    for map in &contents.levels {
        let level = level_of(map)?;
        let period = Period::from_lines(map.period).ok_or_else(|| EncodeError::Word {
            what: "a period",
            found: map.period.to_string(),
            expected: "64 or 256",
        })?;
        let base_first = bases.len() / size_of::<f32>();
        for (index, base) in map.bases.iter().enumerate() {
            let what = || format!("base {index} of level {}", map.level);
            let table = PatternTable::new(period, base.patterns.iter().map(Vec::as_slice))
                .map_err(|source| EncodeError::Base { what: what(), source })?;
            length(what, usize::from(table.classes()), usize::from(map.classes))?;
            let used = &table.values()[..table.codes()];
            bases.extend(used.iter().flat_map(|value| value.to_le_bytes()));
        }
        let core_base_first = core_base.len() / 2;
        let what = || format!("core_base of level {}", map.level);
        length(what, map.core_base.len(), contents.machine.cores.len())?;
        for base in &map.core_base {
            if let Some(base) = base.filter(|&base| usize::from(base) >= map.bases.len()) {
                return Err(EncodeError::Missing { what: what(), found: format!("base {base}") });
            }
            core_base.extend(base.unwrap_or(NONE_U16).to_le_bytes());
        }
        let of_level = code_records(map, period)?;
        let code_first = codes.len();
        codes.extend(of_level);
        let counters =
            [base_first, map.bases.len(), core_base_first, code_first].map(u32::try_from);
        let [Ok(base_first), Ok(base_count), Ok(core_base_first), Ok(code_first)] = counters else {
            return Err(EncodeError::TooLarge("dictionary of bases"));
        };
        let record = LevelRecord {
            level: level_tag(level),
            form: form_tag(map.form) as u8,
            classes: map.classes,
            period: map.period,
            probe_count: u16::try_from(map.probe_lines.len())
                .map_err(|_| EncodeError::TooLarge("list of probe lines"))?,
            base_first,
            base_count,
            noise_cycles: single(map.noise_cycles),
            core_base_first,
            code_first,
            probe_lines: padded("probe_lines", map, &map.probe_lines)?,
        };
        records.extend(record.to_bytes());
    }
    sections.push((Section::Levels, records));
    sections.push((Section::Bases, bases));
    sections.push((Section::CoreBase, core_base));
    sections.push((Section::Codes, codes.iter().flat_map(CodeRecord::to_bytes).collect()));
    Ok(())
}

const fn form_tag(form: Form) -> FormTag {
    match form {
        Form::Pattern => FormTag::Pattern,
        Form::Flat => FormTag::Flat,
        Form::PerLine => FormTag::PerLine,
    }
}

fn length(what: impl Fn() -> String, found: usize, expected: usize) -> Result<(), EncodeError> {
    if found == expected {
        return Ok(());
    }
    Err(EncodeError::Length { what: what(), found, expected })
}

/// A list by code as a fixed array, zeros behind it.
fn padded<T: Copy + Default>(
    name: &str,
    map: &LevelMap,
    list: &[T],
) -> Result<[T; 256], EncodeError> {
    let mut array = [T::default(); 256];
    let slot = array.get_mut(..list.len()).ok_or_else(|| EncodeError::Length {
        what: format!("{name} of level {}", map.level),
        found: list.len(),
        expected: 256,
    })?;
    slot.copy_from_slice(list);
    Ok(array)
}

/// For each code of a level the one that stands for it, and how often it was seen.
fn code_records(map: &LevelMap, period: Period) -> Result<Vec<CodeRecord>, EncodeError> {
    let what = || format!("canonical_key of level {}", map.level);
    if !map.canonical_key.is_empty() {
        length(what, map.canonical_key.len(), period.lines())?;
    }
    let codes = usize::from(map.classes) * period.lines();
    if let Some(past) = map.code_share.get(codes..).filter(|past| past.iter().any(|s| *s != 0.0)) {
        let what = format!("code_share of level {}", map.level);
        return Err(EncodeError::Length { what, found: codes + past.len(), expected: codes });
    }
    let one = |code: u16| {
        let key = code & u16::from(period.mask());
        let stands = map.canonical_key.get(usize::from(key)).map_or(key, |key| u16::from(*key));
        if stands > key {
            let found = format!("key {stands} for key {key}");
            return Err(EncodeError::Missing { what: what(), found });
        }
        let share = map.code_share.get(usize::from(code)).copied().unwrap_or(0.0);
        Ok(CodeRecord { canonical: (code - key) | stands, share })
    };
    (0_u16..).take(codes).map(one).collect()
}

fn keyed_by(words: &str) -> Result<u32, EncodeError> {
    match words {
        "none" => Ok(0),
        "guest frames" => Ok(1),
        "host frames" => Ok(2),
        found => Err(EncodeError::Word {
            what: "pages_keyed_by",
            found: found.to_owned(),
            expected: "none, guest frames or host frames",
        }),
    }
}

fn lines(contents: &Contents) -> Result<Vec<u8>, EncodeError> {
    let mut records = Vec::new();
    for map in &contents.levels {
        let level = level_tag(level_of(map)?);
        for (frame, core, cycles) in &map.lines {
            let what = || format!("a measured page of level {}", map.level);
            length(what, cycles.len(), 64)?;
            let mut record = LinesRecord { level, core: *core, frame: *frame, cycles: [0.0; 64] };
            record.cycles.copy_from_slice(cycles);
            records.push(record);
        }
    }
    if records.len() > MAX_LINES_RECORDS {
        return Err(EncodeError::TooManyLines { found: records.len(), most: MAX_LINES_RECORDS });
    }
    records.sort_by_key(|record| (record.level, record.core, record.frame));
    let key = |record: &LinesRecord| (record.level, record.core, record.frame);
    if let Some(twice) = records.windows(2).find(|pair| key(&pair[0]) == key(&pair[1])) {
        let found = format!("frame {:#x} twice", twice[0].frame);
        return Err(EncodeError::Missing { what: "the list of measured pages".to_owned(), found });
    }
    Ok(records.iter().flat_map(LinesRecord::to_bytes).collect())
}

/// The densities of residuals, one record for each level that has one.
fn penalties(contents: &Contents) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = Vec::new();
    for map in &contents.levels {
        let Some(penalties) = &map.penalties else { continue };
        if penalties.check().is_err() {
            return Err(EncodeError::NotFinite(format!("a penalty of level {}", map.level)));
        }
        let level = level_tag(level_of(map)?);
        bytes.extend(PenaltiesRecord { level, penalties: penalties.clone() }.to_bytes());
    }
    Ok(bytes)
}
