//! What it costs to move cache lines between the cores of one machine: the table that the predictor and
//! the simulator of communication both read.
//!
//! Core pairs fall into classes (the same core's siblings, one socket, two sockets, or what a measured
//! matrix shows); all pairs of a class cost the same. Where a number comes from is said by whoever fills
//! the table in: a machine file, or an atlas.

use alloc::vec::Vec;

/// Which class a pair of cores is in: an index into [`LineCosts::classes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PairClass(pub u8);

/// What a transfer between two cores of one class costs.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassCost {
    /// One line that the other core has in its cache, ns (`R_R`, `R_Q`).
    pub transfer_ns: f64,
    /// The first fetch of a line from the memory that belongs to the other core's region, ns (`R_I`,
    /// `R_QI`).
    pub memory_ns: f64,
    /// Several lines: start-up, ns (`q` of equation 1).
    pub start_ns: f64,
    /// Several lines: each line, ns (`o` of equation 1).
    pub line_ns: f64,
    /// Several lines: each line for each thread that uses the same link, ns (`c` of equation 1).
    pub congestion_ns: f64,
}

/// Cost terms that the paper's model lacks. Each can be switched on by itself; 0 is off.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AddedTerms {
    /// What a reader of the owner's own class pays more when some reader is in another class, ns.
    pub first_remote_reader_ns: f64,
    /// What each acknowledgement after the first costs its reader, ns, when they lie on lines of their
    /// own and the loads overlap. `None`: the price of a whole transfer.
    pub overlapped_ack_ns: Option<f64>,
    /// What each further sharer adds to an RFO of a shared line, ns. `None`: a whole transfer, as in the
    /// paper (section 2.3).
    pub rfo_sharer_ns: Option<f64>,
    /// What the home of a line takes for each further one of several that read it at once, ns. `None`: not known. Only
    /// where a simulation serves readers one after the other.
    pub reader_ns: Option<f64>,
    /// What a line costs more when its neighbour (the other half of a 128-byte pair) is in use, ns.
    pub adjacent_line_ns: f64,
    /// What a write costs of a line that the writer still shares with who has read it since, ns: the state that
    /// the call before left behind. `None`: a whole transfer.
    pub left_shared_ns: Option<f64>,
    /// How long a request is on its way before the owner loses the line, ns. 0: it loses it at once, as in
    /// the simulator.
    pub request_ns: f64,
    /// How long it is from one poll of a waiting rank to its next, ns: it may notice that much later that its line
    /// is gone. 0: at once.
    pub poll_ns: f64,
    /// What a call costs before its first and after its last operation, ns.
    pub call_ns: f64,
}

/// The costs of moving lines, for every pair of cores.
#[derive(Clone, Debug, PartialEq)]
pub struct LineCosts {
    cores: usize,
    pair: Vec<PairClass>,
    /// The classes of pairs, cheapest transfer first.
    pub classes: Vec<ClassCost>,
    /// A line in the core's own cache, ns (`R_L`).
    pub local_ns: f64,
    /// Terms beside the paper's.
    pub added: AddedTerms,
}

impl LineCosts {
    /// The table of `cores` cores in which `class(a, b)` is the class of a pair; it is asked for `a == b`
    /// too, where it says in which class a core's own memory is.
    ///
    /// # Panics
    /// If a class is not one of `classes`.
    #[must_use]
    pub fn new(
        cores: usize,
        classes: Vec<ClassCost>,
        local_ns: f64,
        mut class: impl FnMut(usize, usize) -> PairClass,
    ) -> Self {
        let mut pair = Vec::with_capacity(cores * cores);
        for a in 0..cores {
            for b in 0..cores {
                let class = class(a, b);
                assert!(
                    usize::from(class.0) < classes.len(),
                    "pair class {} has no costs",
                    class.0
                );
                pair.push(class);
            }
        }
        Self { cores, pair, classes, local_ns, added: AddedTerms::default() }
    }

    /// How many cores.
    #[must_use]
    pub const fn cores(&self) -> usize {
        self.cores
    }

    /// The class of a pair of cores, by index.
    #[must_use]
    pub fn class(&self, a: usize, b: usize) -> PairClass {
        self.pair[a * self.cores + b]
    }

    /// The costs of a pair of cores, by index.
    #[must_use]
    pub fn pair(&self, a: usize, b: usize) -> &ClassCost {
        &self.classes[usize::from(self.class(a, b).0)]
    }

    /// The same table with every cost multiplied: the wrong model that a check must notice.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        let class = |c: &ClassCost| ClassCost {
            transfer_ns: c.transfer_ns * factor,
            memory_ns: c.memory_ns * factor,
            start_ns: c.start_ns * factor,
            line_ns: c.line_ns * factor,
            congestion_ns: c.congestion_ns * factor,
        };
        let added = AddedTerms {
            first_remote_reader_ns: self.added.first_remote_reader_ns * factor,
            overlapped_ack_ns: self.added.overlapped_ack_ns.map(|ns| ns * factor),
            rfo_sharer_ns: self.added.rfo_sharer_ns.map(|ns| ns * factor),
            reader_ns: self.added.reader_ns.map(|ns| ns * factor),
            adjacent_line_ns: self.added.adjacent_line_ns * factor,
            left_shared_ns: self.added.left_shared_ns.map(|ns| ns * factor),
            request_ns: self.added.request_ns * factor,
            poll_ns: self.added.poll_ns * factor,
            call_ns: self.added.call_ns * factor,
        };
        Self {
            cores: self.cores,
            pair: self.pair.clone(),
            classes: self.classes.iter().map(class).collect(),
            local_ns: self.local_ns * factor,
            added,
        }
    }
}
