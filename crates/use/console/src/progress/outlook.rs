//! How much of a run is done and how long the rest takes, by estimates that are corrected by what was seen. It reads no
//! clock.

use std::fmt;

/// Estimates that are off by more than this are as little worth as those that are off by so much.
const CORRECTED_MOST: f64 = 8.0;
/// What a part that takes longer than was estimated still takes, as a share of what it has taken.
const OVERDUE: f64 = 0.1;

/// Parts of a run, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Outlook {
    /// Seconds that each is estimated to take.
    parts_s: Vec<f64>,
    /// The part that is under way.
    at: usize,
    /// When it began, seconds into the run.
    since_s: f64,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// From 0 to 1.
    pub share: f64,
    /// Seconds that the rest takes.
    pub left_s: f64,
}

impl Outlook {
    /// A run of these parts, of which the first is under way.
    pub fn new(parts_s: Vec<f64>) -> Self {
        Self { parts_s, at: 0, since_s: 0.0 }
    }

    /// The next part begins, so many seconds into the run.
    pub fn next_part(&mut self, now_s: f64) {
        self.at = (self.at + 1).min(self.parts_s.len());
        self.since_s = now_s;
    }

    /// How far the run is after so many seconds; `None` where nothing was estimated.
    pub fn at(&self, now_s: f64) -> Option<Seen> {
        let (done, rest) = self.parts_s.split_at_checked(self.at)?;
        let (current, behind) = match rest {
            [current, behind @ ..] => (*current, behind),
            [] => (0.0, rest),
        };
        let all: f64 = self.parts_s.iter().sum();
        if all <= 0.0 {
            return None;
        }
        let taken = (now_s - self.since_s).max(0.0);
        let estimated: f64 = done.iter().sum();
        // Before anything has ended nothing is known of the estimates.
        let factor = if estimated > 0.0 { self.since_s / estimated } else { 1.0 };
        let factor = factor.clamp(1.0 / CORRECTED_MOST, CORRECTED_MOST);
        let overdue = if rest.is_empty() { 0.0 } else { OVERDUE * taken };
        let behind: f64 = behind.iter().sum();
        let left_s = (current * factor - taken).max(overdue) + factor * behind;
        let share = if now_s + left_s > 0.0 { now_s / (now_s + left_s) } else { 0.0 };
        Some(Seen { share, left_s })
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:2.0} %, about {:.0} s left", 100.0 * self.share, self.left_s.ceil())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(outlook: &Outlook, now_s: f64) -> (f64, f64) {
        let seen = outlook.at(now_s).unwrap();
        (seen.share, seen.left_s)
    }

    #[test]
    fn estimates_are_corrected_by_what_parts_took() {
        let mut outlook = Outlook::new(vec![10.0, 10.0, 20.0]);
        assert_eq!(seen(&outlook, 0.0), (0.0, 40.0));
        assert_eq!(seen(&outlook, 10.0).1, 31.0, "the part is not over yet");
        outlook.next_part(20.0);
        assert_eq!(seen(&outlook, 20.0), (0.25, 60.0), "it took twice as long");
        outlook.next_part(30.0);
        assert_eq!(seen(&outlook, 30.0), (0.5, 30.0));
        outlook.next_part(60.0);
        assert_eq!(seen(&outlook, 60.0), (1.0, 0.0));
        outlook.next_part(61.0);
        assert_eq!(seen(&outlook, 70.0), (1.0, 0.0), "nothing comes behind the last part");
    }

    #[test]
    fn a_part_that_takes_longer_never_ends_at_once() {
        let outlook = Outlook::new(vec![10.0]);
        let (share, left_s) = seen(&outlook, 100.0);
        assert!(share < 1.0 && left_s > 5.0);
        let words = outlook.at(5.0).unwrap().to_string();
        assert_eq!(words, "50 %, about 5 s left");
    }

    #[test]
    fn without_estimates_nothing_is_said() {
        assert_eq!(Outlook::default().at(3.0), None);
        assert_eq!(Outlook::new(vec![0.0]).at(3.0), None);
    }
}
