//! Local search for a cheap set of centres: PARSEC's `pkmedian`, `pspeedy`, `pFL` and `pgain`.
//!
//! It decides; [`Passes`] touches the points. All its randomness comes from one seed, and every sum
//! arrives summed block by block in order, so each implementation of [`Passes`] gives the same centres
//! bit for bit.

use isochrone_stats::{Xoshiro256PlusPlus, rng, shuffle, uniform};

/// The passes over all points that the search asks for.
pub trait Passes {
    /// Why a pass could not be done.
    type Error;

    /// How many points.
    fn points(&self) -> usize;

    /// Makes point `x` in `slot` the centre of all. Gives the cost.
    ///
    /// # Errors
    /// As [`Passes::Error`] says.
    fn first(&mut self, x: usize, slot: u32) -> Result<f64, Self::Error>;

    /// Points nearer to `x` than to their centre go over to `slot`. Gives the change of cost.
    ///
    /// # Errors
    /// As [`Passes::Error`] says.
    fn take(&mut self, x: usize, slot: u32) -> Result<f64, Self::Error>;

    /// What is saved by points nearer to `x`, and for each of `closing.len()` slots what closing it
    /// would cost.
    ///
    /// # Errors
    /// As [`Passes::Error`] says.
    fn gain(&mut self, x: usize, closing: &mut [f64]) -> Result<f64, Self::Error>;

    /// Opens `x` in `slot` after its gain was asked for, and closes the slots marked.
    ///
    /// # Errors
    /// As [`Passes::Error`] says.
    fn open(&mut self, x: usize, slot: u32, closed: &[bool]) -> Result<(), Self::Error>;

    /// What one point costs now, and its weight.
    ///
    /// # Errors
    /// As [`Passes::Error`] says.
    fn point(&mut self, x: usize) -> Result<(f64, f64), Self::Error>;
}

/// PARSEC's constants: `ITER`, `SP`, and the two precisions of `pkmedian`.
const ITERATIONS: f64 = 3.0;
const COARSE: f64 = 0.1;
const FINE: f64 = 0.001;
/// Rounds of the search for the price of a centre. PARSEC has no bound; it ends far earlier.
const PRICES_MAX: usize = 100;

/// The centres found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// For each slot the point that is its centre.
    pub centres: Vec<Option<usize>>,
    /// The cost of all points, without the price of centres.
    pub cost: f64,
    /// How often all points were passed over.
    pub passes: u64,
}

/// Looks for `k_min..=k_max` centres.
///
/// # Errors
/// The first error of a pass.
pub fn search<P: Passes>(
    passes: &mut P,
    k_min: usize,
    k_max: usize,
    seed: u64,
) -> Result<Found, P::Error> {
    Search { passes, random: rng(seed), slots: Vec::new(), cost: 0.0, done: 0 }.run(k_min, k_max)
}

struct Search<'a, P> {
    passes: &'a mut P,
    random: Xoshiro256PlusPlus,
    slots: Vec<Option<usize>>,
    cost: f64,
    done: u64,
}

