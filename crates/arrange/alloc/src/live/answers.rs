//! What a classifier is asked with and what it answers: plain data.

use crate::PageCodes;
use isochrone_units::PageAddr;

/// How a classifier is made.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Pages that the arena can grow to.
    pub pages_max: usize,
    /// Seed of all orders.
    pub seed: u64,
}

/// What [`super::Classifier::next_event`] yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The page's codes are known as well as they will be.
    Ready(PageAddr, PageCodes),
    /// Another frame is behind this page, which was ready: its lines are no longer where they were
    /// ranked. It is decoded again and comes as [`Self::Ready`] once more.
    Replaced(PageAddr),
}

/// How a slice ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slice {
    /// There is more to do.
    Paused,
    /// Every page is decoded and confirmed.
    Idle,
    /// No base of the atlas is the current one here, and there are no known pages from which to measure a
    /// new one: the program runs oblivious. It is tried again after some time.
    Unknown,
}

/// The current base of a core at one level, and how that was found out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Identity {
    /// Place in the dictionary; beyond it, a base that was measured in this program.
    pub base: u16,
    /// Probability that another base of the dictionary is the one.
    pub error: f32,
    /// Whether pages with known codes said so. If not, decoding has to confirm it.
    pub from_known_pages: bool,
    /// Whether it fits none of the dictionary and was measured anew.
    pub is_new: bool,
}

/// What classifying cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Pages that were yielded.
    pub ready: u64,
    /// Codes that were confirmed, of each page and level.
    pub confirmed: u64,
    /// Pages that ended without a code, of each level: all codes fitted them alike.
    pub undecodable: u64,
    /// Pages whose codes came from the atlas, by their frames.
    pub from_atlas: u64,
    /// Pages that were given another frame.
    pub replaced: u64,
    /// Timed loads: last-level cache, memory.
    pub loads: [u64; 2],
    /// Bases found changed.
    pub moves: u64,
    /// Nanoseconds spent in slices, identifying and checks.
    pub busy_ns: u64,
}
