//! What a file promises: what went in comes out, by every way of asking.

use crate::contents::{Contents, Form, PageBlock};
use crate::error::{EncodeError, LoadError, SaveError};
use crate::samples::{blocks, contents, density, level, pattern, per_line};
use crate::{MappedAtlas, PageModel, bench_query, decode, encode, load, model_pages, save};
use isochrone_atlas::format::{self, FormTag, RegionMode, TransferKind};
use isochrone_atlas::{Atlas, Code, Codebook, Decoder, Noise, Penalties, Period};
use isochrone_units::{CoreId, Level, LineAddr, PageAddr, Reading, RegionId};
use std::fs;

const CORES: [CoreId; 2] = [CoreId(0), CoreId(1)];

fn expected_cycles(contents: &Contents, core: usize, level: usize, line: LineAddr) -> Option<f32> {
    let map = &contents.levels[level];
    let base = &map.bases[usize::from(map.core_base[core]?)];
    let frame = line.page().0;
    let block = contents.pages.iter().find(|b| b.first_frame == frame - frame % 512)?;
    let codes = if level == 0 { &block.llc } else { &block.dram };
    let code = Code(codes[usize::try_from(frame % 512).unwrap()]);
    let (class, key) = (code.class(Period::Lines64), code.key(Period::Lines64));
    let pattern = base.patterns.get(usize::from(class))?;
    Some(pattern[usize::from(line.index_in_page() ^ key)])
}

#[test]
fn contents_come_back_as_they_went() {
    for original in [contents(), per_line_without_gap()] {
        let bytes = encode(&original).unwrap();
        assert_eq!(decode(&bytes).unwrap(), original);
        assert_eq!(encode(&original).unwrap(), bytes, "the same contents give the same bytes");
    }
}

#[test]
fn a_level_has_its_own_density_or_the_default() {
    let mut contents = contents();
    contents.levels[1].penalties = None;
    let bytes = encode(&contents).unwrap();
    assert_eq!(decode(&bytes).unwrap(), contents);
    let atlas = Atlas::open(&bytes).unwrap();
    let [llc, dram] = Level::ALL.map(|level| atlas.level(level).unwrap());
    assert!(llc.has_density() && !dram.has_density());
    assert_eq!(llc.penalties(), density(12.5), "to the last bit");
    assert_eq!(dram.penalties(), Penalties::from(Noise::heavy_tailed(12.5)));
    let mut silent = contents.clone();
    silent.levels[1].noise_cycles = 0.0;
    let bytes = encode(&silent).unwrap();
    let dram = Atlas::open(&bytes).unwrap().level(Level::Dram).unwrap();
    assert_eq!(dram.penalties().check(), Ok(()), "no noise is still a table");
}

#[test]
fn what_a_reader_does_not_know_it_skips() {
    let mut bytes = encode(&contents()).unwrap();
    let table = bytes[format::HEADER_BYTES..].as_chunks().0;
    let kinds = table.iter().map(|entry| format::SectionEntry::from_bytes(entry).kind);
    let place = kinds.into_iter().position(|kind| kind == format::Section::Penalties as u32);
    // A kind that no version has: what an older reader makes of a section that came later.
    let at = format::HEADER_BYTES + place.unwrap() * format::SECTION_BYTES;
    bytes[at..at + 4].copy_from_slice(&4321_u32.to_le_bytes());
    let sum = format::checksum(&bytes);
    bytes[format::CHECKSUM_AT].copy_from_slice(&sum.to_le_bytes());
    let mut expected = contents();
    expected.levels.iter_mut().for_each(|map| map.penalties = None);
    assert_eq!(decode(&bytes).unwrap(), expected);
}

#[test]
fn pages_are_decoded_with_the_stored_density() {
    let mut contents = contents();
    // Next to no residual lies below the mean: what is lower than a code predicts is not its page.
    let mut skewed = density(12.5);
    skewed.nats[..128].fill(9.0);
    skewed.nats[128..].fill(1.0);
    contents.levels[0].penalties = Some(skewed);
    let decide = |contents: &Contents| {
        let bytes = encode(contents).unwrap();
        let atlas = Atlas::open(&bytes).unwrap();
        let info = atlas.level(Level::Llc).unwrap();
        let table = atlas.base(Level::Llc, 0).unwrap();
        let book = Codebook::new(&table, &info.canonical(), &[], info.penalties()).unwrap();
        let mut decoder = Decoder::new(&book);
        for line in 0..64 {
            decoder.add(&book, line, table.latency_cycles(Code(20), line) + 2.0);
        }
        decoder.best(&book)
    };
    let with = decide(&contents);
    contents.levels[0].penalties = None;
    let without = decide(&contents);
    assert_eq!((with.code, without.code), (Code(20), Code(20)));
    assert!(with.error < without.error, "{with:?} {without:?}");
}

