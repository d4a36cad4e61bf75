//! All lines and all cores, without time: what happens at an event, and which events follow.
//!
//! The engine gives each event a time. The tests take them in every order.

use super::copies::Asked;
use super::legs::Legs;
use super::line::LineState;
use super::message::{Change, Core, Effect, Kind, Message, Outbox, State};
use super::program::{Program, Step, Touch};
use super::rules::Rules;

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Event {
    /// A core comes to its next step.
    Begin(Core),
    /// It has used what it has at hand.
    Perform {
        /// The core.
        core: Core,
        /// Accesses to its own cache that took time.
        local: u32,
    },
    /// It asks for the next line that it lacks.
    Issue {
        /// The core.
        core: Core,
        /// It is the first of several.
        first: bool,
    },
    /// Its poll finds that the line is gone.
    Poll(Core),
    /// It asks for a line that it will wait for soon.
    Ahead {
        /// The core.
        core: Core,
        /// The line.
        line: u32,
        /// How many loads before this one are on their way.
        nth: u16,
    },
    /// A message about a line arrives.
    Arrive {
        /// The line.
        line: u32,
        /// The message.
        message: Message,
    },
}

/// What a core is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Phase {
    /// Between two events of its own.
    #[default]
    Busy,
    /// Fetches lines, those of [`CoreState::missing`].
    Fetching {
        /// How many were asked for.
        asked: usize,
        /// How many came.
        came: usize,
        /// It asks for the next before the last has come.
        streams: bool,
    },
    /// The polled line is on its way.
    Polling,
    /// The polled line is at hand and its word is not what is waited for: a parked program counter.
    Parked,
    /// Has done all steps.
    Ended,
}

/// One core. Its lists keep their memory from step to step, and are empty where the core is not at what they are for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct CoreState {
    step: usize,
    phase: Phase,
    /// Lines that it had when it came to its step, fit for it.
    ready: Vec<u32>,
    /// Lines that nobody gets before the step is done: those that it has and writes. A line that the
    /// step before wrote as well stays held between the two, since both stores leave the store buffer
    /// together.
    held: Vec<u32>,
    /// While it fetches: the lines that it lacks, in order.
    missing: Vec<Touch>,
    /// Those asked for that are on their way for an earlier claim: they are asked for again then.
    blocked: Vec<Touch>,
}

impl CoreState {
    /// Before its first step.
    fn begin(&mut self) {
        (self.step, self.phase) = (0, Phase::Busy);
        self.ready.clear();
        self.held.clear();
        self.missing.clear();
        self.blocked.clear();
    }
}

/// How cores pace their requests; a matter of costs, so the engine's.
pub(super) trait Pace {
    /// Whether a core asks for these lines without waiting in between.
    fn streams(&self, lines: &[LineState], core: Core, missing: &[Touch]) -> bool;
    /// Whether loads of polls that follow one another overlap.
    fn overlaps(&self) -> bool;
}

/// What the world's rules are.
#[derive(Clone, Copy)]
pub(super) struct Setting<'a> {
    pub(super) rules: &'a Rules,
    pub(super) program: &'a Program,
    pub(super) pace: &'a dyn Pace,
}

/// Everything that is simulated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) lines: Vec<LineState>,
    cores: Vec<CoreState>,
    /// Snoops that wait until a core lets go of a line.
    deferred: Vec<(u32, Message)>,
    /// Memory for the next list of held lines; always empty.
    spare: Vec<u32>,
}

/// Messages about one line, as events that follow.
struct Following<'a> {
    line: u32,
    events: &'a mut Vec<Event>,
}

impl Outbox for Following<'_> {
    fn send(&mut self, message: Message) {
        self.events.push(Event::Arrive { line: self.line, message });
    }
}

/// Polls whose loads may be on their way at once: what a core's ten line-fill buffers hold.
const AHEAD: usize = 10;

