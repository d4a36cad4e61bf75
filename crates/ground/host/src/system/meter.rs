//! How much of the processors' time others took while something was measured, how long somebody waited for a
//! processor, and whether the cores ran slower than they can.
//!
//! From `/proc/stat` and `/proc/self/stat` (proc(5)), in ticks of mostly 10 ms; from `/proc/pressure/cpu` and the
//! `schedstat` of this process's threads (sched-stats in the kernel's documentation). Where they cannot be read
//! there is no figure. Children count as ours once they have ended.
//!
//! Where something is measured on a few cores of many, their time counts and that of their siblings, which share a
//! core with them: what others do elsewhere would thin out what they do here.

use std::time::Instant;

use super::SysRoot;
use super::clocks::Clocks;
use super::topology::siblings;
use serde::Serialize;

/// Share of all processors' time beyond which a measurement counts as disturbed.
const QUIET: f64 = 0.05;
/// Share of their base clock below which cores are slow.
const SLOW_CLOCK: f64 = 0.95;

/// Shares of the processors' time, and what became of their clocks; `None` where the system does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Disturbance {
    /// Taken by processes that are neither this one nor its ended children.
    pub others: Option<f64>,
    /// Taken by the host.
    pub steal: Option<f64>,
    /// Share of the time in which somebody who could have run waited for a processor: ours or others'.
    pub pressure: Option<f64>,
    /// Share of the time that one of our threads, the worst, waited for a processor; of those that run still.
    pub waits: Option<f64>,
    /// How often cores were slowed down because they were hot.
    pub throttled: Option<u64>,
    /// The clock of the fastest core at the end, over its base clock.
    pub clock: Option<f64>,
}

impl Disturbance {
    /// Whether others and the host together took at most a twentieth of the time, and no clock is known to have been
    /// slow; false where the system does not say who took what.
    #[must_use]
    pub fn is_quiet(self) -> bool {
        let alone =
            self.others.zip(self.steal).is_some_and(|(others, steal)| others + steal <= QUIET);
        alone && !self.is_slow()
    }

    /// Whether the system says that the cores ran slower than they can.
    #[must_use]
    pub fn is_slow(self) -> bool {
        self.throttled.is_some_and(|times| times > 0)
            || self.clock.is_some_and(|share| share < SLOW_CLOCK)
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
    /// The processors that count; all where there are none.
    processors: Vec<u16>,
    clocks: Clocks,
}

impl Meter {
    /// Now, of all processors; `None` where the system does not say.
    #[must_use]
    pub fn start() -> Option<Self> {
        Self::of(Vec::new())
    }

    /// Now, of these cores and their siblings; `None` where the system does not say.
    #[must_use]
    pub fn on(cores: &[u16]) -> Option<Self> {
        let root = SysRoot::live();
        let mut processors: Vec<u16> = cores
            .iter()
            .flat_map(|core| siblings(&root, *core))
            .chain(cores.iter().copied())
            .collect();
        processors.sort_unstable();
        processors.dedup();
        // A container may number its processors anew.
        Self::of(processors).or_else(Self::start)
    }

    fn of(processors: Vec<u16>) -> Option<Self> {
        let root = SysRoot::live();
        // First, while cores that have just been busy still say so.
        let clocks = Clocks::read(&root, &processors);
        let times =
            Self::parse(&root.text("proc/stat")?, &root.text("proc/self/stat")?, &processors)?;
        let waited = |thread: u32| {
            let text = root.text(format!("proc/self/task/{thread}/schedstat"))?;
            Some((thread, text.split_whitespace().nth(1)?.parse().ok()?))
        };
        let threads = root.names("proc/self/task").into_iter().filter_map(|name| name.parse().ok());
        Some(Self {
            pressure_us: root.text("proc/pressure/cpu").and_then(|text| pressure_us(&text)),
            waits_ns: threads.filter_map(waited).collect(),
            processors,
            clocks,
            ..times
        })
    }

    /// From then to now.
    #[must_use]
    pub fn since(then: Option<&Self>) -> Disturbance {
        let now = then.and_then(|then| Self::of(then.processors.clone()));
        then.zip(now).map_or_else(Disturbance::default, |(then, now)| then.until(&now))
    }

