//! How messages are told apart by their bytes.

use crate::collectives::Options;
use crate::program::Line;

/// The classes that messages fall into, by the bytes that they hold at most: one line, a few lines, more.
pub const CLASSES: [u32; 3] = [Line::PAYLOAD_BYTES, FEW_LINES_BYTES, 1 << 20];
/// Bytes beside the flag of a few lines.
const FEW_LINES_BYTES: u32 = Options::CHUNK_LINES * Line::BYTES - Line::WORD_BYTES;
/// Bytes of a call at most, over all ranks.
pub const BYTES_MAX: usize = 1 << 30;

/// The class of a message: one line, a few lines, more.
pub(super) fn class(bytes: usize) -> usize {
    let beyond = |class: usize| usize::from(bytes > CLASSES[class] as usize);
    beyond(0) + beyond(1)
}
