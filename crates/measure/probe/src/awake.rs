//! Keeps cores busy at idle priority, so that a host has no reason to move sleeping vCPUs.
//!
//! A spinner yields to any other thread at once (`SCHED_IDLE`), so it does not disturb what is
//! measured on the same core beyond the cache lines of its own loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use isochrone_os::affinity;
use isochrone_units::CoreId;

/// One spinning thread a core; they end when this is dropped.
#[derive(Debug)]
pub struct Awake {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Awake {
    /// Starts a spinner on each of `cores`. A core that refuses one simply has none.
    #[must_use]
    pub fn start(cores: &[CoreId]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = cores
            .iter()
            .filter_map(|core| {
                let (core, stop) = (*core, Arc::clone(&stop));
                let spin = move || {
                    // Without both it would take time from what is measured: then rather not.
                    if affinity::set_idle_priority().is_err() || affinity::pin(core).is_err() {
                        return;
                    }
                    while !stop.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                };
                std::thread::Builder::new().name(format!("awake-{}", core.0)).spawn(spin).ok()
            })
            .collect();
        Self { stop, threads }
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A spinner cannot fail once it spins.
            let _ = thread.join();
        }
    }
}
