//! The triad `a[i] = b[i] + s * c[i]`, the loop that bandwidth is counted by.
//!
//! Memory comes from the caller; the arrays of one core lie behind one another in it. Never
//! decides how long to run and reads no clock: that is the experiment's part.

use crate::mapping::Mapping;

/// Bytes that one element of the triad moves by the stated count: two read, one written, 8 bytes
/// each. The write-allocate read of `a` is not counted (as in McCalpin's STREAM).
pub const TRIAD_BYTES: u64 = 24;

/// The scalar of the triad; any value that is not a power of two keeps the multiplication.
const SCALAR: f64 = 3.0;

impl Mapping {
    /// The memory as numbers; `None` for memory that can be mapped a second time, where another
    /// view could change what an exclusive borrow promises to leave alone.
    pub fn numbers(&mut self) -> Option<&mut [f64]> {
        if self.memfd().is_some() {
            return None;
        }
        let count = self.len() / size_of::<f64>();
        // SAFETY: private memory, page-aligned, mapped for as long as the exclusive borrow, which
        // keeps every other access out; each bit pattern is a valid f64.
        Some(unsafe { core::slice::from_raw_parts_mut(self.as_ptr().cast::<f64>(), count) })
    }
}

/// The three arrays of a triad in one piece of memory.
#[derive(Debug)]
pub struct Triad<'a> {
    a: &'a mut [f64],
    b: &'a mut [f64],
    c: &'a mut [f64],
}

impl<'a> Triad<'a> {
    /// Lays three arrays of equal length into `numbers` and fills them, so that every page is
    /// there before the clock starts.
    pub fn new(numbers: &'a mut [f64]) -> Self {
        let each = numbers.len() / 3;
        let (a, rest) = numbers.split_at_mut(each);
        let (b, rest) = rest.split_at_mut(each);
        let c = &mut rest[..each];
        a.fill(0.0);
        b.fill(2.0);
        c.fill(0.5);
        Self { a, b, c }
    }

    /// One pass, in pieces of so many elements, at least 1; after each `done` is told the bytes that it moved by the
    /// stated count.
    pub fn pass(&mut self, elements: usize, mut done: impl FnMut(u64)) {
        let each = elements.max(1);
        let inputs = self.b.chunks(each).zip(self.c.chunks(each));
        for (a, (b, c)) in self.a.chunks_mut(each).zip(inputs) {
            piece(a, b, c);
            done(a.len() as u64 * TRIAD_BYTES);
        }
    }

    /// Whether every element is what the triad makes of it.
    #[must_use]
    pub fn is_right(&self) -> bool {
        let right = |((a, b), c): ((&f64, &f64), &f64)| (*a - (b + SCALAR * c)).abs() < 1e-12;
        self.a.iter().zip(&*self.b).zip(&*self.c).all(right)
    }
}

#[inline(never)]
fn piece(a: &mut [f64], b: &[f64], c: &[f64]) {
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        *a = b + SCALAR * c;
    }
    core::hint::black_box(a.as_ptr());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::Backing;

    #[test]
    fn shared_memory_is_not_lent_out_exclusively() {
        assert!(Mapping::shared_memfd(4096).unwrap().numbers().is_none());
    }

    #[test]
    fn a_pass_computes_every_element_and_counts_24_bytes_for_each() {
        let mut mapping = Mapping::anonymous(4096, Backing::Small).unwrap();
        let mut triad = Triad::new(mapping.numbers().unwrap());
        assert!(!triad.is_right());
        let (mut pieces, mut last) = (0, 0);
        triad.pass(32, |bytes| (pieces, last) = (pieces + 1, bytes));
        assert_eq!((pieces, last), (6, 10 * TRIAD_BYTES), "170 elements");
        assert!(triad.is_right());
        let mut all = 0;
        triad.pass(0, |bytes| all += bytes);
        assert_eq!(all, 170 * TRIAD_BYTES);
    }

    #[test]
    fn memory_too_small_for_three_numbers_moves_nothing() {
        Triad::new(&mut [0.0; 2]).pass(32, |_| panic!("nothing is moved"));
    }
}
