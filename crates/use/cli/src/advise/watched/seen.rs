//! What a run was seen to do, and the shares of its time that follow from it.

use isochrone_console::run::spent::Spent;
use isochrone_host::Disturbance;
use serde::Serialize;

use super::allocations::Allocations;
use super::job::Job;
use super::looks::Looks;
use super::proc::Pages;

/// What a run was seen to do, from outside.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Seen {
    /// What a shell would see.
    pub(super) code: u8,
    /// From its start to its end.
    pub(super) seconds: f64,
    /// What its processes took, as far as somebody waited for them.
    pub(super) spent: Spent,
    pub(super) looks: Looks,
    /// Calls of MPI, of a program that launches a job.
    pub(super) mpi: Option<Job>,
    /// What it allocated, of any other program into which a library can be preloaded.
    pub(super) allocations: Option<Allocations>,
    /// Seconds in which somebody on this machine waited for memory; nothing where the kernel does not say.
    pub(super) memory_stalls_s: Option<f64>,
    /// What a fault on a small page of new memory takes here, measured when the program had ended, ns.
    pub(super) fault_ns: Option<f64>,
    /// What the pager takes for a fault at random on a page beyond fast memory, us, measured where the run had such.
    pub(super) far_fault_us: Option<f64>,
    /// What others did meanwhile.
    pub(super) disturbance: Disturbance,
}

impl Seen {
    /// The most of the time that can have been spent in the program: of several threads, one may have been waited for
    /// all the time.
    pub(super) fn user_share(&self) -> f64 {
        self.share(self.spent.user_s)
    }

    fn share(&self, seconds: f64) -> f64 {
        if self.seconds > 0.0 { (seconds / self.seconds).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// How many cores were busy in the mean.
    pub(super) fn cores_busy(&self) -> f64 {
        if self.seconds > 0.0 {
            (self.spent.user_s + self.spent.system_s) / self.seconds
        } else {
            0.0
        }
    }

    /// The most that was resident: of all processes as it was seen, or of the largest as the kernel says.
    pub(super) fn resident_bytes(&self) -> Option<u64> {
        let seen = self.looks.pages.as_ref().map(Pages::resident);
        seen.max(self.spent.peak_rss_bytes)
    }
}
