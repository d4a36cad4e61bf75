//! Damage: every kind is refused with its reason, and no bytes make a reader panic. The corpus of
//! the fuzz target is replayed here, so that what it found once stays found.

use crate::contents::Contents;
use crate::error::LoadError;
use crate::samples::{blocks, contents, per_line};
use crate::tests::sixteen_classes;
use crate::{PageModel, decode, encode, model_pages};
use isochrone_atlas::format::{self, RegionMode, Section, SectionEntry, TermTag, TransferKind};
use isochrone_atlas::{Atlas, AtlasError};
use isochrone_units::{CoreId, Level, LineAddr, RegionId};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

fn refusal(bytes: &[u8]) -> AtlasError {
    match decode(bytes) {
        Err(LoadError::Atlas(fault)) => fault,
        other => panic!("not refused: {other:?}"),
    }
}

/// Changes bytes and corrects the checksum, as a writer with a fault would.
fn forged(bytes: &[u8], at: usize, value: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + value.len()].copy_from_slice(value);
    let sum = format::checksum(&bytes);
    bytes[format::CHECKSUM_AT].copy_from_slice(&sum.to_le_bytes());
    bytes
}

#[test]
fn damage_of_every_kind_is_refused_with_its_reason() {
    let whole = encode(&contents()).unwrap();
    let length = whole.len() as u64;
    assert_eq!(refusal(b"\x7fELF\x02\x01\x01 and so on"), AtlasError::Foreign);
    assert_eq!(refusal(b"{}"), AtlasError::Foreign);
    assert_eq!(refusal(b""), AtlasError::Truncated { found: 0, expected: 64 });
    assert_eq!(refusal(&whole[..63]), AtlasError::Truncated { found: 63, expected: 64 });
    let cut = refusal(&whole[..whole.len() - 1]);
    assert_eq!(cut, AtlasError::Truncated { found: length - 1, expected: length });
    let longer = [&whole[..], b"x"].concat();
    assert_eq!(refusal(&longer), AtlasError::TooLong { found: length + 1, expected: length });
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 4;
    assert!(matches!(refusal(&flipped), AtlasError::Checksum { .. }));
    let future = forged(&whole, 12, &9_u16.to_le_bytes());
    assert_eq!(refusal(&future), AtlasError::Future { found: 9, known: 3 });
    let past = forged(&whole, 12, &1_u16.to_le_bytes());
    assert_eq!(refusal(&past), AtlasError::Past { found: 1, known: 2 });
    let before = forged(&whole, 12, &2_u16.to_le_bytes());
    assert_eq!(decode(&before).unwrap(), contents(), "its sections are read as they are");
    let newer_minor = forged(&whole, 14, &9_u16.to_le_bytes());
    assert_eq!(decode(&newer_minor).unwrap(), contents(), "a minor version only adds");
    let swapped = forged(&whole, 8, &format::BYTE_ORDER.to_be_bytes());
    assert_eq!(refusal(&swapped), AtlasError::ByteOrder);
    let text_mode = String::from_utf8_lossy(&whole).replace("\r\n", "\n");
    assert_eq!(refusal(text_mode.as_bytes()), AtlasError::Foreign);
    let says = |bytes: &[u8]| refusal(bytes).to_string();
    assert!(says(&whole[..70]).contains("copy the atlas again"));
    assert!(says(&future).contains("update the program"));
    assert!(says(b"{}").contains("not an atlas"));
}

/// Reading all of it first would not end.
#[test]
fn what_has_no_end_is_refused_by_its_header() {
    let refused = crate::load(std::path::Path::new("/dev/zero")).unwrap_err();
    assert!(matches!(refused, LoadError::Refused { source: AtlasError::Foreign, .. }), "{refused}");
}

