//! Tile kernels behind C's calling convention, so that every system runs the same ones; and what is
//! called in OpenBLAS.

// Calls into libraries that are opened while the program runs; each block says why it is right.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::ptr::NonNull;
use std::slice::{from_raw_parts, from_raw_parts_mut};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};
use isochrone_os::library::Library;
use isochrone_workloads::dataflow::tile;

use crate::bench::tiled::{self, elements, is_tile, long, symbol, width};

/// `struct kernels` of peers/tiles.h.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Kernels {
    factor: unsafe extern "C" fn(*mut f64, c_long) -> c_int,
    solve: unsafe extern "C" fn(*const f64, *mut f64, c_long),
    update_diagonal: unsafe extern "C" fn(*const f64, *mut f64, c_long),
    update: unsafe extern "C" fn(*const f64, *const f64, *mut f64, c_long),
}

impl tiled::Kernels for Kernels {
    const FAILED: &'static str = "a pivot is not positive";

    fn elements(tiles: usize, width: usize) -> usize {
        tiles * (tiles + 1) / 2 * width * width
    }
}

impl Kernels {
    /// `c` becomes its factor; false where a pivot is not positive.
    pub(super) fn factor(&self, c: &mut [f64], n: usize) -> bool {
        assert!(is_tile(c, n));
        // SAFETY: the tile has `n * n` elements, as was just checked, which is all that the kernel uses.
        unsafe { (self.factor)(c.as_mut_ptr(), long(n)) == 0 }
    }

    /// `c <- c a^-T`.
    pub(super) fn solve(&self, a: &[f64], c: &mut [f64], n: usize) {
        assert!(is_tile(a, n) && is_tile(c, n));
        // SAFETY: as in `factor`, for both.
        unsafe { (self.solve)(a.as_ptr(), c.as_mut_ptr(), long(n)) }
    }

    /// `c <- c - a a^T`.
    pub(super) fn update_diagonal(&self, a: &[f64], c: &mut [f64], n: usize) {
        assert!(is_tile(a, n) && is_tile(c, n));
        // SAFETY: as in `factor`, for both.
        unsafe { (self.update_diagonal)(a.as_ptr(), c.as_mut_ptr(), long(n)) }
    }

    /// `c <- c - a b^T`.
    pub(super) fn update(&self, a: &[f64], b: &[f64], c: &mut [f64], n: usize) {
        assert!(is_tile(a, n) && is_tile(b, n) && is_tile(c, n));
        // SAFETY: as in `factor`, for all three.
        unsafe { (self.update)(a.as_ptr(), b.as_ptr(), c.as_mut_ptr(), long(n)) }
    }
}

/// Those of faer.
pub(super) static FAER: Kernels = Kernels {
    factor: faer_factor,
    solve: faer_solve,
    update_diagonal: faer_update_diagonal,
    update: faer_update,
};

unsafe extern "C" fn faer_factor(c: *mut f64, n: c_long) -> c_int {
    // SAFETY: whoever calls a kernel owns the tile, as peers/tiles.h asks.
    let c = unsafe { from_raw_parts_mut(c, elements(n)) };
    c_int::from(tile::factor(c, width(n)).is_err())
}

unsafe extern "C" fn faer_solve(a: *const f64, c: *mut f64, n: c_long) {
    // SAFETY: nobody writes the tile meanwhile: its task waits for it.
    let a = unsafe { from_raw_parts(a, elements(n)) };
    // SAFETY: as in `faer_factor`; it is another tile.
    tile::solve_right_transposed(a, unsafe { from_raw_parts_mut(c, elements(n)) }, width(n));
}

unsafe extern "C" fn faer_update_diagonal(a: *const f64, c: *mut f64, n: c_long) {
    // SAFETY: as in `faer_solve`.
    let a = unsafe { from_raw_parts(a, elements(n)) };
    // SAFETY: as in `faer_solve`.
    tile::update_diagonal(a, unsafe { from_raw_parts_mut(c, elements(n)) }, width(n));
}

