//! Papers whose figures stand beside ours, a folder for each: `latency_checker` is the poster, `hidden_numa` the
//! Euro-Par paper, `pspt` the CCGrid paper, `numa_aware` the TPDS paper, `cla` the paper on cache-line-aware programs.
//!
//! A paper takes what was measured, runs what can be simulated, and gives a value that is [`Shown`] in three ways.
//! Nothing here prints, reads a clock or opens a file of the user's: whoever calls does.

pub mod cla;
pub mod exhibit;
pub mod hidden_numa;
pub mod latency_checker;
pub mod numa_aware;
pub mod pspt;
mod row;
pub mod site;

use isochrone_report::html::Page;
use isochrone_report::json::{self, Format};
use isochrone_report::term::Colour;
use serde_json::Value;

use exhibit::Exhibit;

/// Seed of every simulated measurement unless told otherwise: grids are the same every time.
pub const SEED: u64 = 2020;

/// A paper beside ours.
pub trait Shown {
    /// What its JSON is.
    fn format(&self) -> Format;

    /// Every comparison, with its verdict.
    fn exhibits(&self) -> Vec<Exhibit>;

    /// Everything for programs. Fields are added, never renamed.
    fn json(&self) -> Value;

    /// Everything as one page with its pictures.
    fn page(&self) -> Page;

    /// Everything as text of at most `width` characters a line.
    fn text(&self, colour: Colour, width: u16) -> String;

    /// Every row by mechanism, as a page of the documentation; `None` where none was switched.
    fn markdown(&self) -> Option<String> {
        None
    }
}

/// The JSON that lies in a paper's page.
fn embedded(paper: &impl Shown) -> Option<String> {
    json::line(paper.format(), &paper.json()).ok()
}