#[test]
fn a_faulty_writer_is_found_out_though_its_checksum_fits() {
    let whole = encode(&contents()).unwrap();
    let table = whole[format::HEADER_BYTES..].as_chunks().0;
    let entry = |section: format::Section| {
        let entries = table.iter().map(format::SectionEntry::from_bytes);
        let (place, found) =
            entries.enumerate().find(|(_, entry)| entry.kind == section as u32).unwrap();
        let at = format::HEADER_BYTES + place * format::SECTION_BYTES;
        (at, usize::try_from(found.offset).unwrap())
    };
    let far = u64::MAX.to_le_bytes();
    let (levels_at, levels) = entry(format::Section::Levels);
    let (_, bases) = entry(format::Section::Bases);
    let (_, core_base) = entry(format::Section::CoreBase);
    let (_, codes) = entry(format::Section::Codes);
    let (index_at, index) = entry(format::Section::PageIndex);
    let (_, meta) = entry(format::Section::Meta);
    let (penalties_at, penalties) = entry(format::Section::Penalties);
    let second = penalties + format::PENALTIES_BYTES;
    let cut = (format::PENALTIES_BYTES as u64 - 4).to_le_bytes();
    let cases = [
        ("offset far outside", levels_at + 8, &far[..]),
        ("length far outside", levels_at + 16, &far[..]),
        ("a section inside the table", levels_at + 8, &64_u64.to_le_bytes()[..]),
        ("an unaligned section", levels_at + 8, &1001_u64.to_le_bytes()[..]),
        ("two sections of a kind", levels_at, &[1, 0, 0, 0]),
        ("no page index", index_at, &[99, 0, 0, 0]),
        ("too many sections", 32, &[255, 255, 0, 0]),
        ("an unknown level", levels, &[7]),
        ("an unknown form", levels + 1, &[7]),
        ("seventeen classes", levels + 2, &[17]),
        ("codes from the end", levels + 24, &[255, 255, 255, 255]),
        ("a code stood for by a later one", codes, &[9, 0]),
        ("a share that is no number", codes + 4, &f32::NAN.to_le_bytes()),
        ("a period of 65", levels + 4, &[65]),
        ("300 probe lines", levels + 6, &[44, 1]),
        ("bases from the end", levels + 8, &[255, 255, 255, 255]),
        ("many bases", levels + 12, &[255, 255, 255, 255]),
        ("core bases outside", levels + 20, &[255, 255, 255, 255]),
        ("a base with NaN", bases, &f32::NAN.to_le_bytes()),
        ("a core without its base", core_base, &[9, 0]),
        ("an unknown index", index, &[9]),
        ("too many blocks", index + 8, &[5]),
        ("frames beyond memory", index + 16, &(u64::MAX - 511).to_le_bytes()[..]),
        ("a frame within a block", index + 16, &[1]),
        ("text that is no text", meta, &[0xff]),
        ("penalties of no level", penalties, &[2]),
        ("penalties of one level twice", second, &[0]),
        ("a penalty step of 0", penalties + 4, &[0; 4]),
        ("a penalty step that is no number", penalties + 4, &f32::NAN.to_le_bytes()),
        ("an infinite penalty", penalties + 8 + 4 * 200, &f32::INFINITY.to_le_bytes()),
        ("penalties cut short", penalties_at + 16, &cut[..]),
    ];
    for (what, at, value) in cases {
        let bytes = forged(&whole, at, value);
        assert!(matches!(refusal(&bytes), AtlasError::Inconsistent { .. }), "{what}");
    }
    let other_flag = forged(&whole, 28, &[2]);
    assert!(matches!(decode(&other_flag), Err(LoadError::Inconsistent(_))));
    let not_json = forged(&whole, meta, b"[");
    assert!(matches!(decode(&not_json), Err(LoadError::Text(_))));
}

/// Where a section begins.
fn start_of(bytes: &[u8], section: Section) -> usize {
    let table = bytes[format::HEADER_BYTES..].as_chunks::<{ format::SECTION_BYTES }>().0;
    let mut entries = table.iter().map(SectionEntry::from_bytes);
    let entry = entries.find(|entry| entry.kind == section as u32).expect("it is there");
    usize::try_from(entry.offset).unwrap()
}