fn per_line_without_gap() -> Contents {
    let mut contents = per_line();
    contents.levels[0].lines[1].2[3] = 51.5;
    contents
}

#[test]
fn every_line_of_every_page_has_the_latency_of_the_contents() {
    // Contiguous, with gaps, and so scattered that the frames are searched.
    for frames in [&[512, 1024][..], &[512, 2048, 2560], &[512, 1 << 30, 3 << 40]] {
        let contents = Contents { pages: blocks(frames), ..contents() };
        let bytes = encode(&contents).unwrap();
        let atlas = Atlas::open(&bytes).unwrap();
        assert_eq!(decode(&bytes).unwrap(), contents);
        for (place, level) in Level::ALL.into_iter().enumerate() {
            for (at, core) in CORES.into_iter().enumerate() {
                let view = atlas.view(core, level).unwrap();
                for &first in frames {
                    for line in (first * 64..(first + 512) * 64).map(LineAddr) {
                        let expected = expected_cycles(&contents, at, place, line);
                        assert!(expected.is_some());
                        assert_eq!(view.get(line), expected, "{core} {level} {line:?}");
                    }
                }
                for outside in [0, 511 * 64, 1536 * 64, 1 << 50, u64::MAX] {
                    let expected = None;
                    assert_eq!(view.get(LineAddr(outside)), expected, "{frames:?} {outside}");
                }
            }
        }
    }
}

#[test]
fn the_atlas_answers_for_cores_pages_and_matrices() {
    let contents = contents();
    let bytes = encode(&contents).unwrap();
    let atlas = Atlas::open(&bytes).unwrap();
    assert!(atlas.is_complete() && atlas.is_measured());
    assert_eq!(atlas.fingerprint(), contents.fingerprint.hash);
    assert_eq!(atlas.cores().collect::<Vec<_>>(), CORES);
    assert_eq!((atlas.page_blocks(), atlas.pages_keyed_by()), (4, 1));
    let line = LineAddr(600 * 64 + 9);
    let by_core = CORES.map(|core| atlas.latency(core, Level::Llc, line).unwrap());
    let nearest = usize::from(by_core[1] < by_core[0]);
    assert_eq!(atlas.nearest_core(line, Level::Llc), Some((CORES[nearest], by_core[nearest])));
    assert_eq!(atlas.nearest_core(LineAddr(0), Level::Llc), None);
    assert_eq!(atlas.code(PageAddr(600), Level::Dram), Some(Code(contents.pages[0].dram[88])));
    assert_eq!(atlas.latency(CoreId(7), Level::Llc, line), None);
    let random = atlas.region_latency(CoreId(1), RegionId(0), RegionMode::Random).unwrap();
    assert_eq!((random.median_ns, random.n), (134.75, 400));
    assert_eq!(atlas.region_latency(CoreId(1), RegionId(0), RegionMode::OneClass), None);
    assert_eq!(atlas.region_latency(CoreId(1), RegionId(4), RegionMode::Random), None);
    let modified = atlas.transfer(CoreId(0), CoreId(1), TransferKind::Modified).unwrap();
    assert_eq!((modified.spread.median_ns, modified.best_line_ns), (50.5, Some(45.5)));
    let back = atlas.transfer(CoreId(1), CoreId(0), TransferKind::Modified).unwrap();
    assert_eq!(back.best_line_ns, None);
    assert_eq!(atlas.transfer(CoreId(0), CoreId(0), TransferKind::Modified), None);
    let info = atlas.level(Level::Dram).unwrap();
    assert_eq!((info.form, info.classes, info.bases), (FormTag::Pattern, 2, 2));
    assert_eq!(info.probe_lines, [3, 17, 40]);
    assert_eq!(info.canonical()[64 + 5], 64 + 4);
    assert_eq!(info.shares()[..128], contents.levels[1].code_share);
    assert_eq!(atlas.core_base(CoreId(1), Level::Dram), Some(1));
}

