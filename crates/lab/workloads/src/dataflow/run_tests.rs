//! The benchmarks on tasks against their references, in every regime.

use isochrone_tasks::live::{Config, Runtime};
use isochrone_tasks::{Regime, TaskError, Topology};

use super::histogram::{self, BINS, Image, Integral};
use super::jacobi::{self, Grid, Grids};
use super::matrix::{Matrix, element};
use super::streamcluster::{Parameters, serial::Serial, stream::cluster, tasks::OnTasks};
use super::{FirstTouch, cholesky, residual, smi};

const SEED: u64 = 77;

fn runtime(regime: Regime, workers: usize) -> Runtime {
    // Two workers on any machine: what is tested are results.
    let mut config = Config::new(regime, workers, Topology::flat(2));
    config.pin = false;
    Runtime::start(config).unwrap()
}

fn in_all_regimes(mut test: impl FnMut(Runtime, FirstTouch)) {
    for regime in Regime::ALL {
        for touch in [FirstTouch::Blocks, FirstTouch::Panels, FirstTouch::Serial] {
            test(runtime(regime, 2), touch);
        }
    }
}

#[test]
fn tiles_lie_one_after_the_other() {
    let mut run = runtime(Regime::Dft, 1);
    let matrix = Matrix::new(&mut run, 5, 3).unwrap();
    let mut next = 0;
    for j in 0..5 {
        assert_eq!(matrix.panel(j).first(), next);
        for i in j..5 {
            assert_eq!(matrix.tile(i, j).first(), next);
            next += 9;
        }
    }
    assert_eq!(matrix.panel(4).first() + matrix.panel(4).len(), next);
}

#[test]
fn cholesky_gives_the_factor() {
    in_all_regimes(|mut run, touch| {
        let matrix = Matrix::new(&mut run, 5, 13).unwrap();
        matrix.fill(&mut run, SEED, touch).unwrap();
        cholesky::submit(&mut run, matrix).unwrap();
        run.wait().unwrap();
        let residual = residual::factor(&mut run, matrix, SEED).unwrap();
        assert!(residual < residual::RESIDUAL_MAX, "{residual}");
    });
}

#[test]
fn the_inversion_gives_the_inverse() {
    in_all_regimes(|mut run, touch| {
        let matrix = Matrix::new(&mut run, 4, 11).unwrap();
        matrix.fill(&mut run, SEED, touch).unwrap();
        smi::submit(&mut run, matrix).unwrap();
        run.wait().unwrap();
        let residual = residual::inverse(&mut run, matrix, SEED).unwrap();
        assert!(residual < residual::RESIDUAL_MAX, "{residual}");
    });
}

#[test]
fn a_wrong_factor_has_a_large_residual() {
    let mut run = runtime(Regime::Dft, 1);
    let matrix = Matrix::new(&mut run, 3, 8).unwrap();
    matrix.fill(&mut run, SEED, FirstTouch::Blocks).unwrap();
    cholesky::submit(&mut run, matrix).unwrap();
    run.write(matrix.tile(2, 0)).unwrap()[5] += 1e-3;
    let near = residual::factor(&mut run, matrix, SEED).unwrap();
    assert!(near > residual::RESIDUAL_MAX, "{near}");
    run.write(matrix.tile(2, 0)).unwrap()[5] = f64::NAN;
    let none = residual::factor(&mut run, matrix, SEED).unwrap();
    assert!(none.is_infinite(), "a factor that is no number passed: {none}");
}

#[test]
fn a_matrix_that_has_no_factor_is_a_failed_task() {
    let mut run = runtime(Regime::Naft, 2);
    let matrix = Matrix::new(&mut run, 2, 4).unwrap();
    matrix.fill(&mut run, SEED, FirstTouch::Serial).unwrap();
    run.write(matrix.tile(1, 1)).unwrap()[0] = -1e9;
    cholesky::submit(&mut run, matrix).unwrap();
    let failed = run.wait().unwrap_err();
    assert!(
        matches!(&failed, TaskError::Failed { text, .. } if text.contains("pivot")),
        "{failed}"
    );
}

#[test]
fn the_input_is_symmetric() {
    assert_eq!(element(3, 9, 2, 7).to_bits(), element(3, 9, 7, 2).to_bits());
    assert!(element(3, 9, 4, 4) > 8.0);
}

#[test]
fn jacobi_is_bit_for_bit_the_reference() {
    let grid = Grid { blocks: 5, rows: 3, columns: 17 };
    let wanted = jacobi::reference(grid, 7);
    in_all_regimes(|mut run, touch| {
        let grids = Grids::new(&mut run, grid, touch).unwrap();
        grids.sweep(&mut run, 7).unwrap();
        assert_eq!(run.read(grids.after(7).all()).unwrap(), wanted);
    });
}

#[test]
fn the_integral_histogram_is_the_reference() {
    let image = Image { blocks: 3, side: 6 };
    let width = image.blocks * image.side;
    let wanted = histogram::reference(width, |y, x| histogram::pixel(SEED, y, x));
    in_all_regimes(|mut run, touch| {
        let integral = Integral::new(&mut run, image, SEED, touch).unwrap();
        integral.submit(&mut run).unwrap();
        for (at, wanted) in wanted.iter().enumerate() {
            let (y, x, bin) = (at / BINS / width, at / BINS % width, at % BINS);
            let block = run.read(integral.block(y / image.side, x / image.side)).unwrap();
            let pixel = y % image.side * image.side + x % image.side;
            assert_eq!(block[pixel * BINS + bin], *wanted, "row {y}, column {x}, bin {bin}");
        }
    });
}

#[test]
fn streamcluster_finds_the_centres_of_the_reference() {
    let parameters = Parameters {
        k_min: 4,
        k_max: 8,
        dimensions: 12,
        points: 900,
        chunk: 300,
        centres: 100,
        block: 64,
    };
    let mut serial = Serial::new(parameters.dimensions, parameters.block, SEED);
    let Ok(wanted) = cluster(&mut serial, &parameters, 5);
    in_all_regimes(|mut run, touch| {
        let mut chunk = OnTasks::new(&mut run, &parameters, SEED, touch).unwrap();
        assert_eq!(cluster(&mut chunk, &parameters, 5).unwrap(), wanted);
    });
}
