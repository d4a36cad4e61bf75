//! Which roofs a machine has, which bytes each counts, and what a task asks of them.
//!
//! | roof | counts | from |
//! |---|---|---|
//! | memory of a node | lines read, written and cleared, 64 bytes each | local bandwidth |
//! | link from socket to socket of a module | lines, as messages | near bandwidth |
//! | link from module to module, each way | all messages | far bandwidth, if that is its width |
//! | lines under way from module to module, each way | lines waited for, each for its latency | only if given |
//! | a switch, each way | all messages between it and its sockets | only if given |
//!
//! Bandwidths are what STREAM Triad reports, and it counts three lines where four move: a cache fetches a
//! line that it writes. So a roof is the reported number times what the recipe of a triad brings there.

use super::engine::Tally;
use super::fluid::Demand;
use super::legs::Legs;
use super::message::Direction;
use super::spec::{Distance, MAX_NODES, NumaSpec};
use crate::number::real;

/// Lines that STREAM Triad counts of those that it moves: two read, one written.
const TRIAD_COUNTED: f64 = 3.0;
/// Lines that it fetches: the written one too.
const TRIAD_FETCHED: f64 = 3.0;
/// Lines that it writes back.
const TRIAD_WRITTEN: f64 = 1.0;
/// Bytes of a line.
const LINE: f64 = 64.0;

/// The roofs of a machine, and how to ask for them.
#[derive(Clone, Debug)]
pub struct Roofs {
    nodes: usize,
    modules: usize,
    control: f64,
    data: f64,
    /// The first link between sockets, between modules, and the first switch; each follows the one before.
    near_at: u32,
    links_at: u32,
    switches_at: Option<u32>,
    windows_at: Option<u32>,
    /// The module of each node.
    module: Vec<u8>,
    limits: Vec<f64>,
    /// What one line takes a core, ns: the reader's node by the line's.
    line_ns: Vec<f64>,
    /// Lines that a core keeps in flight: the reader's node by the line's.
    window: Vec<f64>,
}

/// What a task asks for beside roofs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floor {
    /// Waiting for lines, if no roof holds it up, ns.
    pub lines_ns: f64,
    /// Lines that it keeps in flight: where their number differs by distance, the mean over the time that it waits for
    /// them one after another.
    pub window: f64,
}

impl Roofs {
    /// Those of a machine. `switch_limit` bounds each switch, each way, GB/s; `None`: only its links do.
    #[must_use]
    pub fn of(spec: &NumaSpec, switch_limit: Option<f64>) -> Self {
        let (nodes, modules) = (spec.nodes.len(), spec.modules());
        let (control, data) = (spec.bytes.control, spec.bytes.data);
        let triad = |distance: Distance| spec.bandwidth.triad[distance as usize];
        let counted = TRIAD_COUNTED * LINE;
        let memory = (TRIAD_FETCHED + TRIAD_WRITTEN) * LINE / counted;
        // Towards the reader: the lines; and far, the completions that switches send beside them.
        let near = TRIAD_FETCHED * data / counted;
        let far = (TRIAD_FETCHED * (data + control) + TRIAD_WRITTEN * control) / counted;
        let mut limits = vec![triad(Distance::Local).unwrap_or(f64::MAX) * memory; nodes];
        let near_at = index(limits.len());
        for (a, b) in (0..nodes).flat_map(|a| (0..nodes).map(move |b| (a, b))) {
            let gbs = match spec.distance(a, b) {
                Distance::Far => f64::MAX,
                distance => triad(distance).unwrap_or(f64::MAX),
            };
            limits.push(gbs * near);
        }
        let links_at = index(limits.len());
        let far = match spec.bandwidth.far.width {
            true => triad(Distance::Far).unwrap_or(f64::MAX) * far,
            false => f64::MAX,
        };
        limits.extend(std::iter::repeat_n(far, modules * modules));
        let switches_at = switch_limit.map(|_| index(limits.len()));
        if let Some(limit) = switch_limit {
            limits.extend(std::iter::repeat_n(limit, modules * 2));
        }
        let windows_at = spec.bandwidth.far.window.map(|lines| {
            let first = index(limits.len());
            limits.extend(std::iter::repeat_n(lines, modules * modules));
            first
        });
        let legs = Legs::of(spec);
        let pairs = || (0..nodes).flat_map(|a| (0..nodes).map(move |b| (a, b)));
        let small = |node: usize| u8::try_from(node).unwrap_or(0);
        let line_ns = pairs().map(|(a, b)| legs.read_ns(small(a), small(b))).collect();
        let window = pairs().map(|(a, b)| spec.outstanding[spec.distance(a, b) as usize]).collect();
        Self {
            nodes,
            modules,
            control,
            data,
            near_at,
            links_at,
            switches_at,
            windows_at,
            module: spec.nodes.iter().map(|node| node.module).collect(),
            limits,
            line_ns,
            window,
        }
    }

    /// GB/s of each roof, in the order of [`Demand::roof`].
    #[must_use]
    pub fn limits(&self) -> Vec<f64> {
        self.limits.clone()
    }

    /// The roof of the link between two modules.
    #[must_use]
    pub const fn link(&self, from: usize, to: usize) -> usize {
        self.links_at as usize + from * self.modules + to
    }

    /// Puts into `demands` what a task on a core of `node` asks for.
    pub fn ask(&self, node: usize, tally: &Tally, demands: &mut Vec<Demand>) -> Floor {
        let mut ask = |roof: u32, bytes: f64| {
            if bytes > 0.0 {
                demands.push(Demand { roof, bytes });
            }
        };
        let (mut one_by_one, mut lines_ns) = (0.0, 0.0);
        let mut under_way = [0.0; MAX_NODES];
        for at in 0..self.nodes {
            // The system clears pages that are touched for the first time, where they are.
            let cleared = if at == node { tally.first_touched } else { 0 };
            let lines = tally.memory_reads[at] + tally.memory_writes[at] + cleared;
            ask(index(at), real(lines) * LINE);
            let pair = node * self.nodes + at;
            let waited = real(tally.waited[at]) * self.line_ns[pair];
            under_way[usize::from(self.module[at])] += waited;
            one_by_one += waited;
            lines_ns += waited / self.window[pair];
        }
        for (at, lines) in tally.near.iter().enumerate() {
            ask(self.near_at + index(at), real(*lines) * self.data);
        }
        for (at, [control, data]) in tally.links.iter().enumerate() {
            ask(self.links_at + index(at), real(*control) * self.control + real(*data) * self.data);
        }
        if let Some(first) = self.switches_at {
            let size = super::MessageBytes { control: self.control, data: self.data };
            for (module, traffic) in tally.traffic.iter().enumerate() {
                for way in Direction::ALL {
                    let roof = first + index(2 * module) + way as u32;
                    ask(roof, traffic.bytes(&size, way, |_| true));
                }
            }
        }
        if let Some(first) = self.windows_at {
            let own = usize::from(self.module[node]);
            for (home, ns) in
                under_way[..self.modules].iter().enumerate().filter(|(m, _)| *m != own)
            {
                ask(first + index(home * self.modules + own), *ns);
            }
        }
        let own = self.window[node * self.nodes + node];
        let window = if lines_ns > 0.0 { one_by_one / lines_ns } else { own };
        Floor { lines_ns, window }
    }
}

fn index(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