    fn parse(system: &str, own: &str, processors: &[u16]) -> Option<Self> {
        let lines = system.lines().filter(|line| counts(line, processors));
        let found: Vec<Times> = lines.map(Times::parse).collect::<Option<_>>()?;
        let of = |part: fn(&Times) -> f64| found.iter().map(part).sum::<f64>();
        let (busy, steal, idle) =
            (of(|times| times.busy), of(|times| times.steal), of(|times| times.idle));
        // The name may hold anything: fields are counted from the last parenthesis. utime, stime,
        // cutime and cstime are fields 14 to 17; the state is 3.
        let (_, fields) = own.rsplit_once(')')?;
        let times: Vec<f64> =
            fields.split_whitespace().skip(11).take(4).filter_map(|w| w.parse().ok()).collect();
        (!found.is_empty()).then_some(Self {
            busy,
            steal,
            all: busy + idle + steal,
            own: times.iter().sum(),
            at: Instant::now(),
            pressure_us: None,
            waits_ns: Vec::new(),
            processors: Vec::new(),
            clocks: Clocks::default(),
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
        let throttles = self.clocks.throttles.zip(end.clocks.throttles);
        let pressure = self.pressure_us.zip(end.pressure_us).map(|(then, now)| now - then);
        Disturbance {
            others: Some(others / all),
            steal: Some((end.steal - self.steal) / all),
            pressure: pressure.map(|us| share(us / 1e6, seconds)),
            waits: self.longest_wait_s(end).map(|waited| share(waited, seconds)),
            throttled: throttles.map(|(then, now)| now.saturating_sub(then)),
            clock: end.clocks.over_base,
        }
    }

    /// What the thread of ours that waited longest waited; a thread that is new had waited for nothing before.
    fn longest_wait_s(&self, end: &Self) -> Option<f64> {
        let before = |thread| self.waits_ns.iter().find(|(t, _)| *t == thread).map_or(0.0, |w| w.1);
        let waits = end.waits_ns.iter().map(|(thread, ns)| (ns - before(*thread)) / 1e9);
        waits.reduce(f64::max)
    }
}

/// What the processors did since the system started, in ticks.
struct Times {
    busy: f64,
    idle: f64,
    steal: f64,
}

impl Times {
    /// From a line of `/proc/stat`.
    fn parse(line: &str) -> Option<Self> {
        let numbers: Vec<f64> =
            line.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; guest time is in user already.
        let [user, nice, kernel, idle, wait, irq, soft, steal, ..] = numbers[..] else {
            return None;
        };
        Some(Self { busy: user + nice + kernel + irq + soft, idle: idle + wait, steal })
    }
}

/// Whether a line of `/proc/stat` is about processors that count: `cpu` is all of them, `cpu7` one.
fn counts(line: &str, processors: &[u16]) -> bool {
    let Some(which) = line.split_whitespace().next().and_then(|word| word.strip_prefix("cpu"))
    else {
        return false;
    };
    if processors.is_empty() {
        return which.is_empty();
    }
    which.parse().is_ok_and(|number: u16| processors.contains(&number))
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
        let all = |stat: &str, ticks| Meter::parse(stat, &own(ticks), &[]);
        let before = all("cpu  100 0 50 1000 10 0 0 5 0 0\ncpu0 9 9", 10).unwrap();
        let after = all("cpu  170 0 60 1110 10 0 0 15 0 0\ncpu0 9 9", 30).unwrap();
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
        assert_eq!(all("intr 5", 1), None);
        assert_eq!(all("cpu 1 2", 1), None, "too few figures");
    }

    #[test]
    fn of_some_cores_and_their_siblings_nobody_else_counts() {
        // Cores 0 and 4 of many: ours is 0, and 4 is busy with something else.
        let stat = |own: u32, sibling: u32| {
            format!(
                "cpu  9 0 0 9999 0 0 0 0 0 0\ncpu0 {own} 0 0 100 0 0 0 0 0 0\n\
                 cpu4 {sibling} 0 0 100 0 0 0 0 0 0\ncpu44 77777 0 0 0 0 0 0 0 0 0\nintr 1"
            )
        };
        let own = |ticks: u32| format!("7 (a) S 1 2 3 4 5 6 7 8 9 10 {ticks} 0 0 0 0 20 0");
        let at = |ours: u32, sibling| Meter::parse(&stat(ours, sibling), &own(ours), &[0, 4]);
        let found = at(0, 0).unwrap().until(&at(50, 50).unwrap());
        assert!((found.others.unwrap() - 0.5).abs() < 1e-12, "{found:?}");
        assert_eq!(Meter::parse("cpu 9 0 0 9 0 0 0 0 0 0", &own(1), &[0]), None);
    }

    #[test]
    fn a_clock_that_is_known_to_be_slow_is_no_quiet_machine() {
        let quiet = Disturbance { others: Some(0.0), steal: Some(0.0), ..Disturbance::default() };
        assert!(quiet.is_quiet() && !quiet.is_slow());
        assert!(Disturbance { throttled: Some(0), clock: Some(1.2), ..quiet }.is_quiet());
        assert!(!Disturbance { throttled: Some(1), ..quiet }.is_quiet());
        assert!(!Disturbance { clock: Some(0.6), ..quiet }.is_quiet());
        assert!(!Disturbance { clock: Some(1.2), ..Disturbance::default() }.is_quiet());
    }

    #[test]
    fn waits_and_pressure_are_shares_of_the_time() {
        let quiet = Meter::parse(
            "cpu  100 0 50 1000 10 0 0 5 0 0",
            "7 (a) S 1 2 3 4 5 6 7 8 9 10 1 1 1 1",
            &[],
        );
        let mut before = quiet.unwrap();
        before.clocks.throttles = Some(3);
        let text = "some avg10=1.0 avg60=0 avg300=0 total=500000\nfull avg10=0 total=9";
        before.pressure_us = pressure_us(text);
        before.waits_ns = vec![(7, 1e9), (8, 5e9)];
        let mut after = before.clone();
        after.clocks = Clocks { throttles: Some(5), over_base: Some(0.7) };
        after.all += 200.0;
        after.at += std::time::Duration::from_secs(2);
        after.pressure_us = Some(1_500_000.0);
        after.waits_ns = vec![(7, 1.1e9), (9, 0.5e9)];
        let found = before.until(&after);
        assert!((found.pressure.unwrap() - 0.5).abs() < 1e-9, "{found:?}");
        assert!((found.waits.unwrap() - 0.25).abs() < 1e-9, "the new thread waited most");
        assert_eq!((found.throttled, found.clock), (Some(2), Some(0.7)));
        assert_eq!(pressure_us("full total=3"), None);
    }

    #[test]
    fn this_system_can_be_read() {
        let begin = Meter::start();
        assert!(begin.is_some());
        assert!(
            Meter::since(begin.as_ref()).others.is_none_or(|share| (0.0..=1.0).contains(&share))
        );
        assert!(Meter::on(&[0]).is_some_and(|meter| meter.processors.contains(&0)));
    }
}
