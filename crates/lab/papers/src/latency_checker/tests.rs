//! The reproduction as a whole: the poster's numbers stand as published, nothing simulated is
//! called measured, errors are those of cells that were not fitted, and one seed is one output.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use isochrone_atlas_store::contents::{
    Base, Cell as Measure, Clock, Contents, Form, LevelMap, PageBlock, Quality, RegionMap,
};
use isochrone_machine::{Core, Machine, Region};
use isochrone_report::table::too_wide;
use isochrone_units::{CoreId, Level, Reading, RegionId};

use super::cells::{Cell, Role, Score};
use super::figure2::consecutive_blocks;
use super::json::to_json;
use super::page::to_page;
use super::terminal::to_terminal;
use super::*;
use crate::SEED;
use crate::Shown as _;
use isochrone_report::json::Format;
use isochrone_report::term::Colour;
use serde_json::Value;

/// Cells of the poster, copied from its text and not from `machines/`.
const POSTER: &[(&str, u16, f64)] = &[
    ("all2all-mcdram", 53, 170.2),
    ("all2all-mcdram", 22, 168.4),
    ("all2all-mcdram", 0, 170.3),
    ("all2all-mcdram", 9, 167.2),
    ("all2all-ddr4", 52, 147.5),
    ("all2all-ddr4", 50, 143.7),
    ("snc4-mcdram", 33, 170.9),
    ("snc4-mcdram", 32, 171.0),
    ("snc4-mcdram", 4, 161.2),
    ("snc4-mcdram", 0, 163.2),
    ("snc4-mcdram", 63, 174.1),
    ("snc4-mcdram", 67, 176.7),
    ("snc4-mcdram", 57, 171.6),
    ("snc4-ddr4", 33, 137.4),
    ("snc4-ddr4", 12, 142.6),
    ("snc4-ddr4", 3, 154.4),
    ("snc4-ddr4", 11, 144.4),
    ("snc4-ddr4", 38, 151.3),
    ("nps4-ddr4", 10, 145.9),
    ("nps4-ddr4", 13, 144.2),
    ("nps4-ddr4", 54, 171.0),
    ("nps4-ddr4", 96, 250.5),
    ("nps4-ddr4", 75, 270.3),
    ("nps4-ddr4", 127, 276.3),
];

/// Readable and unreadable cells of each grid, counted in the poster's text.
const COUNTS: [(&str, usize, usize); 7] = [
    ("all2all-mcdram", 10, 58),
    ("all2all-ddr4", 12, 56),
    ("quadrant-mcdram", 0, 68),
    ("quadrant-ddr4", 0, 68),
    ("snc4-mcdram", 38, 30),
    ("snc4-ddr4", 50, 18),
    ("nps4-ddr4", 96, 32),
];

/// Simulated once for all tests.
fn bare() -> &'static Reproduction {
    static BARE: OnceLock<Reproduction> = OnceLock::new();
    BARE.get_or_init(|| latency_checker(None, SEED).expect("the bundled machines can be simulated"))
}

/// The same with an atlas.
fn with(contents: &Contents) -> Reproduction {
    Reproduction { measured: Some(Measured::of(contents)), ..bare().clone() }
}

fn grid<'a>(all: &'a Reproduction, name: &str) -> &'a GridResult {
    all.grids.iter().find(|grid| grid.grid == name).expect("a grid of the poster")
}

fn held_out(grid: &GridResult) -> Vec<&Score> {
    grid.scores.iter().filter(|score| score.role == Role::HeldOut).collect()
}

/// For each core the relative latency of the blocks of some consecutive pages; empty where the
/// atlas has nothing for the level.
fn figure2(contents: &Contents, level: Level, pages: usize) -> Vec<(u16, Vec<f64>)> {
    consecutive_blocks(contents, level, pages).map(|blocks| blocks.cores).unwrap_or_default()
}

#[test]
fn the_poster_stands_as_published() {
    let all = bare();
    for (name, core, ns) in POSTER {
        let cell = grid(all, name).cells.iter().find(|cell| cell.core == Some(*core));
        assert_eq!(cell.and_then(|cell| cell.published), Some(*ns), "{name} core {core}");
    }
    let counts: Vec<(&str, usize, usize)> =
        all.grids.iter().map(|g| (g.grid.as_str(), g.readable(), g.unreadable())).collect();
    assert_eq!(counts, COUNTS);
    for machine in MACHINES.map(|name| isochrone_host::find_machine(name).expect("bundled")) {
        for published in &machine.grids {
            let ours = grid(all, &published.name);
            for core in published.cores.iter().flatten() {
                let cell = ours.cells.iter().find(|cell| cell.core == Some(*core));
                assert_eq!(cell.and_then(|c| c.published), published.value_of(CoreId(*core)));
            }
        }
    }
}

