//! What placement believes of a memory: the paper's "latency data base", as an atlas has it, and
//! how much of it is true.

use std::collections::BTreeMap;

use isochrone_atlas::{Code, Period};
use isochrone_sim::synthetic::SyntheticMemory;
use isochrone_stats::pearson;

use super::map::Map;
use crate::number::{real, single, wide};

/// Lines after which the truth repeats.
const INDICES: usize = 64;
/// Correlation at which a code predicts the latencies of a page: as the probe counts right codes
/// of held-out pages.
const SAME_CODE: f64 = 0.98;

/// What is known of the memory of a chip when nodes are placed in it.
///
/// The form fits this machine because the controller of a line is assumed to follow from the
/// same address bits as its directory; with controllers hashed apart, a page would need eight
/// classes, and a code has room for four.
#[derive(Clone, Debug, PartialEq)]
pub struct Database {
    /// Memory latency in cycles by core, class of pages and canonical index, 64 or 256 of these;
    /// `None` for a core of which nothing is known.
    pub bases: Vec<Option<Vec<Vec<f32>>>>,
    /// Code of each page, such that `code ^ line in page` finds a line's latency in the classes of
    /// a core one after the other; 65535 where it is not known.
    pub codes: Vec<u16>,
}

/// How much of a database is true.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knowledge {
    /// Cores that have a base, as a share of all.
    pub cores: f64,
    /// Bases that are not the same; in truth each core has its own.
    pub bases: usize,
    /// Latencies that a core's base tells, over all classes; in truth there are 64.
    pub indices: usize,
    /// Pages that have a code, as a share of all.
    pub decoded: f64,
    /// Pages whose code predicts how their lines differ, as a share of all: over the cores the
    /// mean correlation with the truth is 0.98 or more.
    pub right: f64,
}

impl Database {
    /// The database of somebody who measured without error. `None` where the form does not hold.
    #[must_use]
    pub fn of_truth(memory: &SyntheticMemory) -> Option<Self> {
        Map::of(memory).map(|map| Self::of_map(&map))
    }

    /// The same, of a map.
    pub(super) fn of_map(map: &Map) -> Self {
        let base = |cycles: &[f64; INDICES]| cycles.iter().map(|cycles| single(*cycles)).collect();
        Self {
            bases: map.cycles.iter().map(|cycles| Some(vec![base(cycles)])).collect(),
            codes: map.keys.iter().map(|key| u16::from(*key)).collect(),
        }
    }

    /// Over all blocks the most that one takes from one core over another.
    pub(super) fn spread_of_a_block(&self) -> f64 {
        let bases: Vec<&Vec<f32>> = self.bases.iter().flatten().flatten().collect();
        let lines = 0..bases.iter().map(|base| base.len()).min().unwrap_or(0);
        let of = |line: usize| {
            let seen = bases.iter().map(|base| f64::from(base[line]));
            let (least, most) =
                seen.fold((f64::INFINITY, 0.0), |(a, b), v| (f64::min(a, v), f64::max(b, v)));
            most / least
        };
        lines.map(of).fold(1.0, f64::max)
    }

    /// What of it is true of the first so many pages of a memory.
    pub(super) fn knowledge(&self, map: &Map, pages: usize) -> Knowledge {
        let known = self.bases.iter().flatten();
        let mut bases: Vec<&Vec<Vec<f32>>> = Vec::new();
        for base in known.clone() {
            if !bases.contains(&base) {
                bases.push(base);
            }
        }
        let indices = known.clone().map(|base| base.concat().len()).max().unwrap_or(0);
        // Keys may have other names: what counts is by how much a code differs from the key.
        let right: Vec<bool> = (0..indices).map(|at| self.predicts(map, at)).collect();
        let is_right = |(code, key): (&u16, &u8)| {
            right.get(usize::from(*code) ^ usize::from(*key)) == Some(&true)
        };
        let codes = || self.codes.iter().zip(&map.keys).take(pages);
        let share = |part: usize, all: usize| real(wide(part)) / real(wide(all));
        let decoded = codes().filter(|(code, _)| Code(**code) != Code::UNKNOWN).count();
        Knowledge {
            cores: share(known.count(), self.bases.len()),
            bases: bases.len(),
            indices,
            decoded: share(decoded, pages),
            right: share(codes().filter(|page| is_right(*page)).count(), pages),
        }
    }

