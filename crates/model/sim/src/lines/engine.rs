//! The engine: events in the order of virtual time.

use std::ops::{ControlFlow, Range};

use isochrone_machine::LineCosts;
use isochrone_stats as stats;

use super::legs::Legs;
use super::line::LineState;
use super::links::Links;
use super::message::{Core, Kind, Message, State, Want};
use super::program::{Program, Touch};
use super::queue::Queue;
use super::rules::{Lookup, Protocol, Rules};
use super::traffic::Traffic;
use super::world::{Event, Pace, Setting, World};
use crate::number::nanoseconds;

/// What differs from one seed to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jitter {
    /// The seed. Events at the same moment take place in an order that it decides.
    pub seed: u64,
    /// Cores begin anywhere within so many ns.
    pub begin_ns: f64,
    /// A poll notices that its line is gone anywhere within so many ns.
    pub poll_ns: f64,
}

impl Jitter {
    /// Events at the same moment in an order of their own; nothing is late.
    #[must_use]
    pub const fn seed(seed: u64) -> Self {
        Self { seed, begin_ns: 0.0, poll_ns: 0.0 }
    }
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// When each core had done its last step, ns after the common beginning.
    pub end_ns: Vec<f64>,
    /// When each core had done each of its steps, ns.
    pub steps_ns: Vec<Vec<f64>>,
    /// What went over the machine.
    pub traffic: Traffic,
}

impl Run {
    /// When the last core had done its last step, ns.
    #[must_use]
    pub fn makespan_ns(&self) -> f64 {
        self.end_ns.iter().copied().fold(0.0, f64::max)
    }
}

/// Some core waits for a word that nobody will write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "core {core} waits in its step {step} for what no core does; {waiting} of {cores} cores wait"
)]
pub struct Stuck {
    /// The first that waits.
    pub core: usize,
    /// In which step, from 0.
    pub step: usize,
    /// How many wait.
    pub waiting: usize,
    /// Of how many.
    pub cores: usize,
}

/// Lines of a simulated machine, and the cores that use them. The state of all lines stays from one run to
/// the next.
#[derive(Clone, Debug)]
pub struct Engine {
    rules: Rules,
    legs: Legs,
    links: Links,
    world: World,
    /// When the last answer to a request to own each line is dealt with.
    answered_ps: Vec<u64>,
    /// What a line's home takes for each reader, one after the other; 0 if all are served at once.
    reader_ps: u64,
    /// When the last reader of each line has it.
    read_ps: Vec<u64>,
    queue: Queue,
    /// What follows an event; empty between two.
    follow: Vec<Event>,
    now_ps: u64,
    /// Memory for what [`Self::makespans_ns`] begins with each time.
    left: Left,
    /// Events that took place in all runs.
    events: u64,
    /// After how many of them [`Self::makespans_ns`] ends.
    most_events: u64,
}

/// The state of all lines at the end of a run.
#[derive(Clone, Debug, Default)]
struct Left {
    lines: Vec<LineState>,
    links: Links,
    answered_ps: Vec<u64>,
    read_ps: Vec<u64>,
    now_ps: u64,
}

impl Engine {
    /// Simulated cores on the cores named of the machine with these costs; lines are in memory.
    #[must_use]
    pub fn new(costs: &LineCosts, cores: &[usize], protocol: Protocol, lookup: Lookup) -> Self {
        let rules = Rules::new(protocol, lookup, sockets(costs, cores));
        Self {
            legs: Legs::new(costs, cores, &rules),
            links: Links::of(&rules.sockets),
            rules,
            world: World::new(0),
            answered_ps: Vec::new(),
            reader_ps: 0,
            read_ps: Vec::new(),
            queue: Queue::default(),
            follow: Vec::new(),
            now_ps: 0,
            left: Left::default(),
            events: 0,
            most_events: u64::MAX,
        }
    }

    /// Serves readers of one line one after the other, each so long after the one before.
    #[must_use]
    pub fn with_readers_in_turn(mut self, reader_ns: f64) -> Self {
        self.reader_ps = crate::number::picoseconds(reader_ns);
        self
    }

    /// Has a request be on its way to a line's home for this part of the transfer that it asks for, and the answer for
    /// the rest. A core keeps its line for that long after another has asked for it.
    #[must_use]
    pub fn with_requests_on_their_way(mut self, part: f64) -> Self {
        self.legs.set_requests(part);
        self
    }

    /// Puts all lines back into memory, all words 0.
    pub fn reset(&mut self) {
        self.world.clear();
        self.links.clear();
        self.answered_ps.clear();
        self.read_ps.clear();
    }

