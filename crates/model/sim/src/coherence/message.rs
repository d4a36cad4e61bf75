//! The six classes of messages, where they are counted, and how large they are.
//!
//! Counters stand where those of a bullion's switches stand: a message counts once when it enters a
//! switch from its own sockets, and once when it leaves a switch towards its own sockets. What stays
//! inside a module never meets a switch and is not in them.

use std::ops::{AddAssign, Index, IndexMut};

/// A message class (Table 1 of the paper).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Data write back: a line to a memory controller.
    Dwb,
    /// Data to cache: a line to a cache.
    Dtc,
    /// Home request: from a cache to a memory controller.
    Hreq,
    /// Snoop: a memory controller or a switch asks a cache.
    Snp,
    /// Home response: the answer to a snoop.
    Hrsp,
    /// Non-data response: a transaction is complete.
    Ndr,
}

impl Class {
    /// All, in the order of the paper's table.
    pub const ALL: [Self; 6] = [Self::Dwb, Self::Dtc, Self::Hreq, Self::Snp, Self::Hrsp, Self::Ndr];

    /// Whether it carries a line.
    #[must_use]
    pub const fn is_data(self) -> bool {
        matches!(self, Self::Dwb | Self::Dtc)
    }

    /// As the paper writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dwb => "DWB",
            Self::Dtc => "DTC",
            Self::Hreq => "HREQ",
            Self::Snp => "SNP",
            Self::Hrsp => "HRSP",
            Self::Ndr => "NDR",
        }
    }
}

/// Which way a message passes a switch, seen from the switch's own sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the sockets to the switch.
    In,
    /// From the switch to the sockets.
    Out,
}

impl Direction {
    /// Both directions, in first.
    pub const ALL: [Self; 2] = [Self::In, Self::Out];
}

/// What a message weighs on links and counters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MessageBytes {
    /// Without a line.
    pub control: f64,
    /// With one.
    pub data: f64,
}

impl MessageBytes {
    /// The size of a message of this class.
    #[must_use]
    pub const fn of(&self, class: Class) -> f64 {
        if class.is_data() { self.data } else { self.control }
    }
}

/// Messages that passed the switch of one module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic([[u64; 2]; 6]);

impl Traffic {
    /// Bytes of the classes that `which` accepts, one way.
    pub fn bytes(&self, size: &MessageBytes, way: Direction, which: impl Fn(Class) -> bool) -> f64 {
        let of = |class: Class| crate::number::real(self[(class, way)]) * size.of(class);
        Class::ALL.into_iter().filter(|class| which(*class)).map(of).sum()
    }

    /// Bytes of all classes, both ways.
    #[must_use]
    pub fn total_bytes(&self, size: &MessageBytes) -> f64 {
        Direction::ALL.into_iter().map(|way| self.bytes(size, way, |_| true)).sum()
    }

    /// What passed since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut rest = *self;
        for (mine, theirs) in rest.0.iter_mut().flatten().zip(earlier.0.iter().flatten()) {
            *mine -= theirs;
        }
        rest
    }

    /// Messages that carry a line, one way.
    #[must_use]
    pub fn lines(&self, way: Direction) -> u64 {
        self[(Class::Dwb, way)] + self[(Class::Dtc, way)]
    }
}

impl Index<(Class, Direction)> for Traffic {
    type Output = u64;

    fn index(&self, at: (Class, Direction)) -> &u64 {
        let (class, way) = at;
        &self.0[class as usize][way as usize]
    }
}

impl IndexMut<(Class, Direction)> for Traffic {
    fn index_mut(&mut self, at: (Class, Direction)) -> &mut u64 {
        let (class, way) = at;
        &mut self.0[class as usize][way as usize]
    }
}

impl AddAssign<&Self> for Traffic {
    fn add_assign(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().flatten().zip(other.0.iter().flatten()) {
            *mine += theirs;
        }
    }
}
