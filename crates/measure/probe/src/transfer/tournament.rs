//! Who meets whom in which round: every pair of cores once, disjoint pairs together.
//!
//! Pure combinatorics; knows nothing of time or memory.

/// A pair of positions in a list of cores, the smaller first.
pub type Pair = (usize, usize);

/// A pair that needs a helper: a third core that holds a copy of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Helped {
    /// The two that meet.
    pub pair: Pair,
    /// The third.
    pub helper: usize,
}

/// The rounds of a round-robin tournament of `players` by the circle method: one player stays,
/// the others turn by one place a round, and those who face each other meet. `players - 1` rounds
/// for an even number, `players` for an odd one (one sits out each round).
#[must_use]
pub fn rounds(players: usize) -> Vec<Vec<Pair>> {
    if players < 2 {
        return Vec::new();
    }
    // An odd circle is filled up by a player that nobody meets.
    let circle = players + players % 2;
    let turning = circle - 1;
    let seat = |round: usize, place: usize| (round + place) % turning;
    (0..turning)
        .map(|round| {
            let against_fixed = (seat(round, 0), circle - 1);
            let facing = (1..circle / 2).map(|place| {
                let (a, b) = (seat(round, place), seat(round, turning - place));
                (a.min(b), a.max(b))
            });
            std::iter::once(against_fixed).chain(facing).filter(|&(_, b)| b < players).collect()
        })
        .collect()
}

/// The rounds of [`rounds`], each cut in two so that the cores of one half help the pairs of the
/// other: at most twice as many rounds. Empty where there is no third core.
#[must_use]
pub fn rounds_with_helpers(players: usize) -> Vec<Vec<Helped>> {
    if players < 3 {
        return Vec::new();
    }
    rounds(players)
        .into_iter()
        .flat_map(|round| {
            let (first, second) = round.split_at(round.len().div_ceil(2));
            [help(players, first), help(players, second)]
        })
        .filter(|round| !round.is_empty())
        .collect()
}

/// Gives each of `pairs` a helper that no pair and no other helper of this round is.
fn help(players: usize, pairs: &[Pair]) -> Vec<Helped> {
    let mut busy = vec![false; players];
    pairs.iter().for_each(|&(a, b)| (busy[a], busy[b]) = (true, true));
    let free = (0..players).filter(|&player| !busy[player]);
    pairs.iter().zip(free).map(|(&pair, helper)| Helped { pair, helper }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn all_pairs(players: usize) -> BTreeSet<Pair> {
        (0..players).flat_map(|a| (a + 1..players).map(move |b| (a, b))).collect()
    }

    #[test]
    fn each_pair_meets_exactly_once_and_nobody_plays_twice_in_a_round() {
        for players in 0..=80 {
            let plan = rounds(players);
            let mut met = BTreeSet::new();
            for round in &plan {
                let mut playing = BTreeSet::new();
                for &(a, b) in round {
                    assert!(met.insert((a, b)), "{players} players: {a} meets {b} twice");
                    assert!(playing.insert(a) && playing.insert(b), "{a} or {b} plays twice");
                }
            }
            assert_eq!(met, all_pairs(players));
            let most = (players + players % 2).saturating_sub(1);
            assert_eq!(plan.len(), if players < 2 { 0 } else { most });
        }
    }

    #[test]
    fn sixty_four_cores_need_sixty_three_rounds() {
        let plan = rounds(64);
        assert_eq!(plan.len(), 63);
        assert!(plan.iter().all(|round| round.len() == 32));
    }

    #[test]
    fn helpers_are_third_cores_and_every_pair_is_still_there() {
        assert!(rounds_with_helpers(2).is_empty());
        for players in 3..=40 {
            let plan = rounds_with_helpers(players);
            let mut met = BTreeSet::new();
            for round in &plan {
                let mut seen = BTreeSet::new();
                for helped in round {
                    assert!(met.insert(helped.pair));
                    for core in [helped.pair.0, helped.pair.1, helped.helper] {
                        assert!(seen.insert(core), "{players}: core {core} is asked twice");
                    }
                }
            }
            assert_eq!(met, all_pairs(players), "{players} players");
            assert!(plan.len() <= 2 * rounds(players).len());
        }
    }
}
