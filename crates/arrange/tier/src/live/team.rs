//! A team: workers that share an area, and movers that serve them. What is the same for threads and
//! processes is here; how they are made is in `spawn`.

use std::path::Path;
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use super::area::Area;
use super::check::{Check, Mode, check};
use super::common::Common;
use super::config::{Config, Tables, TierError};
use super::far::Far;
use super::poisons::Poisons;
use super::process::{Born, Process};
use super::report::{Ended, Report};
use super::spawn;
use super::worker::Worker;
use crate::names::Actor;
use crate::pager::Pager;
use crate::streams::Streams;

/// A team that has not begun.
#[derive(Debug)]
pub struct Team {
    process: Box<Process>,
    mode: Mode,
    check: Check,
}

impl Team {
    /// Prepares everything that all processes will have. Nobody is made yet.
    ///
    /// # Errors
    /// [`TierError`] for parameters out of bounds, or a kernel without what is needed.
    pub fn new(mut config: Config, far: Box<dyn Far>) -> Result<Self, TierError> {
        let shape = config.shape()?;
        let check = check(Path::new("/sys"));
        let mode = match (config.mode, check.mode) {
            (Some(mode), Some(_)) if check.features.has(mode.features()) => mode,
            (None, Some(mode)) => mode,
            _ => {
                let first = check.missing.first();
                let (what, mend) = first.map_or(
                    ("this mode of userfaultfd".to_owned(), "leave the mode to the program"),
                    |missing| (missing.what.clone(), missing.mend),
                );
                return Err(TierError::Unavailable(what, mend));
            }
        };
        // Without it what is mapped to be read may be written unseen.
        config.plan.clean &= check.features.has(isochrone_os::userfault::Features::WP_UNPOPULATED);
        let area = Area::new(shape.groups, config.group_bytes(), config.files)?;
        let common = Common::new(shape, config.movers)?;
        Pager::new(common.pager_words(), shape, config.plan).format();
        let tables = (0..shape.spaces).map(|_| OnceLock::new()).collect();
        let process = Process {
            config,
            shape,
            area,
            common,
            far,
            tables,
            number: OnceLock::new(),
            features: check.features,
            born: Born::now(),
            streams: Streams::default(),
            poisons: Poisons::default(),
            unmapping: Mutex::default(),
        };
        Ok(Self { process: Box::new(process), mode, check })
    }

    /// What the kernel lacks, and what that costs.
    #[must_use]
    pub const fn check(&self) -> &Check {
        &self.check
    }

    /// Makes everybody, lets all workers run `body`, and waits for them.
    ///
    /// # Errors
    /// [`TierError`] if this process has more than one thread, or somebody could not be made. How each
    /// worker ended is in the report.
    pub fn run(
        self,
        body: impl Fn(&mut Worker<'_>) -> Result<u64, String> + Sync,
    ) -> Result<Report, TierError> {
        isochrone_os::race::look();
        let process = &*self.process;
        if !super::handler::claim(process) {
            return Err(TierError::Config("faults of a process are those of one area at a time"));
        }
        let done = match process.config.tables {
            Tables::Shared => spawn::threads(process, self.mode, &body),
            Tables::Separated => spawn::processes(process, self.mode, &body),
        };
        // Whatever came of it: the value that handlers look for goes.
        super::handler::forget();
        let (workers, began): (Vec<Ended>, Instant) = done?;
        let wall = began.elapsed();
        let actors = process.config.workers + process.config.movers;
        Ok(Report {
            workers,
            counters: (0..actors).map(|actor| process.common.counters(Actor(actor))).collect(),
            notes: (0..process.config.workers).map(|worker| process.common.noted(worker)).collect(),
            wall,
            mode: self.mode,
            resident_bytes: process.area.resident_bytes(),
        })
    }
}
