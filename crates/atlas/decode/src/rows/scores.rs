//! How far the codes of a page are behind, sample by sample: all of them, or the few that are left.

use super::verdict::{Tally, Verdict};
use super::{GROUP, GROUPS, Group, NEVER, RUN, Rows, units_i16};

/// Samples after which scores are counted anew from the best: so many, at a cell's most, leave what is no answer
/// behind what is.
const SPAN: u8 = 60;
/// A code this far behind does not come back, nats. Where more codes are left than a list holds the least
/// likely are given up sooner, down to odds of e^-10.
const LEFT_BEHIND: [f32; 4] = [16.0, 14.0, 12.0, 10.0];
/// Codes of a shortlist, at most: a sample then costs a few loads.
pub const LISTED: usize = 64;

/// How far every code of one page is behind, sample by sample: with memory of its own.
#[derive(Clone, Debug)]
pub struct Scores {
    behind: [Group<i16>; GROUPS],
    state: ScoreState,
    groups: usize,
}

/// What is known of the scores of a page besides the scores.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScoreState {
    /// Bit by group: it is still looked at.
    alive: u32,
    /// Samples since scores were last counted from the best.
    since: u8,
    /// Units in a nat.
    a_nat: f32,
}

/// The same over memory of the caller, a group of 64 codes each.
#[derive(Debug)]
pub struct ScoresMut<'s> {
    behind: &'s mut [Group<i16>],
    state: &'s mut ScoreState,
}

impl Scores {
    /// Nothing but the prior.
    #[must_use]
    pub fn new(rows: &Rows<'_>) -> Self {
        let mut scores = Self {
            behind: rows.head.prior,
            state: ScoreState::default(),
            groups: rows.head.groups,
        };
        scores.view().begin(rows);
        scores
    }

    /// To add samples to, and to ask.
    pub fn view(&mut self) -> ScoresMut<'_> {
        let groups = self.groups.min(GROUPS);
        ScoresMut { behind: &mut self.behind[..groups], state: &mut self.state }
    }
}

impl<'s> ScoresMut<'s> {
    /// Over one page's groups, [`super::RowHead::groups`] of them.
    #[must_use]
    pub const fn over(behind: &'s mut [Group<i16>], state: &'s mut ScoreState) -> Self {
        Self { behind, state }
    }

    /// Forgets all samples: nothing but the prior is left.
    pub fn begin(&mut self, rows: &Rows<'_>) {
        for (behind, prior) in self.behind.iter_mut().zip(&rows.head.prior) {
            *behind = *prior;
        }
        let groups = rows.head.groups.clamp(1, GROUPS);
        let alive = u32::MAX >> (32 - groups);
        *self.state = ScoreState { alive, since: 0, a_nat: rows.head.a_nat };
    }

    /// Adds one timed load: `line` is the line's number modulo 256, `cycles` its latency with the
    /// timer's own cost and the common offset taken off. `rows` may be those of another core than
    /// before, if its book has the same answers.
    pub fn add(&mut self, rows: &Rows<'_>, line: u8, cycles: f32) {
        let Some((row, rest)) = rows.row(line, cycles) else { return };
        if self.state.since == SPAN {
            self.rebase(rows);
        }
        self.state.since += 1;
        let runs = row.as_chunks::<RUN>().0.as_chunks::<{ GROUP / RUN }>().0;
        // With a period of 256 lines a group is a quarter of the keys, and lines reach across.
        let (across, within) = (rest / GROUP, rest % GROUP / RUN);
        for (group, behind) in self.behind.iter_mut().enumerate() {
            if self.state.alive >> group & 1 == 0 {
                continue;
            }
            if let Some(cells) = runs.get(group ^ across) {
                add_group(behind, cells, within);
            }
        }
    }

    /// Leaves classes out that have fallen far behind, so that the next samples cost less.
    pub fn prune(&mut self) {
        let (least, best) = self.least();
        let limit = best.saturating_add(units_i16(LEFT_BEHIND[0] * self.state.a_nat));
        for (group, least) in least.iter().enumerate() {
            self.state.alive &= !(u32::from(*least > limit) << group);
        }
    }

    /// Counts on from the best, so that no number of samples overflows or makes an answer of what is none.
    #[cold]
    fn rebase(&mut self, rows: &Rows<'_>) {
        self.state.since = 0;
        let (_, best) = self.least();
        let all = self.behind.as_flattened_mut().as_flattened_mut();
        for (behind, prior) in all.iter_mut().zip(rows.head.prior.as_flattened().as_flattened()) {
            *behind = if *prior == NEVER { NEVER } else { behind.saturating_sub(best) };
        }
    }

    /// For each group the score of its best code, and that of the best of all.
    fn least(&self) -> ([i16; GROUPS], i16) {
        let mut least = [NEVER; GROUPS];
        for (group, (least, behind)) in least.iter_mut().zip(&*self.behind).enumerate() {
            if self.state.alive >> group & 1 == 1 {
                *least = least_of(behind);
            }
        }
        (least, least.iter().copied().fold(NEVER, i16::min))
    }

    /// Goes through all codes that are no further behind than `limit`.
    fn within(&self, least: &[i16; GROUPS], limit: i16, mut take: impl FnMut(u16, i16)) {
        for (group, (least, runs)) in least.iter().zip(&*self.behind).enumerate() {
            if *least > limit {
                continue;
            }
            for (run, behind) in runs.iter().enumerate() {
                if count_within(behind, limit) == 0 {
                    continue;
                }
                let first = u16::try_from(group * GROUP + run * RUN).unwrap_or(0);
                for (code, behind) in (first..).zip(behind) {
                    if *behind <= limit {
                        take(code, *behind);
                    }
                }
            }
        }
    }

