//! A large cache-coherent machine: sockets with inclusive last-level caches, directories in memory, and
//! node controllers that join modules of sockets.
//!
//! [`NumaSpec`] says what the machine is. [`protocol`] is its coherence protocol message by message, for
//! one line: every race, checked exhaustively, and the source of all latencies. [`engine`] is the same
//! protocol for whole data sets, one transaction at a time. [`Roofs`] and [`Fluid`] make time of what tasks
//! move. In words: `docs/method/coherence-simulation.md`.

mod clocks;
mod described;
pub mod engine;
mod fluid;
mod legs;
mod message;
mod nodes;
mod private;
pub mod protocol;
mod roofs;
mod spec;
#[cfg(test)]
mod test_machine;
mod topology;

pub use clocks::Clocks;
pub use described::DescribedError;
pub use fluid::{Demand, Fluid, Need};
pub use legs::Legs;
pub use message::{Class, Direction, MessageBytes, Traffic};
pub use nodes::NodeSet;
pub use private::PrivateCaches;
pub use roofs::{Floor, Roofs};
pub use spec::{
    Bandwidth, CleanEvictions, Distance, Energy, FarLink, Latency, MAX_NODES, MemoryDirectory,
    Node, NumaSpec, NumaSpecError, Protocol, Rates, Spread,
};
pub use topology::Topology;
