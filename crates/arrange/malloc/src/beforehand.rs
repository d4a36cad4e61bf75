//! Learning memory beforehand, for pools of benchmarks: all pages decoded before the first record is made.
//!
//! It binds the calling thread to the cores in turn, since a line can only be timed by the core
//! that is to use it, and sets the thread's cores back. No process of `isochrone run` does this.

use core::time::Duration;

use crate::growth::{Hold, Work};
use crate::instance::Instance;
use crate::settings::InstanceError;
use isochrone_alloc::PageCodes;
use isochrone_alloc::live::{LineMeans, Slice, Timing as _};
use isochrone_atlas::LevelInfo;
use isochrone_atlas::format::FormTag;
use isochrone_os::affinity::{self, CoreSet};
use isochrone_os::reserve::Stride;
use isochrone_units::{CoreId, LINES_PER_PAGE, Level, PAGE_BYTES};

/// Time on one core before it is the next one's turn.
const TURN_NS: u64 = 5_000_000;
/// Turns without a page that became known after which no more is expected.
const IDLE_TURNS: u32 = 64;
/// Turns after which pages that do not become known will not.
const LOOK_TURNS: u32 = 64;
/// Times that lines are timed to see how far they are.
const CHECKS: u32 = 8;

/// How far lines were found to be, by timing them in the last-level cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Mean latency of lines taken for the core, cycles.
    pub taken: f64,
    /// Mean latency of all lines of the pages that were looked at, cycles.
    pub pool: f64,
}

/// Sets a thread's cores back.
struct Bound {
    before: Option<CoreSet>,
}

impl Bound {
    fn new() -> Self {
        Self { before: CoreSet::of_this_thread().ok() }
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // What was allowed is allowed still, or somebody else has decided since.
            let _ = affinity::restore(before);
        }
    }
}

