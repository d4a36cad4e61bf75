//! What this machine offers each lever: the atlas, its grades, and what the system has set. Nothing is measured, and
//! nothing is decided here that another command decides: near lines as `run`, the order of cores as `pin`, regions as
//! `machine --suits`, memory beyond as `tier check`.

use std::process::ExitCode;

use anyhow::Result;
use isochrone_alloc::Mode;
use isochrone_atlas::Atlas;
use isochrone_console::args::PlacementArgs;
use isochrone_console::run::atlas::{self, Found};
use isochrone_console::run::setup::{self, By};
use isochrone_console::written::{Place, each_written, on_stdout, write_to};
use isochrone_distance::Distances;
use isochrone_host::{SysRoot, machine_state, this_machine, total_memory_bytes};
use isochrone_machine::{Machine, spans};
use isochrone_malloc::Pin;
use isochrone_near::gain;
use isochrone_report::fmt;
use isochrone_report::json::{self, Format};
use isochrone_units::{CoreId, Experiment, Grade, Reading};

use super::findings::{AtlasFigures, Figures, Finding, Offer};
use super::{system, words};
use crate::args::AdviseArgs;
use crate::machine::suits::{ONE_REGION, Set, from_words};
use crate::run::judge;
use isochrone_console::output::Terminal;

/// Measures what lacks.
const MAP: &str = "isochrone map";
/// Characters of experiments' names that a line of a terminal has room for.
const NAMES: usize = 22;

/// Runs `advise` without a program.
pub(super) fn run(args: &AdviseArgs, terminal: &Terminal) -> Result<ExitCode> {
    let places = Place::open_all([args.html.asked(), args.json.asked()])?;
    let alone = on_stdout(&places);
    let [html, json] = places;
    let root = SysRoot::live();
    let known = atlas::known(args.atlas.as_deref(), terminal)?;
    let machine = match &known {
        Some(found) => found.contents.machine.clone(),
        None => this_machine(&root)?,
    };
    let figures = figures(known.as_ref(), &machine, &root)?;
    let said = if args.long { words::long } else { words::text };
    each_written([
        if alone { Ok(()) } else { terminal.say(&said(&figures, terminal.width)) },
        write_to(html, terminal, || Ok(words::page(&figures).render())),
        write_to(json, terminal, || Ok(json::pretty(Format::Advise, &figures)?)),
    ])?;
    Ok(ExitCode::SUCCESS)
}

/// What the machine offers each lever.
pub(super) fn figures(found: Option<&Found>, machine: &Machine, root: &SysRoot) -> Result<Figures> {
    let by_distance = match found {
        Some(found) => by_atlas(found, &setup::cores(&found.contents)?)?,
        None => without_atlas(machine),
    };
    Ok(with_system(by_distance, found, machine, root))
}

/// The same with the levers that go by no distance.
pub(super) fn with_system(
    mut levers: Vec<Finding>,
    found: Option<&Found>,
    machine: &Machine,
    root: &SysRoot,
) -> Figures {
    let state = machine_state(root);
    let bytes = total_memory_bytes(root).into_iter().chain(state.memory_max_bytes).min();
    levers.push(system::beyond_memory(bytes));
    levers.push(system::page_sizes(&state));
    let lacking = lacking(found);
    Figures {
        machine: machine.title.clone(),
        atlas: found.map(|found| AtlasFigures {
            file: found.path.display().to_string(),
            complete: found.contents.complete,
            grade: found.contents.quality.values().map(|graded| graded.grade).min(),
        }),
        summary: words::summary(&levers),
        lacks: lacking.as_ref().map(Lacking::whole),
        lacks_briefly: lacking.as_ref().map(Lacking::briefly),
        levers,
    }
}

/// The levers that go by distances.
pub(super) fn by_atlas(found: &Found, cores: &[CoreId]) -> Result<Vec<Finding>> {
    let atlas = found.atlas.atlas()?;
    Ok(vec![
        near_lines(found, cores)?,
        core_order(&atlas, cores),
        regions(&atlas, &found.contents.machine, cores),
        collectives(&atlas, cores),
    ])
}

