//! Names of data and of parts of it: what kernels carry in their arguments and declare in their
//! footprints. A name holds no address, so it means the same in every process and on a simulated
//! machine.

use core::fmt;
use core::marker::PhantomData;

use bytemuck::Pod;

/// What data may consist of: plain values, valid for every pattern of bits.
pub trait Element: Pod + Send + Sync {}

impl<T: Pod + Send + Sync> Element for T {}

/// A registered piece of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataId(pub u32);

impl fmt::Display for DataId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "data {}", self.0)
    }
}

/// Bytes of a piece of data that lie together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    /// Which piece.
    pub data: DataId,
    /// First byte, counted from the beginning of the piece.
    pub start: u64,
    /// How many bytes.
    pub bytes: u64,
}

impl Range {
    /// The first byte behind the range.
    #[must_use]
    pub const fn end(self) -> u64 {
        self.start.saturating_add(self.bytes)
    }

    /// Whether the two have a byte in common.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        self.data.0 == other.data.0 && self.start < other.end() && other.start < self.end()
    }

    /// Whether every byte of `other` is in this range.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.data.0 == other.data.0 && self.start <= other.start && other.end() <= self.end()
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bytes {}..{} of {}", self.start, self.end(), self.data)
    }
}

/// A registered array of `T`.
pub struct Data<T> {
    id: DataId,
    len: usize,
    element: PhantomData<fn() -> T>,
}

/// Elements of a registered array that lie together.
pub struct Part<T> {
    id: DataId,
    first: usize,
    len: usize,
    element: PhantomData<fn() -> T>,
}

impl<T: Element> Data<T> {
    /// The array of `len` elements that was registered as `id`.
    pub(crate) const fn new(id: DataId, len: usize) -> Self {
        Self { id, len, element: PhantomData }
    }

    /// Its name.
    #[must_use]
    pub const fn id(self) -> DataId {
        self.id
    }

    /// How many elements.
    #[must_use]
    pub const fn len(self) -> usize {
        self.len
    }

    /// Whether there is no element.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// All elements.
    #[must_use]
    pub const fn all(self) -> Part<T> {
        self.part(0, self.len)
    }

    /// `len` elements from element `first` on. What lies outside of the array is refused where the
    /// part is used: by registration with its name and bounds, by [`crate::Mem`] as undeclared.
    #[must_use]
    pub const fn part(self, first: usize, len: usize) -> Part<T> {
        Part { id: self.id, first, len, element: PhantomData }
    }
}

impl<T: Element> Part<T> {
    /// First element, counted from the beginning of the array.
    #[must_use]
    pub const fn first(self) -> usize {
        self.first
    }

    /// How many elements.
    #[must_use]
    pub const fn len(self) -> usize {
        self.len
    }

    /// Whether there is no element.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The bytes.
    #[must_use]
    pub const fn range(self) -> Range {
        let unit = size_of::<T>() as u64;
        Range {
            data: self.id,
            start: (self.first as u64).saturating_mul(unit),
            bytes: (self.len as u64).saturating_mul(unit),
        }
    }
}

impl<T: Element> From<Part<T>> for Range {
    fn from(part: Part<T>) -> Self {
        part.range()
    }
}

impl<T: Element> From<Data<T>> for Range {
    fn from(data: Data<T>) -> Self {
        data.all().range()
    }
}

// Derived implementations would ask `T` for what a name does not need.
impl<T> Clone for Data<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Data<T> {}

impl<T> fmt::Debug for Data<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} elements", self.id, self.len)
    }
}

impl<T> Clone for Part<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Part<T> {}

impl<T> fmt::Debug for Part<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "elements {}..{} of {}", self.first, self.first + self.len, self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_become_bytes() {
        let data: Data<f64> = Data::new(DataId(3), 100);
        assert_eq!(Range::from(data.part(2, 5)), Range { data: DataId(3), start: 16, bytes: 40 });
        assert_eq!(data.all().range().end(), 800);
    }

    #[test]
    fn overlap_needs_a_common_byte_of_the_same_data() {
        let range = |data, start, bytes| Range { data: DataId(data), start, bytes };
        assert!(range(1, 0, 8).overlaps(range(1, 7, 1)));
        assert!(!range(1, 0, 8).overlaps(range(1, 8, 1)));
        assert!(!range(1, 0, 8).overlaps(range(2, 0, 8)));
        assert!(
            range(1, 4, 8).contains(range(1, 4, 8)) && !range(1, 4, 8).contains(range(1, 3, 2))
        );
    }
}
