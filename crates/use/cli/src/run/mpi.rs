//! `isochrone run --mpi`: an MPI job whose processes do their collectives in cache lines.
//!
//! What is started is the launcher, `mpirun`; its ranks inherit the preloaded library and the record that
//! they are told, and each leaves a report when it ends.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use isochrone_console::run::library;
use isochrone_console::run::signals::Signals;
use isochrone_console::run::start::Program;
use isochrone_mpi::{
    CONFIG_VARIABLE, ChosenShape, Config, Counts, LeftCalls, Refusal, Report, SizedCalls,
};
use isochrone_report::json::{self, Format};
use serde::Serialize;

use crate::args::{RunArgs, SingleCopy};
use isochrone_console::output::{self, Terminal};
use isochrone_console::written::{Place, scratch, write_to};

/// What Open MPI's launcher hands on to other nodes (`mpirun(1)`, "Exported Environment Variables").
const HANDED_ON: &str = "OMPI_MCA_mca_base_env_list";

/// Where ranks leave reports, in the folder of a job.
const REPORTS: &str = "reports";

/// What a job was and what its ranks left.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct JobRecord {
    command: Vec<String>,
    code: u8,
    ranks: Vec<Report>,
}

/// Runs the launcher.
pub(super) fn run(
    args: &RunArgs,
    program: &Path,
    json: Option<Place>,
    terminal: &Terminal,
) -> Result<u8> {
    let signals = Signals::hold()?;
    let scratch = scratch()?;
    // Ranks may begin in other folders.
    let atlas = args.host.atlas.as_ref().map(std::path::absolute).transpose()?;
    let told = Config {
        atlas,
        enabled: !args.off,
        only: args.only.clone(),
        bytes_max: args.max_bytes.unwrap_or(Config::default().bytes_max),
        lines_far: args.max_bytes.map(|_| false),
        single_copy: match args.single_copy {
            Some(SingleCopy::From(bytes)) => Some(bytes),
            Some(SingleCopy::Auto) | None => None,
        },
        single_copy_auto: args.single_copy == Some(SingleCopy::Auto),
        reproducible: args.reproducible,
        ..Config::default()
    };
    let program = Program::new(program.as_os_str(), &args.command);
    let program = under(program, told, args.preload.as_deref(), scratch.path())?;
    let code = signals.run(&program)?;
    if args.report || json.is_some() {
        let record = JobRecord {
            command: args.command.iter().map(|w| w.to_string_lossy().into_owned()).collect(),
            code,
            ranks: read_all(scratch.path())?,
        };
        if args.report {
            terminal.complain(words(&record).trim_end());
        }
        write_to(json, terminal, || Ok(json::pretty(Format::RunMpi, &record)? + "\n"))?;
    }
    Ok(code)
}

/// The launcher with what its ranks inherit: the library, and what they are told; they leave reports in `folder`.
pub(crate) fn under(
    launcher: Program,
    told: Config,
    preload: Option<&Path>,
    folder: &Path,
) -> Result<Program> {
    let found = library::find_as(library::MPI, library::BUILD_MPI, preload)?;
    let preload = library::first(&found, output::preloaded().as_deref(), folder)?;
    let reports = folder.join(REPORTS);
    std::fs::create_dir(&reports).with_context(|| reports.display().to_string())?;
    let told = Config { reports: Some(reports), ..told };
    let config = folder.join("mpi.json");
    std::fs::write(&config, serde_json::to_string(&told)?)
        .with_context(|| config.display().to_string())?;
    Ok(launcher
        .with("LD_PRELOAD", Some(&preload))
        .with(CONFIG_VARIABLE, Some(config.as_os_str()))
        .with(HANDED_ON, Some(&handed_on(output::variable(HANDED_ON)))))
}

/// The variables that ranks need, after those that the user hands on.
fn handed_on(before: Option<OsString>) -> OsString {
    let mut list = before.unwrap_or_default();
    for name in ["LD_PRELOAD", CONFIG_VARIABLE] {
        if !list.is_empty() {
            list.push(";");
        }
        list.push(name);
    }
    list
}

/// What the ranks of a job left in this folder, by their numbers.
pub(crate) fn read_all(folder: &Path) -> Result<Vec<Report>> {
    let folder = folder.join(REPORTS);
    let mut reports = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        // A rank may be killed while it writes one anew.
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = std::fs::read_to_string(path)?;
        reports.push(serde_json::from_str::<Report>(&text).context("a rank's report is damaged")?);
    }
    reports.sort_by_key(|report| report.rank);
    Ok(reports)
}

fn words(record: &JobRecord) -> String {
    let Some(first) = record.ranks.first() else {
        return "isochrone: no rank left a report: the program is not one of an MPI, called no \
                collective, or ended without MPI_Finalize\n"
            .to_owned();
    };
    let ranks = record.ranks.len();
    let mut text = format!("isochrone: {ranks} ranks, {}\n", first.mpi);
    let communicators = record.ranks.iter().map(|rank| rank.communicators).max().unwrap_or(0);
    let _ = writeln!(text, "  communicators in lines: {communicators}");
    for (name, counts) in &first.calls {
        calls(&mut text, name, counts, first);
    }
    way(&mut text, record, first);
    for refusal in &first.refusals {
        let Refusal { ranks, communicators, why } = refusal;
        let _ = match (*ranks, *communicators) {
            (0, _) => writeln!(text, "  all communicators: {why}"),
            (_, 1) => writeln!(text, "  a communicator of {ranks} ranks: {why}"),
            _ => writeln!(text, "  {communicators} communicators of {ranks} ranks: {why}"),
        };
    }
    for rank in &record.ranks {
        if let Some(why) = &rank.broken {
            let _ = writeln!(text, "  rank {}: {why}", rank.rank);
        }
        if !rank.ended {
            let _ = writeln!(
                text,
                "  rank {}: it was killed; its calls were so many or more",
                rank.rank
            );
        }
    }
    text
}

