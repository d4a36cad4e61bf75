//! Pieces of data: the parts of which is known where each lives. They are pages, or more where data are large.

/// Pieces of one datum whose homes are told apart.
const PIECES_MAX: u64 = 1 << 16;
/// Bytes of the smallest piece, as a power of two: a page.
pub(super) const PAGE_SHIFT: u32 = 12;

/// Bytes of a piece for data of so many bytes, as a power of two.
pub(crate) fn piece_shift(bytes: u64) -> u32 {
    (bytes.div_ceil(PIECES_MAX).next_power_of_two().trailing_zeros()).max(PAGE_SHIFT)
}

/// How many pieces.
pub(crate) fn pieces(bytes: u64) -> usize {
    usize::try_from(bytes.div_ceil(1 << piece_shift(bytes))).unwrap_or(usize::MAX)
}
