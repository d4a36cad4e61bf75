//! The report of a run as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use isochrone_console::run::record::{Count, ProcessRecord};
use isochrone_console::run::setup::By;
use isochrone_report::fmt;
use isochrone_units::PAGE_BYTES;

use super::compare::Comparison;
use super::outcome::RunRecord;

/// Why no page was classified though it was tried.
const NO_BASE: &str = "no base of the atlas was recognised in what the cores see now";
/// Why most pages were not.
const TOO_SPARSE: &str = "too few pages could be decoded in the time that is spent on it";

/// Slices after which a process that knows nothing is told of. A shell has none, an interpreter up to a hundred until
/// it begins.
const TRIED_SLICES: u64 = 200;

/// What it means that threads are not bound.
const UNBOUND: &str = "  threads are not bound (--pin none): what a thread took is near the core that it took \
    it on,\n  until the system moves it\n";

/// The order of cores was made of the atlas's groups.
const BY_DISTANCES: &str =
    "  threads are bound to cores in the order of the atlas's groups of near cores\n";

/// The order of cores is that of their numbers.
const BY_NUMBERS: &str = "  threads are bound to cores by their numbers: the atlas has no groups that tell these \
    cores apart\n";

/// One line if processes left everything to glibc for good.
pub(super) fn ended(processes: &[ProcessRecord]) -> Option<String> {
    let mut reasons: Vec<&str> =
        processes.iter().filter_map(|process| process.placed_no_more.as_deref()).collect();
    let count = reasons.len();
    reasons.sort_unstable();
    reasons.dedup();
    let reasons: Vec<&str> = reasons.into_iter().map(why).collect();
    let many = match processes.len() {
        1 => "the process".to_owned(),
        all => format!("{count} of {all} processes"),
    };
    (count > 0).then(|| format!("isochrone: placing ended in {many}: {}", reasons.join("; ")))
}

/// One line if most of what was placed lies by no distance, as under `--force` alone. A process that ends before it
/// could know anything is no reason for one.
pub(super) fn forced(processes: &[ProcessRecord]) -> Option<String> {
    let bytes = |of: &dyn Fn(&&ProcessRecord) -> bool| -> u64 {
        processes.iter().filter(of).map(|process| process.placed.bytes).sum()
    };
    let blind = |process: &&ProcessRecord| is_blind(process) && process.slices >= TRIED_SLICES;
    let placed_so = bytes(&blind);
    let mut all_blind = processes.iter().filter(blind);
    let why = if all_blind.all(knows_none) { NO_BASE } else { TOO_SPARSE };
    (placed_so > bytes(&|_| true) / 2)
        .then(|| format!("isochrone: {} were placed by no distance: {why}", fmt::bytes(placed_so)))
}

/// Whether a process knew less than half of the pages that it had in use.
const fn is_blind(process: &ProcessRecord) -> bool {
    process.classified_pages * PAGE_BYTES as u64 <= process.peak_live_bytes / 2
}

/// Whether a process looked for what its cores see now, and recognised nothing.
const fn knows_none(process: &ProcessRecord) -> bool {
    process.classified_pages == 0 && process.slices > 0
}

/// A reason for which a process places nothing any more, in words.
fn why(reason: &str) -> &str {
    match reason {
        "unknown_base" => {
            "no base of the atlas was recognised in what the cores see now (--fresh measures a new \
             atlas, --force goes on)"
        }
        "too_sparse" => {
            "too few pages could be decoded in the time that is spent on it (--force goes on)"
        }
        "no_gain" => {
            "the bases that the cores have, or the share of lines that was near, gain nothing (--force goes on)"
        }
        "stays_small" => {
            "it asks for small objects again and again and has too few in use for their place to \
             matter (--force goes on)"
        }
        "no_atlas" => "the atlas cannot be used, or was changed since it was looked at",
        "no_memory" => "there was no memory for its tables",
        other => other,
    }
}

