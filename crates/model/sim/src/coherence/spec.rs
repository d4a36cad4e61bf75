//! What a coherent machine is, as plain data, and which numbers cannot be.
//!
//! A node is a region of memory with its home agent and the last-level cache of the cores beside it: a
//! socket, or a cluster of one. Nodes of one module reach each other without a node controller. A
//! machine of one module has none.

use super::clocks::Clocks;
use super::message::MessageBytes;
use crate::number::{float, wide};

/// Most nodes of a machine: the sets of the directories have that many bits.
pub const MAX_NODES: usize = 64;
/// Most sockets.
const MAX_SOCKETS: usize = 64;
/// Bytes of a line.
pub(super) const LINE_BYTES: f64 = 64.0;

/// How far a node is from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Distance {
    /// The same node.
    Local,
    /// Another cluster of the same socket.
    Cluster,
    /// Another socket of the same module.
    Near,
    /// Another module.
    Far,
}

impl Distance {
    /// All, nearest first.
    pub const ALL: [Self; 4] = [Self::Local, Self::Cluster, Self::Near, Self::Far];
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The region's number, as the system counts.
    pub region: u16,
    /// Which socket it is part of.
    pub socket: u16,
    /// Which module that socket is part of, from 0.
    pub module: u8,
    /// The numbers of its cores.
    pub cores: Vec<u16>,
    /// Lines of its last-level cache.
    pub llc_lines: u32,
    /// Bytes of its memory.
    pub memory_bytes: u64,
}

/// A number that differs from place to place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Over all places.
    pub mean: f64,
    /// At the lowest place.
    pub min: f64,
    /// At the highest.
    pub max: f64,
}

impl Spread {
    /// The same everywhere.
    #[must_use]
    pub const fn even(value: f64) -> Self {
        Self { mean: value, min: value, max: value }
    }
}

/// Latencies of a read, ns.
#[derive(Clone, Debug, PartialEq)]
pub struct Latency {
    /// By distance, from memory; `None` where the machine has no such distance.
    pub read: [Option<Spread>; 4],
    /// A hit in the last-level cache of the own node.
    pub llc: f64,
    /// One way through one node controller.
    pub crossing: f64,
    /// What a place more between two modules adds, there and back.
    pub position: f64,
}

/// Bandwidths as STREAM Triad reports them from all cores of one node, GB/s, by distance.
#[derive(Clone, Debug, PartialEq)]
pub struct Bandwidth {
    /// By distance; `None` where the machine has no such distance.
    pub triad: [Option<f64>; 4],
    /// The most that all controllers pass together, one way; an input only where it does not come out.
    pub controllers: Option<f64>,
    /// What bounds a link between two modules.
    pub far: FarLink,
}

/// What bounds the lines between two modules: the published bandwidth has two explanations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FarLink {
    /// Whether the link is as wide as the far bandwidth says; else it passes whatever comes.
    pub width: bool,
    /// Lines under way from the home's module to the reader's at most, each for its latency; `None`: no limit.
    pub window: Option<f64>,
}

impl FarLink {
    /// The bandwidth is the link's width.
    pub const WIDTH: Self = Self { width: true, window: None };
}

/// What the directory bits in memory say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryDirectory {
    /// Which sockets of the module may hold the line, and whether it was exported.
    PerSocket,
    /// Nothing: the home asks everybody.
    None,
}

/// Choices of the protocol.
#[derive(Clone, Debug, PartialEq)]
pub struct Protocol {
    /// The bits in memory.
    pub memory_directory: MemoryDirectory,
    /// Lines that a controller's directory holds; `None`: no limit.
    pub directory_lines: Option<u64>,
    /// Whether the controller answers for modules that its directory does not list.
    pub filter: bool,
    /// Which clean lines a cache says that it drops.
    pub clean_evictions: CleanEvictions,
    /// Whether the first reader of another module gets a line for itself alone. Then the controller has to
    /// ask it when a second one comes, since it may have written by then.
    pub exclusive_readers: bool,
}

/// Of which clean lines a cache says so when it drops them for want of room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanEvictions {
    /// Of none.
    Silent,
    /// Of those that it alone holds.
    Alone,
    /// Of those of other modules that several hold as well. Without that a controller goes on listing what
    /// nobody has any more, and a directory of finite size is soon full of such entries.
    All,
}

/// What one core computes, GFLOP/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// In blocked kernels.
    pub blocked: f64,
    /// In others.
    pub scalar: f64,
}

/// What a byte costs, pJ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Energy {
    /// In DRAM.
    pub memory: f64,
    /// Between sockets of a module.
    pub near: f64,
    /// Between modules.
    pub far: f64,
}

