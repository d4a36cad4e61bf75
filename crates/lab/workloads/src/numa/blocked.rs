//! How often a kernel on tiles goes to memory for each of its tiles: one blocked kernel, run line by line
//! through one core's caches.
//!
//! The loops are those of BLIS for Haswell (`bli_cntx_init_haswell`, double precision): a panel of B of 256
//! rows is packed, then blocks of A of 72 x 256, and micro-tiles of 6 x 8 of C are updated by both. What is
//! packed is the core's own memory. Solves and factorisations are such updates of shrinking parts, in panels
//! as wide as the packed ones.

use isochrone_sim::coherence::PrivateCaches;

/// BLIS's block sizes for double precision on Haswell: rows of A, depth, rows and columns of a micro-tile.
const MC: u64 = 72;
const KC: u64 = 256;
const MR: u64 = 6;
const NR: u64 = 8;
/// Bytes of a double.
const WORD: u64 = 8;

/// What kind of kernel on tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Blocked {
    /// `C += A B`: reads two tiles.
    Update,
    /// The same with `B = A^T`, lower triangle of C only: reads one tile.
    UpdateDiagonal,
    /// C by a triangular tile: reads one tile.
    Solve,
    /// C alone, lower triangle.
    Factor,
}

/// Operands of a trace: the tiles that are read, C, and the packed buffers.
const A: usize = 0;
const B: usize = 1;
const C: usize = 2;
const PACKED_A: usize = 3;
const PACKED_B: usize = 4;

/// What a kernel asks of memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Traced {
    /// How often each tile comes from memory, in the order in which kernels declare them: those read, then C.
    pub passes: Vec<f32>,
    /// Bytes of the buffers that the core packs tiles into.
    pub packed_bytes: u64,
    /// How often they come from memory to be written; they go back as often.
    pub packed_written: f32,
    /// How often they come to be read.
    pub packed_read: f32,
}

/// Runs a kernel on tiles of `width` rows. `share_bytes` is what the core has of the last level, `second_bytes`
/// its second one.
#[must_use]
pub fn traced(kind: Blocked, width: u64, second_bytes: u64, share_bytes: u64) -> Traced {
    let caches = PrivateCaches::new(second_bytes, share_bytes, 5);
    let mut trace = Trace { caches, width, packing: 0 };
    match kind {
        Blocked::Update => trace.update([0, width], [0, width], [0, width], false, [A, B]),
        Blocked::UpdateDiagonal => trace.update([0, width], [0, width], [0, width], true, [A, A]),
        Blocked::Solve => trace.solve(),
        Blocked::Factor => trace.factor(),
    }
    let fetched = trace.caches.fetched();
    let lines = width * width * WORD / 64;
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "counts of lines"
    )]
    let often = |operand: usize| fetched[operand] as f32 / lines as f32;
    let passes = match kind {
        Blocked::Update => vec![often(A), often(B), often(C)],
        Blocked::UpdateDiagonal | Blocked::Solve => vec![often(A), often(C)],
        Blocked::Factor => vec![often(C)],
    };
    let packed_bytes = (width + MC) * KC * WORD;
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "counts of lines"
    )]
    let packed = |lines: u64| lines as f32 / (packed_bytes / 64) as f32;
    let both = fetched[PACKED_A] + fetched[PACKED_B];
    Traced {
        passes,
        packed_bytes,
        packed_written: packed(trace.packing),
        packed_read: packed(both - trace.packing),
    }
}

struct Trace {
    caches: PrivateCaches,
    width: u64,
    /// Lines of packed buffers that were fetched to be written.
    packing: u64,
}

impl Trace {
    /// Rows `rows` of column `column` of a tile.
    fn column(&mut self, tile: usize, column: u64, rows: [u64; 2]) {
        let at = (column * self.width + rows[0]) * WORD;
        self.caches.touch(tile, at, (rows[1] - rows[0]) * WORD);
    }

    /// Packs so many values into a buffer.
    fn pack(&mut self, buffer: usize, values: u64) {
        let before = self.caches.fetched()[buffer];
        self.caches.touch(buffer, 0, values * WORD);
        self.packing += self.caches.fetched()[buffer] - before;
    }

