//! Sweeps over the rounds of a plan: plays them, keeps what was timed of each pair, and looks at the reference between
//! them. It ends when it is told to; what plan it is, and what is made of the series, is not its part.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use isochrone_atlas_store::contents::DriftEvent;
use isochrone_stats::{derive_seed, rng, shuffle};
use isochrone_units::{CoreId, LineAddr};

use super::effort::rounds_a_look;
use super::plan::{Exchange, Options, TransferPlan, WARM_REPEATS};
use super::scene::{Scene, Stage};
use super::series::{PairSeries, means_ns};
use super::watch::{LEARN, Verdict, Watch};
use crate::target::TargetError;

/// How often a batch is tried again when its thread was moved.
const MOVES_MAX: u32 = 3;

/// Cores with which another one was refused, from which on that one is left out.
const REFUSALS_MAX: usize = 2;

/// When a run ends: the caller says so, or its time is over.
pub(super) struct Ending<'a> {
    stop: &'a mut dyn FnMut() -> bool,
    /// When its time is over.
    end_s: f64,
    /// The same before the first whole sweep: where plays are slow, that has to have been.
    latest_s: f64,
    has_swept: bool,
    /// The caller has said so.
    pub(super) stopped: bool,
}

impl<'a> Ending<'a> {
    /// The end of a run that begins now.
    pub(super) fn of(options: &Options, begun_s: f64, stop: &'a mut dyn FnMut() -> bool) -> Self {
        let end_s = begun_s + options.budget_s;
        let latest_s = begun_s + options.patience_s.max(options.budget_s);
        Self { stop, end_s, latest_s, has_swept: false, stopped: false }
    }

    /// Seconds until the time is over; negative after it.
    pub(super) fn left_s(&self, now_s: f64) -> f64 {
        self.end_s - now_s
    }

    /// The same as long as there was no whole sweep.
    pub(super) fn most_left_s(&self, now_s: f64) -> f64 {
        self.latest_s - now_s
    }

    pub(super) fn has_come(&mut self, now_s: f64) -> bool {
        let end_s = if self.has_swept { self.end_s } else { self.latest_s };
        self.is_before(now_s, end_s)
    }

    /// Whether the caller wants it, or this time is over.
    pub(super) fn is_before(&mut self, now_s: f64, end_s: f64) -> bool {
        self.stopped |= (self.stop)();
        self.stopped || now_s > end_s
    }
}

/// A run under way.
pub(super) struct Runner<'a, 'e> {
    stage: &'a mut dyn Stage,
    plan: &'a TransferPlan,
    ending: &'a mut Ending<'e>,
    watch: Option<Watch>,
    pub(super) series: Vec<PairSeries>,
    /// Where the series of an ordered pair is.
    places: BTreeMap<(CoreId, CoreId), usize>,
    pub(super) drift: Vec<DriftEvent>,
    /// How often the reference changed for good.
    epoch: u32,
    /// Whole sweeps.
    pub(super) sweeps: u32,
    /// The first thing that the system refused, and by core those with which it was refused.
    pub(super) refused: Option<TargetError>,
    refusals: BTreeMap<CoreId, BTreeSet<CoreId>>,
}

/// The lines of an exchange, nanoseconds.
type Measured = (Exchange, Vec<f64>);

impl<'a, 'e> Runner<'a, 'e> {
    pub(super) fn new(
        stage: &'a mut dyn Stage,
        plan: &'a TransferPlan,
        ending: &'a mut Ending<'e>,
    ) -> Self {
        Self {
            stage,
            plan,
            ending,
            watch: None,
            series: Vec::new(),
            places: BTreeMap::new(),
            drift: Vec::new(),
            epoch: 0,
            sweeps: 0,
            refused: None,
            refusals: BTreeMap::new(),
        }
    }

    /// A series for each exchange of the plan.
    fn prepare(&mut self) {
        let lanes: Vec<Arc<[LineAddr]>> =
            self.plan.lanes.iter().map(|lane| Arc::from(lane.as_slice())).collect();
        let exchanges = self.plan.rounds.iter().flatten().flatten();
        let one = |exchange: &Exchange| PairSeries {
            owner: exchange.owner,
            asker: exchange.asker,
            lines: Arc::clone(&lanes[exchange.lane]),
            sweeps_ns: Vec::new(),
            epochs: Vec::new(),
        };
        self.series = exchanges.map(one).collect();
        self.places = places(&self.series);
    }

    /// The cores that were refused with several others.
    pub(super) fn dead(&self) -> Vec<CoreId> {
        self.refusals.keys().copied().filter(|core| self.is_dead(*core)).collect()
    }

