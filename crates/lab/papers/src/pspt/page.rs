//! The reproduction as one page.

use isochrone_report::html::{Badge, Figure, Page, Section};
use isochrone_report::svg::{
    Axis, Group, GroupMark, GroupPanel, Grouped, LineChart, LineSeries, Mark, Point, Scale,
    grouped, line_chart,
};
use isochrone_report::table::Table;
use isochrone_tier::simulated::Part;
use isochrone_units::Reading;
use isochrone_workloads::pspt::{Mode, Smt, cores_of};

use super::rows::{counted_faults, faults};
use super::terminal::{FIGURE_6, FIGURE_7, FIGURE_8, INTRODUCTION, ROWS, TABLES, summary};
use super::{MODES, Reproduction, settings, tables};

/// The reproduction as a page.
pub(super) fn to_page(all: &Reproduction) -> Page {
    let sections = vec![
        section("figure-6", "Figure 6", FIGURE_6, figure6(all)),
        section("figure-7", "Figure 7", FIGURE_7, figure7(all)),
        section(
            "tables",
            "Tables I and II",
            TABLES,
            vec![lone("Beside the paper's.", tables::overheads(all))],
        ),
        section("figure-8", "Figure 8", FIGURE_8, figure8(all)),
        section("rows", "Every comparison", ROWS, vec![lone("Every row.", tables::rows(all))]),
        section(
            "model",
            "What the simulation rests on",
            "Each number with its standing.",
            vec![lone("Constants.", tables::constants(all))],
        ),
    ];
    let seed = all.simulated.plan.seed;
    Page {
        title: "Partially separated page tables, beside their simulation".to_owned(),
        subtitle: "B. Gerofi et al.: Partially Separated Page Tables for Efficient Operating System \
                   Assisted Hierarchical Memory Management on Heterogeneous Architectures (CCGrid 2013)"
            .to_owned(),
        badges: vec![Badge::Reading(Reading::Published), Badge::Reading(Reading::Simulated)],
        summary: std::iter::once(INTRODUCTION.to_owned()).chain(summary(all)).collect(),
        facts: vec![("Seed".to_owned(), seed.to_string())],
        sections,
        json: crate::embedded(all),
        links: Vec::new(),
        footer: format!("isochrone {}, seed {seed}", env!("CARGO_PKG_VERSION")),
    }
}

fn section(id: &str, heading: &str, prose: &str, figures: Vec<Figure>) -> Section {
    Section {
        id: id.to_owned(),
        heading: heading.to_owned(),
        badge: Some(Badge::Reading(Reading::Simulated)),
        prose: vec![prose.to_owned()],
        figures,
    }
}

fn lone(caption: &str, table: Table) -> Figure {
    Figure { caption: caption.to_owned(), table: Some(table), open: true, ..Figure::default() }
}

fn figure6(all: &Reproduction) -> Vec<Figure> {
    let panel = |mode: Mode| {
        let wanted =
            |cell: &&isochrone_workloads::pspt::Cell| cell.mode == mode && cell.smt != Smt::On;
        let group = |cell: &isochrone_workloads::pspt::Cell| Group {
            label: cell.workers.to_string(),
            marks: vec![GroupMark::Stack {
                hint: mode.as_str().to_owned(),
                values: cell.outcome.parts.map(|cycles| cycles / 1e3).into(),
            }],
        };
        let groups = all.simulated.cells.iter().filter(wanted).map(group).collect();
        GroupPanel { label: mode.as_str().to_owned(), groups }
    };
    let svg = grouped(&Grouped {
        title: "A fault that fetches a page".to_owned(),
        unit: "thousand cycles, by part; below: threads".to_owned(),
        layers: Part::ALL.map(|part| part.as_str().to_owned()).into(),
        panels: vec![panel(Mode::Regular), panel(Mode::Pspt)],
    });
    let table = |mode: Mode| Figure {
        caption: mode.as_str().to_owned(),
        badge: Some(Badge::Reading(Reading::Simulated)),
        table: Some(tables::breakdown(all, mode)),
        ..Figure::default()
    };
    let chart = Figure {
        svg,
        caption: "Published: about 45 thousand with separated tables from 2 to 64, nearly 700 \
                  thousand with one set at 32. Each panel has an axis of its own."
            .to_owned(),
        badge: Some(Badge::Reading(Reading::Simulated)),
        ..Figure::default()
    };
    vec![chart, table(Mode::Regular), table(Mode::Pspt)]
}

/// Faults of a core, with the formula beside them that the paper's own follow.
fn figure8(all: &Reproduction) -> Vec<Figure> {
    let series = |label: String, mark: Mark, of: &dyn Fn(u16) -> Option<f64>| LineSeries {
        label,
        points: cores_of(Smt::Off)
            .into_iter()
            .filter_map(|workers| {
                Some(Point { x: f64::from(workers), y: Some(of(workers)?), band: None })
            })
            .collect(),
        mark,
    };
    let ours = |mode: Mode| {
        let faults = move |workers| faults(&all.simulated, mode, Smt::Off, workers);
        series(mode.as_str().to_owned(), Mark::Line, &faults)
    };
    let counted =
        series("25 P / N".to_owned(), Mark::Dots, &|workers| Some(counted_faults(workers)));
    let log = |title: &str| Axis { title: title.to_owned(), scale: Scale::Log2, ..Axis::default() };
    let chart = Figure {
        svg: line_chart(&LineChart {
            title: "Faults of a core".to_owned(),
            x: log("threads"),
            y: log("faults in 25 sweeps"),
            series: vec![ours(Mode::Pspt), ours(Mode::Prefetch), counted],
            apart: false,
        }),
        caption: "Without hyper-threading. The paper's picture is an image: its text says two orders of magnitude \
                  between the curves, and one at 56."
            .to_owned(),
        badge: Some(Badge::Reading(Reading::Simulated)),
        ..Figure::default()
    };
    let reached = "What movers reached; the paper does not have it.";
    vec![chart, lone(reached, tables::prefetching(all))]
}

fn points(
    all: &Reproduction,
    of: impl Fn(&isochrone_workloads::pspt::Cell) -> Option<f64>,
) -> Vec<Point> {
    let cells = all.simulated.cells.iter();
    cells
        .filter_map(|cell| {
            let y = Some(of(cell)?);
            Some(Point { x: f64::from(cell.workers), y, band: None })
        })
        .collect()
}

fn figure7(all: &Reproduction) -> Vec<Figure> {
    let one = |(smt, steps): (Smt, [u16; 6])| {
        let series = MODES.map(|mode| LineSeries {
            label: mode.as_str().to_owned(),
            points: points(all, |cell| {
                let wanted = cell.mode == mode && cell.smt == smt;
                all.runtime(mode, smt, cell.workers).filter(|_| wanted)
            }),
            mark: Mark::Line,
        });
        Figure {
            svg: line_chart(&LineChart {
                title: smt.as_str().to_owned(),
                x: Axis { title: "threads".to_owned(), scale: Scale::Log2, ..Axis::default() },
                y: Axis {
                    title: "million cycles".to_owned(),
                    scale: Scale::Log2,
                    ..Axis::default()
                },
                series: series.into(),
                apart: false,
            }),
            caption: smt.as_str().to_owned(),
            badge: Some(Badge::Reading(Reading::Simulated)),
            table: Some(tables::runtimes(all, smt, steps)),
            open: false,
        }
    };
    settings().map(one).into()
}
