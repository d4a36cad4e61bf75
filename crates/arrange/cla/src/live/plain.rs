//! Types that collectives move and combine.

use crate::program::{Combine, Element};

mod sealed {
    pub trait Sealed {}
}

/// A type whose bytes are its value, so that they can be copied between processes.
pub trait Plain: Copy + sealed::Sealed {}

/// A number that a reduction combines.
pub trait Number: Plain {
    /// Its type as a program names it.
    const ELEMENT: Element;
}

macro_rules! plain {
    ($($type:ty),*) => { $( impl sealed::Sealed for $type {} impl Plain for $type {} )* };
}
plain!(u8, i8, u16, i16, u32, i32, u64, i64, u128, i128, usize, isize, f32, f64);

macro_rules! number {
    ($($type:ty => $element:ident),*) => {
        $( impl Number for $type { const ELEMENT: Element = Element::$element; } )*
    };
}
number!(
    i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    f32 => F32, f64 => F64
);

/// What a reduction does with two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Their sum; integers wrap.
    Sum,
    /// Their product; integers wrap.
    Product,
    /// The smaller.
    Min,
    /// The larger.
    Max,
    /// Bitwise and; integers only.
    And,
    /// Bitwise or; integers only.
    Or,
    /// Bitwise exclusive or; integers only.
    Xor,
    /// 1 where both are not 0, else 0; integers only.
    Both,
    /// 1 where either is not 0, else 0; integers only.
    Either,
    /// 1 where one of the two is not 0 and the other is, else 0; integers only.
    OneOf,
}

impl Reduction {
    /// The same over elements of one type.
    #[must_use]
    pub const fn of(self, element: Element) -> Combine {
        match self {
            Self::Sum => Combine::Sum(element),
            Self::Product => Combine::Product(element),
            Self::Min => Combine::Min(element),
            Self::Max => Combine::Max(element),
            Self::And => Combine::And(element),
            Self::Or => Combine::Or(element),
            Self::Xor => Combine::Xor(element),
            Self::Both => Combine::Both(element),
            Self::Either => Combine::Either(element),
            Self::OneOf => Combine::OneOf(element),
        }
    }
}
