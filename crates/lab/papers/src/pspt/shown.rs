//! How the reproduction is shown.

use isochrone_report::html::Page;
use isochrone_report::json::Format;
use isochrone_report::term::Colour;
use isochrone_units::{Reading, Standing};
use serde_json::Value;

use super::{Reproduction, json, markdown, page, terminal};
use crate::Shown;
use crate::exhibit::Exhibit;

impl Shown for Reproduction {
    fn format(&self) -> Format {
        Format::Pspt
    }

    fn exhibits(&self) -> Vec<Exhibit> {
        let judged = self.rows.iter().filter(|row| row.asks());
        judged.map(|row| row.exhibit("pspt", Reading::Simulated, Standing::Assumed)).collect()
    }

    fn json(&self) -> Value {
        json::to_json(self)
    }

    fn page(&self) -> Page {
        page::to_page(self)
    }

    fn text(&self, _: Colour, width: u16) -> String {
        terminal::to_terminal(self, width)
    }

    fn markdown(&self) -> Option<String> {
        (!self.changed.is_empty()).then(|| markdown::to_markdown(self))
    }
}
