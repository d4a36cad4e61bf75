//! Tasks that share roofs: how fast each goes while nothing begins or ends.
//!
//! A task keeps a window of lines in flight. A line takes its latency, and a delay at every full roof on its way, in
//! proportion to what it puts there; so a full roof holds those up that use it much more than those that use it
//! little. Where queues are asked for, it waits below full roofs, too. [`rates`] has the conditions and their source.

mod bounds;
mod flow;
mod positive;
mod rates;

pub use flow::{Demand, Need};

use flow::Flow;
use rates::Rates;

/// Tasks under way over shared roofs, in virtual time.
#[derive(Clone, Debug)]
pub struct Fluid {
    /// Bytes a ns.
    roofs: Vec<f64>,
    /// What all tasks at their caps would ask, bytes a ns.
    asked: Vec<f64>,
    /// By name.
    flows: Vec<Flow>,
    /// Names of those under way, in order.
    under_way: Vec<u32>,
    spare: Vec<Vec<Demand>>,
    now: f64,
    stale: bool,
    /// The task that ends first at the rates that hold, with its time.
    next: Option<(f64, u32)>,
    rates: Rates,
    solved: u64,
}

/// Tasks that end within this are taken to end now, ns.
const SOON_NS: f64 = 1e-6;

impl Fluid {
    /// Nothing under way; roofs in GB/s, that is bytes a ns.
    #[must_use]
    pub fn new(roofs: Vec<f64>) -> Self {
        Self {
            asked: vec![0.0; roofs.len()],
            rates: Rates::new(roofs.len()),
            roofs,
            flows: Vec::new(),
            under_way: Vec::new(),
            spare: Vec::new(),
            now: 0.0,
            stale: false,
            next: None,
            solved: 0,
        }
    }

    /// With queues before roofs that are not full.
    #[must_use]
    pub const fn with_queues(mut self) -> Self {
        self.rates.queues = true;
        self
    }

    /// An empty list to put demands in.
    pub fn list(&mut self) -> Vec<Demand> {
        self.spare.pop().unwrap_or_default()
    }

    /// A task begins, with at most one demand for each roof. A name is one task's at a time, and
    /// small: there is a place for each.
    pub fn begin(&mut self, now: f64, name: u32, demands: Vec<Demand>, need: Need) {
        self.pass(now);
        let cap = 1.0 / need.arithmetic_ns.max(need.waiting_ns).max(1.0);
        for demand in &demands {
            self.asked[demand.roof as usize] += demand.bytes * cap;
        }
        let at = name as usize;
        if self.flows.len() <= at {
            self.flows.resize(at + 1, Flow::default());
        }
        let window = need.window.max(1.0);
        let latencies = need.waiting_ns.max(0.0) * window;
        self.flows[at] = Flow { demands, cap, latencies, window, rate: cap, rest: 1.0 };
        let place = self.under_way.partition_point(|other| *other < name);
        self.under_way.insert(place, name);
        self.stale = true;
    }

    /// A task ends.
    pub fn end(&mut self, now: f64, name: u32) {
        self.pass(now);
        let Ok(place) = self.under_way.binary_search(&name) else { return };
        self.under_way.remove(place);
        let flow = &mut self.flows[name as usize];
        let mut demands = std::mem::take(&mut flow.demands);
        for demand in &demands {
            let asked = &mut self.asked[demand.roof as usize];
            *asked = (*asked - demand.bytes * flow.cap).max(0.0);
        }
        demands.clear();
        self.spare.push(demands);
        if self.under_way.is_empty() {
            // Rounding does not pile up over a run.
            self.asked.fill(0.0);
        }
        self.stale = true;
    }

    /// Time goes on to `now` at the rates that hold.
    fn pass(&mut self, now: f64) {
        let ns = now - self.now;
        if ns <= 0.0 {
            return;
        }
        if self.stale {
            self.solve();
        }
        for name in &self.under_way {
            let flow = &mut self.flows[*name as usize];
            flow.rest = (flow.rest - flow.rate * ns).max(0.0);
        }
        self.now = now;
        self.next = None;
    }

    /// The task that ends first if none begins or ends before, and when.
    pub fn next_end(&mut self) -> Option<(f64, u32)> {
        if self.stale {
            self.solve();
        }
        if self.next.is_some() {
            return self.next;
        }
        let mut best: Option<(f64, u32)> = None;
        for name in &self.under_way {
            let flow = &self.flows[*name as usize];
            let after = if flow.rest <= flow.rate * SOON_NS { 0.0 } else { flow.rest / flow.rate };
            let better =
                best.is_none_or(|(time, first)| after < time || (after <= time && *name < first));
            if better {
                best = Some((after, *name));
            }
        }
        self.next = best.map(|(after, name)| (self.now + after, name));
        self.next
    }

    /// The rate of a task that is under way, of the whole in a ns.
    #[must_use]
    pub fn rate(&mut self, name: u32) -> Option<f64> {
        if self.stale {
            self.solve();
        }
        self.under_way.binary_search(&name).is_ok().then(|| self.flows[name as usize].rate)
    }

    /// How many times longer a task under way takes now than if nothing held it up.
    pub fn slowdown(&mut self, name: u32) -> Option<f64> {
        let rate = self.rate(name)?;
        Some(self.flows[name as usize].cap / rate)
    }

    /// Bytes a ns that pass a roof now.
    #[must_use]
    pub fn load(&mut self, roof: usize) -> f64 {
        if self.stale {
            self.solve();
        }
        let of = |name: &u32| {
            let flow = &self.flows[*name as usize];
            let on = flow.demands.iter().filter(|demand| demand.roof as usize == roof);
            on.map(|demand| demand.bytes).sum::<f64>() * flow.rate
        };
        self.under_way.iter().map(of).sum()
    }

    /// How often rates were worked out.
    #[must_use]
    pub const fn solved(&self) -> u64 {
        self.solved
    }

    fn solve(&mut self) {
        self.stale = false;
        self.next = None;
        self.solved += 1;
        self.rates.solve(&mut self.flows, &self.under_way, &self.asked, &self.roofs);
    }
}

#[cfg(test)]
mod tests;
