//! `isochrone show`: an atlas again, in the terminal, as a report, or one address asked.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use isochrone_atlas_store::{MappedAtlas, load};
use isochrone_report::fmt;
use isochrone_units::{CoreId, Level, LineAddr};
use isochrone_view as view;

use crate::args::ShowArgs;
use crate::map::{QueryFigures, figures};
use crate::output::{Terminal, write_file};

/// Runs the command.
pub(crate) fn run(args: &ShowArgs, terminal: &Terminal) -> Result<ExitCode> {
    if let Some(query) = &args.query {
        terminal.print(&answer(args, query)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let contents = load(&args.atlas)?;
    let bytes = std::fs::metadata(&args.atlas)?.len();
    if let Some(html) = &args.html {
        write_file(html, &view::page(&contents, None).render(), terminal)?;
    }
    if args.json {
        let figures = figures(&contents, bytes, QueryFigures::of_atlas(&contents)?);
        terminal.print(&serde_json::to_string_pretty(&figures)?)?;
    } else {
        terminal.print(&view::summary(&contents, terminal.colour, terminal.width))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// `CORE:ADDRESS` answered from the mapped file, as a program would.
fn answer(args: &ShowArgs, query: &str) -> Result<String> {
    let (core, address) = query
        .split_once(':')
        .with_context(|| format!("`{query}` is not CORE:ADDRESS, such as 0:0x1a2b3c40"))?;
    let core = core.parse().with_context(|| format!("`{core}` is not a core number"))?;
    let digits = address.trim_start_matches("0x");
    let address = u64::from_str_radix(digits, 16)
        .with_context(|| format!("`{address}` is not a hexadecimal physical address"))?;
    let mapped = MappedAtlas::open(&args.atlas)?;
    let atlas = mapped.atlas().map_err(|e| anyhow::anyhow!("{e}"))?;
    let contents = load(&args.atlas)?;
    let line = LineAddr(address / 64);
    let mut text = String::new();
    for level in Level::ALL {
        if let Some(cycles) = atlas.latency(CoreId(core), level, line) {
            let ns = contents.clock.ns(f64::from(cycles));
            text.push_str(&format!(
                "core {core}, line {:#x}, {level}: {}\n",
                line.0 * 64,
                fmt::ns(ns)
            ));
        }
    }
    if text.is_empty() {
        bail!(
            "this atlas knows nothing of core {core} and {address:#x}: it holds {} pages of 4 KiB, keyed by {}",
            contents.pages.len() * 512,
            contents.pages_keyed_by
        );
    }
    Ok(text)
}