impl World {
    /// Lines that nobody has, and no cores yet.
    pub(super) fn new(lines: u32) -> Self {
        Self {
            lines: vec![LineState::default(); lines as usize],
            cores: Vec::new(),
            deferred: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Takes all lines from everybody.
    pub(super) fn clear(&mut self) {
        let nobody = LineState::default();
        self.lines.iter_mut().for_each(|line| line.clone_from(&nobody));
    }

    /// Puts every core before its first step.
    pub(super) fn begin(&mut self, program: &Program) {
        self.cores.resize_with(program.cores.len(), CoreState::default);
        self.cores.iter_mut().for_each(CoreState::begin);
        self.deferred.clear();
    }

    /// The step that a core is at; all of them if it has ended.
    pub(super) fn step_of(&self, core: usize) -> usize {
        self.cores[core].step
    }

    /// Whether a core has done all.
    pub(super) fn has_ended(&self, core: usize) -> bool {
        self.cores[core].phase == Phase::Ended
    }

    /// Whether somebody is being given a line for itself.
    pub(super) fn is_owning(&self, line: u32) -> bool {
        self.lines[line as usize].home.is_owning()
    }

    /// How long a core waits before it asks for its next missing line.
    pub(super) fn issue_delay(&self, legs: &Legs, core: Core, first: bool) -> u64 {
        let state = &self.cores[usize::from(core)];
        match state.phase {
            Phase::Fetching { asked, streams: true, .. } => {
                legs.pace_ps(&self.lines, core, state.missing[asked], first)
            }
            _ => 0,
        }
    }

    /// An event happens; what follows is added to `out`.
    pub(super) fn happen(&mut self, setting: Setting<'_>, event: Event, out: &mut Vec<Event>) {
        match event {
            Event::Begin(core) => self.begin_step(setting, core, out),
            Event::Perform { core, .. } => self.perform(setting, core, out),
            Event::Issue { core, .. } => self.issue(setting, core, out),
            Event::Poll(core) => self.poll(setting, core, out),
            Event::Ahead { core, line, .. } => {
                if self.will_poll(setting, core, line) {
                    self.read(line, core, out);
                }
            }
            Event::Arrive { line, message } => self.arrive(setting, line, message, out),
        }
    }

    fn begin_step(&mut self, setting: Setting<'_>, core: Core, out: &mut Vec<Event>) {
        let Self { lines, cores, .. } = self;
        let steps = &setting.program.cores[usize::from(core)];
        let state = &mut cores[usize::from(core)];
        let Some(step) = steps.get(state.step) else {
            state.phase = Phase::Ended;
            return;
        };
        state.phase = Phase::Busy;
        let before = state.step.checked_sub(1).map(|before| &steps[before]);
        let again = |line: u32| before.is_some_and(|before| before.uses(line));
        let mut local = match step {
            Step::Touch { private, .. } => *private,
            Step::Wait { .. } | Step::Drop { .. } | Step::Claim { .. } => 0,
        };
        state.ready.clear();
        state.held.clear();
        for (line, writes) in step.lines() {
            let copies = &lines[line as usize].copies;
            if !serves(copies.state(core), writes) {
                continue;
            }
            local += u32::from(!again(line));
            let waits = matches!(step, Step::Wait { until, .. } if !until.holds(copies.word(core)));
            if !waits {
                state.ready.push(line);
            }
            if writes {
                state.held.push(line);
            }
        }
        out.push(Event::Perform { core, local });
    }

    fn perform(&mut self, setting: Setting<'_>, core: Core, out: &mut Vec<Event>) {
        let state = &mut self.cores[usize::from(core)];
        let at_hand = !state.ready.is_empty();
        match &setting.program.cores[usize::from(core)][state.step] {
            Step::Wait { .. } if at_hand => {
                state.ready.clear();
                self.next_step(setting, core, out);
            }
            Step::Wait { .. } => {
                self.look_ahead(setting, core, out);
                self.poll(setting, core, out);
            }
            Step::Touch { lines, .. } => self.touch(setting, core, lines, out),
            Step::Claim { line, lines } => {
                for line in *line..line + lines {
                    self.write(line, core, Change::Keep, out);
                }
                self.next_step(setting, core, out);
            }
            Step::Drop { line } => {
                let mut following = Following { line: *line, events: out };
                let asked = self.lines[*line as usize].evict(core, &mut following);
                if !matches!(asked, Asked::Miss(_)) {
                    self.next_step(setting, core, out);
                }
            }
        }
    }

    /// Uses what is at hand and begins to fetch the rest.
    fn touch(&mut self, setting: Setting<'_>, core: Core, touches: &[Touch], out: &mut Vec<Event>) {
        let Self { lines, cores, .. } = self;
        let state = &mut cores[usize::from(core)];
        for &touch in touches {
            match touch.change {
                _ if !state.ready.contains(&touch.line) => state.missing.push(touch),
                Some(change) => {
                    lines[touch.line as usize].copies.write(core, change);
                }
                None => {}
            }
        }
        state.ready.clear();
        if state.missing.is_empty() {
            self.next_step(setting, core, out);
            return;
        }
        state.held.clear();
        self.release(setting, core, out);
        let state = &mut self.cores[usize::from(core)];
        let streams =
            state.missing.len() > 1 && setting.pace.streams(&self.lines, core, &state.missing);
        state.phase = Phase::Fetching { asked: 0, came: 0, streams };
        out.push(Event::Issue { core, first: true });
    }

    /// Asks for the next line that is missing.
    fn issue(&mut self, setting: Setting<'_>, core: Core, out: &mut Vec<Event>) {
        let CoreState { phase, missing, .. } = &mut self.cores[usize::from(core)];
        let Phase::Fetching { asked, streams, .. } = phase else { return };
        let touch = missing[*asked];
        *asked += 1;
        if *streams && *asked < missing.len() {
            out.push(Event::Issue { core, first: false });
        }
        self.fetch(setting, core, touch, out);
    }

    fn fetch(&mut self, setting: Setting<'_>, core: Core, touch: Touch, out: &mut Vec<Event>) {
        let outcome = match touch.change {
            Some(change) => self.write(touch.line, core, change, out),
            None => self.read(touch.line, core, out),
        };
        let state = &mut self.cores[usize::from(core)];
        match (outcome, state.phase) {
            (Asked::Hit(_), _) => self.fetched(setting, core, out),
            (Asked::Busy, Phase::Fetching { .. }) => state.blocked.push(touch),
            _ => {}
        }
    }

    /// A line has come to a core: for its step, or for a claim that the step waits for.
    fn came(&mut self, setting: Setting<'_>, core: Core, line: u32, out: &mut Vec<Event>) {
        let CoreState { phase, missing, blocked, .. } = &mut self.cores[usize::from(core)];
        let Phase::Fetching { asked, .. } = phase else { return };
        if let Some(at) = blocked.iter().position(|touch| touch.line == line) {
            let touch = blocked.swap_remove(at);
            self.fetch(setting, core, touch, out);
        } else if missing[..*asked].iter().any(|touch| touch.line == line) {
            self.fetched(setting, core, out);
        }
    }

    /// A line that a step lacked has come.
    fn fetched(&mut self, setting: Setting<'_>, core: Core, out: &mut Vec<Event>) {
        let CoreState { phase, missing, .. } = &mut self.cores[usize::from(core)];
        let Phase::Fetching { asked, came, streams } = phase else { return };
        *came += 1;
        if *came == missing.len() {
            missing.clear();
            self.next_step(setting, core, out);
        } else if !*streams && asked == came {
            out.push(Event::Issue { core, first: false });
        }
    }

    fn next_step(&mut self, setting: Setting<'_>, core: Core, out: &mut Vec<Event>) {
        let at = self.cores[usize::from(core)].step;
        let mut kept = std::mem::take(&mut self.spare);
        self.keep(&setting.program.cores[usize::from(core)][at..], core, &mut kept);
        let state = &mut self.cores[usize::from(core)];
        state.step += 1;
        state.phase = Phase::Busy;
        out.push(Event::Begin(core));
        let mut before = std::mem::replace(&mut state.held, kept);
        let lets_go = before.iter().any(|line| !state.held.contains(line));
        before.clear();
        self.spare = before;
        if lets_go {
            self.release(setting, core, out);
        }
    }

    /// Adds the lines that a core keeps from the first of its steps to the second: those that both write, if
    /// the second needs nothing else.
    fn keep(&self, steps: &[Step], core: Core, kept: &mut Vec<u32>) {
        let [Step::Touch { lines: first, .. }, Step::Touch { lines: second, .. }, ..] = steps
        else {
            return;
        };
        let written = |line| first.iter().any(|t| t.line == line && t.change.is_some());
        let is_kept = |touch: &Touch| {
            let copy = self.lines[touch.line as usize].copies.state(core);
            touch.change.is_some() && written(touch.line) && serves(copy, true)
        };
        if second.iter().all(is_kept) {
            kept.extend(second.iter().map(|touch| touch.line));
        }
    }

    /// Answers the snoops that waited for what a core no longer holds.
    fn release(&mut self, setting: Setting<'_>, core: Core, out: &mut Vec<Event>) {
        let held = &self.cores[usize::from(core)].held;
        let free = |entry: &(u32, Message)| entry.1.peer == core && !held.contains(&entry.0);
        if !self.deferred.iter().any(free) {
            return;
        }
        let freed: Vec<_> = self.deferred.iter().copied().filter(free).collect();
        self.deferred.retain(|entry| !freed.contains(entry));
        for (line, message) in freed {
            self.arrive(setting, line, message, out);
        }
    }

    /// Loads the polled line, or looks at its word.
    fn poll(&mut self, setting: Setting<'_>, core: Core, out: &mut Vec<Event>) {
        let Some(&Step::Wait { line, .. }) = self.step(setting, core) else { return };
        self.cores[usize::from(core)].phase = Phase::Polling;
        if let Asked::Hit(word) = self.read(line, core, out) {
            self.polled(setting, core, word, out);
        }
    }

    /// A poll has the word.
    fn polled(&mut self, setting: Setting<'_>, core: Core, word: u64, out: &mut Vec<Event>) {
        let Some(Step::Wait { until, .. }) = self.step(setting, core) else { return };
        if until.holds(word) {
            self.next_step(setting, core, out);
        } else {
            self.cores[usize::from(core)].phase = Phase::Parked;
        }
    }

    /// Begins to load the lines of the waits that follow at once, where the first of them begins.
    fn look_ahead(&self, setting: Setting<'_>, core: Core, out: &mut Vec<Event>) {
        if !setting.pace.overlaps() {
            return;
        }
        let steps = &setting.program.cores[usize::from(core)];
        let at = self.cores[usize::from(core)].step;
        let polled = |step: &Step| match step {
            Step::Wait { line, .. } => Some(*line),
            _ => None,
        };
        if at > 0 && polled(&steps[at - 1]).is_some() {
            return;
        }
        let run = || steps[at..].iter().map_while(polled).take(AHEAD);
        for (nth, (n, line)) in (1..).zip(run().enumerate().skip(1)) {
            if run().take(n).all(|before| before != line) {
                out.push(Event::Ahead { core, line, nth });
            }
        }
    }

    fn arrive(&mut self, setting: Setting<'_>, line: u32, message: Message, out: &mut Vec<Event>) {
        let snooped = matches!(message.kind, Kind::SnoopRead | Kind::SnoopOwn { .. });
        let peer = &self.cores.get(usize::from(message.peer));
        if snooped && peer.is_some_and(|peer| peer.held.contains(&line)) {
            self.deferred.push((line, message));
            return;
        }
        let state = &mut self.lines[line as usize];
        let mut following = Following { line, events: &mut *out };
        match state.deliver(setting.rules, message, &mut following) {
            Some(Effect::Read { core, .. } | Effect::Wrote { core })
                if self.waits_for(setting, core, line)
                    && self.cores[usize::from(core)].phase == Phase::Polling =>
            {
                self.poll(setting, core, out);
            }
            Some(Effect::Read { core, .. } | Effect::Wrote { core }) => {
                self.came(setting, core, line, out)
            }
            Some(Effect::Gave { core }) => self.next_step(setting, core, out),
            Some(Effect::Lost { core }) => {
                let parked = self.cores[usize::from(core)].phase == Phase::Parked;
                if parked && self.waits_for(setting, core, line) {
                    self.cores[usize::from(core)].phase = Phase::Polling;
                    out.push(Event::Poll(core));
                }
            }
            None => {}
        }
    }

    /// Whether a core is at a run of waits that still polls the line.
    fn will_poll(&self, setting: Setting<'_>, core: Core, line: u32) -> bool {
        let steps = &setting.program.cores[usize::from(core)];
        let run = steps.get(self.cores[usize::from(core)].step..).unwrap_or_default();
        let run = run.iter().take_while(|step| matches!(step, Step::Wait { .. }));
        run.take(AHEAD).any(|step| step.uses(line))
    }

    fn step<'a>(&self, setting: Setting<'a>, core: Core) -> Option<&'a Step> {
        setting.program.cores[usize::from(core)].get(self.cores[usize::from(core)].step)
    }

    fn waits_for(&self, setting: Setting<'_>, core: Core, line: u32) -> bool {
        matches!(self.step(setting, core), Some(&Step::Wait { line: polled, .. }) if polled == line)
    }

    fn read(&mut self, line: u32, core: Core, out: &mut Vec<Event>) -> Asked {
        self.lines[line as usize].read(core, &mut Following { line, events: out })
    }

    fn write(&mut self, line: u32, core: Core, change: Change, out: &mut Vec<Event>) -> Asked {
        self.lines[line as usize].write(core, change, &mut Following { line, events: out })
    }
}

/// Whether a copy serves a read or a write without a message.
fn serves(copy: State, writes: bool) -> bool {
    match copy {
        State::Invalid => false,
        State::Shared | State::Forward => !writes,
        State::Exclusive | State::Modified => true,
    }
}
