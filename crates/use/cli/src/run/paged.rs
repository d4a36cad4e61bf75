//! `isochrone run --fast-memory`: a program of which large mappings are paged by a preloaded library.
//!
//! Whether the kernel allows it is found out before the program starts; where it does not, the program is run as it is,
//! and a line says what mends it. There is nothing in between.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use isochrone_report::fmt;
use isochrone_report::json::{self, Format};
use isochrone_tier::live::far::FarKind;
use isochrone_tier::live::guest::may_be_tiered;
use isochrone_tier::live::guest::record::{Record, State, Word};
use isochrone_tier::live::guest::told::{SUFFIX, Told, VARIABLE};
use serde::Serialize;

use super::before::before;
use super::program;
use crate::args::{LARGE_BYTES, RunArgs};
use isochrone_console::output::Terminal;
use isochrone_console::run::library;
use isochrone_console::run::signals::Signals;
use isochrone_console::run::start::Program;
use isochrone_console::written::{Place, scratch, write_to};

/// What a run was and what its processes left.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PagedRecord {
    command: Vec<String>,
    code: u8,
    /// `a`: system calls may touch absent pages; `c`: the program was run untiered.
    grade: &'static str,
    /// Why it was run untiered, if it was.
    untiered: Option<String>,
    fast_bytes: u64,
    far: String,
    processes: Vec<PagedProcess>,
}

/// One process that had a large mapping.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PagedProcess {
    process: u64,
    /// It ended by itself; else it was killed, or became another program.
    ended: bool,
    tiered: bool,
    /// The kernel's error number where it could not be tiered.
    errno: Option<u64>,
    faults: u64,
    evicted_pages: u64,
    fetched_pages: u64,
    new_pages: u64,
    fetched_bytes: u64,
    evicted_bytes: u64,
    peak_fast_bytes: u64,
    /// Most bytes beyond the limit: for a fork, or where nothing could leave.
    beyond_limit_bytes: u64,
    /// Pages that were lent beyond the limit since nothing could leave.
    lent_pages: u64,
    forks: u64,
    /// Forks that failed, since not all fitted into memory.
    refused_forks: u64,
    peak_mapped_bytes: u64,
    /// Large mappings that were left to the kernel, since there were no addresses for them.
    left_mappings: u64,
    /// Bytes that the far tier took of memory or of its medium, at most, if it tells.
    far_bytes: Option<u64>,
    /// The same of one that compresses; nothing of any other.
    compressed_bytes: Option<u64>,
}

impl PagedProcess {
    /// What a record says; `packs` where the far tier compresses.
    fn of(record: &Record, packs: bool) -> Self {
        let get = |word| record.get(word);
        let far_bytes = Some(get(Word::Far)).filter(|bytes| *bytes > 0);
        let page = isochrone_units::PAGE_BYTES as u64;
        Self {
            process: get(Word::Process),
            ended: record.ended(),
            tiered: record.state() == State::Tiered,
            errno: Some(get(Word::Errno)).filter(|errno| *errno > 0),
            faults: get(Word::Faults),
            evicted_pages: get(Word::Evicted),
            fetched_pages: get(Word::Fetched),
            new_pages: get(Word::Zeroed),
            fetched_bytes: get(Word::Fetched) * page,
            evicted_bytes: get(Word::Evicted) * page,
            peak_fast_bytes: get(Word::Peak),
            beyond_limit_bytes: get(Word::Over),
            lent_pages: get(Word::Lent),
            forks: get(Word::Forks),
            refused_forks: get(Word::Refused),
            peak_mapped_bytes: get(Word::MappedPeak),
            left_mappings: get(Word::Left),
            far_bytes,
            compressed_bytes: far_bytes.filter(|_| packs),
        }
    }
}

/// Runs the program.
pub(super) fn run(
    args: &RunArgs,
    name: &std::ffi::OsStr,
    fast_bytes: u64,
    json: Option<Place>,
    terminal: &Terminal,
) -> Result<u8> {
    let path = match program::found(name) {
        Ok(path) => path,
        Err(refusal) => return Ok(refusal.said(terminal)),
    };
    let signals = Signals::hold()?;
    let scratch = scratch()?;
    let untiered = match program::check(&path, program::Who::here()) {
        Err(refusal) => Some(refusal.words),
        Ok(_) => may_be_tiered().err().map(|error| error.to_string()),
    };
    if let Some(why) = &untiered {
        terminal.complain(&format!("isochrone: untiered: {why}"));
    }
    let preload = before(args, scratch.path())?;
    let mut program = Program::new(path.as_os_str(), &args.command);
    let reports = scratch.path().join("reports");
    std::fs::create_dir(&reports).with_context(|| reports.display().to_string())?;
    program = if untiered.is_some() {
        program.with("LD_PRELOAD", preload.as_deref())
    } else {
        let found =
            library::find_as(library::PAGER, library::BUILD_PAGER, args.preload.as_deref())?;
        let first = library::first(&found, preload.as_deref(), scratch.path())?;
        args.far.check().with_context(|| format!("--far {}", args.far))?;
        let told = told(args, fast_bytes, &reports)?;
        program.with("LD_PRELOAD", Some(&first)).with(VARIABLE, Some(&told))
    };
    let code = signals.run(&program)?;
    let record = PagedRecord {
        command: args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        code,
        grade: if untiered.is_some() { "c" } else { "a" },
        untiered,
        fast_bytes,
        far: args.far.to_string(),
        processes: read_all(&reports, matches!(args.far, FarKind::Lz4 | FarKind::Zstd))?,
    };
    if let Some(line) = left_untiered(&record.processes) {
        terminal.complain(&line);
    }
    if args.report {
        terminal.complain(words(&record).trim_end());
    }
    write_to(json, terminal, || Ok(json::pretty(Format::RunPaged, &record)? + "\n"))?;
    Ok(code)
}