/// A machine.
#[derive(Clone, Debug, PartialEq)]
pub struct NumaSpec {
    /// What it is called.
    pub name: String,
    /// Its nodes.
    pub nodes: Vec<Node>,
    /// How long reads take.
    pub latency: Latency,
    /// How much passes.
    pub bandwidth: Bandwidth,
    /// Lines that one core keeps in flight, by distance.
    pub outstanding: [f64; 4],
    /// Sizes of messages.
    pub bytes: MessageBytes,
    /// Choices of the protocol.
    pub protocol: Protocol,
    /// What cores compute.
    pub rates: Rates,
    /// Their clocks.
    pub clocks: Clocks,
    /// What bytes cost.
    pub energy: Energy,
}

/// Why a description makes no machine.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("machine {machine}: {why}")]
pub struct NumaSpecError {
    /// Its name.
    pub machine: String,
    /// What cannot be, and what to change.
    pub why: String,
}

impl NumaSpec {
    /// How many modules.
    #[must_use]
    pub fn modules(&self) -> usize {
        self.nodes.iter().map(|node| usize::from(node.module) + 1).max().unwrap_or(0)
    }

    /// How many cores.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.nodes.iter().map(|node| node.cores.len()).sum()
    }

    /// What each of `threads` cores computes that are active, spread evenly over the sockets.
    #[must_use]
    pub fn rates_of(&self, threads: usize) -> Rates {
        let mut sockets: Vec<u16> = self.nodes.iter().map(|node| node.socket).collect();
        sockets.sort_unstable();
        sockets.dedup();
        let speed = self.clocks.speed(float(threads.div_ceil(sockets.len().max(1))));
        let Rates { blocked, scalar } = self.rates;
        Rates { blocked: blocked * speed, scalar: scalar * speed }
    }

    /// How far two nodes are from each other.
    #[must_use]
    pub fn distance(&self, a: usize, b: usize) -> Distance {
        let (one, other) = (&self.nodes[a], &self.nodes[b]);
        if a == b {
            Distance::Local
        } else if one.module != other.module {
            Distance::Far
        } else if one.socket != other.socket {
            Distance::Near
        } else {
            Distance::Cluster
        }
    }

    /// The distances that this machine has.
    pub fn distances(&self) -> impl Iterator<Item = Distance> + '_ {
        let has = |wanted: Distance| {
            (0..self.nodes.len()).any(|b| self.distance(0, b) == wanted)
                || (0..self.nodes.len())
                    .any(|a| (0..self.nodes.len()).any(|b| self.distance(a, b) == wanted))
        };
        Distance::ALL.into_iter().filter(move |distance| has(*distance))
    }

    /// Refuses numbers that no machine can have.
    ///
    /// # Errors
    /// The first contradiction, and what to change.
    pub fn validate(&self) -> Result<(), NumaSpecError> {
        let checks = [
            self.check_nodes(),
            self.check_latencies(),
            self.check_bandwidths(),
            self.check_protocol(),
            self.clocks.check(),
        ];
        match checks.into_iter().find_map(Result::err) {
            None => Ok(()),
            Some(why) => Err(NumaSpecError { machine: self.name.clone(), why }),
        }
    }

    fn check_nodes(&self) -> Result<(), String> {
        let count = self.nodes.len();
        if count == 0 {
            return Err("no region has cores; describe at least one under [[cores]]".into());
        }
        if count > MAX_NODES {
            return Err(format!(
                "{count} regions have cores; a directory here has {MAX_NODES} bits"
            ));
        }
        let mut sockets: Vec<u16> = self.nodes.iter().map(|node| node.socket).collect();
        sockets.sort_unstable();
        sockets.dedup();
        if sockets.len() > MAX_SOCKETS {
            return Err(format!("{} sockets; at most {MAX_SOCKETS} are simulated", sockets.len()));
        }
        for socket in sockets {
            let mut at = self.nodes.iter().filter(|node| node.socket == socket).map(|n| n.module);
            let first = at.next();
            if at.any(|module| Some(module) != first) {
                return Err(format!(
                    "socket {socket} is in two modules; give its cores one `module`"
                ));
            }
        }
        for node in &self.nodes {
            let region = node.region;
            if node.llc_lines == 0 {
                return Err(format!(
                    "region {region} has no last-level cache; describe one of level 3"
                ));
            }
            if f64::from(node.llc_lines) * LINE_BYTES > crate::number::real(node.memory_bytes) {
                return Err(format!(
                    "the last-level cache of region {region} is larger than its memory; correct `bytes`"
                ));
            }
        }
        let modules = self.modules();
        let empty = (0..modules).find(|m| self.nodes.iter().all(|n| usize::from(n.module) != *m));
        match empty {
            Some(module) => Err(format!("module {module} has no socket; number modules from 0")),
            None => Ok(()),
        }
    }

    fn check_latencies(&self) -> Result<(), String> {
        let mut before: Option<(Distance, Spread)> = None;
        for distance in self.distances() {
            let Some(spread) = self.latency.read[distance as usize] else {
                return Err(format!("there is no {distance:?} latency; add it under [[costs]]"));
            };
            let Spread { mean, min, max } = spread;
            if !(min > 0.0 && min <= mean && mean <= max && max.is_finite()) {
                return Err(format!(
                    "{distance:?} latency {mean} ns is not within {min} to {max} ns"
                ));
            }
            if let Some((nearer, less)) = before
                && less.mean > mean
            {
                return Err(format!(
                    "{nearer:?} latency {} ns is above {distance:?} latency {mean} ns; a line from \
                     farther away cannot come sooner",
                    less.mean
                ));
            }
            before = Some((distance, spread));
        }
        let local = self.latency.read[0].map_or(0.0, |local| local.min);
        if !(self.latency.llc > 0.0 && self.latency.llc < local) {
            return Err(format!(
                "LLC latency {} ns is not above 0 and below the local latency {local} ns: a read \
                 from memory looks there first",
                self.latency.llc
            ));
        }
        if let (Some(far), Some(local)) = (self.latency.read[3], self.latency.read[0])
            && self.modules() > 1
            && 2.0 * self.latency.crossing >= far.min - local.max
        {
            return Err(format!(
                "two crossings of {} ns leave nothing of the {} ns that far adds to local",
                self.latency.crossing,
                far.min - local.max
            ));
        }
        Ok(())
    }

    fn check_bandwidths(&self) -> Result<(), String> {
        let mut before: Option<(Distance, f64)> = None;
        for distance in self.distances() {
            let given = self.bandwidth.triad[distance as usize];
            let Some(gbs) = given.filter(|gbs| *gbs > 0.0 && gbs.is_finite()) else {
                return Err(format!(
                    "there is no {distance:?} bandwidth above 0; add it under [[costs]]"
                ));
            };
            if let Some((nearer, more)) = before
                && gbs > more
            {
                return Err(format!(
                    "{distance:?} bandwidth {gbs} GB/s is above {nearer:?} bandwidth {more} GB/s; \
                     what passes a link comes from the same memory"
                ));
            }
            let lines = self.outstanding[distance as usize];
            if !(1.0..=4096.0).contains(&lines) {
                return Err(format!(
                    "{lines} outstanding lines ({distance:?}); expected 1 to 4096"
                ));
            }
            before = Some((distance, gbs));
        }
        if let Some(lines) =
            self.bandwidth.far.window.filter(|lines| !(1.0..=4096.0).contains(lines))
        {
            return Err(format!("{lines} lines under way between two modules; expected 1 to 4096"));
        }
        if !(self.rates.blocked > 0.0 && self.rates.scalar > 0.0) {
            return Err(
                "a core computes nothing; give `core rate` and `scalar rate` above 0".into()
            );
        }
        Ok(())
    }

    fn check_protocol(&self) -> Result<(), String> {
        let MessageBytes { control, data } = self.bytes;
        if !(control > 0.0 && data >= LINE_BYTES + control.min(8.0) && control < data) {
            return Err(format!(
                "messages of {control} B and, with a line, of {data} B: a line alone has \
                 {LINE_BYTES} B, and a header stands before it"
            ));
        }
        let Some(lines) = self.protocol.directory_lines.filter(|_| self.modules() > 1) else {
            return Ok(());
        };
        if lines == 0 {
            return Err("a controller's directory of 0 lines lets nothing out; give it more".into());
        }
        for module in 0..self.modules() {
            let at = self.nodes.iter().filter(|node| usize::from(node.module) == module);
            let bytes: u64 = at.map(|node| node.memory_bytes).sum();
            if crate::number::real(lines) * LINE_BYTES > crate::number::real(bytes) {
                return Err(format!(
                    "a directory of {lines} lines is larger than the memory of module {module}, {bytes} B"
                ));
            }
        }
        Ok(())
    }

    /// Mean of |i - j| over two different modules.
    #[must_use]
    pub fn mean_positions(&self) -> f64 {
        // The sum of |i - j| over ordered pairs is (m^3 - m) / 3; there are m^2 - m pairs.
        (float(self.modules()) + 1.0) / 3.0
    }

    /// Lines of all last-level caches outside a module: the most that its directory can be asked to hold.
    #[must_use]
    pub fn lines_outside(&self, module: u8) -> u64 {
        let outside = self.nodes.iter().filter(|node| node.module != module);
        outside.map(|node| wide(usize::try_from(node.llc_lines).unwrap_or(usize::MAX))).sum()
    }
}
