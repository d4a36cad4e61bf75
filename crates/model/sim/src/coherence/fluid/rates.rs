//! The rates of tasks that share roofs, and the delays at full roofs that make them.
//!
//! A task `i` with a window of `n` lines that are `D` ns of latency in all takes
//!
//! ```text
//! T = max(arithmetic, (D + sum over roofs r of W_r bytes_ir) / n),    W_r >= 0, and above 0 only where r is full
//! ```
//!
//! so a line is held up at a full roof in proportion to the bytes that it puts there. These are the conditions of
//! optimality of: maximise the sum of `n log x - x D` over `x = 1 / T <= 1 / arithmetic` under the roofs. The sum is
//! strictly concave, so the rates are unique; delays are its multipliers (Kelly, Maulloo, Tan 1998, proportional
//! fairness; Mo and Walrand 2000, whose window-based flow control has these fixed points).
//!
//! With queues, the delay of a byte is that of one service time and Poisson arrivals (M/D/1; Pollaczek and
//! Khinchine): a line waits for `rho / (2 (1 - rho))` of its own service, its bytes over the roof `L`, of which
//! `rho` is in use. So no roof is ever full, and this delay takes the place of the one above. A roof with a delay
//! `w` passes `L 2wL / (1 + 2wL)` where it passed `L`; that grows with `w`, so the dual problem stays convex.
//!
//! Delays are found by Newton's method on the dual problem, which is convex and has a dimension for each roof that
//! can be full. It begins from the delays of the time before: a task that begins or ends changes few of them.

use super::bounds::Bounded;
use super::flow::Flow;
use super::positive::solve_positive;

/// A roof is full, and not over its limit, to this part of it.
const PRECISE: f64 = 1e-7;
/// Steps at most, and those after which roofs are looked at one by one once.
const STEPS: usize = 500;
const PATIENCE: usize = 20;
/// A step is too long where the slope behind it is steeper than this part of the slope before it.
const OVERSHOT: f64 = 0.5;
/// Shorter parts of a step are no longer tried.
const SHORTEST: f64 = 1e-3;
/// No place among roofs that can be full.
const NONE: u32 = u32::MAX;

/// Delays, kept from one solution to the next, and working memory.
#[derive(Clone, Debug)]
pub(super) struct Rates {
    /// Whether lines wait below full roofs.
    pub(super) queues: bool,
    /// Delay for each byte, by roof.
    delays: Vec<f64>,
    /// Roofs that can be full, and where each roof stands among them.
    roofs: Vec<u32>,
    place: Vec<u32>,
    /// Of those roofs, by place: limit, delay, load.
    limit: Vec<f64>,
    delay: Vec<f64>,
    load: Vec<f64>,
    tasks: Vec<Task>,
    /// What tasks ask of roofs that can be full: place and bytes.
    asks: Vec<(u32, f64)>,
    /// Places of roofs that hold somebody up, or are over their limit.
    active: Vec<u32>,
    /// Where a place stands among the active.
    order: Vec<u32>,
    /// What one task asks of active roofs: where they stand among these, and bytes.
    mine: Vec<(u32, f64)>,
    matrix: Vec<f64>,
    factor: Vec<f64>,
    excesses: Vec<f64>,
    step: Vec<f64>,
    before: Vec<f64>,
    /// How often rates and loads were worked out.
    steps: u64,
}

/// A task under way, as the solver sees it.
#[derive(Clone, Copy, Debug)]
struct Task {
    name: u32,
    /// Its part of `asks`.
    from: usize,
    to: usize,
    latencies: f64,
    window: f64,
    cap: f64,
    rate: f64,
}

impl Task {
    /// The rate at which lines that take `latencies` ns in all come.
    fn rate_at(&self, latencies: f64) -> f64 {
        // At the cap there may be no latency at all.
        let bound = self.window / latencies;
        if bound < self.cap { bound } else { self.cap }
    }
}

impl Rates {
    pub(super) fn new(roofs: usize) -> Self {
        Self {
            queues: false,
            delays: vec![0.0; roofs],
            place: vec![NONE; roofs],
            roofs: Vec::new(),
            limit: Vec::new(),
            delay: Vec::new(),
            load: Vec::new(),
            tasks: Vec::new(),
            asks: Vec::new(),
            active: Vec::new(),
            order: Vec::new(),
            mine: Vec::new(),
            matrix: Vec::new(),
            factor: Vec::new(),
            excesses: Vec::new(),
            step: Vec::new(),
            before: Vec::new(),
            steps: 0,
        }
    }

    /// The delay at a roof for each byte, ns: a demand's bytes times it, over the window, is what a task
    /// is held up by there.
    #[cfg(test)]
    pub(super) fn delay(&self, roof: usize) -> f64 {
        self.delays[roof]
    }

    /// How often rates and loads were worked out.
    #[cfg(test)]
    pub(super) const fn steps(&self) -> u64 {
        self.steps
    }