impl<P: Passes> Search<'_, P> {
    fn run(mut self, k_min: usize, k_max: usize) -> Result<Found, P::Error> {
        let points = self.passes.points();
        if points <= k_max {
            self.every_point()?;
            return Ok(self.found());
        }
        let (mut low, mut high) = (0.0, self.only(0)?);
        let mut price = f64::midpoint(low, high);
        self.speedy(price)?;
        while self.count() < k_min && price > 0.0 {
            high = price;
            price = f64::midpoint(low, high);
            self.speedy(price)?;
        }
        let tries = |k: usize| ITERATIONS * real(k) * real(k).ln().max(1.0);
        let feasible = self.feasible(whole(tries(k_min)))?;
        for _ in 0..PRICES_MAX {
            let budget = whole(tries(k_max));
            self.improve(&feasible, price, budget, COARSE)?;
            let k = self.count();
            if (k <= k_max + 2 && k + 2 >= k_min)
                || (real(k) <= 1.1 * real(k_max) && real(k) >= 0.9 * real(k_min))
            {
                self.improve(&feasible, price, budget, FINE)?;
            }
            let k = self.count();
            if (k_min..=k_max).contains(&k) || low >= 0.999 * high {
                break;
            }
            if k > k_max {
                low = price;
            } else {
                high = price;
            }
            price = f64::midpoint(low, high);
        }
        Ok(self.found())
    }

    fn found(self) -> Found {
        Found { centres: self.slots, cost: self.cost, passes: self.done }
    }

    fn count(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    /// A free slot for `x`.
    fn slot(&mut self, x: usize) -> u32 {
        let slot = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[slot] = Some(x);
        u32::try_from(slot).unwrap_or(u32::MAX)
    }

    /// Point `x` is the only centre; gives the cost.
    fn only(&mut self, x: usize) -> Result<f64, P::Error> {
        self.slots.clear();
        let slot = self.slot(x);
        self.done += 1;
        self.cost = self.passes.first(x, slot)?;
        Ok(self.cost)
    }

    fn every_point(&mut self) -> Result<(), P::Error> {
        self.only(0)?;
        for x in 1..self.passes.points() {
            self.take(x)?;
        }
        Ok(())
    }

    fn take(&mut self, x: usize) -> Result<(), P::Error> {
        let slot = self.slot(x);
        self.done += 1;
        self.cost += self.passes.take(x, slot)?;
        Ok(())
    }

    /// `pspeedy`: a point becomes a centre with the chance that its cost has of the price.
    fn speedy(&mut self, price: f64) -> Result<(), P::Error> {
        self.only(0)?;
        for x in 1..self.passes.points() {
            let chance = uniform(&mut self.random);
            let (cost, _) = self.passes.point(x)?;
            if chance < cost / price {
                self.take(x)?;
            }
        }
        Ok(())
    }

    /// `selectfeasible_fast`: points drawn by weight, in random order.
    fn feasible(&mut self, wanted: usize) -> Result<Vec<usize>, P::Error> {
        let points = self.passes.points();
        if points <= wanted {
            return Ok((0..points).collect());
        }
        let mut sums = Vec::with_capacity(points);
        let mut sum = 0.0;
        for x in 0..points {
            sum += self.passes.point(x)?.1;
            sums.push(sum);
        }
        let mut draw = || {
            let at = uniform(&mut self.random) * sum;
            sums.partition_point(|end| *end <= at).min(points - 1)
        };
        Ok((0..wanted).map(|_| draw()).collect())
    }

    /// `pFL`: tries candidates until a round of them saves less than `precision` of the cost.
    fn improve(
        &mut self,
        feasible: &[usize],
        price: f64,
        tries: usize,
        precision: f64,
    ) -> Result<(), P::Error> {
        loop {
            let mut order = feasible.to_vec();
            shuffle(&mut order, &mut self.random);
            let before = self.cost + price * real(self.count());
            let mut saved = 0.0;
            for i in 0..tries {
                saved += self.candidate(order[i % order.len()], price)?;
            }
            if saved <= precision * before {
                return Ok(());
            }
        }
    }

    /// `pgain`: opens `x`, and closes the centres that then do not pay, if that saves anything. Gives
    /// what it saves.
    fn candidate(&mut self, x: usize, price: f64) -> Result<f64, P::Error> {
        if self.slots.contains(&Some(x)) {
            return Ok(0.0);
        }
        let mut closing = vec![0.0; self.slots.len()];
        self.done += 1;
        let saved = self.passes.gain(x, &mut closing)?;
        let mut change = price + saved;
        let mut cost = saved;
        let mut closed = vec![false; self.slots.len() + 1];
        for (slot, lost) in closing.iter().enumerate() {
            if self.slots[slot].is_some() && lost - price < 0.0 {
                closed[slot] = true;
                change += lost - price;
                cost += lost;
            }
        }
        if change >= 0.0 {
            return Ok(0.0);
        }
        // The slot is taken before the closed ones are given back: no point may mean two centres by it.
        let slot = self.slot(x);
        self.done += 1;
        self.passes.open(x, slot, &closed)?;
        for (centre, closed) in self.slots.iter_mut().zip(&closed) {
            if *closed {
                *centre = None;
            }
        }
        self.cost += cost;
        Ok(-change)
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts of points and centres are far below 2^52")]
fn real(n: usize) -> f64 {
    n as f64
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a small positive number of tries"
)]
fn whole(x: f64) -> usize {
    x.ceil() as usize
}
