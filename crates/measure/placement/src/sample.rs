//! Which of many items are searched. A search takes time by the cube of the items, and a few of them show a shape as
//! well as all: the others find their cells by those. It knows nothing of latencies.

use rand::Rng;
use rand::seq::SliceRandom;

/// Items that are searched at most, and places by which chance is judged: all of a socket of today.
pub(super) const SEARCHED: usize = 64;

/// Some of so many items, in ascending order, each as likely as any other; none where all of them are searched. What
/// holds for a random part and is tested there holds for the whole.
pub(super) fn draw(items: usize, rng: &mut impl Rng) -> Option<Vec<usize>> {
    if items <= SEARCHED {
        return None;
    }
    let mut chosen: Vec<usize> = (0..items).collect();
    chosen.shuffle(rng);
    chosen.truncate(SEARCHED);
    chosen.sort_unstable();
    Some(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    #[test]
    fn few_are_searched_whole_and_of_many_some_from_everywhere() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        assert_eq!(draw(SEARCHED, &mut rng), None);
        let chosen = draw(576, &mut rng).unwrap();
        assert!(chosen.len() == SEARCHED && chosen.is_sorted());
        assert!((0..8).all(|part| chosen.iter().any(|item| item / 72 == part)), "{chosen:?}");
    }
}