#[test]
fn swapped_names_are_named_and_the_numbers_kept() {
    let all = bare();
    let row = |name: &str, what: &str| {
        let rows = &grid(all, name).printed;
        rows.iter().find(|row| row.what == what).unwrap_or_else(|| panic!("{name}: {what}")).clone()
    };
    let least = row("snc4-mcdram", "least of cores 0-67");
    assert_eq!(
        (least.published, least.note.as_str()),
        (Some(161.1), "printed as \"max\" (swapped)")
    );
    assert_eq!(row("snc4-mcdram", "most of cores 0-67").published, Some(176.6));
    assert_eq!(row("all2all-mcdram", "delta of cores 0-67").published, Some(3.255_881));
    assert_eq!(row("nps4-ddr4", "delta of cores 0-63").published, Some(30.2));
    assert_eq!(row("nps4-ddr4", "delta of cores 64-127").published, Some(35.8));
    assert_eq!(row("nps4-ddr4", "least of cores 0-63").published, None, "broken in the text");
    assert_eq!(row("nps4-ddr4", "crossing the sockets").published, Some(110.0));
    assert_eq!(row("quadrant-ddr4", "delta of cores 0-67").note, "not readable");
}

#[test]
fn scores_are_of_the_cells_they_name() {
    let all = bare();
    for result in &all.grids {
        for (index, score) in result.scores.iter().enumerate() {
            let own = result.cells.iter().filter(|cell| cell.group == Some(index));
            let errors: Vec<f64> = own.filter_map(Cell::error_ns).collect();
            let squares: f64 = errors.iter().map(|e| e * e).sum();
            let rms = (squares / errors.len() as f64).sqrt();
            assert_eq!(score.cells, errors.len());
            assert!((score.rms_ns.unwrap() - rms).abs() < 1e-9, "{} {}", result.grid, score.what);
        }
        let used: usize = result.scores.iter().map(|score| score.cells).sum();
        let floor = result.cells.iter().filter(|cell| cell.role == Role::AtFloor).count();
        let placed =
            result.cells.iter().filter(|c| c.at.is_some() && c.published.is_some()).count();
        assert_eq!(used + floor, placed, "{}: every placed cell has one use", result.grid);
    }
    let counts = |name| held_out(grid(all, name)).iter().map(|s| s.cells).collect::<Vec<_>>();
    assert_eq!((counts("snc4-mcdram"), counts("snc4-ddr4")), (vec![17], vec![12]));
    assert_eq!(counts("nps4-ddr4"), [16, 32]);
}

/// What the model explains of cells that it has not seen; and what it does not, which is said.
#[test]
fn the_mesh_explains_mcdram_and_not_the_far_socket() {
    let all = bare();
    let mcdram = held_out(grid(all, "snc4-mcdram"))[0];
    assert!(mcdram.rms_ns.unwrap() < 0.5 && mcdram.explained.unwrap() > 0.98, "{mcdram:?}");
    let delta = grid(all, "all2all-mcdram").printed.iter().find(|r| r.what.starts_with("delta"));
    let delta = delta.expect("printed under the picture");
    let (published, simulated) = (delta.published.unwrap(), delta.simulated.unwrap());
    assert!((published - simulated).abs() < 0.5, "no number was fitted: {simulated}");
    assert_eq!(constants::free_numbers(&grid(all, "all2all-mcdram").constants), 0);
    let far = held_out(grid(all, "nps4-ddr4"))[1];
    assert!(far.rms_ns.unwrap() > 5.0 && far.explained.unwrap() < 0.0, "{far:?}");
    let text = to_terminal(all, Colour::None, 100);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("one mesh does not explain both grids"));
    assert!(text.contains("none of their variance is explained"));
}

