//! Which page has which code: a map in the order of frames, and the share of every code.

use isochrone_atlas_store::contents::{Contents, Form};
use isochrone_report::fmt;
use isochrone_report::html::Figure;
use isochrone_report::svg::{self, KeyMap};
use isochrone_report::table::Table;

use super::{percent, reading, whole};
use crate::level::LevelView;
use crate::words;

/// Pages drawn: 64 MiB.
const PAGES_DRAWN: usize = 16_384;

/// What a level's codes look like: a figure, or a sentence where there is nothing to draw.
#[derive(Clone, Debug)]
pub(crate) enum Pages {
    /// The map with its table.
    Map(Box<Figure>),
    /// Why there is no map.
    Words(String),
}

/// The page-key map of a level.
pub(crate) fn key_map(contents: &Contents, view: &LevelView<'_>) -> Pages {
    let name = view.name();
    let place = words::lines::place(view);
    if view.map.form == Form::Flat {
        return Pages::Words(format!("In {place} pages have no codes: their lines do not differ."));
    }
    if view.map.form == Form::PerLine {
        return Pages::Words(format!(
            "In {place} pages have no codes: they are measured line by line."
        ));
    }
    let all: Vec<(u64, Option<u16>)> = view.codes().collect();
    if all.is_empty() {
        let shares = view.code_shares().all.len();
        return Pages::Words(format!(
            "No page of {place} is in the atlas (physical frames were not readable, or the run \
             ended before); {} occurred among the pages that were learnt from.",
            words::counted(shares, "code")
        ));
    }
    let shares = &view.code_shares().all;
    if let Some(dominant) = view.dominant() {
        return Pages::Words(alike(view, &place, dominant, &all));
    }
    Pages::Map(Box::new(map(contents, view, &name, &all, shares)))
}

/// Nothing to draw: nearly all pages have one code.
fn alike(view: &LevelView<'_>, place: &str, code: u16, all: &[(u64, Option<u16>)]) -> String {
    let known = all.iter().filter(|page| page.1.is_some()).count();
    let others = known - all.iter().filter(|page| page.1 == Some(code)).count();
    let but = match others {
        0 => String::new(),
        n => format!(" but {}", fmt::count(n as u64)),
    };
    format!(
        "In {place} all {}{but} have the same code ({}), so there is no map of them to draw.",
        words::counted(known, "decoded page"),
        label(view, code)
    )
}

fn map(
    contents: &Contents,
    view: &LevelView<'_>,
    name: &str,
    all: &[(u64, Option<u16>)],
    shares: &[(u16, f64)],
) -> Figure {
    let drawn = &all[..all.len().min(PAGES_DRAWN)];
    let gaps = drawn.windows(2).any(|pair| pair[1].0 != pair[0].0 + 1);
    let first = drawn.first().map_or(0, |page| page.0);
    let picture = KeyMap {
        title: format!("{name}: the code of each page"),
        codes: drawn.iter().map(|page| page.1).collect(),
        labels: shares.iter().map(|(code, _)| (*code, label(view, *code))).collect(),
        ..KeyMap::default()
    };
    let some = match all.len() - drawn.len() {
        0 => String::new(),
        _ => format!(" The first {} of {} pages.", count(drawn.len()), count(all.len())),
    };
    let gaps = if gaps { ", frames that were not mapped left out" } else { "" };
    let unknown = all.iter().filter(|page| page.1.is_none()).count();
    let unknown = match unknown {
        0 => String::new(),
        n => format!(" {} could not be decided and are hatched.", words::counted(n, "page")),
    };
    Figure {
        svg: svg::key_map(&picture),
        caption: format!(
            "Pages in the order of their {} from {first:#x}{gaps}.{some}{unknown}",
            contents.pages_keyed_by
        ),
        badge: Some(reading(contents)),
        table: Some(share_table(view, all, shares)),
        open: shares.len() <= 8,
    }
}

fn count(pages: usize) -> String {
    fmt::count(pages as u64)
}

fn share_table(view: &LevelView<'_>, all: &[(u64, Option<u16>)], shares: &[(u16, f64)]) -> Table {
    let mut counts = std::collections::BTreeMap::<u16, u64>::new();
    for code in all.iter().filter_map(|page| page.1) {
        *counts.entry(code).or_default() += 1;
    }
    // A key moves lines within a page and changes no mean; a class does.
    let told = if view.map.classes > 1 { words::EACH_CORE } else { 0 };
    let cores: Vec<(usize, u16)> = view.cores().take(told).collect();
    let head = ["code", "pages", "share"].map(str::to_owned);
    let means = cores.iter().map(|(_, core)| format!("mean from core {core}, ns"));
    let mut table = Table::new(head.into_iter().chain(means));
    for (code, share) in shares {
        let (class, _) = view.split(*code);
        let pages = whole(counts.get(code).copied().unwrap_or(0));
        let fixed = [super::name(&label(view, *code)), pages, percent(Some(*share))];
        let means = cores.iter().map(|(place, _)| {
            let means = view.worn(*place).map(|(_, base)| view.class_means_ns(base));
            super::ns(means.and_then(|m| m.get(class).copied().flatten()))
        });
        table.row(fixed.into_iter().chain(means));
    }
    table
}

/// What a code is called: by what tells it from others.
fn label(view: &LevelView<'_>, code: u16) -> String {
    let (class, key) = view.split(code);
    match (view.map.classes > 1, view.distinct_keys() > 1) {
        (true, true) => format!("class {class}, key {key}"),
        (true, false) => format!("class {class}"),
        _ => format!("key {key}"),
    }
}