    /// Events that took place so far: how much was simulated. One takes about as long as another.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// [`Self::makespans_ns`] simulates no further after so many events, those of earlier calls among them.
    pub const fn ends_after(&mut self, events: u64) {
        self.most_events = events;
    }

    /// The word of a line, wherever it is.
    #[must_use]
    pub fn word(&self, line: u32) -> u64 {
        self.world.lines.get(line as usize).map_or(0, LineState::word)
    }

    /// Runs a program from a common beginning.
    ///
    /// # Errors
    /// [`Stuck`] when a core waits for ever.
    ///
    /// # Panics
    /// If the program has more cores than the engine.
    pub fn run(&mut self, program: &Program, jitter: &Jitter) -> Result<Run, Stuck> {
        self.prepare(program);
        let mut ends_ps: Vec<Vec<u64>> =
            program.cores.iter().map(|steps| Vec::with_capacity(steps.len() + 1)).collect();
        let mut traffic = Traffic::default();
        let begin_ps = self.now_ps;
        let _never_ended = self.play(program, jitter, &mut traffic, u64::MAX, |core, _, time| {
            ends_ps[usize::from(core)].push(time);
            ControlFlow::Continue(())
        });
        self.stuck(program)?;
        // A core comes to its first step when it begins, and to the next when it has done one.
        let steps = |ends: &Vec<u64>| -> Vec<f64> {
            ends.iter().skip(1).map(|end| nanoseconds(end - begin_ps)).collect()
        };
        let steps_ns: Vec<_> = ends_ps.iter().map(steps).collect();
        let end = |ends: &Vec<f64>| ends.last().copied().unwrap_or(0.0);
        Ok(Run { end_ns: steps_ns.iter().map(end).collect(), steps_ns, traffic })
    }

    /// Leaves all lines as a run of the program leaves them, without times: what is caused last takes place first. Who
    /// has a line at the end, and its word, does not depend on the order where each line has one writer, and its last
    /// write is waited for.
    ///
    /// # Errors
    /// [`Stuck`] when a core waits for ever.
    ///
    /// # Panics
    /// If the program has more cores than the engine.
    pub fn settle(&mut self, program: &Program) -> Result<(), Stuck> {
        self.prepare(program);
        self.world.begin(program);
        let mut open = std::mem::take(&mut self.follow);
        open.extend((0..).zip(&program.cores).map(|(core, _)| Event::Begin(core)));
        while let Some(event) = open.pop() {
            self.events += 1;
            let setting = Setting { rules: &self.rules, program, pace: &Unhurried };
            self.world.happen(setting, event, &mut open);
        }
        self.follow = open;
        self.stuck(program)
    }

    /// [`Run::makespan_ns`] of one program under each of these seeds instead of that of `jitter`, every time on the
    /// lines as they are now. It ends where the sum of so many runs, from 1 on, exceeds what `most_ns` says of them,
    /// and has fewer numbers then: that others are shorter is known in less time. So it does after too many events
    /// ([`Self::ends_after`]).
    ///
    /// # Errors
    /// [`Stuck`] when a core waits for ever.
    ///
    /// # Panics
    /// If the program has more cores than the engine.
    pub fn makespans_ns(
        &mut self,
        program: &Program,
        jitter: &Jitter,
        seeds: Range<u64>,
        most_ns: impl Fn(usize) -> f64,
    ) -> Result<Vec<f64>, Stuck> {
        self.prepare(program);
        let several = seeds.end.saturating_sub(seeds.start) > 1;
        if several {
            self.keep_left();
        }
        let mut found = Vec::new();
        let mut sum_ns = 0.0;
        for seed in seeds {
            if !found.is_empty() {
                self.put_back();
            }
            let (begin_ps, mut last_ps) = (self.now_ps, self.now_ps);
            let left_ns = most_ns(found.len() + 1) - sum_ns;
            let most_events = self.most_events.saturating_sub(self.events);
            let flow = self.play(
                program,
                &Jitter { seed, ..*jitter },
                &mut Traffic::default(),
                most_events,
                |_, step, time| {
                    if step > 0 {
                        last_ps = time;
                    }
                    if nanoseconds(time - begin_ps) > left_ns {
                        return ControlFlow::Break(());
                    }
                    ControlFlow::Continue(())
                },
            );
            if flow.is_break() {
                break;
            }
            self.stuck(program)?;
            let ns = nanoseconds(last_ps - begin_ps);
            sum_ns += ns;
            found.push(ns);
        }
        Ok(found)
    }

    fn keep_left(&mut self) {
        self.left.lines.clone_from(&self.world.lines);
        self.left.links.clone_from(&self.links);
        self.left.answered_ps.clone_from(&self.answered_ps);
        self.left.read_ps.clone_from(&self.read_ps);
        self.left.now_ps = self.now_ps;
    }

