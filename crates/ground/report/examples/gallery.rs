//! Every figure on one page, with invented numbers: what a change to a figure or to the style is
//! looked at with. Writes the page to the path given as the first argument, and the terminal
//! pictures to standard output. Nothing here was measured.
#![allow(clippy::print_stdout)]

use std::io;

use isochrone_report::html::{Badge, Figure, Page, Section};
use isochrone_report::svg::{
    Axis, FloorPlan, HeatMap, Histogram, HistogramPanel, HistogramSeries, KeyMap, LineChart,
    LineSeries, Mark, Outline, Place, PlaceKind, Point, Scale, Strip, StripRow, TickText, Verdict,
};
use isochrone_report::table::{Cell, Table};
use isochrone_report::{fmt, svg, term};
use isochrone_units::Reading;

/// A small generator (SplitMix64), so that the gallery is the same every time.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..1`.
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// About normal, mean 0, deviation 1.
    fn bell(&mut self) -> f64 {
        (0..12).map(|_| self.share()).sum::<f64>() - 6.0
    }
}

fn names(what: &str, n: usize) -> Vec<String> {
    (0..n).map(|i| format!("{what} {i}")).collect()
}

/// The latency of a canonical line for a core.
fn base(core: usize, line: usize, slices: &[f64; 8]) -> f64 {
    slices[(line ^ (core * 5)) % 8] + 0.3 * ((line >> 3) % 3) as f64
}

fn pairs(n: usize, dice: &mut Dice) -> HeatMap {
    let mut cells = Vec::new();
    let mut intervals = Vec::new();
    for i in 0..n * n {
        let (a, b) = (i / n, i % n);
        let far = if a / (n / 4).max(1) == b / (n / 4).max(1) { 0.0 } else { 31.0 };
        let value = 52.0 + far + (a.abs_diff(b) % 7) as f64 * 1.7 + dice.bell();
        cells.push((a != b).then_some(value));
        intervals.push((a != b).then_some((value - 0.6, value + 0.7)));
    }
    HeatMap {
        title: format!("Line transfer between {n} cores, modified lines"),
        unit: "ns".into(),
        row_title: "owner".into(),
        column_title: "asks".into(),
        rows: names(if n > 20 { "" } else { "core" }, n),
        columns: names(if n > 20 { "" } else { "core" }, n),
        cells,
        intervals: if n <= 8 { intervals } else { Vec::new() },
        missing: "same core".into(),
        ..HeatMap::default()
    }
}

fn pairs_table(map: &HeatMap) -> Table {
    let mut table = Table::new(["owner", "asks", "median, ns", "95 % interval"]);
    for (i, cell) in map.cells.iter().enumerate().take(400) {
        let (a, b) = (i / map.columns.len(), i % map.columns.len());
        let interval = map.intervals.get(i).copied().flatten();
        table.row([
            map.rows[a].as_str().into(),
            map.columns[b].as_str().into(),
            Cell::maybe(*cell, |v| fmt::significant(v, 3)),
            interval.map_or_else(Cell::missing, |(lo, hi)| {
                Cell::number(lo, format!("{}–{}", fmt::significant(lo, 3), fmt::significant(hi, 3)))
            }),
        ]);
    }
    table
}

fn figure(svg: String, caption: &str, badge: Badge, table: Option<Table>) -> Figure {
    let open = table.as_ref().is_some_and(|t| t.len() <= 4);
    Figure { svg, caption: caption.into(), badge: Some(badge), table, open }
}

fn patterns(cores: usize, slices: &[f64; 8]) -> Strip {
    let row = |core: usize| StripRow {
        label: format!("core {core}"),
        values: (0..64).map(|i| (i != 41).then(|| base(core, i, slices))).collect(),
    };
    Strip {
        title: "Base pattern in the last-level cache".into(),
        unit: "ns".into(),
        index_title: "line index in the canonical page (index XOR key)".into(),
        rows: (0..cores).map(row).collect(),
    }
}

