//! The reproduction as text. Returns text and never prints.

use std::fmt::Write as _;

use isochrone_report::lines::wrapped;
use isochrone_tasks::Regime;
use isochrone_workloads::numa::Bench;

use super::constants::{FITTED_CELLS, constants_table};
use super::{Reproduction, by_mechanism, tables};
use crate::Shown as _;
use crate::exhibit::headline;

/// What stands above everything.
pub(super) fn head(all: &Reproduction) -> Vec<String> {
    let rules: Vec<&str> = super::runs::NAFT_RULES.iter().map(|rule| rule.says()).collect();
    vec![
        "\"Reducing Cache Coherence Traffic with a NUMA-Aware Runtime Approach\" (Caheny et al., IEEE TPDS 2018), \
         simulated: nothing here was measured on that machine."
            .to_owned(),
        format!(
            "One set of constants for all rows and all benchmarks. Free constants: {}. Cells of the paper that \
             they were fitted on: {}{}. Where the paper leaves NAFT's rules open: {}.",
            all.constants.len(),
            FITTED_CELLS.len(),
            if FITTED_CELLS.is_empty() { String::new() } else { format!(" ({})", FITTED_CELLS.join("; ")) },
            rules.join("; ")
        ),
        format!("{} {} runs.", headline(&all.exhibits()), all.runs.records.len()),
    ]
}

/// The reproduction as text of at most `width` characters.
pub(super) fn to_terminal(all: &Reproduction, width: u16) -> String {
    let mut out = String::new();
    for paragraph in head(all) {
        _ = writeln!(out, "{}\n", wrapped(&paragraph, width.into(), 0));
    }
    let mut part = |title: &str, table: isochrone_report::table::Table| {
        if !table.is_empty() {
            _ = writeln!(out, "{title}\n\n{}\n", table.to_terminal(width));
        }
    };
    part("The judging list", tables::judged(all));
    part("Table 2: ours beside the paper's", tables::table_2(all));
    part("The far link alone, by what bounds it: STREAM Triad, GB/s", all.far_link.clone());
    part(
        "Table 3a: NAFT against DFT, 288 threads, ours (paper's)",
        tables::table_3(&all.runs, Regime::Dft),
    );
    part(
        "Table 3b: NAFT against DI, 288 threads, ours (paper's)",
        tables::table_3(&all.runs, Regime::Di),
    );
    for bench in Bench::ALL {
        part(
            &format!("Figure 2, {}: speed-up over DFT with 16 threads", bench.title()),
            tables::figure_2(&all.runs, bench),
        );
    }
    part("Where data are skewed under DFT, by seed", tables::seeds(&all.runs));
    part("Variants of NAFT at 288 threads", tables::variants(&all.runs));
    for bench in Bench::ALL {
        part(
            &format!("Ablations, {}, 288 threads", bench.title()),
            tables::ablations(&all.runs, bench),
        );
    }
    part("What each mechanism did", by_mechanism::table(&all.rows, &all.mechanisms));
    part("Constants that nobody published", constants_table(&all.constants));
    out.trim_end().to_owned() + "\n"
}
