//! How much of the processors' time others took while something was measured.
//!
//! From `/proc/stat` and `/proc/self/stat` (proc(5)), in ticks of mostly 10 ms. Where they cannot
//! be read there is no figure. Children count as ours once they have ended.

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
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Meter {
    busy: f64,
    steal: f64,
    all: f64,
    own: f64,
}

impl Meter {
    /// Now; `None` where the system does not say.
    #[must_use]
    pub fn start() -> Option<Self> {
        let root = SysRoot::live();
        Self::parse(&root.text("proc/stat")?, &root.text("proc/self/stat")?)
    }

    /// From then to now.
    #[must_use]
    pub fn since(then: Option<Self>) -> Disturbance {
        match (then, Self::start()) {
            (Some(then), Some(now)) => then.until(now),
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
        Some(Self { busy, steal, all: busy + idle + wait + steal, own: times.iter().sum() })
    }

    fn until(self, end: Self) -> Disturbance {
        let all = end.all - self.all;
        if all <= 0.0 {
            // Shorter than a tick.
            return Disturbance::default();
        }
        let others = ((end.busy - self.busy) - (end.own - self.own)).max(0.0);
        Disturbance { others: Some(others / all), steal: Some((end.steal - self.steal) / all) }
    }
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
        assert!((found.others.unwrap() - 0.2).abs() < 1e-12);
        assert!((found.steal.unwrap() - 0.05).abs() < 1e-12);
        assert!(!found.is_quiet() && !Disturbance::default().is_quiet());
        assert!(Disturbance { others: Some(0.03), steal: Some(0.01) }.is_quiet());
        assert_eq!(before.until(before), Disturbance::default());
        assert_eq!(Meter::parse("intr 5", &own(1)), None);
    }

    #[test]
    fn this_system_can_be_read() {
        let begin = Meter::start();
        assert!(begin.is_some());
        assert!(Meter::since(begin).others.is_none_or(|share| (0.0..=1.0).contains(&share)));
    }
}
