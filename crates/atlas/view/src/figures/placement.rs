//! The inferred floor plan, or why none can be told.

use isochrone_atlas_store::contents::Contents;
use isochrone_report::fmt;
use isochrone_report::html::{Badge, Figure};
use isochrone_report::svg::{self, FloorPlan, Outline, Place, PlaceKind, Verdict};
use isochrone_report::table::{Cell, Table};

/// The floor plan; `None` if the run did not try.
pub(crate) fn placement_figure(contents: &Contents) -> Option<Figure> {
    let found = contents.placement.as_ref()?;
    let outline = match found.shape.as_str() {
        "ring" => Some(Outline::Ring),
        "grid" => Some(Outline::Grid),
        "cannot tell" => None,
        _ => Some(Outline::None),
    };
    let colours = to_memory(contents);
    let unit = colours.as_ref().map_or(String::new(), |(name, _)| format!("ns to {name}"));
    let verdict = match outline {
        None => Verdict::CannotTell { reason: found.reason.clone() },
        Some(outline) => Verdict::Placed {
            outline,
            places: found
                .places
                .iter()
                .map(|(label, x, y)| place(label, *x, *y, colours.as_ref()))
                .collect(),
            symmetries: found.symmetries.clone(),
            unit,
        },
    };
    let mut table = Table::new(["what", "x", "y"]);
    for (label, x, y) in &found.places {
        let at = |v: &f64| Cell::maybe(Some(*v), |v| fmt::significant(v, 3));
        table.row([Cell::text(label.clone()), at(x), at(y)]);
    }
    Some(Figure {
        svg: svg::floor_plan(&FloorPlan { title: "Inferred floor plan".into(), verdict }),
        caption: match outline {
            None => "Latencies alone decide; where they cannot, nothing is drawn.".into(),
            Some(_) => "Inferred from latencies alone; cores are round, memory is square.".into(),
        },
        badge: Some(badge(contents)),
        table: (!table.is_empty()).then_some(table),
        open: false,
    })
}

/// What latencies of this reading suggest is no such reading itself.
pub(crate) fn badge(contents: &Contents) -> Badge {
    Badge::Note(format!("inferred from {}", contents.reading))
}

type Latencies = (String, Vec<(String, f64)>);

fn place(label: &str, x: f64, y: f64, colours: Option<&Latencies>) -> Place {
    let core = label.strip_prefix("core ");
    let value = colours.and_then(|(_, all)| all.iter().find(|entry| entry.0 == label));
    Place {
        label: core.unwrap_or(label).to_owned(),
        kind: if core.is_some() { PlaceKind::Core } else { PlaceKind::Memory },
        x,
        y,
        value: value.map(|entry| entry.1),
    }
}

/// Each core's latency to memory, where there is one region to speak of.
fn to_memory(contents: &Contents) -> Option<Latencies> {
    let map = contents.regions.iter().find(|map| map.mode != "in-order")?;
    let [region] = map.latency_ns.columns.as_slice() else { return None };
    let rows = map.latency_ns.rows.iter().zip(&map.latency_ns.cells);
    let known = rows.filter_map(|(core, cell)| Some((core.clone(), (*cell)?.median)));
    Some((region.clone(), known.collect()))
}
