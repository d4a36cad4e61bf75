//! Nodes from the typed pool: what `isochrone-malloc` offers a Rust program, as the workloads
//! want to see it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use isochrone_alloc::Policy;
use isochrone_malloc::{Handle, Pool, Settings};
use isochrone_units::{CoreId, Level};
use isochrone_workloads::{Nodes, Shape};

use super::request::PoolAccount;

/// Nodes in a pool beside those that are asked for: magazines hold some, and some structures make
/// a few more than they keep.
const SPARE_NODES: usize = 1024;

type Record<S> = <S as Shape>::Node<PooledPtr<S>>;

/// A node of a pool: a handle whose type knows that its record holds such handles.
pub(crate) struct PooledPtr<S: Shape>(Handle<Record<S>>);

impl<S: Shape> Clone for PooledPtr<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Shape> Copy for PooledPtr<S> {}

impl<S: Shape> PartialEq for PooledPtr<S> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<S: Shape> Eq for PooledPtr<S> {}

impl<S: Shape> fmt::Debug for PooledPtr<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Nodes of one shape, from a pool of their own.
pub(crate) struct Pooled<'a, S: Shape>(Pool<'a, Record<S>>);

impl<S: Shape> Nodes<S> for Pooled<'_, S> {
    type Ptr = PooledPtr<S>;

    fn new(&mut self, node: Record<S>) -> Option<Self::Ptr> {
        self.0.alloc(node).map(PooledPtr)
    }

    #[inline]
    fn read<R>(&self, at: Self::Ptr, with: impl FnOnce(&Record<S>) -> R) -> R {
        with(self.0.get(at.0))
    }

    #[inline]
    fn write<R>(&mut self, at: Self::Ptr, with: impl FnOnce(&mut Record<S>) -> R) -> R {
        with(self.0.get_mut(at.0))
    }

    fn free(&mut self, at: Self::Ptr) {
        self.0.free(at.0);
    }
}

/// What pools are made with.
#[derive(Clone, Debug)]
pub(crate) struct PoolSource {
    /// The bytes of the atlas.
    pub(crate) atlas: Arc<[u8]>,
    pub(crate) policy: Policy,
    pub(crate) arena_bytes_max: u64,
    /// Of the atlas, to turn cycles into time.
    pub(crate) clock_hz: f64,
}

/// What a pool cost before its first node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    startup: Duration,
    classification: Duration,
    learnt: f32,
}

impl PoolSource {
    /// A pool that has learnt the memory for so many nodes, to be used on these cores, as far as it could within
    /// that time.
    pub(crate) fn nodes<'a, S: Shape>(
        &'a self,
        lines: usize,
        cores: &'a [CoreId],
        within: Option<Duration>,
    ) -> Result<(Pooled<'a, S>, Costs)> {
        let begin = Instant::now();
        let settings = Settings {
            atlas: &self.atlas,
            policy: self.policy,
            arena_bytes_max: self.arena_bytes_max,
            huge_pages: true,
            cores,
        };
        let mut pool = Pool::new(&settings).context("no pool can be made")?;
        let startup = begin.elapsed();
        let begin = Instant::now();
        let learnt = pool.prepare(lines + SPARE_NODES, within);
        let learnt = learnt.context("the pool's memory cannot be learnt")?;
        Ok((Pooled(pool), Costs { startup, classification: begin.elapsed(), learnt }))
    }

    /// What a pool cost and how far its nodes are from a core.
    pub(crate) fn account<S: Shape>(
        &self,
        nodes: &Pooled<'_, S>,
        costs: Costs,
        core: CoreId,
    ) -> PoolAccount {
        let survey = nodes.0.survey(core);
        let ns = |cycles: f64| cycles * 1e9 / self.clock_hz;
        let by_level = |mean: &dyn Fn(Level) -> Option<f64>| Level::ALL.map(|l| mean(l).map(ns));
        // What cannot be timed here is not known, and the atlas's figures stand alone.
        let measured = nodes.0.measure(core).ok().flatten();
        PoolAccount {
            measured_ns: measured.map(|found| [ns(found.taken), ns(found.pool)]),
            startup_us: costs.startup.as_secs_f64() * 1e6,
            classification_us: costs.classification.as_secs_f64() * 1e6,
            learnt_share: f64::from(costs.learnt),
            arena_bytes: nodes.0.instance().arena_bytes() as u64,
            nodes_ns: by_level(&|level| survey.taken.mean(level)),
            pool_ns: by_level(&|level| survey.pool.mean(level)),
        }
    }
}