/// Below each process, in the order in which a reader asks.
pub(super) fn report(record: &RunRecord) -> String {
    let mut text = format!(
        "isochrone: mode {}, nearest {}, {} process{}\n",
        record.mode,
        record.near,
        record.processes.len(),
        if record.processes.len() == 1 { "" } else { "es" }
    );
    if let Some(words) = &record.nothing_placed {
        _ = writeln!(text, "  {words}");
        return text;
    }
    if let Some(words) = record.own_allocator {
        _ = writeln!(text, "  the program brings its own allocator: {words}");
    }
    if let Some(calls) = record.malloc_calls_per_s {
        _ = writeln!(text, "  malloc was called {} times a second", fmt::significant(calls, 3));
    }
    match record.pinned_by {
        None => text.push_str(UNBOUND),
        Some(By::Distances) => text.push_str(BY_DISTANCES),
        Some(By::Numbers) => text.push_str(BY_NUMBERS),
    }
    if record.processes.is_empty() {
        text.push_str(
            "  no process left a report: the program may have cleared its environment, or it\n  \
             ran so briefly that it allocated nothing\n",
        );
    }
    let (placed, rest): (Vec<_>, Vec<_>) =
        record.processes.iter().partition(|process| process.placed.objects > 0);
    placed.into_iter().for_each(|process| one(&mut text, process));
    unplaced(&mut text, &rest);
    if let Some(comparison) = &record.compare {
        compared(&mut text, comparison);
    }
    text
}

/// Processes that placed nothing, in as many lines as there are reasons.
fn unplaced(text: &mut String, processes: &[&ProcessRecord]) {
    if processes.is_empty() {
        return;
    }
    let many = if processes.len() == 1 { "process" } else { "processes" };
    _ = writeln!(text, "{} {many} placed nothing", processes.len());
    let mut reasons: BTreeMap<&str, Count> = BTreeMap::new();
    for left in processes.iter().flat_map(|process| &process.delegated) {
        let sum = reasons.entry(&left.reason).or_default();
        sum.objects += left.count.objects;
        sum.bytes += left.count.bytes;
    }
    for (reason, count) in reasons {
        _ = writeln!(text, "  {:<10} {reason}: {}", "delegated", counted(count));
    }
    let slowest = processes.iter().map(|process| process.startup_us).fold(0.0, f64::max);
    _ = writeln!(text, "  {:<10} {} to load at most", "cost", fmt::ns(slowest * 1e3));
}

fn one(text: &mut String, process: &ProcessRecord) {
    let ended =
        if process.ended { "" } else { ", killed or replaced: its last objects are missing" };
    _ = writeln!(text, "process {}{ended}", process.process);
    let mut line = |name: &str, words: String| _ = writeln!(text, "  {name:<10} {words}");
    line("placed", placed(process));
    for class in &process.placed_by_size {
        line("", format!("{} of up to {} B", counted(class.count), class.slot_bytes));
    }
    line("distance", distance(process));
    for left in &process.delegated {
        line("delegated", format!("{}: {}", left.reason, counted(left.count)));
    }
    if process.arena_bytes > 0 {
        line("memory", memory(process));
    }
    if process.inherited_bytes > 0 {
        let bytes = fmt::bytes(process.inherited_bytes);
        line("", format!("{bytes} of the arena from the process that forked it, by no distance"));
    }
    for live in &process.live_by_core {
        let levels = [("LLC", live.llc_ns), ("DRAM", live.dram_ns)];
        let far = levels.into_iter().filter_map(|(level, ns)| Some((level, ns?)));
        let far: String =
            far.map(|(level, ns)| format!(", {level} {} away", fmt::ns(ns))).collect();
        line("live", format!("{} for core {}{far}", fmt::bytes(live.bytes), live.core));
    }
    line("pages", pages(process));
    if knows_none(process) {
        line("", format!("{NO_BASE}: draw a new map"));
    }
    line("drift", drift(process));
    line("cost", cost(process));
}

fn memory(process: &ProcessRecord) -> String {
    format!(
        "arena {}, assigned {}, most in use {}, tables {}",
        fmt::bytes(process.arena_bytes),
        fmt::bytes(process.assigned_bytes),
        fmt::bytes(process.peak_live_bytes),
        fmt::bytes(process.table_bytes)
    )
}

fn pages(process: &ProcessRecord) -> String {
    format!(
        "{} classified in {}, {} demoted",
        fmt::count(process.classified_pages),
        fmt::ns(process.classification_us * 1e3),
        process.demoted_pages
    )
}

fn drift(process: &ProcessRecord) -> String {
    format!(
        "{} changes of base, {} of core, in {} thread{}",
        process.drift_events,
        process.home_changes,
        process.threads,
        if process.threads == 1 { "" } else { "s" }
    )
}

fn cost(process: &ProcessRecord) -> String {
    format!(
        "{} to load, {} to begin; {} slices inside of allocations, the longest {}, {} over 100 µs; \
         memory in {} at most",
        fmt::ns(process.startup_us * 1e3),
        fmt::ns(process.start_us * 1e3),
        process.slices,
        fmt::ns(process.longest_slice_us * 1e3),
        process.long_slices,
        fmt::ns(process.longest_memory_us * 1e3)
    )
}

