//! What a process leaves: how much was placed and how near, what was not and why, and what it
//! cost. A record of fixed layout, [`REPORT_BYTES`] long, in a shared mapping of a file, so that a
//! process that is killed leaves it too.
//!
//! Reading it is plain decoding. The words are written by many threads with relaxed additions:
//! each is right, but two of them may be some objects apart while the process runs. Nothing here
//! is derived: means and shares are methods, and they are `None` where nothing was counted.

use isochrone_alloc::{Mode, SizeClass};
use isochrone_units::Level;

/// Length of the record.
pub const REPORT_BYTES: usize = 8 * WORDS;
/// What the name of a report ends in.
pub const REPORT_SUFFIX: &str = ".isochrone-report";

pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"ISO-RPT\x05");
pub(crate) const WORDS: usize = 384;
/// Size classes; their order is that of `SizeClass`.
pub const CLASSES: usize = SizeClass::COUNT;

/// Bytes of a slot of a size class.
#[must_use]
pub fn class_bytes(class: usize) -> usize {
    SizeClass::ALL.get(class).map_or(0, |class| class.bytes())
}

/// Why an object was not placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Larger than 256 bytes.
    Size,
    /// Aligned more strictly than its class is.
    Alignment,
    /// Before the process had allocated enough to begin.
    BeforeStart,
    /// The arena had no page left, or its limit was reached.
    ArenaFull,
    /// There is no atlas, or it does not describe this machine's cores.
    NoAtlas,
    /// On a core whose base could not be told, or since none was told at all: most pages looked as no base says.
    UnknownBase,
    /// By a thread whose storage was already destroyed.
    DeadThread,
    /// Inside of another call: a signal handler, or libc while a thread was set up.
    Nested,
    /// The configuration or the memory for the tables could not be had.
    NoMemory,
    /// The process may not ask the system for more than glibc's allocator does.
    Filtered,
    /// A base may be known, and in the time that is spent on it too few pages could be decoded.
    TooSparse,
    /// The model predicts no gain of the bases that the cores have, or of the share that was near.
    NoGain,
    /// While the process was learning whether there is anything to gain.
    Learning,
    /// The process asked for small objects again and again, and has next to none in use: those lie in a cache.
    StaysSmall,
}

impl Reason {
    /// All reasons, in the order of the record.
    pub const ALL: [Self; 14] = [
        Self::Size,
        Self::Alignment,
        Self::BeforeStart,
        Self::ArenaFull,
        Self::NoAtlas,
        Self::UnknownBase,
        Self::DeadThread,
        Self::Nested,
        Self::NoMemory,
        Self::Filtered,
        Self::TooSparse,
        Self::NoGain,
        Self::Learning,
        Self::StaysSmall,
    ];

    /// Lower-case name, as JSON writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Alignment => "alignment",
            Self::BeforeStart => "before_start",
            Self::ArenaFull => "arena_full",
            Self::NoAtlas => "no_atlas",
            Self::UnknownBase => "unknown_base",
            Self::DeadThread => "dead_thread",
            Self::Nested => "nested",
            Self::NoMemory => "no_memory",
            Self::Filtered => "filtered",
            Self::TooSparse => "too_sparse",
            Self::NoGain => "no_gain",
            Self::Learning => "learning",
            Self::StaysSmall => "stays_small",
        }
    }

    /// Whether an object delegated for this reason could have been placed.
    #[must_use]
    pub const fn is_placeable(self) -> bool {
        !matches!(self, Self::Size | Self::Alignment)
    }
}

/// Single words of the record. Their numbers are the file format. Cycles are thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Word {
    Magic = 0,
    Process,
    Mode,
    ClockHz,
    Ended,
    Threads,
    Drawn,
    Near,
    HomeChanges,
    Classified,
    Demoted,
    Drift,
    ArenaBytes,
    AssignedBytes,
    TableBytes,
    PeakBytes,
    /// Why nothing is placed any more: the place of the reason in [`Reason::ALL`], and one.
    Aside,
    StartupNs,
    StartNs,
    ClassificationNs,
    Slices,
    SliceNsMax,
    LongSlices,
    MemoryNsMax,
    /// Lines and their summed distance, handed out and sampled from the pool, by level.
    Distances = 24,
    /// First of [`CLASSES`] pairs: objects, bytes.
    Placed = 32,
    /// First of the pairs of [`Reason::ALL`].
    Delegated = 64,
    /// Memory for lines that a child of `fork` has from its parent.
    InheritedBytes = 96,
    /// First of [`LIVE_CORES`] times four words: the core's number and one, what was taken for it
    /// at the end, bytes, and the mean distance of that at each level and one.
    Live = 128,
    /// First of those of a process that is watched ([`Sampled`]).
    Watched = 256,
}

