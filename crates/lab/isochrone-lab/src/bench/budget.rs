//! How long a benchmark may take, and what was left out since its time was over.

use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;

use isochrone_console::progress::Interrupt;

/// Cells without a block that are named.
const NAMED: usize = 4;
/// Between two looks whether what is done apart is still wanted.
const LOOK: Duration = Duration::from_millis(50);
/// The stack of what is done apart: that of a program's first thread.
const STACK: usize = 8 << 20;
/// Why it has no outcome.
const ENDED: &str = "it was ended before its time";

/// When a benchmark ends before it has done all: its time is over, or the user has had enough.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    interrupt: Interrupt,
    until: Option<Instant>,
}

impl Stop {
    pub(crate) fn new(interrupt: Interrupt, until: Option<Instant>) -> Self {
        Self { interrupt, until }
    }

    /// Whether it is to end now.
    pub(crate) fn is_set(&self) -> bool {
        self.interrupt.is_set() || self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// Whether the user has had enough.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupt.is_set()
    }

    /// The time that is left; `None` where there is no end to it.
    pub(crate) fn left(&self) -> Option<Duration> {
        Some(self.until?.saturating_duration_since(Instant::now()))
    }

    /// Does what looks at no wish and no time, on a thread of its own. Where this is set before it is done, that is an
    /// error, and nobody waits any more: what is under way ends with the program.
    pub(crate) fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        ensure!(!self.is_set(), ENDED);
        let (tell, hear) = channel();
        let thread = thread::Builder::new().stack_size(STACK);
        // Nobody hears what comes too late.
        thread.spawn(move || drop(tell.send(work()))).context("no thread can be started")?;
        loop {
            match hear.recv_timeout(LOOK) {
                Ok(done) => return done,
                Err(RecvTimeoutError::Disconnected) => bail!("it panicked"),
                Err(RecvTimeoutError::Timeout) => ensure!(!self.is_set(), ENDED),
            }
        }
    }

    /// The same without an end but the user's wish.
    pub(crate) fn endless(&self) -> Self {
        Self { interrupt: self.interrupt.clone(), until: None }
    }

    /// The same that ends after a part of what is left.
    pub(crate) fn part(&self, part: f64) -> Self {
        let until = self.left().map(|left| Instant::now() + left.mul_f64(part));
        Self { interrupt: self.interrupt.clone(), until }
    }
}

/// Something that was asked for and not done, or not as often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LeftOut {
    /// What it is.
    pub(crate) what: String,
    /// How many it has.
    pub(crate) done: u32,
    /// How many were asked for.
    pub(crate) wanted: u32,
    /// Of what.
    pub(crate) of: &'static str,
}

/// What was left out, in one line; `None` where nothing was.
pub(crate) fn words(left_out: &[LeftOut], budget_s: Option<f64>) -> Option<String> {
    let (none, some): (Vec<&LeftOut>, Vec<&LeftOut>) =
        left_out.iter().partition(|left| left.done == 0);
    if left_out.is_empty() {
        return None;
    }
    // As many as were asked for, with the fewest and the most that there are.
    let mut alike: BTreeMap<(&str, u32), Vec<&LeftOut>> = BTreeMap::new();
    some.iter().for_each(|left| alike.entry((left.of, left.wanted)).or_default().push(left));
    let mut parts: Vec<String> = Vec::new();
    for ((of, wanted), all) in alike {
        let least = all.iter().map(|left| left.done).min().unwrap_or(0);
        let most = all.iter().map(|left| left.done).max().unwrap_or(0);
        let who = if all.len() == 1 { all[0].what.clone() } else { format!("{} cells", all.len()) };
        let has = if all.len() == 1 { "has" } else { "have" };
        let many = if least == most { format!("{least}") } else { format!("{least} to {most}") };
        parts.push(format!("{who} {has} {many} of {wanted} {of}"));
    }
    if !none.is_empty() {
        let names: Vec<&str> = none.iter().take(NAMED).map(|left| left.what.as_str()).collect();
        let more = none.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        parts.push(format!("nothing of {}{more}", names.join(", ")));
    }
    let time = budget_s.map_or_else(String::new, |seconds| format!("in {seconds:.0} s "));
    Some(format!("left out: {time}{}; more with --budget TIME", parts.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(what: &str, done: u32, wanted: u32) -> LeftOut {
        LeftOut { what: what.to_owned(), done, wanted, of: "blocks" }
    }

    #[test]
    fn what_was_left_out_is_one_line() {
        assert_eq!(words(&[], Some(60.0)), None);
        let one = words(&[left("jacobi", 3, 5)], Some(60.0)).unwrap();
        assert_eq!(one, "left out: in 60 s jacobi has 3 of 5 blocks; more with --budget TIME");
        let mut all = vec![left("1 MiB", 4, 15), left("2 MiB", 3, 15)];
        all.extend((0..6).map(|n| left(&format!("{n} GiB"), 0, 15)));
        let words = words(&all, None).unwrap();
        assert_eq!(
            words,
            "left out: 2 cells have 3 to 4 of 15 blocks; nothing of 0 GiB, 1 GiB, 2 GiB, 3 GiB and 2 more; \
             more with --budget TIME"
        );
    }

    #[test]
    fn what_is_done_apart_is_waited_for_until_the_time_is_over() {
        let hour = Duration::from_secs(3600);
        let stop = |after| Stop::new(Interrupt::install(), Some(Instant::now() + after));
        assert_eq!(stop(hour).apart(|| Ok(7)).unwrap(), 7);
        let failed = stop(hour).apart(|| -> Result<()> { bail!("no memory") });
        assert_eq!(failed.unwrap_err().to_string(), "no memory");
        // It would never end by itself: somebody keeps the other end of its channel.
        let (keep, wait) = channel::<()>();
        let ended = stop(LOOK).apart(move || Ok(wait.recv().is_ok()));
        assert_eq!(ended.unwrap_err().to_string(), ENDED);
        drop(keep);
        let never = stop(Duration::ZERO).apart(|| -> Result<()> { unreachable!("it is over") });
        assert_eq!(never.unwrap_err().to_string(), ENDED);
    }

    #[test]
    fn a_part_of_the_time_ends_before_it() {
        let stop =
            Stop::new(Interrupt::install(), Some(Instant::now() + Duration::from_secs(3600)));
        assert!(!stop.is_set());
        let part = stop.part(0.5).left().unwrap();
        assert!(part <= Duration::from_secs(1800) && part > Duration::from_secs(1700), "{part:?}");
        let over = Stop::new(Interrupt::install(), Some(Instant::now()));
        assert!(over.is_set() && !over.is_interrupted());
        let endless = Stop::new(Interrupt::install(), None);
        assert!(!endless.is_set() && endless.part(0.1).left().is_none());
    }
}