#[test]
fn the_nearest_quarter_is_the_nearest_quarter() {
    let bytes = encode(&contents()).unwrap();
    let atlas = Atlas::open(&bytes).unwrap();
    let view = atlas.view(CORES[0], Level::Llc).unwrap();
    for page in (512..2560).map(PageAddr) {
        let mask = view.lines_below_quantile(page, 0.25).unwrap();
        assert_eq!(mask.count_ones(), 16);
        let latency = |index: u8| view.get(page.line(index)).unwrap();
        let chosen = |index: &u8| mask & (1 << index) != 0;
        let farthest = (0..64).filter(chosen).map(latency).fold(0.0, f32::max);
        let nearest = (0..64).filter(|i| !chosen(i)).map(latency).fold(f32::MAX, f32::min);
        assert!(farthest <= nearest);
        let code = view.code(page).unwrap();
        assert_eq!(view.lines_of_code_below_quantile(code, PageAddr(0), 0.25), Some(mask));
    }
    let page = PageAddr(512);
    assert_eq!(view.lines_below_quantile(page, 0.0), Some(0));
    assert_eq!(view.lines_below_quantile(page, f32::NAN), Some(0));
    assert_eq!(view.lines_below_quantile(page, 7.0), Some(u64::MAX));
    assert_eq!(view.lines_below_quantile(PageAddr(u64::MAX), 0.5), None);
}

#[test]
fn lines_measured_one_by_one_are_answered_and_no_others() {
    let contents = per_line();
    let bytes = encode(&contents).unwrap();
    let atlas = Atlas::open(&bytes).unwrap();
    for (frame, core, cycles) in &contents.levels[0].lines {
        for (index, &expected) in (0_u8..).zip(cycles) {
            let found = atlas.latency(CoreId(*core), Level::Llc, PageAddr(*frame).line(index));
            assert_eq!(found, (!expected.is_nan()).then_some(expected));
        }
    }
    let line = PageAddr(9).line(0);
    assert_eq!(atlas.latency(CORES[1], Level::Llc, line), None);
    assert_eq!(atlas.latency(CORES[0], Level::Llc, PageAddr(8).line(0)), None);
    assert_eq!(atlas.lines_below_quantile(PageAddr(9), CORES[0], Level::Llc, 0.5), None);
    let quarter = atlas.lines_below_quantile(PageAddr(7), CORES[0], Level::Llc, 0.25);
    assert_eq!(quarter.map(u64::count_ones), Some(16));
}

#[test]
fn without_frames_a_program_brings_its_own_codes() {
    let contents = Contents { pages: Vec::new(), pages_keyed_by: "none".to_owned(), ..contents() };
    let bytes = encode(&contents).unwrap();
    let atlas = Atlas::open(&bytes).unwrap();
    let view = atlas.view(CORES[0], Level::Llc).unwrap();
    assert_eq!(view.get(LineAddr(512 * 64)), None);
    let expected = contents.levels[0].bases[0].patterns[0][5 ^ 33];
    assert_eq!(view.latency_of_code(Code(33), LineAddr(5)), Some(expected));
    assert_eq!(view.latency_of_code(Code(64), LineAddr(5)), None, "a class that is not there");
    let moved = atlas.view_with_base(CORES[0], Level::Llc, 1).unwrap();
    let expected = contents.levels[0].bases[1].patterns[0][5 ^ 33];
    assert_eq!(moved.latency_of_code(Code(33), LineAddr(5)), Some(expected));
    assert!(atlas.view_with_base(CORES[0], Level::Llc, 2).is_none());
    assert_eq!(
        atlas.base(Level::Llc, 0).unwrap().latency_cycles(Code(33), 5),
        contents.levels[0].bases[0].patterns[0][5 ^ 33]
    );
}

