//! The five benchmarks as something that is solved, timed and checked.

use std::time::Instant;

use anyhow::Result;
use isochrone_tasks::Data;
use isochrone_tasks::live::Runtime;
use isochrone_workloads::dataflow::histogram::{self, BINS, Image, Integral};
use isochrone_workloads::dataflow::jacobi::{self, Grid, Grids};
use isochrone_workloads::dataflow::matrix::Matrix;
use isochrone_workloads::dataflow::streamcluster::stream::{Clustered, cluster};
use isochrone_workloads::dataflow::streamcluster::{Parameters, serial::Serial, tasks::OnTasks};
use isochrone_workloads::dataflow::{FirstTouch, cholesky, residual, smi};
use serde::Serialize;

/// A benchmark with its size.
#[derive(Clone, Copy, Debug)]
pub(super) enum Problem {
    Cholesky { tiles: u32, width: u32 },
    Smi { tiles: u32, width: u32 },
    Streamcluster(Parameters),
    Jacobi { grid: Grid, sweeps: usize },
    Histogram(Image),
}

/// What a run came to; the data still lie in it.
pub(super) enum Answer {
    Factor(Matrix),
    Inverse(Matrix),
    Centres(Box<Clustered>),
    Grid(Data<f64>),
    Counts(Integral),
}

/// Whether an answer is right.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Checked {
    pub(super) verified: bool,
    /// In units of rounding where the order of operations may differ from the reference's, else the
    /// share of values that differ from it.
    pub(super) residual: f64,
}

/// What the serial reference gives; made once.
pub(super) enum Reference {
    None,
    Grid(Vec<f64>),
    Counts(Vec<histogram::Count>),
    Centres(Box<Clustered>),
}

