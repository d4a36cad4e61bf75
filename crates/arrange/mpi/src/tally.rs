//! A process with `MPI_THREAD_MULTIPLE`: it does nothing in lines. It counts as the others do, so that it says
//! no when they ask, and can tell what was left to the MPI and why.

use crate::abi::{Handle, Mpi};
use crate::comm::{self, Comm, Seat, State};
use crate::config::{Config, Counts, Report};
use crate::why::Why;
use isochrone_cla::live::Kind;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What any thread may change.
#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Calls on each communicator.
    calls: HashMap<Handle, u32>,
    counts: [Counts; Kind::COUNT],
    report: Report,
}

impl Tally {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call that its MPI does. No lock is held while the MPI works.
    #[cold]
    pub(crate) fn count(
        &self,
        mpi: &Mpi,
        config: &Config,
        comm: Handle,
        kind: Kind,
        watch: impl Fn(),
    ) {
        let mut inner = self.lock();
        inner.counts[kind as usize].mpi += 1;
        let calls = inner.calls.entry(comm).or_insert(0);
        *calls = calls.saturating_add(1);
        let calls = *calls;
        drop(inner);
        if calls == 1 {
            watch();
        }
        if calls != config.calls_before.saturating_add(1) {
            return;
        }
        let (Comm { rank, size, state, .. }, judged) = Comm::new(mpi, comm, config);
        let why = match judged {
            Err(why) => why,
            Ok(()) => {
                debug_assert!(matches!(state, State::Counting(_)), "nobody has settled it");
                let no = comm::agree(mpi, comm, Seat { rank, size }, config, Err(Why::Multiple));
                no.err().map_or(Why::Multiple, |(why, _)| why)
            }
        };
        self.lock().report.refuse(size.into(), why.words());
    }

    /// A communicator ends; its handle may mean another one from now on.
    pub(crate) fn forget(&self, comm: Handle) {
        self.lock().calls.remove(&comm);
    }

    /// What there is to report, and the calls by kind.
    pub(crate) fn report(&self, config: &Config) -> (Report, [Counts; Kind::COUNT]) {
        let inner = self.lock();
        let mut report = inner.report.clone();
        if inner.calls.values().any(|&calls| calls <= config.calls_before) {
            // Nobody asked, and the answer would have been this one.
            report.refuse(0, Why::Multiple.words());
        }
        (report, inner.counts)
    }
}