#[test]
fn one_seed_is_one_output_and_another_only_another_noise() {
    let (a, again) = (bare(), latency_checker(Some(&contents()), SEED).unwrap());
    assert_eq!(with(&contents()), again, "an atlas changes no grid");
    assert_eq!(to_json(&with(&contents())), to_json(&again));
    let other = latency_checker(None, SEED + 1).unwrap();
    assert_ne!(a.grids, other.grids);
    for (one, two) in a.grids.iter().zip(&other.grids) {
        assert_eq!(one.constants, two.constants, "fits do not depend on the seed");
        for (x, y) in one.cells.iter().zip(&two.cells) {
            assert_eq!(x.published, y.published);
            let apart = x.simulated.zip(y.simulated).map(|(x, y)| (x.ns - y.ns).abs());
            assert!(apart.is_none_or(|ns| ns < 1.2), "{apart:?}");
        }
    }
}

#[test]
fn nothing_simulated_is_called_measured() {
    let all = bare();
    let json = to_json(all);
    isochrone_schemas::hold(Format::LatencyChecker, &json).expect("as its schema says");
    assert_eq!(json["measured"], Value::Null);
    let readings = |value: &Value| {
        let mut seen = BTreeMap::new();
        for row in value.as_array().expect("rows") {
            *seen.entry(row["reading"].as_str().expect("a reading").to_owned()).or_insert(0) += 1;
        }
        seen
    };
    let seen = readings(&json["rows"]);
    assert!(
        seen.keys().all(|word| ["published", "simulated", "unreadable"].contains(&word.as_str()))
    );
    assert!(seen.values().all(|count| *count > 0) && seen.len() == 3, "{seen:?}");
    let html = to_page(all).render();
    assert!(!html.contains("badge measured") && html.contains("badge simulated"));
    assert!(to_terminal(all, Colour::None, 100).contains("there is no atlas"));
    let simulated = Contents { reading: Reading::Simulated, ..contents() };
    let all = with(&simulated);
    assert!(!to_page(&all).render().contains("badge measured"));
    let json = to_json(&all);
    isochrone_schemas::hold(Format::LatencyChecker, &json).expect("as its schema says");
    assert_eq!(json["measured"]["reading"], "simulated");
}

#[test]
fn rows_have_their_fields_and_missing_is_null() {
    let json = to_json(bare());
    let rows = json["rows"].as_array().expect("rows");
    let mut ids = std::collections::BTreeSet::new();
    for row in rows {
        for field in ["id", "machine", "mode", "memory", "reading", "note"] {
            assert!(row[field].is_string(), "{row}");
        }
        assert!(ids.insert(row["id"].as_str().unwrap().to_owned()), "twice: {row}");
        let number = |field: &str| row[field].as_f64();
        for field in ["published", "simulated", "error_ns"] {
            assert!(row[field].is_null() || number(field).is_some(), "{row}");
            assert!(field == "error_ns" || number(field).is_none_or(|ns| ns > 0.5), "{row}");
        }
        match number("published").zip(number("simulated")) {
            Some((p, s)) => assert!((number("error_ns").unwrap() - (s - p)).abs() < 1e-9),
            None => assert!(row["error_ns"].is_null() && row["note"] != "", "{row}"),
        }
    }
    let cells: usize = COUNTS.iter().map(|(_, readable, lost)| readable + lost).sum();
    // 68 places of four unplaced grids; seven grids of one label each, EPYC of two and of nine
    // rows of its own, and of four by links.
    assert_eq!(rows.len(), cells + 4 * 68 + 3 * 8 + 9 + 4);
}

#[test]
fn text_fits_the_terminal_and_keeps_the_layout() {
    let all = with(&contents());
    assert_eq!(too_wide(&to_terminal(&all, Colour::None, 60), 60), None);
    for width in [80, 100, 160, 240] {
        let text = to_terminal(&all, Colour::None, width);
        let longest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= usize::from(width), "{longest} of {width}");
        let row = " 170.9 171.0 168.1 168.1                         161.2 161.2 163.1 163.2";
        assert!(text.contains(row), "the first row of the SNC4 MCDRAM picture");
        assert!(
            text.contains(
                "    33    32    25    24                             5     4     1     0"
            )
        );
    }
}

#[test]
fn the_page_has_both_grids_this_machine_and_no_script_of_ours() {
    let html = to_page(&with(&contents())).render();
    // One picture for unplaced grids, two for the others, two dies each for the SNC4 grids, the
    // machine's own grid and a figure a level; one more is the page's ornament.
    assert_eq!(html.matches("role=\"img\"").count(), 4 + 3 * 2 + 2 * 2 + 1 + 2);
    assert!(html.contains("badge measured") && html.contains("badge predicted"));
    assert!(html.contains("unreadable or empty") && html.contains("printed as &quot;max&quot;"));
    assert!(html.contains("from physical address 0x12405000"));
}

