//! Why there is no figure.

use isochrone_sim::synthetic::SpecError;

/// Why there is no figure. Messages say what to change.
#[derive(Debug, thiserror::Error)]
pub enum Figure4Error {
    /// The machine file lacks something.
    #[error("machine {name} has no {what}; give the file of the Xeon Phi 5110P")]
    Machine {
        /// The machine.
        name: String,
        /// What it lacks.
        what: &'static str,
    },
    /// The model contradicts itself.
    #[error("the simulated memory does not fit together: {0}")]
    Memory(#[from] SpecError),
    /// The patterns make no table.
    #[error("the latency database has no usable base: {0}")]
    Base(#[from] isochrone_atlas::ModelError),
    /// The form does not hold, or the database is of another memory.
    #[error("the latency database does not cover all cores and pages; learn it on this memory")]
    Database,
    /// A search ended before it held enough nodes.
    #[error("instance {instance} of Korf's set does not last for the plan; ask for fewer nodes")]
    TooEasy {
        /// Its number.
        instance: u8,
    },
    /// The tables of a search have no room for so many nodes.
    #[error("a search of {nodes} nodes is larger than its tables; plan {most} or fewer")]
    TooLarge {
        /// Nodes planned.
        nodes: usize,
        /// Most that fit.
        most: usize,
    },
    /// The heap had no line left.
    #[error("the heap's {pages} pages are all in use; plan more pages or fewer nodes")]
    ArenaFull {
        /// Its pages.
        pages: u32,
    },
}
