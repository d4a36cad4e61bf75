//! Tables without a picture: the machine, its state, what moved, how the run was made.

use isochrone_atlas_store::contents::Contents;
use isochrone_machine::{Machine, RegionKind, strides};
use isochrone_report::fmt;
use isochrone_report::html::Figure;
use isochrone_report::table::{Cell, Table};

use super::{ns, reading, whole};
use crate::calendar::utc;
use crate::words::machine::{state_rows, title};

fn figure(contents: &Contents, caption: &str, table: Table) -> Figure {
    Figure {
        caption: caption.to_owned(),
        badge: Some(reading(contents)),
        table: Some(table),
        ..Figure::default()
    }
}

fn pairs(head: [&str; 2], rows: Vec<(String, Option<String>)>) -> Table {
    let mut table = Table::new(head);
    for (name, value) in rows {
        let value = value.unwrap_or_else(|| fmt::MISSING.to_owned());
        table.row([Cell::text(name), Cell::text(value)]);
    }
    table
}

/// Tables of the machine itself: regions with their distances, caches.
pub(crate) fn machine_figures(contents: &Contents) -> Vec<Figure> {
    let machine = &contents.machine;
    let mut figures = Vec::new();
    if !machine.regions.is_empty() {
        let caption = format!("Memory regions of {}, as the system states them.", title(machine));
        figures.push(figure(contents, &caption, region_table(machine)));
    }
    if !machine.caches.is_empty() {
        figures.push(figure(contents, "Caches, as the system states them.", cache_table(machine)));
    }
    figures
}

fn region_table(machine: &Machine) -> Table {
    let distances = machine.distances.as_deref().unwrap_or_default();
    let to = machine.regions.iter().take(if distances.is_empty() { 0 } else { usize::MAX });
    let head = ["region", "kind", "size", "cores"].map(str::to_owned);
    let columns = to.map(|region| format!("distance to {}", region.id));
    let mut table = Table::new(head.into_iter().chain(columns));
    for (at, region) in machine.regions.iter().enumerate() {
        let size = region.bytes.map(|b| b as f64);
        let known = distances.get(at).map_or(&[][..], Vec::as_slice);
        let distances = known.iter().map(|d| whole(u64::from(*d)));
        let fixed = [
            super::name(&format!("region {}", region.id)),
            Cell::text(match region.kind {
                RegionKind::Unknown => "not known".to_owned(),
                kind => format!("{kind:?}").to_uppercase(),
            }),
            Cell::maybe(size, |_| region.bytes.map_or_else(String::new, fmt::bytes)),
            Cell::text(strides(&region.cores)),
        ];
        table.row(fixed.into_iter().chain(distances));
    }
    table
}

/// One row for all caches of a kind.
fn cache_table(machine: &Machine) -> Table {
    let head = ["cache", "size", "ways", "line", "cores sharing one", "how many"];
    let mut seen: Vec<([Cell; 5], u64)> = Vec::new();
    for cache in &machine.caches {
        let size = |bytes: Option<u64>| {
            Cell::maybe(bytes.map(|b| b as f64), |_| bytes.map_or_else(String::new, fmt::bytes))
        };
        let kind = format!("L{} {:?}", cache.level, cache.kind).replace("Unified", "unified");
        let row = [
            Cell::text(kind.replace("Data", "data").replace("Instruction", "instructions")),
            size(cache.bytes),
            cache.ways.map_or_else(Cell::missing, |ways| whole(u64::from(ways))),
            size(cache.line_bytes.map(u64::from)),
            whole(cache.shared_by.len() as u64),
        ];
        match seen.iter_mut().find(|(same, _)| *same == row) {
            Some((_, count)) => *count += 1,
            None => seen.push((row, 1)),
        }
    }
    let mut table = Table::new(head);
    for (row, count) in seen {
        table.row(row.into_iter().chain([whole(count)]));
    }
    table
}

/// The state of the machine while it was measured; `None` where none was recorded.
pub(crate) fn state_figure(contents: &Contents) -> Option<Figure> {
    let state = contents.state.as_ref()?;
    let clock = [("time-stamp counter", frequency(contents))];
    let rows = state_rows(state).into_iter().chain(clock);
    let rows = rows.map(|(name, value)| (name.to_owned(), value)).collect();
    let caption = "The machine's state while it was measured; a dash is what is not set or could not be read.";
    Some(figure(contents, caption, pairs(["what", "state"], rows)))
}

fn frequency(contents: &Contents) -> Option<String> {
    let clock = &contents.clock;
    (clock.hz > 0.0).then(|| {
        format!(
            "{} GHz, steps of {} cycles, {} taken off",
            fmt::significant(clock.hz / 1e9, 5),
            clock.tick_cycles,
            fmt::cycles(clock.overhead_cycles)
        )
    })
}

/// What identifies the machine; `None` where no word does.
pub(crate) fn fingerprint_figure(contents: &Contents) -> Option<Figure> {
    let print = &contents.fingerprint;
    let split = |word: &String| match word.split_once(": ") {
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
        None => (word.clone(), Some(String::new())),
    };
    let rows = print.words.iter().map(split).collect();
    let caption = format!(
        "Fingerprint {:016x}: an atlas of another fingerprint is of another machine.",
        print.hash
    );
    let known = !print.words.is_empty();
    known.then(|| figure(contents, &caption, pairs(["word", "value"], rows)))
}

/// What moved; `None` where nothing did.
pub(crate) fn drift_figure(contents: &Contents) -> Option<Figure> {
    let head = ["at, s", "core", "kind", "loads dropped", "repaired in, ms", "what"];
    let mut table = Table::new(head);
    for event in &contents.drift {
        table.row([
            Cell::maybe(Some(event.at_s), |v| format!("{v:.3}")),
            whole(u64::from(event.core)),
            super::name(&event.kind),
            whole(event.dropped_samples),
            ns(event.repaired_ms),
            Cell::text(event.what.clone()),
        ]);
    }
    let caption = "Everything that moved while measuring; a dash under repaired is what the \
                   run went on without timing.";
    (!table.is_empty()).then(|| figure(contents, caption, table))
}

/// How the run was made.
pub(crate) fn provenance_figure(contents: &Contents) -> Figure {
    let from = &contents.provenance;
    let version = Some(&from.version).filter(|v| !v.is_empty());
    let options = match from.options.as_slice() {
        [] => "none".to_owned(),
        options => options.join(" "),
    };
    let rows = vec![
        ("isochrone", version.cloned()),
        ("reading", Some(contents.reading.to_string())),
        ("complete", Some(if contents.complete { "yes" } else { "no" }.to_owned())),
        ("started", utc(from.started_unix_s)),
        ("took", Some(fmt::seconds(from.seconds))),
        ("seed of every random order", Some(from.seed.to_string())),
        ("options", Some(options)),
        ("pages found by", Some(contents.pages_keyed_by.clone()).filter(|w| !w.is_empty())),
    ];
    let rows = rows.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    figure(contents, "How this atlas was made.", pairs(["what", "value"], rows))
}

/// What was missing and what was done instead; `None` where nothing was.
pub(crate) fn missing_figure(contents: &Contents) -> Option<Figure> {
    let mut table = Table::new(["what was missing, and what was done instead"]);
    for line in &contents.provenance.missing {
        table.row([Cell::text(line.as_str())]);
    }
    (!table.is_empty()).then(|| figure(contents, "What was missing.", table))
}
