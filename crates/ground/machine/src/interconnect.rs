//! How cores, controllers and directories of a machine are joined.
//!
//! Only what a description can state: stops in order, or the size of a mesh. Which message takes
//! which way, and how long, is the simulator's business.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// One stop of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RingStop {
    /// The core with this number.
    Core(u16),
    /// The memory controller with this index in [`crate::Machine::controllers`].
    Controller(u16),
    /// The tag directory with this index.
    Directory(u16),
    /// A last-level cache slice with this index.
    Slice(u16),
}

/// How the parts of a machine are joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Interconnect {
    /// A ring.
    Ring {
        /// Whether messages go both ways round.
        bidirectional: bool,
        /// The stops in their order round the ring; empty where not known.
        stops: Vec<RingStop>,
        /// Why the order of the stops is a guess; `None` where it is published.
        order_assumed: Option<String>,
        /// Where this is published.
        source: String,
    },
    /// A mesh of tiles; the cores' places say which tile is whose.
    Mesh {
        /// Tiles in a row.
        columns: u16,
        /// Rows of tiles.
        rows: u16,
        /// Why the size is a guess; `None` where it is published.
        size_assumed: Option<String>,
        /// Where this is published.
        source: String,
    },
    /// Something else, in words.
    Other {
        /// What it is.
        what: String,
        /// Where this is published.
        source: String,
    },
}
