//! Whether the machine was ours: how much of its processors' time others took meanwhile.
//!
//! From `/proc/stat` and `/proc/self/stat` (proc(5)), both in ticks of USER_HZ, mostly 10 ms.
//! Who the others are is not looked at.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;

/// Share of all processors' time beyond which a measurement counts as disturbed.
pub(crate) const QUIET: f64 = 0.05;
/// How long a look takes: a tick is then 2 % of one processor.
const LOOK: Duration = Duration::from_millis(500);

/// Shares of all processors' time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Disturbance {
    /// Taken by processes that are neither this one nor its ended children.
    pub(crate) others: f64,
    /// Taken by the host.
    pub(crate) steal: f64,
}

impl Disturbance {
    pub(crate) fn is_quiet(self) -> bool {
        self.others + self.steal <= QUIET
    }
}

/// Ticks since the system started.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Meter {
    busy: f64,
    steal: f64,
    all: f64,
    own: f64,
}

impl Meter {
    /// Now.
    pub(crate) fn start() -> Result<Self> {
        let read = |path: &str| fs::read_to_string(path).context(path.to_owned());
        Self::parse(&read("/proc/stat")?, &read("/proc/self/stat")?)
    }

    fn parse(system: &str, own: &str) -> Result<Self> {
        let numbers = |text: &str| -> Vec<f64> {
            text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
        };
        let line = system.lines().find_map(|l| l.strip_prefix("cpu ")).context("no cpu line")?;
        // user nice system idle iowait irq softirq steal; guest time is in user already.
        let [user, nice, kernel, idle, wait, irq, soft, steal, ..] = numbers(line)[..] else {
            anyhow::bail!("an older /proc/stat: {line:?}");
        };
        // The name may hold anything, spaces too: fields are counted from the parenthesis after
        // it. utime, stime, cutime and cstime are fields 14 to 17; the state is 3.
        let (_, fields) = own.rsplit_once(')').context("no name in /proc/self/stat")?;
        let times: Vec<f64> =
            fields.split_whitespace().skip(11).take(4).filter_map(|w| w.parse().ok()).collect();
        let busy = user + nice + kernel + irq + soft;
        Ok(Self { busy, steal, all: busy + idle + wait + steal, own: times.iter().sum() })
    }

    /// From then to now.
    pub(crate) fn stop(self) -> Result<Disturbance> {
        Ok(self.until(Self::start()?))
    }

    fn until(self, end: Self) -> Disturbance {
        let all = (end.all - self.all).max(1.0);
        let others = (end.busy - self.busy) - (end.own - self.own);
        Disturbance { others: others.max(0.0) / all, steal: (end.steal - self.steal) / all }
    }
}

/// Waits until nobody else is at work, at most until `deadline`.
pub(crate) fn wait(deadline: Instant) -> Result<()> {
    while Instant::now() < deadline {
        let meter = Meter::start()?;
        sleep(LOOK);
        if meter.stop()?.is_quiet() {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_what_is_busy_and_not_ours() {
        let own = |ticks: u32| {
            format!("7 (a name) with) S 1 2 3 4 5 6 7 8 9 10 {ticks} 5 {ticks} 0 20 0")
        };
        let before = Meter::parse("cpu  100 0 50 1000 10 0 0 5 0 0\ncpu0 9 9", &own(10)).unwrap();
        let after = Meter::parse("cpu  170 0 60 1110 10 0 0 15 0 0\ncpu0 9 9", &own(30)).unwrap();
        // 200 ticks in all: 80 busy, of which 40 ours, and 10 stolen.
        let found = before.until(after);
        assert!((found.others - 0.2).abs() < 1e-12 && (found.steal - 0.05).abs() < 1e-12);
        assert!(!found.is_quiet());
        assert_eq!(before.until(before), Disturbance::default());
        assert!(Meter::parse("intr 5", &own(1)).is_err());
    }

    #[test]
    fn this_system_can_be_read() {
        let found = Meter::start().unwrap().stop().unwrap();
        assert!((0.0..=1.0).contains(&found.others), "{found:?}");
    }
}
