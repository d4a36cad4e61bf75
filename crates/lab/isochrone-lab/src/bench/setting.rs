//! What all benchmarks share: the cores, the seed, the machine's state before and after, what was
//! missing, progress, and the wish to stop.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use isochrone_host::{SysRoot, fingerprint, machine_state, this_machine};
use isochrone_machine::{Machine, MachineState};
use isochrone_os::affinity::CoreSet;
use isochrone_probe::awake::Awake;
use isochrone_probe::watch::Watch as _;
use isochrone_stats::derive_seed;
use isochrone_units::{CoreId, Reading};
use serde::Serialize;

use super::budget::{LeftOut, Stop};
use crate::args::{CommonArgs, Share};
use isochrone_console::output::Terminal;
use isochrone_console::progress::{Interrupt, LastResort, Progress};
use isochrone_console::run::atlas::{self, Found, Limits};
use isochrone_console::turns::Series;
use isochrone_console::written::Place;
use isochrone_host::{Disturbance, Meter};

/// The part of the time in which it is found out whether cores see what the atlas says, and an atlas is measured anew
/// where they do not.
const LOOKING: f64 = 0.25;
/// What measuring an atlas anew takes, seconds.
const MAP_S: f64 = 10.0;

/// What stands at the head of every file.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Head {
    pub(crate) bench: &'static str,
    pub(crate) reading: Reading,
    pub(crate) version: &'static str,
    /// False where the run was interrupted, or its time was over before all was done.
    pub(crate) complete: bool,
    /// The time that it had; `null` where there was no limit.
    pub(crate) budget_s: Option<f64>,
    /// What there was no time for.
    pub(crate) left_out: Vec<LeftOut>,
    /// In which order arms ran, in words.
    pub(crate) order: &'static str,
    pub(crate) seed: u64,
    pub(crate) cores: Vec<u16>,
    /// Where small objects are placed, how near and what that may waste.
    pub(crate) near: Option<String>,
    pub(crate) waste: Option<String>,
    pub(crate) awake: bool,
    /// Title of the machine; no names of hosts.
    pub(crate) machine: String,
    pub(crate) fingerprint: Vec<String>,
    pub(crate) state_before: MachineState,
    pub(crate) state_after: Option<MachineState>,
    pub(crate) disturbance: Disturbance,
    pub(crate) started_unix_s: u64,
    pub(crate) seconds: f64,
    /// What could not be measured, one line each.
    pub(crate) missing: Vec<String>,
}

impl Head {
    /// One line below the tables.
    pub(crate) fn words(&self, interrupted: bool) -> String {
        let share = |share: Option<f64>| share.map_or("?".into(), isochrone_report::fmt::percent);
        let ending = if interrupted { "; interrupted: incomplete" } else { "" };
        format!(
            "measured on {}, cores {}, in {:.0} s, seed {}; others took {} of the processors, \
             the host {}{ending}",
            self.machine,
            isochrone_machine::spans(&self.cores),
            self.seconds,
            self.seed,
            share(self.disturbance.others),
            share(self.disturbance.steal),
        )
    }
}

/// One benchmark under way.
pub(crate) struct Setting<'a> {
    common: &'a CommonArgs,
    terminal: &'a Terminal,
    /// Where the figures go: opened before anything is measured.
    json: Option<Place>,
    /// The atlas that somebody named, until it is asked for.
    wished: Option<Found>,
    machine: Machine,
    head: Head,
    stop: Stop,
    resort: LastResort,
    progress: Progress,
    meter: Option<Meter>,
    begin: Instant,
    streams: u64,
    awake: Option<Awake>,
    /// Time that it took to look whether the atlas holds.
    looking: Duration,
    /// Cells that are to have a block in the time that is left, the one at hand among them.
    sharing: u32,
    /// How often anything was done that was asked for.
    done: u64,
}

/// What a benchmark ends with.
pub(crate) struct End<'a> {
    pub(crate) head: Head,
    /// Where the file goes.
    pub(crate) json: Option<Place>,
    pub(crate) terminal: &'a Terminal,
    pub(crate) interrupted: bool,
    /// Whether there was no time for anything that was asked for.
    pub(crate) in_vain: bool,
}