/// A collective, and why and how its calls went.
fn calls(text: &mut String, name: &str, counts: &Counts, rank: &Report) {
    let Counts { lines, across, mpi } = counts;
    let _ = writeln!(
        text,
        "  {name}: {lines} in lines, {across} in lines within nodes, {mpi} by the MPI"
    );
    let Some(details) = rank.details.get(name) else { return };
    for LeftCalls { why, calls } in &details.by_the_mpi {
        let _ = writeln!(text, "    {calls} by the MPI: {why}");
    }
    for SizedCalls { bytes, calls } in &details.sizes {
        let _ = writeln!(text, "    {calls} in lines up to {bytes} B");
    }
    if details.copied_once > 0 {
        let _ = writeln!(text, "    {} copied once, from rank to rank", details.copied_once);
    }
    if details.in_order > 0 {
        let calls = details.in_order;
        let _ = writeln!(text, "    {calls} by the MPI in the order of ranks, as it was told");
    }
    if details.in_parts > 0 {
        let calls = details.in_parts;
        let _ = writeln!(text, "    {calls} between several leaders of each node");
    }
    if details.saved_ns > 0 {
        let saved = details.saved_ns.div_ceil(1000);
        let _ =
            writeln!(text, "    expected to have saved {saved} us, by the table of 2 near ranks");
    }
}

/// What was set up, and by which distances.
fn way(text: &mut String, record: &JobRecord, first: &Report) {
    let (set_up, shared) = (first.set_up_us, first.shared_bytes >> 10);
    let _ = writeln!(text, "  set up in {set_up} us, {shared} KiB of shared memory");
    if first.reach == Some(false) {
        text.push_str("  nothing is copied once: a rank may not read the memory of another one\n");
    }
    if first.lines_far == Some(true) {
        text.push_str("  lines take long between ranks: fewer bytes go through them\n");
    }
    if let Some(atlas) = record.ranks.iter().find_map(|rank| rank.atlas.as_ref()) {
        let _ = writeln!(text, "  shapes by {atlas}");
    }
    if let Some(why) = record.ranks.iter().find_map(|rank| rank.atlas_refused.as_ref()) {
        let _ = writeln!(text, "  shapes by the rule without distances: {why}");
    }
    for shape in &first.shapes {
        let ChosenShape { ranks, call, bytes, root, way } = shape;
        let _ = writeln!(text, "  {call} of {ranks} ranks, root {root}, up to {bytes} B: {way}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isochrone_mpi::Details;

    #[test]
    fn what_the_user_hands_on_stays() {
        assert_eq!(handed_on(None), "LD_PRELOAD;ISOCHRONE_MPI");
        assert_eq!(handed_on(Some("A;B".into())), "A;B;LD_PRELOAD;ISOCHRONE_MPI");
    }

    #[test]
    fn a_report_names_what_was_left_to_the_mpi() {
        let counts = Counts { lines: 7, across: 0, mpi: 3 };
        let refusal = |ranks, communicators, why: &str| {
            let why = why.to_owned();
            Refusal { ranks, communicators, why }
        };
        let details = Details {
            sizes: vec![SizedCalls { bytes: 56, calls: 7 }],
            by_the_mpi: vec![LeftCalls { why: "more bytes than fit".into(), calls: 3 }],
            copied_once: 5,
            in_order: 2,
            in_parts: 1,
            saved_ns: 210,
        };
        let rank = Report {
            mpi: "An MPI 1.0".into(),
            communicators: 2,
            refusals: vec![
                refusal(4, 1, "it was switched off"),
                refusal(2, 9, "it did not live"),
                refusal(0, 1, "not known"),
            ],
            calls: [("bcast".to_owned(), counts)].into(),
            details: [("bcast".to_owned(), details)].into(),
            set_up_us: 12,
            rank: 3,
            broken: Some("rank 1 ended".into()),
            shared_bytes: 64 << 10,
            reach: Some(false),
            lines_far: Some(true),
            ..Report::default()
        };
        let record = JobRecord { command: Vec::new(), code: 0, ranks: vec![rank] };
        let text = words(&record);
        for words in [
            "bcast: 7 in lines, 0 in lines within nodes, 3 by the MPI",
            "3 by the MPI: more bytes than fit",
            "7 in lines up to 56 B",
            "5 copied once, from rank to rank",
            "2 by the MPI in the order of ranks",
            "1 between several leaders of each node",
            "saved 1 us",
            "may not read the memory of another one",
            "lines take long between ranks",
            "set up in 12 us, 64 KiB",
        ] {
            assert!(text.contains(words), "{text}");
        }
        for words in [
            "a communicator of 4 ranks: it was switched off",
            "9 communicators of 2 ranks: it did not live",
            "all communicators: not known",
            "rank 3: rank 1 ended",
            "rank 3: it was killed",
        ] {
            assert!(text.contains(words), "{text}");
        }
        let none = JobRecord { ranks: Vec::new(), ..record };
        assert!(words(&none).contains("no rank left a report"));
    }
}
