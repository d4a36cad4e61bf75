//! What all benchmarks share: the cores, the seed, the machine's state before and after, what was
//! missing, progress, and the wish to stop.

use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use isochrone_host::{SysRoot, fingerprint, machine_state, this_machine};
use isochrone_machine::{Machine, MachineState};
use isochrone_os::affinity::CoreSet;
use isochrone_probe::awake::Awake;
use isochrone_probe::watch::Watch as _;
use isochrone_stats::derive_seed;
use isochrone_units::{CoreId, Reading};
use serde::Serialize;

use super::series::{Series, Turns};
use crate::args::{CommonArgs, Share, parse_cores};
use crate::output::Terminal;
use crate::progress::{Interrupt, Progress};
use crate::run::atlas::{self, Found};
use isochrone_host::{Disturbance, Meter};

/// What stands at the head of every file.
#[derive(Debug, Serialize)]
pub(crate) struct Head {
    pub(crate) bench: &'static str,
    pub(crate) reading: Reading,
    pub(crate) version: &'static str,
    /// False where the run was interrupted.
    pub(crate) complete: bool,
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
    pub(crate) fn words(&self) -> String {
        let share = |share: Option<f64>| share.map_or("?".into(), isochrone_report::fmt::percent);
        let ending = if self.complete { "" } else { "; interrupted: incomplete" };
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
    machine: Machine,
    head: Head,
    interrupt: Interrupt,
    progress: Progress,
    meter: Option<Meter>,
    begin: Instant,
    streams: u64,
    awake: Option<Awake>,
}

impl<'a> Setting<'a> {
    pub(crate) fn new(
        bench: &'static str,
        common: &'a CommonArgs,
        terminal: &'a Terminal,
    ) -> Result<Self> {
        let root = SysRoot::live();
        let machine = this_machine(&root).context("this machine cannot be described")?;
        let state = machine_state(&root);
        let (fingerprint, _) = fingerprint(&machine, &state);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let seed =
            common.seed.unwrap_or_else(|| now.as_secs() << 20 ^ u64::from(now.subsec_nanos()));
        let interrupt = Interrupt::install();
        let head = Head {
            bench,
            reading: Reading::Measured,
            version: env!("CARGO_PKG_VERSION"),
            complete: false,
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
            machine,
            head,
            progress: Progress::new(interrupt.clone()),
            interrupt,
            meter: Meter::start(),
            begin: Instant::now(),
            streams: 0,
            awake: None,
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
        let allowed = CoreSet::of_this_thread()?;
        let cores: Vec<CoreId> = match &self.common.cores {
            Some(list) => {
                parse_cores(list).map_err(anyhow::Error::msg)?.into_iter().map(CoreId).collect()
            }
            None => allowed.iter().take(most).collect(),
        };
        for core in &cores {
            ensure!(
                allowed.contains(*core),
                "--cores: this process may not run on core {}; choose another",
                core.0
            );
        }
        self.head.cores = cores.iter().map(|core| core.0).collect();
        if self.common.host.awake && self.awake.is_none() {
            self.awake = Some(Awake::start(&cores));
        }
        Ok(cores)
    }

    /// This machine's atlas.
    pub(crate) fn atlas(&mut self, scratch: &Path) -> Result<Found> {
        let named = self.common.host.atlas.as_deref();
        atlas::find(named, scratch, self.terminal)
    }

    /// Measures an atlas anew if this one has not what these cores wear now: pools that cannot tell
    /// what cores wear would be compared with themselves.
    pub(crate) fn refresh(
        &mut self,
        found: &mut Found,
        cores: &[CoreId],
        scratch: &Path,
    ) -> Result<()> {
        self.step("do the cores see what the atlas says?");
        if let Some(new) = atlas::fresh(found, cores, scratch, self.terminal)? {
            *found = new;
        }
        Ok(())
    }

    /// Where words go.
    pub(crate) fn terminal(&self) -> &'a Terminal {
        self.terminal
    }

    /// Notes what is missing.
    pub(crate) fn miss(&mut self, what: &str) {
        self.head.missing.push(what.to_owned());
    }

    /// Whether the user still wants it.
    pub(crate) fn keep_going(&self) -> bool {
        !self.interrupt.is_set()
    }

    /// The same for who waits for something long.
    pub(crate) fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// Says what is going on, on a terminal.
    pub(crate) fn step(&mut self, words: &str) {
        self.progress.step(words);
    }

    /// Columns of the terminal.
    pub(crate) fn width(&self) -> u16 {
        u16::try_from(self.terminal.width).unwrap_or(80)
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
        let interrupt = self.interrupt.clone();
        let progress = &mut self.progress;
        let mut before = |words: &str| {
            progress.step(&format!("{what}, {words}"));
            !interrupt.is_set()
        };
        let turns = Turns { blocks, seed, before: &mut before };
        let interrupt = self.interrupt.clone();
        Series::take(arms, cost, turns, &mut |arm| match measure(arm) {
            Err(_) if interrupt.is_set() => Ok(None),
            result => result.map(Some),
        })
    }

    /// Ends it: the head of the file, where the file goes, and the terminal.
    pub(crate) fn end(mut self) -> (Head, Option<&'a PathBuf>, &'a Terminal) {
        self.awake = None;
        self.progress.finish();
        self.head.complete = self.keep_going();
        self.head.state_after = Some(machine_state(&SysRoot::live()));
        self.head.disturbance = Meter::since(self.meter.as_ref());
        self.head.seconds = self.begin.elapsed().as_secs_f64();
        (self.head, self.common.json.as_ref(), self.terminal)
    }
}