/// The same where nothing is known of distances.
pub(super) fn without_atlas(machine: &Machine) -> Vec<Finding> {
    let unknown = |lever| Finding::new(lever, Offer::Unknown, "not measured").command(MAP);
    let one_core = machine.cores.len() < 2;
    let alone = |lever| if one_core { one_core_alone(lever) } else { unknown(lever) };
    let regions = if machine.regions.len() < 2 { one_region() } else { unknown("regions") };
    vec![unknown("near lines"), alone("core order"), regions, alone("collectives")]
}

fn one_core_alone(lever: &'static str) -> Finding {
    Finding::new(lever, Offer::Nothing, "one core: there is nobody to be near to")
        .briefly("one core")
}

fn one_region() -> Finding {
    Finding::new("regions", Offer::Nothing, ONE_REGION).briefly("one region")
}

/// The decision of `isochrone run`.
fn near_lines(found: &Found, cores: &[CoreId]) -> Result<Finding> {
    let policy = setup::policy(Mode::Aware, &PlacementArgs::default(), &found.contents);
    let judged = judge::of(found, &policy, cores)?;
    // What noise alone promises as well is not known to be there.
    let is_noise =
        judged.predicted_gain.is_some_and(|of| of >= gain::LEAST && of < judged.least_gain);
    let is_known =
        judged.predicted_gain.is_some() && !is_noise && judged.grade.as_deref() != Some("unusable");
    let offer = match (judged.places, is_known) {
        (true, _) => Offer::Gain,
        (false, true) => Offer::Nothing,
        (false, false) => Offer::Unknown,
    };
    let mut finding =
        Finding::new("near lines", offer, judged.why.replace(": nothing is placed, since ", ": "))
            .briefly(judged.against);
    if let Some(gain) = judged.predicted_gain {
        finding = finding.number(f64::from(gain), "times faster", Some(Reading::Predicted));
    }
    Ok(match offer {
        Offer::Gain => finding
            .briefly(format!("predicted gain {:.2}", judged.predicted_gain.unwrap_or(1.0)))
            .command("isochrone run -- CMD"),
        Offer::Unknown => finding.command(MAP),
        Offer::Depends | Offer::Nothing => finding,
    })
}

/// What a line takes from core to core: the least and the most of all pairs, ns, with the reading.
fn transfers(atlas: &Atlas<'_>, cores: &[CoreId]) -> Option<(f64, f64, Reading)> {
    let mut seen: Option<(f64, f64, Reading)> = None;
    for (at, owner) in cores.iter().enumerate() {
        for asker in &cores[at + 1..] {
            let Some(costs) = atlas.line_costs(*owner, *asker) else { continue };
            let ns = costs.transfer.value;
            let (lo, hi, _) = seen.unwrap_or((ns, ns, costs.transfer.reading));
            seen = Some((lo.min(ns), hi.max(ns), costs.transfer.reading));
        }
    }
    seen
}

/// Why nothing is known of lines between cores.
fn no_transfers(lever: &'static str, atlas: &Atlas<'_>) -> Finding {
    let unusable = atlas.quality(Experiment::Transfer) == Some(Grade::Unusable);
    let (what, briefly) = if unusable {
        ("line transfers are graded unusable in this atlas", "graded unusable")
    } else {
        ("the atlas has no line transfers", "not in this atlas")
    };
    Finding::new(lever, Offer::Unknown, what).briefly(briefly).command(MAP)
}

/// The order of `isochrone pin` and `run --pin`.
fn core_order(atlas: &Atlas<'_>, cores: &[CoreId]) -> Finding {
    const LEVER: &str = "core order";
    if cores.len() < 2 {
        return one_core_alone(LEVER);
    }
    let Some((lo, hi, reading)) = transfers(atlas, cores) else {
        return no_transfers(LEVER, atlas);
    };
    let binding = setup::binding(Pin::Compact, cores.to_vec(), atlas);
    if binding.by != Some(By::Distances) {
        let what = format!(
            "{} cores, all about equally far from one another: a line takes {} ({reading})",
            cores.len(),
            between(lo, hi)
        );
        return Finding::new(LEVER, Offer::Nothing, what)
            .briefly(format!("{} cores, all about equally far", cores.len()))
            .number(hi, "ns", Some(reading));
    }
    let group = near_group(atlas, &binding.cores);
    let what = format!(
        "{} cores in groups: a line takes {} from core to core ({reading}); {group} of them are near one another",
        cores.len(),
        between(lo, hi)
    );
    Finding::new(LEVER, Offer::Depends, what)
        .briefly(format!("{group} of {} near", cores.len()))
        .number(hi / lo, "times as far", Some(reading))
        .command(format!("eval \"$(isochrone pin {group} --form taskset) CMD\""))
}

