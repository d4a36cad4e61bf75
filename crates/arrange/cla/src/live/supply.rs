//! Hands out the lines of an area, the same to every rank.

use super::error::TeamError;
use super::layout::CANDIDATES;
use crate::collectives::Plan;
use std::ops::Range;

/// The lines of an area: single lines from the front, from the best
/// to the worst, runs that lie together from the rest. Lines have their numbers in the memory.
#[derive(Debug)]
pub(super) struct Supply {
    /// Lines for flags, the best one last.
    all_flags: Vec<usize>,
    /// Those of them that are left: so many, from the first on.
    flags: usize,
    /// What is not for flags alone: of the area itself, and what was taken beside it.
    runs: Vec<Range<usize>>,
    /// In which of them it is.
    run: usize,
    /// The first line there that nobody has.
    next: usize,
}

/// How far a supply is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    flags: usize,
    run: usize,
    next: usize,
}

impl Supply {
    /// Lines at the front that flags may lie on. Only one of two neighbours is used: a core that
    /// fetches a line may fetch its neighbour too, and take it from whoever writes there.
    pub(super) const FLAGS: usize = 2 * CANDIDATES;

    /// All lines of an area, flags in the order `best` (numbers of pairs of lines), or as they lie.
    pub(super) fn new(lines: Range<usize>, best: Option<&[u32]>) -> Self {
        let pairs = Self::pairs(lines.len());
        let flag = |pair: usize| Self::flag(&lines, pair);
        let mut flags: Vec<usize> = match best {
            Some(best) => best.iter().map(|&pair| flag(pair as usize)).collect(),
            None => (0..pairs).map(flag).collect(),
        };
        flags.reverse();
        let next = flag(pairs);
        let runs = std::iter::once(next..lines.end).collect();
        Self { flags: flags.len(), all_flags: flags, runs, run: 0, next }
    }

    /// The line of a pair on which a flag may lie.
    pub(super) const fn flag(lines: &Range<usize>, pair: usize) -> usize {
        lines.start + 2 * pair
    }

    /// Hands out all lines again, in the same order.
    pub(super) fn begin_again(&mut self) {
        self.flags = self.all_flags.len();
        (self.run, self.next) = (0, self.runs[0].start);
    }

    /// What is left, for [`Self::as_before`].
    pub(super) const fn left(&self) -> Left {
        Left { flags: self.flags, run: self.run, next: self.next }
    }

    /// Has what was left before again: what was taken since was not used.
    pub(super) const fn as_before(&mut self, left: Left) {
        Left { flags: self.flags, run: self.run, next: self.next } = left;
    }

    /// What was handed out of lines that are not for flags alone, in their order.
    pub(super) fn used_runs(&self) -> impl Iterator<Item = Range<usize>> {
        let used = |(number, run): (usize, &Range<usize>)| {
            if number == self.run { run.start..self.next } else { run.clone() }
        };
        self.runs.iter().enumerate().take(self.run + 1).map(used)
    }

    /// How many flags were handed out, and how far it is: in which run of lines, and how many of it are used.
    pub(super) fn used(&self) -> (usize, usize, usize) {
        let into = self.next - self.runs[self.run].start;
        (self.all_flags.len() - self.flags, self.run, into)
    }

    /// Has handed out as much as another rank: what that [used](Self::used).
    pub(super) fn has_used(&mut self, flags: usize, run: usize, into: usize) {
        let run = run.min(self.runs.len() - 1);
        self.flags = self.all_flags.len().saturating_sub(flags);
        let lines = &self.runs[run];
        (self.run, self.next) = (run, lines.end.min(lines.start + into));
    }

    /// The flags that are handed out first.
    pub(super) fn first_flags(&self, count: usize) -> impl Iterator<Item = usize> {
        self.all_flags.iter().rev().take(count).copied()
    }

    /// All lines but those for flags alone, whoever has them.
    pub(super) fn lines(&self) -> usize {
        self.runs.iter().map(ExactSizeIterator::len).sum()
    }

    /// Runs of lines beside the area.
    pub(super) fn more(&self) -> usize {
        self.runs.len() - 1
    }

    /// Has more lines beside the area.
    pub(super) fn extend(&mut self, run: Range<usize>) {
        self.runs.push(run);
    }

    /// Whether a plan's lines fit if nobody has any. If not, why.
    pub(super) fn holds(&self, plan: &Plan) -> Result<(), TeamError> {
        let needs = Needed::of(plan);
        let most = self.runs.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
        needs.fits(self.all_flags.len(), most)
    }

    /// Pairs of lines that flags may lie on, in an area of `lines` lines.
    pub(super) const fn pairs(lines: usize) -> usize {
        let most = lines / 4;
        if most < Self::FLAGS / 2 { most } else { Self::FLAGS / 2 }
    }

