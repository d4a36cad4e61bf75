//! The state word of an entry, as a value: state, owner, flags, and whether somebody waits.

use crate::names::Actor;

/// What is being done to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Not in fast memory.
    Absent,
    /// Its owner wants to fetch it and has no frame for it yet.
    Seeking,
    /// Its owner fetches it, and has a frame for it.
    Filling,
    /// In fast memory.
    Resident,
    /// Its owner maps it into one more table, or gives write permission back.
    Mapping,
    /// Its owner writes it back early; it stays.
    Writing,
    /// Its owner takes it away. The page is there; the far copy may be torn.
    Evicting,
    /// Its owner takes it away. The far copy is whole; the page may be gone.
    Punching,
}

impl State {
    /// Whether there is an owner, and all others wait.
    #[must_use]
    pub const fn is_owned(self) -> bool {
        !matches!(self, Self::Absent | Self::Resident)
    }

    const fn code(self) -> u32 {
        match self {
            Self::Absent => 0,
            Self::Filling => 1,
            Self::Resident => 2,
            Self::Mapping => 3,
            Self::Writing => 4,
            Self::Evicting => 5,
            Self::Punching => 6,
            Self::Seeking => 7,
        }
    }

    const fn of(code: u32) -> Self {
        match code {
            0 => Self::Absent,
            1 => Self::Filling,
            2 => Self::Resident,
            3 => Self::Mapping,
            4 => Self::Writing,
            5 => Self::Evicting,
            6 => Self::Punching,
            _ => Self::Seeking,
        }
    }
}

/// What holds of a group beside its state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    /// The far tier has a copy; without one the group reads as zeros.
    pub stored: bool,
    /// The far copy is the newest, and no table may write: eviction need not copy.
    pub clean: bool,
    /// A mover fetched it and left it out of every table: the first touch is seen as a fault.
    pub marker: bool,
}

const STATE: u32 = 0b111;
const STORED: u32 = 1 << 3;
const CLEAN: u32 = 1 << 4;
const MARKER: u32 = 1 << 5;
const WAITERS: u32 = 1 << 6;
const OWNER_SHIFT: u32 = 16;
const OWNER: u32 = 0x1fff << OWNER_SHIFT;

impl Flags {
    const fn bits(self) -> u32 {
        let mut bits = 0;
        if self.stored {
            bits |= STORED;
        }
        if self.clean {
            bits |= CLEAN;
        }
        if self.marker {
            bits |= MARKER;
        }
        bits
    }
}

/// A state word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(pub u32);

impl Word {
    /// The word of an entry without an owner.
    #[must_use]
    pub const fn at_rest(state: State, flags: Flags) -> Self {
        Self(state.code() | flags.bits())
    }

    /// The state.
    #[must_use]
    pub const fn state(self) -> State {
        State::of(self.0 & STATE)
    }

    /// What holds beside.
    #[must_use]
    pub const fn flags(self) -> Flags {
        Flags {
            stored: self.0 & STORED != 0,
            clean: self.0 & CLEAN != 0,
            marker: self.0 & MARKER != 0,
        }
    }

    /// The owner, if the state has one.
    #[must_use]
    pub const fn owner(self) -> Actor {
        let [_, _, low, high] = (self.0 & OWNER).to_le_bytes();
        Actor(u16::from_le_bytes([low, high]))
    }

    /// Whether somebody sleeps, or is about to.
    #[must_use]
    pub const fn has_waiters(self) -> bool {
        self.0 & WAITERS != 0
    }

    pub(super) const fn with_state(self, state: State) -> Self {
        Self(self.0 & !STATE | state.code())
    }

    pub(super) const fn with_flags(self, flags: Flags) -> Self {
        Self(self.0 & !(STORED | CLEAN | MARKER) | flags.bits())
    }

    pub(super) const fn with_owner(self, owner: Actor) -> Self {
        Self(self.0 & !OWNER | (owner.0 as u32) << OWNER_SHIFT)
    }

    pub(super) const fn with_waiters(self) -> Self {
        Self(self.0 | WAITERS)
    }
}