#[test]
fn a_flat_level_answers_for_every_line() {
    let mut contents = Contents { pages: Vec::new(), ..contents() };
    contents.levels[1] = level("dram", 1, 0.0);
    contents.levels[1].form = Form::Flat;
    contents.levels[1].bases[0].patterns = vec![vec![361.5; 64]];
    let bytes = encode(&contents).unwrap();
    let atlas = Atlas::open(&bytes).unwrap();
    for line in [0, 77, u64::MAX] {
        assert_eq!(atlas.latency(CORES[0], Level::Dram, LineAddr(line)), Some(361.5));
    }
}

#[test]
fn sixteen_kib_patterns_use_the_page_within_its_quartet() {
    let mut contents = contents();
    let map = &mut contents.levels[0];
    map.period = 256;
    map.canonical_key = (0..=255).collect();
    map.code_share = vec![1.0; 256];
    for base in &mut map.bases {
        base.patterns = vec![pattern(256, 7, 40.0)];
    }
    let bytes = encode(&contents).unwrap();
    let atlas = Atlas::open(&bytes).unwrap();
    let view = atlas.view(CORES[0], Level::Llc).unwrap();
    for line in 512 * 64..1024 * 64 {
        let code = view.code(LineAddr(line).page()).unwrap();
        let index = usize::try_from(line % 256).unwrap() ^ usize::from(code.0);
        let expected = contents.levels[0].bases[0].patterns[0][index];
        assert_eq!(view.get(LineAddr(line)), Some(expected));
    }
}

fn page_bytes(bytes: &[u8]) -> u64 {
    let count = usize::try_from(u32::from_le_bytes(bytes[32..36].try_into().unwrap())).unwrap();
    let table = bytes[format::HEADER_BYTES..].as_chunks().0;
    let entries = table[..count].iter().map(format::SectionEntry::from_bytes);
    use format::Section::{DramCodes, LlcCodes, PageWords};
    let kinds = [LlcCodes, DramCodes, PageWords].map(|kind| kind as u32);
    let pages = entries.filter(|entry| kinds.contains(&entry.kind));
    pages.map(|entry| entry.length).sum::<u64>() - 2 * format::PLANE_BYTES as u64
}

/// A machine whose hash over slices repeats after eight pages, and whose memory lies on two nodes.
pub(crate) fn sixteen_classes(blocks: u64) -> Contents {
    let mut contents = contents();
    let map = &mut contents.levels[0];
    map.classes = 16;
    map.code_share = vec![1.0 / 1024.0; 1024];
    for base in &mut map.bases {
        base.patterns = (0..16).map(|step| pattern(64, step * 2 + 5, 47.0)).collect();
    }
    contents.pages = model_pages(blocks, PageModel::Independent, 1023, 5);
    for block in &mut contents.pages {
        // Two classes of eight keys; and a page that was not decoded.
        block.dram.iter_mut().for_each(|code| *code = (*code & 7) << 2 | (*code & 8) << 3);
        (block.llc[17], block.dram[17]) = (u16::MAX, u16::MAX);
        block.llc.iter_mut().for_each(|code| *code = if *code == 1023 { 5 } else { *code });
    }
    contents
}

#[test]
fn codes_of_ten_bits_still_take_two_bytes_a_page() {
    let contents = sixteen_classes(64);
    let bytes = encode(&contents).unwrap();
    let atlas = Atlas::open(&bytes).unwrap();
    assert_eq!(decode(&bytes).unwrap(), contents);
    let pages = 64 * 512;
    assert!((2 * pages..2 * pages + 64).contains(&page_bytes(&bytes)), "{}", page_bytes(&bytes));
    for (place, level) in Level::ALL.into_iter().enumerate() {
        let view = atlas.view(CORES[0], level).unwrap();
        for line in (2048 * 64..4096 * 64).map(LineAddr) {
            let expected = expected_cycles(&contents, 0, place, line);
            let unknown = line.page().0 % 512 == 17;
            assert_eq!(view.get(line), expected.filter(|_| !unknown), "{level} {line:?}");
        }
    }
}