fn counted(count: Count) -> String {
    format!("{} objects, {}", fmt::count(count.objects), fmt::bytes(count.bytes))
}

fn placed(process: &ProcessRecord) -> String {
    match process.placed_share {
        Some(share) => format!(
            "{}: {} of the {} that could be placed",
            counted(process.placed),
            fmt::percent(share),
            fmt::bytes(process.placeable.bytes)
        ),
        None => "nothing: there was nothing that could be placed".to_owned(),
    }
}

fn distance(process: &ProcessRecord) -> String {
    let near = process.near_share.map(|share| format!("{} near", fmt::percent(share)));
    let levels = [("LLC", process.llc), ("DRAM", process.dram)];
    let told = levels.into_iter().filter_map(|(level, found)| {
        let (ours, theirs) = (found.handed_out_ns?, found.oblivious_ns?);
        let against = format!("{} against {} oblivious", fmt::ns(ours), fmt::ns(theirs));
        Some(format!("{level} {against} ({})", fmt::ratio(ours / theirs)))
    });
    let all: Vec<String> = near.into_iter().chain(told).collect();
    if all.is_empty() { "not known of any line".to_owned() } else { all.join("; ") }
}

fn compared(text: &mut String, comparison: &Comparison) {
    let memory = |bytes: Option<u64>| bytes.map_or_else(|| "too little to tell".into(), fmt::bytes);
    let ratio = comparison.rss_ratio.map_or_else(String::new, |r| format!(" ({})", fmt::ratio(r)));
    let seconds = |arm: &str, once: f64| {
        let means = comparison.series.arm(arm).map(|arm| comparison.series.block_means(arm));
        fmt::seconds(means.and_then(|means| isochrone_stats::median(&means)).unwrap_or(once))
    };
    _ = writeln!(
        text,
        "resident memory {} against {} with glibc{ratio}\n\
         time {} against {} with glibc\n\
         {}",
        memory(comparison.with.peak_rss_bytes),
        memory(comparison.without.peak_rss_bytes),
        seconds("with", comparison.with.seconds),
        seconds("without", comparison.without.seconds),
        comparison.words()
    );
}

#[cfg(test)]
mod tests {
    use isochrone_malloc::{REPORT_BYTES, Report};

    use super::*;

    /// What a process leaves whose word 16, why it places no more, is this.
    fn process(places_no_more: u64) -> ProcessRecord {
        let mut bytes = vec![0; REPORT_BYTES];
        bytes[..8].copy_from_slice(b"ISO-RPT\x05");
        bytes[16 * 8..17 * 8].copy_from_slice(&places_no_more.to_le_bytes());
        ProcessRecord::of(&Report::from_bytes(&bytes).expect("a record of this version"))
    }

    #[test]
    fn one_line_says_that_placing_ended_and_why() {
        assert_eq!(ended(&[]), None);
        assert_eq!(ended(&[process(0), process(0)]), None);
        let line = ended(&[process(6)]).expect("a line");
        assert!(line.contains("ended in the process: no base of the atlas"), "{line}");
        let line = ended(&[process(6), process(0), process(5), process(6)]).expect("a line");
        assert!(line.contains("in 3 of 4 processes: the atlas cannot be used"), "{line}");
        assert!(line.contains("; no base") && !line.contains('\n'), "{line}");
    }

    #[test]
    fn one_line_says_that_most_was_placed_by_no_distance() {
        let placed = |bytes, slices, classified_pages| {
            let placed = Count { bytes, ..process(0).placed };
            ProcessRecord { placed, slices, classified_pages, ..process(0) }
        };
        let blind = placed(4096, 200, 0);
        let some = ProcessRecord { peak_live_bytes: 2 << 30, ..placed(4096, 200, 512) };
        assert_eq!(forced(&[placed(4096, 20, 0), placed(0, 200, 3)]), None);
        assert_eq!(forced(&[blind.clone(), placed(8192, 200, 3)]), None);
        let line = forced(&[blind, placed(0, 200, 3)]).expect("a line");
        assert!(line.contains("4 KiB were placed by no distance: no base"), "{line}");
        let line = forced(std::slice::from_ref(&some)).expect("a line");
        assert!(line.contains("4 KiB were placed by no distance: too few pages"), "{line}");
        assert_eq!(forced(&[ProcessRecord { classified_pages: 1 << 19, ..some }]), None);
    }
}