impl<'a> Setting<'a> {
    pub(crate) fn new(
        bench: &'static str,
        common: &'a CommonArgs,
        terminal: &'a Terminal,
    ) -> Result<Self> {
        let wished = atlas::wished(common.host.atlas.as_deref(), terminal)?;
        let [json] = Place::open_all([common.json.asked()])?;
        let root = SysRoot::live();
        let machine = this_machine(&root).context("this machine cannot be described")?;
        let state = machine_state(&root);
        let (fingerprint, _) = fingerprint(&machine, &state);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let seed =
            common.seed.unwrap_or_else(|| now.as_secs() << 20 ^ u64::from(now.subsec_nanos()));
        let interrupt = Interrupt::install();
        let (begin, budget) = (Instant::now(), common.time());
        let stop = Stop::new(interrupt.clone(), budget.map(|budget| begin + budget));
        let resort = LastResort::arm(&format!("isochrone-lab bench {bench}"), budget);
        let head = Head {
            bench,
            reading: Reading::Measured,
            version: env!("CARGO_PKG_VERSION"),
            complete: false,
            budget_s: budget.map(|budget| budget.as_secs_f64()),
            left_out: Vec::new(),
            order: "blocks: every arm once in random order, then once more backwards",
            seed,
            cores: Vec::new(),
            near: None,
            waste: None,
            awake: common.host.awake,
            machine: machine.title.clone(),
            fingerprint,
            state_before: state,
            state_after: None,
            disturbance: Disturbance::default(),
            started_unix_s: now.as_secs(),
            seconds: 0.0,
            missing: Vec::new(),
        };
        Ok(Self {
            common,
            terminal,
            json,
            wished,
            machine,
            head,
            progress: Progress::new(interrupt),
            stop,
            resort,
            meter: Meter::start(),
            begin,
            streams: 0,
            awake: None,
            looking: Duration::ZERO,
            sharing: 1,
            done: 0,
        })
    }

    /// Notes how small objects are placed.
    #[must_use]
    pub(crate) fn placed(mut self, near: Share, waste: Share) -> Self {
        self.head.near = Some(near.to_string());
        self.head.waste = Some(waste.to_string());
        self
    }

