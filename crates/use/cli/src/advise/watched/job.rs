//! The calls of an MPI job that is watched: its ranks count them by collective and size, and nothing else is done
//! otherwise. What they would have saved in lines follows from the counts.

use anyhow::Result;
use isochrone_console::run::start::Program;
use isochrone_console::written::scratch;
use isochrone_mpi::{Config, Report, SeenSize};
use serde::Serialize;
use tempfile::TempDir;

use crate::args::AdviseArgs;
use crate::run::mpi;

/// A job whose ranks count.
#[derive(Debug)]
pub(super) struct Counted {
    folder: TempDir,
}

/// What a job called, by the rank that would save most.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Job {
    /// Ranks that left a report, and those of the job; 0: not known.
    pub(super) reports: usize,
    pub(super) ranks: u32,
    /// Of these, what its MPI has on this rank's node; 0: not known.
    pub(super) node_ranks: u32,
    /// What the MPI says of itself.
    pub(super) mpi: String,
    /// Whether all that left a report came to their end: else calls were so many or more.
    pub(super) ended: bool,
    /// The rank whose calls these are.
    pub(super) rank: u32,
    pub(super) collectives: Vec<Calls>,
    /// What its calls would have saved in lines, seconds, and what taking over communicators would have cost:
    /// predicted.
    pub(super) saves_s: f64,
    pub(super) costs_s: f64,
    /// Why communicators would have been left to the MPI.
    pub(super) left: Vec<String>,
}

/// Calls of one collective.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Calls {
    pub(super) name: String,
    pub(super) calls: u64,
    /// By bytes from or to each rank.
    pub(super) sizes: Vec<Sized>,
    /// Of which the size is not known.
    pub(super) unsized_calls: u64,
    /// That would have been done in lines.
    pub(super) in_lines: u64,
    /// What those would have saved, seconds: predicted.
    pub(super) saves_s: f64,
}

/// Calls of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Sized {
    /// Up to how many bytes; nothing: more than of any other.
    pub(super) up_to: Option<u32>,
    pub(super) calls: u64,
}

impl Counted {
    /// The launcher of a job whose ranks count.
    pub(super) fn begin(launcher: Program, args: &AdviseArgs) -> Result<(Self, Program)> {
        let folder = scratch()?;
        // Ranks may begin in other folders.
        let atlas = args.atlas.as_ref().map(std::path::absolute).transpose()?;
        let told = Config { watches: true, atlas, ..Config::default() };
        let launcher = mpi::under(launcher, told, args.preload.as_deref(), folder.path())?;
        Ok((Self { folder }, launcher))
    }

    /// What its ranks have left.
    pub(super) fn end(&self) -> Result<Job> {
        Ok(Job::of(&mpi::read_all(self.folder.path())?))
    }
}

/// Nanoseconds as seconds.
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn saves_ns(report: &Report) -> u64 {
    report.seen.values().map(|calls| calls.saves_ns).sum()
}

impl Job {
    fn of(reports: &[Report]) -> Self {
        // Those of few others wait for the one with the most.
        let calls = |report: &Report| report.calls.values().map(|calls| calls.mpi).sum::<u64>();
        let most = reports.iter().rev().max_by_key(|report| (saves_ns(report), calls(report)));
        let Some(most) = most else { return Self::default() };
        let mut collectives: Vec<Calls> = most
            .calls
            .iter()
            .map(|(name, calls)| {
                let seen = most.seen.get(name).cloned().unwrap_or_default();
                let sized = |&SeenSize { bytes, calls }| Sized { up_to: bytes, calls };
                let known: u64 = seen.sizes.iter().map(|size| size.calls).sum();
                Calls {
                    name: name.clone(),
                    calls: calls.mpi,
                    sizes: seen.sizes.iter().map(sized).collect(),
                    unsized_calls: calls.mpi.saturating_sub(known),
                    in_lines: seen.in_lines,
                    saves_s: seconds(seen.saves_ns),
                }
            })
            .collect();
        collectives.sort_by_key(|calls| std::cmp::Reverse(calls.calls));
        let left = most.refusals.iter().map(|refusal| refusal.why.clone());
        Self {
            reports: reports.len(),
            ranks: most.ranks,
            node_ranks: most.node_ranks,
            mpi: most.mpi.clone(),
            ended: reports.iter().all(|report| report.ended),
            rank: most.rank,
            collectives,
            saves_s: seconds(saves_ns(most)),
            costs_s: most.would_cost_us as f64 / 1e6,
            left: left.collect(),
        }
    }

    /// All calls.
    pub(super) fn calls(&self) -> u64 {
        self.collectives.iter().map(|of| of.calls).sum()
    }

    /// Those that would have been in lines.
    pub(super) fn in_lines(&self) -> u64 {
        self.collectives.iter().map(|of| of.in_lines).sum()
    }

    /// Whether its ranks are known to be on several nodes.
    pub(super) const fn spans_nodes(&self) -> bool {
        self.node_ranks < self.ranks
    }
}

#[cfg(test)]
mod tests {
    use isochrone_mpi::{Counts, Refusal, SeenCalls};

    use super::*;

    fn report(rank: u32, calls: u64, saves_ns: u64) -> Report {
        let sizes = vec![SeenSize { bytes: Some(56), calls: calls - 1 }];
        let seen = SeenCalls { sizes, unsized_calls: 1, in_lines: calls / 2, saves_ns };
        let of = |name: &str, mpi| (name.to_owned(), Counts { mpi, ..Counts::default() });
        Report {
            rank,
            ended: rank == 0,
            ranks: 2,
            node_ranks: 2,
            calls: [of("allreduce", calls), of("bcast", calls + 5)].into(),
            seen: [("allreduce".to_owned(), seen)].into(),
            would_cost_us: 2500,
            refusals: vec![Refusal { ranks: 2, communicators: 1, why: "alone".to_owned() }],
            ..Report::default()
        }
    }

    #[test]
    fn a_job_is_told_by_the_rank_that_would_save_most() {
        let job = Job::of(&[report(0, 10, 3), report(1, 100, 7_000_000)]);
        assert_eq!((job.reports, job.rank, job.ended, job.calls()), (2, 1, false, 205));
        let names: Vec<_> = job.collectives.iter().map(|of| of.name.as_str()).collect();
        assert_eq!(names, ["bcast", "allreduce"], "most calls first");
        let unsized_calls: Vec<_> = job.collectives.iter().map(|of| of.unsized_calls).collect();
        assert_eq!((unsized_calls, job.in_lines()), (vec![105, 1], 50));
        assert!((job.saves_s - 7e-3).abs() < 1e-12 && (job.costs_s - 2.5e-3).abs() < 1e-12);
        assert!(!job.spans_nodes() && job.left == ["alone"]);
        assert!(Job { node_ranks: 1, ..job }.spans_nodes());
        assert_eq!(Job::of(&[]), Job::default());
    }
}
