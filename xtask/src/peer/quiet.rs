//! Waits for the machine to be ours, and says how far it was.

use std::thread::sleep;
use std::time::{Duration, Instant};

use isochrone_host::Meter;

/// How long a look takes: a tick is then 2 % of one processor.
const LOOK: Duration = Duration::from_millis(500);

/// Waits until nobody else is at work, at most until `deadline`.
pub(crate) fn wait(deadline: Instant) {
    while Instant::now() < deadline {
        let meter = Meter::start();
        sleep(LOOK);
        if Meter::since(meter.as_ref()).is_quiet() {
            break;
        }
    }
}
