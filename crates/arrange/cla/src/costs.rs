//! What lines cost between cores: on a machine that is described by text, by the numbers of the paper's
//! section 2, or wherever distances are known ([`of_distances`]).
//!
//! `R_L`, `R_R`, `R_Q`, `R_I`, `R_QI` are single lines, `intra` and `inter` with `q`, `o`, `c` several
//! lines (equation 1). Cores of one package are one class, packages another. Siblings of a core are a class
//! of their own where hardware threads are asked for; no paper here measured them, so their cost (`R_S`)
//! is assumed.

use isochrone_distance::{
    Cost, CostNames, Distances, LineCosts as Pair, OTHER_PACKAGE, SAME_PACKAGE, Term, common_level,
};
use isochrone_machine::{AddedTerms, ClassCost, Cost as Stated, LineCosts, Machine, PairClass};
use isochrone_stats as stats;
use isochrone_units::CoreId;

/// Why a description gives no costs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CostsError {
    /// A number is not there.
    #[error(
        "{machine} has no number `{name}`, which the costs of lines need; machines/xeon-e5-2660-2s.toml has \
         all of them"
    )]
    Missing {
        /// Whose description.
        machine: String,
        /// The name of the number.
        name: String,
    },
    /// No cores.
    #[error("{0} has no cores")]
    NoCores(String),
}

/// Costs of lines between the threads of a described machine.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineCosts {
    /// The table. Threads `0..cores` are the cores in ascending order; with siblings, the second threads
    /// follow in the same order.
    pub costs: LineCosts,
    /// Names of the classes, as in `costs.classes`.
    pub classes: Vec<String>,
    /// What is not published but assumed: name, value, and why.
    pub assumed: Vec<String>,
}

/// The costs that `machine` states. With `siblings`, every core has a second thread.
///
/// # Errors
/// [`CostsError`] when a number is missing.
pub fn of_machine(machine: &Machine, siblings: bool) -> Result<MachineCosts, CostsError> {
    let mut assumed = Vec::new();
    let mut number = |name: &str| {
        let cost = machine.cost(name);
        if let Some(value) = cost.and_then(Stated::assumed) {
            let (low, high) = value.sweep();
            assumed.push(format!("{name} = {} ({low} to {high}): {}", value.number, value.source));
        }
        cost.and_then(Stated::number).ok_or_else(|| CostsError::Missing {
            machine: machine.name.clone(),
            name: name.to_owned(),
        })
    };
    if machine.cores.is_empty() {
        return Err(CostsError::NoCores(machine.name.clone()));
    }
    let package = |core: usize| machine.cores[core].package.unwrap_or(0);
    let cores = machine.cores.len();
    let several = (0..cores).any(|core| package(core) != package(0));
    let mut class = |names: &CostNames| -> Result<ClassCost, CostsError> {
        Ok(ClassCost {
            transfer_ns: number(names.transfer)?,
            memory_ns: number(names.memory)?,
            start_ns: number(names.start)?,
            line_ns: number(names.line)?,
            congestion_ns: number(names.congestion)?,
        })
    };
    let mut classes = vec![class(&SAME_PACKAGE)?];
    let mut names = vec!["one socket".to_owned()];
    if several {
        classes.push(class(&OTHER_PACKAGE)?);
        names.push("two sockets".to_owned());
    }
    if siblings {
        // Several lines come from the shared cache as from anybody's in the socket.
        let own = ClassCost { transfer_ns: number("R_S")?, ..classes[0].clone() };
        classes.insert(0, own);
        names.insert(0, "one core".to_owned());
    }
    let local_ns = number("R_L")?;
    let shift = u8::from(siblings);
    let threads = if siblings { 2 * cores } else { cores };
    let class = |a: usize, b: usize| {
        let (x, y) = (a % cores, b % cores);
        // A core's own memory is that of its socket.
        if x == y && a != b && siblings {
            PairClass(0)
        } else {
            PairClass(shift + u8::from(package(x) != package(y)))
        }
    };
    let costs = LineCosts::new(threads, classes, local_ns, class);
    Ok(MachineCosts { costs, classes: names, assumed })
}

