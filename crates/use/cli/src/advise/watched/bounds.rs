//! What each lever can take off a run, from what the machine offers and what was seen of the run from outside.
//!
//! A bound holds whatever the program did in the time that cannot be looked into: of a lever that makes accesses
//! nearer, all time in the program may have been such accesses, one after the other. So it is high, and it is no
//! promise. Where no such bound is known, or it was judged to be worth nothing, that is said, with what measures it.

use serde::Serialize;

use isochrone_machine::Machine;
use isochrone_report::fmt;
use isochrone_units::{CoreId, Reading};

use super::seen::Seen;
use crate::advise::findings::{Finding, Offer};
use crate::run::program::Fit;

/// The share of the time from which a lever is worth a line in the summary: `--try` makes intervals of 2 %, so that
/// less would be seen as no difference.
pub(super) const NOTICED: f64 = 0.01;
/// Anonymous memory of which this share lies in huge pages has little left to gain of them.
const ALL_HUGE: f64 = 0.9;
/// What measures.
const TRY: &str = "isochrone advise --try";

/// What is said of a lever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum Says {
    /// It takes at most this share off the run's time.
    AtMost,
    /// It takes about this share off, counted and reckoned.
    About,
    /// There is nothing to gain.
    Nothing,
    /// Part of it at least cannot be known from outside.
    Unknown,
    /// It cannot be used with this program.
    NotApplicable,
}

/// A lever with its bound.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Bound {
    pub(super) lever: &'static str,
    pub(super) says: Says,
    /// The upper end of what it takes off the run's time, as a share of it; nothing where there is no bound.
    pub(super) at_most: Option<f64>,
    /// What it takes off as it was counted and reckoned, as such a share; nothing where there is no number.
    pub(super) about: Option<f64>,
    /// How that was come by: never measured.
    pub(super) reading: Option<Reading>,
    /// Why, in words; each number of them names its reading, or is what the run was seen to do.
    pub(super) why: String,
    /// How it is used, or how what is unknown is measured.
    pub(super) command: Option<String>,
}

impl Bound {
    fn new(lever: &'static str, says: Says, why: impl Into<String>) -> Self {
        let (at_most, about, reading, command) = (None, None, None, None);
        Self { lever, says, at_most, about, reading, why: why.into(), command }
    }

    fn at_most(self, share: f64) -> Self {
        Self { at_most: Some(share.clamp(0.0, 1.0)), reading: Some(Reading::Predicted), ..self }
    }

    fn about(self, share: f64) -> Self {
        Self { about: Some(share.clamp(0.0, 1.0)), reading: Some(Reading::Predicted), ..self }
    }

    fn command(self, command: Option<String>) -> Self {
        Self { command, ..self }
    }

    /// What the machine alone says, where the run adds nothing to it.
    fn passed(offer: &Finding) -> Self {
        let says = match offer.offer {
            Offer::Nothing => Says::Nothing,
            Offer::Gain | Offer::Depends | Offer::Unknown => Says::Unknown,
        };
        Self::new(offer.lever, says, offer.what.clone()).command(offer.command.clone())
    }
}

/// What bounds follow from.
#[derive(Debug)]
pub(super) struct Around<'a> {
    pub(super) seen: &'a Seen,
    pub(super) machine: &'a Machine,
    /// What a library can be preloaded into, or why it cannot.
    pub(super) fit: Result<Fit, String>,
    /// Whether the program starts the ranks of an MPI job.
    pub(super) launches: bool,
}

/// A bound for each lever that the machine was asked for, and for allocators.
pub(super) fn all(offers: &[Finding], around: &Around<'_>) -> Vec<Bound> {
    let bound = |offer: &Finding| match offer.lever {
        "near lines" => around.near_lines(offer),
        "core order" => around.core_order(offer),
        "regions" => around.regions(offer),
        "collectives" => around.collectives(offer),
        "tier or zram" => around.beyond_memory(offer),
        "huge pages" => around.huge_pages(offer),
        _ => Bound::passed(offer),
    };
    offers.iter().map(bound).chain(std::iter::once(around.allocators())).collect()
}