unsafe extern "C" fn faer_update(a: *const f64, b: *const f64, c: *mut f64, n: c_long) {
    // SAFETY: as in `faer_solve`.
    let a = unsafe { from_raw_parts(a, elements(n)) };
    // SAFETY: as in `faer_solve`.
    let b = unsafe { from_raw_parts(b, elements(n)) };
    // SAFETY: as in `faer_solve`.
    tile::update(a, b, unsafe { from_raw_parts_mut(c, elements(n)) }, width(n));
}

type Letter = *const c_char;
type Number = *const c_int;
type Factor = *const f64;
/// DPOTRF, DTRSM, DSYRK and DGEMM of LAPACK and BLAS, with Fortran's arguments.
type Potrf = unsafe extern "C" fn(Letter, Number, *mut f64, Number, *mut c_int);
type Trsm = unsafe extern "C" fn(
    Letter,
    Letter,
    Letter,
    Letter,
    Number,
    Number,
    Factor,
    *const f64,
    Number,
    *mut f64,
    Number,
);
type Syrk = unsafe extern "C" fn(
    Letter,
    Letter,
    Number,
    Number,
    Factor,
    *const f64,
    Number,
    Factor,
    *mut f64,
    Number,
);
type Gemm = unsafe extern "C" fn(
    Letter,
    Letter,
    Number,
    Number,
    Number,
    Factor,
    *const f64,
    Number,
    *const f64,
    Number,
    Factor,
    *mut f64,
    Number,
);

/// What is called in OpenBLAS.
struct Blas {
    potrf: Potrf,
    trsm: Trsm,
    syrk: Syrk,
    gemm: Gemm,
    set_threads: unsafe extern "C" fn(c_int),
    core: unsafe extern "C" fn() -> *const c_char,
}

static BLAS: OnceLock<Blas> = OnceLock::new();

/// Those of OpenBLAS; [`OpenBlas`] is the proof that it is open.
static OPENBLAS: Kernels = Kernels {
    factor: blas_factor,
    solve: blas_solve,
    update_diagonal: blas_update_diagonal,
    update: blas_update,
};

fn blas() -> &'static Blas {
    BLAS.get()
        .unwrap_or_else(|| unreachable!("OpenBLAS was opened before its kernels were given out"))
}

fn int(n: c_long) -> c_int {
    c_int::try_from(n).unwrap_or(0)
}

// A row-major tile is, column by column, its own transpose: what is lower here is upper to LAPACK, and what
// comes from the right comes from the left.

unsafe extern "C" fn blas_factor(c: *mut f64, n: c_long) -> c_int {
    // SAFETY: a tile of `n * n` elements, row by row, that the caller owns.
    unsafe { potrf(c"U", c, n) }
}

/// The factor of a triangle of a matrix that lies column by column; 0, or which pivot is not positive.
///
/// # Safety
/// The matrix has `n * n` elements, and is the caller's.
unsafe fn potrf(triangle: &CStr, c: *mut f64, n: c_long) -> c_int {
    let (n, mut info) = (int(n), 0);
    // SAFETY: the caller vouches for the matrix.
    unsafe { (blas().potrf)(triangle.as_ptr(), &raw const n, c, &raw const n, &raw mut info) };
    info
}

unsafe extern "C" fn blas_solve(a: *const f64, c: *mut f64, n: c_long) {
    let n = int(n);
    let (n, one) = (&raw const n, &raw const ONE);
    let [left, upper, turned, diagonal] = [c"L", c"U", c"T", c"N"].map(CStr::as_ptr);
    // SAFETY: as in `blas_factor`, for both tiles.
    unsafe { (blas().trsm)(left, upper, turned, diagonal, n, n, one, a, n, c, n) };
}

unsafe extern "C" fn blas_update_diagonal(a: *const f64, c: *mut f64, n: c_long) {
    let n = int(n);
    let (n, minus, one) = (&raw const n, &raw const MINUS, &raw const ONE);
    let [upper, turned] = [c"U", c"T"].map(CStr::as_ptr);
    // SAFETY: as in `blas_factor`, for both tiles.
    unsafe { (blas().syrk)(upper, turned, n, n, minus, a, n, one, c, n) };
}

