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

#[derive(Clone, Debug)]
struct Flow {
    name: u32,
    demands: Vec<Demand>,
    /// Rate at which it may go by itself, 1 / ns.
    cap: f64,
    /// Its speed relative to others when all are held up alike: one over its lines.
    weight: f64,
    rate: f64,
    /// Part that is still to do.
    rest: f64,
}

/// Tasks under way over shared roofs, in virtual time.
#[derive(Clone, Debug)]
pub struct Fluid {
    /// Bytes a ns.
    roofs: Vec<f64>,
    /// What all tasks at their caps would ask, bytes a ns.
    asked: Vec<f64>,
    flows: Vec<Flow>,
    spare: Vec<Vec<Demand>>,
    now: f64,
    stale: bool,
    solver: Solver,
    solved: u64,
}

/// Working memory of the solver.
#[derive(Clone, Debug, Default)]
struct Solver {
    /// Of each roof what is left, and what the tasks that still speed up ask at speed 1.
    left: Vec<f64>,
    slope: Vec<f64>,
    full: Vec<u32>,
    users: Vec<Vec<u32>>,
    fixed: Vec<bool>,
    by_cap: Vec<(f64, u32)>,
}

/// Tasks that end within this are taken to end now, ns.
const SOON_NS: f64 = 1e-6;

impl Fluid {
    /// Nothing under way; roofs in GB/s, that is bytes a ns.
    #[must_use]
    pub fn new(roofs: Vec<f64>) -> Self {
        Self {
            asked: vec![0.0; roofs.len()],
            solver: Solver { users: vec![Vec::new(); roofs.len()], ..Solver::default() },
            roofs,
            flows: Vec::new(),
            spare: Vec::new(),
            now: 0.0,
            stale: false,
            solved: 0,
        }
    }

    /// An empty list to put demands in.
    pub fn list(&mut self) -> Vec<Demand> {
        self.spare.pop().unwrap_or_default()
    }

    /// A task begins. It takes `floor_ns` if nothing holds it up, and goes through `lines` lines.
    pub fn begin(&mut self, now: f64, name: u32, demands: Vec<Demand>, floor_ns: f64, lines: f64) {
        self.pass(now);
        let cap = 1.0 / floor_ns.max(1.0);
        for demand in &demands {
            self.asked[demand.roof as usize] += demand.bytes * cap;
        }
        let weight = 1.0 / lines.max(1.0);
        self.flows.push(Flow { name, demands, cap, weight, rate: cap, rest: 1.0 });
        self.stale = true;
    }