    /// How many codes are no further behind than `limit`.
    fn count(&self, least: &[i16; GROUPS], limit: i16) -> usize {
        let groups = least.iter().zip(&*self.behind).filter(|(least, _)| **least <= limit);
        let counts = groups.map(|(_, runs)| {
            let mut lanes = [0_u16; RUN];
            for run in runs {
                for place in 0..RUN {
                    lanes[place] += u16::from(run[place] <= limit);
                }
            }
            lanes.iter().sum::<u16>()
        });
        counts.map(usize::from).sum()
    }

    /// Lists the codes that are left, if they are few: as many as a list holds of those that may come back.
    /// False, and the list is as it was, where they are not.
    pub fn shorten(&self, list: &mut ShortlistMut<'_>) -> bool {
        let (least, best) = self.least();
        let limit = LEFT_BEHIND.into_iter().find_map(|nats| {
            let limit = best.saturating_add(units_i16(nats * self.state.a_nat)).min(NEVER - 1);
            (1..=LISTED).contains(&self.count(&least, limit)).then_some(limit)
        });
        let Some(limit) = limit else { return false };
        *list.count = 0;
        self.within(&least, limit, |code, behind| {
            if let Some(place) = list.codes.get_mut(*list.count) {
                (*place, list.behind[*list.count]) = (code, behind);
                *list.count += 1;
            }
        });
        true
    }

    /// What the samples say so far.
    #[must_use]
    pub fn verdict(&self, rows: &Rows<'_>) -> Verdict {
        let (least, best) = self.least();
        let mut tally = Tally::new(rows, best);
        let limit = tally.limit().min(NEVER - 1);
        self.within(&least, limit, |code, behind| tally.take(code, behind));
        tally.end()
    }
}

/// Adds the cells of a group, its runs XORed with `within`.
#[inline]
fn add_group(behind: &mut Group<i16>, cells: &Group<u8>, within: usize) {
    for (run, behind) in behind.iter_mut().enumerate() {
        let cells = &cells[(run ^ within) % (GROUP / RUN)];
        for place in 0..RUN {
            behind[place] = behind[place].saturating_add(i16::from(cells[place]));
        }
    }
}

#[inline]
fn least_of(behind: &Group<i16>) -> i16 {
    let mut least = [NEVER; RUN];
    for run in behind {
        for place in 0..RUN {
            least[place] = least[place].min(run[place]);
        }
    }
    least.iter().copied().fold(NEVER, i16::min)
}

#[inline]
fn count_within(run: &[i16; RUN], limit: i16) -> u16 {
    run.iter().map(|behind| u16::from(*behind <= limit)).sum()
}

/// The codes of a page that are left, ascending, and how far behind each is: with memory of its own.
#[derive(Clone, Copy, Debug)]
pub struct Shortlist {
    codes: [u16; LISTED],
    behind: [i16; LISTED],
    count: usize,
}

/// The same over memory of the caller.
#[derive(Debug)]
pub struct ShortlistMut<'s> {
    codes: &'s mut [u16; LISTED],
    behind: &'s mut [i16; LISTED],
    count: &'s mut usize,
}

impl Shortlist {
    /// Of no page.
    pub const EMPTY: Self = Self { codes: [0; LISTED], behind: [NEVER; LISTED], count: 0 };

    /// Whether nothing was listed yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// To add samples to, and to ask.
    pub const fn view(&mut self) -> ShortlistMut<'_> {
        let Self { codes, behind, count } = self;
        ShortlistMut { codes, behind, count }
    }
}

impl<'s> ShortlistMut<'s> {
    /// Over one page's list, `count` of it used.
    #[must_use]
    pub const fn over(
        codes: &'s mut [u16; LISTED],
        behind: &'s mut [i16; LISTED],
        count: &'s mut usize,
    ) -> Self {
        Self { codes, behind, count }
    }

    /// Whether nothing was listed yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        *self.count == 0
    }

    /// As [`ScoresMut::add`], for the codes that are left.
    pub fn add(&mut self, rows: &Rows<'_>, line: u8, cycles: f32) {
        let Some((row, rest)) = rows.row(line, cycles) else { return };
        for (code, behind) in self.codes.iter().zip(&mut *self.behind).take(*self.count) {
            let cell = row.get(usize::from(*code) ^ rest).copied().unwrap_or(u8::MAX);
            *behind = behind.saturating_add(i16::from(cell));
        }
    }

    /// What the samples say so far. Drops what has fallen far behind.
    pub fn verdict(&mut self, rows: &Rows<'_>) -> Verdict {
        let listed = (*self.count).min(LISTED);
        let best = self.behind[..listed].iter().copied().fold(NEVER, i16::min);
        let limit = best.saturating_add(rows.units(LEFT_BEHIND[0]));
        let mut tally = Tally::new(rows, best);
        let mut left = 0;
        for place in 0..listed {
            let (code, behind) = (self.codes[place], self.behind[place]);
            if behind <= limit {
                tally.take(code, behind);
                // Counting goes on from the best, so that no number of samples overflows.
                (self.codes[left], self.behind[left]) = (code, behind - best);
                left += 1;
            }
        }
        *self.count = left;
        tally.end()
    }
}