    /// Lines for all of a plan's, by their numbers there: of this run, or of one that comes after it.
    pub(super) fn take(&mut self, plan: &Plan) -> Result<Vec<usize>, TeamError> {
        let needs = Needed::of(plan);
        let mut fits = needs.fits(self.flags, self.runs[self.run].end - self.next);
        for run in self.run + 1..self.runs.len() {
            if fits.is_ok() {
                break;
            }
            fits = needs.fits(self.flags, self.runs[run].len());
            if fits.is_ok() {
                (self.run, self.next) = (run, self.runs[run].start);
            }
        }
        fits?;
        let mut runs = needs.runs.into_iter().peekable();
        let mut lines = Vec::with_capacity(needs.lines);
        while lines.len() < needs.lines {
            match runs.peek() {
                Some(&(first, count)) if first as usize == lines.len() => {
                    lines.extend(self.next..self.next + count as usize);
                    self.next += count as usize;
                    runs.next();
                }
                _ => lines.push(self.single()),
            }
        }
        Ok(lines)
    }

    /// The best line for a flag that is left; one of the rest, if none is.
    fn single(&mut self) -> usize {
        if let Some(left) = self.flags.checked_sub(1) {
            self.flags = left;
            return self.all_flags[left];
        }
        self.next += 1;
        self.next - 1
    }
}

/// What a plan needs of a supply.
struct Needed {
    runs: Vec<(u32, u32)>,
    lines: usize,
}

impl Needed {
    fn of(plan: &Plan) -> Self {
        Self { runs: plan.runs(), lines: plan.lines() as usize }
    }

    /// Whether it fits with so many flags and so many other lines. If not, why.
    fn fits(&self, flags: usize, left: usize) -> Result<(), TeamError> {
        let in_runs: usize = self.runs.iter().map(|&(_, count)| count as usize).sum();
        let wanted = in_runs + (self.lines - in_runs).saturating_sub(flags);
        if wanted > left { Err(TeamError::Full { wanted, left }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::{Collective, Options, Tree};
    use crate::program::Rank;

    fn plan(bytes: u32) -> Plan {
        let options = Options::tree(Tree::flat(3, Rank(0)), bytes);
        Plan::new(Collective::Broadcast, 3, Rank(0), bytes, options).expect("fits")
    }

    #[test]
    fn no_line_is_handed_out_twice_and_runs_lie_together() {
        let mut supply = Supply::new(0..4096, None);
        let mut seen = std::collections::HashSet::new();
        let plans = [plan(8), plan(1000), plan(8), plan(200)];
        for plan in &plans {
            let lines = supply.take(plan).expect("room");
            assert_eq!(lines.len(), plan.lines() as usize);
            assert!(lines.iter().all(|&line| line < 4096 && seen.insert(line)));
            for (first, count) in plan.runs() {
                let run = &lines[first as usize..][..count as usize];
                assert!(run.windows(2).all(|two| two[1] == two[0] + 1));
            }
        }
        while supply.take(&plans[1]).is_ok() {}
        assert!(matches!(supply.take(&plans[1]), Err(TeamError::Full { .. })));
        let (_, _, into) = supply.used();
        let used = supply.runs[0].start + into;
        assert!(used <= 4096 && seen.iter().all(|&line| line < used));
        assert_eq!(supply.holds(&plans[1]), Ok(()));
        supply.begin_again();
        assert_eq!(supply.take(&plans[0]), Supply::new(0..4096, None).take(&plans[0]));
    }

    #[test]
    fn lines_beside_the_area_come_after_its_own_and_are_there_again() {
        let long = plan(1000);
        let few = long.lines() as usize * 2;
        let mut supply = Supply::new(100..100 + few, None);
        let begin = supply.left();
        let own = supply.take(&long).expect("room");
        assert!(matches!(supply.take(&long), Err(TeamError::Full { .. })));
        supply.extend(5000..5001);
        supply.extend(9000..9000 + few);
        let beside = supply.take(&long).expect("room in the second");
        let runs: Vec<_> = long.runs();
        assert!(runs.iter().all(|&(first, _)| beside[first as usize] >= 9000), "{beside:?}");
        assert_eq!((supply.more(), supply.used().1), (2, 2));
        let used: Vec<_> = supply.used_runs().collect();
        assert_eq!((used.len(), &used[1]), (3, &(5000..5001)));
        supply.as_before(begin);
        assert_eq!(supply.take(&long), Ok(own));
        assert_eq!(supply.take(&long), Ok(beside), "what was taken beside the area stays");
    }

    #[test]
    fn the_best_lines_go_first() {
        let mut supply = Supply::new(0..4096, Some(&[7, 3, 0]));
        let lines = supply.take(&plan(8)).expect("room");
        assert_eq!(lines[..4], [14, 6, 0, 2048], "then lines of the rest");
        assert_eq!(supply.first_flags(2).collect::<Vec<_>>(), [14, 6]);
    }
}
