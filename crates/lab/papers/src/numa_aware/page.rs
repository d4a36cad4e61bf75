//! The reproduction as one page: the judging list, Tables 2 and 3, Figures 2 to 7, variants and ablations.

use isochrone_report::html::{Badge, Figure, Page, Section};
use isochrone_report::svg::{
    Axis, Group, GroupMark, GroupPanel, Grouped, LineChart, LineSeries, Mark, Point, grouped,
    line_chart,
};
use isochrone_report::table::Table;
use isochrone_sim::coherence::{Class, Direction};
use isochrone_tasks::Regime;
use isochrone_units::Reading;
use isochrone_workloads::numa::Bench;

use super::constants::constants_table;
use super::paper::{DI_PEAKS, FIGURE_THREADS, NAFT_PEAKS, THREADS};
use super::record::Record;
use super::runs::{CONTROL, REGIMES};
use super::{Reproduction, by_mechanism, tables, terminal};

/// The page.
pub(super) fn to_page(all: &Reproduction) -> Page {
    let mut sections = vec![
        section(
            "judged",
            "The judging list",
            vec![table("Every row, misses included.", tables::judged(all))],
        ),
        section("tables", "Tables 2 and 3", three_tables(all)),
        section(
            "figure-2",
            "Figure 2: speed-up over threads",
            Bench::ALL.map(|b| speedups(all, b)).into(),
        ),
    ];
    sections.extend(traffic(all));
    sections.push(section("figure-7", "Figure 7: movement by module", vec![by_module(all)]));
    sections.push(section(
        "seeds",
        "Where skew appears",
        vec![table("DFT by seed: who first touches the data is a race.", tables::seeds(&all.runs))],
    ));
    if !all.mechanisms.is_empty() {
        sections.push(section(
            "mechanisms",
            "What each mechanism did",
            vec![table(by_mechanism::CAPTION, by_mechanism::table(&all.rows, &all.mechanisms))],
        ));
    }
    sections.push(section("what-if", "What if", what_if(all)));
    sections.push(section(
        "constants",
        "What nobody published",
        vec![table(
            "Free constants: one set for everything above.",
            constants_table(&all.constants),
        )],
    ));
    Page {
        title: "Coherence traffic of 288 cores, simulated beside its paper".to_owned(),
        subtitle: "P. Caheny et al.: Reducing Cache Coherence Traffic with a NUMA-Aware Runtime Approach (IEEE \
                   TPDS 2018)"
            .to_owned(),
        badges: vec![Badge::Reading(Reading::Published), Badge::Reading(Reading::Simulated)],
        summary: terminal::head(all),
        facts: vec![("Machine".to_owned(), all.runs.machine.clone())],
        sections,
        json: crate::embedded(all),
        links: Vec::new(),
        footer: format!("isochrone {}", env!("CARGO_PKG_VERSION")),
    }
}

fn section(id: &str, heading: &str, figures: Vec<Figure>) -> Section {
    Section {
        id: id.to_owned(),
        heading: heading.to_owned(),
        badge: Some(Badge::Reading(Reading::Simulated)),
        figures,
        ..Section::default()
    }
}

fn table(caption: &str, table: Table) -> Figure {
    Figure { caption: caption.to_owned(), table: Some(table), open: true, ..Figure::default() }
}

fn three_tables(all: &Reproduction) -> Vec<Figure> {
    vec![
        table("Table 2: latency and bandwidth by distance.", tables::table_2(all)),
        table(
            "Table 3a: NAFT against DFT at 288 threads, ours (paper's).",
            tables::table_3(&all.runs, Regime::Dft),
        ),
        table(
            "Table 3b: NAFT against DI at 288 threads, ours (paper's).",
            tables::table_3(&all.runs, Regime::Di),
        ),
        table("The far link alone: STREAM Triad, GB/s, by what bounds it.", all.far_link.clone()),
    ]
}

fn speedups(all: &Reproduction, bench: Bench) -> Figure {
    let line = |regime: Regime| LineSeries {
        label: regime.name().to_uppercase(),
        // What was not run leaves no gap in the line.
        points: THREADS
            .iter()
            .filter_map(|threads| {
                let y = Some(all.runs.speedup(bench, regime, *threads)?);
                Some(Point { x: f64::from(*threads), y, band: None })
            })
            .collect(),
        mark: Mark::Line,
    };
    let dot = |regime: Regime, height: f64, at: u16| LineSeries {
        label: format!("{} of the paper's text", regime.name().to_uppercase()),
        points: vec![Point { x: f64::from(at), y: Some(height), band: None }],
        mark: Mark::Dots,
    };
    let mut series: Vec<LineSeries> = REGIMES.into_iter().map(line).collect();
    let published = NAFT_PEAKS.iter().filter(|peak| peak.0 == bench);
    series.extend(published.map(|(_, height, at)| dot(Regime::Naft, *height, *at)));
    let published = DI_PEAKS.iter().filter(|peak| peak.0 == bench && peak.1.is_finite());
    series.extend(published.filter_map(|(_, height, at)| Some(dot(Regime::Di, *height, (*at)?))));
    Figure {
        svg: line_chart(&LineChart {
            title: bench.title().to_owned(),
            x: Axis { title: "threads".to_owned(), ..Axis::default() },
            y: Axis { title: "speed-up".to_owned(), ..Axis::default() },
            series,
            apart: false,
        }),
        caption: "Over DFT with 16 threads; the dots are the peaks that the paper's text gives."
            .to_owned(),
        badge: Some(Badge::Reading(Reading::Simulated)),
        table: Some(tables::figure_2(&all.runs, bench)),
        open: false,
    }
}

