//! The stencil on what others offer: the kernel memory that may be swapped, or a file that is mapped, limited by a
//! control group; another pager what its library gives, limited by itself.

use std::ffi::CString;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Barrier;
use std::time::Instant;

use anyhow::{Context, Result};
use isochrone_os::affinity::pin;
use isochrone_os::doubles::Doubles;
use isochrone_os::library::Library;
use isochrone_units::CoreId;
use isochrone_workloads::tiered::stencil::Stencil;

use super::request::{Answer, Of, Program, Request};

/// Runs it.
pub(super) fn run(request: &Request) -> Result<Answer> {
    let (Program::Stencil(grid), Some(plain)) = (&request.program, &request.plain) else {
        anyhow::bail!("a plain run is a stencil");
    };
    let stencil = Stencil::from(*grid);
    if let Some(group) = &plain.group {
        std::fs::write(group.join("cgroup.procs"), std::process::id().to_string())
            .with_context(|| format!("entering {}", group.display()))?;
    }
    let points = stencil.points();
    let mut memory = match &plain.memory {
        Of::Kernel => Doubles::anonymous(2 * points)?,
        Of::Library(path) => {
            let name = CString::new(path.as_os_str().as_bytes())?;
            let library = Library::open(&name).with_context(|| path.display().to_string())?;
            Doubles::of_library(library, 2 * points)?
        }
        Of::File(folder) => {
            let file = tempfile::tempfile_in(folder).context("a file to map")?;
            file.set_len(2 * points as u64 * 8)?;
            Doubles::of_file(&file, 2 * points)?
        }
    };
    let (a, b) = memory.as_mut_slice().split_at_mut(points);
    let ns = sweeps(&stencil, request, a, b);
    let last = if stencil.iterations.is_multiple_of(2) { a } else { b };
    let digest = stencil.digest(0..stencil.rows, last);
    Ok(Answer { digest, ns, ..Answer::default() })
}

/// All sweeps; each is a set of threads that own a band.
fn sweeps(stencil: &Stencil, request: &Request, a: &mut [f64], b: &mut [f64]) -> u64 {
    let workers = usize::from(request.workers);
    let cut = |worker: usize| stencil.rows * worker / workers;
    let bands: Vec<Range<usize>> = (0..workers).map(|w| cut(w)..cut(w + 1)).collect();
    let weights = stencil.weights();
    fill(stencil, &bands, request, a);
    let begin = Instant::now();
    let (mut from, mut to) = (a, b);
    for sweep in 0..stencil.iterations {
        one(stencil, &bands, request, from, to, &weights, sweep);
        std::mem::swap(&mut from, &mut to);
    }
    u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn parts<'m>(bands: &[Range<usize>], columns: usize, mut all: &'m mut [f64]) -> Vec<&'m mut [f64]> {
    let mut parts = Vec::new();
    for band in bands {
        let (mine, rest) = all.split_at_mut(band.len() * columns);
        parts.push(mine);
        all = rest;
    }
    parts
}

fn here(request: &Request, worker: usize) {
    if let Some(core) = request.worker_cores.get(worker % request.worker_cores.len().max(1)) {
        // Where it may not be pinned the run is still right.
        let _ = pin(CoreId(*core));
    }
}

fn fill(stencil: &Stencil, bands: &[Range<usize>], request: &Request, grid: &mut [f64]) {
    let all = parts(bands, stencil.columns, grid);
    std::thread::scope(|scope| {
        for (worker, (band, part)) in bands.iter().zip(all).enumerate() {
            scope.spawn(move || {
                here(request, worker);
                stencil.fill(band.clone(), part);
            });
        }
    });
}

fn one(
    stencil: &Stencil,
    bands: &[Range<usize>],
    request: &Request,
    from: &[f64],
    to: &mut [f64],
    weights: &[f64],
    sweep: u32,
) {
    let all = parts(bands, stencil.columns, to);
    let ready = Barrier::new(bands.len());
    std::thread::scope(|scope| {
        for (worker, (band, part)) in bands.iter().zip(all).enumerate() {
            let ready = &ready;
            scope.spawn(move || {
                here(request, worker);
                ready.wait();
                stencil.sweep(from, band.clone(), part, weights, sweep);
            });
        }
    });
}