/// How many cores the outermost group has that does not hold all of them, by the core that is filled first.
pub(super) fn near_group(on: &dyn Distances, in_order: &[CoreId]) -> usize {
    let together = |level| {
        let first = on.group(level, in_order[0]);
        in_order
            .iter()
            .take_while(|core| first.is_some() && on.group(level, **core) == first)
            .count()
    };
    (0..on.levels()).map(together).filter(|count| *count < in_order.len()).max().unwrap_or(1).max(1)
}

fn between(lo: f64, hi: f64) -> String {
    let (low, high) = (fmt::ns(lo), fmt::ns(hi));
    if low == high { low } else { format!("{low} to {high}") }
}

/// What `machine --suits` says of all cores.
fn regions(atlas: &Atlas<'_>, machine: &Machine, cores: &[CoreId]) -> Finding {
    const LEVER: &str = "regions";
    if machine.regions.len() < 2 {
        return one_region();
    }
    let set = Set::of(atlas, machine, cores);
    let Some(first) = set.with_turns.first() else {
        let what = "the atlas lacks latency and bandwidth of two regions";
        return Finding::new(LEVER, Offer::Unknown, what)
            .briefly("not measured")
            .command("isochrone map --only region,bandwidth");
    };
    let mut what = format!("{} for accesses that wait for one another", first.words());
    let mut finding = Finding::new(LEVER, Offer::Depends, "");
    let mut briefly = format!("region {} for all", first.spans());
    if let Some(last) = set.with_turns.iter().skip(1).next_back() {
        what += &format!(", {} {}", last.words(), from_words(&last.from_lines, cores.len()));
        briefly = format!("latency: {}, bandwidth: {}", first.spans(), last.spans());
        finding =
            finding.number(last.from_lines.value, "lines under way", Some(Reading::Predicted));
    } else {
        what += ", and for many at a time";
    }
    Finding { what: format!("{what} (predicted)"), briefly, ..finding }
        .command(format!("isochrone pin {} --memory", cores.len()))
}

/// Ranks of an MPI program that share this machine.
fn collectives(atlas: &Atlas<'_>, cores: &[CoreId]) -> Finding {
    const LEVER: &str = "collectives";
    if cores.len() < 2 {
        return one_core_alone(LEVER);
    }
    let Some((lo, hi, reading)) = transfers(atlas, cores) else {
        return no_transfers(LEVER, atlas);
    };
    let what = format!(
        "MPI programs alone, with small messages and a core for each rank: a line takes {} between cores ({reading})",
        between(lo, hi)
    );
    Finding::new(LEVER, Offer::Depends, what)
        .briefly("small MPI messages")
        .number(hi, "ns", Some(reading))
        .command(format!("isochrone run --mpi -- mpirun -n {} CMD", cores.len()))
}