/// One of Figures 3 to 6.
struct Bars {
    id: &'static str,
    heading: &'static str,
    unit: &'static str,
    layers: &'static [(&'static str, &'static [Class])],
    of_time: bool,
}

const TYPES: &[(&str, &[Class])] =
    &[("DWB", &[Class::Dwb]), ("DTC", &[Class::Dtc]), ("control", &CONTROL)];
const CONTROLS: &[(&str, &[Class])] = &[
    ("HREQ", &[Class::Hreq]),
    ("SNP", &[Class::Snp]),
    ("HRSP", &[Class::Hrsp]),
    ("NDR", &[Class::Ndr]),
];

const FIGURES: [Bars; 4] = [
    Bars {
        id: "figure-3",
        heading: "Figure 3: coherence bandwidth: DWB, DTC and control",
        unit: "GB/s; left bar of a pair: into the switches, right: out of them",
        layers: TYPES,
        of_time: true,
    },
    Bars {
        id: "figure-4",
        heading: "Figure 4: coherence movement: DWB, DTC and control",
        unit: "TB; left bar of a pair: into the switches, right: out of them",
        layers: TYPES,
        of_time: false,
    },
    Bars {
        id: "figure-5",
        heading: "Figure 5: coherence bandwidth: control by class",
        unit: "GB/s; left bar of a pair: into the switches, right: out of them",
        layers: CONTROLS,
        of_time: true,
    },
    Bars {
        id: "figure-6",
        heading: "Figure 6: coherence movement: control by class",
        unit: "TB; left bar of a pair: into the switches, right: out of them",
        layers: CONTROLS,
        of_time: false,
    },
];

fn traffic(all: &Reproduction) -> Vec<Section> {
    FIGURES.iter().map(|bars| section(bars.id, bars.heading, vec![stacked(all, bars)])).collect()
}

/// Panels by benchmark, groups by threads and regime.
fn panels(all: &Reproduction, marks: impl Fn(&Record) -> Vec<GroupMark>) -> Vec<GroupPanel> {
    let panel = |bench: Bench| {
        let cells = FIGURE_THREADS.into_iter().flat_map(|t| REGIMES.map(|regime| (t, regime)));
        let group = |(threads, regime): (u16, Regime)| Group {
            label: match regime {
                // The number of threads stands under the middle one of three.
                Regime::Di => format!("DI\n{threads}"),
                _ => regime.name().to_uppercase(),
            },
            marks: all.runs.one(bench, regime, threads).map(&marks).unwrap_or_default(),
        };
        GroupPanel { label: bench.title().to_owned(), groups: cells.map(group).collect() }
    };
    Bench::ALL.into_iter().map(panel).collect()
}

fn stacked(all: &Reproduction, bars: &Bars) -> Figure {
    let marks = |record: &Record| {
        let unit = if bars.of_time { record.seconds * 1e9 } else { 1e12 };
        let one = |way: Direction| GroupMark::Stack {
            hint: match way {
                Direction::In => "in".to_owned(),
                Direction::Out => "out".to_owned(),
            },
            values: bars
                .layers
                .iter()
                .map(|(_, classes)| {
                    classes.iter().map(|class| record.class_bytes(*class, way)).sum::<f64>() / unit
                })
                .collect(),
        };
        Direction::ALL.map(one).into()
    };
    Figure {
        svg: grouped(&Grouped {
            title: bars.heading.to_owned(),
            unit: bars.unit.to_owned(),
            layers: bars.layers.iter().map(|(name, _)| (*name).to_owned()).collect(),
            panels: panels(all, marks),
        }),
        caption: "16, 96 and 288 threads; DFT, DI and NAFT; all eight switches together."
            .to_owned(),
        badge: Some(Badge::Reading(Reading::Simulated)),
        ..Figure::default()
    }
}

fn by_module(all: &Reproduction) -> Figure {
    let marks = |record: &Record| {
        let one = |way: Direction| GroupMark::Box {
            hint: match way {
                Direction::In => "in".to_owned(),
                Direction::Out => "out".to_owned(),
            },
            values: record.by_module(way).into_iter().map(|bytes| bytes / 1e12).collect(),
        };
        Direction::ALL.map(one).into()
    };
    Figure {
        svg: grouped(&Grouped {
            title: "Figure 7: coherence movement by module".to_owned(),
            unit: "TB; each box is of eight modules; left: into the switch, right: out of it".to_owned(),
            layers: vec!["in".to_owned(), "out".to_owned()],
            panels: panels(all, marks),
        }),
        caption: "Whiskers are the least and the most of eight modules, the box the quartiles, the line the \
                  median."
            .to_owned(),
        badge: Some(Badge::Reading(Reading::Simulated)),
        ..Figure::default()
    }
}

fn what_if(all: &Reproduction) -> Vec<Figure> {
    let mut figures = vec![table(
        "Rankings, initialisations and our policy, 288 threads.",
        tables::variants(&all.runs),
    )];
    for bench in Bench::ALL {
        let changes = tables::ablations(&all.runs, bench);
        if !changes.is_empty() {
            figures.push(table(
                &format!("{}, 288 threads: one change at a time.", bench.title()),
                changes,
            ));
        }
    }
    figures
}
