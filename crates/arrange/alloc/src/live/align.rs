//! What the loads of one core have in common beyond its base: an offset, or one for each pass of a
//! round.
//!
//! Clock rates drift by more than a pattern is high, and the first pass after a sweep finds the
//! translations of its pages gone. The offset is that of the mean: of known pages, and of all pages
//! of a window while none is known, whose codes occur with known shares. Loads from memory have a
//! tail that grows and shrinks with what other tenants do, and moves their mean; there, as pages
//! become known, it is the offset under which they look most like the density of residuals that
//! pages are judged by.

use isochrone_atlas::{PENALTY_ENTRIES, Penalties};
use isochrone_units::Level;

/// Passes of a round.
pub(super) const PASSES: usize = 4;
/// Known loads from which likelihood decides, in multiples of those that make a mean believed.
const LIKELY: f32 = 4.0;
/// Cells of a cycle each, for residuals around the first offset.
const CELLS: usize = 256;
/// Share of its weight that a cell keeps from one round to the next.
const MEMORY: f32 = 0.98;
/// Searches: reach to either side and step, cycles, each around the last's best.
const SEARCHES: [(f32, f32); 2] = [(16.0, 1.0), (1.0, 0.25)];
/// Loads that a mean remembers.
const MEAN_LOADS: f32 = 8192.0;

/// The offset of one pass.
#[derive(Clone, Debug)]
struct Pass {
    mean: f32,
    weight: f32,
    /// Middle of the cells, cycles; none before the first known load.
    origin: Option<f32>,
    cells: [f32; CELLS],
    known: f32,
    best: f32,
}

/// The offsets of a core.
#[derive(Clone, Debug)]
pub(super) struct Alignment {
    passes: [Pass; PASSES],
    /// Passes that have an offset of their own; later ones share the last.
    apart: usize,
    /// Loads that make a mean believed.
    wanted: f32,
    /// Whether samples have a long tail.
    tailed: bool,
    /// When a round was added last.
    pub(super) at_ns: u64,
}

impl Alignment {
    /// Nothing is known; `wanted` loads will make an offset believed.
    pub(super) const fn new(level: Level, wanted: f32) -> Self {
        const NOTHING: Pass = Pass {
            mean: 0.0,
            weight: 0.0,
            origin: None,
            cells: [0.0; CELLS],
            known: 0.0,
            best: 0.0,
        };
        // Only a sweep comes before one pass and not before the others.
        let (apart, tailed) = match level {
            Level::Llc => (PASSES, false),
            Level::Dram => (1, true),
        };
        Self { passes: [NOTHING; PASSES], apart, wanted, tailed, at_ns: 0 }
    }

    fn pass(&mut self, pass: usize) -> Option<&mut Pass> {
        self.passes.get_mut(pass.min(self.apart - 1))
    }

    /// Adds the mean of `weight` loads over what was expected of them, of pages of unknown code or
    /// known.
    pub(super) fn add_mean(&mut self, pass: usize, mean: f32, weight: f32) {
        let Some(pass) = self.pass(pass).filter(|_| weight > 0.0) else { return };
        pass.weight = (pass.weight + weight).min(MEAN_LOADS);
        pass.mean += (mean - pass.mean) * weight / pass.weight;
    }

    /// Adds a load of a known page: how far it is from what was expected.
    pub(super) fn add_known(&mut self, pass: usize, residual: f32) {
        let Some(pass) = self.pass(pass) else { return };
        let origin =
            *pass.origin.get_or_insert(if pass.weight > 0.0 { pass.mean } else { residual });
        pass.cells[cell(residual - origin)] += 1.0;
        pass.known += 1.0;
    }

    /// Ends a round: finds the offsets anew, and lets what is old fade.
    pub(super) fn end_round(&mut self, penalties: &Penalties, now_ns: u64) {
        self.at_ns = now_ns;
        let likely = self.likely();
        for pass in &mut self.passes[..self.apart] {
            if pass.known >= likely {
                pass.best = pass.search(penalties);
            }
            pass.cells.iter_mut().for_each(|cell| *cell *= MEMORY);
            pass.known *= MEMORY;
        }
    }

    /// Known loads from which likelihood decides.
    fn likely(&self) -> f32 {
        if self.tailed { (LIKELY * self.wanted).clamp(256.0, 4096.0) } else { f32::INFINITY }
    }