#[test]
fn a_page_takes_two_bytes_at_most_however_many_cores_there_are() {
    let pages = 64 * 512;
    let mut sizes = Vec::new();
    for cores in [2_u16, 288] {
        let mut contents = contents();
        contents.pages = model_pages(64, PageModel::Independent, 63, 5);
        let core = contents.machine.cores[0].clone();
        contents.machine.cores =
            (0..cores).map(|id| isochrone_machine::Core { id, ..core.clone() }).collect();
        for map in &mut contents.levels {
            map.core_base = vec![Some(1); usize::from(cores)];
        }
        sizes.push(page_bytes(&encode(&contents).unwrap()));
    }
    assert_eq!(sizes, [2 * pages, 2 * pages]);
    let mut contents = contents();
    contents.pages = model_pages(64, PageModel::Hashed { strays: 20 }, 63, 5);
    let bytes = encode(&contents).unwrap();
    assert!(page_bytes(&bytes) < pages / 2, "hashed codes take {} bytes", page_bytes(&bytes));
    assert_eq!(decode(&bytes).unwrap(), contents);
}

#[test]
fn contents_that_contradict_themselves_are_not_written() {
    let broken = |change: &dyn Fn(&mut Contents)| {
        let mut contents = contents();
        change(&mut contents);
        encode(&contents).unwrap_err()
    };
    let length = |fault: &EncodeError| matches!(fault, EncodeError::Length { .. });
    let word = |fault: &EncodeError| matches!(fault, EncodeError::Word { .. });
    let missing = |fault: &EncodeError| matches!(fault, EncodeError::Missing { .. });
    assert!(length(&broken(&|c| c.levels[0].core_base.push(None))));
    assert!(length(&broken(&|c| c.levels[0].canonical_key.push(0))));
    assert!(length(&broken(&|c| c.levels[0].classes = 2)));
    assert!(length(&broken(&|c| c.regions[0].latency_ns.cells.clear())));
    assert!(length(&broken(&|c| c.transfers[0].best_line_ns.truncate(1))));
    assert!(length(&broken(&|c| c.levels[0].code_share = vec![1.0; 257])));
    assert!(word(&broken(&|c| c.levels[0].level = "l4".to_owned())));
    assert!(word(&broken(&|c| c.levels[0].period = 65)));
    assert!(word(&broken(&|c| c.reading = Reading::Published)));
    assert!(word(&broken(&|c| c.pages_keyed_by = "luck".to_owned())));
    assert!(missing(&broken(&|c| c.levels[0].core_base[0] = Some(2))));
    assert!(missing(&broken(&|c| c.levels[0].canonical_key[0] = 1)));
    let base = broken(&|c| c.levels[0].bases[1].patterns[0][5] = f32::NAN);
    assert!(matches!(base, EncodeError::Base { .. } | EncodeError::NotFinite(_)), "{base}");
    let penalty = broken(&|c| c.levels[1].penalties.as_mut().unwrap().nats[9] = f32::NAN);
    assert!(matches!(penalty, EncodeError::NotFinite(_)), "{penalty}");
    let number = broken(&|c| c.levels[0].noise_cycles = f64::INFINITY);
    assert!(matches!(number, EncodeError::NotFinite(_)), "{number}");
    let twice = broken(&|c| c.pages[1].first_frame = 512);
    assert!(matches!(twice, EncodeError::Blocks { first_frame: 512 }), "{twice}");
    let unaligned = broken(&|c| c.pages[1].first_frame = 1000);
    assert!(matches!(unaligned, EncodeError::Blocks { first_frame: 1000 }), "{unaligned}");
    let short = broken(&|c| c.levels[0].lines = vec![(1, 0, vec![1.0; 63])]);
    assert!(length(&short), "{short}");
    let many = broken(&|c| c.levels[0].lines = (0..65537).map(|f| (f, 0, vec![1.0; 64])).collect());
    assert!(matches!(many, EncodeError::TooManyLines { .. }), "{many}");
}

/// Who opens a pipe waits for its writer, and `isochrone run` would not be ended meanwhile.
#[test]
fn what_is_no_file_is_refused_before_it_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mapped = |path: &std::path::Path| MappedAtlas::open(path).unwrap_err();
    let device = std::path::Path::new("/dev/null");
    let refused = [
        mapped(&pipe),
        mapped(directory.path()),
        mapped(device),
        load(directory.path()).unwrap_err(),
    ];
    for fault in refused {
        assert!(matches!(fault, LoadError::NotAFile(_)), "{fault}");
    }
}