fn distributions(dice: &mut Dice, slices: &[f64; 8]) -> Histogram {
    let mut llc = |core: usize| HistogramSeries {
        label: format!("core {core}"),
        values: (0..4096).map(|i| base(core, i % 64, slices) + 0.35 * dice.bell()).collect(),
    };
    let llc = vec![llc(0), llc(1)];
    let mut values: Vec<f64> =
        (0..4096).map(|i| [138.0, 144.5, 150.0, 150.0][i % 4] + 1.4 * dice.bell()).collect();
    values.extend([410.0, 502.0, 640.0]);
    let dram = vec![HistogramSeries { label: "both cores".into(), values }];
    Histogram {
        title: "Latency of single lines".into(),
        unit: "ns".into(),
        panels: vec![
            HistogramPanel { label: "LLC".into(), series: llc },
            HistogramPanel { label: "DRAM".into(), series: dram },
        ],
    }
}

fn page_classes(dice: &mut Dice) -> KeyMap {
    let class = |dice: &mut Dice| [0, 1, 2, 2][usize::from(dice.next().to_le_bytes()[0] % 4)];
    let codes = (0..2048).map(|i| (!(700..733).contains(&i)).then(|| class(dice))).collect();
    KeyMap {
        title: "DRAM class of each page".into(),
        codes,
        labels: (0..3).map(|c| (c, format!("class {c}"))).collect(),
        ..KeyMap::default()
    }
}

fn page_keys(dice: &mut Dice) -> KeyMap {
    let mut codes = Vec::new();
    for page in 0..65_536u32 {
        let block = (page / 64).wrapping_mul(2_654_435_761) >> 26;
        let key = (block ^ (page % 64)) & 63;
        let lost = dice.share() < 0.004;
        codes.push(if lost { None } else { u16::try_from(key).ok() });
    }
    KeyMap { title: "LLC key of each page".into(), codes, ..KeyMap::default() }
}

fn fit(dice: &mut Dice) -> LineChart {
    let mut series = Vec::new();
    for (readers, slope) in [(1u32, 6.1), (2, 7.4), (4, 10.8)] {
        let at = |lines: f64| 48.0 + slope * lines;
        let label = format!("{readers} reader{}", if readers == 1 { "" } else { "s" });
        let sizes: Vec<f64> = (0..8).map(|i| f64::from(1u32 << i)).collect();
        let dots = sizes
            .iter()
            .map(|n| {
                let y = at(*n) * (1.0 + 0.02 * dice.bell());
                Point { x: *n, y: Some(y), band: Some((0.96 * y, 1.05 * y)) }
            })
            .collect();
        let line = sizes
            .iter()
            .map(|n| Point { x: *n, y: Some(at(*n)), band: Some((0.97 * at(*n), 1.03 * at(*n))) })
            .collect();
        series.push(LineSeries { label: label.clone(), points: line, mark: Mark::Line });
        series.push(LineSeries { label, points: dots, mark: Mark::Dots });
    }
    LineChart {
        title: "Transfer of several lines, T = q + oN + cnN".into(),
        x: Axis { title: "lines N".into(), scale: Scale::Log2, ..Axis::default() },
        y: Axis { title: "time, ns".into(), scale: Scale::Log10, ..Axis::default() },
        series,
        apart: false,
    }
}

fn relative(slices: &[f64; 8]) -> LineChart {
    let near = slices.iter().copied().fold(f64::MAX, f64::min);
    let row = |core: usize| LineSeries {
        label: format!("core {core}"),
        mark: Mark::Steps,
        points: (0..128)
            .map(|i| Point {
                x: i as f64 * 64.0,
                y: (i != 77).then(|| base(core, i ^ (i / 64 * 3), slices) / near),
                band: None,
            })
            .collect(),
    };
    LineChart {
        title: "Relative latency of consecutive blocks".into(),
        x: Axis {
            title: "offset in memory".into(),
            ticks: TickText::Bytes,
            range: Some((0.0, 8192.0)),
            ..Axis::default()
        },
        y: Axis { title: "latency over the nearest block's".into(), ..Axis::default() },
        series: (0..2).map(row).collect(),
        apart: true,
    }
}

