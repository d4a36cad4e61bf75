//! What the front of an area is made of: how much of everything, and words that lie alone.

use super::sync::AtomicU32;
use super::word::Word;

/// Bytes of a line.
pub(super) const LINE_BYTES: usize = 64;
/// Cores that are told apart.
pub(super) const CORES_MAX: usize = 8192;
/// Ranks of one team at most.
pub(super) const RANKS_MAX: usize = 1024;
/// Pairs of lines that may be chosen among for flags.
pub(super) const CANDIDATES: usize = 2048;
/// Lines that go to and fro between two ranks that compare their counters: lines have different homes.
pub(super) const STAMPS: usize = 32;

/// Pieces of an arena that a team takes beside its first one.
pub(super) const MORE: usize = 32;

/// Calls of which a rank has said something lately.
pub(super) const SAID: usize = 32;

/// A number on a line of its own.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct Alone(pub(super) AtomicU32);

/// A line's word on a line of its own.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct AloneWord(pub(super) Word);
