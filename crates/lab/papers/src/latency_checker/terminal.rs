//! The reproduction as text: each grid in the poster's layout, published beside simulated beside
//! the gap, then what the model was made of and how far off it is; this machine's own grid at the
//! end. Returns text and never prints.

use std::fmt::Write as _;

use isochrone_report::fmt;
use isochrone_report::lines::wrapped;
use isochrone_report::svg::{Strip, StripRow};
use isochrone_report::term::{self, Colour};
use isochrone_units::{LINES_PER_PAGE, Reading};

use super::cells::{Cell, GridResult, Located, Role, Score};
use super::figure2::Blocks;
use super::measured::Measured;
use super::{Reproduction, apart, tables, words};

/// Characters of one cell.
const CELL: usize = 6;
/// Characters between two grids side by side.
const GUTTER: usize = 3;

/// The reproduction as text of at most `width` characters where grids allow it.
pub(super) fn to_terminal(all: &Reproduction, colour: Colour, width: u16) -> String {
    let mut out = String::new();
    _ = writeln!(out, "{}\n", wrapped(INTRODUCTION, width.into(), 0));
    for grid in &all.grids {
        _ = writeln!(out, "{}", one_grid(grid, width));
    }
    _ = writeln!(out, "{}\n", wrapped(apart::CAPTION, width.into(), 0));
    _ = writeln!(out, "{}\n", apart::table(&all.apart).to_terminal(width));
    match &all.measured {
        Some(measured) => _ = writeln!(out, "{}", this_machine(measured, colour, width)),
        None => _ = writeln!(out, "{}\n", wrapped(NO_ATLAS, width.into(), 0)),
    }
    _ = writeln!(out, "All grids, each under its own reading\n");
    let ranges = tables::ranges(&all.grids, all.measured.as_ref());
    _ = writeln!(out, "{}\n", ranges.to_terminal(width));
    for sentence in summary(all) {
        _ = writeln!(out, "{}", wrapped(&sentence, width.into(), 0));
    }
    out
}

pub(super) const INTRODUCTION: &str = "The grids of the Latency Checker poster (Yuki and Endo, \
    Tokyo Institute of Technology): memory read latency from every core, nanoseconds. Published \
    cells stand as the text of the poster has them; simulated cells were measured by Isochrone's \
    region experiment on a modelled machine; nothing of another machine was measured here.";
pub(crate) const NO_ATLAS: &str =
    "This machine: there is no atlas: run `isochrone map` and give it with --atlas.";

const FIGURE_2: &str = "Figure 2 of the Euro-Par paper for this machine: relative latency of \
    consecutive blocks from each core.";

/// What was found, a sentence each.
pub(super) fn summary(all: &Reproduction) -> Vec<String> {
    all.grids.iter().flat_map(|grid| held_out(grid).into_iter().chain(unplaced(grid))).collect()
}

/// How far held-out cells are from their simulation.
fn held_out(grid: &GridResult) -> Vec<String> {
    let held = grid.scores.iter().filter(|score| score.role == Role::HeldOut);
    let say = |score: &Score| {
        let explained = score.explained.map_or(String::new(), |share| {
            format!("; {} of their variance is explained", words::explained(share))
        });
        Some(format!(
            "{}, {}: {} held-out cells are simulated with an error of {:.2} ns (root mean \
             square){explained}.",
            grid.heading(),
            score.what,
            score.cells,
            score.rms_ns?
        ))
    };
    held.filter_map(say).collect()
}

/// The ranges, where cells cannot be compared one by one.
fn unplaced(grid: &GridResult) -> Option<String> {
    if !grid.scores.is_empty() {
        return None;
    }
    let row = |what: &str| grid.printed.iter().find(|row| row.what.starts_with(what));
    let both = |what: &str| row(what).and_then(|row| row.published.zip(row.simulated));
    let (least, most, delta) = (both("least")?, both("most")?, both("delta")?);
    Some(format!(
        "{}: printed {:.1} to {:.1} ns, delta {:.2}; simulated {:.1} to {:.1} ns, delta {:.2}. {}",
        grid.heading(),
        least.0,
        most.0,
        delta.0,
        least.1,
        most.1,
        delta.1,
        tables::count_words(grid)
    ))
}