#[test]
fn groups_that_contradict_the_cores_are_refused() {
    let whole = encode(&contents()).unwrap();
    let groups = start_of(&whole, Section::Groups);
    for (at, value) in [(groups + 2, 1_u16), (groups + 2, 60_000), (groups + 40, 7)] {
        let bad = refusal(&forged(&whole, at, &value.to_le_bytes()));
        assert!(matches!(bad, AtlasError::Inconsistent { part: "groups of cores", .. }), "{bad:?}");
    }
    let none = forged(&whole, groups + 40, &u16::MAX.to_le_bytes());
    assert_eq!(Atlas::open(&none).unwrap().group_levels().next().unwrap().group(0), None);
    let bandwidths = start_of(&whole, Section::Bandwidths);
    let bad = refusal(&forged(&whole, bandwidths + 2, &9_000_u16.to_le_bytes()));
    assert!(matches!(bad, AtlasError::Inconsistent { part: "bandwidths", .. }), "{bad:?}");
}

/// Everything a reader can be asked, so that a panic anywhere is found.
fn ask_everything(bytes: &[u8]) {
    for atlas in [Atlas::open(bytes), Atlas::reopen(bytes)].into_iter().flatten() {
        let lines = [0, 512 * 64, 600 * 64 + 5, 1 << 36, u64::MAX].map(LineAddr);
        for level in Level::ALL {
            for core in [CoreId(0), CoreId(1), CoreId(u16::MAX)] {
                let view = atlas.view(core, level);
                for line in lines {
                    let direct = atlas.latency(core, level, line);
                    assert_eq!(view.as_ref().and_then(|view| view.get(line)), direct);
                    assert!(direct.is_none_or(|cycles| !cycles.is_nan()));
                    let _ = atlas.lines_below_quantile(line.page(), core, level, 0.3);
                }
                let _ = atlas.transfer(core, CoreId(0), TransferKind::Cas);
                let _ = atlas.region_latency(core, RegionId(0), RegionMode::Stride);
            }
            for line in lines {
                let _ = atlas.nearest_core(line, level);
                let _ = atlas.code(line.page(), level);
            }
            let _ = atlas.base(level, usize::MAX);
        }
        atlas.blocks().count();
        atlas.measured_lines().count();
        for matrix in atlas.packed_matrices() {
            let (rows, columns) = (matrix.rows(), matrix.columns());
            assert_eq!(matrix.cell(rows, 0), None);
            for (row, column) in [(0, 0), (1, 0), (rows / 2, columns / 3)] {
                let _ = matrix.cell(row, column);
            }
        }
        atlas.histograms().for_each(|found| assert!(found.cycles().count() < 1 << 30));
        atlas.fits().count();
        atlas.bandwidths().for_each(|found| assert!(found.cores().count() <= 65_535));
        let known = TermTag::ALL.into_iter().filter_map(|term| atlas.term(term));
        assert!(known.count() <= TermTag::ALL.len());
        for groups in atlas.group_levels() {
            let cores = atlas.cores().count();
            assert!((0..cores).filter_map(|at| groups.group(at)).all(|one| one < groups.groups));
            assert_eq!(groups.group(cores), None);
        }
        for info in Level::ALL.into_iter().filter_map(|level| atlas.level(level)) {
            assert!(!info.has_density() || info.penalties().check().is_ok());
        }
    }
    let _ = decode(bytes);
}

/// Cases to try; failures are not written into the source tree.
fn cases(count: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(count) }
}

