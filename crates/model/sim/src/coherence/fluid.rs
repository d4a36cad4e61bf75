//! Tasks that share roofs: how fast each goes while nothing begins or ends.
//!
//! A task asks so many bytes of each roof over its whole length, and cannot go faster than its own floor
//! allows. Rates are max-min fair: all tasks speed up alike, in lines a second, until a roof is full; those that
//! use it stop there, the others go on. That is what cores with equal numbers of lines in flight get.

/// What one task asks of one roof.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Which roof.
    pub roof: u32,
    /// Bytes, over the whole task.
    pub bytes: f64,
}

#[derive(Clone, Debug, Default)]
struct Flow {
    demands: Vec<Demand>,
    /// Rate at which it may go by itself, 1 / ns.
    cap: f64,
    /// Its speed relative to others when all are held up alike: one over its lines.
    weight: f64,
    rate: f64,
    /// Part that is still to do.
    rest: f64,
    /// Roofs that it asks for, a bit each; more than [`BITS`] share bits.
    roofs: [u64; 8],
}

/// Bits for roofs in a [`Flow`].
const BITS: usize = 512;

impl Flow {
    /// Whether it asks for a roof; `own_bits` says that no two roofs share a bit.
    fn asks(&self, roof: u32, own_bits: bool) -> bool {
        let may = self.roofs[roof as usize / 64 % 8] >> (roof % 64) & 1 == 1;
        may && (own_bits || self.demands.iter().any(|demand| demand.roof == roof))
    }

    /// Goes on at this speed. Rounding may leave nothing of a roof; a task goes on all the same.
    fn go_at(&mut self, speed: f64) {
        self.rate = (speed * self.weight).clamp(self.cap * SLOWEST, self.cap);
    }
}

/// Tasks under way over shared roofs, in virtual time.
#[derive(Clone, Debug)]
pub struct Fluid {
    /// Bytes a ns.
    roofs: Vec<f64>,
    /// What all tasks at their caps would ask, bytes a ns.
    asked: Vec<f64>,
    /// What all tasks would ask at speed 1, bytes a ns.
    slope: Vec<f64>,
    /// By name.
    flows: Vec<Flow>,
    /// Names of those under way, by the speed of their caps, then by name.
    under_way: Vec<u32>,
    spare: Vec<Vec<Demand>>,
    now: f64,
    stale: bool,
    /// The task that ends first at the rates that hold, with its time.
    next: Option<(f64, u32)>,
    solver: Solver,
    solved: u64,
}

/// Working memory of the solver.
#[derive(Clone, Debug, Default)]
struct Solver {
    /// Of each roof what is left, and what the tasks that still speed up ask at speed 1; negative where
    /// nobody can fill it.
    left: Vec<f64>,
    slope: Vec<f64>,
    full: Vec<u32>,
    fixed: Vec<bool>,
    /// Tasks that the roof that is full stops.
    held_up: Vec<u32>,
}

/// The part of its own speed that a task keeps whatever holds it up.
const SLOWEST: f64 = 1e-9;
/// Tasks that end within this are taken to end now, ns.
const SOON_NS: f64 = 1e-6;

