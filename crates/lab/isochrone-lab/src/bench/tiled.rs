//! What benchmarks of factorisations in tiles have in common: tiles behind C's calling convention, and libraries of
//! ours over other systems' tasks, which are compiled where a benchmark runs and opened by the process that is timed.

// Calls into libraries that are opened while the program runs; each block says why it is right.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_int, c_long, c_void};
use std::path::Path;
use std::ptr::NonNull;

use anyhow::{Context, Result, bail};
use isochrone_os::library::Library;

use super::recipe::Recipe;

/// What stands behind the source of such a library.
pub(super) const LIBRARY: [&str; 2] = ["-shared", "-fPIC"];

/// A library over OpenMP's tasks, by both compilers that have them.
pub(super) const fn openmp(source: &'static str) -> [Recipe; 2] {
    const OPTIONS: &[&str] = &[LIBRARY[0], LIBRARY[1], "-fopenmp"];
    [
        Recipe {
            name: "libgomp",
            package: "gcc",
            compiler: "gcc",
            source: ("openmp.c", source),
            options: OPTIONS,
        },
        Recipe {
            name: "libomp",
            package: "clang libomp-dev",
            compiler: "clang",
            source: ("openmp.c", source),
            options: OPTIONS,
        },
    ]
}

/// Whether a slice is a whole tile.
pub(super) fn is_tile(tile: &[f64], n: usize) -> bool {
    tile.len() == n * n
}

pub(super) fn long(n: usize) -> c_long {
    c_long::try_from(n).unwrap_or(0)
}

/// The elements of a tile.
pub(super) fn elements(n: c_long) -> usize {
    let n = usize::try_from(n).unwrap_or(0);
    n * n
}

pub(super) fn width(n: c_long) -> usize {
    usize::try_from(n).unwrap_or(0)
}

pub(super) fn symbol(library: Library, name: &CStr) -> Result<NonNull<c_void>> {
    library.symbol(name).with_context(|| format!("the library has no {}", name.to_string_lossy()))
}

/// A table of kernels, laid out as a header of the peers says.
pub(super) trait Kernels: 'static {
    /// Elements of a matrix with so many tiles along one side.
    fn elements(tiles: usize, width: usize) -> usize;

    /// What it means that a peer's `isochrone_solve` fails.
    const FAILED: &'static str;
}

type Solve<K> = unsafe extern "C" fn(*mut f64, c_long, c_long, *const K) -> c_int;

/// Another system's factorisation, started.
#[derive(Debug)]
pub(super) struct Peer<K> {
    solve: Solve<K>,
    end: unsafe extern "C" fn(),
}

impl<K: Kernels> Peer<K> {
    /// Opens a library as the peers' header says, and starts its system.
    pub(super) fn start(path: &Path, workers: usize) -> Result<Self> {
        let name = CString::new(path.to_string_lossy().into_owned())?;
        let library = Library::open(&name).with_context(|| path.display().to_string())?;
        let begin = symbol(library, c"isochrone_begin")?;
        let solve = symbol(library, c"isochrone_solve")?;
        let end = symbol(library, c"isochrone_end")?;
        // SAFETY: the header declares it so.
        let begin = unsafe {
            std::mem::transmute::<NonNull<c_void>, unsafe extern "C" fn(c_int) -> c_int>(begin)
        };
        // SAFETY: as above; the child is told a library of the benchmark whose kernels these are.
        let solve = unsafe { std::mem::transmute::<NonNull<c_void>, Solve<K>>(solve) };
        // SAFETY: as above.
        let end = unsafe { std::mem::transmute::<NonNull<c_void>, unsafe extern "C" fn()>(end) };
        // SAFETY: it comes first, and once.
        if unsafe { begin(c_int::try_from(workers).unwrap_or(1)) } != 0 {
            bail!("{} does not start", path.display());
        }
        Ok(Self { solve, end })
    }

    /// Factors the tiles.
    pub(super) fn solve(
        &self,
        values: &mut [f64],
        tiles: usize,
        width: usize,
        kernels: &'static K,
    ) -> Result<()> {
        assert!(values.len() == K::elements(tiles, width));
        let first = values.as_mut_ptr();
        // SAFETY: the matrix has as many tiles, as was just checked, and its tasks are over when this
        // returns; the kernels are static.
        let failed = unsafe { (self.solve)(first, long(tiles), long(width), kernels) };
        if failed != 0 {
            bail!(K::FAILED);
        }
        Ok(())
    }
}

impl<K> Drop for Peer<K> {
    fn drop(&mut self) {
        // SAFETY: it was started, and nothing of it is used afterwards.
        unsafe { (self.end)() }
    }
}

/// What a child that factored says: seconds and residual.
pub(super) fn said(seconds: f64, residual: f64) -> String {
    format!("ran {seconds:.9} {residual:.6}")
}

/// What such a child said.
pub(super) fn heard(text: &str) -> Result<(f64, f64)> {
    let ran = text.lines().find_map(|line| line.strip_prefix("ran ")?.split_once(' '));
    let (seconds, residual) = ran.context("it ended without an answer")?;
    Ok((seconds.parse()?, residual.parse()?))
}