    /// A task ends.
    pub fn end(&mut self, now: f64, name: u32) {
        self.pass(now);
        let Some(at) = self.flows.iter().position(|flow| flow.name == name) else { return };
        let mut flow = self.flows.swap_remove(at);
        for demand in &flow.demands {
            let asked = &mut self.asked[demand.roof as usize];
            *asked = (*asked - demand.bytes * flow.cap).max(0.0);
        }
        flow.demands.clear();
        self.spare.push(flow.demands);
        if self.flows.is_empty() {
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
        for flow in &mut self.flows {
            flow.rest = (flow.rest - flow.rate * ns).max(0.0);
        }
        self.now = now;
    }

    /// The task that ends first if none begins or ends before, and when.
    pub fn next_end(&mut self) -> Option<(f64, u32)> {
        if self.stale {
            self.solve();
        }
        let mut best: Option<(f64, u32)> = None;
        for flow in &self.flows {
            let after = if flow.rest <= flow.rate * SOON_NS { 0.0 } else { flow.rest / flow.rate };
            let better =
                best.is_none_or(|(time, name)| after < time || (after <= time && flow.name < name));
            if better {
                best = Some((after, flow.name));
            }
        }
        best.map(|(after, name)| (self.now + after, name))
    }

    /// The rate of a task that is under way, of the whole in a ns.
    #[must_use]
    pub fn rate(&mut self, name: u32) -> Option<f64> {
        if self.stale {
            self.solve();
        }
        self.flows.iter().find(|flow| flow.name == name).map(|flow| flow.rate)
    }

    /// Bytes a ns that pass a roof now.
    #[must_use]
    pub fn load(&mut self, roof: usize) -> f64 {
        if self.stale {
            self.solve();
        }
        let of = |flow: &Flow| {
            let on = flow.demands.iter().filter(|demand| demand.roof as usize == roof);
            on.map(|demand| demand.bytes).sum::<f64>() * flow.rate
        };
        self.flows.iter().map(of).sum()
    }

    /// How often rates were worked out.
    #[must_use]
    pub const fn solved(&self) -> u64 {
        self.solved
    }

    fn solve(&mut self) {
        self.stale = false;
        self.solved += 1;
        let solver = &mut self.solver;
        solver.full.clear();
        for (roof, (asked, limit)) in (0_u32..).zip(self.asked.iter().zip(&self.roofs)) {
            if asked > limit {
                solver.full.push(roof);
            }
        }
        for flow in &mut self.flows {
            flow.rate = flow.cap;
        }
        if !solver.full.is_empty() {
            solver.fill(&mut self.flows, &self.roofs);
        }
    }
}

impl Solver {
    /// Raises the speed of all tasks together. Only roofs that all tasks at their caps would overload can
    /// ever be full, so only those are looked at.
    fn fill(&mut self, flows: &mut [Flow], roofs: &[f64]) {
        self.prepare(flows, roofs);
        let mut next_cap = 0;
        let mut unfixed = flows.len();
        while unfixed > 0 {
            let mut speed = f64::INFINITY;
            let mut tight = None;
            for &roof in &self.full {
                let (left, slope) = (self.left[roof as usize], self.slope[roof as usize]);
                if slope > 0.0 && left < speed * slope {
                    (speed, tight) = (left / slope, Some(roof));
                }
            }
            while next_cap < self.by_cap.len() && self.fixed[self.by_cap[next_cap].1 as usize] {
                next_cap += 1;
            }
            match (self.by_cap.get(next_cap), tight) {
                (Some(&(cap, flow)), tight) if tight.is_none() || cap <= speed => {
                    self.fix(flows, flow, cap);
                    unfixed -= 1;
                }
                (_, Some(roof)) => {
                    let users = std::mem::take(&mut self.users[roof as usize]);
                    for &flow in &users {
                        if !self.fixed[flow as usize] {
                            self.fix(flows, flow, speed);
                            unfixed -= 1;
                        }
                    }
                    self.users[roof as usize] = users;
                    self.slope[roof as usize] = 0.0;
                }
                (None, None) => break,
                (Some(_), None) => unreachable!("the first arm takes it"),
            }
        }
    }

    fn prepare(&mut self, flows: &[Flow], roofs: &[f64]) {
        self.left.clear();
        self.left.extend_from_slice(roofs);
        self.slope.clear();
        // What is not in `full` stays marked, so that its users are not gathered.
        self.slope.resize(roofs.len(), -1.0);
        for &roof in &self.full {
            self.slope[roof as usize] = 0.0;
            self.users[roof as usize].clear();
        }
        self.fixed.clear();
        self.fixed.resize(flows.len(), false);
        self.by_cap.clear();
        for (number, flow) in (0_u32..).zip(flows) {
            self.by_cap.push((flow.cap / flow.weight, number));
            for demand in &flow.demands {
                let slope = &mut self.slope[demand.roof as usize];
                if *slope >= 0.0 {
                    *slope += demand.bytes * flow.weight;
                    self.users[demand.roof as usize].push(number);
                }
            }
        }
        self.by_cap.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    }

    /// A task stays at this speed.
    fn fix(&mut self, flows: &mut [Flow], flow: u32, speed: f64) {
        self.fixed[flow as usize] = true;
        let flow = &mut flows[flow as usize];
        flow.rate = (speed * flow.weight).min(flow.cap);
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