fn grid_plan(dice: &mut Dice) -> FloorPlan {
    let mut places: Vec<Place> = (0..20u32)
        .map(|i| {
            let (x, y) = (f64::from(i % 5), f64::from(i / 5));
            let value = 70.0 + 3.1 * (x - 4.0).abs() + 2.6 * (y - 1.0).abs() + 0.3 * dice.bell();
            Place {
                label: i.to_string(),
                kind: PlaceKind::Core,
                x: x + 0.05 * dice.bell(),
                y: y + 0.05 * dice.bell(),
                value: Some(value),
            }
        })
        .collect();
    places.push(Place { label: "MC".into(), kind: PlaceKind::Memory, x: 5.0, y: 1.0, value: None });
    FloorPlan {
        title: "Inferred floor plan".into(),
        verdict: Verdict::Placed {
            outline: Outline::Grid,
            places,
            symmetries:
                "Mirrored left to right, top to bottom or both, the plan fits equally well.".into(),
            unit: "ns to the memory controller".into(),
        },
    }
}

fn ring_plan() -> FloorPlan {
    let place = |i: u32| {
        let turn = f64::from(i) / 10.0 * std::f64::consts::TAU;
        let kind = if i == 4 { PlaceKind::Memory } else { PlaceKind::Core };
        let label = if i == 4 { "region 0".into() } else { i.to_string() };
        Place { label, kind, x: turn.cos(), y: turn.sin(), value: None }
    };
    FloorPlan {
        title: "A ring".into(),
        verdict: Verdict::Placed {
            outline: Outline::Ring,
            places: (0..10).map(place).collect(),
            symmetries: "Turned or mirrored, the ring fits equally well.".into(),
            unit: String::new(),
        },
    }
}

fn section(id: &str, heading: &str, prose: &str, figures: Vec<Figure>) -> Section {
    Section {
        id: id.into(),
        heading: heading.into(),
        prose: vec![prose.into()],
        figures,
        ..Section::default()
    }
}

fn pattern_section(dice: &mut Dice, slices: &[f64; 8]) -> Section {
    let prose = "The 64 lines of a page are not equally far. Up to an exchange of the line index \
                 by a key of the page, every page shows one pattern to one core: its base. The \
                 bars start at the core's mean, so that what reaches down is near and what \
                 reaches up is far.";
    let few = svg::strip(&patterns(2, slices));
    let many = svg::strip(&patterns(24, slices));
    let lines = svg::histogram(&distributions(dice, slices));
    let figures = vec![
        figure(few, "Line 41 was not measured.", Badge::Reading(Reading::Measured), None),
        figure(
            lines,
            "Means of eight timed loads of a line each.",
            Badge::Reading(Reading::Measured),
            None,
        ),
        figure(
            many,
            "Twenty-four cores of a modelled machine.",
            Badge::Reading(Reading::Simulated),
            None,
        ),
    ];
    section("pattern", "The pattern of a page", prose, figures)
}

fn block_sections(dice: &mut Dice, slices: &[f64; 8]) -> Vec<Section> {
    let blocks = svg::line_chart(&relative(slices));
    let blocks =
        vec![figure(blocks, "One step a 64-byte block.", Badge::Reading(Reading::Measured), None)];
    let classes = svg::key_map(&page_classes(dice));
    let keys = svg::key_map(&page_keys(dice));
    let pages = vec![
        figure(classes, "Three classes.", Badge::Reading(Reading::Measured), None),
        figure(keys, "Sixty-four keys.", Badge::Reading(Reading::Simulated), None),
    ];
    let prose = "How far each block is, over the nearest.";
    vec![
        section("blocks", "Consecutive blocks", prose, blocks),
        section("pages", "Page classes and keys", "Each dot is a page of 4 KiB.", pages),
    ]
}

fn core_sections(dice: &mut Dice) -> Vec<Section> {
    let caption = "Median over 64 lines of each pair, so that no line's home decides the answer.";
    let mut heat = |n, badge| {
        let map = pairs(n, dice);
        figure(svg::heat_map(&map), caption, badge, Some(pairs_table(&map)))
    };
    let mut figures = vec![heat(2, Badge::Reading(Reading::Measured))];
    figures.extend([8, 16, 288].map(|n| heat(n, Badge::Reading(Reading::Simulated))));
    let prose = "How long a core waits for a line that another core has written.";
    let fitted = svg::line_chart(&fit(dice));
    let fitted = figure(
        fitted,
        "Medians, and the fit with its band.",
        Badge::Reading(Reading::Predicted),
        None,
    );
    vec![
        section("pairs", "Between cores", prose, figures),
        section("lines", "Several lines at once", "T = q + oN + cnN, fitted.", vec![fitted]),
    ]
}

