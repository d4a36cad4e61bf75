//! The integral histogram by blocks: for every pixel, how often each value occurs in the rectangle from
//! the image's corner to that pixel.
//!
//! Two scans, as in the paper: along the rows, where a block needs the last column of its left
//! neighbour, and down the columns, where it needs the last row of the block above. A block of the
//! result is `[row][column][bin]`. The last column of a block is kept a second time where it lies together,
//! `[row][bin]`, so that a neighbour reads it and not the whole block.

mod tasks;

pub use tasks::{Integral, pixel};

/// How many values a pixel is sorted into (section 5 of the paper).
pub const BINS: usize = 32;

/// A count of pixels.
pub type Count = u32;

/// A square image in square blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// Blocks along one side.
    pub blocks: usize,
    /// Pixels along one side of a block.
    pub side: usize,
}

impl Image {
    /// The paper's input: 65536 x 65536 pixels in blocks of 512 x 512 (section 5).
    pub const PAPER: Self = Self { blocks: 128, side: 512 };

    /// Pixels of a block.
    #[must_use]
    pub const fn pixels(self) -> usize {
        self.side * self.side
    }

    /// Counts in a block of the result.
    #[must_use]
    pub const fn counts(self) -> usize {
        self.pixels() * BINS
    }
}

/// The bin of a pixel.
#[must_use]
pub fn bin(value: u8) -> usize {
    usize::from(value) * BINS / 256
}

/// The scan along the rows: counts in each row of a block from the image's left edge on. `edge` holds
/// the last column of the block to the left, zeroes at the image's edge, and then that of this block.
pub fn scan_rows(image: &[u8], edge: &mut [Count], out: &mut [Count], side: usize) {
    let rows = image.chunks_exact(side).zip(out.chunks_exact_mut(side * BINS));
    for ((pixels, out), edge) in rows.zip(edge.as_chunks_mut::<BINS>().0) {
        for (value, out) in pixels.iter().zip(out.chunks_exact_mut(BINS)) {
            edge[bin(*value)] += 1;
            out.copy_from_slice(edge);
        }
    }
}

/// The scan down the columns, in place. `above` is the last row of the finished block above, none at the
/// edge.
pub fn scan_columns(above: Option<&[Count]>, block: &mut [Count], side: usize) {
    let row_len = side * BINS;
    if let Some(above) = above {
        add(above, &mut block[..row_len]);
    }
    for row in 1..side {
        let (done, rest) = block.split_at_mut(row * row_len);
        add(&done[(row - 1) * row_len..], &mut rest[..row_len]);
    }
}

fn add(from: &[Count], to: &mut [Count]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += from;
    }
}

/// The last row of a block.
#[must_use]
pub fn last_row(block: &[Count], side: usize) -> &[Count] {
    &block[(side - 1) * side * BINS..]
}

/// The integral histogram of an image whose pixel at row `y` and column `x` is `value(y, x)`, by the
/// recurrence over the three neighbours: the reference, `[row][column][bin]` over the whole image.
#[must_use]
pub fn reference(width: usize, value: impl Fn(usize, usize) -> u8) -> Vec<Count> {
    let mut out = vec![0; width * width * BINS];
    for y in 0..width {
        for x in 0..width {
            for b in 0..BINS {
                let at = |y: usize, x: usize| out[(y * width + x) * BINS + b];
                let up = if y > 0 { at(y - 1, x) } else { 0 };
                let left = if x > 0 { at(y, x - 1) } else { 0 };
                let both = if x > 0 && y > 0 { at(y - 1, x - 1) } else { 0 };
                out[(y * width + x) * BINS + b] =
                    up + left - both + Count::from(bin(value(y, x)) == b);
            }
        }
    }
    out
}
