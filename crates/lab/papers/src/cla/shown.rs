//! How the reproduction is shown.

use isochrone_report::html::Page;
use isochrone_report::json::Format;
use isochrone_report::term::Colour;
use isochrone_units::Reading;
use serde_json::{Value, json};

use super::figure3::Row;
use super::rows::{self, Beside, PUBLISHED_FLAT, PUBLISHED_MPI, Stated};
use super::{Reproduction, most_over_flat, most_over_hmpi, page, tables};
use crate::Shown;
use crate::exhibit::Exhibit;

impl Shown for Reproduction {
    fn format(&self) -> Format {
        Format::CacheLines
    }

    fn exhibits(&self) -> Vec<Exhibit> {
        rows::exhibits(&Stated {
            table1: &self.table1,
            latencies: &self.latencies,
            medians: self.figure3.iter().map(Row::median).collect(),
            hmpi: [0, 1].map(|at| most_over_hmpi(self, at).value()),
            flat: most_over_flat(self).value(),
        })
    }

    fn json(&self) -> Value {
        to_json(self)
    }

    fn page(&self) -> Page {
        page::to_page(self)
    }

    fn text(&self, _: Colour, width: u16) -> String {
        tables::to_terminal(self, width)
    }
}

pub(super) fn to_json(all: &Reproduction) -> Value {
    let beside = |rows: &[Beside]| -> Vec<Value> {
        let one = |b: &Beside| {
            json!({ "name": b.name, "unit": b.unit, "what": b.what, "published": b.published,
                    "measured": b.measured })
        };
        rows.iter().map(one).collect()
    };
    let [printed, ours] = &all.figure2;
    let hmpi = [0, 1].map(|at| most_over_hmpi(all, at).value());
    json!({
        "paper": "Ramos and Hoefler, HPDC 2015",
        "machine": all.machine,
        "table1": beside(&all.table1),
        "latencies": beside(&all.latencies),
        "figure2": {
            "reading": Reading::Predicted,
            "printed_t_min_ns": printed.min.total_ns,
            "printed_t_max_ns": printed.max.total_ns,
            "t_min_ns": ours.min.total_ns,
            "t_max_ns": ours.max.total_ns,
        },
        "figure3": all.figure3.iter().map(Row::json).collect::<Vec<_>>(),
        "published_flat_over_chosen_at_most": PUBLISHED_FLAT,
        "flat_over_chosen_at_most": most_over_flat(all).value(),
        "hmpi_over_chosen_at_most": hmpi,
        "published_mpi_over_chosen_at_most": PUBLISHED_MPI,
    })
}
