//! Atlases of hundreds of cores: how large they are, and what is left of each number.

use crate::contents::{Cell, Contents, Matrix};
use crate::made::wide;
use crate::{decode, diff, encode, group_levels};
use isochrone_atlas::Atlas;
use isochrone_atlas::format::{
    HEADER_BYTES, RegionMode, SECTION_BYTES, Section, SectionEntry, TransferKind,
};
use isochrone_units::{CoreId, RegionId};
use std::sync::LazyLock;

/// What an atlas of 384 cores in 16 regions may take without codes of pages.
const BYTES_MAX: usize = 4_000_000;

static LARGE: LazyLock<(Contents, Vec<u8>)> = LazyLock::new(|| {
    let contents = wide(384, 16);
    let bytes = encode(&contents).unwrap();
    (contents, bytes)
});

/// Kind and length of each section.
fn lengths(bytes: &[u8]) -> Vec<(u32, u64)> {
    let count = usize::try_from(u32::from_le_bytes(bytes[32..36].try_into().unwrap())).unwrap();
    let table = bytes[HEADER_BYTES..].as_chunks::<SECTION_BYTES>().0;
    let entries = table[..count].iter().map(SectionEntry::from_bytes);
    entries.map(|entry| (entry.kind, entry.length)).collect()
}

#[test]
fn an_atlas_of_384_cores_in_16_regions_is_small() {
    let lengths = lengths(&LARGE.1);
    assert!(LARGE.1.len() < BYTES_MAX, "{} bytes, {lengths:?}", LARGE.1.len());
    let has = |section: Section| lengths.iter().any(|(kind, _)| *kind == section as u32);
    assert!(has(Section::PackedMeta) && !has(Section::Matrices));
    let more = encode(&wide(576, 16)).unwrap().len();
    assert!(more < 9 * BYTES_MAX / 4, "as many times larger as there are more pairs: {more}");
}

fn matrices(contents: &Contents) -> impl Iterator<Item = &Matrix> {
    let regions = contents.regions.iter().map(|map| &map.latency_ns);
    regions.chain(contents.transfers.iter().map(|map| &map.latency_ns))
}

/// `seen` is what is kept of `cell`, as docs/method/atlas-format.md promises it.
fn assert_kept(seen: Cell, cell: Cell) {
    let all = format!("{seen:?} of {cell:?}");
    let Cell { median, n, .. } = cell;
    assert!((seen.median / median - 1.0).abs() <= 1.0 / 4096.0 && seen.n == n, "{all}");
    assert!(seen.lo <= cell.lo * (1.0 + 1e-11) && seen.hi >= cell.hi * (1.0 - 1e-11), "{all}");
    let pairs = [(seen.lo, cell.lo), (seen.hi, cell.hi), (seen.p5, cell.p5), (seen.p95, cell.p95)];
    for (seen, value) in pairs {
        // A sixteenth of the distance, and the least distance of the field: 2^-8 of the farthest of most cells.
        let most = (value - median).abs() / 16.0 + median * (1.0 / 2048.0 + 1.0 / 256.0);
        assert!((seen - value).abs() <= most, "{all}");
    }
}

#[test]
fn every_cell_of_a_large_atlas_comes_back_within_what_is_promised() {
    let (contents, bytes) = &*LARGE;
    let back = decode(bytes).unwrap();
    let mut cells = 0;
    for (seen, matrix) in matrices(&back).zip(matrices(contents)) {
        assert_eq!((&seen.rows, &seen.columns), (&matrix.rows, &matrix.columns));
        assert_eq!(seen.cells.len(), matrix.cells.len());
        for (seen, cell) in seen.cells.iter().zip(&matrix.cells) {
            assert_eq!(seen.is_some(), cell.is_some());
            if let (Some(seen), Some(cell)) = (seen, cell) {
                assert_kept(*seen, *cell);
                cells += 1;
            }
        }
    }
    assert_eq!(cells, 4 * 384 * 383 + 4 * 384 * 16);
    for (seen, map) in back.transfers.iter().zip(&contents.transfers) {
        for ((seen, best), cell) in
            seen.best_line_ns.iter().zip(&map.best_line_ns).zip(&map.latency_ns.cells)
        {
            let far = |best: f64| cell.unwrap().median / 32.0 >= (seen.unwrap() - best).abs();
            assert!(best.is_none_or(far), "{seen:?} {best:?} {cell:?}");
        }
    }
    // What no matrix is stays as it was, but for the lines of histograms.
    let rest = |contents: &Contents| {
        let mut rest = contents.clone();
        rest.regions.clear();
        rest.transfers.clear();
        let all = rest.levels.iter_mut().flat_map(|map| &mut map.quality);
        all.for_each(|quality| quality.histogram_cycles.clear());
        rest
    };
    assert_eq!(rest(&back), rest(contents));
    let lines = |contents: &Contents| {
        let all = contents.levels.iter().flat_map(|map| &map.quality);
        all.map(|quality| quality.histogram_cycles.len()).sum::<usize>()
    };
    assert_eq!(lines(contents), 2 * 48 * 4096);
    assert!((60_000..=65_536).contains(&lines(&back)), "{}", lines(&back));
}