/// Why an atlas does not say all, and what mends that.
enum Lacking {
    /// There is none.
    All,
    /// These experiments are graded unusable.
    Unusable(Vec<&'static str>),
    /// These were measured beside other work.
    Disturbed(Vec<&'static str>),
    /// The map was ended early.
    End,
    /// These cores may be used and are not in it.
    Cores(Vec<u16>),
}

impl Lacking {
    fn whole(&self) -> String {
        let again = |names: &[&str], how: &str| {
            format!(
                "{} of this atlas: {how}; measure again on a quiet machine with `{MAP}`",
                names.join(", ")
            )
        };
        match self {
            Self::All => format!("{} (`isochrone map --quick`: 10 s)", atlas::NONE),
            Self::Unusable(names) => again(names, "graded unusable, and counted as not measured"),
            Self::Disturbed(names) => again(names, "measured beside other work"),
            Self::End => format!("the map of this atlas was ended early; `{MAP}` measures all"),
            Self::Cores(cores) => {
                format!("the atlas does not know cores {}; `{MAP}` measures all", spans(cores))
            }
        }
    }

    /// The same in a line of a terminal.
    fn briefly(&self) -> String {
        let some = |names: &[&str]| {
            Some(names.join(", "))
                .filter(|all| all.len() <= NAMES)
                .unwrap_or_else(|| words::several(names.len(), "experiment", "experiments"))
        };
        match self {
            Self::All => {
                "no atlas of this machine; measure one in 10 s: isochrone map --quick".to_owned()
            }
            Self::Unusable(names) => {
                format!("{} graded unusable; again on a quiet machine: {MAP}", some(names))
            }
            Self::Disturbed(names) => {
                format!("{} measured beside other work; again when quiet: {MAP}", some(names))
            }
            Self::End => format!("the map was ended early; measure all: {MAP}"),
            Self::Cores(cores) => {
                let some = words::several(cores.len(), "core", "cores");
                format!("{some} not in the atlas; measure all: {MAP}")
            }
        }
    }
}

fn lacking(found: Option<&Found>) -> Option<Lacking> {
    let Some(found) = found else { return Some(Lacking::All) };
    let contents = &found.contents;
    let of = |grade| -> Vec<&'static str> {
        let graded = contents.quality.iter().filter(move |(_, graded)| graded.grade == grade);
        graded.map(|(experiment, _)| experiment.name()).collect()
    };
    let (unusable, disturbed) = (of(Grade::Unusable), of(Grade::Disturbed));
    if !unusable.is_empty() {
        return Some(Lacking::Unusable(unusable));
    }
    if !disturbed.is_empty() {
        return Some(Lacking::Disturbed(disturbed));
    }
    if !contents.complete {
        return Some(Lacking::End);
    }
    cores_unknown(found).map(Lacking::Cores)
}

/// Cores that this process may use and the atlas does not know.
fn cores_unknown(found: &Found) -> Option<Vec<u16>> {
    let allowed = setup::allowed_cores().ok()?;
    let unknown: Vec<u16> = allowed
        .iter()
        .filter(|core| found.contents.machine.core(**core).is_none())
        .map(|core| core.0)
        .collect();
    (!unknown.is_empty()).then_some(unknown)
}

#[cfg(test)]
mod tests {
    use isochrone_distance::Unknown;

    use super::*;

    /// Cores in groups of two, and these in groups of four.
    struct Nested;

    impl Distances for Nested {
        fn levels(&self) -> usize {
            2
        }

        fn group(&self, level: usize, core: CoreId) -> Option<u16> {
            Some(core.0 / [2, 4][level])
        }
    }

    #[test]
    fn the_near_group_is_the_largest_that_does_not_hold_all() {
        let cores = |count: u16| (0..count).map(CoreId).collect::<Vec<_>>();
        assert_eq!(near_group(&Nested, &cores(8)), 4);
        assert_eq!(near_group(&Nested, &cores(4)), 2, "four cores are one group");
        assert_eq!(near_group(&Unknown, &cores(4)), 1);
    }

    #[test]
    fn nothing_here_comes_first_where_nothing_is_promised() {
        let of = |offers: &[Offer]| {
            let levers: Vec<Finding> =
                offers.iter().map(|offer| Finding::new("x", *offer, "")).collect();
            words::summary(&levers)
        };
        assert!(of(&[Offer::Nothing, Offer::Depends]).starts_with("Nothing here for you"));
        assert!(of(&[Offer::Nothing, Offer::Depends]).ends_with("depends on the program with x."));
        assert!(of(&[Offer::Gain, Offer::Unknown]).starts_with("A gain is predicted by x"));
        assert!(of(&[Offer::Nothing, Offer::Unknown]).starts_with("Nothing is known of x"));
    }
}
