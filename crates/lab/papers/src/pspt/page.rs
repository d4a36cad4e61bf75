//! The reproduction as one page.

use isochrone_report::html::{Badge, Figure, Page, Section};
use isochrone_report::svg::{Axis, LineChart, LineSeries, Mark, Point, Scale, line_chart};
use isochrone_report::table::Table;
use isochrone_units::Reading;
use isochrone_workloads::pspt::{Mode, Smt};

use super::terminal::{FIGURE_6, FIGURE_7, FIGURE_8, INTRODUCTION, ROWS, TABLES, summary};
use super::{MODES, Reproduction, settings, tables};

/// The reproduction as a page.
pub(super) fn to_page(all: &Reproduction) -> Page {
    let sections = vec![
        section("figure-6", "Figure 6", FIGURE_6, figure6(all)),
        section("figure-7", "Figure 7", FIGURE_7, figure7(all)),
        section("tables", "Tables I and II", TABLES, vec![lone("", tables::overheads(all))]),
        section("figure-8", "Figure 8", FIGURE_8, vec![lone("", tables::prefetching(all))]),
        section("rows", "Every comparison", ROWS, vec![lone("", tables::rows(all))]),
        section(
            "model",
            "What the simulation rests on",
            "Each number with its standing.",
            vec![lone("", tables::constants(all))],
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
    let curve = |mode: Mode| LineSeries {
        label: mode.as_str().to_owned(),
        points: points(all, |cell| {
            (cell.mode == mode && cell.smt != Smt::On).then(|| cell.outcome.fault() / 1e3)
        }),
        mark: Mark::Line,
    };
    let svg = line_chart(&LineChart {
        title: "A fault that fetches a page".to_owned(),
        x: Axis { title: "threads".to_owned(), ..Axis::default() },
        y: Axis { title: "thousand cycles".to_owned(), ..Axis::default() },
        series: vec![curve(Mode::Regular), curve(Mode::Pspt)],
        apart: false,
    });
    let table = |mode: Mode| Figure {
        caption: mode.as_str().to_owned(),
        badge: Some(Badge::Reading(Reading::Simulated)),
        table: Some(tables::breakdown(all, mode)),
        open: true,
        ..Figure::default()
    };
    let chart = Figure {
        svg,
        caption: "Published: about 45 thousand with separated tables from 2 to 64, nearly 700 \
                  thousand with one set at 32."
            .to_owned(),
        badge: Some(Badge::Reading(Reading::Simulated)),
        ..Figure::default()
    };
    vec![chart, table(Mode::Regular), table(Mode::Pspt)]
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
