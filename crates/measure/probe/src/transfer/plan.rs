//! What the line-transfer experiment does: which pairs, in which rounds, on which lines, in which
//! coherence state. Pure data; the same plan runs on any stage.

use isochrone_units::{CoreId, LINES_PER_PAGE, LineAddr, LineState};

use super::scene::{Act, Operation, Part, Scene};
use super::tournament::{self, Pair};

/// Lines for each pair unless told otherwise: one of every index in a page, so that every home of
/// a page's lines is met equally often (research: one line is a sample of one home).
pub const LINES_PER_PAIR: u32 = 64;

/// The fewest lines for a pair that still give 5th and 95th percentiles over homes.
pub const LINES_MIN: u32 = 32;

/// Round trips in one sample of the compare-and-swap mode: long enough that the timer does not
/// matter, short enough that a sample which something interrupted can be told and left out.
pub const CAS_TRIPS: u32 = 200;

/// Repeats at the start of every scene that are not counted: cores wake up, pages are mapped.
pub const WARM_REPEATS: u32 = 2;

/// What is measured for every pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One operation on a line that its owner holds in this state.
    Timed(LineState, Operation),
    /// Round trips of compare-and-swap, as common core-to-core tools time it.
    Cas {
        /// Round trips in one sample of one line.
        trips: u32,
    },
}

impl Kind {
    /// The name of the state column: `"modified"`, ..., `"cas"`.
    #[must_use]
    pub const fn state_name(self) -> &'static str {
        match self {
            Self::Timed(state, _) => state.as_str(),
            Self::Cas { .. } => "cas",
        }
    }

    /// What one cell is.
    #[must_use]
    pub const fn cell_name(self) -> &'static str {
        match self {
            Self::Timed(_, Operation::Load) => "one way (a timed load of the owner's line)",
            Self::Timed(LineState::Shared, Operation::Rfo) => {
                "one way (a timed RFO of a line that owner and asker share)"
            }
            Self::Timed(_, Operation::Rfo) => "one way (a timed RFO of the owner's line)",
            Self::Cas { .. } => "half round trip",
        }
    }

    /// Whether a third core has to hold a copy too.
    const fn needs_helper(self) -> bool {
        matches!(self, Self::Timed(LineState::Shared, Operation::Load))
    }

    /// Samples are round trips: both directions are one measurement.
    const fn is_symmetric(self) -> bool {
        matches!(self, Self::Cas { .. })
    }

    /// Raw cycles of one sample divided by this are one cell's quantity.
    #[must_use]
    pub fn divisor(self) -> f64 {
        match self {
            Self::Timed(..) => 1.0,
            Self::Cas { trips } => 2.0 * f64::from(trips.max(1)),
        }
    }
}

/// Whether pairs without a common core are measured together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Tournament rounds.
    Parallel,
    /// One pair at a time.
    Serial,
}

/// How much is measured and when it is enough.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// What is measured.
    pub kind: Kind,
    /// Lines for each pair, at least [`LINES_MIN`].
    pub lines: u32,
    /// Samples of each line in one sweep (over all pairs).
    pub repeats: u32,
    /// Sweeps at least.
    pub sweeps_min: u32,
    /// Sweeps at most.
    pub sweeps_max: u32,
    /// Enough when the 95 % half-width of every pair's median, over its median, is below this.
    pub half_width: f64,
    /// Seconds after which no further sweep begins, even before [`Self::sweeps_min`].
    pub budget_s: f64,
    /// Parallel or serial.
    pub schedule: Schedule,
    /// Seed of the order of rounds.
    pub seed: u64,
    /// The lines to use; otherwise see [`Layout`].
    pub pool: Option<Vec<LineAddr>>,
}

impl Options {
    /// What `isochrone map` uses unless told otherwise.
    #[must_use]
    pub fn new(kind: Kind, seed: u64) -> Self {
        let repeats = match kind {
            Kind::Timed(..) => 64,
            Kind::Cas { .. } => 8,
        };
        Self {
            kind,
            lines: LINES_PER_PAIR,
            repeats,
            sweeps_min: 5,
            sweeps_max: 40,
            half_width: 0.005,
            budget_s: 2.0,
            schedule: Schedule::Parallel,
            seed,
            pool: None,
        }
    }
}