impl Around<'_> {
    /// No bound: that of all time in the program was judged, and is worse than saying nothing
    /// (docs/results/advise-epyc-9005-vm.md).
    fn near_lines(&self, offer: &Finding) -> Bound {
        if let Err(why) = &self.fit {
            return Bound::new(offer.lever, Says::NotApplicable, why.clone());
        }
        if offer.offer != Offer::Gain {
            return Bound::passed(offer);
        }
        let own = self.own_words();
        let why = format!("how long it waits for small objects takes hardware counters{own}");
        Bound::new(offer.lever, Says::Unknown, why)
            .command(Some(format!("{TRY} --only near-lines -- CMD")))
    }

    fn core_order(&self, offer: &Finding) -> Bound {
        let looks = &self.seen.looks;
        if looks.threads == 1 {
            return Bound::new(
                offer.lever,
                Says::Nothing,
                "one thread was seen: there is nobody to be near to",
            );
        }
        let (Offer::Depends, Some(apart)) = (offer.offer, &offer.number) else {
            return Bound::passed(offer);
        };
        let why = format!(
            "the farthest cores are {} times as far as the nearest ({}), were all of the {} in the program lines on \
             their way; with fewer cores than the {} that were busy it loses",
            fmt::significant(apart.value, 3),
            apart.reading.unwrap_or(Reading::Predicted),
            fmt::percent(self.seen.user_share()),
            fmt::significant(self.seen.cores_busy(), 2)
        );
        Bound::new(offer.lever, Says::AtMost, why)
            .at_most(self.seen.user_share() * (1.0 - 1.0 / apart.value))
            .command(offer.command.clone())
    }

    /// Where pages lay, beside where threads ran. Who touches which page is not seen.
    fn regions(&self, offer: &Finding) -> Bound {
        if offer.offer == Offer::Nothing {
            return Bound::passed(offer);
        }
        let Some(pages) =
            self.seen.looks.pages.as_ref().filter(|pages| !pages.by_region.is_empty())
        else {
            return Bound::passed(offer);
        };
        let near: Vec<u16> = (self.seen.looks.cores.iter())
            .filter_map(|core| Some(self.machine.region_of(CoreId(*core))?.0))
            .collect();
        let all: u64 = pages.by_region.values().sum();
        let far: u64 = pages
            .by_region
            .iter()
            .filter(|(region, _)| !near.contains(region))
            .map(|(_, bytes)| bytes)
            .sum();
        let lay = format!(
            "{} of {} lay in regions of which no core was seen to run",
            fmt::bytes(far),
            fmt::bytes(all)
        );
        let why = format!("{lay}; who touches which page takes hardware counters");
        Bound::new(offer.lever, Says::Unknown, why).command(offer.command.clone())
    }

    /// No number: calls times what the table of near ranks saves of each was judged, and is not told from saying
    /// nothing (docs/results/advise-epyc-9005-vm.md).
    fn collectives(&self, offer: &Finding) -> Bound {
        if !self.launches {
            let why = "the program is no launcher of MPI (mpirun, mpiexec)";
            return Bound::new(offer.lever, Says::NotApplicable, why);
        }
        if offer.offer == Offer::Nothing {
            return Bound::passed(offer);
        }
        let Some(job) = &self.seen.mpi else {
            let why = "what ranks call is not seen from outside; a run in lines counts it";
            let command = "isochrone run --mpi --report -- CMD".to_owned();
            return Bound::new(offer.lever, Says::Unknown, why).command(Some(command));
        };
        let measure = Some(format!("{TRY} --only collectives -- CMD"));
        let unknown =
            |why: String| Bound::new(offer.lever, Says::Unknown, why).command(measure.clone());
        if job.reports == 0 {
            return unknown(
                "no rank left a report: the program is not one of an MPI, is static, or ended without its finalize"
                    .to_owned(),
            );
        }
        let calls = format!("{} calls by rank {}", fmt::count(job.calls()), job.rank);
        if job.spans_nodes() {
            return unknown(format!("{calls}; what lines save across nodes is not reckoned"));
        }
        if job.saves_s <= job.costs_s {
            let left = job.left.first().map_or_else(String::new, |why| format!(": {why}"));
            let why = format!("{calls}, none worth doing in lines{left}");
            return Bound::new(offer.lever, Says::Nothing, why);
        }
        unknown(format!(
            "{calls}, {} of them worth doing in lines; what that saves of a run takes a trial",
            fmt::count(job.in_lines())
        ))
    }

    fn beyond_memory(&self, offer: &Finding) -> Bound {
        let spent = &self.seen.spent;
        let swapped = self.seen.looks.pages.as_ref().map_or(0, |pages| pages.swapped);
        let Some(stalled_s) = self.seen.memory_stalls_s else {
            if swapped > 0 || spent.major_faults > 0 {
                let why = format!(
                    "{} major faults, {} out on swap; what they took is not told by this kernel",
                    fmt::count(spent.major_faults),
                    fmt::bytes(swapped)
                );
                return Bound::new(offer.lever, Says::Unknown, why).command(offer.command.clone());
            }
            return Bound::new(
                offer.lever,
                Says::Nothing,
                "its data lay in memory: nothing was swapped",
            );
        };
        let share = stalled_s / self.seen.seconds;
        if swapped == 0 && share < NOTICED {
            let memory = offer.number.as_ref().map_or_else(String::new, |number| {
                format!(" of {}", fmt::bytes(whole(number.value)))
            });
            let most = self.seen.resident_bytes();
            let most =
                most.map_or_else(String::new, |bytes| format!(", {}{memory}", fmt::bytes(bytes)));
            let why = format!("its data lay in memory{most}: nothing was swapped");
            return Bound::new(offer.lever, Says::Nothing, why);
        }
        let quiet = self.seen.disturbance.is_quiet();
        if let Some(bound) = self.by_faults(offer, stalled_s).filter(|_| quiet) {
            return bound;
        }
        // Beside other work a fault waits for a core as well, which the kernel does not count as waiting for memory: on
        // a swap file under load a program went ten times as fast where a quarter of its time was counted so.
        let idle = if quiet { 0.0 } else { (1.0 - self.seen.cores_busy()).max(0.0) };
        let beside = if idle > share {
            format!(
                "; the machine did other work, and no core was busy with it in {}",
                fmt::percent(idle)
            )
        } else {
            String::new()
        };
        let why = format!(
            "{} out on swap, {} major faults: somebody waited for memory in {} of the time (whole system, \
             measured){beside}; were all of it gone",
            fmt::bytes(swapped),
            fmt::count(spent.major_faults),
            fmt::percent(share)
        );
        let most = share.max(idle);
        Bound::new(offer.lever, Says::AtMost, why).at_most(most).command(offer.command.clone())
    }

    /// What the pager saves where it has as many faults as the kernel had: the time that these were waited for, less
    /// what the pager takes for each here.
    fn by_faults(&self, offer: &Finding, stalled_s: f64) -> Option<Bound> {
        let faults = self.seen.spent.major_faults;
        let far_us = self.seen.far_fault_us.filter(|_| faults > 0 && self.fit.is_ok())?;
        let saved_s = stalled_s - faults as f64 * far_us / 1e6;
        let why = format!(
            "{} major faults were waited for {} (whole system, measured), as many of the pager's take {} each here \
             (measured)",
            fmt::count(faults),
            fmt::seconds(stalled_s),
            fmt::ns(far_us * 1e3)
        );
        let bound = if saved_s > 0.0 {
            Bound::new(offer.lever, Says::About, why).about(saved_s / self.seen.seconds)
        } else {
            Bound::new(offer.lever, Says::Nothing, format!("{why}: zram needs no code"))
        };
        Some(bound.command(offer.command.clone()))
    }

    /// No bound, as of near lines: neither faults nor all of the kernel's time tell what huge pages save.
    fn huge_pages(&self, offer: &Finding) -> Bound {
        if offer.offer == Offer::Nothing {
            return Bound::passed(offer);
        }
        if let Err(why) = self.asks_malloc() {
            return Bound::new(offer.lever, Says::NotApplicable, why);
        }
        let command = Some(format!("{TRY} --only huge-pages -- CMD"));
        let unknown =
            |why: String| Bound::new(offer.lever, Says::Unknown, why).command(command.clone());
        let walks = "page walks take hardware counters";
        let Some(pages) = &self.seen.looks.pages else {
            return unknown(format!("where its pages lay was not seen, and {walks}"));
        };
        let (huge, all) = (fmt::bytes(pages.huge), fmt::bytes(pages.anonymous));
        if pages.anonymous > 0 && pages.huge as f64 >= ALL_HUGE * pages.anonymous as f64 {
            let why = format!("{huge} of {all} lie in huge pages already");
            return Bound::new(offer.lever, Says::Nothing, why);
        }
        unknown(format!("{huge} of its {all} lie in huge pages; {walks}"))
    }

    /// What is said of the allocator that the program brings.
    fn own_words(&self) -> String {
        let own = self.fit.as_ref().ok().and_then(|fit| fit.allocator);
        own.map_or_else(String::new, |words| format!("; {words}"))
    }

    fn allocators(&self) -> Bound {
        const LEVER: &str = "allocators";
        if let Err(why) = self.asks_malloc() {
            return Bound::new(LEVER, Says::NotApplicable, why);
        }
        let why = format!(
            "{}{}",
            if self.seen.allocations.is_some() {
                "how long it is in malloc, and waits for what it allocated, takes hardware counters"
            } else {
                "neither time in malloc nor sizes and lifetimes of objects are seen from outside (--allocations)"
            },
            self.own_words()
        );
        let command = format!("{TRY} --only mimalloc,jemalloc,tcmalloc -- CMD");
        Bound::new(LEVER, Says::Unknown, why).command(Some(command))
    }

    /// Whether the program asks the C library for memory, so that another allocator or a tunable is felt.
    fn asks_malloc(&self) -> Result<(), String> {
        let fit = self.fit.as_ref().map_err(Clone::clone)?;
        fit.takes_an_allocator().map_err(str::to_owned)
    }
}

pub(super) fn whole(value: f64) -> u64 {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bytes of a machine, calls of a run"
    )]
    let bytes = value.max(0.0) as u64;
    bytes
}
