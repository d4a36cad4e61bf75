//! One thread, pinned to one core, that builds structures and searches boards when told to, and
//! says how long it took.
//!
//! All threads of a worker begin what is timed together. A structure stays from one request to
//! the next while these agree on what it is, so that it need not be built for every run.

use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Barrier};

use anyhow::{Result, bail};
use isochrone_os::affinity;
use isochrone_units::CoreId;
use isochrone_workloads::astar::{HashedShape, LinearShape};
use isochrone_workloads::structures::{
    BarnesHut, BarnesHutShape, Chase, ChaseShape, Em3d, Em3dShape, Lru, LruShape, Mcts, MctsShape,
    SearchTree, SkipList, SkipListShape, TreeShape,
};
use isochrone_workloads::{Boxed, Chest, Nodes, Shape};

use super::pooled::{PoolSource, Pooled};
use super::request::{AstarShape, PoolAccount, Request, StructureName};
use super::{search, structure};

/// Where nodes come from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// The program's allocator, whatever is preloaded.
    Malloc,
    /// A pool for each thread.
    Pool(PoolSource),
}

/// What one thread did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub(crate) seconds: f64,
    pub(crate) operations: u64,
    pub(crate) checksum: u64,
    pub(crate) pool: Option<PoolAccount>,
}

/// A thread's ends of the channels, and its place among the others.
pub(crate) struct Player {
    pub(crate) core: CoreId,
    /// Its place in lists by core.
    pub(crate) place: usize,
    pub(crate) source: Source,
    pub(crate) requests: Receiver<Request>,
    pub(crate) done: Sender<Result<Done>>,
    pub(crate) together: Arc<Barrier>,
}

impl Player {
    /// Until nobody asks any more.
    pub(crate) fn play(self) {
        let mut next = self.begin();
        while let Some(request) = next {
            next = match self.answer(&request) {
                Ok(next) => next,
                Err(error) => {
                    // Nobody listens only where the worker ends.
                    let _ = self.done.send(Err(error));
                    self.requests.recv().ok()
                }
            };
        }
    }

    fn begin(&self) -> Option<Request> {
        if let Err(error) = affinity::pin(self.core) {
            let _ = self.done.send(Err(error.into()));
            return None;
        }
        self.requests.recv().ok()
    }

    /// Does what is asked, and all that follows on the same memory; returns the first request
    /// that is about another.
    fn answer(&self, request: &Request) -> Result<Option<Request>> {
        match request {
            Request::Structure { name, .. } => match name {
                StructureName::Chase => self.with_memory::<ChaseShape>(request),
                StructureName::Lru => self.with_memory::<LruShape>(request),
                StructureName::Tree => self.with_memory::<TreeShape>(request),
                StructureName::SkipList => self.with_memory::<SkipListShape>(request),
                StructureName::Em3d => self.with_memory::<Em3dShape>(request),
                StructureName::BarnesHut => self.with_memory::<BarnesHutShape>(request),
                StructureName::Mcts => self.with_memory::<MctsShape>(request),
            },
            Request::Astar { shape: AstarShape::Hashed, .. } => {
                self.with_memory::<HashedShape>(request)
            }
            Request::Astar { shape: AstarShape::Linear, .. } => {
                self.with_memory::<LinearShape>(request)
            }
            Request::Account => bail!("threads are not asked for accounts"),
        }
    }

    /// One chest for a piece of work, or one pool for as long as its epoch lasts.
    fn with_memory<S: Work>(&self, request: &Request) -> Result<Option<Request>> {
        let source = match &self.source {
            Source::Malloc => return S::boxed(self, request),
            Source::Pool(source) => source,
        };
        let cores = std::slice::from_ref(&self.core);
        let (mut nodes, costs) = match source.nodes::<S>(request.lines(), cores, request.learning())
        {
            Ok(made) => made,
            Err(error) => {
                self.together.wait();
                return Err(error);
            }
        };
        let account = |nodes: &Pooled<'_, S>| Some(source.account(nodes, costs, self.core));
        let mut now = request.clone();
        loop {
            match S::work(self, &mut nodes, &account, &now)? {
                Some(next) if next.has_memory_of(request) => now = next,
                other => return Ok(other),
            }
        }
    }

    /// Sends what was done and waits for the next request.
    pub(super) fn next(&self, done: Done) -> Option<Request> {
        self.done.send(Ok(done)).ok()?;
        self.requests.recv().ok()
    }
}

/// Says what a node's memory cost and how far it is.
pub(super) type AccountOf<'a, N> = &'a dyn Fn(&N) -> Option<PoolAccount>;

/// What is done with nodes of a shape. Every request waits for the other threads exactly once,
/// failed or not, since these wait as well.
pub(super) trait Work: Shape + Sized {
    /// Does the request and all that follows on what it has built; returns the first that does
    /// not.
    fn work<N: Nodes<Self>>(
        player: &Player,
        nodes: &mut N,
        account: AccountOf<'_, N>,
        request: &Request,
    ) -> Result<Option<Request>>;

    /// The same with a box for each node. For each shape by name: only then is it known that
    /// dropping a chest looks at no node.
    fn boxed(player: &Player, request: &Request) -> Result<Option<Request>>;
}

macro_rules! works {
    ($($shape:ident => $($work:ident)::+ $(of $structure:ident)?;)+) => {$(
        impl Work for $shape {
            fn work<N: Nodes<Self>>(
                player: &Player,
                nodes: &mut N,
                account: AccountOf<'_, N>,
                request: &Request,
            ) -> Result<Option<Request>> {
                $($work)::+$(::<N, $structure<N::Ptr>>)?(player, nodes, account, request)
            }

            fn boxed(player: &Player, request: &Request) -> Result<Option<Request>> {
                let chest = Chest::<Self>::new();
                Self::work(player, &mut Boxed::new(&chest), &|_| None, request)
            }
        }
    )+};
}

works! {
    ChaseShape => structure::work of Chase;
    LruShape => structure::work of Lru;
    TreeShape => structure::work of SearchTree;
    SkipListShape => structure::work of SkipList;
    Em3dShape => structure::work of Em3d;
    BarnesHutShape => structure::work of BarnesHut;
    MctsShape => structure::work of Mcts;
    HashedShape => search::hashed;
    LinearShape => search::linear;
}
