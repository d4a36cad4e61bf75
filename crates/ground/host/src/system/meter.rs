//! How much of the processors' time others took while something was measured, and how long somebody waited for a
//! processor.
//!
//! From `/proc/stat` and `/proc/self/stat` (proc(5)), in ticks of mostly 10 ms; from `/proc/pressure/cpu` and the
//! `schedstat` of this process's threads (sched-stats in the kernel's documentation). Where they cannot be read
//! there is no figure. Children count as ours once they have ended.

use std::time::Instant;

use super::SysRoot;
use serde::Serialize;

/// Share of all processors' time beyond which a measurement counts as disturbed.
const QUIET: f64 = 0.05;

/// Shares of all processors' time; `None` where the system does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Disturbance {
    /// Taken by processes that are neither this one nor its ended children.
    pub others: Option<f64>,
    /// Taken by the host.
    pub steal: Option<f64>,
    /// Share of the time in which somebody who could have run waited for a processor: ours or others'.
    pub pressure: Option<f64>,
    /// Share of the time that one of our threads, the worst, waited for a processor; of those that run still.
    pub waits: Option<f64>,
}

impl Disturbance {
    /// Whether others and the host together took at most a twentieth of the time; false where the system does
    /// not say.
    #[must_use]
    pub fn is_quiet(self) -> bool {
        self.others.zip(self.steal).is_some_and(|(others, steal)| others + steal <= QUIET)
    }
}

/// A reading of the system's clocks of work, in ticks since it started.
#[derive(Clone, Debug, PartialEq)]
pub struct Meter {
    busy: f64,
    steal: f64,
    all: f64,
    own: f64,
    at: Instant,
    /// Microseconds in which somebody waited, since the system started.
    pressure_us: Option<f64>,
    /// Nanoseconds that each thread of ours waited, by its number.
    waits_ns: Vec<(u32, f64)>,
}

impl Meter {
    /// Now; `None` where the system does not say.
    #[must_use]
    pub fn start() -> Option<Self> {
        let root = SysRoot::live();
        let clocks = Self::parse(&root.text("proc/stat")?, &root.text("proc/self/stat")?)?;
        let waited = |thread: u32| {
            let text = root.text(format!("proc/self/task/{thread}/schedstat"))?;
            Some((thread, text.split_whitespace().nth(1)?.parse().ok()?))
        };
        let threads = root.names("proc/self/task").into_iter().filter_map(|name| name.parse().ok());
        Some(Self {
            pressure_us: root.text("proc/pressure/cpu").and_then(|text| pressure_us(&text)),
            waits_ns: threads.filter_map(waited).collect(),
            ..clocks
        })
    }

    /// From then to now.
    #[must_use]
    pub fn since(then: Option<&Self>) -> Disturbance {
        match (then, Self::start()) {
            (Some(then), Some(now)) => then.until(&now),
            _ => Disturbance::default(),
        }
    }

    fn parse(system: &str, own: &str) -> Option<Self> {
        let numbers = |text: &str| -> Vec<f64> {
            text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
        };
        let line = system.lines().find_map(|l| l.strip_prefix("cpu "))?;
        // user nice system idle iowait irq softirq steal; guest time is in user already.
        let [user, nice, kernel, idle, wait, irq, soft, steal, ..] = numbers(line)[..] else {
            return None;
        };
        // The name may hold anything: fields are counted from the last parenthesis. utime, stime,
        // cutime and cstime are fields 14 to 17; the state is 3.
        let (_, fields) = own.rsplit_once(')')?;
        let times: Vec<f64> =
            fields.split_whitespace().skip(11).take(4).filter_map(|w| w.parse().ok()).collect();
        let busy = user + nice + kernel + irq + soft;
        Some(Self {
            busy,
            steal,
            all: busy + idle + wait + steal,
            own: times.iter().sum(),
            at: Instant::now(),
            pressure_us: None,
            waits_ns: Vec::new(),
        })
    }

    fn until(&self, end: &Self) -> Disturbance {
        let all = end.all - self.all;
        if all <= 0.0 {
            // Shorter than a tick.
            return Disturbance::default();
        }
        let others = ((end.busy - self.busy) - (end.own - self.own)).max(0.0);
        let seconds = end.at.saturating_duration_since(self.at).as_secs_f64();
        let pressure = self.pressure_us.zip(end.pressure_us).map(|(then, now)| now - then);
        Disturbance {
            others: Some(others / all),
            steal: Some((end.steal - self.steal) / all),
            pressure: pressure.map(|us| share(us / 1e6, seconds)),
            waits: self.longest_wait_s(end).map(|waited| share(waited, seconds)),
        }
    }

    /// What the thread of ours that waited longest waited; a thread that is new had waited for nothing before.
    fn longest_wait_s(&self, end: &Self) -> Option<f64> {
        let before = |thread| self.waits_ns.iter().find(|(t, _)| *t == thread).map_or(0.0, |w| w.1);
        let waits = end.waits_ns.iter().map(|(thread, ns)| (ns - before(*thread)) / 1e9);
        waits.reduce(f64::max)
    }
}

/// The part of a time, at most all of it.
fn share(seconds: f64, of: f64) -> f64 {
    if of > 0.0 { (seconds / of).clamp(0.0, 1.0) } else { 0.0 }
}

/// The total of the line `some` of a pressure file.
fn pressure_us(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    line.rsplit_once("total=")?.1.trim().parse().ok()
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
        let found = before.until(&after);
        assert!((found.others.unwrap() - 0.2).abs() < 1e-12);
        assert!((found.steal.unwrap() - 0.05).abs() < 1e-12);
        assert!(!found.is_quiet() && !Disturbance::default().is_quiet());
        assert!(
            Disturbance { others: Some(0.03), steal: Some(0.01), ..Disturbance::default() }
                .is_quiet()
        );
        assert_eq!(before.until(&before), Disturbance::default());
        assert_eq!(Meter::parse("intr 5", &own(1)), None);
    }

    #[test]
    fn waits_and_pressure_are_shares_of_the_time() {
        let quiet =
            Meter::parse("cpu  100 0 50 1000 10 0 0 5 0 0", "7 (a) S 1 2 3 4 5 6 7 8 9 10 1 1 1 1");
        let mut before = quiet.unwrap();
        let text = "some avg10=1.0 avg60=0 avg300=0 total=500000\nfull avg10=0 total=9";
        before.pressure_us = pressure_us(text);
        before.waits_ns = vec![(7, 1e9), (8, 5e9)];
        let mut after = before.clone();
        after.all += 200.0;
        after.at += std::time::Duration::from_secs(2);
        after.pressure_us = Some(1_500_000.0);
        after.waits_ns = vec![(7, 1.1e9), (9, 0.5e9)];
        let found = before.until(&after);
        assert!((found.pressure.unwrap() - 0.5).abs() < 1e-9, "{found:?}");
        assert!((found.waits.unwrap() - 0.25).abs() < 1e-9, "the new thread waited most");
        assert_eq!(pressure_us("full total=3"), None);
    }

    #[test]
    fn this_system_can_be_read() {
        let begin = Meter::start();
        assert!(begin.is_some());
        assert!(
            Meter::since(begin.as_ref()).others.is_none_or(|share| (0.0..=1.0).contains(&share))
        );
    }
}
