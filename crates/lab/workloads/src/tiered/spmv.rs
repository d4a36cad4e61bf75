//! A sparse matrix times a vector, again and again: the rank of the nodes of a graph. The degrees of the
//! graph follow a power law, so some entries of the vector are read by nearly every row and most by few:
//! reuse is skewed, unlike in a stencil.
//!
//! The matrix is made from its seed, row by row, so that each worker makes its own part.

use std::ops::Range;

use super::stencil::digest;

/// A problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spmv {
    /// Rows, and columns.
    pub rows: usize,
    /// Entries of a row, in the mean.
    pub entries: usize,
    /// How many products are made, one after the other.
    pub iterations: u32,
    /// What the graph is made from.
    pub seed: u64,
}

impl Spmv {
    fn hash(&self, row: usize, number: usize) -> u64 {
        let mut x =
            self.seed ^ (row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (number as u64) << 48;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Entries of one row: between half of the mean and one and a half of it.
    #[must_use]
    pub fn length(&self, row: usize) -> usize {
        let spread = self.entries.max(1) as u64;
        let extra = self.hash(row, 0xffff) % (spread + 1);
        self.entries / 2 + usize::try_from(extra).unwrap_or(0)
    }

    /// A column of an entry. Its place is the cube of an even draw, so that the density of a place falls
    /// as a power of it; places are scattered over the columns, so that what is frequent does not lie in
    /// one page.
    #[must_use]
    pub fn column(&self, row: usize, number: usize) -> u32 {
        // Fixed point: 32 bits behind the point.
        let draw = self.hash(row, number) >> 32;
        let cube = (((draw * draw) >> 32) * draw) >> 32;
        let place = (u128::from(cube) * self.rows as u128) >> 32;
        let scattered = place * 0x9e37_79b1 % self.rows.max(1) as u128;
        u32::try_from(scattered).unwrap_or(0)
    }

    /// Where each row begins among all entries, and behind it where the last ends.
    #[must_use]
    pub fn starts(&self) -> Vec<u64> {
        let mut starts = Vec::with_capacity(self.rows + 1);
        let mut next = 0;
        for row in 0..self.rows {
            starts.push(next);
            next += self.length(row) as u64;
        }
        starts.push(next);
        starts
    }

    /// Bytes of all arrays, each rounded up to pages of `unit` bytes.
    #[must_use]
    pub fn bytes(&self, entries: usize, unit: usize) -> usize {
        let whole = |bytes: usize| bytes.next_multiple_of(unit);
        whole((self.rows + 1) * 8) + whole(entries * 4) + 2 * whole(self.rows * 8)
    }

    /// Fills the columns of some rows.
    pub fn fill(&self, rows: Range<usize>, columns: &mut [u32]) {
        let mut at = 0;
        for row in rows {
            for number in 0..self.length(row) {
                columns[at] = self.column(row, number);
                at += 1;
            }
        }
    }

    /// One product of some rows: each gets its share of what its neighbours have, and a little for
    /// itself, as in PageRank.
    pub fn multiply(
        &self,
        starts: &[u64],
        columns: &[u32],
        x: &[f64],
        rows: Range<usize>,
        out: &mut [f64],
    ) {
        let first = rows.start;
        let place = |start: u64| usize::try_from(start).unwrap_or(usize::MAX);
        for row in rows {
            let mine = &columns[place(starts[row])..place(starts[row + 1])];
            let sum: f64 = mine.iter().map(|column| x[*column as usize]).sum();
            out[row - first] = 0.15 + 0.85 * sum / mine.len().max(1) as f64;
        }
    }

    /// A number that any other bits would change.
    #[must_use]
    pub fn digest(&self, rows: Range<usize>, values: &[f64]) -> u64 {
        rows.zip(values)
            .map(|(row, value)| digest(row as u64, std::iter::once(value.to_bits())))
            .fold(0, u64::wrapping_add)
    }

    /// The same on plain memory.
    #[must_use]
    pub fn reference(&self) -> u64 {
        let starts = self.starts();
        let entries = usize::try_from(starts[self.rows]).unwrap_or(0);
        let mut columns = vec![0; entries];
        self.fill(0..self.rows, &mut columns);
        let mut x = vec![1.0; self.rows];
        let mut out = vec![0.0; self.rows];
        for _ in 0..self.iterations {
            self.multiply(&starts, &columns, &x, 0..self.rows, &mut out);
            std::mem::swap(&mut x, &mut out);
        }
        self.digest(0..self.rows, &x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Spmv = Spmv { rows: 2000, entries: 8, iterations: 3, seed: 5 };

    #[test]
    fn degrees_follow_a_power_law() {
        let mut degrees = vec![0_u32; SMALL.rows];
        let mut all = 0;
        for row in 0..SMALL.rows {
            for number in 0..SMALL.length(row) {
                degrees[SMALL.column(row, number) as usize] += 1;
                all += 1;
            }
        }
        degrees.sort_unstable_by(|a, b| b.cmp(a));
        let top: u32 = degrees[..20].iter().sum();
        assert!(top * 6 > all, "one in a hundred has {top} of {all}");
        assert!((all as usize).abs_diff(SMALL.rows * 8) < 2000);
    }

    #[test]
    fn parts_give_the_bits_of_the_whole() {
        let starts = SMALL.starts();
        let mut columns = vec![0; usize::try_from(starts[2000]).unwrap()];
        SMALL.fill(0..2000, &mut columns);
        let mut half = vec![0; usize::try_from(starts[2000] - starts[900]).unwrap()];
        SMALL.fill(900..2000, &mut half);
        assert_eq!(half, columns[usize::try_from(starts[900]).unwrap()..]);
        let x: Vec<f64> = (0..2000).map(f64::from).collect();
        let (mut whole, mut part) = (vec![0.0; 2000], vec![0.0; 50]);
        SMALL.multiply(&starts, &columns, &x, 0..2000, &mut whole);
        SMALL.multiply(&starts, &columns, &x, 70..120, &mut part);
        assert_eq!(whole[70..120], part[..]);
        let sum = SMALL
            .digest(0..900, &whole[..900])
            .wrapping_add(SMALL.digest(900..2000, &whole[900..]));
        assert_eq!(sum, SMALL.digest(0..2000, &whole));
    }
}
