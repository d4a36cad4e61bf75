//! A large cache-coherent machine: sockets with inclusive last-level caches, directories in memory, and
//! node controllers that join modules of sockets.
//!
//! [`NumaSpec`] says what the machine is. [`protocol`] is its coherence protocol message by message, for
//! one line: every race, checked exhaustively, and the source of all latencies. What a page of the
//! documentation says about it is in `docs/method/coherence-simulation.md`.

mod described;
mod legs;
mod message;
mod nodes;
pub mod protocol;
mod spec;
#[cfg(test)]
mod test_machine;
mod topology;

pub use described::DescribedError;
pub use legs::Legs;
pub use message::{Class, Direction, MessageBytes, Traffic};
pub use nodes::NodeSet;
pub use spec::{
    Bandwidth, Distance, Energy, Latency, MAX_NODES, MemoryDirectory, Node, NumaSpec,
    NumaSpecError, Protocol, Rates, Spread,
};
pub use topology::Topology;
