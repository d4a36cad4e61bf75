//! What the multi-line experiment does: copies of N lines by n readers, and the interactions of
//! section 2 of the CLa paper. Pure data.

use isochrone_stats::{rng, shuffle};
use isochrone_units::{CoreId, LINES_PER_PAGE, LineAddr};

use crate::transfer::plan::PlanError;
use crate::transfer::scene::{Act, Operation, Part, Scene};

/// What one cell measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// Each reader copies as many consecutive lines of its own, all modified by one owner.
    Copy {
        /// Lines that each reader copies.
        lines: u32,
    },
    /// All readers load one line at once.
    Contention,
    /// Each reader loads lines of its own, all at once.
    Congestion,
    /// The owner writes a line that n cores poll.
    Readers,
    /// n cores write a line that the owner polls.
    Writers,
    /// A core that shares a line with n others writes it.
    RfoShared,
}

impl Measure {
    /// The interactions, in the order in which tables print them.
    pub const INTERACTIONS: [Self; 5] =
        [Self::Contention, Self::Congestion, Self::Readers, Self::Writers, Self::RfoShared];

    /// Its name in an atlas.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Copy { .. } => "copy",
            Self::Contention => "contention",
            Self::Congestion => "congestion",
            Self::Readers => "n-readers",
            Self::Writers => "n-writers",
            Self::RfoShared => "rfo-shared",
        }
    }

    /// What one value is.
    #[must_use]
    pub const fn what(self) -> &'static str {
        match self {
            Self::Copy { .. } => "a reader's copy of its lines",
            Self::Contention => "a load of one modified line, n readers at once",
            Self::Congestion => "a load of a modified line, n readers of different lines at once",
            Self::Readers => "a locked write of a line that n cores poll",
            Self::Writers => "a locked write of a polled line, n writers at once",
            Self::RfoShared => "a locked write of a line that the writer shares with n others",
        }
    }
}

/// How much is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct MultilineOptions {
    /// Numbers of lines N.
    pub lines: Vec<u32>,
    /// Numbers of participants n beside the owner or poller; those that the cores do not allow
    /// stay in the plan as missing.
    pub participants: Vec<u32>,
    /// Places in memory for each copy, and lines for each interaction.
    pub places: u32,
    /// Samples of each in one round.
    pub repeats: u32,
    /// Rounds, all cells in shuffled order in each.
    pub rounds: u32,
    /// Seed of the order.
    pub seed: u64,
}

impl MultilineOptions {
    /// What `isochrone map` uses unless told otherwise.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            lines: vec![1, 2, 4, 8, 16, 32, 64, 128],
            participants: vec![1, 2, 4, 8],
            places: 32,
            repeats: 16,
            rounds: 5,
            seed,
        }
    }
}

/// One cell to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item {
    /// What is measured.
    pub measure: Measure,
    /// Participants beside the owner or poller.
    pub n: u32,
}

/// Everything that will be done.
#[derive(Clone, Debug, PartialEq)]
pub struct MultilinePlan {
    /// The owner (or poller) first, then the participants in the order in which they join.
    pub cores: Vec<CoreId>,
    /// How much.
    pub options: MultilineOptions,
    /// Cells that the cores allow.
    pub items: Vec<Item>,
    /// Cells that they do not.
    pub missing: Vec<Item>,
    arena_lines: u64,
}

impl MultilinePlan {
    /// Plans all cells on `cores`, whose first is the owner.
    ///
    /// # Errors
    /// [`PlanError::SmallArena`] when the largest cell does not fit.
    pub fn new(
        cores: &[CoreId],
        arena_lines: u64,
        options: MultilineOptions,
    ) -> Result<Self, PlanError> {
        let copies = options.lines.iter().map(|&lines| Measure::Copy { lines });
        let measures: Vec<Measure> = copies.chain(Measure::INTERACTIONS).collect();
        let all = measures
            .iter()
            .flat_map(|&measure| options.participants.iter().map(move |&n| Item { measure, n }));
        let fits = |item: &Item| item.n > 0 && (item.n as usize) < cores.len();
        let (items, missing): (Vec<Item>, Vec<Item>) = all.partition(fits);
        let readers = items.iter().map(|item| item.n).max().unwrap_or(1);
        let longest = options.lines.iter().copied().max().unwrap_or(1);
        let segment = segment_lines(longest);
        let copied = u64::from(readers) * u64::from(options.places) * segment;
        let loaded = u64::from(readers) * u64::from(options.places);
        let needed = copied.max(loaded);
        if needed > arena_lines {
            return Err(PlanError::SmallArena { needed, given: arena_lines });
        }
        Ok(Self { cores: cores.to_vec(), options, items, missing, arena_lines })
    }

