//! The reproduction as one page: a section a grid with both pictures side by side, then where the
//! controllers are, then this machine. Words and numbers come from the other files; nothing is
//! derived here.

use isochrone_report::fmt;
use isochrone_report::html::{Badge, Figure, Page, Section};
use isochrone_units::Reading;

use super::cells::GridResult;
use super::measured::Measured;
use super::terminal::{INTRODUCTION, NO_ATLAS, summary};
use super::{Reproduction, apart, pictures, simulate, tables, terminal};

/// The reproduction as a page.
pub(super) fn to_page(all: &Reproduction) -> Page {
    let mut badges = vec![
        Badge::Reading(Reading::Published),
        Badge::Reading(Reading::Simulated),
        Badge::Reading(Reading::Predicted),
    ];
    badges.extend(all.measured.as_ref().map(|m| Badge::Reading(m.reading)));
    badges.dedup();
    let mut sections: Vec<Section> = all.grids.iter().map(grid_section).collect();
    sections.push(placement_section(all));
    sections.push(machine_section(all));
    sections.push(remarks_section(all));
    let json = crate::embedded(all);
    Page {
        title: "The Latency Checker poster, beside its simulation and this machine".to_owned(),
        subtitle: "T. Yuki, T. Endo: Toward Latency-Aware Data Arrangement on Many-Core \
                   Processors (poster)"
            .to_owned(),
        badges,
        summary: std::iter::once(INTRODUCTION.to_owned()).chain(summary(all)).collect(),
        facts: vec![
            ("Simulated by".to_owned(), simulate::method()),
            (
                "Noise".to_owned(),
                format!("{} ns a load (standard deviation, assumed)", simulate::NOISE_SD_NS),
            ),
            ("Seed".to_owned(), all.seed.to_string()),
        ],
        sections,
        json,
        links: Vec::new(),
        footer: format!("isochrone {}, seed {}", env!("CARGO_PKG_VERSION"), all.seed),
    }
}

fn grid_section(grid: &GridResult) -> Section {
    let lone = |caption: String, table| Figure {
        caption,
        table: Some(table),
        open: true,
        ..Figure::default()
    };
    let tile =
        if grid.cores_per_tile > 1 { " A field is the mean over its tile's cores." } else { "" };
    let mut figures = vec![Figure {
        svg: pictures::grids(grid),
        caption: format!("{}{tile}", caption(grid)),
        badge: Some(Badge::Reading(Reading::Simulated)),
        table: Some(tables::cells(grid)),
        open: false,
    }];
    let scores = tables::scores(grid);
    if !scores.is_empty() {
        let caption = "Simulated less published. Held-out cells took no part in the fit; \
                       \"explained\" is the share of the cells' own variance."
            .to_owned();
        figures.push(Figure {
            badge: Some(Badge::Reading(Reading::Simulated)),
            ..lone(caption, scores)
        });
    }
    let printed = tables::printed(grid);
    if !printed.is_empty() {
        let caption =
            "The numbers under the picture, and the same of the simulated grid.".to_owned();
        figures.push(Figure {
            badge: Some(Badge::Reading(Reading::Simulated)),
            ..lone(caption, printed)
        });
    }
    let caption = format!("What the simulated machine is made of. {}", tables::count_words(grid));
    figures.push(lone(caption, tables::constants(&grid.constants)));
    Section {
        id: grid.grid.clone(),
        heading: grid.heading(),
        badge: None,
        prose: terminal::listed(grid).into_iter().chain(grid.notes.iter().cloned()).collect(),
        figures,
    }
}

/// What the pictures of a grid show.
fn caption(grid: &GridResult) -> String {
    let counts =
        format!("{} cores as published, {} unreadable", grid.readable(), grid.unreadable());
    if grid.cells.iter().any(|cell| cell.core.is_some() && cell.at.is_some()) {
        format!("Memory read latency from every core: {counts}; simulated on the same colours.")
    } else {
        format!("Memory read latency from every place ({counts}, without places).")
    }
}

