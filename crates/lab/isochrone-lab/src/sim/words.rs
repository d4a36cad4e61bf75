//! One simulated run as text, as JSON and as a page. Pure functions of the record.

use std::fmt::Write as _;

use isochrone_machine::Constant;
use isochrone_papers::numa_aware::constants::{self, FITTED_CELLS, constants_table};
use isochrone_papers::numa_aware::record::{Record, real};
use isochrone_report::fmt;
use isochrone_report::html::{Badge, Figure, Page, Section};
use isochrone_report::json::{self, Format};
use isochrone_report::table::{Cell, Table};
use isochrone_sim::coherence::{Class, Direction};
use isochrone_units::Reading;
use serde_json::{Value, json};

use isochrone_console::output::Terminal;

/// The run for programs.
pub(super) fn to_json(record: &Record, free: &[Constant]) -> Value {
    let mut all = serde_json::to_value(record).unwrap_or(Value::Null);
    let classes: Value = Class::ALL
        .iter()
        .map(|class| {
            let of = |way: Direction| {
                json!({ "messages": record.count(&[*class], way), "bytes": record.class_bytes(*class, way) })
            };
            (class.name().to_owned(), json!({ "in": of(Direction::In), "out": of(Direction::Out) }))
        })
        .collect::<serde_json::Map<_, _>>()
        .into();
    let (mode, words) = record.mode();
    let more = json!({
        "touches_per_s": real(record.touches) / record.host_seconds,
        "events_per_s": real(record.solved) / record.host_seconds,
        "free_constants": free.len(),
        "constants": constants::to_json(free),
        "fitted_cells": FITTED_CELLS,
        "coherence_movement_bytes": record.movement(None),
        "coherence_bandwidth_gbs": record.bandwidth(),
        "near_bytes": record.near_bytes(),
        "memory_bytes": record.memory_bytes(),
        "memory_bandwidth_gbs": record.memory_bytes() / record.seconds / 1e9,
        "classes": classes,
        "modules": {
            "in_bytes": record.by_module(Direction::In),
            "out_bytes": record.by_module(Direction::Out),
            "most_over_median": record.skew().filter(|skew| skew.is_finite()),
        },
        "mode": { "number": mode, "words": words, "far_share": record.far_share() },
    });
    if let (Value::Object(all), Value::Object(more)) = (&mut all, more) {
        all.extend(more);
    }
    all
}

fn gb(bytes: f64) -> String {
    format!("{} GB", fmt::significant(bytes / 1e9, 4))
}

fn facts(record: &Record) -> Vec<(&'static str, String)> {
    let (mode, words) = record.mode();
    let (memory, near, far) = record.energy_j;
    let touches = real(record.touches);
    let uneven =
        record.skew().map_or_else(|| "none moved".to_owned(), |skew| fmt::significant(skew, 3));
    let share = |ns: f64| fmt::percent(ns / record.task_ns);
    vec![
        (
            "time",
            format!(
                "{} (and {} to set up)",
                fmt::seconds(record.seconds),
                fmt::seconds(record.setup_seconds)
            ),
        ),
        ("tasks", format!("{}, {} stolen", fmt::count(record.tasks), fmt::count(record.steals))),
        (
            "coherence movement",
            format!("{}, in and out of all switches", gb(record.movement(None))),
        ),
        ("coherence bandwidth", format!("{} GB/s", fmt::significant(record.bandwidth(), 4))),
        ("near traffic", format!("{}, inside modules", gb(record.near_bytes()))),
        (
            "memory traffic",
            format!(
                "{}, {} GB/s",
                gb(record.memory_bytes()),
                fmt::significant(record.memory_bytes() / record.seconds / 1e9, 4)
            ),
        ),
        (
            "energy",
            format!(
                "{} J: memory {}, near links {}, far links {}",
                fmt::significant(memory + near + far, 3),
                fmt::significant(memory, 3),
                fmt::significant(near, 3),
                fmt::significant(far, 3)
            ),
        ),
        ("most over median module", uneven),
        ("mode of behaviour", format!("{mode}: {words}")),
        (
            "tasks' time",
            format!(
                "arithmetic {}, lines as if alone {}, first touches {}",
                share(record.compute_ns),
                share(record.lines_ns),
                share(record.fault_ns)
            ),
        ),
        (
            "the runtime's own lines",
            match record.runtime_ns > 0.0 {
                true => {
                    let each = record.runtime_ns / real(record.tasks);
                    format!("{} a task, over all workers", fmt::seconds(each / 1e9))
                }
                false => "not simulated".to_owned(),
            },
        ),
        (
            "simulated in",
            format!(
                "{}: {} touches/s, {} events/s, {} of state for {} of data",
                fmt::seconds(record.host_seconds),
                fmt::significant(touches / record.host_seconds, 3),
                fmt::significant(real(record.solved) / record.host_seconds, 3),
                fmt::bytes(record.state_bytes),
                fmt::bytes(record.data_bytes)
            ),
        ),
    ]
}

