//! Which terms are measured, and the two scenes of each. Pure data.

use isochrone_stats::{rng, shuffle};
use isochrone_units::{CoreId, LineAddr};

use crate::transfer::plan::{Layout, PlanError, lanes};
use crate::transfer::scene::{Act, Operation, Part, Scene};

/// A cost that the model of the CLa paper leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Term {
    /// A reader near the writer, once somebody farther away reads the line as well.
    FirstRemoteReader,
    /// Each flag after the first, of several on lines of their own that one core looks at.
    OverlappedAck,
    /// One more sharer of a line that is written.
    RfoSharer,
    /// A load while the owner has the other half of the 128-byte pair too.
    AdjacentLine,
    /// A write after somebody has loaded the other half of the pair: was this half brought along?
    AdjacentWrite,
    /// A write after somebody has read what this core wrote.
    LeftShared,
    /// A read after somebody has read what this core wrote.
    LeftRead,
}

impl Term {
    /// All of them, in the order in which tables print them.
    pub const ALL: [Self; 7] = [
        Self::FirstRemoteReader,
        Self::OverlappedAck,
        Self::RfoSharer,
        Self::AdjacentLine,
        Self::AdjacentWrite,
        Self::LeftShared,
        Self::LeftRead,
    ];

    /// Its name in an atlas.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FirstRemoteReader => "first-remote-reader",
            Self::OverlappedAck => "overlapped-ack",
            Self::RfoSharer => "rfo-sharer",
            Self::AdjacentLine => "adjacent-line",
            Self::AdjacentWrite => "adjacent-write",
            Self::LeftShared => "left-shared",
            Self::LeftRead => "left-read",
        }
    }

    /// What is timed, with and without.
    #[must_use]
    pub const fn what(self) -> &'static str {
        match self {
            Self::FirstRemoteReader => {
                "a load of a modified line by a core near its owner, while a core far from it loads it too / does not"
            }
            Self::OverlappedAck => {
                "loads of 8 lines that others have modified / of 1, for each line after the first"
            }
            Self::RfoSharer => {
                "a locked write of a line that the writer shares with 2 others / with 1"
            }
            Self::AdjacentLine => {
                "a load of a line whose 128-byte neighbour its owner has modified too / the asker has itself"
            }
            Self::AdjacentWrite => {
                "a locked write of an own line after another core loaded its 128-byte neighbour / did not"
            }
            Self::LeftShared => {
                "a locked write of an own line after another core has read it / has not"
            }
            Self::LeftRead => "a load of an own line after another core has read it / has not",
        }
    }

    /// Cores that take part at least.
    const fn cores(self) -> usize {
        match self {
            Self::FirstRemoteReader | Self::RfoSharer => 3,
            _ => 2,
        }
    }
}

/// Who reads near the owner, and who far from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Writes the lines.
    pub owner: CoreId,
    /// Is timed.
    pub near: CoreId,
    /// Reads as well.
    pub far: CoreId,
}

/// How much is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct TermsOptions {
    /// Lines for each term (sets of lines where a term is about several).
    pub places: u32,
    /// Lines that one core looks at for [`Term::OverlappedAck`].
    pub acks: u32,
    /// Samples of each line in one round.
    pub repeats: u32,
    /// Rounds, all terms in shuffled order in each.
    pub rounds: u32,
    /// Seed of the orders.
    pub seed: u64,
}

impl TermsOptions {
    /// What `isochrone map` uses unless told otherwise.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { places: 32, acks: 8, repeats: 16, rounds: 9, seed }
    }
}

/// Everything that will be done.
#[derive(Clone, Debug, PartialEq)]
pub struct TermsPlan {
    /// The core that is timed or owns first, then the others as they are needed.
    pub cores: Vec<CoreId>,
    /// How much.
    pub options: TermsOptions,
    /// Terms that the cores allow.
    pub items: Vec<Term>,
    /// Terms that they do not, each with why.
    pub missing: Vec<(Term, String)>,
    remote: Option<Remote>,
    lines: Vec<LineAddr>,
}