impl Instance<'_> {
    /// Learns memory for `bytes` of records beforehand, what preference may waste included, for as
    /// long as `within` says: the share that it has learnt.
    ///
    /// # Errors
    /// [`InstanceError`] where there is no memory, or a core cannot be had or timed.
    pub(crate) fn prepare(
        &self,
        bytes: usize,
        within: Option<Duration>,
    ) -> Result<f32, InstanceError> {
        let pages = self.pages_for(bytes);
        let _bound = Bound::new();
        let mut hold = self.growth.hold();
        let until = within.map_or(u64::MAX, |within| {
            let within = u64::try_from(within.as_nanos()).unwrap_or(u64::MAX);
            hold.work.machine.now_ns().saturating_add(within)
        });
        hold.work.expects(bytes as u64);
        self.growth.keep(pages.saturating_mul(PAGE_BYTES) as u64);
        self.take_pages(pages)?;
        let Ok(pages) = u32::try_from(self.arena.pages()) else { return Ok(0.0) };
        #[cfg(feature = "arms")]
        if self.heap().policy().mode.is_oracle() {
            let measured = self.measure(&mut hold, bytes, until)?;
            return Ok(share(measured as u64, u64::from(pages.max(1))));
        }
        self.decode(&mut hold, pages, until)
    }

    fn pages_for(&self, bytes: usize) -> usize {
        let policy = self.heap().policy();
        let slack = usize::try_from(policy.slack_bytes).unwrap_or(0);
        with_waste(bytes, policy.waste).saturating_add(slack).div_ceil(PAGE_BYTES)
    }

    /// Decodes all pages of the arena, core by core in turn: the share of codes that were found.
    fn decode(&self, hold: &mut Hold<'_>, pages: u32, until: u64) -> Result<f32, InstanceError> {
        self.identify(hold)?;
        let (mut idle, mut more) = (0, true);
        while more && idle < IDLE_TURNS && hold.work.machine.now_ns() < until {
            let before = hold.work.classifier.stats().confirmed;
            more = false;
            for core in self.users() {
                affinity::pin(core)?;
                more = self.slice(hold, TURN_NS, Stride::Whole) || more;
            }
            let confirmed = hold.work.classifier.stats().confirmed;
            idle = if confirmed > before { 0 } else { idle + 1 };
        }
        self.take_events(hold, u64::MAX);
        // What could not be decoded joins as it is.
        for page in 0..pages {
            self.heap().page_ready(page, PageCodes::UNKNOWN);
        }
        let pattern = |level: &Level| self.atlas().level(*level).is_some_and(has_pattern);
        let codes = Level::ALL.iter().filter(|level| pattern(level)).count() * self.arena.pages();
        let found = hold.work.classifier.stats().confirmed;
        self.identify(hold)?;
        Ok(if codes == 0 { 1.0 } else { share(found, codes as u64) })
    }

    /// Finds the current bases of every core.
    fn identify(&self, hold: &mut Hold<'_>) -> Result<(), InstanceError> {
        self.look_ahead(hold);
        let work = &mut *hold.work;
        work.classifier.add(&work.machine, self.arena.pages());
        work.noted = self.arena.pages() as u64;
        for core in self.users() {
            affinity::pin(core)?;
            work.classifier.identify(&mut work.machine)?;
        }
        self.make_all_orders(hold);
        Ok(())
    }

    /// Whether the atlas has a base that the cores of the settings see the last-level cache by now:
    /// some pages of new memory are decoded in it and found to look as it says. `None` where the
    /// atlas has no pattern of that level.
    ///
    /// # Errors
    /// [`InstanceError`] where there is no memory, or a core cannot be had or timed.
    pub fn recognises(&self) -> Result<Option<bool>, InstanceError> {
        if !self.atlas().level(Level::Llc).is_some_and(has_pattern) {
            return Ok(None);
        }
        let _bound = Bound::new();
        self.take_pages(1)?;
        self.identify(&mut self.growth.hold())?;
        for core in self.users() {
            affinity::pin(core)?;
            let hold = self.growth.hold();
            let Work { machine, classifier, .. } = &mut *hold.work;
            for _ in 0..LOOK_TURNS {
                let ended = classifier.slice(machine, TURN_NS)? != Slice::Paused;
                if ended || classifier.stats().confirmed > 0 {
                    break;
                }
            }
            if classifier.current_bases(core).llc.is_none() || classifier.stats().confirmed == 0 {
                return Ok(Some(false));
            }
        }
        Ok(Some(true))
    }

    /// Times lines of some of the pages in use in the last-level cache, from a core: the mean of
    /// those that were taken for it, and of all. What an atlas says of lines can be wrong; this is
    /// what they are.
    ///
    /// # Errors
    /// [`InstanceError`] where the core cannot be had or timed.
    pub(crate) fn measured(&self, core: CoreId) -> Result<Option<Measured>, InstanceError> {
        let _bound = Bound::new();
        affinity::pin(core)?;
        let count = self.arena.pages().min(LineMeans::PAGES);
        let mut pages = [0; LineMeans::PAGES];
        for (place, page) in pages.iter_mut().enumerate().take(count) {
            *page = u32::try_from(place * self.arena.pages() / count).unwrap_or(0);
        }
        let mut means = LineMeans::new(self.heap().policy().seed)?;
        let hold = self.growth.hold();
        means.measure(&mut hold.work.machine, Level::Llc, &pages[..count], CHECKS)?;
        let (mut taken, mut all) = ((0.0, 0.0), (0.0, 0.0));
        for (place, page) in pages[..count].iter().enumerate() {
            for line in 0..LINES_PER_PAGE.to_le_bytes()[0] {
                let Some(cycles) = means.mean(place, line).map(f64::from) else { continue };
                all = (all.0 + cycles, all.1 + 1.0);
                let number = page * 64 + u32::from(line);
                if self.heap().taken_for(number) == Some(self.dense(core)) {
                    taken = (taken.0 + cycles, taken.1 + 1.0);
                }
            }
        }
        let known = taken.1 > 0.0 && all.1 > 0.0;
        Ok(known.then(|| Measured { taken: taken.0 / taken.1, pool: all.0 / all.1 }))
    }
}

/// Whether pages of a level have codes.
fn has_pattern(level: LevelInfo<'_>) -> bool {
    level.form == FormTag::Pattern
}

/// A part of a whole, 1 at most.
#[allow(clippy::cast_precision_loss, reason = "a share")]
fn share(part: u64, whole: u64) -> f32 {
    (part as f32 / whole as f32).min(1.0)
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a size needs no more than 52 bits, and casts of floats saturate"
)]
fn with_waste(bytes: usize, waste: f32) -> usize {
    (bytes as f64 * (1.0 + f64::from(waste))) as usize
}
