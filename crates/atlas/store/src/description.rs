//! The description of an atlas: its contents as text, without what other sections have. A long one is compressed:
//! programs that ask an atlas never read it, and whoever loads a whole one unpacks it in a few milliseconds.

use crate::contents::{Contents, LevelMap};
use crate::error::{EncodeError, LoadError};
use crate::matrices;
use isochrone_atlas::Atlas;
use isochrone_atlas::format::{ALIGN, HistogramHeader, Section, level_tag};
use isochrone_units::Level;

/// A description up to this long stands in the file as text.
const PLAIN_BYTES: usize = 64 << 10;
/// What stands in the place of one that is compressed, for readers that do not know of that.
const ELSEWHERE: &[u8] = br#"{"description":"in section 22, since major version 3"}"#;
/// Longest description that is unpacked: 16 times that of 576 cores.
const UNPACKED_MAX: usize = 64 << 20;
/// Latencies of single lines that an atlas keeps in all: 256 KiB. Cores that have more between them keep evenly
/// spaced ones of theirs, from the least to the largest.
const HISTOGRAM_LINES: usize = 1 << 16;

/// The sections of the description.
pub(crate) fn sections(contents: &Contents) -> Result<Vec<(Section, Vec<u8>)>, EncodeError> {
    let text = text(contents)?;
    if text.len() <= PLAIN_BYTES {
        return Ok(vec![(Section::Meta, text)]);
    }
    if text.len() > UNPACKED_MAX {
        return Err(EncodeError::TooLarge("description"));
    }
    let packed = lz4_flex::block::compress_prepend_size(&text);
    Ok(vec![(Section::Meta, ELSEWHERE.to_vec()), (Section::PackedMeta, packed)])
}

/// All but what other sections have: pages, measured lines, penalties, cells, patterns, histograms.
fn text(contents: &Contents) -> Result<Vec<u8>, EncodeError> {
    let mut rest = Contents { pages: Vec::new(), ..contents.clone() };
    for level in &mut rest.levels {
        level.lines.clear();
        level.penalties = None;
        level.bases.iter_mut().for_each(|base| base.patterns.clear());
        level.quality.iter_mut().for_each(|quality| quality.histogram_cycles.clear());
    }
    rest.regions.iter_mut().for_each(|map| map.latency_ns.cells.clear());
    for map in &mut rest.transfers {
        map.latency_ns.cells.clear();
        map.best_line_ns.clear();
    }
    let text = serde_json::to_vec(&rest)?;
    // JSON has no NaN: it would come back as null and the file could not be read.
    match serde_json::from_slice::<Contents>(&text) {
        Ok(back) if back == rest => Ok(text),
        Ok(_) => Err(EncodeError::NotFinite("a number changes on its way through text".to_owned())),
        Err(fault) => Err(EncodeError::NotFinite(fault.to_string())),
    }
}

/// Latencies of single lines, by level and core.
pub(crate) fn histograms(contents: &Contents) -> Result<Vec<u8>, EncodeError> {
    let all = || {
        contents.levels.iter().flat_map(|map| &map.quality).map(|quality| &quality.histogram_cycles)
    };
    let lines: usize = all().map(Vec::len).sum();
    let cores = all().filter(|cycles| !cycles.is_empty()).count().max(1);
    let most = if lines > HISTOGRAM_LINES { HISTOGRAM_LINES / cores } else { usize::MAX };
    let mut bytes = Vec::new();
    for map in &contents.levels {
        let level = level_tag(crate::convert::level_of(map)?);
        for (place, quality) in map.quality.iter().enumerate() {
            let cycles = spaced(&quality.histogram_cycles, most.max(2));
            if !cycles.iter().all(|value| value.is_finite()) {
                return Err(EncodeError::NotFinite(format!("a latency of level {}", map.level)));
            }
            let counts = (u16::try_from(place), u32::try_from(cycles.len()));
            let (Ok(place), Ok(lines)) = counts else {
                return Err(EncodeError::TooLarge("histogram"));
            };
            if lines > 0 {
                bytes.extend(HistogramHeader { level, place, lines }.to_bytes());
                bytes.extend(cycles.iter().flat_map(|value| value.to_le_bytes()));
                bytes.resize(bytes.len().next_multiple_of(ALIGN), 0);
            }
        }
    }
    Ok(bytes)
}

/// All of few values; of more the `most` that part them evenly, both ends among them.
fn spaced(values: &[f32], most: usize) -> Vec<f32> {
    let mut values = values.to_vec();
    if values.len() <= most {
        return values;
    }
    values.sort_unstable_by(f32::total_cmp);
    (0..most).map(|nth| values[nth * (values.len() - 1) / (most - 1)]).collect()
}

/// The contents that a description tells, with what other sections have of them.
pub(crate) fn read(atlas: &Atlas<'_>) -> Result<Contents, LoadError> {
    // By one reader of bytes: what reads each record is built once for every kind of reader, a quarter of a megabyte.
    let mut contents: Contents = match atlas.packed_meta() {
        None => serde_json::from_slice(atlas.meta().as_bytes())?,
        Some(packed) => serde_json::from_slice(&unpacked(packed)?)?,
    };
    for map in &mut contents.levels {
        let Some(level) = Level::ALL.into_iter().find(|level| level.as_str() == map.level) else {
            continue;
        };
        patterns(map, level, atlas)?;
    }
    for found in atlas.histograms() {
        let level = Level::ALL.into_iter().find(|level| level_tag(*level) == found.level);
        let named = |map: &&mut LevelMap| level.is_some_and(|level| map.level == level.as_str());
        let map = contents.levels.iter_mut().find(named);
        let quality = map.and_then(|map| map.quality.get_mut(usize::from(found.place)));
        let quality =
            quality.ok_or(LoadError::Inconsistent("a histogram of a core that is not there"))?;
        quality.histogram_cycles = found.cycles().collect();
    }
    matrices::fill(&mut contents, atlas)?;
    Ok(contents)
}

/// Bounded by what is there: LZ4 makes no more than 255 bytes of one.
fn unpacked(packed: &[u8]) -> Result<Vec<u8>, LoadError> {
    const BROKEN: LoadError = LoadError::Inconsistent("the description cannot be unpacked");
    let (length, _) = lz4_flex::block::uncompressed_size(packed).map_err(|_| BROKEN)?;
    if length > UNPACKED_MAX.min(packed.len().saturating_mul(255)) {
        return Err(BROKEN);
    }
    lz4_flex::block::decompress_size_prepended(packed).map_err(|_| BROKEN)
}

/// Gives the bases of a level the patterns that the description has no more.
fn patterns(map: &mut LevelMap, level: Level, atlas: &Atlas<'_>) -> Result<(), LoadError> {
    for (index, base) in map.bases.iter_mut().enumerate() {
        if !base.patterns.is_empty() {
            continue;
        }
        let table = atlas.base(level, index);
        let table = table.ok_or(LoadError::Inconsistent("a base without its patterns"))?;
        let used = &table.values()[..table.codes()];
        base.patterns = used.chunks(table.period().lines()).map(<[f32]>::to_vec).collect();
    }
    Ok(())
}