#[test]
fn figure_2_is_the_pattern_under_each_pages_key() {
    let contents = contents();
    let figure = figure2(&contents, Level::Llc, 2);
    assert_eq!(figure.iter().map(|(core, _)| *core).collect::<Vec<_>>(), [0, 1]);
    let all = || figure.iter().flat_map(|(_, line)| line.iter().copied());
    assert!((all().fold(f64::INFINITY, f64::min) - 1.0).abs() < 1e-12, "the fastest access is 1");
    let pattern = &contents.levels[0].bases[0].patterns[0];
    let fastest = f64::from(pattern.iter().copied().fold(f32::INFINITY, f32::min));
    for (block, relative) in figure[0].1.iter().enumerate() {
        // Frames 0x12405 and 0x12406 have the codes 9 and 10.
        let line = (block % 64) ^ (9 + block / 64);
        let expected = f64::from(pattern[line]) / fastest;
        assert!((relative - expected).abs() < 1e-12, "block {block}");
    }
    assert_eq!(figure[0].1.len(), 128);
    let blocks = consecutive_blocks(&contents, Level::Llc, 2).unwrap();
    assert_eq!((blocks.first_frame, blocks.reading), (Some(0x12405), Reading::Predicted));
    let longest = consecutive_blocks(&contents, Level::Llc, 999).unwrap();
    assert_eq!(longest.cores[0].1.len(), 20 * 64, "the run that there is");
}

#[test]
fn figure_2_without_a_page_table_or_without_a_pattern() {
    let mut contents = contents();
    contents.pages.clear();
    let one_page = consecutive_blocks(&contents, Level::Llc, 2).unwrap();
    assert_eq!((one_page.first_frame, one_page.cores[0].1.len()), (None, 64));
    assert!(one_page.what.contains("no page table"));
    contents.levels[0].form = Form::PerLine;
    assert_eq!(consecutive_blocks(&contents, Level::Llc, 2), None, "nothing was measured");
    let line = |start: f32| (0_u8..64).map(|i| start + f32::from(i)).collect::<Vec<_>>();
    contents.levels[0].lines =
        vec![(7, 0, line(50.0)), (7, 1, line(60.0)), (8, 0, line(40.0)), (9, 0, line(1.0))];
    let lines = consecutive_blocks(&contents, Level::Llc, 2).unwrap();
    assert_eq!((lines.first_frame, lines.cores.len()), (Some(7), 2));
    assert_eq!(lines.reading, Reading::Measured, "each line was timed");
    assert_eq!(lines.cores[1].1.len(), 64, "frame 8 lacks core 1");
    assert!((lines.cores[1].1[0] - 1.2).abs() < 1e-12);
    contents.levels.clear();
    assert!(figure2(&contents, Level::Dram, 2).is_empty());
}

#[test]
fn a_period_of_four_pages_goes_on_through_them() {
    let mut contents = contents();
    let level = &mut contents.levels[0];
    level.period = 256;
    let pattern: Vec<f32> = (0_u16..256).map(|i| 40.0 + f32::from(i)).collect();
    level.bases.iter_mut().for_each(|base| base.patterns = vec![pattern.clone()]);
    let figure = figure2(&contents, Level::Llc, 2);
    // Frames 0x12405 and 0x12406 are the second and third page of their four: lines 64 to 191,
    // under the codes 9 and 10.
    let cycles = |block: u32| 40.0 + f64::from((64 + block) ^ (9 + block / 64));
    let fastest = (0..128).map(cycles).fold(f64::INFINITY, f64::min);
    for (block, relative) in (0..128).zip(&figure[0].1) {
        assert!((relative - cycles(block) / fastest).abs() < 1e-12, "block {block}");
    }
}

fn measure(median: f64) -> Measure {
    Measure {
        median,
        lo: median * 0.998,
        hi: median * 1.002,
        p5: median * 0.97,
        p95: median * 1.05,
        n: 40,
    }
}