    /// The scenes of a cell: one a place for copies, one for all lines of an interaction.
    #[must_use]
    pub fn scenes(&self, item: Item) -> Vec<Scene> {
        let n = item.n as usize;
        let (owner, others) = (self.cores[0], &self.cores[1..=n]);
        match item.measure {
            Measure::Copy { lines } => (0..self.options.places)
                .map(|place| self.copy(owner, others, lines, place))
                .collect(),
            Measure::Contention => vec![self.contention(owner, others)],
            Measure::Congestion => vec![self.congestion(owner, others)],
            Measure::Readers => vec![self.readers(owner, others)],
            Measure::Writers => vec![self.writers(owner, others)],
            Measure::RfoShared => vec![self.rfo_shared(owner, others)],
        }
    }

    fn copy(&self, owner: CoreId, readers: &[CoreId], count: u32, place: u32) -> Scene {
        let segment = segment_lines(self.options.lines.iter().copied().max().unwrap_or(1));
        let first = |reader: usize| {
            let at = u64::from(place) * readers.len() as u64 + reader as u64;
            LineAddr(at * segment)
        };
        let written = (0..readers.len())
            .flat_map(|r| (0..u64::from(count)).map(move |k| LineAddr(first(r).0 + k)));
        let mut parts = vec![part(owner, [Act::Write(written.collect()), Act::Rest])];
        parts.extend(readers.iter().enumerate().map(|(reader, &core)| {
            part(core, [Act::Rest, Act::Copy { first: first(reader), count }])
        }));
        Scene { parts }
    }

    /// Lines of an interaction: on different pages, every index in turn, in shuffled order:
    /// prefetchers follow a constant stride even across pages, and these steps are far apart.
    fn lines(&self, count: u32) -> Vec<LineAddr> {
        let per_page = LINES_PER_PAGE as u64;
        let pages = (self.arena_lines / per_page).max(1);
        // Beyond one line a page the next pass takes other indices, so no line comes twice.
        let line = |k: u64| LineAddr(k % pages * per_page + (k % pages + k / pages) % per_page);
        let mut lines: Vec<LineAddr> = (0..u64::from(count)).map(line).collect();
        shuffle(&mut lines, &mut rng(self.options.seed));
        lines
    }

    fn contention(&self, owner: CoreId, readers: &[CoreId]) -> Scene {
        let lines = self.lines(self.options.places);
        let one_by_one = lines.iter().map(|&line| Act::Time(Operation::Load, vec![line]));
        let reading: Vec<Act> = [Act::Rest].into_iter().chain(one_by_one).collect();
        let mut owning = vec![Act::Write(lines.clone())];
        owning.resize(reading.len(), Act::Rest);
        let mut parts = vec![Part { core: owner, acts: owning }];
        parts.extend(readers.iter().map(|&core| Part { core, acts: reading.clone() }));
        Scene { parts }
    }

    fn congestion(&self, owner: CoreId, readers: &[CoreId]) -> Scene {
        let each = self.options.places as usize;
        let all = self.lines(self.options.places * count(readers));
        let mut parts = vec![part(owner, [Act::Write(all.clone()), Act::Rest])];
        parts.extend(
            readers.iter().zip(all.chunks(each)).map(|(&core, own)| {
                part(core, [Act::Rest, Act::Time(Operation::Load, own.to_vec())])
            }),
        );
        Scene { parts }
    }