impl TermsPlan {
    /// Plans all terms on `cores`. Who is near and who far comes from outside, or why nobody is.
    ///
    /// # Errors
    /// [`PlanError::SmallArena`] when the lines do not fit.
    pub fn new(
        cores: &[CoreId],
        remote: Result<Remote, String>,
        arena_lines: u64,
        options: TermsOptions,
    ) -> Result<Self, PlanError> {
        // Pairs of lines, each on a page of its own: twice as far apart as the arena of halves.
        let count = options.places * options.acks;
        let mut lines = lanes(1, count, arena_lines / 2, None, Layout::Spread)?.swap_remove(0);
        lines.iter_mut().for_each(|line| line.0 *= 2);
        // A core that looks at several lines looks at far ones, so that no prefetcher helps.
        shuffle(&mut lines, &mut rng(options.seed));
        let mut missing = Vec::new();
        for term in Term::ALL {
            let (needed, there) = (term.cores(), cores.len());
            if there < needed {
                missing.push((term, format!("needs {needed} cores, {there} may be used")));
            } else if let (Term::FirstRemoteReader, Err(why)) = (term, &remote) {
                missing.push((term, why.clone()));
            }
        }
        let lacks = |term: &Term| missing.iter().any(|(lacking, _)| lacking == term);
        let items = Term::ALL.into_iter().filter(|term| !lacks(term)).collect();
        Ok(Self { cores: cores.to_vec(), options, items, missing, remote: remote.ok(), lines })
    }

    /// The scenes with and without what the term is about; the first part of each is the one that counts.
    #[must_use]
    pub fn scenes(&self, term: Term) -> [Scene; 2] {
        [true, false].map(|with| match term {
            Term::FirstRemoteReader => self.first_remote_reader(with),
            Term::OverlappedAck => self.overlapped_ack(with),
            Term::RfoSharer => self.rfo_sharer(with),
            Term::AdjacentLine => self.adjacent_line(with),
            Term::AdjacentWrite => self.adjacent_write(with),
            Term::LeftShared => self.left(Operation::Rfo, with),
            Term::LeftRead => self.left(Operation::Load, with),
        })
    }

    /// The difference of a sample with and one without, divided by this, is the term.
    #[must_use]
    pub fn divisor(&self, term: Term) -> f64 {
        match term {
            Term::OverlappedAck => f64::from(self.options.acks.max(2) - 1),
            _ => 1.0,
        }
    }

    fn lines(&self) -> Vec<LineAddr> {
        self.lines[..self.options.places as usize].to_vec()
    }

    fn first_remote_reader(&self, with: bool) -> Scene {
        let Some(Remote { owner, near, far }) = self.remote else { return Scene { parts: vec![] } };
        let lines = self.lines();
        let one_by_one = || lines.iter().map(|&line| Act::Time(Operation::Load, vec![line]));
        let reading = || -> Vec<Act> { [Act::Rest].into_iter().chain(one_by_one()).collect() };
        let resting = vec![Act::Rest; lines.len() + 1];
        let mut owning = resting.clone();
        owning[0] = Act::Write(lines.clone());
        Scene {
            parts: vec![
                Part { core: near, acts: reading() },
                Part { core: owner, acts: owning },
                Part { core: far, acts: if with { reading() } else { resting } },
            ],
        }
    }

    /// Lines of one place come from as many cores as there are, up to one each.
    fn overlapped_ack(&self, with: bool) -> Scene {
        let acks = if with { self.options.acks as usize } else { 1 };
        let places: Vec<&[LineAddr]> =
            self.lines.chunks(self.options.acks as usize).map(|place| &place[..acks]).collect();
        let looks = places.iter().map(|place| Act::Sweep(place.to_vec()));
        let looking: Vec<Act> = [Act::Rest].into_iter().chain(looks).collect();
        let writers = &self.cores[1..self.cores.len().min(1 + self.options.acks as usize)];
        let steps = looking.len();
        let writes = |writer: usize| {
            let own = |place: &&[LineAddr]| {
                place.iter().copied().skip(writer).step_by(writers.len()).collect::<Vec<_>>()
            };
            let mut acts = vec![Act::Rest; steps];
            acts[0] = Act::Write(places.iter().flat_map(own).collect());
            acts
        };
        let mut parts = vec![Part { core: self.cores[0], acts: looking }];
        parts.extend(writers.iter().enumerate().map(|(n, &core)| Part { core, acts: writes(n) }));
        Scene { parts }
    }

    fn rfo_sharer(&self, with: bool) -> Scene {
        let lines = self.lines();
        let read = || Act::Read(lines.clone());
        let third = if with { read() } else { Act::Rest };
        Scene {
            parts: vec![
                part(self.cores[0], [Act::Rest, read(), Act::Time(Operation::Rfo, lines.clone())]),
                part(self.cores[1], [Act::Write(lines.clone()), Act::Rest, Act::Rest]),
                part(self.cores[2], [Act::Rest, third, Act::Rest]),
            ],
        }
    }

    /// Without, the asker wrote the neighbours first, so that nothing is left to bring along.
    fn adjacent_line(&self, with: bool) -> Scene {
        let lines = self.lines();
        let (asker, owner) = (self.cores[0], self.cores[1]);
        let load = Act::Time(Operation::Load, lines.clone());
        let neighbours = Act::Write(lines.iter().map(|&line| beside(line)).collect());
        let write = Act::Write(lines);
        let (first, then) = if with { (Act::Rest, neighbours) } else { (neighbours, Act::Rest) };
        Scene {
            parts: vec![
                part(asker, [first, Act::Rest, Act::Rest, load]),
                part(owner, [Act::Rest, then, write, Act::Rest]),
            ],
        }
    }

