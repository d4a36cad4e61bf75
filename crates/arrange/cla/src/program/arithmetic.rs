//! What a reduction does with bytes, for every reading that moves real ones.

use super::operation::{Combine, Element};

/// A number that a reduction combines.
trait Number<const BYTES: usize>: Copy + PartialOrd {
    fn load(bytes: [u8; BYTES]) -> Self;
    fn store(self) -> [u8; BYTES];
    fn sum(self, other: Self) -> Self;
    fn product(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    /// Whether it is not 0.
    fn truth(self) -> bool;
    /// 1 or 0.
    fn of_truth(truth: bool) -> Self;
}

macro_rules! integers {
    ($($type:ty, $bytes:literal;)*) => { $(
        impl Number<$bytes> for $type {
            fn load(bytes: [u8; $bytes]) -> Self { Self::from_ne_bytes(bytes) }
            fn store(self) -> [u8; $bytes] { self.to_ne_bytes() }
            fn sum(self, other: Self) -> Self { self.wrapping_add(other) }
            fn product(self, other: Self) -> Self { self.wrapping_mul(other) }
            fn and(self, other: Self) -> Self { self & other }
            fn or(self, other: Self) -> Self { self | other }
            fn xor(self, other: Self) -> Self { self ^ other }
            fn truth(self) -> bool { self != 0 }
            fn of_truth(truth: bool) -> Self { Self::from(truth) }
        }
    )* };
}

macro_rules! floats {
    ($($type:ty, $bits:ty, $bytes:literal;)*) => { $(
        impl Number<$bytes> for $type {
            fn load(bytes: [u8; $bytes]) -> Self { Self::from_ne_bytes(bytes) }
            fn store(self) -> [u8; $bytes] { self.to_ne_bytes() }
            fn sum(self, other: Self) -> Self { self + other }
            fn product(self, other: Self) -> Self { self * other }
            fn and(self, other: Self) -> Self { Self::from_bits(self.to_bits() & other.to_bits()) }
            fn or(self, other: Self) -> Self { Self::from_bits(self.to_bits() | other.to_bits()) }
            fn xor(self, other: Self) -> Self { Self::from_bits(self.to_bits() ^ other.to_bits()) }
            fn truth(self) -> bool { self.to_bits() << 1 != 0 }
            fn of_truth(truth: bool) -> Self { Self::from(u8::from(truth)) }
        }
    )* };
}

integers! { i8, 1; i16, 2; i32, 4; i64, 8; u8, 1; u16, 2; u32, 4; u64, 8; }
floats! { f32, u32, 4; f64, u64, 8; }

impl Combine {
    /// `left[i] = combine(left[i], right[i])` over the elements of both, which have the same length.
    /// Bytes beyond the last whole element stay as they are.
    ///
    /// Sums and products of integers wrap. Of two floating-point numbers that are equal or not
    /// comparable, minimum and maximum take the right one, as C's `a < b ? a : b` does.
    #[inline]
    pub fn combine(self, left: &mut [u8], right: &[u8]) {
        match self.element() {
            Element::I32 => self.each::<i32, 4>(left, right),
            Element::I64 => self.each::<i64, 8>(left, right),
            Element::U32 => self.each::<u32, 4>(left, right),
            Element::U64 => self.each::<u64, 8>(left, right),
            Element::F32 => self.each::<f32, 4>(left, right),
            Element::F64 => self.each::<f64, 8>(left, right),
            Element::I8 => self.each::<i8, 1>(left, right),
            Element::I16 => self.each::<i16, 2>(left, right),
            Element::U8 => self.each::<u8, 1>(left, right),
            Element::U16 => self.each::<u16, 2>(left, right),
        }
    }

