//! The programs on a team's area.

use std::time::Instant;

use isochrone_tier::live::{Config, Gone, Phase, Worker};

use super::cholesky::Cholesky;
use super::notes::leave;
use super::spmv::Spmv;
use super::stencil::Stencil;
use super::tasks::ByTasks;

/// A program for a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tiered {
    /// Heat diffusion.
    Stencil(Stencil),
    /// Products with a sparse matrix.
    Spmv(Spmv),
    /// The tile Cholesky factorisation.
    Cholesky(Cholesky),
}

impl Tiered {
    /// Bytes that its arrays take of an area whose groups have `unit` bytes.
    #[must_use]
    pub fn bytes(&self, unit: usize) -> usize {
        match self {
            Self::Stencil(stencil) => 2 * (stencil.points() * 8).next_multiple_of(unit),
            Self::Spmv(spmv) => {
                let entries = spmv.starts()[spmv.rows];
                spmv.bytes(usize::try_from(entries).unwrap_or(usize::MAX), unit)
            }
            Self::Cholesky(cholesky) => (cholesky.elements() * 8).next_multiple_of(unit),
        }
    }

    /// What every run must give.
    #[must_use]
    pub fn reference(&self) -> u64 {
        match self {
            Self::Stencil(stencil) => stencil.reference(),
            Self::Spmv(spmv) => spmv.reference(),
            Self::Cholesky(cholesky) => cholesky.reference(),
        }
    }

    /// The program with what its workers share beside the area: made before they are.
    ///
    /// # Errors
    /// Words, where the system refuses.
    pub fn ready(self, config: &Config) -> Result<Ready, String> {
        Ok(Ready(match self {
            Self::Stencil(stencil) => Kind::Stencil(stencil),
            Self::Spmv(spmv) => Kind::Spmv(spmv),
            Self::Cholesky(problem) => {
                // A look at a word takes about a nanosecond.
                let spin_ns = config.spins.into();
                let tasks = ByTasks::new(problem, config.workers, config.tables, spin_ns);
                Kind::Cholesky(tasks.map_err(|error| error.to_string())?)
            }
        }))
    }
}

/// A program that a team can run.
#[derive(Debug)]
pub struct Ready(Kind);

#[derive(Debug)]
enum Kind {
    Stencil(Stencil),
    Spmv(Spmv),
    Cholesky(ByTasks),
}

impl Ready {
    /// A worker's part; its value is its part of the digest.
    ///
    /// # Errors
    /// Words that say who is gone, or what failed.
    pub fn run(&self, worker: &mut Worker<'_>) -> Result<u64, String> {
        let outcome = match &self.0 {
            Kind::Stencil(stencil) => run_stencil(stencil, worker),
            Kind::Spmv(spmv) => run_spmv(spmv, worker),
            Kind::Cholesky(tasks) => return tasks.run(worker),
        };
        outcome.map_err(|gone| gone.to_string())
    }
}

/// Meets all, takes the time and the counts of `sweeps`, and leaves them as notes.
fn observed(
    worker: &mut Worker<'_>,
    sweeps: impl FnOnce(&mut Worker<'_>) -> Result<(), Gone>,
) -> Result<(), Gone> {
    worker.barrier()?;
    let (begin, before) = (Instant::now(), worker.counters());
    sweeps(worker)?;
    worker.barrier()?;
    let nanoseconds = begin.elapsed().as_nanos();
    let counters = worker.counters().since(&before);
    leave(worker, nanoseconds, &counters);
    Ok(())
}

fn run_stencil(stencil: &Stencil, worker: &mut Worker<'_>) -> Result<u64, Gone> {
    let grids = [worker.array::<f64>(stencil.points())?, worker.array::<f64>(stencil.points())?];
    let band = grids[0].band(stencil.columns, worker.index(), worker.workers());
    let rows = band.start / stencil.columns..band.end / stencil.columns;
    let weights = stencil.weights();
    let first = Phase::new().writes(&grids[0], band.clone());
    worker.phase(&first, |slices| stencil.fill(rows.clone(), slices.write(&grids[0])))?;
    observed(worker, |worker| {
        for sweep in 0..stencil.iterations {
            let turn = sweep as usize % 2;
            let (from, to) = (&grids[turn], &grids[1 - turn]);
            let phase = Phase::new().reads(from).writes(to, band.clone());
            worker.phase(&phase, |slices| {
                stencil.sweep(slices.read(from), rows.clone(), slices.write(to), &weights, sweep);
            })?;
        }
        Ok(())
    })?;
    let last = &grids[stencil.iterations as usize % 2];
    worker.phase(&Phase::new().reads(last), |slices| {
        stencil.digest(rows.clone(), &slices.read(last)[band.clone()])
    })
}

fn run_spmv(spmv: &Spmv, worker: &mut Worker<'_>) -> Result<u64, Gone> {
    let all = spmv.starts();
    let place = |row: usize| usize::try_from(all[row]).unwrap_or(usize::MAX);
    let starts = worker.array::<u64>(spmv.rows + 1)?;
    let columns = worker.array::<u32>(place(spmv.rows))?;
    let vectors = [worker.array::<f64>(spmv.rows)?, worker.array::<f64>(spmv.rows)?];
    let rows = vectors[0].band(1, worker.index(), worker.workers());
    let last = worker.index() + 1 == worker.workers();
    let of_starts = rows.start..rows.end + usize::from(last);
    let first = Phase::new()
        .writes(&starts, of_starts.clone())
        .writes(&columns, place(rows.start)..place(rows.end))
        .writes(&vectors[0], rows.clone());
    worker.phase(&first, |slices| {
        slices.write(&starts).copy_from_slice(&all[of_starts]);
        spmv.fill(rows.clone(), slices.write(&columns));
        slices.write(&vectors[0]).fill(1.0);
    })?;
    observed(worker, |worker| {
        for product in 0..spmv.iterations {
            let turn = product as usize % 2;
            let (from, to) = (&vectors[turn], &vectors[1 - turn]);
            let phase =
                Phase::new().reads(&starts).reads(&columns).reads(from).writes(to, rows.clone());
            worker.phase(&phase, |slices| {
                let (starts, columns) = (slices.read(&starts), slices.read(&columns));
                spmv.multiply(starts, columns, slices.read(from), rows.clone(), slices.write(to));
            })?;
        }
        Ok(())
    })?;
    let result = &vectors[spmv.iterations as usize % 2];
    worker.phase(&Phase::new().reads(result), |slices| {
        spmv.digest(rows.clone(), &slices.read(result)[rows.clone()])
    })
}
