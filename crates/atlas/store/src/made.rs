//! Atlases of machines that were made up, for the tests of whoever reads an atlas: nothing was measured.

use crate::contents::{
    Base, Cell, Clock, Contents, CostTerm, Form, LevelMap, Matrix, MultiLineFit, Quality,
    TransferMap,
};
use isochrone_machine::{Core, Machine};
use isochrone_units::Reading;

mod wide;

pub use wide::wide;

/// A number with an interval of 1 to either side.
#[must_use]
pub fn cell(ns: f64) -> Cell {
    Cell { lo: ns - 1.0, hi: ns + 1.0, ..Cell::single(ns) }
}

/// What lines cost between sixteen cores in two halves: `near_ns` within each, `far_ns` from one to the other, and what
/// one more sharer and one more acknowledgement cost.
#[must_use]
pub fn halves(near_ns: f64, far_ns: f64) -> Contents {
    let between = |a: u16, b: u16| Some(if a / 8 == b / 8 { near_ns } else { far_ns });
    lines(16, between, &[("rfo-sharer", 6.0), ("overlapped-ack", 6.0)])
}

/// What lines cost between `cores` cores: a transfer for each pair that `transfer_ns` knows, one fit of several lines
/// (core 3 -> core 4), and terms by their names.
#[must_use]
pub fn lines(
    cores: u16,
    transfer_ns: impl Fn(u16, u16) -> Option<f64>,
    terms: &[(&str, f64)],
) -> Contents {
    let core = |id| Core { id, ..Core::default() };
    let machine = Machine { cores: (0..cores).map(core).collect(), ..Machine::default() };
    let clock = Clock { hz: 2e9, tick_cycles: 1, overhead_cycles: 0.0 };
    let mut contents = Contents::begun(Reading::Measured, machine, clock);
    let names = || (0..cores).map(|core| format!("core {core}")).collect();
    let transfer = |owner: u16, asker: u16| {
        (owner != asker).then(|| transfer_ns(owner, asker)).flatten().map(cell)
    };
    contents.transfers.push(TransferMap {
        state: "modified".into(),
        what: "one way".into(),
        lines: 64,
        latency_ns: Matrix {
            what: "made up".into(),
            rows: names(),
            columns: names(),
            cells: (0..cores)
                .flat_map(|owner| (0..cores).map(move |asker| (owner, asker)))
                .map(|(owner, asker)| transfer(owner, asker))
                .collect(),
        },
        best_line_ns: Vec::new(),
        strata: Vec::new(),
    });
    contents.multiline.push(MultiLineFit {
        what: "core 3 -> core 4".into(),
        q_ns: (10.0, 9.0, 11.0),
        o_ns: (5.0, 4.0, 6.0),
        c_ns: None,
        r2: 0.99,
        points: Vec::new(),
    });
    contents.terms.extend(terms.iter().map(|&(name, ns)| CostTerm {
        name: name.into(),
        what: "made up".into(),
        with_ns: None,
        without_ns: None,
        ns: Some(cell(ns)),
        missing: None,
    }));
    contents
}

/// A level of memory that is equally far from every core of these contents, and every line of it.
#[must_use]
pub fn flat_level(level: &str, mean_ns: f64, contents: &Contents) -> LevelMap {
    let cores = contents.machine.cores.len();
    LevelMap {
        level: level.into(),
        form: Form::Flat,
        reason: "made up".into(),
        method: "made up".into(),
        period: 64,
        classes: 1,
        canonical_key: vec![0; 64],
        bases: vec![Base { core: 0, patterns: vec![vec![100.0; 64]], rounds: 1 }],
        core_base: vec![Some(0); cores],
        probe_lines: Vec::new(),
        noise_cycles: 1.0,
        code_share: Vec::new(),
        quality: vec![Quality { mean_ns: Some(mean_ns), ..Quality::default() }; cores],
        lines: Vec::new(),
        penalties: None,
    }
}