fn one_grid(grid: &GridResult, width: u16) -> String {
    let mut out = String::new();
    let (title, room) = (grid.heading(), usize::from(width));
    _ = writeln!(out, "{title}\n{}", "─".repeat(title.chars().count().min(room)));
    let unreadable = grid.unreadable();
    let lost =
        if unreadable > 0 { format!(", {unreadable} unreadable (?)") } else { String::new() };
    _ = writeln!(out, "{}: {} cells published{lost}\n", grid.id(), grid.readable());
    let panels = panels(grid, room);
    if !panels.is_empty() {
        _ = writeln!(out, "{}\n", side_by_side(&panels, room));
    }
    if let Some(listed) = listed(grid) {
        _ = writeln!(out, "{}\n", wrapped(&listed, room, 2));
    }
    for table in [tables::scores(grid), tables::printed(grid), tables::constants(&grid.constants)] {
        if !table.is_empty() {
            _ = writeln!(out, "{}\n", table.to_terminal(width));
        }
    }
    let located = grid.controllers.iter().map(|found| {
        format!("Placement experiment on the {} cells: {}", found.reading, located(found))
    });
    let notes = std::iter::once(tables::count_words(grid)).chain(grid.notes.iter().cloned());
    for note in notes.chain(located) {
        _ = writeln!(out, "{}", wrapped(&note, room, 0));
    }
    out
}

/// Where the placement experiment puts a controller, and where it truly is if that is known.
pub(super) fn located(found: &Located) -> String {
    let truth = found.truth.map_or(String::new(), |truth| {
        format!(" It truly is at {}: the experiment knows no directories.", words::place(truth))
    });
    format!("{}.{truth}", found.summary)
}

/// Published cells whose places are not known.
pub(super) fn listed(grid: &GridResult) -> Option<String> {
    let cells = grid.cells.iter().filter(|cell| cell.at.is_none());
    let words = cells.filter_map(|c| Some(format!("{} {}", c.core?, words::cell(c.published?))));
    let all: Vec<String> = words.collect();
    (!all.is_empty())
        .then(|| format!("Published, by core, in ns (places not readable): {}.", all.join(", ")))
}

/// One grid of text.
struct Panel {
    title: String,
    lines: Vec<String>,
}

/// Published, simulated and the gap; only what there is. A drawing wider than the terminal is
/// cut into halves.
fn panels(grid: &GridResult, width: usize) -> Vec<Panel> {
    let placed =
        |want: fn(&Cell) -> bool| grid.cells.iter().any(|cell| cell.at.is_some() && want(cell));
    let columns = grid.size.0;
    let halves = if usize::from(columns) * CELL > width && columns.is_multiple_of(2) {
        vec![(0, columns / 2, ", left half"), (columns / 2, columns, ", right half")]
    } else {
        vec![(0, columns, "")]
    };
    let mut all = Vec::new();
    for (from, to, part) in halves {
        let mut push = |title: &str, write: &dyn Fn(&Cell) -> String, numbered: bool| {
            let lines = lines(grid, from..to, write, numbered);
            all.push(Panel { title: format!("{title}{part}"), lines });
        };
        if placed(|cell| cell.core.is_some()) {
            push("published, under the core", &|c| value(c.published), true);
        }
        if placed(|cell| cell.simulated.is_some()) {
            push(Reading::Simulated.as_str(), &|c| value(c.simulated.map(|s| s.ns)), false);
        }
        if placed(|cell| cell.error_ns().is_some()) {
            push("simulated less published (' fitted on, _ at the floor)", &gap, false);
        }
    }
    all
}

fn value(ns: Option<f64>) -> String {
    ns.map_or_else(|| "?".to_owned(), words::cell)
}

fn gap(cell: &Cell) -> String {
    let mark = match cell.role {
        Role::Fitted => "'",
        Role::AtFloor => "_",
        Role::HeldOut | Role::Unused => " ",
    };
    cell.error_ns().map_or_else(|| "? ".to_owned(), |e| format!("{}{mark}", words::gap(e)))
}

