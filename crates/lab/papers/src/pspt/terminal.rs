//! The reproduction as text. Returns text and never prints.

use std::fmt::Write as _;

use isochrone_report::lines::wrapped;
use isochrone_workloads::pspt::Mode;

use super::{Reproduction, settings, tables};
use crate::Shown as _;
use crate::exhibit::{Exhibit, Tests, headline};

pub(super) const INTRODUCTION: &str = "Figures 6 to 8 and Tables I and II of \"Partially Separated \
    Page Tables for Efficient Operating System Assisted Hierarchical Memory Management on \
    Heterogeneous Architectures\" (CCGrid 2013). Simulated: the pager's directory, policy and \
    drivers are those that run on this machine; the card, a pre-production Xeon Phi with 57 cores, \
    is modelled. The bars of the figures are images; numbers of the paper are from its text.";
pub(super) const FIGURE_6: &str = "Figure 6: cycles of a fault that fetches a page, by part.";
pub(super) const FIGURE_7: &str = "Figure 7: 25 sweeps over 2 GB, with 1 GB of memory.";
pub(super) const TABLES: &str = "Tables I and II: additional time over all data in memory.";
pub(super) const FIGURE_8: &str = "Figure 8: how many of the pages that workers need they had to \
    fetch themselves, with movers; and what the paper does not have.";
pub(super) const ROWS: &str = "Every comparison.";

/// The reproduction as text of at most `width` characters.
pub(super) fn to_terminal(all: &Reproduction, width: u16) -> String {
    let mut out = String::new();
    let prose = |out: &mut String, text: &str| {
        _ = writeln!(out, "{}\n", wrapped(text, width.into(), 0));
    };
    let table = |out: &mut String, table: isochrone_report::table::Table| {
        _ = writeln!(out, "{}\n", table.to_terminal(width));
    };
    prose(&mut out, INTRODUCTION);
    prose(&mut out, FIGURE_6);
    for mode in [Mode::Regular, Mode::Pspt] {
        prose(&mut out, mode.as_str());
        table(&mut out, tables::breakdown(all, mode));
    }
    prose(&mut out, FIGURE_7);
    for (smt, steps) in settings() {
        prose(&mut out, smt.as_str());
        table(&mut out, tables::runtimes(all, smt, steps));
    }
    prose(&mut out, TABLES);
    table(&mut out, tables::overheads(all));
    prose(&mut out, FIGURE_8);
    table(&mut out, tables::prefetching(all));
    prose(&mut out, "What the simulation rests on.");
    table(&mut out, tables::constants(all));
    prose(&mut out, ROWS);
    table(&mut out, tables::verdicts(all));
    for sentence in summary(all) {
        prose(&mut out, &sentence);
    }
    out.trim_end().to_owned() + "\n"
}

/// What was found.
pub(super) fn summary(all: &Reproduction) -> Vec<String> {
    let exhibits = all.exhibits();
    let missed = |e: &&Exhibit| e.tests == Tests::OutOfSample && e.holds == Some(false);
    let names: Vec<&str> = exhibits.iter().filter(missed).map(|e| e.id.as_str()).collect();
    let verdict = match names.len() {
        0 => headline(&exhibits),
        _ => format!("{} These do not: {}.", headline(&exhibits), names.join(", ")),
    };
    vec![
        format!(
            "Arithmetic for a page is {:.0} cycles, fitted on PSPT at 8 cores (38 %).",
            all.simulated.compute
        ),
        verdict,
    ]
}
