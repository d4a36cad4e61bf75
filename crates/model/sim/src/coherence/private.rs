//! One core's own caches, line by line: its second level, and its share of the last one. What passes both is
//! what a kernel asks of memory again and again, and what larger grains multiply by.

/// Lines of 64 bytes.
const LINE: u64 = 64;
/// Ways of the second level and of the last one (Intel, Haswell).
const WAYS: [usize; 2] = [8, 20];

/// A set-associative cache; the line that was not used for the longest time leaves its set.
#[derive(Clone, Debug)]
struct Level {
    ways: usize,
    sets: u64,
    /// Line plus one, and when it was used last; 0: empty.
    lines: Vec<(u64, u64)>,
    now: u64,
}

impl Level {
    fn new(bytes: u64, ways: usize) -> Self {
        let sets = (bytes / LINE / ways as u64).max(1);
        let slots = crate::number::index(sets) * ways;
        Self { ways, sets, lines: vec![(0, 0); slots], now: 0 }
    }

    /// Whether the line was there; it is now.
    fn touch(&mut self, line: u64) -> bool {
        self.now += 1;
        // Upper bits are folded in, as last-level caches do, so that strides use all sets.
        let set = crate::number::index((line ^ (line >> 11) ^ (line >> 23)) % self.sets);
        let slots = &mut self.lines[set * self.ways..(set + 1) * self.ways];
        if let Some(slot) = slots.iter_mut().find(|(held, _)| *held == line + 1) {
            slot.1 = self.now;
            return true;
        }
        let oldest = slots.iter_mut().min_by_key(|(_, used)| *used);
        if let Some(slot) = oldest {
            *slot = (line + 1, self.now);
        }
        false
    }
}

/// A core's second level and its share of the last.
#[derive(Clone, Debug)]
pub struct PrivateCaches {
    second: Level,
    share: Level,
    /// Lines that came from behind both, by operand.
    fetched: Vec<u64>,
}

impl PrivateCaches {
    /// Caches of so many bytes, for a kernel with so many operands.
    #[must_use]
    pub fn new(second_bytes: u64, share_bytes: u64, operands: usize) -> Self {
        Self {
            second: Level::new(second_bytes, WAYS[0]),
            share: Level::new(share_bytes, WAYS[1]),
            fetched: vec![0; operands],
        }
    }

    /// The core uses `bytes` bytes of an operand, from `at` on. Operands do not overlap.
    pub fn touch(&mut self, operand: usize, at: u64, bytes: u64) {
        for line in at / LINE..(at + bytes).div_ceil(LINE) {
            // Operands lie far from each other.
            let line = line + ((operand as u64 + 1) << 32);
            if !self.second.touch(line) && !self.share.touch(line) {
                self.fetched[operand] += 1;
            }
        }
    }

    /// Lines fetched from behind both levels, by operand.
    #[must_use]
    pub fn fetched(&self) -> &[u64] {
        &self.fetched
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_fetched_once_and_what_does_not_each_time() {
        let mut caches = PrivateCaches::new(256 << 10, 1 << 20, 2);
        for _ in 0..4 {
            caches.touch(0, 0, 512 << 10);
        }
        assert_eq!(caches.fetched()[0], 8192);
        for _ in 0..4 {
            caches.touch(1, 0, 8 << 20);
        }
        assert_eq!(caches.fetched()[1], 4 * 131_072);
    }
}
