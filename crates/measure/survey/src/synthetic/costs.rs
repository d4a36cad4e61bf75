//! What a machine needs beside what is timed: assumed, and of the size that it has on servers under Linux.
//!
//! The samples of a synthetic machine say what a load or a transfer takes. These say what a run waits for in between.

use crate::size::MAP_GIB_S;

/// Seconds until a thread that waits for work has it, one after the other for the threads of a batch: a message through
/// a channel and a wake-up.
pub(super) const HAND_OVER_S: f64 = 4e-6;
/// Seconds for which the parts of a scene meet before each step: a head start and the news of it.
pub(super) const MEETING_S: f64 = 0.5e-6;
/// Seconds in which the one thread that gathers samples takes a mean of each line from them, for each sample: of
/// hundreds of cores that exchange lines at once, this takes longer than the lines do.
pub(super) const GATHER_S: f64 = 10e-9;
/// Seconds until the measuring thread runs on another core.
pub(super) const MOVE_S: f64 = 20e-6;
/// Seconds until a thread is there.
pub(super) const THREAD_S: f64 = 30e-6;
/// Seconds to put a line out of all caches.
pub(super) const FLUSH_S: f64 = 75e-9;
/// Links that are followed before a chase is timed, as live ones are.
pub(super) const WARM_STEPS: f64 = 256.0;

/// Seconds until so many bytes are mapped, one thread at it.
pub(super) fn mapping_s(bytes: u64) -> f64 {
    MAP_GIB_S * bytes as f64 / (1_u64 << 30) as f64
}