/// One owner, one asker, on the lines of one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Holds the lines.
    pub owner: CoreId,
    /// Asks for them.
    pub asker: CoreId,
    /// Holds copies of them, where the state needs that.
    pub helper: Option<CoreId>,
    /// Which lines: pairs that run together use different lanes.
    pub lane: usize,
}

/// Exchanges in steps: those of one leg run together.
pub type Round = Vec<Vec<Exchange>>;

/// Everything that will be done.
#[derive(Clone, Debug, PartialEq)]
pub struct TransferPlan {
    /// Cores in the order of the matrix.
    pub cores: Vec<CoreId>,
    /// How much and when it is enough.
    pub options: Options,
    /// The rounds of one sweep.
    pub rounds: Vec<Round>,
    /// Lines by lane; the last lane belongs to the reference.
    pub lanes: Vec<Vec<LineAddr>>,
    /// Measured again and again between the rounds, to notice drift.
    pub reference: Option<Exchange>,
    /// Why there is nothing to do, where there is nothing.
    pub missing: Option<String>,
}

/// Why no plan can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Too few lines for each pair
    #[error("{asked} lines a pair cannot show the spread over homes; use {LINES_MIN} or more")]
    FewLines {
        /// Lines asked for.
        asked: u32,
    },
    /// The arena or the given pool has too few lines
    #[error("{needed} lines are needed and {given} are there; use a larger arena or fewer lines")]
    SmallArena {
        /// Lines needed.
        needed: u64,
        /// Lines there.
        given: u64,
    },
}

impl TransferPlan {
    /// Plans all pairs of `cores` on an arena of so many lines.
    ///
    /// # Errors
    /// [`PlanError`] when the lines do not suffice.
    pub fn new(cores: &[CoreId], arena_lines: u64, options: Options) -> Result<Self, PlanError> {
        if options.lines < LINES_MIN {
            return Err(PlanError::FewLines { asked: options.lines });
        }
        let rounds = rounds(cores, options.kind, options.schedule);
        let widest = rounds.iter().flatten().map(Vec::len).max().unwrap_or(0);
        // Where there is one pair only, it is its own reference.
        let alone = rounds.len() == 1 && widest == 1;
        let count = if alone { 1 } else { widest + 1 };
        let layout = if options.kind.is_symmetric() { Layout::Pages } else { Layout::Spread };
        let lanes = lanes(count, options.lines, arena_lines, options.pool.as_deref(), layout)?;
        let reference = rounds
            .first()
            .and_then(|round| round.first()?.first())
            .map(|first| Exchange { lane: count - 1, ..*first });
        let missing = match (cores.len(), reference) {
            (_, Some(_)) => None,
            (0 | 1, None) => Some(format!(
                "line transfers ({}) need 2 cores and {} may be used",
                options.kind.state_name(),
                cores.len()
            )),
            (n, None) => Some(format!(
                "a load of a line that others share needs 3 cores (owner, sharer, asker) and {n} \
                 may be used"
            )),
        };
        Ok(Self { cores: cores.to_vec(), options, rounds, lanes, reference, missing })
    }

    /// The same plan, one pair at a time.
    #[must_use]
    pub fn serial(&self) -> Self {
        let kind = self.options.kind;
        // All pairs now use the first lane; the reference keeps its own.
        Self {
            rounds: rounds(&self.cores, kind, Schedule::Serial),
            options: Options { schedule: Schedule::Serial, ..self.options.clone() },
            ..self.clone()
        }
    }

    /// What the cores of an exchange do, step by step.
    #[must_use]
    pub fn scene(&self, exchange: &Exchange) -> Scene {
        scene(self.options.kind, exchange, &self.lanes[exchange.lane])
    }
}