    #[inline]
    fn each<T: Number<BYTES>, const BYTES: usize>(self, left: &mut [u8], right: &[u8]) {
        match self {
            Self::Sum(_) => zip(left, right, T::sum),
            Self::Product(_) => zip(left, right, T::product),
            Self::Min(_) => zip(left, right, |a: T, b| if a < b { a } else { b }),
            Self::Max(_) => zip(left, right, |a: T, b| if a > b { a } else { b }),
            Self::And(_) => zip(left, right, T::and),
            Self::Or(_) => zip(left, right, T::or),
            Self::Xor(_) => zip(left, right, T::xor),
            Self::Both(_) => truths(left, right, |a: T, b| a.truth() && b.truth()),
            Self::Either(_) => truths(left, right, |a: T, b| a.truth() || b.truth()),
            Self::OneOf(_) => truths(left, right, |a: T, b| a.truth() != b.truth()),
        }
    }
}

#[inline]
fn zip<T: Number<BYTES>, const BYTES: usize>(
    left: &mut [u8],
    right: &[u8],
    combine: impl Fn(T, T) -> T,
) {
    let (left, _) = left.as_chunks_mut::<BYTES>();
    let (right, _) = right.as_chunks::<BYTES>();
    for (a, b) in left.iter_mut().zip(right) {
        *a = combine(T::load(*a), T::load(*b)).store();
    }
}

#[inline]
fn truths<T: Number<BYTES>, const BYTES: usize>(
    left: &mut [u8],
    right: &[u8],
    holds: impl Fn(T, T) -> bool,
) {
    zip(left, right, |a, b| T::of_truth(holds(a, b)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_combined_one_by_one() {
        let bytes = |numbers: [i32; 2]| numbers.map(i32::to_ne_bytes).concat();
        let of = |combine: Combine, a, b| {
            let mut left = bytes(a);
            combine.combine(&mut left, &bytes(b));
            left
        };
        let i = Element::I32;
        assert_eq!(of(Combine::Sum(i), [i32::MAX, 2], [1, 3]), bytes([i32::MIN, 5]));
        assert_eq!(of(Combine::Product(i), [7, -2], [3, 3]), bytes([21, -6]));
        assert_eq!(of(Combine::Min(i), [7, -2], [3, 3]), bytes([3, -2]));
        assert_eq!(of(Combine::Max(i), [7, -2], [3, 3]), bytes([7, 3]));
        assert_eq!(of(Combine::And(i), [6, 1], [3, 1]), bytes([2, 1]));
        assert_eq!(of(Combine::Or(i), [6, 1], [3, 1]), bytes([7, 1]));
        assert_eq!(of(Combine::Xor(i), [6, 1], [3, 1]), bytes([5, 0]));
        assert_eq!(of(Combine::Max(Element::U32), [-1, 1], [3, 2]), bytes([-1, 2]));
        assert_eq!(of(Combine::Both(i), [7, 0], [256, 3]), bytes([1, 0]));
        assert_eq!(of(Combine::Either(i), [0, 0], [256, 0]), bytes([1, 0]));
        assert_eq!(of(Combine::OneOf(i), [7, 0], [256, 3]), bytes([0, 1]));
        let small = |combine: Combine, left: [i8; 3], right: [i8; 3]| {
            let mut left = left.map(i8::cast_unsigned);
            combine.combine(&mut left, &right.map(i8::cast_unsigned));
            left.map(u8::cast_signed)
        };
        assert_eq!(small(Combine::Min(Element::I8), [-5, 3, 127], [4, -4, 1]), [-5, -4, 1]);
        assert_eq!(small(Combine::Min(Element::U8), [-5, 3, 127], [4, -4, 1]), [4, 3, 1]);
        assert_eq!(small(Combine::Sum(Element::I8), [-5, 3, 127], [4, -4, 1]), [-1, -1, -128]);
        // A byte that is no whole element stays.
        assert_eq!(small(Combine::Sum(Element::U16), [-1, 0, 9], [1, 0, 1]), [0, 1, 9]);
    }

    #[test]
    fn the_left_operand_stands_first() {
        let mut left = f64::NAN.to_ne_bytes();
        Combine::Min(Element::F64).combine(&mut left, &1.0_f64.to_ne_bytes());
        assert_eq!(f64::from_ne_bytes(left), 1.0);
        let mut left = 1.5_f32.to_ne_bytes();
        Combine::Product(Element::F32).combine(&mut left, &(-2.0_f32).to_ne_bytes());
        assert_eq!(f32::from_ne_bytes(left), -3.0);
    }
}