/// Costs of lines between cores whose distances are known.
#[derive(Clone, Debug, PartialEq)]
pub struct DistanceCosts {
    /// The table; core `n` is the `n`th of the list. A core's own memory is of the first class. No added
    /// terms: see [`terms`].
    pub costs: LineCosts,
    /// What is not known but assumed.
    pub assumed: Vec<String>,
    /// Half the interval of a transfer over the transfer, the mean over all pairs.
    pub interval: f64,
}

/// Classes of pairs at most: what a [`PairClass`] tells apart.
const CLASSES_MAX: usize = 255;

/// What lines cost between `cores`, with `local_ns` for a line at hand. Pairs whose smallest common group
/// is of one level are a class, with the means of what they cost; where no groups are known, pairs that
/// cost the same. `None` for fewer than two cores, a core that is there twice, a pair of which nothing is
/// known, and more than 255 classes.
pub fn of_distances<D: Distances + ?Sized>(
    on: &D,
    cores: &[CoreId],
    local_ns: f64,
) -> Option<DistanceCosts> {
    let mut all = Sums::default();
    let mut classes: Vec<(u64, Sums)> = Vec::new();
    // Pairs lie row by row below the diagonal, each as the place of its class among those that were found.
    let mut found: Vec<u8> = Vec::with_capacity(cores.len() * cores.len() / 2);
    for (place, &a) in cores.iter().enumerate() {
        for &b in &cores[..place] {
            let both = [on.line_costs(a, b)?, on.line_costs(b, a)?];
            let key = match on.levels() {
                0 => stats::mean(&both.each_ref().map(|pair| pair.transfer.value))?.to_bits(),
                _ => common_level(on, a, b).map_or(u64::MAX, |level| level as u64),
            };
            let known = classes.iter().position(|(other, _)| *other == key);
            let class = known.unwrap_or(classes.len());
            if known.is_none() {
                classes.push((key, Sums::default()));
            }
            found.push(u8::try_from(class).ok().filter(|_| class < CLASSES_MAX)?);
            for pair in &both {
                classes[class].1.add(pair);
                all.add(pair);
            }
        }
    }
    let interval = all.halves.mean()?;
    let costs: Vec<ClassCost> =
        classes.iter().map(|(_, sums)| sums.cost()).collect::<Option<_>>()?;
    // The cheapest first, and those that cost the same by their keys.
    let mut order: Vec<u8> = (0..=u8::MAX).take(classes.len()).collect();
    order.sort_by(|&a, &b| {
        let [a, b] = [a, b].map(usize::from);
        let cheaper = costs[a].transfer_ns.total_cmp(&costs[b].transfer_ns);
        cheaper.then(classes[a].0.cmp(&classes[b].0))
    });
    let mut number = vec![0_u8; classes.len()];
    for (place, class) in (0..=u8::MAX).zip(&order) {
        number[usize::from(*class)] = place;
    }
    let class = |a: usize, b: usize| match (a.max(b), a.min(b)) {
        (a, b) if a == b => PairClass(0),
        (a, b) => PairClass(number[usize::from(found[a * (a - 1) / 2 + b])]),
    };
    let mut assumed = Vec::new();
    if all.line.count == 0 {
        assumed.push(
            "several lines cost as much as one after the other: they were not measured".into(),
        );
    }
    if all.memory.count == 0 {
        assumed
            .push("a line comes from memory as fast as from a cache: it was not measured".into());
    }
    let ordered = order.iter().map(|&class| costs[usize::from(class)].clone()).collect();
    let costs = LineCosts::new(cores.len(), ordered, local_ns, class);
    Some(DistanceCosts { costs, assumed, interval })
}

/// What some numbers add up to.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    ns: f64,
    count: u32,
}

impl Sum {
    fn add(&mut self, ns: f64) {
        self.ns += ns;
        self.count += 1;
    }

    fn mean(self) -> Option<f64> {
        let mean = self.ns / f64::from(self.count);
        mean.is_finite().then_some(mean)
    }
}

/// What pairs cost together, as far as it is known: a table of many pairs needs no more of them.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    transfer: Sum,
    memory: Sum,
    start: Sum,
    line: Sum,
    congestion: Sum,
    /// Half the interval of each transfer over it.
    halves: Sum,
}