    fn put_back(&mut self) {
        self.world.lines.clone_from(&self.left.lines);
        self.links.clone_from(&self.left.links);
        self.answered_ps.clone_from(&self.left.answered_ps);
        self.read_ps.clone_from(&self.left.read_ps);
        self.now_ps = self.left.now_ps;
    }

    /// Makes room for a program.
    fn prepare(&mut self, program: &Program) {
        assert!(program.cores.len() <= self.rules.cores(), "more programs than cores");
        let lines = (program.lines() as usize).max(self.world.lines.len());
        self.world.lines.resize_with(lines, LineState::default);
        self.answered_ps.resize(lines, 0);
        self.read_ps.resize(lines, 0);
        self.legs.note(program);
    }

    /// Runs a program that there is room for from a common beginning, for so many events at most. `watch` is told when
    /// a core comes to which of its steps, and may end it.
    fn play(
        &mut self,
        program: &Program,
        jitter: &Jitter,
        traffic: &mut Traffic,
        most_events: u64,
        mut watch: impl FnMut(Core, usize, u64) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.world.begin(program);
        self.queue.clear();
        let mut random = stats::rng(stats::derive_seed(jitter.seed, 1));
        let begin_ps = self.now_ps;
        let mut turn = 0_u64;
        let mut draw = |span_ns: f64| {
            let late_ps = if span_ns > 0.0 {
                crate::number::picoseconds(stats::uniform(&mut random) * span_ns)
            } else {
                0
            };
            turn += 1;
            (late_ps, stats::Rng::next_u64(&mut random) << 32 | turn & 0xffff_ffff)
        };
        for (core, _) in (0..).zip(&program.cores) {
            let (late_ps, order) = draw(jitter.begin_ns);
            self.queue.push(begin_ps + late_ps, order, Event::Begin(core));
        }
        let mut follow = std::mem::take(&mut self.follow);
        let mut flow = ControlFlow::Continue(());
        let end = self.events.saturating_add(most_events);
        while let Some((time, event)) = self.queue.pop() {
            if self.events == end {
                flow = ControlFlow::Break(());
                break;
            }
            self.events += 1;
            self.now_ps = time;
            if let Event::Begin(core) = event {
                flow = watch(core, self.world.step_of(usize::from(core)), time);
                if flow.is_break() {
                    break;
                }
            }
            self.happen(program, event, &mut follow);
            for event in follow.drain(..) {
                let poll = if let Event::Poll(_) = event { jitter.poll_ns } else { 0.0 };
                let (late_ps, order) = draw(poll);
                let delay = self.delay(event, traffic);
                self.queue.push(time + delay + late_ps, order, event);
            }
        }
        self.follow = follow;
        flow
    }

    fn happen(&mut self, program: &Program, event: Event, follow: &mut Vec<Event>) {
        let setting = Setting { rules: &self.rules, program, pace: &self.legs };
        self.world.happen(setting, event, follow);
    }

    /// How long it takes until an event takes place.
    fn delay(&mut self, event: Event, traffic: &mut Traffic) -> u64 {
        match event {
            Event::Begin(_) | Event::Poll(_) => 0,
            Event::Perform { local, .. } => self.legs.local_ps * u64::from(local),
            Event::Issue { core, first } => self.world.issue_delay(&self.legs, core, first),
            Event::Ahead { nth, .. } => {
                self.legs.overlapped_ps.unwrap_or_default() * u64::from(nth)
            }
            Event::Arrive { line, message } => {
                let far = self.rules.socket(message.requester) != self.rules.socket(message.peer);
                traffic.count(message.kind, far);
                self.message_delay(line, message)
            }
        }
    }

    fn message_delay(&mut self, line: u32, message: Message) -> u64 {
        let Message { requester, peer, kind } = message;
        let kept = || self.world.lines[line as usize].home.is_owned_by_a_sharer();
        let leg = match (kind, self.legs.left_answer_ps()) {
            (Kind::Response { held: true, supplied: false, .. }, Some(left)) if kept() => left,
            _ => self.legs.of(line, message),
        };
        match kind {
            Kind::Request(want) => leg + self.request_ps(line, requester, want),
            Kind::Data { grade, .. } if peer != requester => {
                let leg = self.in_turn(line, leg, grade);
                let class = self.legs.class(requester, peer);
                let from = self.rules.socket(peer);
                let to = self.rules.socket(requester);
                leg + self.links.wait(from, to, self.now_ps, class.congestion_ps)
            }
            Kind::Response { held: true, .. } if self.world.is_owning(line) => {
                let last = &mut self.answered_ps[line as usize];
                let arrival = self.now_ps + leg;
                *last = arrival.max(*last + self.legs.sharer_ps(requester, peer));
                *last - self.now_ps
            }
            Kind::SnoopOwn { .. } => {
                self.answered_ps[line as usize] = 0;
                leg
            }
            _ => leg,
        }
    }

