//! `isochrone bench cholesky-run`: one factorisation by one system, timed and checked.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use isochrone_host::{SysRoot, this_machine};
use isochrone_tasks::live::{Config, Runtime};
use isochrone_tasks::{Failure, Footprint, Kernel, Mem, Regime, Topology};
use isochrone_workloads::dataflow::matrix::Matrix;
use isochrone_workloads::dataflow::residual::{self, RESIDUAL_MAX};
use isochrone_workloads::dataflow::{FirstTouch, tile};

use super::foreign::{FAER, Kernels, OpenBlas};
use crate::args::{CholeskyRun, KernelsChoice};
use crate::bench::tiled::{Peer, said};
use isochrone_console::output::Terminal;

/// Tiles along one side of the matrix that is factored first and does not count.
const WARM_TILES: u32 = 4;

/// Who factors.
enum System {
    Ours,
    /// OpenBLAS's own threads, on the whole matrix.
    Blas(OpenBlas, usize),
    Peer(Peer<Kernels>),
}

/// Answers one question: seconds and residual, and what OpenBLAS takes the core for.
pub(in crate::bench) fn run(args: &CholeskyRun, terminal: &Terminal) -> Result<()> {
    let ours = args.system == "isochrone";
    let topology = Topology::of(&this_machine(&SysRoot::live())?);
    let mut config = Config::new(Regime::Isochrone, args.workers, topology);
    // Other systems place their threads themselves, and leave ours idle.
    config.pin = ours;
    let mut run = Runtime::start(config)?;
    let blas = match (args.kernels, args.system.as_str()) {
        (KernelsChoice::Faer, system) if system != "openblas" => None,
        _ => Some(OpenBlas::open()?),
    };
    if let Some(blas) = blas {
        blas.threads(1);
        terminal.print(&format!("core {}", blas.core()))?;
    }
    let kernels = match (args.kernels, blas) {
        (KernelsChoice::Openblas, Some(blas)) => blas.kernels(),
        _ => &FAER,
    };
    let system = match (args.system.as_str(), blas) {
        ("isochrone", _) => System::Ours,
        ("openblas", Some(blas)) => System::Blas(blas, args.workers),
        (path, _) => System::Peer(Peer::start(Path::new(path), args.workers)?),
    };
    solve(&mut run, &system, kernels, WARM_TILES, args.width, args.seed)?;
    let (seconds, residual) = solve(&mut run, &system, kernels, args.tiles, args.width, args.seed)?;
    terminal.print(&said(seconds, residual))
}

fn solve(
    run: &mut Runtime,
    system: &System,
    kernels: &'static Kernels,
    tiles: u32,
    width: u32,
    seed: u64,
) -> Result<(f64, f64)> {
    let matrix = Matrix::new(run, tiles, width)?;
    matrix.fill(run, seed, FirstTouch::Blocks)?;
    run.wait()?;
    let seconds = match system {
        System::Ours => {
            let begin = Instant::now();
            submit(run, matrix, kernels)?;
            run.wait()?;
            begin.elapsed().as_secs_f64()
        }
        System::Peer(peer) => {
            let values = run.write(matrix.all())?;
            let begin = Instant::now();
            peer.solve(values, tiles as usize, width as usize, kernels)?;
            begin.elapsed().as_secs_f64()
        }
        System::Blas(blas, threads) => {
            let mut dense = vec![0.0; matrix.rows() * matrix.rows()];
            copy(matrix, run.write(matrix.all())?, &mut dense, |tile, dense| *dense = *tile);
            blas.threads(*threads);
            let begin = Instant::now();
            blas.factor(&mut dense, matrix.rows())?;
            let seconds = begin.elapsed().as_secs_f64();
            copy(matrix, run.write(matrix.all())?, &mut dense, |tile, dense| *tile = *dense);
            seconds
        }
    };
    let residual = residual::factor(run, matrix, seed)?;
    ensure!(residual < RESIDUAL_MAX, "a wrong factor: residual {residual}");
    matrix.free(run)?;
    Ok((seconds, residual))
}

/// Goes through the elements of the lower triangle in tiles, and in a dense matrix that lies column by column.
fn copy(matrix: Matrix, values: &mut [f64], dense: &mut [f64], each: impl Fn(&mut f64, &mut f64)) {
    let (n, width, all) = (matrix.rows(), matrix.width(), matrix.tiles());
    let places = (0..all).flat_map(|j| (j..all).map(move |i| (i as usize, j as usize)));
    for ((i, j), tile) in places.zip(values.chunks_exact_mut(width * width)) {
        for (at, value) in tile.iter_mut().enumerate() {
            let (row, column) = (i * width + at / width, j * width + at % width);
            each(value, &mut dense[column * n + row]);
        }
    }
}

/// A step on a tile, with whatever kernels.
#[derive(Clone, Copy)]
struct Step {
    matrix: Matrix,
    kernels: &'static Kernels,
    what: What,
    /// Row and column of the tile, and the column that it is updated with.
    i: u32,
    j: u32,
    k: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Factor,
    Solve,
    UpdateDiagonal,
    Update,
}

impl Kernel for Step {
    const NAME: &'static str = "step";

    fn declare(&self, footprint: &mut Footprint) {
        let (n, flops) = (self.matrix.width(), tile::flops::one);
        match self.what {
            What::Factor => footprint.flops(flops(n) / 3.0).priority(2),
            What::Solve => footprint.input(self.matrix.tile(self.k, self.k)).priority(1),
            What::UpdateDiagonal => footprint.input(self.matrix.tile(self.i, self.k)),
            What::Update => footprint
                .input(self.matrix.tile(self.i, self.k))
                .input(self.matrix.tile(self.j, self.k)),
        };
        footprint.inout(self.matrix.tile(self.i, self.j));
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        let (n, kernels) = (self.matrix.width(), self.kernels);
        let read = |i, j| mem.read(self.matrix.tile(i, j));
        let mut c = mem.write(self.matrix.tile(self.i, self.j))?;
        match self.what {
            What::Factor if kernels.factor(&mut c, n) => {}
            What::Factor => return Err(Failure::new("a pivot is not positive")),
            What::Solve => kernels.solve(&read(self.k, self.k)?, &mut c, n),
            What::UpdateDiagonal => kernels.update_diagonal(&read(self.i, self.k)?, &mut c, n),
            What::Update => {
                kernels.update(&read(self.i, self.k)?, &read(self.j, self.k)?, &mut c, n);
            }
        }
        Ok(())
    }
}

/// The same tasks in the same order as `workloads::dataflow::cholesky`.
fn submit(run: &mut Runtime, matrix: Matrix, kernels: &'static Kernels) -> Result<()> {
    let mut step = |what, i, j, k| run.spawn(Step { matrix, kernels, what, i, j, k });
    for k in 0..matrix.tiles() {
        step(What::Factor, k, k, k)?;
        for i in k + 1..matrix.tiles() {
            step(What::Solve, i, k, k)?;
        }
        for i in k + 1..matrix.tiles() {
            step(What::UpdateDiagonal, i, i, k)?;
            for j in k + 1..i {
                step(What::Update, i, j, k)?;
            }
        }
    }
    Ok(())
}