fn placement_section(all: &Reproduction) -> Section {
    let located = all.grids.iter().filter(|grid| !grid.controllers.is_empty());
    let cores = Figure {
        caption: apart::CAPTION.to_owned(),
        table: Some(apart::table(&all.apart)),
        open: true,
        ..Figure::default()
    };
    let figures = located.map(|grid| Figure {
        svg: pictures::dies(grid),
        caption: format!(
            "{}: tiles by one of their cores, coloured by latency, white where none is readable; \
             the square is the controller, drawn outside the tile that it is nearest to.",
            grid.heading()
        ),
        badge: Some(Badge::Reading(Reading::Predicted)),
        ..Figure::default()
    });
    Section {
        id: "placement".to_owned(),
        heading: "Where the controllers are".to_owned(),
        badge: Some(Badge::Reading(Reading::Predicted)),
        prose: vec![
            "The poster tells the controller's place by eye. The placement experiment looks for \
             the tile from which latency grows best with hops, given the cores' places; it reads \
             the published cells and, as a check, the simulated ones, whose truth is known. \
             Columns and rows of tiles are counted from 0 at the upper left."
                .to_owned(),
        ],
        figures: figures.chain([cores]).collect(),
    }
}

fn machine_section(all: &Reproduction) -> Section {
    let ranges = Figure {
        caption: "Ranges of all grids, each under its own reading.".to_owned(),
        table: Some(tables::ranges(&all.grids, all.measured.as_ref())),
        open: true,
        ..Figure::default()
    };
    let mut section = Section {
        id: "this-machine".to_owned(),
        heading: "This machine".to_owned(),
        ..Section::default()
    };
    match &all.measured {
        None => section.prose.push(NO_ATLAS.to_owned()),
        Some(measured) => {
            section.badge = Some(Badge::Reading(measured.reading));
            section.prose.push(own_words(measured));
            section.figures = own_figures(measured);
        }
    }
    section.figures.push(ranges);
    section
}

fn own_words(measured: &Measured) -> String {
    let shape = measured.regions.first().map_or(String::new(), |grid| {
        match (grid.rows.len(), grid.columns.len()) {
            (cores, 1) => format!(
                " Its grid has {cores} cores and one region: cores can differ, regions cannot."
            ),
            (cores, regions) => format!(" Its grid has {cores} cores and {regions} regions."),
        }
    });
    let whole = if measured.complete { "" } else { " The run was interrupted: it is incomplete." };
    format!("{}, from its atlas.{shape}{whole}", measured.title)
}

fn own_figures(measured: &Measured) -> Vec<Figure> {
    let badge = || Some(Badge::Reading(measured.reading));
    let mut figures: Vec<Figure> = measured
        .regions
        .iter()
        .map(|grid| Figure {
            svg: pictures::own_grid(grid),
            caption: format!(
                "Nanoseconds a load, {} chase through {}; the interval is that of the median \
                 (95 %).",
                grid.mode,
                fmt::bytes(grid.buffer_bytes)
            ),
            badge: badge(),
            ..Figure::default()
        })
        .collect();
    if let Some(last) = figures.last_mut() {
        last.table = Some(tables::regions(measured));
    }
    figures.extend(measured.figures.iter().map(|blocks| Figure {
        svg: pictures::figure2(blocks),
        caption: format!(
            "Figure 2 of the Euro-Par paper for this machine, {}: {}; {} of {} cores. The fastest \
             access shown takes {:.1} ns.",
            blocks.level,
            blocks.what,
            blocks.shown().len(),
            blocks.cores.len(),
            blocks.fastest_ns
        ),
        badge: Some(Badge::Reading(blocks.reading)),
        ..Figure::default()
    }));
    let levels = tables::levels(measured);
    if !levels.is_empty() {
        figures.push(Figure {
            caption: "Blocks of memory as each core sees them.".to_owned(),
            badge: badge(),
            table: Some(levels),
            open: true,
            ..Figure::default()
        });
    }
    figures
}

fn remarks_section(all: &Reproduction) -> Section {
    Section {
        id: "doubts".to_owned(),
        heading: "What the descriptions assume and do not know".to_owned(),
        prose: all.remarks.iter().map(|(machine, text)| format!("{machine}: {text}.")).collect(),
        ..Section::default()
    }
}
