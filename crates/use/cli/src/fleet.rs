//! `isochrone fleet`: atlases of many nodes, which of them are equal, and which node deviates in what.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use isochrone_atlas_store::{Diff, diff};
use isochrone_fleet::{Asked, Folder, Report, judge, page, text};
use isochrone_report::json::{self, Format};
use serde::Serialize;

use crate::args::{FleetArgs, FleetCommand, FleetDiffArgs, OutliersArgs};
use isochrone_console::args::{HtmlArg, JsonArg};
use isochrone_console::codes;
use isochrone_console::output::{Terminal, WrongUsage};
use isochrone_console::written::{Place, each_written, on_stdout, write_to};

/// Runs the command.
pub(crate) fn run(command: &FleetCommand, terminal: &Terminal) -> Result<ExitCode> {
    match command {
        FleetCommand::Show(args) => shown(args, terminal),
        FleetCommand::Outliers(args) => outliers(args, terminal),
        FleetCommand::Diff(args) => diffs(args, terminal),
    }
}

fn shown(args: &FleetArgs, terminal: &Terminal) -> Result<ExitCode> {
    show(&args.html, &args.json, &args.folder, &Asked::default(), terminal)?;
    Ok(ExitCode::SUCCESS)
}

fn outliers(args: &OutliersArgs, terminal: &Terminal) -> Result<ExitCode> {
    let asked = Asked { level: args.level, least: args.least / 100.0, only: args.node.clone() };
    let FleetArgs { html, json, folder } = &args.fleet;
    let report = show(html, json, folder, &asked, terminal)?;
    Ok(codes::checked(args.check && !report.findings.is_empty()))
}

/// Judges a folder, and writes and prints what was found.
fn show(
    html: &HtmlArg,
    json: &JsonArg,
    path: &Path,
    asked: &Asked,
    terminal: &Terminal,
) -> Result<Report> {
    let places = Place::open_all([html.asked(), json.asked()])?;
    let alone = on_stdout(&places);
    let [html, json] = places;
    let folder = read(path)?;
    if let Some(only) = &asked.only {
        is_there(&folder, only)?;
    }
    let report = judge(&folder, asked);
    let figures = json::pretty(Format::Fleet, &report)?;
    each_written([
        if alone { Ok(()) } else { terminal.say(&text(&report, terminal.columns())) },
        write_to(html, terminal, || Ok(page(&report, Some(figures.clone())).render())),
        write_to(json, terminal, || Ok(figures.clone() + "\n")),
    ])?;
    Ok(report)
}

/// A folder that holds a node at least.
fn read(path: &Path) -> Result<Folder> {
    let folder =
        Folder::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let why: Vec<String> =
        folder.skipped.iter().map(|it| format!("{}: {}", it.node, it.why)).collect();
    ensure!(
        !folder.nodes.is_empty(),
        "{} has no atlas that can be read: make some with `isochrone map --fleet {0}` on each node{}",
        path.display(),
        why.iter().fold(String::new(), |all, why| format!("{all}\n  {why}"))
    );
    Ok(folder)
}

/// Refuses the name of no node.
fn is_there(folder: &Folder, name: &str) -> Result<()> {
    if folder.nodes.iter().any(|node| node.name == name) {
        return Ok(());
    }
    Err(WrongUsage::error(format!(
        "there is no atlas of a node {name}; `isochrone fleet show` lists them"
    )))
}

/// What `fleet diff --json` writes. Fields are added, never renamed.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DiffFigures {
    /// The node that the others are held against.
    against: String,
    /// The others.
    nodes: Vec<NodeDiff>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct NodeDiff {
    node: String,
    /// What it has otherwise than the node that it is held against.
    diff: Diff,
}

fn diffs(args: &FleetDiffArgs, terminal: &Terminal) -> Result<ExitCode> {
    let [json] = Place::open_all([args.json.asked()])?;
    let alone = on_stdout(std::slice::from_ref(&json));
    let folder = read(&args.folder)?;
    for name in args.against.iter().chain(&args.node) {
        is_there(&folder, name)?;
    }
    let against = args.against.clone().unwrap_or_else(|| first(&folder));
    let atlas = |name: &str| Folder::atlas(&args.folder, name).map_err(anyhow::Error::msg);
    let reference = atlas(&against)?;
    let is_asked =
        |name: &String| *name != against && args.node.as_ref().is_none_or(|asked| asked == name);
    let mut nodes = Vec::new();
    for node in folder.nodes.iter().map(|node| node.name.clone()).filter(is_asked) {
        let mut diff = diff(&reference, &atlas(&node)?);
        // Frames of two machines have nothing to do with one another.
        diff.pages.clear();
        nodes.push(NodeDiff { node, diff });
    }
    let figures = DiffFigures { against, nodes };
    write_to(json, terminal, || Ok(json::pretty(Format::FleetDiff, &figures)? + "\n"))?;
    if !alone {
        for NodeDiff { node, diff } in &figures.nodes {
            terminal.say(&format!("{node} against {}:", figures.against))?;
            for line in diff.lines() {
                terminal.say(&format!("  {line}"))?;
            }
        }
    }
    let found = figures.nodes.iter().any(|node| !node.diff.is_empty());
    Ok(codes::checked(args.check && found))
}

/// The first node of the largest group.
fn first(folder: &Folder) -> String {
    let report = judge(folder, &Asked::default());
    report.groups.first().and_then(|group| group.nodes.first()).cloned().unwrap_or_default()
}
