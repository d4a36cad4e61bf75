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
    let count = cores.len();
    let mut pairs: Vec<(u64, [Pair; 2])> = Vec::with_capacity(count * count / 2);
    for (place, &a) in cores.iter().enumerate() {
        for &b in &cores[..place] {
            let both = [on.line_costs(a, b)?, on.line_costs(b, a)?];
            let key = match on.levels() {
                0 => mean(&both, |pair| Some(pair.transfer))?.to_bits(),
                _ => common_level(on, a, b).map_or(u64::MAX, |level| level as u64),
            };
            pairs.push((key, both));
        }
    }
    let mut keys: Vec<u64> = pairs.iter().map(|(key, _)| *key).collect();
    keys.sort_unstable();
    keys.dedup();
    if keys.is_empty() || keys.len() > CLASSES_MAX {
        return None;
    }
    let mut classes: Vec<(u64, ClassCost)> =
        keys.into_iter().map(|key| Some((key, class_cost(&pairs, key)?))).collect::<Option<_>>()?;
    classes.sort_by(|a, b| a.1.transfer_ns.total_cmp(&b.1.transfer_ns));
    let number = |key: u64| classes.iter().position(|(known, _)| *known == key);
    let of: Vec<u8> =
        pairs.iter().map(|(key, _)| u8::try_from(number(*key)?).ok()).collect::<Option<_>>()?;
    // Pairs lie row by row below the diagonal.
    let class = |a: usize, b: usize| match (a.max(b), a.min(b)) {
        (a, b) if a == b => PairClass(0),
        (a, b) => PairClass(of[a * (a - 1) / 2 + b]),
    };
    let known = |part: fn(&Pair) -> Option<Cost>| {
        pairs.iter().any(|(_, p)| p.iter().any(|p| part(p).is_some()))
    };
    let mut assumed = Vec::new();
    if !known(|pair| pair.line) {
        assumed.push(
            "several lines cost as much as one after the other: they were not measured".into(),
        );
    }
    if !known(|pair| pair.memory) {
        assumed
            .push("a line comes from memory as fast as from a cache: it was not measured".into());
    }
    let halves: Vec<f64> =
        pairs.iter().flat_map(|(_, both)| both).map(|p| half(p.transfer)).collect();
    let classes = classes.into_iter().map(|(_, cost)| cost).collect();
    let costs = LineCosts::new(count, classes, local_ns, class);
    Some(DistanceCosts { costs, assumed, interval: stats::mean(&halves)? })
}

/// Half of an interval over its value.
fn half(cost: Cost) -> f64 {
    (cost.hi - cost.lo).max(0.0) / 2.0 / cost.value.max(f64::MIN_POSITIVE)
}

/// The mean of what is known of some costs.
fn mean<'a>(
    pairs: impl IntoIterator<Item = &'a Pair>,
    part: impl Fn(&Pair) -> Option<Cost>,
) -> Option<f64> {
    let known: Vec<f64> = pairs.into_iter().filter_map(|p| Some(part(p)?.value)).collect();
    stats::mean(&known)
}

/// What the pairs of a class cost.
fn class_cost(pairs: &[(u64, [Pair; 2])], key: u64) -> Option<ClassCost> {
    let of = |part: fn(&Pair) -> Option<Cost>| {
        mean(pairs.iter().filter(|(k, _)| *k == key).flat_map(|(_, both)| both), part)
    };
    let transfer_ns = of(|pair| Some(pair.transfer))?;
    Some(ClassCost {
        transfer_ns,
        memory_ns: of(|pair| pair.memory).unwrap_or(transfer_ns),
        // Without a fit, one line after the other.
        start_ns: of(|pair| pair.start).unwrap_or(0.0),
        line_ns: of(|pair| pair.line).unwrap_or(transfer_ns),
        congestion_ns: of(|pair| pair.congestion).unwrap_or(0.0),
    })
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
