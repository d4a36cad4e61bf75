//! One large array, as by `mmap`: memory of which a part is in fast memory, for all threads of this process,
//! without a team to write a program for.
//!
//! It is a team of one worker that does nothing: a thread that keeps the area. All others are guests, whose
//! faults are resolved in the thread that has them, one at a time. There are no movers, since they are processes,
//! and a process that may have threads already makes none.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::far::Far;
use super::team::{Config, Report, Tables, Team, TierError};

/// Looks whether the array is still wanted: only if its owner forgot it.
const LOOK: Duration = Duration::from_secs(3600);
/// One at a time: faults of guests belong to one area.
static TAKEN: AtomicU32 = AtomicU32::new(0);

/// The array; gone with the value.
#[derive(Debug)]
pub struct Mapped {
    base: NonNull<u8>,
    bytes: usize,
    stop: Option<Sender<()>>,
    keeper: Option<JoinHandle<Result<Report, TierError>>>,
    _one: Arc<One>,
}

// SAFETY: the area belongs to the value, not to a thread.
unsafe impl Send for Mapped {}
// SAFETY: through a shared reference the address is given only; who reads or writes through it answers for it.
unsafe impl Sync for Mapped {}

#[derive(Debug)]
struct One;

impl Drop for One {
    fn drop(&mut self) {
        TAKEN.store(0, Ordering::Release);
    }
}

impl Mapped {
    /// Maps an array of zeros. Of `config` counts what is about memory; there are one worker and no movers.
    ///
    /// # Errors
    /// [`TierError`] where the kernel lacks something, or another array is mapped.
    pub fn new(config: Config, far: Box<dyn Far>) -> Result<Self, TierError> {
        if TAKEN.swap(1, Ordering::AcqRel) != 0 {
            return Err(TierError::Config("one array is mapped at a time"));
        }
        let one = Arc::new(One);
        let tables = Tables::Shared;
        let config = Config { workers: 1, movers: 0, tables, parent_works: false, ..config };
        let team = Team::new(config, far)?;
        let (tell, told) = channel();
        let (stop, stopped) = channel::<()>();
        let stopped = std::sync::Mutex::new(stopped);
        let keeper = std::thread::spawn(move || {
            team.run(|worker| {
                let (base, bytes) = worker.extent();
                // Who waits for the address has it, or is gone: then so is the other channel.
                let _ = tell.send((base.expose_provenance(), bytes));
                let stopped = stopped.lock().map_err(|_| "it panicked before")?;
                while matches!(stopped.recv_timeout(LOOK), Err(RecvTimeoutError::Timeout)) {}
                Ok(0)
            })
        });
        let told = told.recv().ok();
        let place = told.and_then(|(base, bytes)| {
            NonNull::new(std::ptr::with_exposed_provenance_mut(base)).map(|base| (base, bytes))
        });
        match place {
            Some((base, bytes)) => {
                Ok(Self { base, bytes, stop: Some(stop), keeper: Some(keeper), _one: one })
            }
            None => match keeper.join() {
                Ok(Err(error)) => Err(error),
                _ => Err(TierError::Unready("the thread that keeps the array".to_owned())),
            },
        }
    }

    /// The first byte. Reading and writing through it is the caller's to justify; a page that cannot be had is a
    /// `SIGBUS`.
    #[must_use]
    pub const fn as_ptr(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Bytes.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "never empty")]
    pub const fn len(&self) -> usize {
        self.bytes
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
    }
}
