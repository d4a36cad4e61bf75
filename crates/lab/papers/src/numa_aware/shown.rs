//! How the reproduction is shown.

use isochrone_report::html::Page;
use isochrone_report::json::Format;
use isochrone_report::term::Colour;
use isochrone_units::{Reading, Standing};
use serde_json::{Value, json};

use super::constants::{self, FITTED_CELLS};
use super::record::Record;
use super::{Reproduction, by_mechanism, page, runs, terminal};
use crate::Shown;
use crate::exhibit::Exhibit;
use crate::row::Row;

impl Shown for Reproduction {
    fn format(&self) -> Format {
        Format::NumaAwareRuntime
    }

    fn exhibits(&self) -> Vec<Exhibit> {
        // Constants that nobody published stand behind every number.
        let one =
            |row: &Row| row.exhibit("numa-aware-runtime", Reading::Simulated, Standing::Assumed);
        self.rows.iter().map(one).collect()
    }

    fn json(&self) -> Value {
        to_json(self)
    }

    fn page(&self) -> Page {
        page::to_page(self)
    }

    fn text(&self, _: Colour, width: u16) -> String {
        terminal::to_terminal(self, width)
    }

    fn markdown(&self) -> Option<String> {
        (!self.mechanisms.is_empty()).then(|| by_mechanism::to_markdown(self))
    }
}

fn to_json(all: &Reproduction) -> Value {
    json!({
        "paper": "P. Caheny et al., IEEE TPDS 2018",
        "reading": Reading::Simulated,
        "machine": all.runs.machine,
        "verified": all.runs.records.values().all(|record| record.verified),
        "naft_rules": runs::NAFT_RULES.iter().map(|v| v.name()).collect::<Vec<_>>(),
        "free_constants": all.constants.len(),
        "constants": constants::to_json(&all.constants),
        "fitted_cells": FITTED_CELLS,
        "rows": all.rows,
        "mechanisms": all.mechanisms,
        "runs": all.runs.records.len(),
        "touches": all.runs.records.values().map(|record| record.touches).sum::<u64>(),
        "host_seconds": all.runs.records.values().map(|record| record.host_seconds).sum::<f64>(),
        "cells": all.runs.records.values().map(cell).collect::<Vec<_>>(),
    })
}

fn cell(record: &Record) -> Value {
    json!({
        "bench": record.key.bench, "regime": record.key.regime, "variant": record.key.variant,
        "threads": record.key.threads, "seed": record.key.seed, "seconds": record.seconds,
        "movement_bytes": record.movement(None), "bandwidth_gbs": record.bandwidth(),
        "most_over_median": record.skew().filter(|skew| skew.is_finite()), "mode": record.mode().0,
        "verified": record.verified,
    })
}
