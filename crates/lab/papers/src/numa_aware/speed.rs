//! Rows of the judging list about time.

use isochrone_tasks::Regime;
use isochrone_workloads::numa::{Bench, Variant};

use super::paper::{
    AGAINST_DFT, AGAINST_DI, Change, DFT_AT_MOST, DI_PEAKS, JACOBI_NAFT, NAFT_PEAKS, THREADS,
};
use super::rows::{explained, moved_by};
use super::runs::{ALL_THREADS, Runs};
use crate::exhibit::Tests;
use crate::row::{Accepts, Cell, Row};

/// All rows about time.
pub(super) fn rows(runs: &Runs) -> Vec<Row> {
    vec![
        table_3(runs, "J9", &AGAINST_DFT, Regime::Dft),
        table_3(runs, "J10", &AGAINST_DI, Regime::Di),
        naft_peaks(runs),
        other_shapes(runs),
        jacobi(runs),
        di_over_dft(runs),
        dft_over_dft(runs),
    ]
}

fn seconds_ratio(
    runs: &Runs,
    bench: Bench,
    pair: [Regime; 2],
    change: Option<Variant>,
) -> Option<f64> {
    runs.ratio(bench, pair, ALL_THREADS, change, |record| record.seconds)
}

fn table_3(runs: &Runs, id: &str, table: &[Change], against: Regime) -> Row {
    let pair = [against, Regime::Naft];
    let mut moves = Vec::new();
    let cells = table.iter().map(|row| {
        let by = match (against, row.bench) {
            (Regime::Dft, Bench::Streamcluster) | (Regime::Di, Bench::Jacobi) => 1.6,
            _ => 1.3,
        };
        let ours = seconds_ratio(runs, row.bench, pair, None);
        let cell = Cell::factor(row.bench.title(), row.speedup, ours, by);
        if cell.pass == Some(false) {
            let figure = |runs: &Runs, change| seconds_ratio(runs, row.bench, pair, change);
            moves.push(moved_by(runs, &cell, row.bench, figure));
        }
        cell
    });
    let cells = cells.collect();
    let what = format!("speed-up of NAFT over {} at 288", against.name().to_uppercase());
    let tolerance = match against {
        Regime::Dft => "factor 1.3; streamcluster 1.6",
        _ => "factor 1.3; Jacobi 1.6",
    };
    explained(Row::new(id, Tests::OutOfSample, &what, tolerance, cells).named(), &moves)
}

fn naft_peaks(runs: &Runs) -> Row {
    let mut cells = Vec::new();
    for (bench, height, threads) in NAFT_PEAKS {
        let (ours, at) = runs.peak(bench, Regime::Naft).unzip();
        cells.push(Cell::within(bench.title(), height, ours, 0.25 * height));
        let at = at.map(f64::from);
        cells.push(Cell::within(format!("{bench} at"), f64::from(threads), at, 32.0));
    }
    Row::new(
        "J14",
        Tests::OutOfSample,
        "Figure 2: peak of NAFT over DFT with 16 threads, and where",
        "25 %, one step of 32",
        cells,
    )
    .named()
}

fn other_shapes(runs: &Runs) -> Row {
    let mut cells = Vec::new();
    for (bench, height, threads) in DI_PEAKS {
        let (ours, at) = runs.peak(bench, Regime::Di).unzip();
        if bench == Bench::Jacobi {
            cells.push(Cell::new(
                "jacobi di at most",
                Some(height),
                ours,
                Accepts::at_most(1.25 * height),
            ));
        } else if height.is_finite() {
            cells.push(Cell::within(format!("{bench} di"), height, ours, 0.25 * height));
        }
        if let Some(threads) = threads {
            let at = at.map(f64::from);
            cells.push(Cell::within(format!("{bench} di at"), f64::from(threads), at, 32.0));
        }
    }
    for (bench, most) in DFT_AT_MOST {
        let ours = runs.peak(bench, Regime::Dft).map(|peak| peak.0);
        cells.push(Cell::new(
            format!("{bench} dft at most"),
            Some(most),
            ours,
            Accepts::at_most(1.25 * most),
        ));
    }
    for bench in [Bench::Cholesky, Bench::Smi] {
        let at = |threads| runs.speedup(bench, Regime::Dft, threads);
        let later = THREADS.into_iter().filter(|t| *t > 32).filter_map(at).reduce(f64::max);
        let gain = at(32).zip(later).map(|(early, later)| later / early);
        cells.push(Cell::new(
            format!("{bench} dft beyond 32"),
            Some(1.0),
            gain,
            Accepts::at_most(1.25),
        ));
    }
    Row::new(
        "J15",
        Tests::OutOfSample,
        "Figure 2: peaks of DI and where; the most of DFT; DFT beyond 32 over at 32",
        "25 %, one step",
        cells,
    )
    .named()
}

fn jacobi(runs: &Runs) -> Row {
    let cells = JACOBI_NAFT.iter().map(|(threads, paper)| {
        let ours = runs.speedup(Bench::Jacobi, Regime::Naft, *threads);
        Cell::within(threads.to_string(), *paper, ours, 0.2 * paper)
    });
    Row::new(
        "J16",
        Tests::OutOfSample,
        "Jacobi, NAFT at 16, 96, 288 over DFT with 16",
        "20 %",
        cells.collect(),
    )
    .named()
}

fn di_over_dft(runs: &Runs) -> Row {
    let papers = [3.75, 3.73, 1.64, 0.98, 1.97];
    let cells = Bench::ALL.into_iter().zip(papers).map(|(bench, paper)| {
        let ours = seconds_ratio(runs, bench, [Regime::Dft, Regime::Di], None);
        let by = match bench {
            Bench::Cholesky | Bench::Smi => 0.15 * paper,
            Bench::Jacobi => 0.1,
            _ => 0.3 * paper,
        };
        Cell::within(bench.title(), paper, ours, by)
    });
    Row::new(
        "J19",
        Tests::OutOfSample,
        "speed-up of DI over DFT at 288",
        "15 % solvers, 0.1 Jacobi, 30 %",
        cells.collect(),
    )
    .named()
    .note("derived from Table 3: J9 over J10")
}

fn dft_over_dft(runs: &Runs) -> Row {
    let papers = [0.78, 0.72, 1.59, 1.84, 1.03];
    let cells = Bench::ALL.into_iter().zip(papers).map(|(bench, paper)| {
        let ours = runs.speedup(bench, Regime::Dft, ALL_THREADS);
        let solver = matches!(bench, Bench::Cholesky | Bench::Smi);
        let most = if solver { f64::min(1.3 * paper, 1.0_f64.next_down()) } else { 1.3 * paper };
        Cell::new(bench.title(), Some(paper), ours, Accepts::between(0.7 * paper, most))
    });
    Row::new(
        "J19b",
        Tests::OutOfSample,
        "DFT with 288 threads over DFT with 16",
        "30 %; solvers below 1",
        cells.collect(),
    )
    .named()
    .note("derived from Table 3 and Figure 2")
}
