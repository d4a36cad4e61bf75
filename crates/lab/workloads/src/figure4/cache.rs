//! The two caches of one core: set-associative, least recently used, the second one holding all
//! that the first one holds. Only which lines are in them; no time, no data.

use super::constants::WAYS;

/// Where an access found its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hit {
    /// In the first-level cache.
    L1,
    /// In the second-level cache.
    L2,
    /// In neither: memory is read.
    Memory,
}

/// One cache: in each set the most recently used line first. 0 is an empty way.
#[derive(Clone, Debug)]
struct Cache {
    sets: Vec<[u32; WAYS]>,
}

impl Cache {
    fn new(lines: usize) -> Self {
        Self { sets: vec![[0; WAYS]; (lines / WAYS).next_power_of_two()] }
    }

    fn set(&mut self, line: u32) -> &mut [u32; WAYS] {
        let last = self.sets.len() - 1;
        &mut self.sets[line as usize & last]
    }

    /// The way of a line. All ways are compared at once: almost every look-up of the linear
    /// shape finds nothing, and this is where a run spends its time.
    #[inline]
    fn way(set: &[u32; WAYS], line: u32) -> Option<usize> {
        let bits = (0..)
            .zip(set)
            .fold(0_u32, |bits, (way, held)| bits | u32::from(*held == line + 1) << way);
        (bits != 0).then_some(bits.trailing_zeros() as usize)
    }

    /// Whether a line is there; it then is the most recently used of its set.
    #[inline]
    fn touch(&mut self, line: u32) -> bool {
        let set = self.set(line);
        let Some(way) = Self::way(set, line) else { return false };
        set[..=way].rotate_right(1);
        true
    }

    /// Puts a line in; the line that had to leave.
    #[inline]
    fn fill(&mut self, line: u32) -> Option<u32> {
        let set = self.set(line);
        set.rotate_right(1);
        let out = core::mem::replace(&mut set[0], line + 1);
        out.checked_sub(1)
    }

    /// Takes a line out, if it is there.
    fn drop(&mut self, line: u32) {
        let set = self.set(line);
        if let Some(way) = Self::way(set, line) {
            set[way..].rotate_left(1);
            set[WAYS - 1] = 0;
        }
    }
}

/// Both caches of a core.
#[derive(Clone, Debug)]
pub(super) struct Caches {
    l1: Cache,
    l2: Cache,
}

impl Caches {
    /// Empty caches of so many lines.
    pub(super) fn new(l1_lines: usize, l2_lines: usize) -> Self {
        Self { l1: Cache::new(l1_lines), l2: Cache::new(l2_lines) }
    }

    /// An access to a physical line, which is in both caches afterwards.
    #[inline]
    pub(super) fn access(&mut self, line: u32) -> Hit {
        if self.l1.touch(line) {
            return Hit::L1;
        }
        let hit = if self.l2.touch(line) {
            Hit::L2
        } else {
            if let Some(out) = self.l2.fill(line) {
                self.l1.drop(out);
            }
            Hit::Memory
        };
        self.l1.fill(line);
        hit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_line_of_a_set_leaves() {
        let mut caches = Caches::new(16, 64);
        // Eight sets in the second level: multiples of 8 share a set.
        let lines: Vec<u32> = (0..8).map(|i| 8 * i).collect();
        assert!(lines.iter().all(|line| caches.access(*line) == Hit::Memory));
        assert!(lines.iter().all(|line| caches.access(*line) != Hit::Memory));
        assert_eq!(caches.access(64), Hit::Memory);
        assert_eq!(caches.access(0), Hit::Memory, "0 was used longest ago and left");
        assert_ne!(caches.access(16), Hit::Memory);
        assert_eq!(caches.access(8), Hit::Memory, "and 8 left for it");
        assert_eq!(caches.access(8), Hit::L1);
    }

    #[test]
    fn a_cyclic_walk_over_twice_the_cache_never_hits() {
        let mut caches = Caches::new(512, 8192);
        let misses = (0..3 * 16_384).filter(|i| caches.access(i % 16_384) == Hit::Memory).count();
        assert_eq!(misses, 3 * 16_384);
        let mut caches = Caches::new(512, 8192);
        let misses = (0..3 * 8192).filter(|i| caches.access(i % 8192) == Hit::Memory).count();
        assert_eq!(misses, 8192, "and over the cache itself only at first");
    }

    #[test]
    fn what_leaves_the_second_level_leaves_the_first() {
        let mut caches = Caches::new(16, 16);
        (0..8).for_each(|i| {
            caches.access(2 * i);
        });
        caches.access(16);
        assert_eq!(caches.access(0), Hit::Memory);
    }
}