fn by_class(record: &Record) -> Table {
    let mut table =
        Table::new(["class", "in, messages", "out, messages", "in, GB", "out, GB", "GB/s"]);
    for class in Class::ALL {
        let [incoming, outgoing] = Direction::ALL.map(|way| record.class_bytes(class, way));
        let count = |way| {
            let count = record.count(&[class], way);
            Cell::number(real(count), fmt::count(count))
        };
        let number = |value: f64| Cell::number(value, fmt::significant(value, 4));
        table.row([
            class.name().into(),
            count(Direction::In),
            count(Direction::Out),
            number(incoming / 1e9),
            number(outgoing / 1e9),
            number((incoming + outgoing) / record.seconds / 1e9),
        ]);
    }
    table
}

fn by_module(record: &Record) -> Table {
    let mut table = Table::new([
        "module",
        "in, GB",
        "out, GB",
        "data, GB",
        "listed at most",
        "back-invalidated",
    ]);
    let [incoming, outgoing] = Direction::ALL.map(|way| record.by_module(way));
    let nodes = record.homes.len() / record.messages.len().max(1);
    for (module, (incoming, outgoing)) in incoming.iter().zip(&outgoing).enumerate() {
        let number = |value: f64| Cell::number(value, fmt::significant(value, 4));
        let lines: u64 = record.homes.iter().skip(module * nodes).take(nodes).sum();
        let count = |value: u64| Cell::number(real(value), fmt::count(value));
        let (_, most, evicted) = record.directories.get(module).copied().unwrap_or_default();
        table.row([
            Cell::number(real(module as u64), module.to_string()),
            number(incoming / 1e9),
            number(outgoing / 1e9),
            number(real(lines) * 64.0 / 1e9),
            count(most),
            count(evicted),
        ]);
    }
    table
}

fn head(record: &Record, free: &[Constant]) -> String {
    format!(
        "simulated: {} on {}; {} free constants, {} fitted cells; {}",
        record.key.words(),
        record.key.machine,
        free.len(),
        FITTED_CELLS.len(),
        if record.verified { "verified" } else { "NOT VERIFIED" }
    )
}

/// The run for people.
pub(super) fn to_text(record: &Record, free: &[Constant], terminal: &Terminal) -> String {
    let width = terminal.columns();
    let mut out = head(record, free) + "\n";
    for (name, value) in facts(record) {
        _ = writeln!(out, "{name:<24}{value}");
    }
    if record.assumptions > 0 {
        _ = writeln!(
            out,
            "{:<24}{} values, for instance: {}",
            "assumed, not computed",
            record.assumptions,
            record.assumed.first().map_or("", String::as_str)
        );
    }
    _ = writeln!(out, "\n{}", by_class(record).to_terminal(width));
    _ = writeln!(out, "\n{}", by_module(record).to_terminal(width));
    out
}

/// The run as a page.
pub(super) fn to_page(record: &Record, free: &[Constant]) -> Page {
    let table = |caption: &str, table: Table| Figure {
        caption: caption.to_owned(),
        table: Some(table),
        open: true,
        ..Figure::default()
    };
    Page {
        title: format!("{} in virtual time", record.key.bench),
        subtitle: head(record, free),
        badges: vec![Badge::Reading(Reading::Simulated)],
        facts: facts(record).into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        sections: vec![
            Section {
                id: "classes".to_owned(),
                heading: "Messages by class".to_owned(),
                badge: Some(Badge::Reading(Reading::Simulated)),
                prose: vec![
                    "Counted at the switches: in is from a module's own sockets, out is towards \
                             them."
                        .to_owned(),
                ],
                figures: vec![table("All switches together.", by_class(record))],
            },
            Section {
                id: "modules".to_owned(),
                heading: "Messages by module".to_owned(),
                badge: Some(Badge::Reading(Reading::Simulated)),
                figures: vec![table("Each module's switch and its directory.", by_module(record))],
                ..Section::default()
            },
            Section {
                id: "constants".to_owned(),
                heading: "What nobody published".to_owned(),
                figures: vec![table("Free constants.", constants_table(free))],
                ..Section::default()
            },
        ],
        json: json::line(Format::Sim, &to_json(record, free)).ok(),
        footer: format!("isochrone {}, seed {}", env!("CARGO_PKG_VERSION"), record.key.seed),
        ..Page::default()
    }
}