/// The acts of one exchange on `lines`.
#[must_use]
pub fn scene(kind: Kind, exchange: &Exchange, lines: &[LineAddr]) -> Scene {
    let all = || lines.to_vec();
    let time = |operation| Act::Time(operation, all());
    let (owner, asker, helper) = match kind {
        Kind::Timed(LineState::Modified, operation) => (
            vec![Act::Write(all()), Act::Rest],
            vec![Act::Rest, time(operation)],
            vec![Act::Rest, Act::Rest],
        ),
        Kind::Timed(LineState::Exclusive, operation) => (
            vec![Act::Own(all()), Act::Rest],
            vec![Act::Rest, time(operation)],
            vec![Act::Rest, Act::Rest],
        ),
        Kind::Timed(LineState::Shared, Operation::Load) => (
            vec![Act::Own(all()), Act::Rest, Act::Rest],
            vec![Act::Rest, Act::Rest, time(Operation::Load)],
            vec![Act::Rest, Act::Read(all()), Act::Rest],
        ),
        Kind::Timed(LineState::Shared, Operation::Rfo) => (
            vec![Act::Own(all()), Act::Rest, Act::Rest],
            vec![Act::Rest, Act::Read(all()), time(Operation::Rfo)],
            vec![Act::Rest, Act::Rest, Act::Rest],
        ),
        Kind::Cas { trips } => (
            vec![Act::Write(all()), Act::Pong { lines: all(), trips }],
            vec![Act::Rest, Act::Ping { lines: all(), trips }],
            vec![Act::Rest, Act::Rest],
        ),
    };
    // The asker leads: it comes first, so its samples are those of part 0.
    let mut parts = vec![
        Part { core: exchange.asker, acts: asker },
        Part { core: exchange.owner, acts: owner },
    ];
    parts.extend(exchange.helper.map(|core| Part { core, acts: helper }));
    Scene { parts }
}

/// Rounds of exchanges among cores.
fn rounds(cores: &[CoreId], kind: Kind, schedule: Schedule) -> Vec<Round> {
    let legs = |pairs: Vec<(Pair, Option<usize>)>| -> Round {
        let leg = |swap: bool| {
            pairs
                .iter()
                .enumerate()
                .map(|(lane, &((a, b), helper))| {
                    let (owner, asker) = if swap { (b, a) } else { (a, b) };
                    Exchange {
                        owner: cores[owner],
                        asker: cores[asker],
                        helper: helper.map(|third| cores[third]),
                        lane,
                    }
                })
                .collect()
        };
        if kind.is_symmetric() { vec![leg(false)] } else { vec![leg(false), leg(true)] }
    };
    if kind.needs_helper() {
        let mut helped = tournament::rounds_with_helpers(cores.len());
        if schedule == Schedule::Serial {
            helped = helped.into_iter().flatten().map(|one| vec![one]).collect();
        }
        let with = |round: Vec<tournament::Helped>| {
            legs(round.into_iter().map(|h| (h.pair, Some(h.helper))).collect())
        };
        return helped.into_iter().map(with).collect();
    }
    let plain = match schedule {
        Schedule::Parallel => tournament::rounds(cores.len()),
        Schedule::Serial => tournament::one_by_one(cores.len()),
    };
    let without = |round: Vec<Pair>| legs(round.into_iter().map(|pair| (pair, None)).collect());
    plain.into_iter().map(without).collect()
}

/// Where lines lie when none are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Far apart, so that a timed load cannot be helped by what another one brought along.
    Spread,
    /// Whole pages. A page has each distance of the pattern equally often, so that the median over
    /// its lines does not depend on which page it is; spread lines are a random draw of homes, and
    /// the medians of two runs then differ by that draw. Only for lines that are used one by one.
    Pages,
}

/// `lanes` disjoint sets of `each` lines.
///
/// # Errors
/// [`PlanError::SmallArena`] when there are not so many.
pub fn lanes(
    lanes: usize,
    each: u32,
    arena_lines: u64,
    pool: Option<&[LineAddr]>,
    layout: Layout,
) -> Result<Vec<Vec<LineAddr>>, PlanError> {
    let each = each as usize;
    let needed = (lanes * each) as u64;
    let given = pool.map_or(arena_lines, |lines| lines.len() as u64);
    if given < needed {
        return Err(PlanError::SmallArena { needed, given });
    }
    let slots: Vec<LineAddr> = match pool {
        Some(lines) => lines[..lanes * each].to_vec(),
        None if layout == Layout::Pages => (0..needed).map(LineAddr).collect(),
        None => (0..needed).map(|slot| spread(slot, arena_lines)).collect(),
    };
    Ok(slots.chunks(each.max(1)).map(<[LineAddr]>::to_vec).collect())
}