    /// The machine.
    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }

    /// A seed that nothing else in this run has.
    pub(crate) fn seed(&mut self) -> u64 {
        self.streams += 1;
        derive_seed(self.head.seed, self.streams)
    }

    /// The cores that were asked for, or the first `most` that this process may use; they are
    /// kept awake from here on, if that was asked for.
    pub(crate) fn cores(&mut self, most: usize) -> Result<Vec<CoreId>> {
        let cores: Vec<CoreId> = match &self.common.cores {
            Some(list) => list.usable()?,
            None => CoreSet::of_this_thread()?.iter().take(most).collect(),
        };
        self.head.cores = cores.iter().map(|core| core.0).collect();
        if self.common.host.awake && self.awake.is_none() {
            self.awake = Some(Awake::start(&cores));
        }
        Ok(cores)
    }

    /// This machine's atlas.
    pub(crate) fn atlas(&mut self, scratch: &Path) -> Result<Found> {
        if let Some(wished) = self.wished.take() {
            return Ok(wished);
        }
        let named = self.common.host.atlas.as_deref();
        let stop = self.stop.clone();
        atlas::find(named, scratch, self.terminal, &|| stop.is_set())
    }

    /// Measures an atlas anew if this one has not what these cores wear now: pools that cannot tell
    /// what cores wear would be compared with themselves. On a machine whose host moves cores all the time
    /// that would take all of the time: so it has a part of it.
    pub(crate) fn refresh(
        &mut self,
        found: &mut Found,
        cores: &[CoreId],
        scratch: &Path,
    ) -> Result<()> {
        let first = self.looking == Duration::ZERO;
        if !first && self.looking.as_secs_f64() > LOOKING * self.begin.elapsed().as_secs_f64() {
            return Ok(());
        }
        self.step("do the cores see what the atlas says?");
        let (begin, before, budget) = (Instant::now(), self.looking, self.head.budget_s);
        let stop = self.stop.clone();
        let stopped = || stop.is_set();
        let limits = Limits {
            time_for_a_map: &|| {
                let looking = (before + begin.elapsed()).as_secs_f64();
                budget.is_none_or(|budget| looking + MAP_S <= (LOOKING * budget).max(MAP_S))
            },
            stop: &stopped,
        };
        let fresh = atlas::fresh(found, cores, scratch, self.terminal, &limits)?;
        self.looking += begin.elapsed();
        if let Some(new) = fresh.found {
            *found = new;
        }
        if !fresh.worn {
            self.miss(
                "the host moves the cores: they see what no atlas has that was measured in time, and pools know \
                 little of their lines",
            );
        }
        Ok(())
    }

    /// Where words go.
    pub(crate) fn terminal(&self) -> &'a Terminal {
        self.terminal
    }

    /// Notes what is missing, once.
    pub(crate) fn miss(&mut self, what: &str) {
        if !self.head.missing.iter().any(|known| known == what) {
            self.head.missing.push(what.to_owned());
        }
    }

    /// Whether there is time, and the user still wants it.
    pub(crate) fn keep_going(&self) -> bool {
        !self.stop.is_set()
    }

    /// The same for who waits for something long.
    pub(crate) fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// What is begun now has as much of the time that is left as this many others, itself among them.
    pub(crate) fn share_with(&mut self, cells: usize) {
        self.sharing = u32::try_from(cells).unwrap_or(u32::MAX).max(1);
    }

    /// The time for what was begun; `None` where there is no limit.
    pub(crate) fn share(&self) -> Option<Duration> {
        Some(self.stop.left()? / self.sharing)
    }

    /// Notes how many blocks something has, of those that were asked for.
    pub(crate) fn made(&mut self, what: &str, blocks: usize, wanted: u32) {
        self.did(what, blocks, wanted, "blocks");
    }

    /// Notes how often something was done, of what was asked for.
    pub(crate) fn did(&mut self, what: &str, done: usize, wanted: u32, of: &'static str) {
        let done = u32::try_from(done).unwrap_or(u32::MAX);
        self.done += u64::from(done);
        if done < wanted {
            self.head.left_out.push(LeftOut { what: what.to_owned(), done, wanted, of });
        }
    }

    /// Says what is going on, on a terminal.
    pub(crate) fn step(&mut self, words: &str) {
        self.resort.doing(words);
        self.progress.step(words);
    }

    /// Columns of the terminal.
    pub(crate) fn width(&self) -> u16 {
        self.terminal.columns()
    }

    /// The same of what was asked for beside the comparison, and takes its time.
    pub(crate) fn beyond_budget(&mut self, words: &str) {
        self.resort.takes_its_time();
        self.step(words);
    }

    /// Lets arms take turns. Whole blocks before an interruption are kept; a run that fails
    /// because of it is no error.
    pub(crate) fn series(
        &mut self,
        arms: &[String],
        cost: &str,
        blocks: u32,
        what: &str,
        measure: &mut dyn FnMut(usize) -> Result<f64>,
    ) -> Result<Series> {
        let seed = self.seed();
        let mut series = Series::new(arms, cost);
        for _ in 0..blocks {
            if arms.is_empty() || !self.block(&mut series, seed, what, measure)? {
                break;
            }
        }
        self.made(what, series.blocks.len(), blocks);
        Ok(series)
    }

    /// Adds one block to a series, in an order by its seed; false where it was stopped.
    pub(crate) fn block(
        &mut self,
        series: &mut Series,
        seed: u64,
        what: &str,
        measure: &mut dyn FnMut(usize) -> Result<f64>,
    ) -> Result<bool> {
        let (stop, resort, progress) = (&self.stop, &self.resort, &mut self.progress);
        let mut before = |words: &str| {
            let words = format!("{what}, {words}");
            resort.doing(&words);
            progress.step(&words);
            !stop.is_set()
        };
        series.add(seed, &mut before, &mut |arm| match measure(arm) {
            Err(_) if stop.is_set() => Ok(None),
            result => result.map(Some),
        })
    }

    /// Ends it.
    pub(crate) fn end(mut self) -> End<'a> {
        self.awake = None;
        self.progress.finish();
        let interrupted = self.stop.is_interrupted();
        self.head.complete = !interrupted && self.head.left_out.is_empty();
        self.head.state_after = Some(machine_state(&SysRoot::live()));
        self.head.disturbance = Meter::since(self.meter.as_ref());
        self.head.seconds = self.begin.elapsed().as_secs_f64();
        let in_vain = self.done == 0 && !self.head.left_out.is_empty();
        End { head: self.head, json: self.json, terminal: self.terminal, interrupted, in_vain }
    }
}
