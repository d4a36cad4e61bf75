//! How long a benchmark may take.

use std::time::Duration;

/// The time for a benchmark, unless told otherwise.
const BUDGET: Duration = Duration::from_secs(60);

/// The time that was asked for; `None` where instead a number of repeats was, however long they take.
pub(super) fn time(asked: Option<Duration>, repeats_asked: bool) -> Option<Duration> {
    asked.or((!repeats_asked).then_some(BUDGET))
}
