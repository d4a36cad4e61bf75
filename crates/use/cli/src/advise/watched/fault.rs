//! What a page fault costs here, measured: pages of new memory are touched by one thread, when the program has ended.

use std::sync::atomic::Ordering;
use std::time::Instant;

use isochrone_os::mapping::Mapping;
use isochrone_units::PAGE_BYTES;

/// Memory that is touched: some milliseconds.
const BYTES: usize = 16 << 20;
/// Pages of which one time is taken, long enough that a clock's reading does not count.
const PAGES: usize = 128;

/// Nanoseconds of a fault on a small page of new memory: of a batch in the middle. Nothing where there is no memory.
pub(super) fn small_page_ns() -> Option<f64> {
    let mapping = Mapping::absent(BYTES).ok()?;
    let words_of_a_page = PAGE_BYTES / size_of::<u64>();
    let batches = mapping.words().chunks(PAGES * words_of_a_page).map(|batch| {
        let begin = Instant::now();
        batch.iter().step_by(words_of_a_page).for_each(|word| word.store(1, Ordering::Relaxed));
        begin.elapsed().as_secs_f64() * 1e9 / PAGES as f64
    });
    let mut batches: Vec<f64> = batches.collect();
    batches.sort_by(f64::total_cmp);
    batches.get(batches.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_costs_something() {
        assert!(small_page_ns().is_some_and(|ns| ns > 0.0 && ns.is_finite()));
    }
}