fn told(args: &RunArgs, fast_bytes: u64, reports: &Path) -> Result<OsString> {
    let reports = reports.to_str().context("TMPDIR is not a name in UTF-8")?.to_owned();
    let fast_bytes = usize::try_from(fast_bytes)?;
    Ok(Told { fast_bytes, large_bytes: LARGE_BYTES, far: args.far.clone(), reports }
        .to_string()
        .into())
}

fn read_all(folder: &Path, packs: bool) -> Result<Vec<PagedProcess>> {
    let mut records = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(SUFFIX) {
            let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
            // A process that was killed before its first word has none.
            let record = Record::from_bytes(&bytes);
            records.extend(record.map(|record| PagedProcess::of(&record, packs)));
        }
    }
    records.sort_by_key(|record| record.process);
    Ok(records)
}

/// One line if processes that were to be tiered were not.
fn left_untiered(processes: &[PagedProcess]) -> Option<String> {
    let left = processes.iter().filter(|process| !process.tiered);
    let errno = left.clone().find_map(|process| process.errno).unwrap_or(0);
    let count = left.count();
    (count > 0).then(|| {
        let why = std::io::Error::from_raw_os_error(i32::try_from(errno).unwrap_or(0));
        format!(
            "isochrone: {count} of {} processes ran untiered: the kernel refused them ({why}); they may have other \
             rights, or fewer addresses, files or threads (ulimit), than this one",
            processes.len()
        )
    })
}

fn words(record: &PagedRecord) -> String {
    let limit = fmt::bytes(record.fast_bytes);
    let mut text = match &record.untiered {
        None => format!(
            "isochrone: grade a, system calls may touch absent pages: {limit} of fast memory for each process, far \
             {}\n",
            record.far
        ),
        Some(why) => return format!("isochrone: grade c, run untiered: {why}\n"),
    };
    if record.processes.is_empty() {
        _ = writeln!(
            text,
            "  no process had a mapping of {} or more",
            fmt::bytes(LARGE_BYTES as u64)
        );
    }
    for process in &record.processes {
        one(&mut text, process);
    }
    text
}

fn one(text: &mut String, process: &PagedProcess) {
    let ended = if process.ended { "" } else { ", ended by a signal, exec or _exit" };
    if !process.tiered {
        _ = writeln!(text, "process {}{ended}: untiered", process.process);
        return;
    }
    _ = writeln!(text, "process {}{ended}", process.process);
    let mut line = |name: &str, words: String| _ = writeln!(text, "  {name:<10} {words}");
    line(
        "memory",
        format!(
            "{} in fast memory at most, of {} mapped",
            fmt::bytes(process.peak_fast_bytes),
            fmt::bytes(process.peak_mapped_bytes)
        ),
    );
    line(
        "pages",
        format!(
            "{} faults; {} new, {} fetched, {} evicted",
            fmt::count(process.faults),
            fmt::count(process.new_pages),
            fmt::bytes(process.fetched_bytes),
            fmt::bytes(process.evicted_bytes)
        ),
    );
    if let Some(bytes) = process.far_bytes {
        line("far", format!("{} taken there at most", fmt::bytes(bytes)));
    }
    if process.forks > 0 {
        let forks = process.forks;
        line(
            "forks",
            format!("{forks}; children are not paged, unless they become another program"),
        );
    }
    if process.beyond_limit_bytes > 0 {
        let forked = if process.forks > 0 { ", for forks" } else { "" };
        let beyond = fmt::bytes(process.beyond_limit_bytes);
        line("beyond", format!("{beyond} beyond the limit at most{forked}"));
    }
    if process.refused_forks > 0 {
        line(
            "refused",
            format!("{} forks, since not all fitted into memory", process.refused_forks),
        );
    }
    if process.left_mappings > 0 {
        let left = process.left_mappings;
        line("left", format!("{left} mappings to the kernel, since there were no addresses"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(tiered: bool) -> PagedProcess {
        let mut bytes = vec![0; isochrone_tier::live::guest::record::BYTES];
        bytes[..8].copy_from_slice(b"ISO-PGR\x01");
        bytes[16..24].copy_from_slice(&(if tiered { 1_u64 } else { 2 }).to_le_bytes());
        bytes[24..32].copy_from_slice(&1_u64.to_le_bytes());
        PagedProcess::of(&Record::from_bytes(&bytes).expect("a record"), true)
    }

    #[test]
    fn the_grade_stands_first_and_what_was_left_untiered_is_said() {
        let record = |untiered: Option<&str>, processes| PagedRecord {
            command: Vec::new(),
            code: 0,
            grade: "a",
            untiered: untiered.map(str::to_owned),
            fast_bytes: 64 << 20,
            far: "lz4".to_owned(),
            processes,
        };
        let text = words(&record(
            None,
            vec![PagedProcess { beyond_limit_bytes: 4096, forks: 2, ..process(true) }],
        ));
        assert!(text.starts_with("isochrone: grade a, "), "{text}");
        assert!(text.contains("beyond the limit at most, for forks"), "{text}");
        assert!(text.contains("2; children are not paged"), "{text}");
        assert!(text.contains("ended by a signal, exec or _exit"), "{text}");
        let text = words(&record(Some("set vm.x"), Vec::new()));
        assert_eq!(text, "isochrone: grade c, run untiered: set vm.x\n");
        assert_eq!(left_untiered(&[process(true)]), None);
        let line = left_untiered(&[process(true), process(false)]).expect("a line");
        assert!(line.contains("1 of 2 processes") && line.contains("os error 1"), "{line}");
    }
}
