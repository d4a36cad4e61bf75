//! One thread, pinned to one core, that builds structures and searches boards when told to, and
//! says how long it took.
//!
//! All threads of a worker begin what is timed together. A structure stays from one request to
//! the next while these agree on what it is, so that it need not be built for every run.

use anyhow::{Result, bail};
use isochrone_os::affinity;
use isochrone_workloads::astar::{HashedShape, LinearShape};
use isochrone_workloads::structures::{
    BarnesHutShape, ChaseShape, Em3dShape, LruShape, MctsShape, SkipListShape, TreeShape,
};

use super::pooled::Pooled;
use super::request::{AstarShape, Request, StructureName};
use super::seat::{Player, Source};
use super::work::Work;

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
}