fn plan_section(dice: &mut Dice) -> Section {
    let reason = "Two cores have one distance between them, and any arrangement of two points \
                  fits one distance. At least four cores are needed.";
    let verdict = Verdict::CannotTell { reason: reason.into() };
    let cannot = FloorPlan { title: "Inferred floor plan".into(), verdict };
    let plan =
        |plan: &FloorPlan, caption, badge| figure(svg::floor_plan(plan), caption, badge, None);
    let figures = vec![
        plan(&cannot, "What two cores allow.", Badge::Reading(Reading::Measured)),
        plan(
            &grid_plan(dice),
            "A modelled grid of twenty cores.",
            Badge::Reading(Reading::Simulated),
        ),
        plan(&ring_plan(), "A modelled ring.", Badge::Reading(Reading::Simulated)),
    ];
    section("plan", "Where cores and memory sit", "Inferred from latencies alone.", figures)
}

fn sections(dice: &mut Dice, slices: &[f64; 8]) -> Vec<Section> {
    let mut sections = vec![pattern_section(dice, slices)];
    sections.extend(block_sections(dice, slices));
    sections.extend(core_sections(dice));
    sections.push(plan_section(dice));
    sections
}

fn main() -> io::Result<()> {
    let mut dice = Dice(1);
    let slices = [15.1, 16.0, 17.8, 18.9, 14.6, 16.9, 18.2, 19.1];
    let facts = [
        ("CPU", "Example CPU, 2 cores at 2.60 GHz"),
        ("Caches", "L2 1 MiB a core, L3 32 MiB shared"),
        ("Memory", "1 region, 16 GiB, 4 KiB pages"),
        ("Clock", "TSC at 2.596 GHz in steps of 26 cycles"),
        ("System", "Linux 6.18 in a virtual machine"),
        ("Run", "full, 41.2 s, seed 1"),
        ("Missing", "cldemote: lines are put into the LLC by eviction"),
        ("Drift", "core 1 changed its base once; 2048 loads were done again"),
    ];
    let page = Page {
        title: "Demo data: latency atlas of an invented machine".into(),
        subtitle: "Every number on this page is made up to show the figures.".into(),
        links: Vec::new(),
        badges: vec![
            Badge::Reading(Reading::Measured),
            Badge::Reading(Reading::Simulated),
            Badge::Warning("demo data".into()),
            Badge::Note("quick".into()),
        ],
        summary: vec![
            "From core 0, the nearest quarter of the lines is 24 % nearer than the mean in the last-level \
             cache."
                .into(),
            "DRAM pages fall into three classes, 138, 145 and 150 ns away; within a page the lines are alike.".into(),
            "A line written by one core reaches the other in 59.8 ns; over the best line in 51.2 ns.".into(),
        ],
        facts: facts.map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec(),
        sections: sections(&mut dice, &slices),
        json: Some("{\"reading\": \"demo\"}".into()),
        footer: "isochrone gallery. Demo data, seed 1.".into(),
    };
    if let Some(path) = std::env::args_os().nth(1) {
        std::fs::write(path, page.render())?;
    }
    for colour in [term::Colour::None, term::Colour::TrueColour] {
        println!("{}\n", term::heat_map(&pairs(8, &mut dice), colour, 100));
        println!("{}\n", term::heat_map(&pairs(40, &mut dice), colour, 100));
        println!("{}\n", term::strip(&patterns(2, &slices), colour, 120));
        println!("{} 37 %\n", term::bar(Some(0.37), 40, colour));
    }
    let mut table = pairs_table(&pairs(2, &mut dice));
    table.row(["core <0>".into(), "a longer text".into(), Cell::missing()]);
    println!("{}", table.to_terminal(80));
    Ok(())
}