/// Bytes up to which objects of a process that is watched are counted together; there are larger ones, too, and all of
/// those are looked at.
pub const SIZES: [usize; 8] = [16, 32, 64, 128, 256, 1024, 4096, 32 << 10];
/// Nanoseconds within which objects of a process that is watched are gone that are counted together; some live longer.
pub const LIVES_NS: [u64; 7] =
    [1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

/// The class of an object of so many bytes.
pub(crate) fn size_class(bytes: usize) -> usize {
    SIZES.iter().filter(|most| bytes > **most).count()
}

/// The class of an object that lived so long.
pub(crate) fn lives(ns: u64) -> usize {
    LIVES_NS.iter().filter(|most| ns > **most).count()
}

/// What is counted of a process that is watched, with classes of size and of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sampled {
    /// Allocations that are not large.
    Calls,
    /// Objects that were looked at.
    Objects(usize),
    /// Their bytes.
    Bytes(usize),
    /// Those that were followed.
    Followed(usize),
    /// Of these, those that went.
    Gone(usize, usize),
}

impl Sampled {
    const CLASSES: usize = SIZES.len() + 1;
    const LIVES: usize = LIVES_NS.len() + 1;
    /// The last one.
    pub(crate) const LAST: Self = Self::Gone(Self::CLASSES - 1, Self::LIVES - 1);

    /// Where it is counted.
    pub(crate) const fn word(self) -> usize {
        let first = Word::Watched as usize;
        match self {
            Self::Calls => first,
            Self::Objects(class) => first + 1 + class,
            Self::Bytes(class) => first + 1 + Self::CLASSES + class,
            Self::Followed(class) => first + 1 + 2 * Self::CLASSES + class,
            Self::Gone(class, life) => first + 1 + (3 + life) * Self::CLASSES + class,
        }
    }
}

/// Objects of one size in a process that is watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchedSize {
    /// That were looked at.
    pub objects: u64,
    /// Their bytes, as they were asked for.
    pub bytes: u64,
    /// That were followed from when they came.
    pub followed: u64,
    /// Of these, those that went, by how long they lived ([`LIVES_NS`]; the last longer). All others live at the end.
    pub gone: [u64; LIVES_NS.len() + 1],
}

/// What a process allocated that is watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// Allocations of no more bytes than the last of [`SIZES`]: all of them, but for the last some hundred of each
    /// thread other than the one that ends the process.
    pub calls: u64,
    /// By size ([`SIZES`]; the last larger).
    pub sizes: [WatchedSize; SIZES.len() + 1],
}

/// Cores of which a record says what was live at the end.
pub(crate) const LIVE_CORES: usize = 32;

/// What was taken for one core when the process ended, what its threads had at hand included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LiveOfCore {
    /// The core.
    pub core: u16,
    /// Bytes of slots; of a large arena an estimate from a part of its pages.
    pub bytes: u64,
    /// Their mean distance from the core in the last-level cache and in memory, cycles, as far as
    /// it is known.
    pub cycles: [Option<f64>; 2],
}

/// Of which lines distances are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lines {
    HandedOut = 0,
    Pool = 1,
}

/// Objects and their bytes, as the program asked for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub objects: u64,
    /// Bytes asked for.
    pub bytes: u64,
}

impl core::ops::Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { objects: self.objects + other.objects, bytes: self.bytes + other.bytes }
    }
}

impl core::iter::Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        tallies.fold(Self::default(), |sum, tally| sum + tally)
    }
}

/// What a process has counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub(crate) words: [u64; WORDS],
}

impl Report {
    /// Reads a record; `None` for bytes that are none of this version.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let record = bytes.first_chunk::<REPORT_BYTES>()?;
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(record.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        let report = Self { words };
        (report.word(Word::Magic) == MAGIC && report.mode().is_some()).then_some(report)
    }