    fn readers(&self, owner: CoreId, pollers: &[CoreId]) -> Scene {
        let lines = self.lines(self.options.places);
        let write = |&line: &LineAddr| Act::Time(Operation::Rfo, vec![line]);
        let poll = |&line: &LineAddr| Act::Poll { line, value: 1 };
        let owning = [Act::Write(lines.clone()), Act::Rest].into_iter();
        let owning = owning.chain(lines.iter().map(write)).collect();
        let polling = [Act::Rest, Act::Read(lines.clone())].into_iter();
        let polling: Vec<Act> = polling.chain(lines.iter().map(poll)).collect();
        let mut parts = vec![Part { core: owner, acts: owning }];
        parts.extend(pollers.iter().map(|&core| Part { core, acts: polling.clone() }));
        Scene { parts }
    }

    fn writers(&self, poller: CoreId, writers: &[CoreId]) -> Scene {
        let lines = self.lines(self.options.places);
        let write = |&line: &LineAddr| Act::Time(Operation::Rfo, vec![line]);
        let value = u64::from(count(writers));
        let poll = |&line: &LineAddr| Act::Poll { line, value };
        let polling = [Act::Write(lines.clone())].into_iter();
        let polling = polling.chain(lines.iter().map(poll)).collect();
        let writing: Vec<Act> = [Act::Rest].into_iter().chain(lines.iter().map(write)).collect();
        let mut parts = vec![Part { core: poller, acts: polling }];
        parts.extend(writers.iter().map(|&core| Part { core, acts: writing.clone() }));
        Scene { parts }
    }

    fn rfo_shared(&self, writer: CoreId, sharers: &[CoreId]) -> Scene {
        let lines = self.lines(self.options.places);
        let read = || Act::Read(lines.clone());
        let time = Act::Time(Operation::Rfo, lines.clone());
        let mut parts = vec![part(writer, [Act::Rest, read(), time])];
        parts.extend(sharers.iter().enumerate().map(|(place, &core)| {
            let first = if place == 0 { Act::Own(lines.clone()) } else { Act::Rest };
            let then = if place == 0 { Act::Rest } else { read() };
            part(core, [first, then, Act::Rest])
        }));
        Scene { parts }
    }
}

/// Lines from one copied segment to the next: whole pages, and one page apart, so that segments
/// are not all aligned alike to larger units.
fn segment_lines(longest: u32) -> u64 {
    let page = LINES_PER_PAGE as u64;
    u64::from(longest).div_ceil(page) * page
}

fn part(core: CoreId, acts: impl IntoIterator<Item = Act>) -> Part {
    Part { core, acts: acts.into_iter().collect() }
}

/// A number of cores, which ids of 16 bits bound.
fn count(cores: &[CoreId]) -> u32 {
    u32::try_from(cores.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::scene::check;
    use std::collections::BTreeSet;

    fn plan(cores: u16) -> MultilinePlan {
        let cores: Vec<CoreId> = (0..cores).map(CoreId).collect();
        MultilinePlan::new(&cores, 1 << 15, MultilineOptions::new(1)).unwrap()
    }

    #[test]
    fn two_cores_measure_one_participant_and_the_rest_is_missing() {
        let plan = plan(2);
        assert!(plan.items.iter().all(|item| item.n == 1));
        assert_eq!(plan.items.len(), 8 + 5);
        assert_eq!(plan.missing.len(), 3 * (8 + 5));
    }

    #[test]
    fn every_scene_can_be_played() {
        let plan = plan(9);
        assert!(plan.missing.is_empty());
        for &item in &plan.items {
            for scene in plan.scenes(item) {
                check(&[scene], &plan.cores, 1 << 15).unwrap();
            }
        }
    }

    #[test]
    fn readers_of_different_lines_really_have_different_lines() {
        let plan = plan(5);
        for measure in [Measure::Congestion, Measure::Copy { lines: 128 }] {
            for scene in plan.scenes(Item { measure, n: 4 }) {
                let mut seen = BTreeSet::new();
                for reader in &scene.parts[1..] {
                    assert!(reader.acts[1].lines().all(|line| seen.insert(line)));
                }
                let written: BTreeSet<_> = scene.parts[0].acts[0].lines().collect();
                assert_eq!(seen, written);
            }
        }
    }

    #[test]
    fn an_arena_too_small_is_refused() {
        let refused = MultilinePlan::new(&[CoreId(0), CoreId(1)], 64, MultilineOptions::new(1));
        assert!(matches!(refused, Err(PlanError::SmallArena { given: 64, .. })));
    }
}
