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
    each_written([
        if alone { Ok(()) } else { terminal.say(&words::text(&figures, terminal.width)) },
        write_to(html, terminal, || Ok(words::page(&figures).render())),
        write_to(json, terminal, || Ok(json::pretty(Format::Advise, &figures)?)),
    ])?;
    Ok(ExitCode::SUCCESS)
}

/// What the machine offers each lever.
pub(super) fn figures(found: Option<&Found>, machine: &Machine, root: &SysRoot) -> Result<Figures> {
    let state = machine_state(root);
    let mut levers = match found {
        Some(found) => by_atlas(found)?,
        None => without_atlas(machine),
    };
    let bytes = total_memory_bytes(root).into_iter().chain(state.memory_max_bytes).min();
    levers.push(system::beyond_memory(bytes));
    levers.push(system::page_sizes(&state));
    Ok(Figures {
        machine: machine.title.clone(),
        atlas: found.map(|found| AtlasFigures {
            file: found.path.display().to_string(),
            complete: found.contents.complete,
            grade: found.contents.quality.values().map(|graded| graded.grade).min(),
        }),
        summary: words::summary(&levers),
        lacks: lacks(found),
        levers,
    })
}

/// The levers that go by distances.
fn by_atlas(found: &Found) -> Result<Vec<Finding>> {
    let cores = setup::cores(&found.contents)?;
    let atlas = found.atlas.atlas()?;
    Ok(vec![
        near_lines(found, &cores)?,
        core_order(&atlas, &cores),
        regions(&atlas, &found.contents.machine, &cores),
        collectives(&atlas, &cores),
    ])
}

/// The same where nothing is known of distances.
fn without_atlas(machine: &Machine) -> Vec<Finding> {
    let unknown = |lever| Finding::new(lever, Offer::Unknown, "not measured").command(MAP);
    let one_core = machine.cores.len() < 2;
    let alone = |lever| if one_core { one_core_alone(lever) } else { unknown(lever) };
    let regions = if machine.regions.len() < 2 {
        Finding::new("regions", Offer::Nothing, ONE_REGION)
    } else {
        unknown("regions")
    };
    vec![unknown("near lines"), alone("core order"), regions, alone("collectives")]
}

fn one_core_alone(lever: &'static str) -> Finding {
    Finding::new(lever, Offer::Nothing, "one core: there is nobody to be near to")
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
        Finding::new("near lines", offer, judged.why.replace(": nothing is placed, since ", ": "));
    if let Some(gain) = judged.predicted_gain {
        finding = finding.number(f64::from(gain), "times faster", Some(Reading::Predicted));
    }
    Ok(match offer {
        Offer::Gain => finding.command("isochrone run -- CMD"),
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
    let what = if unusable {
        "line transfers are graded unusable in this atlas"
    } else {
        "the atlas has no line transfers"
    };
    Finding::new(lever, Offer::Unknown, what).command(MAP)
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
        return Finding::new(LEVER, Offer::Nothing, what).number(hi, "ns", Some(reading));
    }
    let group = near_group(atlas, &binding.cores);
    let what = format!(
        "{} cores in groups: a line takes {} from core to core ({reading}); {group} of them are near one another",
        cores.len(),
        between(lo, hi)
    );
    Finding::new(LEVER, Offer::Depends, what)
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
        return Finding::new(LEVER, Offer::Nothing, ONE_REGION);
    }
    let set = Set::of(atlas, machine, cores);
    let Some(first) = set.with_turns.first() else {
        let what = "the atlas lacks latency and bandwidth of two regions";
        return Finding::new(LEVER, Offer::Unknown, what)
            .command("isochrone map --only region,bandwidth");
    };
    let mut what = format!("{} for accesses that wait for one another", first.words());
    let mut finding = Finding::new(LEVER, Offer::Depends, "");
    if let Some(last) = set.with_turns.iter().skip(1).next_back() {
        what += &format!(", {} {}", last.words(), from_words(&last.from_lines, cores.len()));
        finding =
            finding.number(last.from_lines.value, "lines under way", Some(Reading::Predicted));
    } else {
        what += ", and for many at a time";
    }
    Finding { what: format!("{what} (predicted)"), ..finding }
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
        .number(hi, "ns", Some(reading))
        .command(format!("isochrone run --mpi -- mpirun -n {} CMD", cores.len()))
}

/// Why an atlas does not say all, and what mends that.
fn lacks(found: Option<&Found>) -> Option<String> {
    let Some(found) = found else {
        return Some(format!("{} (`isochrone map --quick`: 10 s)", atlas::NONE));
    };
    let contents = &found.contents;
    let of = |grade| -> Vec<&str> {
        let graded = contents.quality.iter().filter(move |(_, graded)| graded.grade == grade);
        graded.map(|(experiment, _)| experiment.name()).collect()
    };
    let (unusable, disturbed) = (of(Grade::Unusable), of(Grade::Disturbed));
    let again = |names: &[&str], how: &str| {
        format!(
            "{} of this atlas: {how}; measure again on a quiet machine with `{MAP}`",
            names.join(", ")
        )
    };
    if !unusable.is_empty() {
        return Some(again(&unusable, "graded unusable, and counted as not measured"));
    }
    if !disturbed.is_empty() {
        return Some(again(&disturbed, "measured beside other work"));
    }
    let unknown = setup_cores_unknown(found);
    if !contents.complete {
        return Some(format!("the map of this atlas was ended early; `{MAP}` measures all"));
    }
    unknown
}

/// Cores that this process may use and the atlas does not know.
fn setup_cores_unknown(found: &Found) -> Option<String> {
    let allowed = setup::allowed_cores().ok()?;
    let unknown: Vec<u16> = allowed
        .iter()
        .filter(|core| found.contents.machine.core(**core).is_none())
        .map(|core| core.0)
        .collect();
    (!unknown.is_empty())
        .then(|| format!("the atlas does not know cores {}; `{MAP}` measures all", spans(&unknown)))
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