    fn word(&self, word: Word) -> u64 {
        self.words[word as usize]
    }

    fn tally(&self, at: usize) -> Tally {
        match self.words.get(at..at + 2) {
            Some(&[objects, bytes]) => Tally { objects, bytes },
            _ => Tally::default(),
        }
    }

    /// The process's number.
    #[must_use]
    pub fn process(&self) -> u64 {
        self.word(Word::Process)
    }

    /// How lines were placed.
    #[must_use]
    pub fn mode(&self) -> Option<Mode> {
        crate::config::mode_of(u32::try_from(self.word(Word::Mode)).ok()?.to_le_bytes())
    }

    /// Whether the process ended by itself. If not, it was killed, replaced by `exec`, or left by
    /// `_exit`, and objects of each thread since its last refill are missing.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.word(Word::Ended) != 0
    }

    /// Objects placed of one size class, whose slots have [`class_bytes`].
    #[must_use]
    pub fn placed_of_class(&self, class: usize) -> Tally {
        if class < CLASSES {
            self.tally(Word::Placed as usize + 2 * class)
        } else {
            Tally::default()
        }
    }

    /// Objects placed.
    #[must_use]
    pub fn placed(&self) -> Tally {
        (0..CLASSES).map(|class| self.placed_of_class(class)).sum()
    }

    /// Objects that were left to glibc for this reason.
    #[must_use]
    pub fn delegated(&self, reason: Reason) -> Tally {
        self.tally(Word::Delegated as usize + 2 * reason as usize)
    }

    /// Objects that could have been placed, whether they were or not.
    #[must_use]
    pub fn placeable(&self) -> Tally {
        let missed = Reason::ALL.into_iter().filter(|reason| reason.is_placeable());
        self.placed() + missed.map(|reason| self.delegated(reason)).sum()
    }

    /// Share of the placeable bytes that were placed.
    #[must_use]
    pub fn placed_share(&self) -> Option<f64> {
        ratio(self.placed().bytes, self.placeable().bytes)
    }

    /// Share of the slots drawn from the pool that were near for the core they went to.
    #[must_use]
    pub fn near_share(&self) -> Option<f64> {
        ratio(self.word(Word::Near), self.word(Word::Drawn))
    }

    /// Slots drawn from the pool; a slot that a thread frees and takes again counts once.
    #[must_use]
    pub fn drawn_slots(&self) -> u64 {
        self.word(Word::Drawn)
    }

    /// Mean distance of the slots drawn, in cycles, from the core they went to, with their lines
    /// at this level.
    #[must_use]
    pub fn distance_cycles(&self, level: Level) -> Option<f64> {
        self.mean_cycles(Lines::HandedOut, level)
    }

    /// The same for lines drawn evenly from the pool: what an allocator gets that knows nothing
    /// of distances.
    #[must_use]
    pub fn oblivious_cycles(&self, level: Level) -> Option<f64> {
        self.mean_cycles(Lines::Pool, level)
    }

    fn mean_cycles(&self, of: Lines, level: Level) -> Option<f64> {
        let at = distance_words(of, level);
        let (lines, cycles) = (self.words[at], self.words[at + 1]);
        (lines != 0).then(|| wide(cycles) / 1000.0 / wide(lines))
    }

    /// What a process allocated that was watched; nothing but zeros of others.
    #[must_use]
    pub fn watched(&self) -> Watched {
        let of = |of: Sampled| self.words.get(of.word()).copied().unwrap_or(0);
        let size = |class| WatchedSize {
            objects: of(Sampled::Objects(class)),
            bytes: of(Sampled::Bytes(class)),
            followed: of(Sampled::Followed(class)),
            gone: core::array::from_fn(|life| of(Sampled::Gone(class, life))),
        };
        Watched { calls: of(Sampled::Calls), sizes: core::array::from_fn(size) }
    }

    /// Cycles in a second, to turn distances into time.
    #[must_use]
    pub fn clock_hz(&self) -> Option<f64> {
        let hz = self.word(Word::ClockHz);
        (hz != 0).then(|| wide(hz))
    }

    /// Threads that had lines placed.
    #[must_use]
    pub fn threads(&self) -> u64 {
        self.word(Word::Threads)
    }

    /// Pages whose codes were decoded.
    #[must_use]
    pub fn classified_pages(&self) -> u64 {
        self.word(Word::Classified)
    }

    /// Pages whose frame was replaced, so that their codes are no longer believed.
    #[must_use]
    pub fn demoted_pages(&self) -> u64 {
        self.word(Word::Demoted)
    }

    /// Times that a core was found to have another base than before.
    #[must_use]
    pub fn drift_events(&self) -> u64 {
        self.word(Word::Drift)
    }

    /// Times that a thread was found on another core than before.
    #[must_use]
    pub fn home_changes(&self) -> u64 {
        self.word(Word::HomeChanges)
    }

    /// Memory taken for lines, bytes.
    #[must_use]
    pub fn arena_bytes(&self) -> u64 {
        self.word(Word::ArenaBytes)
    }

    /// Of these, what a child of `fork` has from its parent, bytes. Of these lines nothing is known,
    /// and only those that the child itself frees are handed out again.
    #[must_use]
    pub fn inherited_bytes(&self) -> u64 {
        self.word(Word::InheritedBytes)
    }

    /// The pages that belong to a size class, bytes; in a child of `fork` what was live when it
    /// began, and its own pages.
    #[must_use]
    pub fn assigned_bytes(&self) -> u64 {
        self.word(Word::AssignedBytes)
    }

    /// Memory taken for tables, bytes.
    #[must_use]
    pub fn table_bytes(&self) -> u64 {
        self.word(Word::TableBytes)
    }

    /// Most bytes of lines that were in use at once, as seen at refills.
    #[must_use]
    pub fn peak_live_bytes(&self) -> u64 {
        self.word(Word::PeakBytes)
    }

    /// What was live at the end for each core that had anything; nothing if the process did not end
    /// by itself.
    pub fn live_of_cores(&self) -> impl Iterator<Item = LiveOfCore> + '_ {
        let words = &self.words[Word::Live as usize..];
        words.as_chunks::<4>().0.iter().take(LIVE_CORES).filter_map(|&[core, bytes, llc, dram]| {
            let cycles = |word: u64| Some(wide(word.checked_sub(1)?) / 1000.0);
            let core = u16::try_from(core.checked_sub(1)?).ok()?;
            Some(LiveOfCore { core, bytes, cycles: [cycles(llc), cycles(dram)] })
        })
    }

    /// Why the process leaves everything to glibc for good, though it was told to place; `None` where
    /// it did not come to that.
    #[must_use]
    pub fn placed_no_more(&self) -> Option<Reason> {
        let place = usize::try_from(self.word(Word::Aside)).ok()?.checked_sub(1)?;
        Reason::ALL.get(place).copied()
    }

    /// What loading the library cost, nanoseconds.
    #[must_use]
    pub fn startup_ns(&self) -> u64 {
        self.word(Word::StartupNs)
    }

    /// What opening the atlas and reserving memory cost when the process had allocated enough,
    /// nanoseconds.
    #[must_use]
    pub fn start_ns(&self) -> u64 {
        self.word(Word::StartNs)
    }

    /// Time spent decoding pages and identifying bases, nanoseconds, by whichever thread.
    #[must_use]
    pub fn classification_ns(&self) -> u64 {
        self.word(Word::ClassificationNs)
    }

    /// Slices of that work done inside of an allocation, and the longest of them in nanoseconds.
    #[must_use]
    pub fn slices(&self) -> (u64, u64) {
        (self.word(Word::Slices), self.word(Word::SliceNsMax))
    }

    /// Slices that took more than 100 microseconds.
    #[must_use]
    pub fn long_slices(&self) -> u64 {
        self.word(Word::LongSlices)
    }

    /// The longest time that the system took to give memory, nanoseconds; slices in which it was
    /// asked hold it too.
    #[must_use]
    pub fn memory_ns_max(&self) -> u64 {
        self.word(Word::MemoryNsMax)
    }
}

/// The first of two words: lines and thousandths of cycles.
pub(crate) const fn distance_words(of: Lines, level: Level) -> usize {
    let level = match level {
        Level::Llc => 0,
        Level::Dram => 1,
    };
    Word::Distances as usize + 4 * of as usize + 2 * level
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole != 0).then(|| wide(part) / wide(whole))
}

#[allow(clippy::cast_precision_loss, reason = "no count of a process reaches 2^53")]
fn wide(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests;