impl Problem {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Cholesky { .. } => "cholesky",
            Self::Smi { .. } => "smi",
            Self::Streamcluster(_) => "streamcluster",
            Self::Jacobi { .. } => "jacobi",
            Self::Histogram(_) => "inthist",
        }
    }

    /// The size, in words.
    pub(super) fn words(self) -> String {
        match self {
            Self::Cholesky { tiles, width } | Self::Smi { tiles, width } => {
                format!("{} rows in tiles of {width}", tiles * width)
            }
            Self::Streamcluster(p) => format!(
                "{} points of {} coordinates in steps of {}, tasks of {}",
                p.points, p.dimensions, p.chunk, p.block
            ),
            Self::Jacobi { grid, sweeps } => format!(
                "{} blocks of {} x {}, {sweeps} sweeps",
                grid.blocks, grid.rows, grid.columns
            ),
            Self::Histogram(image) => format!(
                "{0} x {0} pixels in blocks of {1} x {1}",
                image.blocks * image.side,
                image.side
            ),
        }
    }

    /// Floating-point operations of the whole problem, where they are what counts.
    pub(super) fn flops(self) -> Option<f64> {
        match self {
            Self::Cholesky { tiles, width } => Some(cholesky::flops((tiles * width) as usize)),
            Self::Smi { tiles, width } => Some(smi::flops((tiles * width) as usize)),
            _ => None,
        }
    }

    /// Solves it; seconds from the first task that computes to the end of the last. The input is made
    /// before, by tasks, except that streamcluster's arrives while it runs.
    pub(super) fn solve(
        self,
        run: &mut Runtime,
        seed: u64,
        touch: FirstTouch,
    ) -> Result<(Answer, f64)> {
        let timed = |begin: Instant| begin.elapsed().as_secs_f64();
        Ok(match self {
            Self::Cholesky { tiles, width } | Self::Smi { tiles, width } => {
                let matrix = Matrix::new(run, tiles, width)?;
                matrix.fill(run, seed, touch)?;
                run.wait()?;
                let begin = Instant::now();
                let inverse = matches!(self, Self::Smi { .. });
                if inverse {
                    smi::submit(run, matrix)?
                } else {
                    cholesky::submit(run, matrix)?
                }
                run.wait()?;
                let answer = if inverse { Answer::Inverse(matrix) } else { Answer::Factor(matrix) };
                (answer, timed(begin))
            }
            Self::Streamcluster(parameters) => {
                let mut chunk = OnTasks::new(run, &parameters, seed, touch)?;
                let begin = Instant::now();
                let clustered = cluster(&mut chunk, &parameters, seed)?;
                (Answer::Centres(Box::new(clustered)), timed(begin))
            }
            Self::Jacobi { grid, sweeps } => {
                let grids = Grids::new(run, grid, touch)?;
                let begin = Instant::now();
                grids.sweep(run, sweeps)?;
                (Answer::Grid(grids.after(sweeps)), timed(begin))
            }
            Self::Histogram(image) => {
                let integral = Integral::new(run, image, seed, touch)?;
                let begin = Instant::now();
                integral.submit(run)?;
                run.wait()?;
                (Answer::Counts(integral), timed(begin))
            }
        })
    }

    /// The reference that answers are compared with, by one thread.
    pub(super) fn reference(self, seed: u64) -> Reference {
        match self {
            Self::Cholesky { .. } | Self::Smi { .. } => Reference::None,
            Self::Streamcluster(parameters) => {
                let mut serial = Serial::new(parameters.dimensions, parameters.block, seed);
                let Ok(clustered) = cluster(&mut serial, &parameters, seed);
                Reference::Centres(Box::new(clustered))
            }
            Self::Jacobi { grid, sweeps } => Reference::Grid(jacobi::reference(grid, sweeps)),
            Self::Histogram(image) => {
                Reference::Counts(histogram::reference(image.blocks * image.side, |y, x| {
                    histogram::pixel(seed, y, x)
                }))
            }
        }
    }

    /// Checks an answer.
    pub(super) fn check(
        self,
        run: &mut Runtime,
        answer: &Answer,
        reference: &Reference,
        seed: u64,
    ) -> Result<Checked> {
        let rounding =
            |residual: f64| Checked { verified: residual < residual::RESIDUAL_MAX, residual };
        let differing = |share: f64| Checked { verified: share == 0.0, residual: share };
        Ok(match (answer, reference) {
            (Answer::Factor(matrix), _) => rounding(residual::factor(run, *matrix, seed)?),
            (Answer::Inverse(matrix), _) => rounding(residual::inverse(run, *matrix, seed)?),
            (Answer::Centres(found), Reference::Centres(wanted)) => {
                differing(f64::from(u8::from(found != wanted)))
            }
            (Answer::Grid(grid), Reference::Grid(wanted)) => {
                differing(share_of_differing(run.read(grid.all())?, wanted))
            }
            (Answer::Counts(integral), Reference::Counts(wanted)) => {
                let Self::Histogram(image) = self else { return Ok(differing(1.0)) };
                differing(counts_differing(run, image, *integral, wanted)?)
            }
            _ => differing(1.0),
        })
    }
}

fn share_of_differing(found: &[f64], wanted: &[f64]) -> f64 {
    let differ = found.iter().zip(wanted).filter(|(a, b)| a.to_bits() != b.to_bits()).count();
    (differ + found.len().abs_diff(wanted.len())) as f64 / wanted.len().max(1) as f64
}

fn counts_differing(
    run: &mut Runtime,
    image: Image,
    integral: Integral,
    wanted: &[histogram::Count],
) -> Result<f64> {
    let width = image.blocks * image.side;
    let row_len = image.side * BINS;
    let mut differ = 0;
    for y in 0..image.blocks {
        for x in 0..image.blocks {
            let block = run.read(integral.block(y, x))?;
            for (row, found) in block.chunks_exact(row_len).enumerate() {
                let first = ((y * image.side + row) * width + x * image.side) * BINS;
                let wanted = &wanted[first..first + row_len];
                differ += found.iter().zip(wanted).filter(|(a, b)| a != b).count();
            }
        }
    }
    Ok(differ as f64 / wanted.len() as f64)
}
