//! The tile Cholesky factorisation by tasks whose data lie in an area: the scheduler of the task benchmarks, its
//! kernels and its graph, between workers that the pager made. They are threads, or processes with page tables of
//! their own.

#![allow(unsafe_code, reason = "tasks take their data from memory that the pager owns")]

use std::time::Instant;

use isochrone_tasks::live::{Config, Prepared, Runtime};
use isochrone_tasks::{Regime, TaskError, Topology};
use isochrone_tier::live::{Gone, Tables, Worker};
use isochrone_units::CoreId;

use super::cholesky::Cholesky;
use super::notes::leave;
use crate::dataflow::FirstTouch;
use crate::dataflow::cholesky::submit;
use crate::dataflow::matrix::Matrix;

/// A factorisation whose scheduler all workers will have; prepared before they are made.
#[derive(Debug)]
pub(super) struct ByTasks {
    problem: Cholesky,
    prepared: Prepared,
}

impl ByTasks {
    pub(super) fn new(
        problem: Cholesky,
        workers: u16,
        tables: Tables,
        spin_ns: u64,
    ) -> Result<Self, TaskError> {
        // One region: pages come and go, so where they were touched first says nothing.
        let topology = Topology::regular(1, workers, |_, _| 10.0);
        let mut config = Config::new(Regime::Dft, usize::from(workers), topology);
        config.cores = Some((0..workers).map(CoreId).collect());
        config.processes = tables == Tables::Separated;
        (config.pin, config.spin_ns) = (false, spin_ns);
        Ok(Self { problem, prepared: Prepared::new(config)? })
    }

    /// A worker's part: the first is the program, all others run its tasks.
    pub(super) fn run(&self, worker: &mut Worker<'_>) -> Result<u64, String> {
        let words = |error: TaskError| error.to_string();
        let gone = |gone: Gone| gone.to_string();
        if worker.index() > 0 {
            worker.barrier().map_err(gone)?;
            self.prepared.serve(worker.index().into()).map_err(words)?;
            return Ok(0);
        }
        let bytes = self.problem.elements() * size_of::<f64>();
        let memory = worker.malloc_global(bytes).ok_or("the area is too small for the matrix")?;
        // SAFETY: the piece is that long, of whole pages and of zeros, readable and writable at the same address
        // in every worker; nobody else knows of it, and it is never given back.
        let runtime = unsafe { self.prepared.program(memory, bytes) };
        let mut runtime = runtime.map_err(words)?;
        // Only now: from here on the others notice if this one ends.
        worker.barrier().map_err(gone)?;
        self.factor(&mut runtime, worker).map_err(words)
    }

    fn factor(&self, runtime: &mut Runtime, worker: &Worker<'_>) -> Result<u64, TaskError> {
        let of = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let (tiles, width) = (of(self.problem.tiles), of(self.problem.width));
        let matrix = Matrix::new(runtime, tiles, width)?;
        matrix.fill(runtime, self.problem.seed, FirstTouch::Blocks)?;
        runtime.wait()?;
        let (begin, before) = (Instant::now(), worker.counters_of_workers());
        submit(runtime, matrix)?;
        runtime.wait()?;
        let nanoseconds = begin.elapsed().as_nanos();
        leave(worker, nanoseconds, &worker.counters_of_workers().since(&before));
        Ok(self.problem.digest(runtime.read(matrix.all())?))
    }
}
