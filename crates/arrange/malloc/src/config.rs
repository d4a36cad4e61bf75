//! What a process is told: the record of fixed layout that `isochrone run` writes and the library
//! reads at start, since the library reads one environment variable only.
//!
//! All of it is plain data, little-endian, [`CONFIG_BYTES`] long: reading it needs no allocation
//! and never panics on any bytes. What the words mean for placing is `isochrone-alloc`'s to say.

use isochrone_alloc::{Mode, Policy};
use isochrone_units::CoreId;

/// The environment variable that holds the path of the record.
pub const CONFIG_VARIABLE: &str = "ISOCHRONE_CONFIG";
/// Length of the record.
pub const CONFIG_BYTES: usize = 12_288;
/// The most cores that a record can list.
pub const CORES_MAX: usize = 1024;
/// The longest path that a record can hold, in bytes.
pub const PATH_BYTES_MAX: usize = 2047;

/// Placeable bytes that a process allocates before anything is classified, unless it is told
/// otherwise: short programs pay for nothing.
pub const START_BYTES: u64 = 1 << 20;

const MAGIC: [u8; 8] = *b"ISO-CFG\x04";

/// How threads are bound to cores when they first allocate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pin {
    /// Each to the next core of the list: all on neighbouring cores.
    Compact,
    /// Each to the core of the list that has the fewest and is farthest from those in use.
    Spread,
    /// Not at all: a thread's nearest lines are those of the core on which it allocates.
    #[default]
    None,
}

/// A path as bytes, without a terminating zero.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PathBytes {
    bytes: [u8; PATH_BYTES_MAX + 1],
    length: usize,
}

/// The cores that the process may use, in the order in which threads are bound to them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CoreList {
    cores: [CoreId; CORES_MAX],
    count: usize,
}

/// What a process is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// How lines are placed. Where it is `checked`, double frees, foreign pointers and overlaps
    /// end the process.
    pub policy: Policy,
    /// How threads are bound.
    pub pin: Pin,
    /// The most memory that may be placed in, bytes.
    pub arena_bytes_max: u64,
    /// Placeable bytes that a process allocates before anything is classified.
    pub start_bytes: u64,
    /// The cores to place for, in the order in which threads are bound to them; none for those of
    /// the atlas.
    pub cores: CoreList,
    /// The atlas; empty for none, and then nothing is placed.
    pub atlas: PathBytes,
    /// The folder for reports; empty for none.
    pub reports: PathBytes,
    /// A file of [`crate::BINDINGS_BYTES`] zeros, in which all processes that are told of it count
    /// the threads that they bind; empty for a process that counts its own only.
    pub bindings: PathBytes,
    /// Filters of system calls (seccomp(2)) that whoever writes this runs under, as
    /// [`crate::filters::count`] says: a process under others places nothing.
    pub filters: u32,
    /// Goes on placing where no base is recognised.
    pub force: bool,
    /// Nothing is placed, and some of what is allocated is looked at: its size and how long it lives.
    pub watches: bool,
    /// The atlas promises a gain, so that learning is worth its beginning earlier than where it may be in vain.
    pub promised: bool,
}

/// Why bytes are no configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// Too short, or not a configuration of this version.
    Foreign,
    /// A word has a value that it cannot have; its offset in bytes.
    Value(usize),
}

impl core::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Foreign => f.write_str(
                "not a configuration of this version; let `isochrone run` of the same build write it",
            ),
            Self::Value(at) => write!(
                f,
                "the configuration holds an impossible value at byte {at}; let `isochrone run` write it"
            ),
        }
    }
}

impl core::error::Error for ConfigError {}

impl PathBytes {
    /// No path.
    pub const NONE: Self = Self { bytes: [0; PATH_BYTES_MAX + 1], length: 0 };

    /// A path; `None` if it is longer than [`PATH_BYTES_MAX`] or holds a zero.
    #[must_use]
    pub fn new(path: &[u8]) -> Option<Self> {
        let mut copy = Self::NONE;
        if path.len() > PATH_BYTES_MAX || path.contains(&0) {
            return None;
        }
        copy.bytes.get_mut(..path.len())?.copy_from_slice(path);
        copy.length = path.len();
        Some(copy)
    }

    /// The path's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&[])
    }

    /// The path as the system calls want it.
    #[must_use]
    pub fn as_c_str(&self) -> &core::ffi::CStr {
        core::ffi::CStr::from_bytes_until_nul(&self.bytes).unwrap_or(c"")
    }

    /// Whether there is no path.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl core::fmt::Debug for PathBytes {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:?}", self.as_c_str())
    }
}

impl CoreList {
    /// No core.
    pub const NONE: Self = Self { cores: [CoreId(0); CORES_MAX], count: 0 };

    /// A list; `None` if it is longer than [`CORES_MAX`].
    #[must_use]
    pub fn new(cores: &[CoreId]) -> Option<Self> {
        let mut copy = Self::NONE;
        copy.cores.get_mut(..cores.len())?.copy_from_slice(cores);
        copy.count = cores.len();
        Some(copy)
    }