unsafe extern "C" fn blas_update(a: *const f64, b: *const f64, c: *mut f64, n: c_long) {
    let n = int(n);
    let (n, minus, one) = (&raw const n, &raw const MINUS, &raw const ONE);
    let [plain, turned] = [c"N", c"T"].map(CStr::as_ptr);
    // SAFETY: as in `blas_factor`, for all three tiles.
    unsafe { (blas().gemm)(turned, plain, n, n, n, minus, b, n, a, n, one, c, n) };
}

static ONE: f64 = 1.0;
static MINUS: f64 = -1.0;

/// OpenBLAS, open.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenBlas(());

impl OpenBlas {
    /// Opens it.
    pub(super) fn open() -> Result<Self> {
        let library = Library::open(c"libopenblas.so.0").context("libopenblas.so.0")?;
        if BLAS.get().is_none() {
            let _ = BLAS.set(Blas::of(library)?);
        }
        Ok(Self(()))
    }

    /// Its kernels on tiles. Each runs on as many threads as [`Self::threads`] said.
    #[allow(clippy::unused_self, reason = "whoever has a value has opened the library")]
    pub(super) fn kernels(self) -> &'static Kernels {
        &OPENBLAS
    }

    /// Threads of every call from here on.
    #[allow(clippy::unused_self, reason = "as above")]
    pub(super) fn threads(self, count: usize) {
        // SAFETY: any number is allowed.
        unsafe { (blas().set_threads)(c_int::try_from(count).unwrap_or(1)) };
    }

    /// The kind of core that it takes this one for.
    #[allow(clippy::unused_self, reason = "as above")]
    pub(super) fn core(self) -> String {
        // SAFETY: it has no arguments, and gives a text that is never freed.
        let name = unsafe { (blas().core)() };
        // SAFETY: as said; the text ends with a zero.
        unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
    }

    /// Factors a whole matrix, column by column in `a`; its lower triangle becomes the factor.
    #[allow(clippy::unused_self, reason = "as above")]
    pub(super) fn factor(self, a: &mut [f64], n: usize) -> Result<()> {
        assert!(is_tile(a, n));
        // SAFETY: the matrix has `n * n` elements, as was just checked.
        match unsafe { potrf(c"L", a.as_mut_ptr(), long(n)) } {
            0 => Ok(()),
            info => bail!("OpenBLAS: pivot {info} is not positive"),
        }
    }
}

impl Blas {
    fn of(library: Library) -> Result<Self> {
        let find = |name: &CStr| symbol(library, name);
        // SAFETY: LAPACK's DPOTRF has this type, with 32-bit numbers in this package.
        let potrf = unsafe { std::mem::transmute::<NonNull<c_void>, Potrf>(find(c"dpotrf_")?) };
        // SAFETY: the same for BLAS's DTRSM.
        let trsm = unsafe { std::mem::transmute::<NonNull<c_void>, Trsm>(find(c"dtrsm_")?) };
        // SAFETY: the same for BLAS's DSYRK.
        let syrk = unsafe { std::mem::transmute::<NonNull<c_void>, Syrk>(find(c"dsyrk_")?) };
        // SAFETY: the same for BLAS's DGEMM.
        let gemm = unsafe { std::mem::transmute::<NonNull<c_void>, Gemm>(find(c"dgemm_")?) };
        let threads = find(c"openblas_set_num_threads")?;
        let core = find(c"openblas_get_corename")?;
        // SAFETY: as OpenBLAS's cblas.h declares it.
        let set_threads =
            unsafe { std::mem::transmute::<NonNull<c_void>, unsafe extern "C" fn(c_int)>(threads) };
        // SAFETY: as OpenBLAS's cblas.h declares it.
        let core = unsafe {
            std::mem::transmute::<NonNull<c_void>, unsafe extern "C" fn() -> *const c_char>(core)
        };
        Ok(Self { potrf, trsm, syrk, gemm, set_threads, core })
    }
}