#[test]
fn files_are_saved_loaded_and_mapped() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.atlas");
    let bytes = save(&contents(), &path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), bytes);
    assert_eq!(load(&path).unwrap(), contents());
    let mapped = MappedAtlas::open(&path).unwrap();
    let line = LineAddr(600 * 64);
    let cycles = mapped.atlas().unwrap().latency(CORES[0], Level::Llc, line);
    assert_eq!(cycles, expected_cycles(&contents(), 0, 0, line));
    save(&per_line(), &path).unwrap();
    assert_eq!(mapped.atlas().unwrap().latency(CORES[0], Level::Llc, line), cycles, "the old map");
    fs::write(&path, &mapped.bytes()[..100]).unwrap();
    for fault in [load(&path).unwrap_err(), MappedAtlas::open(&path).unwrap_err()] {
        let said = fault.to_string();
        assert!(said.contains("a.atlas: truncated: 100 of"), "{said}");
    }
    assert!(matches!(load(&directory.path().join("no")), Err(LoadError::NoAtlas(_))));
    let mut faulty = contents();
    faulty.reading = Reading::Predicted;
    assert!(matches!(save(&faulty, &path), Err(SaveError::Encode(_))));
    assert_eq!(fs::metadata(&path).unwrap().len(), 100, "the file is as it was");
}

#[test]
fn pages_of_one_code_are_answered_and_others_are_not() {
    // Side by side, with gaps, and so far apart that they are searched for.
    for apart in [512, 512 * 8, 512 * 1000] {
        let frames = [1, 2, 3].map(|nth| nth * apart);
        let mut contents = contents();
        contents.pages = frames
            .map(|first_frame| PageBlock {
                first_frame,
                llc: Box::new([5; 512]),
                dram: Box::new([5; 512]),
            })
            .to_vec();
        let bytes = encode(&contents).unwrap();
        let atlas = Atlas::open(&bytes).unwrap();
        let view = atlas.view(CoreId(0), Level::Llc).unwrap();
        for first in frames {
            for page in [0, 1, 255, 511] {
                assert_eq!(view.code(PageAddr(first + page)), Some(Code(5)), "{apart}");
                let line = PageAddr(first + page).line(9);
                assert_eq!(view.get(line), expected_cycles(&contents, 0, 0, line));
            }
        }
        let outside = [0, apart - 1, 3 * apart + 512, 1 << 40, u64::MAX >> 6];
        assert!(outside.iter().all(|frame| view.code(PageAddr(*frame)).is_none()), "{apart}");
        assert!(apart == 512 || view.code(PageAddr(apart + 512)).is_none(), "a gap");
        let blocks: Vec<_> =
            atlas.blocks().map(|block| (block.first_frame, block.llc[7])).collect();
        assert_eq!(blocks, frames.map(|first| (first, 5)));
    }
}

#[test]
fn query_time_is_measured_where_there_are_pages() {
    let bytes = encode(&contents()).unwrap();
    let time = bench_query(&Atlas::open(&bytes).unwrap(), CORES[1], Level::Dram, 3).unwrap();
    assert_eq!(time.pages, 4 * 512);
    assert!(time.chain_ns_p50 > time.ns_p50 && time.ns_p50.is_finite(), "{time:?}");
    let bytes = encode(&Contents { pages: Vec::new(), ..contents() }).unwrap();
    assert_eq!(bench_query(&Atlas::open(&bytes).unwrap(), CORES[1], Level::Dram, 3), None);
}

#[test]
fn what_has_no_number_was_not_measured() {
    let mut contents = contents();
    let names = [
        "block latency (llc)",
        "block latency (dram)",
        "line transfers (modified)",
        "line transfers (shared)",
        "line transfers (cas)",
        "region",
        "multiline",
        "terms",
        "bandwidth",
    ];
    assert_eq!(contents.measured(), names);
    contents.levels.clear();
    contents.multiline.clear();
    contents.bandwidth.clear();
    contents.terms.remove(0);
    let matrices = contents.transfers.iter_mut().map(|map| &mut map.latency_ns);
    for matrix in matrices.chain(contents.regions.iter_mut().map(|map| &mut map.latency_ns)) {
        matrix.cells.fill(None);
    }
    // What is left are reasons why there is no number.
    assert!(!contents.interactions.is_empty() && !contents.terms.is_empty());
    assert!(contents.measured().is_empty(), "{:?}", contents.measured());
}