    fn adjacent_write(&self, with: bool) -> Scene {
        let lines = self.lines();
        let neighbours: Vec<LineAddr> = lines.iter().map(|&line| beside(line)).collect();
        let both: Vec<LineAddr> = lines.iter().chain(&neighbours).copied().collect();
        let other = if with { Act::Read(neighbours) } else { Act::Rest };
        let again = Act::Again(Operation::Rfo, lines);
        Scene {
            parts: vec![
                part(self.cores[0], [Act::Write(both), Act::Rest, again]),
                part(self.cores[1], [Act::Rest, other, Act::Rest]),
            ],
        }
    }

    fn left(&self, operation: Operation, with: bool) -> Scene {
        let lines = self.lines();
        let other = if with { Act::Read(lines.clone()) } else { Act::Rest };
        let again = Act::Again(operation, lines.clone());
        Scene {
            parts: vec![
                part(self.cores[0], [Act::Write(lines), Act::Rest, again]),
                part(self.cores[1], [Act::Rest, other, Act::Rest]),
            ],
        }
    }
}

/// The other half of a line's 128-byte pair.
const fn beside(line: LineAddr) -> LineAddr {
    LineAddr(line.0 ^ 1)
}

fn part(core: CoreId, acts: impl IntoIterator<Item = Act>) -> Part {
    Part { core, acts: acts.into_iter().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::scene::check;
    use std::collections::BTreeSet;

    const LINES: u64 = 1 << 15;

    fn plan(cores: u16, remote: Result<Remote, String>) -> TermsPlan {
        let cores: Vec<CoreId> = (0..cores).map(CoreId).collect();
        TermsPlan::new(&cores, remote, LINES, TermsOptions::new(1)).unwrap()
    }

    fn three() -> Remote {
        Remote { owner: CoreId(0), near: CoreId(1), far: CoreId(2) }
    }

    #[test]
    fn two_cores_measure_five_terms_and_the_others_say_why_not() {
        let plan = plan(2, Err("all cores are equally far".into()));
        assert_eq!(plan.items.len(), 5);
        let why: Vec<&str> = plan.missing.iter().map(|(_, why)| why.as_str()).collect();
        assert_eq!(why, ["needs 3 cores, 2 may be used"; 2]);
    }

    #[test]
    fn without_anybody_far_there_is_no_first_remote_reader() {
        let plan = plan(4, Err("all cores are equally far".into()));
        let expected = (Term::FirstRemoteReader, "all cores are equally far".to_owned());
        assert_eq!(plan.missing, [expected]);
        assert_eq!(plan.items.len(), 6);
    }

    #[test]
    fn every_scene_can_be_played_and_its_first_part_is_timed() {
        for cores in [2, 3, 9] {
            let remote = if cores > 2 { Ok(three()) } else { Err("two".into()) };
            let plan = plan(cores, remote);
            for &term in &plan.items {
                for scene in plan.scenes(term) {
                    let samples: usize = scene.parts[0].acts.iter().map(Act::samples).sum();
                    assert_eq!(samples, plan.options.places as usize, "{term:?}");
                    check(&[scene], &plan.cores, LINES).unwrap();
                }
            }
        }
    }

    #[test]
    fn acknowledgements_come_from_all_other_cores_and_from_different_pages() {
        let plan = plan(4, Ok(three()));
        let [with, without] = plan.scenes(Term::OverlappedAck);
        let looked: BTreeSet<u64> =
            with.parts[0].acts.iter().flat_map(Act::lines).map(|l| l.0).collect();
        assert_eq!(looked.len(), 32 * 8);
        for writer in &with.parts[1..] {
            assert!(writer.acts[0].lines().count() >= 32 * 2, "{writer:?}");
            assert!(writer.acts[0].lines().all(|line| looked.contains(&line.0)));
        }
        let place: BTreeSet<u64> = with.parts[0].acts[1].lines().map(|line| line.0 / 64).collect();
        assert_eq!(place.len(), 8, "a page each");
        assert_eq!(without.parts[0].acts.iter().flat_map(Act::lines).count(), 32);
    }

    #[test]
    fn an_arena_too_small_is_refused() {
        let cores = [CoreId(0), CoreId(1)];
        let refused = TermsPlan::new(&cores, Err("two".into()), 256, TermsOptions::new(1));
        assert!(matches!(refused, Err(PlanError::SmallArena { .. })));
    }
}
