//! The primitives written down.

use super::place::{Line, Span};

/// How a wait compares the word with the value it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compare {
    /// `word == value`, the paper's comparison.
    Equal,
    /// `word >= value`: with epochs that only grow, a rank that ran ahead does no harm.
    AtLeast,
}

impl Compare {
    /// Whether a wait for `value` ends at `word`.
    #[must_use]
    pub const fn holds(self, word: u64, value: u64) -> bool {
        match self {
            Self::Equal => word == value,
            Self::AtLeast => word >= value,
        }
    }
}

/// The type of the elements that a reduction combines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// `i32`.
    I32,
    /// `i64`.
    I64,
    /// `u32`.
    U32,
    /// `u64`.
    U64,
    /// `f32`.
    F32,
    /// `f64`.
    F64,
    /// `i8`.
    I8,
    /// `i16`.
    I16,
    /// `u8`.
    U8,
    /// `u16`.
    U16,
}

impl Element {
    /// Bytes of one element.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// Whether it is a floating-point number.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }
}

/// What a reduction does with two elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Combine {
    /// Their sum; integers wrap.
    Sum(Element),
    /// Their product; integers wrap.
    Product(Element),
    /// The smaller.
    Min(Element),
    /// The larger.
    Max(Element),
    /// Bitwise and; integers only.
    And(Element),
    /// Bitwise or; integers only.
    Or(Element),
    /// Bitwise exclusive or; integers only.
    Xor(Element),
    /// 1 where both are not 0, else 0; integers only.
    Both(Element),
    /// 1 where either is not 0, else 0; integers only.
    Either(Element),
    /// 1 where one of the two is not 0 and the other is, else 0; integers only.
    OneOf(Element),
}

impl Combine {
    /// The type of the elements.
    #[must_use]
    pub const fn element(self) -> Element {
        match self {
            Self::Sum(element)
            | Self::Product(element)
            | Self::Min(element)
            | Self::Max(element)
            | Self::And(element)
            | Self::Or(element)
            | Self::Xor(element)
            | Self::Both(element)
            | Self::Either(element)
            | Self::OneOf(element) => element,
        }
    }

    /// Whether it works on bits or on truth, which floating-point numbers have no meaning for.
    #[must_use]
    pub const fn is_bitwise(self) -> bool {
        let of_bits = matches!(self, Self::And(_) | Self::Or(_) | Self::Xor(_));
        of_bits || matches!(self, Self::Both(_) | Self::Either(_) | Self::OneOf(_))
    }
}

/// One primitive with its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// [`super::Lines::copy`].
    Copy {
        /// Where the bytes are.
        src: Span,
        /// Where they go.
        dst: Span,
    },
    /// [`super::Lines::wait`].
    Wait {
        /// The polled line.
        line: Line,
        /// How its word is compared.
        compare: Compare,
        /// For what.
        value: u64,
    },
    /// [`super::Lines::write`].
    Write {
        /// The line.
        line: Line,
        /// Its new word.
        value: u64,
    },
    /// [`super::Lines::add`].
    Add {
        /// The line.
        line: Line,
        /// What is added.
        value: u64,
    },
    /// [`super::Lines::claim`].
    Claim {
        /// The first line.
        line: Line,
        /// How many.
        lines: u32,
    },
    /// [`super::Lines::reduce`].
    Reduce {
        /// How two elements become one.
        combine: Combine,
        /// Right operand.
        src: Span,
        /// Left operand and result.
        dst: Span,
    },
}
