//! The summary in the terminal: the result in plain words, with the pictures that fit. It only
//! orders what [`super::words`] says and [`super::figures`] draws, and leaves to the report what
//! is too long for a screen.

use isochrone_atlas_store::Experiment;
use isochrone_atlas_store::contents::Contents;
use isochrone_report::svg::{HeatMap, Strip};
use isochrone_report::term::{self, Colour};

use super::clusters::Clusters;
use super::figures::{lines, matrices};
use super::level::LevelView;
use super::text::Text;
use super::words;

/// Rows of a strip; more are left to the report.
const STRIP_ROWS: usize = 8;
/// Rows of a matrix of few columns before it is laid on its side.
const TALL: usize = 20;

/// The summary of an atlas for a terminal of `width` columns.
pub fn summary(contents: &Contents, colour: Colour, width: usize) -> String {
    let mut text = Text::new(colour, width);
    let clusters = Clusters::of(contents);
    machine(&mut text, contents);
    for experiment in Experiment::SHOWN {
        tell(experiment, &mut text, contents, &clusters);
    }
    run(&mut text, contents);
    text.finish()
}

/// What an experiment found, or why it found nothing.
fn tell(experiment: Experiment, text: &mut Text, contents: &Contents, clusters: &Clusters) {
    match experiment {
        Experiment::Block => blocks(text, contents, clusters),
        Experiment::Transfer => between_cores(text, contents, clusters),
        Experiment::Region => to_regions(text, contents, clusters),
        Experiment::Multiline => several(text, contents),
        Experiment::Terms => {
            text.heading("What the model of collectives leaves out");
            words::cells::terms(contents).iter().for_each(|sentence| text.item(sentence));
        }
        Experiment::Bandwidth => {
            text.heading("Bandwidth (triad)");
            words::cells::bandwidth(contents).iter().for_each(|sentence| text.say(sentence));
        }
        Experiment::Placement => {
            text.heading("Where things sit");
            words::run::placement(contents).iter().for_each(|sentence| text.say(sentence));
        }
    }
}

fn machine(text: &mut Text, contents: &Contents) {
    let title = format!("Latency atlas of {}", words::machine::title(&contents.machine));
    text.title(&title, &words::machine::mark(contents));
    words::run::doubts(contents).iter().for_each(|doubt| text.item(doubt));
    text.say(&words::machine::parts(&contents.machine));
    text.say(&words::machine::state(contents));
    text.say(&words::machine::clock(&contents.clock));
}

fn blocks(text: &mut Text, contents: &Contents, clusters: &Clusters) {
    for view in LevelView::all(contents) {
        level(text, &view, clusters);
    }
    if contents.levels.is_empty() {
        text.heading("Lines in the LLC and in DRAM");
        text.say(&words::absent(contents, Experiment::Block));
        return;
    }
    text.say(&words::machine::pages(contents));
    if let Some(share) = words::machine::llc_shares(contents) {
        text.say(&share);
    }
}

fn level(text: &mut Text, view: &LevelView<'_>, clusters: &Clusters) {
    let by = match view.map.method.as_str() {
        "" => String::new(),
        method => format!(" (put there by {method})"),
    };
    text.heading(&format!("Lines in {}{by}", words::lines::place(view)));
    for sentence in words::lines::level(view) {
        text.say(&sentence);
    }
    match lines::class_map(view, clusters) {
        // Where pages differ as a whole, what lines do inside a page hardly shows beside it.
        Some(map) => matrix(text, map),
        None => strip(text, view),
    }
}

fn strip(text: &mut Text, view: &LevelView<'_>) {
    let Some(whole) = lines::base_strip(view) else { return };
    let left = whole.rows.len().saturating_sub(STRIP_ROWS);
    let rows = whole.rows.iter().take(STRIP_ROWS).cloned().collect();
    let strip = Strip { rows, ..whole };
    text.picture(&term::strip(&strip, text.colour(), text.room()));
    if left > 0 {
        text.say(&format!("{left} more rows are in the report."));
    }
}

fn between_cores(text: &mut Text, contents: &Contents, clusters: &Clusters) {
    text.heading("From core to core");
    for sentence in words::cells::transfers(contents) {
        text.say(&sentence);
    }
    // One picture: the state in which both directions are told apart, if it was measured.
    let maps = || contents.transfers.iter().filter(|map| more_than_one(&map.latency_ns));
    let best = maps().find(|map| map.state == "modified").or_else(|| maps().next());
    if let Some(map) = best.and_then(|map| matrices::transfer_map(map, clusters)) {
        if let Some(words) = clusters.words() {
            text.say(&words);
        }
        matrix(text, map);
    }
}

fn to_regions(text: &mut Text, contents: &Contents, clusters: &Clusters) {
    text.heading("From core to region");
    for sentence in words::cells::regions(contents) {
        text.say(&sentence);
    }
    let map = matrices::region_maps(contents, clusters).next();
    if let Some(map) = map.filter(|map| map.cells.iter().flatten().count() > 1) {
        matrix(text, map);
    }
}

fn several(text: &mut Text, contents: &Contents) {
    text.heading("Several lines, several cores");
    for sentence in words::cells::multiline(contents) {
        text.say(&sentence);
    }
    for sentence in words::cells::interactions(contents) {
        text.item(&sentence);
    }
}

fn run(text: &mut Text, contents: &Contents) {
    text.heading("What moved meanwhile");
    for sentence in words::run::drift(contents) {
        text.say(&sentence);
    }
    for event in words::run::last_drift(contents) {
        text.item(&event);
    }
    if !contents.provenance.missing.is_empty() {
        text.heading("What was missing");
        for line in &contents.provenance.missing {
            text.item(line);
        }
    }
    text.heading("The run");
    text.say(&words::run::provenance(contents));
}

fn more_than_one(matrix: &isochrone_atlas_store::contents::Matrix) -> bool {
    words::cells::has_more_than(matrix, 1)
}

/// A matrix; one that is tall and narrow lies on its side. With clusters it is not tall: they are its rows.
fn matrix(text: &mut Text, map: HeatMap) {
    let tall = map.row_clusters.is_empty() && map.rows.len() > TALL;
    let turned = tall && map.columns.len() * 2 < map.rows.len();
    let map = if turned { on_its_side(map) } else { map };
    text.picture(&term::heat_map(&map, text.colour(), text.room()));
}

fn on_its_side(map: HeatMap) -> HeatMap {
    let (rows, columns) = (map.rows.len(), map.columns.len());
    let at = || (0..columns).flat_map(|c| (0..rows).map(move |r| r * columns + c));
    HeatMap {
        cells: at().map(|i| map.cells.get(i).copied().flatten()).collect(),
        intervals: at().map(|i| map.intervals.get(i).copied().flatten()).collect(),
        rows: map.columns,
        columns: map.rows,
        row_title: map.column_title,
        column_title: map.row_title,
        ..map
    }
}
