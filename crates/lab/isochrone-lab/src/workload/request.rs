//! What a benchmark asks a worker process for, and what it hears: lines of JSON, one each.

use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The structures, by the names of tables and options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StructureName {
    /// A chain of lines: each load waits for the one before.
    Chase,
    /// A cache with least-recently-used replacement.
    Lru,
    /// A binary search tree.
    Tree,
    /// A skip list.
    #[value(name = "skiplist")]
    #[serde(rename = "skiplist")]
    SkipList,
    /// EM3D: electromagnetic waves on a bipartite graph.
    Em3d,
    /// Barnes-Hut N-body.
    BarnesHut,
    /// Monte-Carlo tree search.
    Mcts,
}

/// The published shapes of A*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AstarShape {
    /// Hash table and bucket queue.
    Hashed,
    /// Linear lists.
    Linear,
}

/// Some work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "work", rename_all = "kebab-case")]
pub(crate) enum Request {
    /// Operations on a structure. It is built anew, in new memory, where its description or its
    /// epoch differs from those of the request before.
    Structure {
        name: StructureName,
        lines: usize,
        seed: u64,
        epoch: u64,
        /// Operations before those that are timed.
        warm: u64,
        operations: u64,
        /// Most milliseconds in which a pool learns new memory.
        learning_ms: Option<u64>,
    },
    /// Searches from the start, one board a core, again and again; in new memory where the epoch
    /// differs from that of the request before.
    Astar {
        shape: AstarShape,
        epoch: u64,
        /// Nodes that a search may hold.
        budget: usize,
        /// Numbers of Korf's instances, by core.
        instances: Vec<u8>,
        /// Searches that are timed together.
        searches: u32,
        /// Most milliseconds in which a pool learns new memory.
        learning_ms: Option<u64>,
    },
    /// What the worker holds and what it cost.
    Account,
}

impl Request {
    /// Lines of memory that it needs.
    pub(crate) fn lines(&self) -> usize {
        match self {
            Self::Structure { lines, .. } => *lines,
            Self::Astar { budget, .. } => *budget,
            Self::Account => 0,
        }
    }

    /// How long a pool may learn new memory.
    pub(crate) fn learning(&self) -> Option<Duration> {
        match self {
            Self::Structure { learning_ms, .. } | Self::Astar { learning_ms, .. } => {
                learning_ms.map(Duration::from_millis)
            }
            Self::Account => None,
        }
    }

    /// Whether it goes on in the memory of another.
    pub(crate) fn has_memory_of(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Structure { name, lines, seed, epoch, .. },
                Self::Structure { name: a, lines: b, seed: c, epoch: d, .. },
            ) => (name, lines, seed, epoch) == (a, b, c, d),
            (
                Self::Astar { shape, budget, epoch, .. },
                Self::Astar { shape: a, budget: b, epoch: c, .. },
            ) => (shape, budget, epoch) == (a, b, c),
            _ => false,
        }
    }
}

/// What some work came to; each list by core.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Played {
    pub(crate) seconds: Vec<f64>,
    pub(crate) operations: Vec<u64>,
    /// Of everything found: equal in all arms.
    pub(crate) checksums: Vec<u64>,
}

/// What a worker holds, and what its pools cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Account {
    /// Resident memory now.
    pub(crate) rss_bytes: Option<u64>,
    /// Its high-water mark.
    pub(crate) peak_rss_bytes: Option<u64>,
    /// By core, where nodes come from pools.
    pub(crate) pools: Vec<PoolAccount>,
}

/// One pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PoolAccount {
    /// Making the pool: opening the atlas, reserving addresses.
    pub(crate) startup_us: f64,
    /// Mapping and learning the memory.
    pub(crate) classification_us: f64,
    /// Its memory.
    pub(crate) arena_bytes: u64,
    /// The part of it that was learnt, 1 but where the time for that was over.
    pub(crate) learnt_share: f64,
    /// What its nodes have and what lines at random would have, nanoseconds, in the LLC and in
    /// DRAM, as the atlas says. Taken while the structure last asked for was there.
    pub(crate) nodes_ns: [Option<f64>; 2],
    /// What its nodes and all its lines have in the LLC, nanoseconds, by timing some of them then.
    pub(crate) measured_ns: Option<[f64; 2]>,
    pub(crate) pool_ns: [Option<f64>; 2],
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reply {
    /// The worker can be asked.
    Ready,
    /// The work was done.
    Played(Played),
    /// What was asked for.
    Account(Account),
    /// It cannot be done; why.
    Failed(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_kept_while_an_epoch_lasts() {
        let request = |lines, epoch, operations| Request::Structure {
            name: StructureName::Lru,
            lines,
            seed: 1,
            epoch,
            warm: 0,
            operations,
            learning_ms: None,
        };
        let first = request(10, 1, 5);
        assert!(request(10, 1, 9).has_memory_of(&first));
        assert!(!request(10, 2, 5).has_memory_of(&first));
        assert!(!request(11, 1, 5).has_memory_of(&first));
        assert!(!Request::Account.has_memory_of(&first));
        let search = |budget, epoch| Request::Astar {
            shape: AstarShape::Hashed,
            epoch,
            budget,
            instances: vec![1],
            searches: 1,
            learning_ms: Some(epoch),
        };
        assert!(search(9, 1).has_memory_of(&search(9, 1)));
        assert!(!search(9, 2).has_memory_of(&search(9, 1)));
        assert!(!search(9, 1).has_memory_of(&first));
    }

    #[test]
    fn what_is_asked_arrives() {
        let requests = [
            Request::Structure {
                name: StructureName::BarnesHut,
                lines: 10,
                seed: u64::MAX,
                epoch: 1,
                warm: 2,
                operations: 3,
                learning_ms: None,
            },
            Request::Astar {
                shape: AstarShape::Linear,
                epoch: 3,
                budget: 7,
                instances: vec![79, 12],
                searches: 2,
                learning_ms: Some(250),
            },
            Request::Account,
        ];
        for request in requests {
            let line = serde_json::to_string(&request).unwrap();
            assert!(!line.contains('\n'));
            assert_eq!(serde_json::from_str::<Request>(&line).unwrap(), request);
        }
        let reply = Reply::Failed("no\nmemory".into());
        let line = serde_json::to_string(&reply).unwrap();
        assert!(!line.contains('\n'));
        assert_eq!(serde_json::from_str::<Reply>(&line).unwrap(), reply);
    }
}