    /// The widest relative half-width of all pairs; `None` while one has too few sweeps. A pair that was refused has
    /// none, and there is nothing to wait for.
    pub(super) fn widest(&self) -> Option<f64> {
        let is_refused = |pair: &PairSeries| {
            self.is_dead(pair.owner)
                || self.is_dead(pair.asker)
                || self.refusals.get(&pair.owner).is_some_and(|with| with.contains(&pair.asker))
        };
        let open =
            self.series.iter().filter(|pair| !(pair.sweeps_ns.is_empty() && is_refused(pair)));
        let widths: Option<Vec<f64>> = open.map(PairSeries::half_width).collect();
        // Where all were refused nothing is known.
        widths?.into_iter().reduce(f64::max)
    }

    fn is_dead(&self, core: CoreId) -> bool {
        self.refusals.get(&core).is_some_and(|with| with.len() >= REFUSALS_MAX)
    }

    /// Sweeps until it is enough.
    pub(super) fn sweeps(&mut self) -> Result<(), TargetError> {
        let options = &self.plan.options;
        if self.plan.rounds.is_empty() {
            return Ok(());
        }
        self.prepare();
        self.learn()?;
        let rounds = self.plan.rounds.len();
        for sweep in 0..options.sweeps_max {
            let mut order: Vec<usize> = (0..rounds).collect();
            // The first sweep of a sample has first what joins all cores, so that it may end anywhere.
            let kept = if sweep == 0 { self.plan.least % rounds } else { 0 };
            let random = &mut rng(derive_seed(options.seed, u64::from(sweep)));
            shuffle(&mut order[..kept], random);
            shuffle(&mut order[kept..], random);
            for batch in order.chunks(rounds_a_look(rounds)) {
                self.rounds(batch, sweep % 2 == 1)?;
            }
            self.sweeps += 1;
            self.ending.has_swept = true;
            let sure = self.widest().is_some_and(|width| width < options.half_width);
            let is_over = self.ending.left_s(self.stage.seconds()) < 0.0;
            if is_over || sure && sweep + 1 >= options.sweeps_min {
                break;
            }
        }
        Ok(())
    }

    /// Measures some rounds, again if the reference jumped across them, and keeps the results.
    fn rounds(&mut self, rounds: &[usize], backward: bool) -> Result<(), TargetError> {
        let mut measured = Vec::new();
        let mut ended = self.legs(rounds, backward, &mut measured);
        let jumped = match ended {
            Ok(()) => self.judge(&measured),
            Err(_) => Ok(None),
        };
        match jumped {
            Ok(Some(event)) => {
                let done_again = measured.iter().map(|(_, lines)| lines.len() as u64).sum::<u64>();
                let dropped_samples = done_again * u64::from(self.plan.options.repeats);
                self.drift.push(DriftEvent { dropped_samples, ..event });
                measured.clear();
                ended = self.legs(rounds, backward, &mut measured);
            }
            Ok(None) => {}
            Err(error) => ended = Err(error),
        }
        for (exchange, lines) in measured {
            if let Some(place) = self.places.get(&(exchange.owner, exchange.asker)) {
                self.series[*place].push(self.epoch, lines);
            }
        }
        ended
    }

    /// Both directions of some rounds, line means by exchange; whole rounds until it is stopped.
    fn legs(
        &mut self,
        rounds: &[usize],
        backward: bool,
        measured: &mut Vec<Measured>,
    ) -> Result<(), TargetError> {
        let plan = self.plan;
        for &round in rounds {
            let mut legs: Vec<_> = plan.rounds[round].iter().collect();
            if backward {
                legs.reverse();
            }
            let mut whole = Vec::new();
            for leg in legs {
                whole.extend(self.attempt(leg)?);
            }
            measured.extend(whole);
        }
        Ok(())
    }

    /// Plays exchanges at once. Where the system refuses that, they are played in halves, down to the pair that is
    /// refused; a core that was in two such pairs with different others is left out from then on.
    fn attempt(&mut self, exchanges: &[Exchange]) -> Result<Vec<Measured>, TargetError> {
        let alive =
            |exchange: &&Exchange| !self.is_dead(exchange.owner) && !self.is_dead(exchange.asker);
        let exchanges: Vec<Exchange> = exchanges.iter().filter(alive).copied().collect();
        if exchanges.is_empty() {
            return Ok(Vec::new());
        }
        match self.measure(&exchanges) {
            Err(error @ TargetError::System { .. }) if exchanges.len() == 1 => {
                let Exchange { owner, asker, .. } = exchanges[0];
                self.refusals.entry(owner).or_default().insert(asker);
                self.refusals.entry(asker).or_default().insert(owner);
                self.refused.get_or_insert(error);
                Ok(Vec::new())
            }
            Err(TargetError::System { .. }) => {
                let (one, other) = exchanges.split_at(exchanges.len() / 2);
                let mut measured = self.attempt(one)?;
                measured.extend(self.attempt(other)?);
                Ok(measured)
            }
            lines => Ok(exchanges.into_iter().zip(lines?).collect()),
        }
    }

