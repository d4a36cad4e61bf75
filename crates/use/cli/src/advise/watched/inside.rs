//! What of a program is seen from inside of its processes: calls of MPI in a job's ranks, and, where that was asked
//! for, what a program allocates. Where a library cannot be preloaded it is said why, and the program runs without.

use std::path::Path;

use anyhow::Result;
use isochrone_console::output;
use isochrone_console::run::start::Program;

use super::allocations::{Allocations, Sampled};
use super::job::{Counted, Job};
use crate::advise::trial::levers::is_launcher;
use crate::args::AdviseArgs;
use crate::run::program::{self, Who};

/// Who looks from inside.
#[derive(Debug, Default)]
pub(super) struct Inside {
    ranks: Option<Counted>,
    objects: Option<Sampled>,
    /// Why something that was to be seen is not.
    unseen: Vec<String>,
}

/// What was seen from inside.
#[derive(Debug, Default)]
pub(super) struct SeenInside {
    pub(super) mpi: Option<Job>,
    pub(super) allocations: Option<Allocations>,
    pub(super) unseen: Vec<String>,
}

impl Inside {
    /// Prepares a program, and says what it is to be started as.
    pub(super) fn begin(args: &AdviseArgs, path: &Path) -> (Self, Program) {
        let plain = || Program::new(path.as_os_str(), &args.command);
        let mut inside = Self::default();
        let launches = is_launcher(path);
        let mut not = |what: &str, why: &str| inside.unseen.push(format!("{what}: {why}"));
        if args.allocations {
            let what = "what it allocates was not looked at";
            match fits(path).and_then(|()| if launches { Err(RANKS.to_owned()) } else { Ok(()) }) {
                Err(why) => not(what, &why),
                Ok(()) => match Sampled::begin(plain(), args) {
                    Ok((sampled, program)) => {
                        inside.objects = Some(sampled);
                        return (inside, program);
                    }
                    Err(error) => not(what, &output::words(&error)),
                },
            }
        }
        if launches && !args.from_outside {
            match Counted::begin(plain(), args) {
                Ok((counted, program)) => {
                    inside.ranks = Some(counted);
                    return (inside, program);
                }
                Err(error) => not("calls of MPI were not counted", &output::words(&error)),
            }
        }
        (inside, plain())
    }

    /// What was seen, when the program has ended.
    pub(super) fn end(self) -> Result<SeenInside> {
        Ok(SeenInside {
            mpi: self.ranks.map(|counted| counted.end()).transpose()?,
            allocations: self.objects.map(|sampled| sampled.end()).transpose()?,
            unseen: self.unseen,
        })
    }
}

/// Why ranks are not looked into.
const RANKS: &str = "it launches an MPI job, whose ranks count their calls instead";

/// Whether the program asks a malloc that a library can stand before.
fn fits(path: &Path) -> Result<(), String> {
    let fit = program::check(path, Who::here()).map_err(|refusal| refusal.why)?;
    fit.takes_an_allocator().map_err(str::to_owned)
}
