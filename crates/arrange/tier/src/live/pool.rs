//! A pool of workers for a program that mostly runs in one place: the program itself is the host, as in the
//! paper's execution model, and sends parts of its work to the side that each is preferred on.
//!
//! Workers are made before the program begins, since with page tables of their own they are processes. So what
//! they can be asked for is known before, too: a part is a function that is registered, and a call names it
//! and gives it some numbers. Data are in the area. Barriers and reductions within a part are those of
//! [`isochrone_cla::live`].
//!
//! ```no_run
//! use isochrone_tier::live::far::Memory;
//! use isochrone_tier::live::{Config, Pool, Side};
//! use std::sync::atomic::Ordering::Relaxed;
//!
//! let mut pool = Pool::new();
//! let fill = pool.part(|me, [at, words, ..]| {
//!     let all = me.global_words(at, words)?;
//!     let mine = me.share(all.len());
//!     all[mine.clone()].iter().for_each(|word| word.store(1, Relaxed));
//!     me.sum(mine.len() as f64).map(|sum| sum as u64)
//! });
//! let area = 64 << 20;
//! let (sums, report) = pool.run(Config::new(area, area / 2, 4), Box::new(Memory::new(area, None)?), |host| {
//!     let at = host.malloc_global(32 << 20).ok_or("the area is full")?;
//!     let sums = host.call(fill, [at.addr().get() as u64, 4 << 20, 0, 0], Side::Workers)?;
//!     host.free_global(at).map_err(|error| error.to_string())?;
//!     Ok(sums)
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod call;
mod host;
mod member;
mod orders;

use std::sync::Mutex;

use super::config::{Config, TierError};
use super::far::Far;
use super::report::Report;
use super::team::Team;
pub use call::{CallError, PartId, Side};
pub use host::Host;
use member::Body;
pub use member::Member;
pub use orders::ARGUMENTS;
use orders::Orders;

/// Why a pool has no result.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// There was no team.
    #[error(transparent)]
    Tier(#[from] TierError),
    /// The program said so.
    #[error("{0}")]
    Program(String),
}

/// Parts, before there are workers.
#[derive(Default)]
pub struct Pool<'p> {
    parts: Vec<Box<Body<'p>>>,
}

impl std::fmt::Debug for Pool<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("parts", &self.parts.len()).finish()
    }
}

impl<'p> Pool<'p> {
    /// A pool that can be asked for nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a part.
    pub fn part(
        &mut self,
        body: impl Fn(&mut Member<'_, '_>, [u64; ARGUMENTS]) -> Result<u64, String> + Sync + 'p,
    ) -> PartId {
        self.parts.push(Box::new(body));
        PartId(self.parts.len() - 1)
    }

    /// Makes a team whose worker 0 is this process, runs `program` in it, and ends all others when it
    /// returns, whatever it returns, and also when it panics.
    ///
    /// # Errors
    /// [`PoolError`] where there is no team, or with the program's own words.
    pub fn run<R: Send>(
        &self,
        config: Config,
        far: Box<dyn Far>,
        program: impl FnOnce(&mut Host<'_, '_>) -> Result<R, String> + Send,
    ) -> Result<(R, Report), PoolError> {
        let workers = config.workers;
        let team = Team::new(Config { parent_works: true, ..config }, far)?;
        let orders = Orders::new(workers).map_err(TierError::from)?;
        let (program, result) = (Mutex::new(Some(program)), Mutex::new(None));
        let report = team.run(|worker| {
            if worker.index() > 0 {
                return member::serve(worker, &orders, &self.parts);
            }
            let program = program.lock().ok().and_then(|mut program| program.take());
            let program = program.ok_or("the program runs once")?;
            let mut host = Host::new(worker, &orders, &self.parts)?;
            let value = program(&mut host)?;
            drop(host);
            if let Ok(mut result) = result.lock() {
                *result = Some(value);
            }
            Ok(0)
        })?;
        let value = result.into_inner().ok().flatten();
        value.map(|value| (value, report.clone())).ok_or_else(|| {
            PoolError::Program(report.values().err().unwrap_or_else(|| "it ended".to_owned()))
        })
    }
}
