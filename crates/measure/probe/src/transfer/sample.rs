//! Pairs of cores in the order in which they are worth measuring one at a time, where there is no time for all. Pure.
//!
//! First come links: in every physical core, every last-level cache and every region a chain through all that it has,
//! in random order, and one pair for every two regions. They join all cores on each level, so that groups of cores at
//! equal distance are found. Then every stratum (pairs that have the same in common) gets some more, and then the rest
//! comes in random order, so that of any number each stratum has its share. All pairs of a stratum are drawn at
//! random, so that the spread among those that were measured is that of those that were not.

use std::collections::{BTreeMap, BTreeSet};

use isochrone_stats::{Xoshiro256PlusPlus, below, rng, shuffle};

use super::tournament::Pair;
use crate::seats::{Seats, Stratum};

/// Pairs of each stratum before the rest comes: with as many, a spread of them is known within a fifth.
pub const STRATUM_PAIRS: usize = 16;
/// Of a stratum within a region, one for so many cores if that is more: those are the groups that are looked for.
const NEAR_CORES: usize = 2;

/// Every pair once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Places in the list of cores, the smaller first.
    pub pairs: Vec<Pair>,
    /// So many of them at the beginning join all cores and give each stratum enough.
    pub least: usize,
}

/// All pairs of cores in the order in which they are worth measuring.
#[must_use]
pub fn order(seats: &Seats, seed: u64) -> Order {
    let random = &mut rng(seed);
    let mut pairs = links(seats, random);
    let mut taken: BTreeSet<Pair> = pairs.iter().copied().collect();
    let mut counts: BTreeMap<Stratum, usize> = BTreeMap::new();
    for &(a, b) in &pairs {
        *counts.entry(seats.stratum(a, b)).or_default() += 1;
    }
    shuffle(&mut pairs, random);
    let cores = seats.all().len();
    let others = (0..cores).flat_map(|a| (a + 1..cores).map(move |b| (a, b)));
    let mut others: Vec<Pair> = others.filter(|pair| !taken.contains(pair)).collect();
    shuffle(&mut others, random);
    for &(a, b) in &others {
        let stratum = seats.stratum(a, b);
        let enough = match stratum {
            Stratum::Between(..) => STRATUM_PAIRS,
            _ => STRATUM_PAIRS.max(cores / NEAR_CORES),
        };
        let count = counts.entry(stratum).or_default();
        if *count < enough {
            *count += 1;
            taken.insert((a, b));
            pairs.push((a, b));
        }
    }
    let least = pairs.len();
    pairs.extend(others.into_iter().filter(|pair| !taken.contains(pair)));
    Order { pairs, least }
}

/// Chains on each level, and one pair for every two regions.
fn links(seats: &Seats, random: &mut Xoshiro256PlusPlus) -> Vec<Pair> {
    let mut found = Vec::new();
    let all = seats.all();
    let physical = by(0..all.len(), |at| (all[at].region, all[at].physical));
    chain(&physical, random, &mut found);
    let cores = one_of_each(&physical, random);
    let caches = by(cores, |at| (all[at].region, all[at].cache));
    chain(&caches, random, &mut found);
    let regions = by(one_of_each(&caches, random), |at| all[at].region);
    chain(&regions, random, &mut found);
    for (nth, here) in regions.iter().enumerate() {
        for there in &regions[nth + 1..] {
            found.push(ordered(one_of(here, random), one_of(there, random)));
        }
    }
    found
}

/// Places by what they have in common.
fn by<K: Ord>(places: impl IntoIterator<Item = usize>, of: impl Fn(usize) -> K) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<K, Vec<usize>> = BTreeMap::new();
    for at in places {
        groups.entry(of(at)).or_default().push(at);
    }
    groups.into_values().collect()
}

/// Joins the members of each group, in random order.
fn chain(groups: &[Vec<usize>], random: &mut Xoshiro256PlusPlus, found: &mut Vec<Pair>) {
    for group in groups {
        let mut members = group.clone();
        shuffle(&mut members, random);
        found.extend(members.windows(2).map(|two| ordered(two[0], two[1])));
    }
}

fn one_of_each(groups: &[Vec<usize>], random: &mut Xoshiro256PlusPlus) -> Vec<usize> {
    groups.iter().map(|group| one_of(group, random)).collect()
}

/// A member of a group, of which none is empty.
fn one_of(group: &[usize], random: &mut Xoshiro256PlusPlus) -> usize {
    let at = below(random, group.len() as u64);
    group[usize::try_from(at).unwrap_or(0)]
}

fn ordered(a: usize, b: usize) -> Pair {
    (a.min(b), a.max(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seats::tests::{ids, machine};

    #[test]
    fn every_pair_comes_once_and_the_first_ones_join_all_cores_on_each_level() {
        let machine = machine(4, 3, 4);
        let seats = Seats::of(&machine, &ids(&machine));
        let order = order(&seats, 5);
        let distinct: BTreeSet<Pair> = order.pairs.iter().copied().collect();
        assert_eq!((order.pairs.len(), distinct.len()), (96 * 95 / 2, 96 * 95 / 2));
        // Cores joined by pairs that have at least so much in common.
        let groups = |most: Stratum| {
            let mut of: Vec<usize> = (0..96).collect();
            for &(a, b) in &order.pairs[..order.least] {
                if seats.stratum(a, b) <= most {
                    let (from, to) = (of[a].max(of[b]), of[a].min(of[b]));
                    of.iter_mut().filter(|group| **group == from).for_each(|group| *group = to);
                }
            }
            of.into_iter().collect::<BTreeSet<_>>().len()
        };
        assert_eq!(groups(Stratum::Core), 48);
        assert_eq!(groups(Stratum::Cache), 12);
        assert_eq!(groups(Stratum::Region), 4);
    }

    #[test]
    fn each_stratum_has_enough_at_once_and_its_share_afterwards() {
        let machine = machine(16, 3, 4);
        let seats = Seats::of(&machine, &ids(&machine));
        let order = order(&seats, 5);
        let count = |pairs: &[Pair]| {
            let mut counts: BTreeMap<Stratum, usize> = BTreeMap::new();
            for &(a, b) in pairs {
                *counts.entry(seats.stratum(a, b)).or_default() += 1;
            }
            counts
        };
        let least = count(&order.pairs[..order.least]);
        assert_eq!(least.len(), 3 + 16 * 15 / 2);
        assert!(least.values().all(|pairs| *pairs >= STRATUM_PAIRS), "{least:?}");
        assert!(order.least < 384 * 8, "{} of {}", order.least, order.pairs.len());
        let half = count(&order.pairs[order.least..][..order.pairs.len() / 2]);
        let share = half[&Stratum::Region] as f64 / order.pairs.len() as f64;
        let truth = count(&order.pairs)[&Stratum::Region] as f64 / order.pairs.len() as f64 / 2.0;
        assert!((share / truth - 1.0).abs() < 0.1, "{share} {truth}");
    }

    #[test]
    fn of_cores_of_which_nothing_is_known_a_chain_comes_first() {
        let cores: Vec<_> = (0..6).map(isochrone_units::CoreId).collect();
        let order = order(&Seats::unknown(&cores), 1);
        assert_eq!((order.pairs.len(), order.least), (15, 15));
    }
}
