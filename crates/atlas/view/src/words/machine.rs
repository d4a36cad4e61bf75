//! Which machine was measured, in which state, by which clock.

use isochrone_atlas_store::contents::{Clock, Contents};
use isochrone_machine::{CacheKind, Machine, MachineState, strides};
use isochrone_report::fmt;
use isochrone_units::CoreId;

use super::counted;

/// What the machine calls itself; a name where it has no title.
pub(crate) fn title(machine: &Machine) -> String {
    let words = [&machine.title, &machine.name];
    words.into_iter().find(|w| !w.is_empty()).map_or("unnamed machine", String::as_str).to_owned()
}

/// Its reading, with `"incomplete"` where it is.
pub(crate) fn mark(contents: &Contents) -> String {
    let mut mark = contents.reading.to_string();
    if let Some(worst) = contents.quality.values().map(|graded| graded.grade).min() {
        mark += &format!(", {worst}");
    }
    if !contents.complete {
        mark += ", incomplete";
    }
    mark
}

/// Cores, memory and caches.
pub(crate) fn parts(machine: &Machine) -> String {
    if machine.cores.is_empty() && machine.regions.is_empty() {
        return "Its cores and regions are not recorded.".to_owned();
    }
    let regions = counted(machine.regions.len(), "region");
    let memory = memory_bytes(machine).map_or_else(
        || format!("{regions} of unknown size"),
        |bytes| format!("{regions} of memory, {} in all", fmt::bytes(bytes)),
    );
    let mut parts = vec![counted(machine.cores.len(), "core"), memory];
    parts.extend(caches(machine));
    parts.join("; ") + "."
}

fn memory_bytes(machine: &Machine) -> Option<u64> {
    let sum = || machine.regions.iter().map(|r| r.bytes).sum::<Option<u64>>().filter(|b| *b > 0);
    machine.memory_bytes.or_else(sum)
}

/// The caches that the first core looks into for data.
fn caches(machine: &Machine) -> Option<String> {
    let first = machine.cores.first()?.id;
    let of_data = |level| machine.cache(CoreId(first), level);
    let words: Vec<String> = (1..=4)
        .filter_map(of_data)
        .filter(|cache| cache.kind != CacheKind::Instruction)
        .filter_map(|cache| {
            let shared = match cache.shared_by.len() {
                0 | 1 => String::new(),
                n => format!(" shared by {n} cores"),
            };
            Some(format!("L{} {}{shared}", cache.level, fmt::bytes(cache.bytes?)))
        })
        .collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// Hypervisor, kernel, pages.
pub(crate) fn state(contents: &Contents) -> String {
    let Some(state) = &contents.state else {
        return "The state of the machine is not recorded.".to_owned();
    };
    let host = state
        .hypervisor
        .as_ref()
        .map_or("No hypervisor is named".to_owned(), |name| format!("Under {name}"));
    let kernel = state.kernel.as_ref().map(|kernel| format!("kernel {kernel}"));
    let pages = huge_pages(state);
    let governor = governors(state).map(|name| format!("governor {name}"));
    let parts: Vec<String> = [Some(host), kernel, pages, governor].into_iter().flatten().collect();
    super::sentence(&parts.join("; "))
}

/// The state of a machine, a row for each thing that is told; `None` is what is not set or could not be read.
#[must_use]
pub fn state_rows(state: &MachineState) -> Vec<(&'static str, Option<String>)> {
    let yes = |set: bool| if set { "yes" } else { "no" }.to_owned();
    let load = |l: [f64; 3]| l.map(|v| format!("{v:.2}")).join(", ");
    let isolated = match state.isolated_cores.as_slice() {
        [] => "none".to_owned(),
        cores => strides(cores),
    };
    vec![
        ("hypervisor", state.hypervisor.clone()),
        ("kernel", state.kernel.clone()),
        ("microcode", state.microcode.clone()),
        ("clock source", state.clocksource.clone()),
        ("frequency governor", governors(state)),
        ("turbo", state.turbo.map(yes)),
        ("huge pages", huge_pages(state)),
        ("kernel moves pages by itself", state.autonuma.map(yes)),
        ("isolated cores", Some(isolated)),
        ("cores allowed", state.allowed_cores.as_deref().map(strides)),
        ("regions allowed", state.allowed_regions.as_deref().map(strides)),
        ("memory limit", state.memory_max_bytes.map(fmt::bytes)),
        ("limit of processor time", state.cpu_quota_cores.map(|c| format!("{c:.2} cores"))),
        ("load averages", state.loadavg.map(load)),
    ]
}

/// What huge pages there are.
pub(crate) fn huge_pages(state: &MachineState) -> Option<String> {
    let pools = state.huge_pages.iter().filter(|pool| pool.total > 0).map(|pool| {
        format!("{} of {} pages of {} free", pool.free, pool.total, fmt::bytes(pool.page_bytes))
    });
    let transparent = state.thp.iter().map(|mode| format!("transparent huge pages: {mode}"));
    let words: Vec<String> = transparent.chain(pools).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// The governors that some core has, each once.
pub(crate) fn governors(state: &MachineState) -> Option<String> {
    let mut names: Vec<&str> =
        state.governors.iter().filter_map(|(_, name)| name.as_deref()).collect();
    names.sort_unstable();
    names.dedup();
    (!names.is_empty()).then(|| names.join(" and "))
}

/// The clock behind all numbers.
pub(crate) fn clock(clock: &Clock) -> String {
    if !(clock.hz.is_finite() && clock.hz > 0.0) {
        return "The clock was not calibrated.".to_owned();
    }
    let tick = f64::from(clock.tick_cycles);
    let plural = if clock.tick_cycles == 1 { "" } else { "s" };
    format!(
        "The clock runs at {} GHz in steps of {tick} cycle{plural} ({}); {} of timer are taken off \
         every sample.",
        fmt::significant(clock.hz / 1e9, 4),
        fmt::ns(clock.ns(tick)),
        fmt::cycles(clock.overhead_cycles),
    )
}

/// How much of the last-level cache the cores get, by what a chase found.
pub(crate) fn llc_shares(contents: &Contents) -> Option<String> {
    let shares: Vec<(u16, u64)> =
        contents.llc_shares.iter().filter_map(|share| Some((share.core, share.bytes?))).collect();
    let (core, least) = *shares.iter().min_by_key(|share| share.1)?;
    let listed = contents.machine.last_level_cache(CoreId(core)).and_then(|cache| cache.bytes);
    let of = listed.map_or(String::new(), |bytes| format!(" of the {} listed", fmt::bytes(bytes)));
    Some(format!(
        "A random chase from core {core} finds half of its lines in memory from {}{of}.",
        fmt::bytes(least)
    ))
}

/// Which pages the atlas knows.
pub(crate) fn pages(contents: &Contents) -> String {
    let known = contents.pages.len() as u64 * 512;
    if known == 0 {
        return "The atlas holds no page's code: a program decodes its own pages by the patterns."
            .to_owned();
    }
    let bytes = fmt::bytes(known * 4096);
    let (pages, keyed) = (fmt::count(known), &contents.pages_keyed_by);
    format!("The atlas holds the codes of {pages} pages ({bytes}), found by {keyed}.")
}