/// The `slot`-th line when lines are spread over an arena: each next one on the next page and at
/// the next index, so that no two of them share a page for long and all indices come equally often.
fn spread(slot: u64, arena_lines: u64) -> LineAddr {
    let per_page = LINES_PER_PAGE as u64;
    let pages = arena_lines / per_page;
    if pages < per_page {
        // 37 is odd, so this is a permutation of any power-of-two number of lines; an arena of
        // another size is too small to be spread over and is used in order.
        let scattered = slot * 37 % arena_lines;
        return LineAddr(if arena_lines.is_power_of_two() { scattered } else { slot });
    }
    let pages = pages - pages % per_page;
    LineAddr(slot % pages * per_page + (slot + slot / pages) % per_page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const LOAD: Kind = Kind::Timed(LineState::Modified, Operation::Load);
    const SHARED: Kind = Kind::Timed(LineState::Shared, Operation::Load);

    fn cores(n: u16) -> Vec<CoreId> {
        (0..n).map(CoreId).collect()
    }

    #[test]
    fn sixty_four_cores_in_sixty_three_rounds_cover_both_directions_of_each_pair() {
        let plan = TransferPlan::new(&cores(64), 1 << 16, Options::new(LOAD, 1)).unwrap();
        assert_eq!(plan.rounds.len(), 63);
        let mut seen = BTreeSet::new();
        for exchange in plan.rounds.iter().flatten().flatten() {
            assert!(seen.insert((exchange.owner, exchange.asker)));
        }
        assert_eq!(seen.len(), 64 * 63);
    }

    #[test]
    fn pairs_that_run_together_share_no_line() {
        let plan = TransferPlan::new(&cores(9), 1 << 14, Options::new(SHARED, 1)).unwrap();
        let mut seen = BTreeSet::new();
        for line in plan.lanes.iter().flatten() {
            assert!(seen.insert(*line), "{line:?} is in two lanes");
        }
        for leg in plan.rounds.iter().flatten() {
            let lanes: BTreeSet<_> = leg.iter().map(|exchange| exchange.lane).collect();
            assert_eq!(lanes.len(), leg.len());
        }
    }

    #[test]
    fn the_lines_of_a_lane_lie_on_different_pages_and_hold_every_index_once() {
        for lane in lanes(5, 64, 512 * 64, None, Layout::Spread).unwrap() {
            let pages: BTreeSet<_> = lane.iter().map(|line| line.page()).collect();
            let indices: BTreeSet<_> = lane.iter().map(|line| line.index_in_page()).collect();
            assert_eq!((pages.len(), indices.len()), (64, 64));
        }
    }

    #[test]
    fn spread_lines_are_distinct_up_to_a_full_arena() {
        for arena in [64, 256, 100, 64 * 64, 64 * 200] {
            let most = if arena == 64 * 200 { 64 * 192 } else { arena };
            let lines: BTreeSet<_> = (0..most).map(|slot| spread(slot, arena)).collect();
            assert_eq!(lines.len() as u64, most, "arena of {arena}");
            assert!(lines.iter().all(|line| line.0 < arena));
        }
    }

    #[test]
    fn what_two_cores_cannot_show_is_said() {
        let plan = TransferPlan::new(&cores(2), 1 << 14, Options::new(SHARED, 1)).unwrap();
        assert!(plan.rounds.is_empty() && plan.reference.is_none());
        assert!(plan.missing.is_some_and(|why| why.contains("needs 3 cores")));
        let plan = TransferPlan::new(&cores(1), 1 << 14, Options::new(LOAD, 1)).unwrap();
        assert!(plan.missing.is_some_and(|why| why.contains("need 2 cores")));
    }

    #[test]
    fn too_few_lines_are_refused() {
        let few = Options { lines: 8, ..Options::new(LOAD, 1) };
        assert_eq!(
            TransferPlan::new(&cores(2), 1 << 14, few),
            Err(PlanError::FewLines { asked: 8 })
        );
        let refused = TransferPlan::new(&cores(2), 50, Options::new(LOAD, 1));
        assert_eq!(refused, Err(PlanError::SmallArena { needed: 64, given: 50 }));
    }
}