fn lines(
    grid: &GridResult,
    columns: std::ops::Range<u16>,
    write: &dyn Fn(&Cell) -> String,
    numbered: bool,
) -> Vec<String> {
    let mut all = Vec::new();
    for row in 0..grid.size.1 {
        let at = |column| grid.cells.iter().find(|cell| cell.at == Some((column, row)));
        let line = |text: &dyn Fn(&Cell) -> String| -> String {
            columns
                .clone()
                .map(|c| format!("{:>CELL$}", at(c).map_or(String::new(), text)))
                .collect()
        };
        if numbered {
            all.push(line(&|cell| cell.core.map_or(String::new(), |core| core.to_string())));
        }
        all.push(line(write));
    }
    all
}

/// As many panels beside one another as fit; a panel without numbers stands lower where its
/// neighbour has two lines a row.
fn side_by_side(panels: &[Panel], width: usize) -> String {
    let span = |panel: &Panel| {
        let longest = panel.lines.iter().map(|l| l.chars().count()).max().unwrap_or(0);
        longest.max(panel.title.chars().count())
    };
    let mut out = String::new();
    let mut rest = panels;
    while !rest.is_empty() {
        let mut used = 0;
        let fitting = rest
            .iter()
            .take_while(|panel| {
                used += span(panel) + GUTTER;
                used <= width + GUTTER
            })
            .count()
            .max(1);
        let (now, later) = rest.split_at(fitting);
        let height = now.iter().map(|panel| panel.lines.len()).max().unwrap_or(0);
        let line = |of: &dyn Fn(&Panel) -> String| {
            let cells = now.iter().map(|panel| format!("{:<1$}", of(panel), span(panel)));
            cells.collect::<Vec<_>>().join(&" ".repeat(GUTTER)).trim_end().to_owned()
        };
        _ = writeln!(out, "{}", line(&|panel| panel.title.clone()));
        for row in 0..height {
            let own = |panel: &Panel| {
                let spread = height / panel.lines.len().max(1);
                let index = row + 1;
                let filled = spread > 0 && index.is_multiple_of(spread);
                let line = if filled { panel.lines.get(index / spread - 1) } else { None };
                line.cloned().unwrap_or_default()
            };
            _ = writeln!(out, "{}", line(&own));
        }
        rest = later;
        if !rest.is_empty() {
            out.push('\n');
        }
    }
    out.trim_end().to_owned()
}

fn this_machine(measured: &Measured, colour: Colour, width: u16) -> String {
    let mut out = String::new();
    let title = format!("This machine: {} ({})", measured.title, measured.reading);
    _ = writeln!(out, "{title}\n{}", "─".repeat(title.chars().count().min(width.into())));
    if !measured.complete {
        _ = writeln!(out, "The run that made the atlas was interrupted; it is incomplete.");
    }
    let mut sizes: Vec<u64> = measured.regions.iter().map(|grid| grid.buffer_bytes).collect();
    sizes.dedup();
    if !sizes.is_empty() {
        let all: Vec<String> = sizes.into_iter().map(fmt::bytes).collect();
        _ = writeln!(out, "Chases through {} from each core.", all.join(", "));
    }
    let tables = [tables::regions(measured), tables::levels(measured)];
    for table in tables.iter().filter(|table| !table.is_empty()) {
        _ = writeln!(out, "\n{}", table.to_terminal(width));
    }
    if !measured.figures.is_empty() {
        _ = writeln!(out, "\n{}", wrapped(FIGURE_2, width.into(), 0));
    }
    for blocks in &measured.figures {
        let strip = blocks_strip(blocks);
        _ = writeln!(out, "\n{}", term::strip(&strip, colour, width.into()));
    }
    out
}

/// Figure 2 as strips, a page a row, so that each block is a mark.
pub(crate) fn blocks_strip(blocks: &Blocks) -> Strip {
    let from = blocks.first_frame.map_or(String::new(), |f| format!(" from frame {f:#x}"));
    let rows = blocks.shown().iter().flat_map(|(core, line)| {
        line.chunks(LINES_PER_PAGE).enumerate().map(move |(page, blocks)| StripRow {
            label: format!("core {core} page {page}"),
            values: blocks.iter().copied().map(Some).collect(),
        })
    });
    Strip {
        title: format!("{} blocks{from}, {}", blocks.level, blocks.reading),
        unit: "x fastest".to_owned(),
        index_title: "block".to_owned(),
        rows: rows.collect(),
    }
}
