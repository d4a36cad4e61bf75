//! The reproduction as text, figure after figure. Returns text and never prints.

use std::fmt::Write as _;

use isochrone_report::lines::wrapped;
use isochrone_report::term::{self, Colour};
use isochrone_workloads::figure4::{Curve, PUBLISHED, Placing};

use super::{Ends, Reproduction, chip, extent, learnt, rows, shape, tables};
use crate::latency_checker::terminal::{NO_ATLAS, blocks_strip};
use crate::latency_checker::words::signed;

pub(super) const INTRODUCTION: &str = "Figures of \"Exploiting Hidden Non-uniformity of Uniform \
    Memory Access on Manycore CPUs\" (Euro-Par 2014 Workshops). Figures 1 and 3 are drawings. \
    Measured numbers are of this machine; simulated ones are of the paper's, a Xeon Phi 5110P \
    with 60 in-order cores, on which nothing was measured here.";
pub(super) const FIGURE_2: &str = "Figure 2: latency of consecutive blocks of memory as seen from \
    several cores, relative to the fastest access.";
pub(super) const FIGURE_4A: &str = "Figure 4a: nodes that A* explores in unit time with near \
    lines, over those with lines at random, by number of cores. Simulated: the allocator and the \
    searches are real, memory and caches are modelled. Mean, least and most over runs; beside them \
    one run with the least and one with the most that a hop on the ring is assumed to cost, which \
    nobody published. The figure's own hop follows from the paper's 60 %.";
pub(super) const READINGS: &str = "Figure 4a by every reading. The 60 % are the most over all pairs of cores, or of \
    the pair that the text names; the order of stops on the ring is the machine file's, or drawn. Nodes lie on the \
    lists of the paper, where each line belongs to the core that is nearest to it of those that take part, or on \
    the nearest quarter. One run each.";
pub(super) const FIGURE_4B: &str = "Figure 4b: read accesses of core 0 that miss its caches, for \
    each node expanded, simulated. Published: \"approximately the same regardless the underlying \
    memory allocator\".";
pub(super) const LEARNT: &str = "As learnt, beside the oracle. Simulated, all of it: the block \
    experiment of `isochrone map` and its decoder look at the modelled memory through a noisy clock, \
    and nodes lie where that says. The oracle knows the truth; both take the nearest lines first. \
    Near: nodes on the nearest quarter of the lines of their core, by truth. Time: cycles over those \
    with any lines. Medians over runs, each with other frames and noise, and intervals of 95 %; the \
    goal is 0.9 of the oracle's gain. Codes alone: the part of its near nodes with learnt codes \
    and true bases of cores. A/A control: any lines by another seed, over any lines.";
pub(super) const NOT_COUNTED: &str = "Figure 4b is not measured on this machine: it needs a \
    counter of cache misses.";
pub(super) const NO_BENCH: &str = "A* on this machine: no result was named; measure one with \
    `isochrone bench astar --json astar.json` and give it with --bench astar.json.";
pub(super) const BENCHED: &str = "A* on this machine, measured by `isochrone bench astar`: not \
    the paper's machine, and its cores run out of order, which hides part of a latency.";

/// The reproduction as text of at most `width` characters.
pub(super) fn to_terminal(all: &Reproduction, colour: Colour, width: u16) -> String {
    let mut out = String::new();
    let prose = |out: &mut String, text: &str| {
        _ = writeln!(out, "{}\n", wrapped(text, width.into(), 0));
    };
    prose(&mut out, INTRODUCTION);
    prose(&mut out, FIGURE_2);
    _ = writeln!(out, "{}\n", tables::figure2(all).to_terminal(width));
    if all.measured.is_none() {
        prose(&mut out, NO_ATLAS);
    }
    for blocks in all.blocks() {
        _ = writeln!(out, "{}\n", term::strip(&blocks_strip(blocks), colour, width.into()));
    }
    for of in &all.chip {
        let blocks = chip::blocks(of);
        prose(&mut out, &format!("{}:", blocks.what));
        _ = writeln!(out, "{}\n", term::strip(&blocks_strip(&blocks), colour, width.into()));
    }
    prose(&mut out, FIGURE_4A);
    for (curve, ends) in all.curves() {
        let table = tables::gains(curve, ends).to_terminal(width);
        _ = writeln!(out, "{}\n{table}\n", shape(curve));
    }
    prose(&mut out, READINGS);
    _ = writeln!(out, "{}\n", tables::readings(all).to_terminal(width));
    prose(&mut out, FIGURE_4B);
    for curve in &all.simulated.curves {
        _ = writeln!(out, "{}\n{}\n", shape(curve), tables::misses(curve).to_terminal(width));
    }
    prose(&mut out, LEARNT);
    _ = writeln!(out, "{}\n", tables::knowledge(all).to_terminal(width));
    for curve in &all.learning.curves {
        let table = tables::learnt(curve).to_terminal(width);
        _ = writeln!(out, "{}\n{table}\n", extent(curve.search));
    }
    prose(&mut out, "What the simulation rests on.");
    _ = writeln!(out, "{}\n", tables::constants(all).to_terminal(width));
    prose(&mut out, "What each assumption is worth, one run each.");
    _ = writeln!(out, "{}\n", tables::variations(all).to_terminal(width));
    match &all.benched {
        Some(benched) => {
            prose(&mut out, BENCHED);
            _ = writeln!(out, "{}\n", tables::benched(benched).to_terminal(width));
        }
        None => prose(&mut out, NO_BENCH),
    }
    prose(&mut out, NOT_COUNTED);
    for sentence in summary(all) {
        prose(&mut out, &sentence);
    }
    out.trim_end().to_owned() + "\n"
}

