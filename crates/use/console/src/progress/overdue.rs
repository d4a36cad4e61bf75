//! A run that is to end: when it is ended where it does not end by itself, and what is said then. It knows no clock.

use std::time::{Duration, Instant};

/// Time to end by oneself. With what it takes to notice that it is over, two seconds pass at most.
pub(super) const GRACE: Duration = Duration::from_millis(1700);

/// A run under way.
#[derive(Clone, Debug)]
pub(super) struct Overdue {
    /// What it is called: "isochrone-lab bench chase".
    pub(super) name: String,
    /// What it does now.
    pub(super) doing: String,
    /// When its time is over for good.
    pub(super) until: Option<Instant>,
}

impl Overdue {
    /// When the run is ended: after the wish, or after its time.
    pub(super) fn end(&self, wished: Option<Instant>) -> Option<Instant> {
        let wished = wished.map(|first| first + GRACE);
        wished.into_iter().chain(self.until).min()
    }

    /// What is said where it is.
    pub(super) fn words(&self, was_wished: bool) -> String {
        let Self { name, doing, .. } = self;
        let why = if was_wished { "stopped" } else { "its time is over" };
        let amid = if doing.is_empty() { String::new() } else { format!(" amid: {doing}") };
        format!("{name}: {why}{amid}; that does not end by itself, and what it had is not kept")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overdue(until: Option<Instant>) -> Overdue {
        Overdue { name: "isochrone-lab".to_owned(), doing: "block 1".to_owned(), until }
    }

    #[test]
    fn a_run_is_ended_after_the_wish_or_its_time_whichever_comes_first() {
        let now = Instant::now();
        let [soon, late] = [1, 100].map(|s| Some(now + Duration::from_secs(s)));
        assert_eq!(overdue(None).end(None), None);
        assert_eq!(overdue(late).end(None), late);
        assert_eq!(overdue(late).end(Some(now)), Some(now + GRACE));
        assert_eq!(overdue(None).end(Some(now)), Some(now + GRACE));
        assert_eq!(overdue(soon).end(Some(now)), soon);
    }

    #[test]
    fn it_says_what_was_under_way() {
        assert_eq!(
            overdue(None).words(true),
            "isochrone-lab: stopped amid: block 1; that does not end by itself, and what it had is not kept"
        );
        assert!(overdue(None).words(false).contains("its time is over amid: block 1"));
    }
}