    /// Plays exchanges at once; means by line of each.
    pub(super) fn measure(&mut self, exchanges: &[Exchange]) -> Result<Vec<Vec<f64>>, TargetError> {
        let now_s = self.stage.seconds();
        if self.ending.has_come(now_s) {
            return Err(TargetError::Stopped);
        }
        let scenes: Vec<Scene> = exchanges.iter().map(|e| self.plan.scene(e)).collect();
        let repeats = self.plan.options.repeats + WARM_REPEATS;
        let mut moves = 0;
        let played = loop {
            let ends = &mut |now_s| self.ending.has_come(now_s);
            match self.stage.play_until(&scenes, repeats, ends) {
                Err(TargetError::Moved { asked, found }) if moves < MOVES_MAX => {
                    moves += 1;
                    let event = self.moved(asked, found, &scenes);
                    self.drift.push(event);
                }
                other => break other?,
            }
        };
        let clock = self.stage.clock();
        let divisor = self.plan.options.kind.divisor();
        let means = |samples| means_ns(samples, &clock, WARM_REPEATS as usize, divisor);
        Ok(played.iter().map(|parts| means(&parts[0]).unwrap_or_default()).collect())
    }

    /// The event of a thread that was moved in the middle of a batch.
    fn moved(&mut self, asked: u16, found: u16, scenes: &[Scene]) -> DriftEvent {
        let acts = scenes.iter().flat_map(|scene| &scene.parts).flat_map(|part| &part.acts);
        let samples: usize = acts.map(super::scene::Act::samples).sum();
        DriftEvent {
            at_s: self.stage.seconds(),
            core: asked,
            kind: "thread moved".to_owned(),
            what: format!(
                "the thread of core {asked} was found on core {found}; it was pinned again and \
                 the batch done again"
            ),
            dropped_samples: samples as u64 * u64::from(self.plan.options.repeats),
            repaired_ms: None,
        }
    }

    /// Learns what is usual for the reference.
    fn learn(&mut self) -> Result<(), TargetError> {
        let first = (0..LEARN).map(|_| self.reference()).collect::<Result<Vec<_>, _>>()?;
        self.watch = Watch::learn(&first);
        Ok(())
    }

    fn reference(&mut self) -> Result<Vec<f64>, TargetError> {
        let Some(reference) = self.plan.reference else { return Ok(Vec::new()) };
        Ok(self.attempt(&[reference])?.pop().map_or_else(Vec::new, |(_, lines)| lines))
    }

    /// Looks at the reference again, after rounds that gave `measured`; an event if it jumped.
    fn judge(&mut self, measured: &[Measured]) -> Result<Option<DriftEvent>, TargetError> {
        // Where the reference is itself the only pair, the round has just measured it.
        let itself = measured.iter().find(|(exchange, _)| Some(*exchange) == self.plan.reference);
        let now = match itself {
            Some((_, lines)) => lines.clone(),
            None => self.reference()?,
        };
        let judge = |watch: &mut Option<Watch>, now: &[f64]| {
            watch.as_mut().map_or(Verdict::Steady, |watch| watch.judge(now))
        };
        let Verdict::Jumped { sigmas } = judge(&mut self.watch, &now) else { return Ok(None) };
        let noticed = self.stage.seconds();
        // A second look tells a lasting change from a passing disturbance.
        let again = self.reference()?;
        let lasting = judge(&mut self.watch, &again) != Verdict::Steady;
        if lasting {
            self.epoch += 1;
            self.learn()?;
        }
        let core = self.plan.reference.map_or(0, |reference| reference.asker.0);
        let (kind, then) = if lasting {
            ("base changed", "the new values were learnt and the round done again")
        } else {
            ("disturbed", "it came back, and the round was done again")
        };
        Ok(Some(DriftEvent {
            at_s: noticed,
            core,
            kind: kind.to_owned(),
            what: format!(
                "the reference pair's line latencies ({}) moved by {sigmas:.0} standard \
                 deviations; {then}",
                self.plan.options.kind.state_name()
            ),
            dropped_samples: 0,
            repaired_ms: lasting.then(|| (self.stage.seconds() - noticed) * 1e3),
        }))
    }
}

/// Where the series of each ordered pair is.
pub(super) fn places(series: &[PairSeries]) -> BTreeMap<(CoreId, CoreId), usize> {
    series.iter().enumerate().map(|(at, pair)| ((pair.owner, pair.asker), at)).collect()
}