    /// `C[rows, columns] += A[rows, depth] B[columns, depth]^T`.
    fn update(
        &mut self,
        rows: [u64; 2],
        columns: [u64; 2],
        depth: [u64; 2],
        lower: bool,
        [a, b]: [usize; 2],
    ) {
        for k in steps(depth, KC) {
            for at in k[0]..k[1] {
                self.column(b, at, columns);
            }
            self.pack(PACKED_B, (columns[1] - columns[0]) * (k[1] - k[0]));
            for block in steps(rows, MC) {
                for at in k[0]..k[1] {
                    self.column(a, at, block);
                }
                self.pack(PACKED_A, (block[1] - block[0]) * (k[1] - k[0]));
                self.block(block, columns, k, lower);
            }
        }
    }

    /// Micro-tiles of one block of rows. A micro-panel of packed B stays in the first level while it is
    /// used.
    fn block(&mut self, rows: [u64; 2], columns: [u64; 2], depth: [u64; 2], lower: bool) {
        let deep = depth[1] - depth[0];
        for right in steps(columns, NR) {
            let at = (right[0] - columns[0]) * deep * WORD;
            self.caches.touch(PACKED_B, at, (right[1] - right[0]) * deep * WORD);
            for down in steps(rows, MR) {
                if lower && down[1] <= right[0] {
                    continue;
                }
                let at = (down[0] - rows[0]) * deep * WORD;
                self.caches.touch(PACKED_A, at, (down[1] - down[0]) * deep * WORD);
                for column in right[0]..right[1] {
                    self.column(C, column, down);
                }
            }
        }
    }

    /// `C = C A^-T` for a triangular A: panel by panel, each followed by the update of those behind it.
    fn solve(&mut self) {
        let width = self.width;
        for panel in steps([0, width], KC) {
            for column in panel[0]..panel[1] {
                self.column(A, column, [column, panel[1]]);
                self.column(C, column, [0, width]);
            }
            if panel[1] < width {
                self.update([0, width], [panel[1], width], panel, false, [C, A]);
            }
        }
    }

    /// `C = L L^T` in place, lower triangle.
    fn factor(&mut self) {
        let width = self.width;
        for panel in steps([0, width], KC) {
            for column in panel[0]..panel[1] {
                self.column(C, column, [column, width]);
            }
            let rest = [panel[1], width];
            if panel[1] < width {
                self.update(rest, rest, panel, true, [C, C]);
            }
        }
    }
}

/// `range` in parts of `step`.
fn steps(range: [u64; 2], step: u64) -> impl Iterator<Item = [u64; 2]> {
    (0..(range[1] - range[0]).div_ceil(step)).map(move |part| {
        let from = range[0] + part * step;
        [from, (from + step).min(range[1])]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tiles_come_once_where_they_fit() {
        for kind in [Blocked::Update, Blocked::UpdateDiagonal, Blocked::Solve, Blocked::Factor] {
            let passes = traced(kind, 192, 256 << 10, 8 << 20).passes;
            assert!(passes.iter().all(|often| *often <= 1.0), "{kind:?}: {passes:?}");
            assert!(passes.iter().any(|often| *often > 0.5), "{kind:?}: {passes:?}");
        }
    }

    #[test]
    fn c_is_gone_through_once_for_each_panel_where_it_does_not_fit() {
        let Traced { passes, packed_written, packed_read, .. } =
            traced(Blocked::Update, 768, 256 << 10, 2560 << 10);
        // Packed buffers and what streams by fill the core's share: they are fetched again, and not where
        // the core has twice as much.
        assert!(packed_written > 0.5 && packed_read > 0.5, "{packed_written} {packed_read}");
        let alone = traced(Blocked::Update, 768, 256 << 10, 5120 << 10);
        assert!(alone.packed_written + alone.packed_read < 2.0, "{alone:?}");
        assert!((passes[0] - 1.0).abs() < 0.1 && (passes[1] - 1.0).abs() < 0.1, "{passes:?}");
        assert!((2.5..=3.2).contains(&passes[2]), "{passes:?}");
    }
}