/// A stored atlas, encoded once.
fn stored(lines: bool) -> Vec<u8> {
    static PATTERNS: LazyLock<Vec<u8>> = LazyLock::new(|| encode(&contents()).unwrap());
    static LINES: LazyLock<Vec<u8>> = LazyLock::new(|| encode(&per_line()).unwrap());
    if lines { LINES.clone() } else { PATTERNS.clone() }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn changed_bytes_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        head in any::<bool>(),
        lines in any::<bool>(),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = stored(lines);
        // Most bytes are text and codes; half of the cases change only what the reader steers by.
        let reach = if head { 340 } else { bytes.len() };
        for (place, value) in changes {
            bytes[place.index(reach)] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        ask_everything(&bytes);
        if bytes.len() >= format::HEADER_BYTES {
            let length = (bytes.len() as u64).to_le_bytes();
            bytes[16..24].copy_from_slice(&length);
            ask_everything(&forged(&bytes, 0, &format::MAGIC));
        }
    }

    #[test]
    fn changed_tables_never_panic(
        section in prop::sample::select(vec![2_u32, 3, 4, 5, 6, 7, 8, 10, 11, 12, 20, 21]),
        place in any::<prop::sample::Index>(),
        value in any::<[u8; 4]>(),
        lines in any::<bool>(),
    ) {
        let bytes = stored(lines);
        let table = bytes[format::HEADER_BYTES..].as_chunks().0;
        let sections = usize::from(bytes[32]);
        let mut entries = table.iter().map(format::SectionEntry::from_bytes).take(sections);
        let found = entries.find(|entry| entry.kind == section);
        if let Some(entry) = found.filter(|entry| entry.length >= 4) {
            // The start of a section and its records steer the reader most.
            let reach = usize::try_from(entry.length.min(2000)).unwrap() - 3;
            let at = usize::try_from(entry.offset).unwrap() + place.index(reach);
            ask_everything(&forged(&bytes, at, &value));
        }
    }

    #[test]
    fn changed_packed_cells_never_panic(
        place in any::<prop::sample::Index>(),
        head in any::<bool>(),
        value in any::<[u8; 4]>(),
    ) {
        static PACKED: LazyLock<Vec<u8>> = LazyLock::new(packed);
        let start = start_of(&PACKED, Section::PackedMatrices);
        let at = start + place.index(if head { 24 } else { PACKED.len() - start - 4 });
        ask_everything(&forged(&PACKED, at, &value));
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        ask_everything(&bytes);
        ask_everything(&[&format::MAGIC[..], &bytes].concat());
    }
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn any_page_table_comes_back(
        starts in prop::collection::btree_set(0_u64..300, 0..12),
        stretch in prop::sample::select(vec![1_u64, 3, 1000]),
        strays in 0_u64..200,
        seed in any::<u64>(),
    ) {
        let mut pages = model_pages(starts.len() as u64, PageModel::Hashed { strays }, 63, seed);
        for (block, start) in pages.iter_mut().zip(&starts) {
            block.first_frame = start * stretch * 512;
        }
        let contents = Contents { pages, ..contents() };
        let back = decode(&encode(&contents).unwrap()).unwrap();
        prop_assert_eq!(back.pages, contents.pages);
    }
}

fn corpus_directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/atlas_reader")
}

/// What the name of a corpus file promises of it: the word before the first hyphen.
fn keeps_promise(name: &str, bytes: &[u8]) -> bool {
    let outcome = decode(bytes);
    match name.split('-').next() {
        Some("valid") => outcome.is_ok(),
        Some("truncated") => matches!(outcome, Err(LoadError::Atlas(AtlasError::Truncated { .. }))),
        Some("flipped") => matches!(outcome, Err(LoadError::Atlas(AtlasError::Checksum { .. }))),
        Some("foreign") => matches!(outcome, Err(LoadError::Atlas(AtlasError::Foreign))),
        Some("past") => matches!(outcome, Err(LoadError::Atlas(AtlasError::Past { .. }))),
        Some("future") => matches!(outcome, Err(LoadError::Atlas(AtlasError::Future { .. }))),
        Some("forged") => {
            matches!(outcome, Err(LoadError::Atlas(AtlasError::Inconsistent { .. })))
        }
        // Whatever the fuzzer left here only must not panic.
        _ => true,
    }
}

