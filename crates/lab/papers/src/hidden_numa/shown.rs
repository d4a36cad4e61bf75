//! How the reproduction is shown.

use isochrone_report::html::Page;
use isochrone_report::json::Format;
use isochrone_report::term::Colour;
use isochrone_units::{Reading, Standing};
use serde_json::Value;

use super::{PUBLISHED_SPREAD, Reproduction, json, page, rows, terminal};
use crate::Shown;
use crate::exhibit::Exhibit;

impl Shown for Reproduction {
    fn format(&self) -> Format {
        Format::HiddenNuma
    }

    fn exhibits(&self) -> Vec<Exhibit> {
        let one = |row: &crate::row::Row| {
            row.exhibit("hidden-numa", Reading::Simulated, Standing::Assumed)
        };
        rows::rows(&self.simulated, &self.readings, PUBLISHED_SPREAD).iter().map(one).collect()
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
