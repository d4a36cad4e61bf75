//! The five benchmarks as something that is solved, timed and checked, on this machine.

use isochrone_tasks::live::Runtime;
use isochrone_tasks::{Data, TaskError, Tasks};

use super::histogram::{self, BINS, Image, Integral};
use super::jacobi::{self, Grid, Grids};
use super::matrix::Matrix;
use super::streamcluster::stream::{Clustered, cluster};
use super::streamcluster::{Parameters, serial::Serial, tasks::OnTasks};
use super::{FirstTouch, cholesky, residual, smi};

/// A benchmark with its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A factorisation.
    Cholesky {
        /// Tiles along one side.
        tiles: u32,
        /// Rows of a tile.
        width: u32,
    },
    /// A symmetric inversion.
    Smi {
        /// Tiles along one side.
        tiles: u32,
        /// Rows of a tile.
        width: u32,
    },
    /// A clustering of a stream.
    Streamcluster(Parameters),
    /// Sweeps of the five-point stencil.
    Jacobi {
        /// The grid.
        grid: Grid,
        /// How many sweeps.
        sweeps: usize,
    },
    /// The integral histogram of an image.
    Histogram(Image),
}

/// What a run came to; the data still lie in it.
#[derive(Debug)]
pub enum Answer {
    /// The factor `L`.
    Factor(Matrix),
    /// The inverse.
    Inverse(Matrix),
    /// Centres, and what they cost.
    Centres(Box<Clustered>),
    /// The grid after the last sweep.
    Grid(Data<f64>),
    /// The counts.
    Counts(Integral),
}

/// Whether an answer is right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Checked {
    /// Whether it is.
    pub verified: bool,
    /// In units of rounding where the order of operations may differ from the reference's, else the
    /// share of values that differ from it.
    pub residual: f64,
}

/// What the serial reference gives; made once.
#[derive(Debug)]
pub enum Reference {
    /// None is needed: the answer is checked against the input.
    None,
    /// The grid.
    Grid(Vec<f64>),
    /// All counts.
    Counts(Vec<histogram::Count>),
    /// The centres.
    Centres(Box<Clustered>),
}

impl Problem {
    /// What the command calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cholesky { .. } => "cholesky",
            Self::Smi { .. } => "smi",
            Self::Streamcluster(_) => "streamcluster",
            Self::Jacobi { .. } => "jacobi",
            Self::Histogram(_) => "inthist",
        }
    }

    /// The size, in words.
    #[must_use]
    pub fn words(self) -> String {
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
    #[must_use]
    pub fn flops(self) -> Option<f64> {
        match self {
            Self::Cholesky { tiles, width } => Some(cholesky::flops((tiles * width) as usize)),
            Self::Smi { tiles, width } => Some(smi::flops((tiles * width) as usize)),
            _ => None,
        }
    }

    /// Solves it; seconds from the first task that computes to the end of the last. The input is made
    /// before, by tasks, except that streamcluster's arrives while it runs.
    ///
    /// # Errors
    /// [`TaskError`] if a task failed.
    pub fn solve(
        self,
        run: &mut Runtime,
        seed: u64,
        touch: FirstTouch,
    ) -> Result<(Answer, f64), TaskError> {
        let since = |run: &Runtime, begin: u64| (run.now_ns() - begin) as f64 / 1e9;
        Ok(match self {
            Self::Cholesky { tiles, width } | Self::Smi { tiles, width } => {
                let matrix = Matrix::new(run, tiles, width)?;
                matrix.fill(run, seed, touch)?;
                run.wait()?;
                let begin = run.now_ns();
                let inverse = matches!(self, Self::Smi { .. });
                if inverse {
                    smi::submit(run, matrix)?
                } else {
                    cholesky::submit(run, matrix)?
                }
                run.wait()?;
                let answer = if inverse { Answer::Inverse(matrix) } else { Answer::Factor(matrix) };
                (answer, since(run, begin))
            }
            Self::Streamcluster(parameters) => {
                let begin = run.now_ns();
                let mut chunk = OnTasks::new(run, &parameters, seed, touch)?;
                let clustered = cluster(&mut chunk, &parameters, seed)?;
                (Answer::Centres(Box::new(clustered)), since(run, begin))
            }
            Self::Jacobi { grid, sweeps } => {
                let grids = Grids::new(run, grid, touch)?;
                let begin = run.now_ns();
                grids.sweep(run, sweeps)?;
                (Answer::Grid(grids.after(sweeps)), since(run, begin))
            }
            Self::Histogram(image) => {
                let integral = Integral::new(run, image, seed, touch)?;
                let begin = run.now_ns();
                integral.submit(run)?;
                run.wait()?;
                (Answer::Counts(integral), since(run, begin))
            }
        })
    }

    /// The reference that answers are compared with, by one thread.
    #[must_use]
    pub fn reference(self, seed: u64) -> Reference {
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
    ///
    /// # Errors
    /// [`TaskError`] if a task failed.
    pub fn check(
        self,
        run: &mut Runtime,
        answer: &Answer,
        reference: &Reference,
        seed: u64,
    ) -> Result<Checked, TaskError> {
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
) -> Result<f64, TaskError> {
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