impl Sums {
    fn add(&mut self, pair: &Pair) {
        self.transfer.add(pair.transfer.value);
        self.halves.add(half(pair.transfer));
        for (sum, part) in [
            (&mut self.memory, pair.memory),
            (&mut self.start, pair.start),
            (&mut self.line, pair.line),
            (&mut self.congestion, pair.congestion),
        ] {
            if let Some(cost) = part {
                sum.add(cost.value);
            }
        }
    }

    /// What a pair costs in the mean.
    fn cost(&self) -> Option<ClassCost> {
        let transfer_ns = self.transfer.mean()?;
        Some(ClassCost {
            transfer_ns,
            memory_ns: self.memory.mean().unwrap_or(transfer_ns),
            // Without a fit, one line after the other.
            start_ns: self.start.mean().unwrap_or(0.0),
            line_ns: self.line.mean().unwrap_or(transfer_ns),
            congestion_ns: self.congestion.mean().unwrap_or(0.0),
        })
    }
}

/// Half of an interval over its value.
fn half(cost: Cost) -> f64 {
    (cost.hi - cost.lo).max(0.0) / 2.0 / cost.value.max(f64::MIN_POSITIVE)
}

/// The terms beside the paper's that are known: those that do not depend on which lines lie side by side.
/// A term that was measured below 0 is 0.
pub fn terms<D: Distances + ?Sized>(on: &D) -> AddedTerms {
    let ns = |term| on.term(term).map(|cost| cost.value.max(0.0));
    AddedTerms {
        first_remote_reader_ns: ns(Term::FirstRemoteReader).unwrap_or(0.0),
        overlapped_ack_ns: ns(Term::OverlappedAck),
        rfo_sharer_ns: ns(Term::RfoSharer),
        left_shared_ns: ns(Term::LeftShared),
        reader_ns: ns(Term::Reader),
        ..AddedTerms::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::synthetic::Synthetic;
    use isochrone_distance::Unknown;

    fn cores(of: &[u16]) -> Vec<CoreId> {
        of.iter().copied().map(CoreId).collect()
    }

    #[test]
    fn pairs_are_classed_by_their_groups_and_a_subset_has_what_it_needs() {
        let on = Synthetic::new(&[2, 8, 16], &[20.0, 40.0, 120.0]);
        let all = of_distances(&on, &cores(&[0, 1, 2, 8, 15]), 1.5).expect("known");
        let ns: Vec<f64> = all.costs.classes.iter().map(|class| class.transfer_ns).collect();
        assert_eq!(ns, [20.0, 40.0, 120.0]);
        let between = |a, b| all.costs.pair(a, b).transfer_ns;
        assert_eq!(
            [between(0, 1), between(1, 2), between(3, 0), between(0, 3)],
            [20.0, 40.0, 120.0, 120.0]
        );
        assert!((all.interval - 0.05).abs() < 1e-9, "{}", all.interval);
        let far = of_distances(&on, &cores(&[0, 8, 9]), 1.5).expect("known");
        assert_eq!(far.costs.classes.len(), 2);
        assert_eq!(far.costs.pair(2, 1).transfer_ns, 20.0);
        assert_eq!(far.assumed.len(), 1, "only memory is not known: {:?}", far.assumed);
    }

    #[test]
    fn without_groups_pairs_that_cost_the_same_are_a_class() {
        let on = Synthetic { ungrouped: true, ..Synthetic::new(&[2, 4], &[20.0, 50.0]) };
        let found = of_distances(&on, &cores(&[0, 1, 2, 3]), 1.5).expect("known");
        assert_eq!(found.costs.classes.len(), 2);
        assert_eq!(found.costs.pair(3, 2).transfer_ns, 20.0);
        assert_eq!(found.costs.pair(3, 0).transfer_ns, 50.0);
    }

    #[test]
    fn what_is_not_known_is_none() {
        let on = Synthetic::new(&[2, 4], &[20.0, 50.0]);
        assert!(of_distances(&Unknown, &cores(&[0, 1]), 1.5).is_none());
        assert!(of_distances(&on, &cores(&[0]), 1.5).is_none(), "no pair");
        assert!(of_distances(&on, &cores(&[0, 0]), 1.5).is_none(), "twice");
        assert!(of_distances(&on, &cores(&[0, 4]), 1.5).is_none(), "not of this machine");
    }
}