    /// The cores.
    #[must_use]
    pub fn as_slice(&self) -> &[CoreId] {
        self.cores.get(..self.count).unwrap_or(&[])
    }
}

impl core::fmt::Debug for CoreList {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

impl Default for Config {
    /// Nothing to place: there is no atlas.
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            pin: Pin::None,
            arena_bytes_max: 16 << 30,
            start_bytes: START_BYTES,
            cores: CoreList::NONE,
            atlas: PathBytes::NONE,
            reports: PathBytes::NONE,
            bindings: PathBytes::NONE,
            filters: 0,
            force: false,
            watches: false,
            promised: false,
        }
    }
}

impl Config {
    /// The record.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; CONFIG_BYTES] {
        let mut record = Record { bytes: [0; CONFIG_BYTES], at: 0 };
        record.put(MAGIC);
        record.put(mode_tag(self.policy.mode).to_le_bytes());
        record.put(pin_tag(self.pin).to_le_bytes());
        record.put(self.policy.near.to_le_bytes());
        record.put(self.policy.waste.to_le_bytes());
        record.put(self.policy.slack_bytes.to_le_bytes());
        record.put(self.policy.llc_bytes.to_le_bytes());
        record.put(self.policy.seed.to_le_bytes());
        record.put(self.arena_bytes_max.to_le_bytes());
        record.put(self.start_bytes.to_le_bytes());
        record.put(self.policy.l2_bytes.to_le_bytes());
        record.put(self.policy.tlb_bytes.to_le_bytes());
        record.put(u32::from(self.policy.checked).to_le_bytes());
        record.put(u32::try_from(self.cores.count).unwrap_or(0).to_le_bytes());
        for core in self.cores.cores {
            record.put(core.0.to_le_bytes());
        }
        record.put(self.atlas.bytes);
        record.put(self.reports.bytes);
        record.put(self.bindings.bytes);
        record.put(self.filters.to_le_bytes());
        record.put(u32::from(self.force).to_le_bytes());
        record.put(u32::from(self.watches).to_le_bytes());
        record.put(u32::from(self.promised).to_le_bytes());
        record.bytes
    }

    /// Reads a record.
    ///
    /// # Errors
    /// [`ConfigError`] with what is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ConfigError> {
        let bytes = *bytes.first_chunk().ok_or(ConfigError::Foreign)?;
        let mut record = Record { bytes, at: 0 };
        if record.take() != MAGIC {
            return Err(ConfigError::Foreign);
        }
        let mode = record.checked(mode_of)?;
        let pin = record.checked(pin_of)?;
        let share = |value: [u8; 4]| {
            let value = f32::from_le_bytes(value);
            (0.0..=1e6).contains(&value).then_some(value)
        };
        let near = record.checked(share)?;
        let waste = record.checked(share)?;
        let [slack_bytes, llc_bytes, seed, arena_bytes_max, start_bytes, l2_bytes, tlb_bytes] =
            core::array::from_fn(|_| u64::from_le_bytes(record.take()));
        let checked = record.checked(flag)?;
        let count = record.checked(|word| {
            usize::try_from(u32::from_le_bytes(word)).ok().filter(|&count| count <= CORES_MAX)
        })?;
        let cores = core::array::from_fn(|_| CoreId(u16::from_le_bytes(record.take())));
        let atlas = record.checked(path_of)?;
        let reports = record.checked(path_of)?;
        let bindings = record.checked(path_of)?;
        let filters = u32::from_le_bytes(record.take());
        let force = record.checked(flag)?;
        let watches = record.checked(flag)?;
        let promised = record.checked(flag)?;
        Ok(Self {
            policy: Policy {
                mode,
                near,
                waste,
                slack_bytes,
                llc_bytes,
                l2_bytes,
                tlb_bytes,
                seed,
                checked,
            },
            pin,
            arena_bytes_max,
            start_bytes,
            cores: CoreList { cores, count },
            atlas,
            reports,
            bindings,
            filters,
            force,
            watches,
            promised,
        })
    }
}

/// A record with a place in it. Its length is a constant, and so is that of all that is put in.
struct Record {
    bytes: [u8; CONFIG_BYTES],
    at: usize,
}

const _: () = assert!(
    8 + 4 * 4 + 7 * 8 + 6 * 4 + 2 * CORES_MAX + 3 * (PATH_BYTES_MAX + 1) <= CONFIG_BYTES,
    "everything fits"
);

impl Record {
    fn put<const N: usize>(&mut self, field: [u8; N]) {
        if let Some(place) = self.bytes.get_mut(self.at..self.at + N) {
            place.copy_from_slice(&field);
        }
        self.at += N;
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let field = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk);
        self.at += N;
        field.copied().unwrap_or([0; N])
    }

    fn checked<const N: usize, T>(
        &mut self,
        read: impl FnOnce([u8; N]) -> Option<T>,
    ) -> Result<T, ConfigError> {
        let at = self.at;
        read(self.take()).ok_or(ConfigError::Value(at))
    }
}