    /// Whether enough loads are behind each of the offsets.
    pub(super) fn is_believed(&self) -> bool {
        self.passes[..self.apart].iter().all(|pass| pass.weight >= self.wanted)
    }

    /// The offset of a pass, cycles.
    pub(super) fn cycles(&self, pass: usize) -> f32 {
        let Some(pass) = self.passes.get(pass.min(self.apart - 1)) else { return 0.0 };
        match pass.origin {
            Some(origin) if pass.known >= self.likely() * MEMORY => origin + pass.best,
            _ => pass.mean,
        }
    }
}

impl Pass {
    fn search(&self, penalties: &Penalties) -> f32 {
        let mut best = self.best;
        for (reach, step) in SEARCHES {
            let (middle, mut least) = (best, f32::INFINITY);
            let mut offset = middle - reach;
            while offset <= middle + reach {
                let cost = self.cost(offset, penalties);
                if cost < least {
                    (best, least) = (offset, cost);
                }
                offset += step;
            }
        }
        best
    }

    /// What the residuals cost, in nats, if this were the offset from the origin.
    fn cost(&self, offset: f32, penalties: &Penalties) -> f32 {
        let first = -super::number::real(CELLS / 2) - offset;
        let mut sum = 0.0;
        for (index, count) in self.cells.iter().enumerate().filter(|(_, count)| **count > 0.0) {
            let residual = first + super::number::real(index);
            sum += count * penalties.nats[entry(residual / penalties.step_cycles)];
        }
        sum
    }
}

/// The cell of a distance from the origin; the ends take all that lies beyond.
fn cell(cycles: f32) -> usize {
    entry_of(cycles, CELLS)
}

/// The penalty entry of a residual counted in steps.
fn entry(steps: f32) -> usize {
    entry_of(steps, PENALTY_ENTRIES)
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is clamped first; truncation rounds, since a half was added"
)]
fn entry_of(place: f32, entries: usize) -> usize {
    let last = super::number::real(entries - 1);
    (place + super::number::real(entries / 2) + 0.5).clamp(0.0, last) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use isochrone_atlas::Noise;

    /// Penalties of residuals that have a sharp left edge at -10 and a tail of 40 to the right.
    fn tailed() -> Penalties {
        let mut penalties = Penalties::from(Noise::heavy_tailed(20.0));
        for (entry, nats) in (-128_i16..).zip(&mut penalties.nats) {
            let cycles = f32::from(entry) * penalties.step_cycles;
            *nats = if cycles < -10.0 { 8.0 } else { 1.0 + (cycles + 10.0) / 40.0 };
        }
        penalties
    }

    /// Residuals of that kind, as even as a ruler, with a tail of `tail` cycles.
    fn residuals(tail: f32) -> impl Iterator<Item = f32> {
        (0..1024_u16).map(move |i| -10.0 - tail * libm::logf(1.0 - (f32::from(i) + 0.5) / 1024.0))
    }

    #[test]
    fn means_say_it_first_and_likelihood_as_pages_become_known() {
        let mut alignment = Alignment::new(Level::Llc, 200.0);
        alignment.tailed = true;
        assert!(!alignment.is_believed());
        alignment.add_mean(0, 3.0, 100.0);
        alignment.add_mean(0, 5.0, 300.0);
        assert!((alignment.cycles(0) - 4.5).abs() < 1e-4);
        assert!(!alignment.is_believed(), "three passes have nothing yet");
        assert_eq!(alignment.cycles(1), 0.0);
        (1..4).for_each(|pass| alignment.add_mean(pass, 1.0, 350.0));
        assert!(alignment.is_believed());
        for residual in residuals(40.0) {
            alignment.add_known(0, residual + 7.0);
        }
        alignment.end_round(&tailed(), 9);
        assert!((alignment.cycles(0) - 7.0).abs() <= 1.0, "{}", alignment.cycles(0));
        assert_eq!(alignment.at_ns, 9);
    }

    #[test]
    fn a_longer_tail_does_not_move_the_offset() {
        let at = |tail: f32| {
            let mut alignment = Alignment::new(Level::Dram, 200.0);
            for residual in residuals(tail) {
                // Passes share one offset in memory.
                alignment.add_known(2, residual);
            }
            alignment.end_round(&tailed(), 0);
            alignment.cycles(2)
        };
        // The mean moves by 30 cycles.
        assert!((at(70.0) - at(40.0)).abs() <= 2.0, "{} {}", at(70.0), at(40.0));
    }
}
