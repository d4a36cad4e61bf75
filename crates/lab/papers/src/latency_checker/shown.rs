//! How the reproduction is shown.

use isochrone_report::html::Page;
use isochrone_report::json::Format;
use isochrone_report::term::Colour;
use isochrone_units::{Reading, Standing};
use serde_json::Value;

use super::{Reproduction, apart, json, page, rows, terminal};
use crate::Shown;
use crate::exhibit::Exhibit;

impl Shown for Reproduction {
    fn format(&self) -> Format {
        Format::LatencyChecker
    }

    fn exhibits(&self) -> Vec<Exhibit> {
        let rows = self.grids.iter().flat_map(rows::rows).chain(apart::row(&self.apart));
        // What judges nothing of its own grid was fitted on other cells or carried over from another grid.
        rows.map(|row| row.exhibit("latency-checker", Reading::Simulated, Standing::Fitted))
            .collect()
    }

    fn json(&self) -> Value {
        json::to_json(self)
    }

    fn page(&self) -> Page {
        page::to_page(self)
    }

    fn text(&self, colour: Colour, width: u16) -> String {
        terminal::to_terminal(self, colour, width)
    }
}