/// What was found, a sentence a curve.
pub(super) fn summary(all: &Reproduction) -> Vec<String> {
    let of = |(curve, ends): (&Curve, Option<Ends<'_>>)| {
        sentence(curve).into_iter().chain(ends.and_then(|ends| ends_sentence(curve, ends)))
    };
    let learnt = learnt::sentences(&all.learning, |curve| extent(curve.search));
    let headline = (0..all.simulated.curves.len()).filter_map(|shape| interval(all, shape));
    headline.chain(all.curves().flat_map(of)).chain(learnt).collect()
}

/// The headline of a shape: from which gain to which, over all readings, at each number of cores.
fn interval(all: &Reproduction, shape: usize) -> Option<String> {
    let curve = all.simulated.curves.get(shape)?;
    let percent = |gain: f64| signed(100.0 * gain, 1);
    let of = |cores: &u16| {
        let [least, most] = all.readings.interval(shape, *cores, Placing::Lists)?;
        Some(format!("{} to {} % at {cores}", percent(least), percent(most)))
    };
    let all_of_them: Vec<String> = all.readings.cores.iter().filter_map(of).collect();
    (!all_of_them.is_empty()).then(|| {
        format!(
            "{}, the paper's lists, over {} chips (both readings of the 60 %, orders of stops; {} more contradict \
             their reading): {}; published 17 % at 12 and 20, 28 % at 56.",
            rows::word(curve),
            all.readings.runs.len(),
            all.readings.contradicted,
            all_of_them.join(", ")
        )
    })
}

/// Whether the published gains lie between those of the cheapest and the dearest hop.
fn ends_sentence(curve: &Curve, ends: Ends<'_>) -> Option<String> {
    let verdict = match ends.hold_published(curve)? {
        true => "the published gains lie between these",
        false => "the published gains do not lie between these at every number of cores named",
    };
    let least = ends.gains.iter().map(|gain| gain[0]).fold(f64::INFINITY, f64::min);
    let most = ends.gains.iter().map(|gain| gain[1]).fold(f64::NEG_INFINITY, f64::max);
    Some(format!(
        "{}: with the assumed range of a hop, {} to {} cycles, simulated gains go from {} to {} %: \
         {verdict}.",
        shape(curve),
        ends.hop_cycles[0],
        ends.hop_cycles[1],
        signed(100.0 * least, 1),
        signed(100.0 * most, 1),
    ))
}

fn sentence(curve: &Curve) -> Option<String> {
    let gain = |at: &&isochrone_workloads::figure4::Point| at.gain().0;
    let least = curve.points.iter().min_by(|a, b| gain(a).total_cmp(&gain(b)))?;
    let most = curve.points.iter().max_by(|a, b| gain(a).total_cmp(&gain(b)))?;
    let percent = |gain: f64| format!("{} %", signed(100.0 * gain, 1));
    let (low, high) = (least.gain().0, most.gain().0);
    let inside = low >= PUBLISHED.lowest - 0.005 && high <= PUBLISHED.highest + 0.005;
    let verdict = if inside {
        "all of it lies in the published range"
    } else if high < PUBLISHED.lowest || low > PUBLISHED.highest {
        "none of it lies in the published range"
    } else {
        "part of it lies outside of the published range"
    };
    Some(format!(
        "{}: simulated {} at {} cores to {} at {}; published 17 % (12 and 20 cores) to 28 % \
         (56 cores); {verdict}.",
        shape(curve),
        percent(low),
        least.cores,
        percent(high),
        most.cores
    ))
}
