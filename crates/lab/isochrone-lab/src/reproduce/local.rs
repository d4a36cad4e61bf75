//! What a line in a core's own cache costs (`R_L`): a walk over the lines of one page, each load waiting for the one
//! before. An atlas does not have it.

use isochrone_os::clock::monotonic_ns;
use isochrone_os::mapping::{Backing, Mapping};
use isochrone_os::timed::link;
use isochrone_stats::median;
use isochrone_units::{LINES_PER_PAGE, LineAddr, PAGE_BYTES};

/// Steps of a walk: a tenth of a millisecond at least, beside which reading the clock is nothing.
const STEPS: u64 = 1 << 18;
/// Walks; the median is taken.
const WALKS: usize = 9;

/// Nanoseconds that a load from the own first-level cache takes; `None` where no memory is had.
pub(super) fn line_ns() -> Option<f64> {
    let mut mapping = Mapping::anonymous(PAGE_BYTES, Backing::Small).ok()?;
    let lines: Vec<LineAddr> = (0..LINES_PER_PAGE as u64).map(LineAddr).collect();
    let ring = link(&mut mapping, &lines).ok()?;
    let mut cursor = ring.cursor();
    // The page comes into the cache, and the core to its clock.
    cursor.walk(STEPS);
    let mut walk = || {
        let begin = monotonic_ns();
        cursor.walk(STEPS);
        std::hint::black_box(cursor.line());
        #[allow(clippy::cast_precision_loss, reason = "some milliseconds")]
        let ns = (monotonic_ns() - begin) as f64 / STEPS as f64;
        ns
    };
    median(&(0..WALKS).map(|_| walk()).collect::<Vec<_>>())
}