fn level(name: &str, near: f32) -> LevelMap {
    let pattern = |turn: u8| (0..64).map(|i| near + f32::from((i * 3 + turn) % 8)).collect();
    let base = |core: u16, turn: u8| Base { core, patterns: vec![pattern(turn)], rounds: 9 };
    LevelMap {
        level: name.to_owned(),
        form: Form::Pattern,
        reason: String::new(),
        method: "eviction".to_owned(),
        period: 64,
        classes: 1,
        canonical_key: (0..64).collect(),
        bases: vec![base(0, 0), base(1, 4)],
        core_base: vec![Some(0), Some(1)],
        probe_lines: vec![1],
        noise_cycles: 5.0,
        code_share: Vec::new(),
        quality: vec![Quality { mean_ns: Some(20.1), ..Quality::default() }; 2],
        lines: Vec::new(),
        penalties: None,
    }
}

/// An atlas of two cores and one region; 20 pages from frame 0x12405 on have the codes 9 to 28.
fn contents() -> Contents {
    let core = |id| Core { id, ..Core::default() };
    let mut block = PageBlock {
        first_frame: 0x12400,
        llc: Box::new([isochrone_probe::block::UNKNOWN_CODE; 512]),
        dram: Box::new([isochrone_probe::block::UNKNOWN_CODE; 512]),
    };
    for (page, code) in (5..25).zip(9..) {
        (block.llc[page], block.dram[page]) = (code, code);
    }
    block.llc[2] = 1;
    Contents {
        complete: true,
        levels: vec![level("llc", 38.0), level("dram", 350.0)],
        pages_keyed_by: "guest frames".to_owned(),
        pages: vec![block],
        regions: vec![RegionMap::of_chase(
            "random",
            100 << 20,
            (0..2).map(CoreId),
            [RegionId(0)],
            vec![Some(measure(131.25)), Some(measure(132.1))],
        )],
        ..Contents::begun(
            Reading::Measured,
            Machine {
                title: "Two cores".to_owned(),
                cores: vec![core(0), core(1)],
                regions: vec![Region::default()],
                ..Machine::default()
            },
            Clock { hz: 2.596e9, tick_cycles: 26, overhead_cycles: 60.0 },
        )
    }
}

#[test]
fn two_memories_tell_more_cores_apart_than_one_and_none_that_are_alike() {
    let row = apart::row(&bare().apart).expect("the die was simulated");
    assert_eq!((row.tests.as_str(), row.pass), ("invariant", Some(true)), "{}", row.note);
    let json = to_json(bare());
    let all = json["cores_apart"].as_array().expect("a list");
    let of = |memories: &[&str], reading: &str, field: &str| {
        let found = all.iter().filter(|found| {
            found["memories"] == serde_json::json!(memories) && found["reading"] == reading
        });
        found.map(|found| found[field].as_f64().expect("a count")).collect::<Vec<_>>()
    };
    // Of the pairs whose cores can be read in all that is looked at.
    let share = |memories: &[&str], reading: &str| {
        let (told, pairs) = (of(memories, reading, "told_apart"), of(memories, reading, "pairs"));
        told.iter().zip(pairs).map(|(told, pairs)| told / pairs).collect::<Vec<f64>>()
    };
    let (both, one) = (["MCDRAM", "DDR4"], ["MCDRAM"]);
    for reading in ["published", "simulated"] {
        let (two, alone) = (share(&both, reading), share(&one, reading));
        assert!(two.iter().zip(&alone).all(|(two, alone)| two > alone), "{two:?} {alone:?}");
    }
    // A larger error tells less.
    assert!(of(&both, "published", "told_apart").is_sorted_by(|a, b| a > b));
    // Two cores of a tile are as far from all memory, and at 0.1 ns most others differ.
    let (told, differ) =
        (of(&both, "simulated", "told_apart"), of(&both, "simulated", "truly_differ"));
    assert!(
        differ[0] <= f64::from(68 * 67 / 2 - 34) && told[0] <= differ[0],
        "{told:?} of {differ:?}"
    );
    assert!(told[0] > 0.5 * differ[0], "{told:?} of {differ:?}");
}

#[test]
fn a_miss_says_why() {
    let all = bare().exhibits();
    let misses = || all.iter().filter(|exhibit| exhibit.holds == Some(false));
    assert!(misses().count() > 0 && misses().all(|exhibit| !exhibit.reason.is_empty()));
    let floor = misses().filter(|exhibit| exhibit.reason.contains("at a floor"));
    let ids: Vec<&str> = floor.map(|exhibit| exhibit.id.as_str()).collect();
    let [least, delta] = ids.as_slice() else { panic!("{ids:?}") };
    assert!(least.contains("snc4-ddr4/least") && delta.contains("snc4-ddr4/delta"), "{ids:?}");
}