#[test]
fn the_stored_corpus_is_read_as_its_names_say() {
    let mut seen = BTreeMap::<String, u32>::new();
    for entry in fs::read_dir(corpus_directory()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let bytes = fs::read(&path).unwrap();
        ask_everything(&bytes);
        assert!(keeps_promise(name, &bytes), "{name}: {:?}", decode(&bytes).map(|_| "is read"));
        *seen.entry(name.split('-').next().unwrap().to_owned()).or_default() += 1;
    }
    for kind in ["valid", "truncated", "flipped", "foreign", "past", "future", "forged"] {
        assert!(seen.contains_key(kind), "no {kind} file in {seen:?}");
    }
}

/// Small contents, so that the corpus stays small and the fuzzer fast.
fn small(frames: &[u64]) -> Contents {
    let mut contents = Contents { pages: blocks(frames), ..contents() };
    contents.levels.truncate(1);
    contents
}

#[test]
#[ignore = "writes the stored corpus anew; only where files of version 2 are read no more"]
fn write_corpus() {
    let directory = corpus_directory();
    fs::create_dir_all(&directory).unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(directory.join(name), bytes).unwrap();
    let dense = encode(&small(&[512, 1024])).unwrap();
    let mut lines = per_line();
    lines.levels.truncate(1);
    lines.pages.clear();
    let raw = Contents { pages: model_pages(1, PageModel::Independent, 63, 1), ..small(&[]) };
    write("valid-dense", &dense);
    write("valid-table", &encode(&small(&[512, 2048])).unwrap());
    write("valid-sorted", &encode(&small(&[512, 1 << 40])).unwrap());
    write("valid-independent", &encode(&raw).unwrap());
    write("valid-words", &encode(&sixteen_classes(1)).unwrap());
    write("valid-no-pages", &encode(&small(&[])).unwrap());
    write("valid-costs", &encode(&Contents { pages: Vec::new(), ..contents() }).unwrap());
    write("valid-per-line", &encode(&lines).unwrap());
    write("truncated-half", &dense[..dense.len() / 2]);
    write("truncated-header", &dense[..40]);
    write("truncated-empty", b"");
    for (name, at) in [("flipped-meta", 1000), ("flipped-end", dense.len() - 3)] {
        let mut bytes = dense.clone();
        bytes[at] ^= 0x10;
        write(name, &bytes);
    }
    write("foreign-elf", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    write("foreign-json", b"{\"reading\":\"measured\"}");
    write("past-major", &forged(&dense, 12, &1_u16.to_le_bytes()));
    write("forged-offset", &forged(&dense, format::HEADER_BYTES + 8, &u64::MAX.to_le_bytes()));
    write("forged-sections", &forged(&dense, 32, &[255, 255, 255, 255]));
    write_newest_corpus();
}

/// Files of major version 3; those of version 2 stay beside them, as what older programs wrote.
#[test]
#[ignore = "writes the files of this version of the stored corpus anew; for a new version of the format"]
fn write_newest_corpus() {
    let write = |name: &str, bytes: &[u8]| fs::write(corpus_directory().join(name), bytes).unwrap();
    let exact = encode(&Contents { pages: Vec::new(), ..contents() }).unwrap();
    write("valid-exact-cells", &exact);
    write("future-major", &forged(&exact, 12, &(format::MAJOR + 1).to_le_bytes()));
    let packed = packed();
    write("valid-packed-cells", &packed);
    let at = start_of(&packed, Section::PackedMatrices);
    write("forged-packed-width", &forged(&packed, at + 7, &[15]));
}

/// A machine of so many cores that its cells are packed, and nothing else of it.
fn packed() -> Vec<u8> {
    let mut contents = crate::made::wide(144, 2);
    contents.levels.clear();
    contents.regions.truncate(1);
    contents.transfers.truncate(1);
    contents.provenance.missing.push("a description that is long ".repeat(4096));
    encode(&contents).unwrap()
}

#[test]
fn packed_matrices_that_contradict_themselves_are_refused() {
    let whole = packed();
    let matrices = start_of(&whole, Section::PackedMatrices);
    let exact = u32::from_le_bytes(whole[matrices + 16..matrices + 20].try_into().unwrap());
    let cases: [(usize, &[u8]); 6] = [
        (matrices + 2, &60_000_u16.to_le_bytes()),
        (matrices + 4, &60_000_u16.to_le_bytes()),
        (matrices + 6, &[5]),
        (matrices + 7, &[0]),
        (matrices + 7, &[17]),
        (matrices + 16, &(exact + 1_000_000).to_le_bytes()),
    ];
    for (at, value) in cases {
        let bad = refusal(&forged(&whole, at, value));
        assert!(matches!(bad, AtlasError::Inconsistent { part: "matrices", .. }), "{at} {bad:?}");
    }
    let inconsistent = |bytes: &[u8]| matches!(decode(bytes), Err(LoadError::Inconsistent(_)));
    let text = start_of(&whole, Section::PackedMeta);
    for length in [0, 1_000, u32::MAX] {
        let bytes = forged(&whole, text, &length.to_le_bytes());
        assert!(inconsistent(&bytes) || decode(&bytes).is_err(), "{length}");
    }
    // A matrix with as many cells, but others, than the description says.
    let small = encode(&contents()).unwrap();
    let at = start_of(&small, Section::PackedMatrices);
    let turned = forged(&small, at + 2, &[1, 0, 2, 0]);
    assert!(inconsistent(&turned));
    // Nothing is set aside for cells that are not there.
    let huge = forged(&small, at + 2, &[255, 255, 255, 255]);
    assert!(matches!(refusal(&huge), AtlasError::Inconsistent { part: "matrices", .. }));
    let histograms = start_of(&small, Section::Histograms);
    let long = refusal(&forged(&small, histograms + 4, &9_000_u32.to_le_bytes()));
    assert!(matches!(long, AtlasError::Inconsistent { part: "histograms", .. }), "{long:?}");
    assert!(inconsistent(&forged(&small, histograms + 2, &9_u16.to_le_bytes())));
}

/// Bytes that the writer of version 2.2 made: what is said there twice is said once now, and is the same.
#[test]
fn what_older_programs_wrote_is_read_and_written_anew_without_loss() {
    for name in ["valid-costs", "valid-dense", "valid-per-line", "valid-words"] {
        let bytes = fs::read(corpus_directory().join(name)).unwrap();
        let table = bytes[format::HEADER_BYTES..].as_chunks::<{ format::SECTION_BYTES }>().0;
        let sections = usize::from(bytes[32]);
        let mut kinds = table[..sections].iter().map(|entry| SectionEntry::from_bytes(entry).kind);
        assert!(kinds.all(|kind| kind < Section::PackedMatrices as u32), "{name} is an old one");
        let old = decode(&bytes).unwrap();
        let known = old.transfers.iter().flat_map(|map| &map.latency_ns.cells).flatten().count();
        let patterns = old.levels.iter().flat_map(|map| &map.bases).map(|base| &base.patterns);
        assert!(known > 0 && patterns.clone().all(|patterns| !patterns.is_empty()), "{name}");
        let anew = encode(&old).unwrap();
        assert_eq!(bytes_of(&decode(&anew).unwrap()), bytes_of(&old), "{name}");
        let (then, now) = (Atlas::open(&bytes).unwrap(), Atlas::open(&anew).unwrap());
        for (owner, asker) in [(0, 1), (1, 0)] {
            for kind in TransferKind::ALL {
                let ask = |atlas: &Atlas<'_>| atlas.transfer(CoreId(owner), CoreId(asker), kind);
                assert_eq!(ask(&then), ask(&now), "{name}");
            }
        }
        for mode in RegionMode::ALL {
            let ask = |atlas: &Atlas<'_>| atlas.region_latency(CoreId(1), RegionId(0), mode);
            assert_eq!(ask(&then), ask(&now), "{name}");
        }
    }
}

/// Contents as text, in which a missing line of a page is equal to itself.
fn bytes_of(contents: &Contents) -> String {
    format!("{contents:?}")
}