    /// Sets the rates of `flows` that are under way. `asked` is what they ask of each roof at their caps.
    pub(super) fn solve(
        &mut self,
        flows: &mut [Flow],
        under_way: &[u32],
        asked: &[f64],
        limits: &[f64],
    ) {
        self.collect(asked, limits);
        if self.roofs.is_empty() {
            for name in under_way {
                let flow = &mut flows[*name as usize];
                flow.rate = flow.cap;
            }
            return;
        }
        self.enlist(flows, under_way);
        self.settle();
        for task in &self.tasks {
            flows[task.name as usize].rate = task.rate;
        }
        for (roof, delay) in self.roofs.iter().zip(&self.delay) {
            self.delays[*roof as usize] = *delay;
        }
    }

    /// Only roofs that all tasks at their caps would overload can ever be full; queues are before all that are used.
    fn collect(&mut self, asked: &[f64], limits: &[f64]) {
        for roof in self.roofs.drain(..) {
            self.place[roof as usize] = NONE;
        }
        self.limit.clear();
        self.delay.clear();
        for (roof, (asked, limit)) in (0_u32..).zip(asked.iter().zip(limits)) {
            let delay = &mut self.delays[roof as usize];
            let least = if self.queues { limit * PRECISE } else { *limit };
            if *asked <= least {
                *delay = 0.0;
                continue;
            }
            if self.queues && asked < limit {
                // At their caps they make the longest queue.
                *delay = delay.min(queue(asked / limit) / limit);
            }
            self.place[roof as usize] = count(self.roofs.len());
            self.roofs.push(roof);
            self.limit.push(*limit);
            self.delay.push(*delay);
        }
    }

    fn enlist(&mut self, flows: &[Flow], under_way: &[u32]) {
        self.tasks.clear();
        self.asks.clear();
        for name in under_way {
            let flow = &flows[*name as usize];
            let from = self.asks.len();
            for demand in &flow.demands {
                let place = self.place[demand.roof as usize];
                if place != NONE {
                    self.asks.push((place, demand.bytes));
                }
            }
            let Flow { latencies, window, cap, .. } = *flow;
            let to = self.asks.len();
            self.tasks.push(Task { name: *name, from, to, latencies, window, cap, rate: cap });
        }
    }

    /// Finds the delays.
    fn settle(&mut self) {
        self.weigh();
        for step in 1..=STEPS {
            if !self.choose_active() {
                return;
            }
            // Kinks on all sides, as where many tasks reach their caps at once: slower, and always nearer.
            if step % PATIENCE == 0 || !self.newton() {
                for at in 0..self.active.len() {
                    self.fill(self.active[at]);
                }
            }
        }
    }

    /// Rates and loads at the delays of now.
    fn weigh(&mut self) {
        self.steps += 1;
        self.load.clear();
        self.load.resize(self.roofs.len(), 0.0);
        for task in &mut self.tasks {
            let asks = &self.asks[task.from..task.to];
            let held: f64 =
                asks.iter().map(|(place, bytes)| self.delay[*place as usize] * bytes).sum();
            task.rate = task.rate_at(task.latencies + held);
            for (place, bytes) in asks {
                self.load[*place as usize] += bytes * task.rate;
            }
        }
    }

    /// What a roof passes at its delay.
    fn passes(&self, place: u32) -> f64 {
        let limit = self.limit[place as usize];
        if !self.queues {
            return limit;
        }
        let twice = 2.0 * self.delay[place as usize] * limit;
        limit * (twice / (1.0 + twice))
    }

    /// How what a roof passes grows with its delay, where queues are. Where it passes more than there is, on the
    /// straight line to the delay that is enough: beyond that a step would lead to less than none.
    fn growth(&self, place: u32) -> f64 {
        let at = place as usize;
        let (limit, delay, load) = (self.limit[at], self.delay[at], self.load[at]);
        let excess = self.excess(place);
        if excess < -limit * PRECISE {
            return -excess / (delay - queue(load / limit) / limit);
        }
        let once = 1.0 + 2.0 * delay * limit;
        2.0 * limit * limit / (once * once)
    }

    /// What a roof carries above what it passes.
    fn excess(&self, place: u32) -> f64 {
        self.load[place as usize] - self.passes(place)
    }

    /// Whether the conditions do not hold yet; then `active` has the roofs whose delays are to change.
    fn choose_active(&mut self) -> bool {
        self.active.clear();
        self.order.clear();
        self.order.resize(self.roofs.len(), NONE);
        let mut is_open = false;
        for place in 0..count(self.roofs.len()) {
            let (excess, allowed) = (self.excess(place), self.limit[place as usize] * PRECISE);
            let holds_up = self.delay[place as usize] > 0.0;
            if holds_up || excess > allowed {
                self.order[place as usize] = count(self.active.len());
                self.active.push(place);
                is_open |= excess.abs() > allowed;
            }
        }
        is_open
    }

