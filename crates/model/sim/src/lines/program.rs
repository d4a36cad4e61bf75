//! What simulated cores do: steps over lines, in order.

use super::message::Change;

/// How a wait compares the word with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Until {
    /// `word == value`.
    Equal(u64),
    /// `word >= value`.
    AtLeast(u64),
}

impl Until {
    pub(super) const fn holds(self, word: u64) -> bool {
        match self {
            Self::Equal(value) => word == value,
            Self::AtLeast(value) => word >= value,
        }
    }
}

/// One line that a step uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Touch {
    /// The line, from 0.
    pub line: u32,
    /// What becomes of its word; a read changes nothing.
    pub change: Option<Change>,
}

/// The lines of a step: one or two are kept without memory of their own, since nearly all steps have no more.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Touches(Kept);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Kept {
    One([Touch; 1]),
    Two([Touch; 2]),
    Several(Vec<Touch>),
}

impl std::ops::Deref for Touches {
    type Target = [Touch];

    fn deref(&self) -> &[Touch] {
        match &self.0 {
            Kept::One(one) => one,
            Kept::Two(two) => two,
            Kept::Several(several) => several,
        }
    }
}

impl std::ops::DerefMut for Touches {
    fn deref_mut(&mut self) -> &mut [Touch] {
        match &mut self.0 {
            Kept::One(one) => one,
            Kept::Two(two) => two,
            Kept::Several(several) => several,
        }
    }
}

impl FromIterator<Touch> for Touches {
    fn from_iter<I: IntoIterator<Item = Touch>>(touches: I) -> Self {
        let mut touches = touches.into_iter();
        Self(match (touches.next(), touches.next(), touches.next()) {
            (Some(one), None, _) => Kept::One([one]),
            (Some(one), Some(two), None) => Kept::Two([one, two]),
            (one, two, three) => {
                Kept::Several([one, two, three].into_iter().flatten().chain(touches).collect())
            }
        })
    }
}

/// What a core does next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Uses lines, and its own memory so many times.
    Touch {
        /// Each line once.
        lines: Touches,
        /// Accesses to memory of its own that is in its cache.
        private: u32,
    },
    /// Asks for lines to write, and goes on at once.
    Claim {
        /// The first line.
        line: u32,
        /// How many.
        lines: u32,
    },
    /// Drops its copy of a line, which goes to memory if that is behind.
    Drop {
        /// The line.
        line: u32,
    },
    /// Polls the word of a line.
    Wait {
        /// The line.
        line: u32,
        /// Until this holds.
        until: Until,
    },
}

impl Step {
    /// Whether the step uses the line.
    #[must_use]
    pub fn uses(&self, line: u32) -> bool {
        match self {
            Self::Touch { lines, .. } => lines.iter().any(|touch| touch.line == line),
            Self::Wait { line: used, .. } | Self::Drop { line: used } => *used == line,
            Self::Claim { line: first, lines } => (*first..first + lines).contains(&line),
        }
    }

    /// The lines that the step reads or writes, and whether it writes them.
    pub fn lines(&self) -> impl Iterator<Item = (u32, bool)> + '_ {
        let (touches, polled) = match self {
            Self::Touch { lines, .. } => (&**lines, None),
            Self::Wait { line, .. } => (&[][..], Some((*line, false))),
            Self::Drop { .. } | Self::Claim { .. } => (&[][..], None),
        };
        touches.iter().map(|touch| (touch.line, touch.change.is_some())).chain(polled)
    }
}

/// What every core does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Program {
    /// The steps of each core.
    pub cores: Vec<Vec<Step>>,
}

impl Program {
    /// How many lines there are: one more than the highest number used.
    #[must_use]
    pub fn lines(&self) -> u32 {
        let last = |step: &Step| match step {
            Step::Drop { line } => Some(*line),
            Step::Claim { line, lines } => Some(line + lines.saturating_sub(1)),
            _ => step.lines().map(|(line, _)| line).max(),
        };
        let last = self.cores.iter().flatten().filter_map(last).max();
        last.map_or(0, |line| line + 1)
    }

