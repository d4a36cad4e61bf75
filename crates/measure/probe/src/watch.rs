//! How an experiment tells where it is and learns that it should stop.

use std::time::Duration;

/// Progress out, interruption in. The command line draws a bar from it; tests use [`Silent`].
pub trait Watch {
    /// A new step has begun, in a few words.
    fn step(&mut self, words: &str);

    /// False once the user wants the run to end; what was measured so far is kept.
    fn keep_going(&self) -> bool;

    /// Time until it will say so by itself; `None` where nothing is set.
    fn left(&self) -> Option<Duration> {
        None
    }
}

/// A share of the time that another watch has left: it wants an end when the rest begins.
pub struct Share<'a> {
    watch: &'a mut dyn Watch,
    /// What others are to have.
    rest: Option<Duration>,
}

impl<'a> Share<'a> {
    /// So much of the time that is left now, from 0 to 1.
    pub fn of(watch: &'a mut dyn Watch, share: f64) -> Self {
        let rest = watch.left().map(|left| left.mul_f64((1.0 - share).clamp(0.0, 1.0)));
        Self { watch, rest }
    }
}

impl std::fmt::Debug for Share<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Share").field("rest", &self.rest).finish_non_exhaustive()
    }
}

impl Watch for Share<'_> {
    fn step(&mut self, words: &str) {
        self.watch.step(words);
    }

    fn keep_going(&self) -> bool {
        self.watch.keep_going() && self.left() != Some(Duration::ZERO)
    }

    fn left(&self) -> Option<Duration> {
        let rest = self.rest.unwrap_or_default();
        self.watch.left().map(|left| left.saturating_sub(rest))
    }
}

/// Says nothing and never stops.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Watch for Silent {
    fn step(&mut self, _words: &str) {}

    fn keep_going(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A watch whose time is set by hand.
    struct Set<'c>(&'c Cell<Option<u64>>);

    impl Watch for Set<'_> {
        fn step(&mut self, _words: &str) {}

        fn keep_going(&self) -> bool {
            self.0.get() != Some(0)
        }

        fn left(&self) -> Option<Duration> {
            self.0.get().map(Duration::from_secs)
        }
    }

    #[test]
    fn who_has_a_share_ends_when_the_others_begin() {
        let left = Cell::new(Some(40));
        let mut all = Set(&left);
        let quarter = Share::of(&mut all, 0.25);
        assert_eq!(quarter.left(), Some(Duration::from_secs(10)));
        left.set(Some(31));
        assert!(quarter.keep_going());
        for over in [30, 5, 0] {
            left.set(Some(over));
            assert_eq!((quarter.keep_going(), quarter.left()), (false, Some(Duration::ZERO)));
        }
        left.set(None);
        let mut all = Set(&left);
        let half = Share::of(&mut all, 0.5);
        assert_eq!((half.keep_going(), half.left()), (true, None), "without a limit there is none");
    }
}
