//! The tile kernels of `isochrone bench lu` behind C's calling convention, so that every system runs the same ones
//! (peers/lu.h).

// Tiles come as pointers from whoever called; each block says why it is right.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_long};
use std::slice::{from_raw_parts, from_raw_parts_mut};

use isochrone_workloads::dataflow::tile;

use crate::bench::tiled::{self, elements, is_tile, long, width};

/// `struct kernels` of peers/lu.h.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Kernels {
    factor: unsafe extern "C" fn(*mut f64, c_long) -> c_int,
    right: unsafe extern "C" fn(*const f64, *mut f64, c_long),
    below: unsafe extern "C" fn(*const f64, *mut f64, c_long),
    update: unsafe extern "C" fn(*const f64, *const f64, *mut f64, c_long),
}

impl tiled::Kernels for Kernels {
    const FAILED: &'static str = "a pivot is zero";

    fn elements(tiles: usize, width: usize) -> usize {
        (tiles * width).pow(2)
    }
}

/// Those of faer, which both ours and the peers call by pointer.
pub(super) static FAER: Kernels =
    Kernels { factor: faer_factor, right: faer_right, below: faer_below, update: faer_update };

impl Kernels {
    /// `c` becomes its factors; false where a pivot is zero.
    pub(super) fn factor(&self, c: &mut [f64], n: usize) -> bool {
        assert!(is_tile(c, n));
        // SAFETY: the tile has `n * n` elements, as was just checked, which is all that the kernel uses.
        unsafe { (self.factor)(c.as_mut_ptr(), long(n)) == 0 }
    }

    /// `c <- L^-1 c`.
    pub(super) fn right(&self, a: &[f64], c: &mut [f64], n: usize) {
        assert!(is_tile(a, n) && is_tile(c, n));
        // SAFETY: as in `factor`, for both.
        unsafe { (self.right)(a.as_ptr(), c.as_mut_ptr(), long(n)) }
    }

    /// `c <- c U^-1`.
    pub(super) fn below(&self, a: &[f64], c: &mut [f64], n: usize) {
        assert!(is_tile(a, n) && is_tile(c, n));
        // SAFETY: as in `factor`, for both.
        unsafe { (self.below)(a.as_ptr(), c.as_mut_ptr(), long(n)) }
    }

    /// `c <- c - a b`.
    pub(super) fn update(&self, a: &[f64], b: &[f64], c: &mut [f64], n: usize) {
        assert!(is_tile(a, n) && is_tile(b, n) && is_tile(c, n));
        // SAFETY: as in `factor`, for all three.
        unsafe { (self.update)(a.as_ptr(), b.as_ptr(), c.as_mut_ptr(), long(n)) }
    }
}

unsafe extern "C" fn faer_factor(c: *mut f64, n: c_long) -> c_int {
    // SAFETY: whoever calls a kernel owns the tile, as peers/lu.h asks.
    let c = unsafe { from_raw_parts_mut(c, elements(n)) };
    c_int::from(tile::lu(c, width(n)).is_err())
}

unsafe extern "C" fn faer_right(a: *const f64, c: *mut f64, n: c_long) {
    // SAFETY: nobody writes the tile meanwhile: its task waits for it.
    let a = unsafe { from_raw_parts(a, elements(n)) };
    // SAFETY: as in `faer_factor`; it is another tile.
    tile::solve_left_unit(a, unsafe { from_raw_parts_mut(c, elements(n)) }, width(n));
}

unsafe extern "C" fn faer_below(a: *const f64, c: *mut f64, n: c_long) {
    // SAFETY: as in `faer_right`.
    let a = unsafe { from_raw_parts(a, elements(n)) };
    // SAFETY: as in `faer_right`.
    tile::solve_right_upper(a, unsafe { from_raw_parts_mut(c, elements(n)) }, width(n));
}

unsafe extern "C" fn faer_update(a: *const f64, b: *const f64, c: *mut f64, n: c_long) {
    // SAFETY: as in `faer_right`.
    let a = unsafe { from_raw_parts(a, elements(n)) };
    // SAFETY: as in `faer_right`.
    let b = unsafe { from_raw_parts(b, elements(n)) };
    // SAFETY: as in `faer_right`.
    tile::subtract_product(a, b, unsafe { from_raw_parts_mut(c, elements(n)) }, width(n));
}
