//! `isochrone show`: an atlas again, in the terminal, as a report, or one address asked.

use std::process::ExitCode;

use anyhow::{Result, bail};
use isochrone_atlas_store::{MappedAtlas, load};
use isochrone_report::fmt;
use isochrone_report::json::{self, Format};
use isochrone_survey::figures::{QueryFigures, figures};
use isochrone_units::{LINE_BYTES, Level, LineAddr};
use isochrone_view as view;
use serde::Serialize;

use crate::args::{Query, ShowArgs};
use isochrone_console::output::Terminal;
use isochrone_console::written::{Place, each_written, on_stdout, write_to};

/// Runs the command.
pub(crate) fn run(args: &ShowArgs, terminal: &Terminal) -> Result<ExitCode> {
    let places = Place::open_all([args.html.asked(), args.json.asked()])?;
    let alone = on_stdout(&places);
    let [html, json] = places;
    if let Some(query) = args.query {
        let answer = answer(args, query)?;
        each_written([
            if alone { Ok(()) } else { terminal.say(&answer.text()) },
            write_to(json, terminal, || Ok(json::pretty(Format::Line, &answer.figures())?)),
        ])?;
        return Ok(ExitCode::SUCCESS);
    }
    let contents = load(&args.atlas)?;
    let bytes = std::fs::metadata(&args.atlas)?.len();
    let summary = || terminal.print(&view::summary(&contents, terminal.colour, terminal.width));
    each_written([
        if alone { Ok(()) } else { summary() },
        write_to(html, terminal, || Ok(view::page(&contents, None).render())),
        write_to(json, terminal, || {
            let figures = figures(&contents, bytes, QueryFigures::of_atlas(&contents)?);
            Ok(json::pretty(Format::Map, &figures)?)
        }),
    ])?;
    Ok(ExitCode::SUCCESS)
}

/// The latency of a line from a core, as far as an atlas has it.
struct Answer {
    query: Query,
    /// Levels with ns.
    levels: Vec<(Level, f64)>,
}

/// What `--query` writes. Fields are added, never renamed.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LineFigures {
    core: u16,
    /// The address of the line's first byte, hexadecimal.
    line: String,
    /// As this core sees it; none where the atlas does not know.
    llc_ns: Option<f64>,
    dram_ns: Option<f64>,
}

/// A query answered from the mapped file, as a program would.
fn answer(args: &ShowArgs, query: Query) -> Result<Answer> {
    let mapped = MappedAtlas::open(&args.atlas)?;
    let atlas = mapped.atlas().map_err(|e| anyhow::anyhow!("{e}"))?;
    let contents = load(&args.atlas)?;
    let line = LineAddr(query.address / LINE_BYTES as u64);
    let of = |level: Level| {
        let cycles = atlas.latency(query.core, level, line)?;
        Some((level, contents.clock.ns(f64::from(cycles))))
    };
    let levels: Vec<(Level, f64)> = Level::ALL.into_iter().filter_map(of).collect();
    if levels.is_empty() {
        bail!(
            "this atlas knows nothing of core {} and {:#x}: it holds {} pages of 4 KiB, keyed by {}",
            query.core.0,
            query.address,
            contents.pages.len() * 512,
            contents.pages_keyed_by
        );
    }
    Ok(Answer { query, levels })
}

impl Answer {
    /// The address of the line's first byte.
    fn line(&self) -> u64 {
        self.query.address / LINE_BYTES as u64 * LINE_BYTES as u64
    }

    fn text(&self) -> String {
        let (core, line) = (self.query.core.0, self.line());
        let of = |(level, ns): &(Level, f64)| {
            format!("core {core}, line {line:#x}, {level}: {}\n", fmt::ns(*ns))
        };
        self.levels.iter().map(of).collect()
    }

    fn figures(&self) -> LineFigures {
        let ns = |of| self.levels.iter().find(|(level, _)| *level == of).map(|(_, ns)| *ns);
        LineFigures {
            core: self.query.core.0,
            line: format!("{:#x}", self.line()),
            llc_ns: ns(Level::Llc),
            dram_ns: ns(Level::Dram),
        }
    }
}