impl Fluid {
    /// Nothing under way; roofs in GB/s, that is bytes a ns.
    #[must_use]
    pub fn new(roofs: Vec<f64>) -> Self {
        Self {
            asked: vec![0.0; roofs.len()],
            slope: vec![0.0; roofs.len()],
            solver: Solver::default(),
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

    /// An empty list to put demands in.
    pub fn list(&mut self) -> Vec<Demand> {
        self.spare.pop().unwrap_or_default()
    }

    /// A task begins. It takes `floor_ns` if nothing holds it up, and goes through `lines` lines. A name is
    /// one task's at a time, and small: there is a place for each.
    pub fn begin(&mut self, now: f64, name: u32, demands: Vec<Demand>, floor_ns: f64, lines: f64) {
        self.pass(now);
        let cap = 1.0 / floor_ns.max(1.0);
        let weight = 1.0 / lines.max(1.0);
        let mut roofs = [0; 8];
        for demand in &demands {
            let roof = demand.roof as usize;
            self.asked[roof] += demand.bytes * cap;
            self.slope[roof] += demand.bytes * weight;
            roofs[roof / 64 % 8] |= 1 << (roof % 64);
        }
        let at = name as usize;
        if self.flows.len() <= at {
            self.flows.resize(at + 1, Flow::default());
        }
        self.flows[at] = Flow { demands, cap, weight, rate: cap, rest: 1.0, roofs };
        let place = self.place(name);
        self.under_way.insert(place, name);
        self.stale = true;
    }

    /// Where a task stands among those under way.
    fn place(&self, name: u32) -> usize {
        let speed = |name: u32| {
            let flow = &self.flows[name as usize];
            flow.cap / flow.weight
        };
        let mine = speed(name);
        self.under_way
            .partition_point(|other| speed(*other).total_cmp(&mine).then(other.cmp(&name)).is_lt())
    }

    /// A task ends.
    pub fn end(&mut self, now: f64, name: u32) {
        self.pass(now);
        if self.flows.len() <= name as usize {
            return;
        }
        let place = self.place(name);
        if self.under_way.get(place) != Some(&name) {
            return;
        }
        self.under_way.remove(place);
        let flow = &mut self.flows[name as usize];
        let mut demands = std::mem::take(&mut flow.demands);
        for demand in &demands {
            let roof = demand.roof as usize;
            self.asked[roof] = (self.asked[roof] - demand.bytes * flow.cap).max(0.0);
            self.slope[roof] = (self.slope[roof] - demand.bytes * flow.weight).max(0.0);
        }
        demands.clear();
        self.spare.push(demands);
        if self.under_way.is_empty() {
            // Rounding does not pile up over a run.
            self.asked.fill(0.0);
            self.slope.fill(0.0);
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
        self.under_way.contains(&name).then(|| self.flows[name as usize].rate)
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
        let solver = &mut self.solver;
        solver.full.clear();
        for (roof, (asked, limit)) in (0_u32..).zip(self.asked.iter().zip(&self.roofs)) {
            if asked > limit {
                solver.full.push(roof);
            }
        }
        for name in &self.under_way {
            let flow = &mut self.flows[*name as usize];
            flow.rate = flow.cap;
        }
        if !solver.full.is_empty() {
            solver.fill(&mut self.flows, &self.under_way, &self.roofs, &self.slope);
        }
    }
}

impl Solver {
    /// Raises the speed of all tasks together. Only roofs that all tasks at their caps would overload can
    /// ever be full, so only those are looked at. `by_cap` has the tasks by the speed of their caps.
    fn fill(&mut self, flows: &mut [Flow], by_cap: &[u32], roofs: &[f64], slope: &[f64]) {
        self.left.clear();
        self.left.extend_from_slice(roofs);
        self.slope.clear();
        self.slope.resize(roofs.len(), -1.0);
        for &roof in &self.full {
            self.slope[roof as usize] = slope[roof as usize];
        }
        self.fixed.clear();
        self.fixed.resize(flows.len(), false);
        let own_bits = roofs.len() <= BITS;
        let mut next_cap = 0;
        let mut unfixed = by_cap.len();
        while unfixed > 0 {
            let mut speed = f64::INFINITY;
            let mut tight = None;
            for &roof in &self.full {
                let (left, slope) = (self.left[roof as usize], self.slope[roof as usize]);
                if slope > 0.0 && left < speed * slope {
                    (speed, tight) = (left / slope, Some(roof));
                }
            }
            while next_cap < by_cap.len() && self.fixed[by_cap[next_cap] as usize] {
                next_cap += 1;
            }
            let slowest = by_cap.get(next_cap).map(|name| {
                let flow = &flows[*name as usize];
                (flow.cap / flow.weight, *name)
            });
            match (slowest, tight) {
                (Some((cap, name)), tight) if tight.is_none() || cap <= speed => {
                    self.fix(flows, name, cap);
                    unfixed -= 1;
                }
                (_, Some(roof)) => {
                    self.held_up.clear();
                    let open = by_cap[next_cap..].iter().filter(|n| !self.fixed[**n as usize]);
                    self.held_up.extend(open.filter(|n| flows[**n as usize].asks(roof, own_bits)));
                    if self.held_up.len() == unfixed {
                        // Nobody is left whom the rest of any roof concerns.
                        self.held_up.iter().for_each(|n| flows[*n as usize].go_at(speed));
                        break;
                    }
                    for place in 0..self.held_up.len() {
                        self.fix(flows, self.held_up[place], speed);
                        unfixed -= 1;
                    }
                    // What rounding left of it is nobody's.
                    self.slope[roof as usize] = 0.0;
                }
                (None, None) => break,
                (Some(_), None) => unreachable!("the first arm takes it"),
            }
        }
    }

    /// A task stays at this speed.
    fn fix(&mut self, flows: &mut [Flow], name: u32, speed: f64) {
        self.fixed[name as usize] = true;
        let flow = &mut flows[name as usize];
        flow.go_at(speed);
        for demand in &flow.demands {
            let roof = demand.roof as usize;
            if self.slope[roof] >= 0.0 {
                self.slope[roof] = (self.slope[roof] - demand.bytes * flow.weight).max(0.0);
                self.left[roof] = (self.left[roof] - demand.bytes * flow.rate).max(0.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Random, Stream};

    fn demand(roof: u32, bytes: f64) -> Demand {
        Demand { roof, bytes }
    }

    #[test]
    fn one_task_alone_takes_its_floor_or_what_the_roof_gives() {
        let mut fluid = Fluid::new(vec![10.0]);
        fluid.begin(0.0, 1, vec![demand(0, 1000.0)], 50.0, 1.0);
        assert_eq!(fluid.next_end(), Some((100.0, 1)));
        fluid.end(100.0, 1);
        fluid.begin(100.0, 2, vec![demand(0, 1000.0)], 400.0, 1.0);
        assert_eq!(fluid.next_end(), Some((500.0, 2)));
    }

    #[test]
    fn who_needs_less_leaves_more() {
        // Two tasks share a roof of 10; one can only use 2.
        let mut fluid = Fluid::new(vec![10.0]);
        fluid.begin(0.0, 1, vec![demand(0, 1000.0)], 500.0, 10.0);
        fluid.begin(0.0, 2, vec![demand(0, 1000.0)], 1.0, 10.0);
        assert!((fluid.rate(1).expect("runs") - 0.002).abs() < 1e-12);
        assert!((fluid.rate(2).expect("runs") - 0.008).abs() < 1e-12);
        assert!((fluid.load(0) - 10.0).abs() < 1e-9);
        assert!((fluid.slowdown(2).expect("runs") - 125.0).abs() < 1e-9);
        // When the fast one is done, the other goes on as before.
        let (time, name) = fluid.next_end().expect("one");
        assert!((time - 125.0).abs() < 1e-9 && name == 2);
        fluid.end(time, name);
        assert!((fluid.next_end().expect("one").0 - 500.0).abs() < 1e-6);
    }

    #[test]
    fn a_task_that_ends_speeds_the_others_up() {
        let mut fluid = Fluid::new(vec![10.0]);
        for name in 0..4 {
            fluid.begin(0.0, name, vec![demand(0, 1000.0 * f64::from(name + 1))], 1.0, 1.0);
        }
        // Equal speeds of unequal tasks: 10 / (1 + 2 + 3 + 4) of a thousandth.
        assert!((fluid.rate(3).expect("runs") - 0.001).abs() < 1e-12);
        fluid.end(500.0, 0);
        assert!((fluid.rate(3).expect("runs") - 10.0 / 9000.0).abs() < 1e-12);
    }

    /// No roof is overloaded; and a task that is below its cap meets a full roof where no other task is
    /// faster.
    #[test]
    fn rates_are_max_min_fair() {
        for seed in 0..200 {
            let mut random = Random::new(seed, Stream::Noise);
            let roofs: Vec<f64> = (0..6).map(|_| 1.0 + 9.0 * random.uniform()).collect();
            let mut fluid = Fluid::new(roofs.clone());
            for name in 0..20 {
                let some = (0..6).filter(|_| random.chance(0.4)).collect::<Vec<u32>>();
                let demands = some.iter().map(|r| demand(*r, 100.0 * random.uniform())).collect();
                fluid.begin(
                    0.0,
                    name,
                    demands,
                    1.0 + 200.0 * random.uniform(),
                    1.0 + random.uniform(),
                );
            }
            fluid.next_end();
            let loads: Vec<f64> = (0..6).map(|roof| fluid.load(roof)).collect();
            let full = |roof: u32| loads[roof as usize] > roofs[roof as usize] * (1.0 - 1e-9);
            assert!(loads.iter().zip(&roofs).all(|(load, roof)| *load <= roof * (1.0 + 1e-9)));
            for flow in &fluid.flows {
                let speed = |f: &Flow| f.rate / f.weight;
                let held_up = flow.demands.iter().any(|d| {
                    let uses = |f: &&Flow| f.demands.iter().any(|other| other.roof == d.roof);
                    let mut others = fluid.flows.iter().filter(uses);
                    full(d.roof) && others.all(|o| speed(o) <= speed(flow) * (1.0 + 1e-6))
                });
                assert!(flow.rate >= flow.cap * (1.0 - 1e-9) || held_up, "seed {seed}: {flow:?}");
            }
        }
    }
}
