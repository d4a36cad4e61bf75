//! Atlases of machines that were made up, for the tests of whoever reads an atlas: nothing was measured.

use crate::contents::{Cell, Clock, Contents, CostTerm, Matrix, MultiLineFit, TransferMap};
use isochrone_machine::{Core, Machine};
use isochrone_units::Reading;

/// A number with an interval of 1 to either side.
#[must_use]
pub fn cell(ns: f64) -> Cell {
    Cell { lo: ns - 1.0, hi: ns + 1.0, ..Cell::single(ns) }
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
