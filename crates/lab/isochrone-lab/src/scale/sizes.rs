//! What a map is written as, and how long it takes to be shown: by what `isochrone map` and `isochrone show` do.

use std::time::Instant;

use anyhow::{Context, Result};
use isochrone_atlas_store::contents::Contents;
use isochrone_atlas_store::{encode, load, save};
use isochrone_console::output::Terminal;
use isochrone_console::written::scratch;
use isochrone_report::json::{self, Format};
use isochrone_stats::median;
use isochrone_survey::figures::{QueryFigures, figures};
use isochrone_view as view;

/// Times that the atlas is shown.
const SHOWN: usize = 3;

/// Sizes in bytes, and a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) atlas_bytes: u64,
    /// The same without codes of pages.
    pub(super) atlas_bytes_without_codes: u64,
    /// As `map` writes it, with its figures.
    pub(super) report_bytes: u64,
    /// Median, from the file to the last line.
    pub(super) show_ms: f64,
}

impl Sizes {
    pub(super) fn of(contents: &Contents, terminal: &Terminal) -> Result<Self> {
        let atlas_bytes = encode(contents)?.len() as u64;
        let without = Contents { pages: Vec::new(), ..contents.clone() };
        let figures = figures(contents, atlas_bytes, QueryFigures::default());
        let text = json::pretty(Format::Map, &figures)?;
        Ok(Self {
            atlas_bytes,
            atlas_bytes_without_codes: encode(&without)?.len() as u64,
            report_bytes: view::page(contents, Some(text)).render().len() as u64,
            show_ms: show_ms(contents, terminal)?,
        })
    }
}

fn show_ms(contents: &Contents, terminal: &Terminal) -> Result<f64> {
    let folder = scratch()?;
    let path = folder.path().join("scale.atlas");
    save(contents, &path)?;
    let mut all = Vec::new();
    for _ in 0..SHOWN {
        let begin = Instant::now();
        let shown = view::summary(&load(&path)?, terminal.colour, terminal.width);
        all.push(1e3 * begin.elapsed().as_secs_f64());
        std::hint::black_box(shown);
    }
    median(&all).context("it was shown")
}