    /// One step of Newton's method. False where it leads nowhere.
    fn newton(&mut self) -> bool {
        self.curve();
        let size = self.active.len();
        for at in 0..size {
            // Nobody gives way at this delay: all who use the roof are at their caps.
            if self.matrix[at * size + at] <= 0.0 {
                self.fill(self.active[at]);
                return true;
            }
        }
        self.excesses.clear();
        self.before.clear();
        for place in &self.active {
            self.excesses.push(self.excess(*place));
            self.before.push(self.delay[*place as usize]);
        }
        self.step.clone_from(&self.excesses);
        self.factor.clone_from(&self.matrix);
        let solved = solve_positive(&mut self.factor, &mut self.step);
        let mut both = self.step.iter().zip(&self.before);
        if !solved || both.any(|(step, before)| before + step < 0.0) {
            self.step_to_bounds();
        }
        self.walk()
    }

    /// The step to where the objective, if it curved everywhere as it does here, is least among delays that are not
    /// negative. Of roofs that the same tasks fill alike only some hold them up.
    fn step_to_bounds(&mut self) {
        let limits = self.active.iter().map(|place| self.limit[*place as usize]);
        let allowed = limits.map(|limit| limit * PRECISE / 4.0).collect();
        let search = Bounded::new(&self.matrix, &self.before, &self.excesses, allowed);
        let delays = search.least(&mut self.factor);
        self.step.clear();
        self.step.extend(delays.iter().zip(&self.before).map(|(delay, before)| delay - before));
    }

    /// Goes along `step` until the dual objective no longer falls steeply. False where it does not fall at all.
    fn walk(&mut self) -> bool {
        let slope = self.slope();
        if slope <= 0.0 {
            return false;
        }
        let mut part = 1.0;
        loop {
            for (at, place) in self.active.iter().enumerate() {
                self.delay[*place as usize] = (self.before[at] + part * self.step[at]).max(0.0);
            }
            self.weigh();
            let behind = -self.slope();
            if behind <= OVERSHOT * slope || part < SHORTEST {
                return true;
            }
            // The slope is taken to change evenly; the objective is convex.
            part *= (slope / (slope + behind)).clamp(0.1, 0.9);
        }
    }

    /// How fast the dual objective falls along `step`.
    fn slope(&self) -> f64 {
        self.active.iter().zip(&self.step).map(|(place, step)| self.excess(*place) * step).sum()
    }

    /// How loads change with delays: `matrix`, positive, of the active roofs.
    fn curve(&mut self) {
        let size = self.active.len();
        self.matrix.clear();
        self.matrix.resize(size * size, 0.0);
        for task in self.tasks.iter().filter(|task| task.rate < task.cap) {
            let asks = self.asks[task.from..task.to].iter();
            let active = asks.map(|(place, bytes)| (self.order[*place as usize], *bytes));
            self.mine.clear();
            self.mine.extend(active.filter(|(order, _)| *order != NONE));
            let change = task.rate * task.rate / task.window;
            for (at, (one, bytes)) in self.mine.iter().enumerate() {
                let by = bytes * change;
                for (other, more) in &self.mine[..=at] {
                    let (row, column) = (one.max(other), one.min(other));
                    self.matrix[*row as usize * size + *column as usize] += by * more;
                }
            }
        }
        if self.queues {
            for at in 0..size {
                self.matrix[at * size + at] += self.growth(self.active[at]);
            }
        }
    }

    /// Gives one roof the delay at which it is just full, or none, with all others as they are.
    fn fill(&mut self, place: u32) {
        let at = place as usize;
        let old = self.delay[at];
        // With this delay those who use it keep it below its limit, whatever else holds them up.
        let uses = |task: &&Task| self.asks[task.from..task.to].iter().any(|ask| ask.0 == place);
        let windows: f64 = self.tasks.iter().filter(uses).map(|task| task.window).sum();
        // Behind a queue so much passes at a little more.
        let more = if self.queues { 1.0 } else { 0.0 };
        let (mut low, mut high) = (0.0, (windows + more) / self.limit[at]);
        self.delay[at] = 0.0;
        self.weigh();
        if self.excess(place) > 0.0 {
            self.delay[at] = if old > low && old < high { old } else { f64::midpoint(low, high) };
            while high - low > high * f64::EPSILON * 4.0 {
                self.weigh();
                let excess = self.excess(place);
                if excess.abs() <= self.limit[at] * PRECISE / 4.0 {
                    break;
                }
                if excess > 0.0 {
                    low = self.delay[at]
                } else {
                    high = self.delay[at]
                }
                self.delay[at] = f64::midpoint(low, high);
            }
            self.weigh();
        }
    }
}

/// What a line waits behind others where `used` of a roof is in use, in parts of its own service time.
fn queue(used: f64) -> f64 {
    used / (2.0 * (1.0 - used))
}

fn count(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(NONE)
}