    /// How long a request is on its way beside what its line's neighbour adds.
    fn request_ps(&self, line: u32, requester: Core, want: Want) -> u64 {
        let home = &self.world.lines[line as usize].home;
        match want {
            Want::Read => self.legs.request_ps(requester, home.supplier(requester), false),
            Want::Own { has_copy } => {
                let way = |&other: &Core| self.legs.class(requester, other).transfer_ps;
                let farthest = home.others(requester).max_by_key(way);
                self.legs.request_ps(requester, farthest, has_copy)
            }
            Want::Put => 0,
        }
    }

    /// How long data that leave now are on their way, where readers are served one after the other.
    fn in_turn(&mut self, line: u32, leg: u64, grade: State) -> u64 {
        if self.reader_ps == 0 || grade == State::Modified {
            return leg;
        }
        let last = &mut self.read_ps[line as usize];
        *last = (self.now_ps + leg).max(*last + self.reader_ps);
        *last - self.now_ps
    }

    fn stuck(&self, program: &Program) -> Result<(), Stuck> {
        let cores = program.cores.len();
        let mut waiting = (0..cores).filter(|&core| !self.world.has_ended(core));
        let Some(core) = waiting.next() else { return Ok(()) };
        let step = self.world.step_of(core);
        Err(Stuck { core, step, waiting: waiting.count() + 1, cores })
    }
}

/// The socket of each core: cores between which lines cost what they cost beside their own memory are in
/// one.
fn sockets(costs: &LineCosts, cores: &[usize]) -> Vec<u16> {
    let mut sockets: Vec<u16> = Vec::with_capacity(cores.len());
    let mut next = 0;
    for (at, &core) in cores.iter().enumerate() {
        let near = |&other: &usize| costs.class(core, cores[other]) == costs.class(core, core);
        let socket = (0..at).find(near).map_or(next, |other| sockets[other]);
        next = next.max(socket + 1);
        sockets.push(socket);
    }
    sockets
}

/// Without times every line is asked for by itself.
struct Unhurried;

impl Pace for Unhurried {
    fn streams(&self, _: &[LineState], _: Core, _: &[Touch]) -> bool {
        false
    }

    fn overlaps(&self) -> bool {
        false
    }
}

impl Pace for Legs {
    fn streams(&self, lines: &[LineState], core: Core, missing: &[Touch]) -> bool {
        let one_by_one: u64 = missing.iter().map(|touch| self.fetch_ps(lines, core, *touch)).sum();
        let class = self.way(lines, core, missing[0]).unwrap_or_else(|| self.class(core, core));
        let each = class.line_ps + class.congestion_ps;
        class.start_ps + each * missing.len() as u64 <= one_by_one
    }

    fn overlaps(&self) -> bool {
        self.overlapped_ps.is_some()
    }
}

impl Legs {
    /// The class between a core and the farthest that a line would come from, or be taken from, now.
    fn way(&self, lines: &[LineState], core: Core, touch: Touch) -> Option<super::legs::Class> {
        let line = &lines[touch.line as usize];
        let class = |peer| self.class(core, peer);
        match touch.change {
            Some(_) => line.home.others(core).map(class).max_by_key(|class| class.transfer_ps),
            None => line.supplier(core).map(class),
        }
    }

    /// What fetching a line costs now, if nobody else wants it.
    fn fetch_ps(&self, lines: &[LineState], core: Core, touch: Touch) -> u64 {
        let line = &lines[touch.line as usize];
        let kept = line.copies.state(core) != State::Invalid;
        let memory = if line.supplier(core).is_some() || kept { 0 } else { self.memory_ps(core) };
        let way =
            self.way(lines, core, touch).map_or(memory, |class| class.transfer_ps.max(memory));
        self.left_shared_ps.filter(|_| kept && touch.change.is_some()).unwrap_or(way)
    }

    /// How long after the one before it a line of several is asked for: so that the last has come when
    /// equation (1) says.
    pub(super) fn pace_ps(
        &self,
        lines: &[LineState],
        core: Core,
        touch: Touch,
        first: bool,
    ) -> u64 {
        let class = self.way(lines, core, touch).unwrap_or_else(|| self.class(core, core));
        let each = class.line_ps + class.congestion_ps;
        if first {
            (class.start_ps + each).saturating_sub(self.fetch_ps(lines, core, touch))
        } else {
            each
        }
    }
}
