//! What reductions can be done on.

use crate::footprint::Op;
use crate::range::Element;

/// Numbers that a reduction combines.
pub trait Reducible: Element {
    /// What changes nothing when it is combined with any other value.
    fn neutral(op: Op) -> Self;
    /// Both together.
    #[must_use]
    fn combine(self, other: Self, op: Op) -> Self;
}

macro_rules! integers {
    ($($kind:ty),*) => {$(
        impl Reducible for $kind {
            fn neutral(op: Op) -> Self {
                match op {
                    Op::Sum => 0,
                    Op::Min => Self::MAX,
                    Op::Max => Self::MIN,
                }
            }

            fn combine(self, other: Self, op: Op) -> Self {
                match op {
                    Op::Sum => self.wrapping_add(other),
                    Op::Min => self.min(other),
                    Op::Max => self.max(other),
                }
            }
        }
    )*};
}

macro_rules! floats {
    ($($kind:ty),*) => {$(
        impl Reducible for $kind {
            fn neutral(op: Op) -> Self {
                match op {
                    Op::Sum => 0.0,
                    Op::Min => Self::INFINITY,
                    Op::Max => Self::NEG_INFINITY,
                }
            }

            fn combine(self, other: Self, op: Op) -> Self {
                match op {
                    Op::Sum => self + other,
                    Op::Min => self.min(other),
                    Op::Max => self.max(other),
                }
            }
        }
    )*};
}

integers!(u8, u16, u32, u64, i8, i16, i32, i64);
floats!(f32, f64);
