//! What the line-transfer experiment does: which pairs, in which rounds, on which lines, in which
//! coherence state. Pure data; the same plan runs on any stage.

use isochrone_units::{CoreId, LineAddr, LineState};

pub use super::lanes::{LINES_MIN, Layout, PlanError, lanes};
use super::sample;
use super::scene::{Act, Operation, Part, Scene};
use super::tournament::{self, Pair};
use crate::seats::Seats;

/// Lines for each pair unless told otherwise: one of every index in a page, so that every home of
/// a page's lines is met equally often (research: one line is a sample of one home).
pub const LINES_PER_PAIR: u32 = 64;

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

/// Seconds of one kind of transfers at least, and for each round of a tournament. A map has four kinds, and gives them
/// a ninth of its time (30 s of 4 min with 384 cores).
const BUDGET_S: f64 = 3.0;
const BUDGET_ROUND_S: f64 = 0.02;
/// The same of a quick map, which has no more time for more cores.
const QUICK_BUDGET_S: f64 = 0.5;

/// Seconds that a map gives one kind of transfers.
#[must_use]
pub fn budget_s(cores: usize, quick: bool) -> f64 {
    let rounds = f64::from(u32::try_from(cores).unwrap_or(u32::MAX));
    if quick { QUICK_BUDGET_S } else { BUDGET_S.max(BUDGET_ROUND_S * rounds) }
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
    /// Seconds after which nothing more is measured, even before [`Self::sweeps_min`] and within a sweep.
    pub budget_s: f64,
    /// The same as long as there was no whole sweep: on a slow machine the first one may take longer. The budget where
    /// that is more.
    pub patience_s: f64,
    /// Parallel or serial.
    pub schedule: Schedule,
    /// Where the cores sit, so that a sample of their pairs has some of each kind; of cores of which nothing is said
    /// all pairs are of one kind.
    pub seats: Option<Seats>,
    /// Seed of the order of rounds.
    pub seed: u64,
    /// The lines to use; otherwise see [`Layout`].
    pub pool: Option<Vec<LineAddr>>,
}

impl Options {
    /// What `isochrone map` uses unless told otherwise. [`budget_s`] says what a map of more cores takes.
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
            patience_s: 0.0,
            schedule: Schedule::Parallel,
            seats: None,
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
    /// The rounds of one sweep; of a serial plan those that are worth most come first.
    pub rounds: Vec<Round>,
    /// Where the cores sit, in their order: a place among the seats is one among the cores.
    pub seats: Seats,
    /// How many rounds a serial plan needs at least to have some pairs of each kind and to join all cores.
    pub least: usize,
    /// Lines by lane; the last lane belongs to the reference.
    pub lanes: Vec<Vec<LineAddr>>,
    /// Measured again and again between the rounds, to notice drift.
    pub reference: Option<Exchange>,
    /// Why there is nothing to do, where there is nothing.
    pub missing: Option<String>,
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
        let seats = options
            .seats
            .as_ref()
            .map_or_else(|| Seats::unknown(cores), |seats| seats.in_order_of(cores));
        let Rounds { rounds, least } = match options.schedule {
            Schedule::Parallel => parallel(cores, options.kind),
            Schedule::Serial => serial(cores, options.kind, &seats, options.seed),
        };
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
        Ok(Self { cores: cores.to_vec(), options, rounds, seats, least, lanes, reference, missing })
    }

    /// The same plan, one pair at a time.
    #[must_use]
    pub fn serial(&self) -> Self {
        let Rounds { rounds, least } =
            serial(&self.cores, self.options.kind, &self.seats, self.options.seed);
        // All pairs now use the first lane; the reference keeps its own.
        Self {
            rounds,
            least,
            options: Options { schedule: Schedule::Serial, ..self.options.clone() },
            ..self.clone()
        }
    }

    /// Pairs of cores that one sweep measures.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.rounds.iter().filter_map(|round| round.first()).map(Vec::len).sum()
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

/// Rounds, and how many of them are needed at least.
struct Rounds {
    rounds: Vec<Round>,
    least: usize,
}

/// A pair with the third core that it needs, if it needs one.
type Meeting = (Pair, Option<usize>);

/// Rounds of a tournament.
fn parallel(cores: &[CoreId], kind: Kind) -> Rounds {
    let round = |met: Vec<Meeting>| legs(cores, kind, &met);
    let rounds: Vec<Round> = if kind.needs_helper() {
        let with = |helped: &tournament::Helped| (helped.pair, Some(helped.helper));
        let helped = tournament::rounds_with_helpers(cores.len());
        helped.iter().map(|met| round(met.iter().map(with).collect())).collect()
    } else {
        let plain = tournament::rounds(cores.len());
        plain.iter().map(|met| round(met.iter().map(|&pair| (pair, None)).collect())).collect()
    };
    Rounds { least: rounds.len(), rounds }
}

/// Rounds of one pair each. Who needs a third core has the next one.
fn serial(cores: &[CoreId], kind: Kind, seats: &Seats, seed: u64) -> Rounds {
    if kind.needs_helper() && cores.len() < 3 {
        return Rounds { rounds: Vec::new(), least: 0 };
    }
    let order = sample::order(seats, seed);
    let after = |pair: Pair| {
        let mut next = (1..=cores.len()).map(|step| (pair.0 + step) % cores.len());
        next.find(|&third| third != pair.0 && third != pair.1)
    };
    let met = |&pair: &Pair| (pair, after(pair).filter(|_| kind.needs_helper()));
    let rounds = order.pairs.iter().map(|pair| legs(cores, kind, &[met(pair)])).collect();
    Rounds { rounds, least: order.least }
}

/// Both directions of pairs that meet at the same time; one where they are the same.
fn legs(cores: &[CoreId], kind: Kind, met: &[Meeting]) -> Round {
    let leg = |swap: bool| {
        met.iter()
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
    fn seats_of_more_cores_in_another_order_are_those_of_the_plan() {
        let machine = crate::seats::tests::machine(2, 2, 2);
        let mut all = crate::seats::tests::ids(&machine);
        all.reverse();
        let seats = Some(Seats::of(&machine, &all));
        let few = [0, 1, 4, 5, 8].map(CoreId);
        let options = Options { seats, schedule: Schedule::Serial, ..Options::new(LOAD, 1) };
        let plan = TransferPlan::new(&few, 1 << 14, options).unwrap();
        let seated: Vec<CoreId> = plan.seats.all().iter().map(|seat| seat.core).collect();
        assert_eq!(seated, few);
        assert_eq!(plan.rounds.len(), 5 * 4 / 2, "every pair of these cores");
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