    /// What of these programs touches lines that the last of them uses: what it finds there is left by that alone.
    pub fn bearing(programs: &mut [Self]) {
        let Some((last, before)) = programs.split_last_mut() else { return };
        let mut used = vec![false; last.lines() as usize];
        for step in last.cores.iter().flatten() {
            match step {
                Step::Claim { line, lines } => {
                    used[*line as usize..(line + lines) as usize].fill(true);
                }
                Step::Drop { line } => used[*line as usize] = true,
                _ => step.lines().for_each(|(line, _)| used[line as usize] = true),
            }
        }
        let used = |line: u32| used.get(line as usize).copied().unwrap_or(false);
        let bears = |step: &Step| match step {
            Step::Touch { lines, .. } => lines.iter().any(|touch| used(touch.line)),
            Step::Claim { line, lines } => (*line..line + lines).any(used),
            Step::Wait { line, .. } | Step::Drop { line } => used(*line),
        };
        before.iter_mut().flat_map(|of| &mut of.cores).for_each(|steps| steps.retain(bears));
    }

    /// Gives the lines that these programs use together other numbers, so that none below the highest is unused but the
    /// neighbours of those: an engine keeps a state for each. Order and neighbours, pairs of an even line and the odd
    /// one after it, stay.
    pub fn condense(programs: &mut [Self]) {
        let lines = programs.iter().map(Self::lines).max().unwrap_or(0) as usize;
        let mut pairs = vec![UNUSED; lines.div_ceil(2)];
        let all = || programs.iter().flat_map(|program| &program.cores).flatten();
        for step in all() {
            match step {
                Step::Claim { line, lines } => {
                    (*line..line + lines).for_each(|line| pairs[line as usize / 2] = 0);
                }
                Step::Drop { line } => pairs[*line as usize / 2] = 0,
                _ => step.lines().for_each(|(line, _)| pairs[line as usize / 2] = 0),
            }
        }
        let used = pairs.iter_mut().filter(|pair| **pair != UNUSED);
        (0..).zip(used).for_each(|(number, pair)| *pair = number);
        let renumber = |line: &mut u32| *line = 2 * pairs[*line as usize / 2] + *line % 2;
        for step in programs.iter_mut().flat_map(|program| &mut program.cores).flatten() {
            match step {
                Step::Touch { lines, .. } => {
                    lines.iter_mut().for_each(|touch| renumber(&mut touch.line));
                }
                Step::Claim { line, .. } | Step::Drop { line } | Step::Wait { line, .. } => {
                    renumber(line);
                }
            }
        }
    }
}

/// Said of a pair of lines that no step uses.
const UNUSED: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_bears_on_a_program_touches_its_lines() {
        let wait = |line| Step::Wait { line, until: Until::Equal(1) };
        let of = |steps: Vec<Step>| Program { cores: vec![steps] };
        let claim = |line| Step::Claim { line, lines: 2 };
        let last = of(vec![wait(3), claim(5)]);
        let mut both =
            [of(vec![wait(2), claim(2), wait(3), claim(6), claim(7), wait(9)]), last.clone()];
        Program::bearing(&mut both);
        assert_eq!(both, [of(vec![claim(2), wait(3), claim(6)]), last]);
    }

    #[test]
    fn condensed_programs_are_the_same_on_fewer_lines() {
        let touch = |line| Step::Touch {
            lines: [Touch { line, change: None }].into_iter().collect(),
            private: 0,
        };
        let wait = |line| Step::Wait { line, until: Until::Equal(1) };
        let of = |steps: Vec<Step>| Program { cores: vec![steps] };
        let mut both = [
            of(vec![touch(1000), wait(7), Step::Claim { line: 41, lines: 4 }]),
            of(vec![Step::Drop { line: 90 }, wait(1001), wait(43)]),
        ];
        Program::condense(&mut both);
        // Pairs 3, 20, 21, 22, 45 and 500 are used.
        let first = of(vec![touch(10), wait(1), Step::Claim { line: 3, lines: 4 }]);
        assert_eq!(both, [first, of(vec![Step::Drop { line: 8 }, wait(11), wait(5)])]);
    }
}
