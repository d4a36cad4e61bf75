//! What each core of a group did in a run, piece by piece, and what the group moved a second. Pure.
//!
//! A core that is taken away moves nothing for a millisecond or more, which shows as one long piece. What the others
//! of the group move meanwhile is not what they move beside it, so that time does not count.

use isochrone_stats::median;

/// A piece that takes this many times the middle one of its core ...
const LONG: f64 = 2.0;
/// ... and so many seconds more was interrupted: somebody who is given the core keeps it for about a millisecond
/// or more.
const LONGER_S: f64 = 300e-6;
/// Seconds of each core's pieces in which the whole group ran, at least, for a run to have a value.
const TOGETHER_S: f64 = 1e-3;

/// What one core did in a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Track {
    /// When it began, seconds on the target's clock.
    pub start_s: f64,
    /// One after another, without a gap.
    pub pieces: Vec<Piece>,
}

/// A part of the work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// When it was done, seconds.
    pub end_s: f64,
    /// Bytes moved, by the stated count.
    pub bytes: u64,
}

/// A time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Span {
    from_s: f64,
    to_s: f64,
}

impl Span {
    fn seconds(self) -> f64 {
        self.to_s - self.from_s
    }
}

impl Track {
    fn end_s(&self) -> f64 {
        self.pieces.last().map_or(self.start_s, |piece| piece.end_s)
    }

    fn bytes(&self) -> f64 {
        self.pieces.iter().map(|piece| real(piece.bytes)).sum()
    }

    /// Each piece with the time that it took.
    fn spans(&self) -> impl Iterator<Item = (Piece, Span)> {
        let starts = [self.start_s].into_iter().chain(self.pieces.iter().map(|piece| piece.end_s));
        let span = |(piece, from_s): (&Piece, f64)| (*piece, Span { from_s, to_s: piece.end_s });
        self.pieces.iter().zip(starts).map(span)
    }

    /// The pieces during which somebody else had the core.
    fn interruptions(&self) -> Vec<Span> {
        let durations: Vec<f64> = self.spans().map(|(_, span)| span.seconds()).collect();
        let Some(usual) = median(&durations) else { return Vec::new() };
        let long = (LONG * usual).max(usual + LONGER_S);
        self.spans().map(|(_, span)| span).filter(|span| span.seconds() > long).collect()
    }

    /// Bytes a second in these times, which follow one another: of the pieces that lie in one of them whole, since one
    /// that began before moved as fast as it could beside fewer. `None` if these took less than a millisecond.
    fn pace_in(&self, times: &[Span]) -> Option<f64> {
        let mut first = 0;
        let (mut bytes, mut seconds) = (0.0, 0.0);
        for (piece, span) in self.spans() {
            while times.get(first).is_some_and(|time| time.to_s < span.to_s) {
                first += 1;
            }
            if times.get(first).is_some_and(|time| time.from_s <= span.from_s) {
                bytes += real(piece.bytes);
                seconds += span.seconds();
            }
        }
        (seconds >= TOGETHER_S).then(|| bytes / seconds)
    }
}

/// 10^9 bytes a second of the cores of a run together.
///
/// Where nobody was interrupted: all bytes, from the first start to the last end. Where somebody was: the same, of
/// cores that go on as fast as each did while all of them ran. `None` if one did so for less than a millisecond.
#[must_use]
pub fn gb_per_s(tracks: &[Track]) -> Option<f64> {
    let starts = || tracks.iter().map(|track| track.start_s);
    let ends = || tracks.iter().map(Track::end_s);
    let bytes: f64 = tracks.iter().map(Track::bytes).sum();
    let interrupted: Vec<Span> = tracks.iter().flat_map(Track::interruptions).collect();
    let seconds = if interrupted.is_empty() {
        ends().reduce(f64::max)? - starts().reduce(f64::min)?
    } else {
        let all = Span { from_s: starts().reduce(f64::max)?, to_s: ends().reduce(f64::min)? };
        let together = without(all, interrupted);
        let seconds = |track: &Track| Some(track.bytes() / track.pace_in(&together)?);
        let each: Vec<f64> = tracks.iter().map(seconds).collect::<Option<_>>()?;
        each.into_iter().reduce(f64::max)?
    };
    let found = bytes / seconds / 1e9;
    (found.is_finite() && found > 0.0).then_some(found)
}

/// What is left of a time without others, in order.
fn without(all: Span, mut others: Vec<Span>) -> Vec<Span> {
    others.sort_by(|a, b| a.from_s.total_cmp(&b.from_s));
    let mut left = Vec::new();
    let mut from_s = all.from_s;
    for other in others {
        left.push(Span { from_s, to_s: other.from_s.min(all.to_s) });
        from_s = from_s.max(other.to_s);
    }
    left.push(Span { from_s, to_s: all.to_s });
    left.retain(|span| span.seconds() > 0.0);
    left
}

/// Bytes of one run as a number.
#[allow(clippy::cast_precision_loss, reason = "counts of one run are far below 2^53")]
fn real(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A core that moves 1000 bytes in each of these times, microseconds.
    fn track(start_us: f64, pieces_us: &[f64]) -> Track {
        let ends = pieces_us.iter().scan(start_us, |end, us| {
            *end += us;
            Some(Piece { end_s: *end / 1e6, bytes: 1000 })
        });
        Track { start_s: start_us / 1e6, pieces: ends.collect() }
    }

    fn close(found: Option<f64>, expected: f64) -> bool {
        found.is_some_and(|found| (found / expected - 1.0).abs() < 1e-9)
    }

    #[test]
    fn a_run_that_nobody_interrupts_is_told_from_first_start_to_last_end() {
        let late = [track(0.0, &[10.0; 10]), track(50.0, &[10.0; 10])];
        assert!(close(gb_per_s(&late), 20_000.0 / 150e-6 / 1e9));
        assert_eq!(gb_per_s(&[]), None);
        assert_eq!(gb_per_s(&[Track::default()]), None, "nothing was moved");
    }

    #[test]
    fn the_time_in_which_a_core_was_taken_away_does_not_count() {
        let mut held = [10.0; 1000];
        held[500] = 4000.0;
        assert!(close(gb_per_s(&[track(0.0, &held)]), 1000.0 / 10e-6 / 1e9));
        // The other one is twice as fast meanwhile.
        let other: Vec<f64> = [vec![10.0; 500], vec![5.0; 800], vec![10.0; 500]].concat();
        let found = gb_per_s(&[track(0.0, &held), track(0.0, &other)]);
        // 1800 pieces at the pace of both, of which the longer work decides.
        assert!(close(found, 2_800_000.0 / (1800.0 * 10e-6) / 1e9), "{found:?}");
    }

    #[test]
    fn a_run_in_which_the_group_hardly_ran_together_has_no_value() {
        let mut held = [10.0; 60];
        held[30] = 4000.0;
        assert_eq!(gb_per_s(&[track(0.0, &held)]), None, "0.59 ms are left");
    }

    #[test]
    fn a_piece_that_is_only_a_little_long_is_none() {
        let mut slow = [200.0; 100];
        slow[7] = 390.0;
        assert!(track(0.0, &slow).interruptions().is_empty(), "less than twice as long");
        slow[7] = 450.0;
        assert!(track(0.0, &slow).interruptions().is_empty(), "less than 300 us more");
        slow[7] = 1200.0;
        assert_eq!(track(0.0, &slow).interruptions().len(), 1);
    }
}