pub(crate) const fn mode_tag(mode: Mode) -> u32 {
    match mode {
        Mode::Aware => 0,
        Mode::Oblivious => 1,
        #[cfg(feature = "arms")]
        Mode::Adversarial => 2,
        #[cfg(feature = "arms")]
        Mode::Oracle => 3,
        Mode::NearestParticipant => 4,
    }
}

fn flag(word: [u8; 4]) -> Option<bool> {
    match u32::from_le_bytes(word) {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

pub(crate) fn mode_of(tag: [u8; 4]) -> Option<Mode> {
    let modes = [
        Mode::Aware,
        Mode::Oblivious,
        #[cfg(feature = "arms")]
        Mode::Adversarial,
        #[cfg(feature = "arms")]
        Mode::Oracle,
        Mode::NearestParticipant,
    ];
    modes.into_iter().find(|&mode| mode_tag(mode) == u32::from_le_bytes(tag))
}

const fn pin_tag(pin: Pin) -> u32 {
    match pin {
        Pin::Compact => 0,
        Pin::Spread => 1,
        Pin::None => 2,
    }
}

fn pin_of(tag: [u8; 4]) -> Option<Pin> {
    let pins = [Pin::Compact, Pin::Spread, Pin::None];
    pins.into_iter().find(|&pin| pin_tag(pin) == u32::from_le_bytes(tag))
}

fn path_of(bytes: [u8; PATH_BYTES_MAX + 1]) -> Option<PathBytes> {
    let length = bytes.iter().position(|&byte| byte == 0)?;
    PathBytes::new(bytes.get(..length)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        Config {
            policy: Policy {
                mode: Mode::Adversarial,
                near: 0.125,
                waste: 0.5,
                slack_bytes: 1 << 20,
                llc_bytes: 32 << 20,
                l2_bytes: 2 << 20,
                tlb_bytes: 8 << 20,
                seed: 9,
                checked: true,
            },
            pin: Pin::Spread,
            arena_bytes_max: 1 << 30,
            start_bytes: 4096,
            cores: CoreList::new(&[CoreId(3), CoreId(1)]).expect("short"),
            atlas: PathBytes::new(b"/tmp/a.atlas").expect("short"),
            reports: PathBytes::NONE,
            bindings: PathBytes::NONE,
            filters: 7,
            force: true,
            watches: true,
            promised: true,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for mode in [
            Mode::Aware,
            Mode::Oblivious,
            Mode::Adversarial,
            Mode::Oracle,
            Mode::NearestParticipant,
        ] {
            for pin in [Pin::Compact, Pin::Spread, Pin::None] {
                let mut config = config();
                (config.policy.mode, config.pin) = (mode, pin);
                assert_eq!(Config::from_bytes(&config.to_bytes()), Ok(config));
            }
        }
    }

    #[test]
    fn the_longest_paths_and_lists_fit() {
        let mut config = config();
        config.atlas = PathBytes::new(&[b'a'; PATH_BYTES_MAX]).expect("just fits");
        config.reports = PathBytes::new(&[b'b'; PATH_BYTES_MAX]).expect("just fits");
        config.bindings = PathBytes::new(&[b'c'; PATH_BYTES_MAX]).expect("just fits");
        config.cores = CoreList::new(&[CoreId(7); CORES_MAX]).expect("just fits");
        assert_eq!(Config::from_bytes(&config.to_bytes()), Ok(config));
        assert_eq!(PathBytes::new(&[b'a'; PATH_BYTES_MAX + 1]), None);
        assert_eq!(PathBytes::new(b"a\0b"), None);
        assert_eq!(CoreList::new(&[CoreId(7); CORES_MAX + 1]), None);
    }

    #[test]
    fn nonsense_is_refused_and_never_panics() {
        assert_eq!(Config::from_bytes(&[]), Err(ConfigError::Foreign));
        assert_eq!(Config::from_bytes(&[0; CONFIG_BYTES]), Err(ConfigError::Foreign));
        let good = config().to_bytes();
        assert_eq!(Config::from_bytes(&good[..CONFIG_BYTES - 1]), Err(ConfigError::Foreign));
        for at in 0..good.len() {
            let mut bad = good;
            bad[at] ^= 0xff;
            // Any answer will do, as long as there is one.
            let _ = Config::from_bytes(&bad);
        }
        let mut bad = good;
        bad[8] = 5;
        assert_eq!(Config::from_bytes(&bad), Err(ConfigError::Value(8)));
        bad = good;
        bad[16..20].copy_from_slice(&f32::NAN.to_le_bytes());
        assert_eq!(Config::from_bytes(&bad), Err(ConfigError::Value(16)));
    }
}
