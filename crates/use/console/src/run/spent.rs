//! What all processes took that were started here and have ended, with those that they waited for: as the kernel
//! counts it at their end (getrusage(2)), which costs them nothing.

use anyhow::Result;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use serde::Serialize;

/// What the processes took together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spent {
    /// Processor time in the programs, seconds.
    pub user_s: f64,
    /// Processor time in the kernel for them, seconds.
    pub system_s: f64,
    /// The largest resident memory of any one of them; `None` where it is not above that of this process, which a
    /// process has from its beginning (`exec` keeps the high-water mark).
    pub peak_rss_bytes: Option<u64>,
    /// Page faults without a device.
    pub minor_faults: u64,
    /// Page faults that waited for a device.
    pub major_faults: u64,
    /// Times that a thread waited for something.
    pub voluntary_switches: u64,
    /// Times that a thread had to give way.
    pub involuntary_switches: u64,
}

/// What they took so far.
///
/// # Errors
/// Where the kernel does not say.
pub fn of_children() -> Result<Spent> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let own = getrusage(UsageWho::RUSAGE_SELF)?.max_rss();
    let peak = usage.max_rss();
    let seconds = |time: TimeVal| time.num_microseconds() as f64 / 1e6;
    let count = |number| u64::try_from(number).unwrap_or(0);
    Ok(Spent {
        user_s: seconds(usage.user_time()),
        system_s: seconds(usage.system_time()),
        peak_rss_bytes: (peak > own).then(|| count(peak) * 1024),
        minor_faults: count(usage.minor_page_faults()),
        major_faults: count(usage.major_page_faults()),
        voluntary_switches: count(usage.voluntary_context_switches()),
        involuntary_switches: count(usage.involuntary_context_switches()),
    })
}