    /// The same codes, read by the true bases: each stands for the key that most of its pages
    /// have, and the pages that it was given wrongly keep it.
    pub(super) fn with_bases_of(&self, map: &Map) -> Self {
        let mut votes: BTreeMap<u16, [u32; INDICES]> = BTreeMap::new();
        for (code, key) in self.codes.iter().zip(&map.keys) {
            votes.entry(*code).or_insert([0; INDICES])[usize::from(*key)] += 1;
        }
        let most = |votes: &[u32; INDICES]| (0..).zip(*votes).max_by_key(|(_, votes)| *votes);
        let mut keys: BTreeMap<u16, u16> = BTreeMap::new();
        for (code, votes) in votes.iter().filter(|(code, _)| Code(**code) != Code::UNKNOWN) {
            keys.extend(most(votes).map(|(key, _)| (*code, key)));
        }
        let key = |code: &u16| keys.get(code).copied().unwrap_or(Code::UNKNOWN.0);
        Self { codes: self.codes.iter().map(key).collect(), ..Self::of_map(map) }
    }

    /// Whether pages are predicted whose code differs by this from their key.
    fn predicts(&self, map: &Map, by: usize) -> bool {
        let like = |(base, truth): (&Option<Vec<Vec<f32>>>, &[f64; INDICES])| {
            let base = base.as_ref()?.concat();
            let told = |index: usize| base.get(index ^ by).map(|cycles| f64::from(*cycles));
            pearson(&(0..INDICES).map(told).collect::<Option<Vec<f64>>>()?, truth)
        };
        let all: Vec<f64> = self.bases.iter().zip(&map.cycles).filter_map(like).collect();
        isochrone_stats::mean(&all).is_some_and(|mean| mean >= SAME_CODE)
    }
}

/// Whether a database has what a plan asks of it.
pub(super) fn covers(database: &Database, cores: u16, pages: u32) -> bool {
    database.bases.len() >= usize::from(cores)
        && database.bases.iter().any(Option::is_some)
        && database.codes.len() >= pages as usize
}

/// The period of a base; one that is none is refused where a table is made of it.
pub(super) fn period_of(base: &[Vec<f32>]) -> Period {
    let long = base.first().is_some_and(|class| class.len() > INDICES);
    if long { Period::Lines256 } else { Period::Lines64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure4::chip::Chip;
    use crate::figure4::constants::Costs;

    #[test]
    fn another_name_of_every_key_is_as_right_and_a_wrong_key_is_wrong() {
        let machine = isochrone_host::find_machine("xeon-phi-5110p").unwrap();
        let chip = Chip::new(&machine, &Costs::of(&machine).unwrap()).unwrap();
        let map = Map::of(&chip.memory(512, 5).unwrap()).unwrap();
        let truth = Database::of_map(&map);
        let all = Knowledge { cores: 1.0, bases: 60, indices: 64, decoded: 1.0, right: 1.0 };
        assert_eq!(truth.knowledge(&map, 512), all);

        let mut renamed = truth.clone();
        let turned = |base: &[f32]| (0..INDICES).map(|i| base[i ^ 13]).collect::<Vec<_>>();
        for base in renamed.bases.iter_mut().flatten().flatten() {
            *base = turned(base);
        }
        renamed.codes.iter_mut().for_each(|code| *code ^= 13);
        assert_eq!(renamed.knowledge(&map, 512), all);

        renamed.codes[..128].iter_mut().for_each(|code| *code ^= 21);
        renamed.codes[128] = Code::UNKNOWN.0;
        renamed.bases[7] = None;
        let codes = renamed.with_bases_of(&map);
        let read = codes.knowledge(&map, 512);
        assert_eq!((read.cores, read.decoded), (1.0, 511.0 / 512.0));
        assert_eq!(codes.codes[200..], truth.codes[200..]);
        let found = renamed.knowledge(&map, 512);
        assert_eq!((found.cores, found.decoded), (59.0 / 60.0, 511.0 / 512.0));
        assert_eq!(found.right, 383.0 / 512.0);
    }
}
