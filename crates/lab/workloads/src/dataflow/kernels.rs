//! The kernels on tiles as tasks: which tiles each reads and which one it changes.

use isochrone_tasks::{Failure, Footprint, Kernel, Mem};

use super::matrix::Matrix;
use super::tile;

/// Row and column of a tile.
pub(super) type At = (u32, u32);

/// A kernel that reads the tiles in brackets and changes tile `c`.
macro_rules! tile_kernel {
    ($name:ident, $text:literal, [$($read:ident),*], $flops:ident, $priority:literal, $call:path) => {
        #[derive(Clone, Copy, Debug)]
        pub(super) struct $name {
            pub(super) matrix: Matrix,
            $(pub(super) $read: At,)*
            pub(super) c: At,
        }

        impl Kernel for $name {
            const NAME: &'static str = $text;

            fn declare(&self, footprint: &mut Footprint) {
                $(footprint.input(self.matrix.tile(self.$read.0, self.$read.1));)*
                footprint.inout(self.matrix.tile(self.c.0, self.c.1));
                footprint.flops(tile::flops::$flops(self.matrix.width())).priority($priority);
            }

            fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
                $(let $read = mem.read(self.matrix.tile(self.$read.0, self.$read.1))?;)*
                let mut c = mem.write(self.matrix.tile(self.c.0, self.c.1))?;
                Done::from($call($(&$read,)* &mut c, self.matrix.width())).0
            }
        }
    };
}

/// What a tile kernel gives: nothing, or why it could not.
struct Done(Result<(), Failure>);

impl From<()> for Done {
    fn from((): ()) -> Self {
        Self(Ok(()))
    }
}

impl From<Result<(), tile::NotPositive>> for Done {
    fn from(done: Result<(), tile::NotPositive>) -> Self {
        Self(done.map_err(Failure::from))
    }
}

// Tasks on the critical path of a factorisation go first: a diagonal tile, then what it frees.
tile_kernel!(Factor, "factor", [], third, 2, tile::factor);
tile_kernel!(Solve, "solve", [a], one, 1, tile::solve_right_transposed);
tile_kernel!(UpdateDiagonal, "update diagonal", [a], one, 0, tile::update_diagonal);
tile_kernel!(Update, "update", [a, b], two, 0, tile::update);
tile_kernel!(SolveNegated, "solve negated", [a], one, 0, tile::solve_right_negated);
tile_kernel!(SolveLeft, "solve left", [a], one, 0, tile::solve_left);
tile_kernel!(AddProduct, "add product", [a, b], two, 0, tile::add_product);
tile_kernel!(Invert, "invert", [], third, 0, tile::invert);
tile_kernel!(AddSquare, "add square", [a], one, 0, tile::add_square);
tile_kernel!(AddTransposed, "add transposed", [a, b], two, 0, tile::add_transposed_product);
tile_kernel!(MultiplyTransposed, "multiply transposed", [a], one, 0, tile::multiply_transposed);
tile_kernel!(Square, "square", [], third, 0, tile::square);