#[test]
fn what_was_written_once_is_written_again_as_it_is() {
    let back = decode(&LARGE.1).unwrap();
    let again = decode(&encode(&back).unwrap()).unwrap();
    assert!(again == back, "an atlas that is loaded and saved stays what it is");
    let found = diff(&LARGE.0, &back);
    assert!(found.cells.is_empty(), "intervals of both overlap: {:?}", found.cells.first());
    assert_eq!(group_levels(&back).len(), group_levels(&LARGE.0).len());
}

#[test]
fn a_large_atlas_is_asked_without_its_description() {
    let (contents, bytes) = &*LARGE;
    let mut unread = bytes.clone();
    let table = bytes[HEADER_BYTES..].as_chunks::<SECTION_BYTES>().0;
    let mut entries = table.iter().map(SectionEntry::from_bytes);
    let packed = entries.find(|entry| entry.kind == Section::PackedMeta as u32).unwrap();
    let at = usize::try_from(packed.offset).unwrap();
    unread[at..at + usize::try_from(packed.length).unwrap()].fill(0xff);
    let atlas = Atlas::reopen(&unread).unwrap();
    let back = decode(bytes).unwrap();
    let cell = |matrix: &Matrix, row: usize, column: usize| {
        matrix.cells[row * matrix.columns.len() + column]
    };
    for (owner, asker) in [(0, 383), (383, 0), (17, 18), (200, 8), (191, 192)] {
        for (map, told) in back.transfers.iter().zip(&contents.transfers) {
            let kinds = TransferKind::ALL.into_iter();
            let kind = kinds.into_iter().find(|kind| kind.as_str() == told.state).unwrap();
            let cores = [owner, asker].map(|core| CoreId(u16::try_from(core).unwrap()));
            let found = atlas.transfer(cores[0], cores[1], kind).unwrap();
            let seen = cell(&map.latency_ns, owner, asker).unwrap();
            assert_eq!(f64::from(found.spread.median_ns), seen.median);
            assert!((f64::from(found.spread.hi_ns) / seen.hi - 1.0).abs() < 1e-6);
            assert_eq!((found.spread.n, found.best_line_ns.is_some()), (64, true));
        }
    }
    for region in [0, 7, 15] {
        let random = atlas.region_latency(CoreId(100), RegionId(region), RegionMode::Random);
        let seen = cell(&back.regions[0].latency_ns, 100, usize::from(region)).unwrap();
        assert_eq!(f64::from(random.unwrap().median_ns), seen.median);
    }
    let nearest = atlas.nearest_region_latency(CoreId(100), RegionMode::Random).unwrap();
    assert!((90.0..102.0).contains(&nearest.median_ns), "{nearest:?}");
    assert_eq!(atlas.transfer(CoreId(3), CoreId(3), TransferKind::Modified), None);
    assert_eq!(atlas.transfer(CoreId(3), CoreId(384), TransferKind::Modified), None);
}

/// Numbers that no scale of octaves holds, and counts of all kinds.
#[test]
fn what_lies_far_out_keeps_its_digits() {
    let mut contents = wide(384, 16);
    let odd = [
        Cell { median: 7e5, lo: 1.0, hi: 9e9, p5: 0.5, p95: 9e9, n: 3 },
        Cell { median: -2.0, lo: -3.0, hi: -1.0, p5: -4.0, p95: 0.0, n: 1 },
        Cell { median: 0.0, lo: 0.0, hi: 0.0, p5: 0.0, p95: 0.0, n: 0 },
        Cell { median: 50.0, lo: 51.0, hi: 49.0, p5: 60.0, p95: 40.0, n: u32::MAX },
    ];
    let map = &mut contents.transfers[1];
    for (at, cell) in odd.into_iter().enumerate() {
        map.latency_ns.cells[at + 1] = Some(cell);
    }
    map.latency_ns.cells[9] = None;
    map.best_line_ns[5] = None;
    map.best_line_ns[9] = Some(4.25);
    for (nth, cell) in map.latency_ns.cells.iter_mut().skip(20).take(5000).enumerate() {
        let n = u32::try_from(nth % 40).unwrap();
        *cell = cell.map(|cell| Cell { n, ..cell });
    }
    let bytes = encode(&contents).unwrap();
    let back = decode(&bytes).unwrap();
    let (seen, map) = (&back.transfers[1], &contents.transfers[1]);
    for (at, cell) in odd.into_iter().enumerate() {
        assert_eq!(seen.latency_ns.cells[at + 1], Some(cell));
    }
    assert_eq!(seen.latency_ns.cells[9], None);
    assert_eq!((seen.best_line_ns[5], seen.best_line_ns[9]), (None, Some(4.25)));
    for (seen, cell) in seen.latency_ns.cells.iter().zip(&map.latency_ns.cells) {
        let (Some(seen), Some(cell)) = (seen, cell) else { continue };
        assert!(seen.n <= cell.n, "no count is said to be more than it was");
    }
    assert!(bytes.len() < BYTES_MAX + BYTES_MAX / 8, "{}", bytes.len());
}
