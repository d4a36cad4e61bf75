//! What the timed loads promise: every line is loaded, none outside, flushed lines are farther
//! than cached ones, and a chase visits each line of its ring once. No test asserts a time.

use super::*;
use crate::mapping::Backing;
use std::vec;
use std::vec::Vec;

/// One line in each of `pages` pages, so that no line brings in another, and in an order without
/// a stride, so that no prefetcher knows the next.
fn one_line_a_page(pages: u64) -> Vec<LineAddr> {
    shuffled(pages).into_iter().map(|page| LineAddr(page.0 * 64 + page.0 * 23 % 64)).collect()
}

/// The lines below `count` in an order that looks random and is always the same (Fisher-Yates
/// over Knuth's MMIX generator).
fn shuffled(count: u64) -> Vec<LineAddr> {
    let mut lines: Vec<LineAddr> = (0..count).map(LineAddr).collect();
    let mut state = 1_u64;
    for left in (1..lines.len()).rev() {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let chosen = usize::try_from(state >> 33).expect("31 bits") % (left + 1);
        lines.swap(left, chosen);
    }
    lines
}

fn mean(samples: &[Cycles]) -> f64 {
    let sum: f64 = samples.iter().map(|sample| f64::from(sample.0)).sum();
    sum / f64::from(u32::try_from(samples.len()).expect("few samples"))
}

/// A mean that an interrupt or a busy neighbour does not spoil: the middle half of the samples.
fn middle_mean(mut samples: Vec<Cycles>) -> f64 {
    samples.sort_unstable();
    mean(&samples[samples.len() / 4..samples.len() * 3 / 4])
}

#[test]
fn flushed_lines_are_farther_than_cached_ones() {
    let mapping = Mapping::anonymous(4 << 20, Backing::Transparent2M).expect("4 MiB");
    let lines = one_line_a_page(128);
    let overhead = crate::clock::Clock::calibrate().overhead;
    let (mut near, mut far) = (Vec::new(), Vec::new());
    let mut out = vec![Cycles(0); lines.len()];
    for _ in 0..64 {
        if let Err(error) = sample_flushed(&mapping, &lines, &mut out) {
            let can = Features::detect().clflush && crate::clock::times_loads();
            return assert!(error.is_unsupported() && !can, "{error}");
        }
        far.extend_from_slice(&out);
        touch(&mapping, &lines).expect("lines inside");
        time_lines(&mapping, &lines, &mut out).expect("lines inside");
        near.extend_from_slice(&out);
    }
    let near = (middle_mean(near) - overhead).max(1.0);
    let far = middle_mean(far) - overhead;
    assert!(far > 2.0 * near, "flushed {far}, cached {near} cycles over the timer's cost");
}

#[test]
fn evicted_lines_lie_between_cached_and_flushed_ones() {
    let mapping = Mapping::anonymous(2 << 20, Backing::Transparent2M).expect("2 MiB");
    let evictor = Mapping::anonymous(8 << 20, Backing::Transparent2M).expect("8 MiB");
    let lines = one_line_a_page(128);
    let (mut near, mut evicted) = (Vec::new(), Vec::new());
    let mut out = vec![Cycles(0); lines.len()];
    for _ in 0..32 {
        let swept = sample_evicted(&mapping, &lines, &evictor, evictor.len(), &mut out);
        if let Err(error) = swept {
            return assert!(error.is_unsupported() && !crate::clock::times_loads(), "{error}");
        }
        evicted.extend_from_slice(&out);
        touch(&mapping, &lines).expect("lines inside");
        time_lines(&mapping, &lines, &mut out).expect("lines inside");
        near.extend_from_slice(&out);
    }
    let (near, evicted) = (middle_mean(near), middle_mean(evicted));
    assert!(evicted > near, "evicted {evicted}, cached {near} cycles");
}

#[test]
fn a_sweep_reads_every_line_once_and_never_follows_a_stride() {
    for count in [1_usize, 2, 3, 64, 1000, 49_152] {
        let order: Vec<usize> = (0..count).map(|position| scattered(position, count)).collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..count), "{count} lines, each once");
        let near = order.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 64).count();
        assert!(count < 1000 || near * 5 < count, "{near} of {count} steps stay within a page");
        let mut strides: Vec<usize> =
            order.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
        let same = strides.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert!(count < 1000 || same * 5 < count, "{same} of {count} steps repeat the last");
        strides.sort_unstable();
        strides.dedup();
        assert!(count < 1000 || strides.len() * 20 > count, "{} strides", strides.len());
    }
}

#[test]
fn demotion_is_refused_where_the_cpu_has_none() {
    let mapping = Mapping::anonymous(4096, Backing::Small).expect("4 KiB");
    let mut out = [Cycles(7)];
    let result = sample_demoted(&mapping, &[LineAddr(0)], &mut out);
    if Features::detect().cldemote {
        assert_eq!(result, Ok(()));
        assert_ne!(out, [Cycles(7)]);
    } else {
        let error = result.expect_err("there is no cldemote");
        assert!(error.is_unsupported(), "{error}");
        assert_eq!(error.advice.contains("eviction"), crate::clock::times_loads(), "{error}");
        assert_eq!(out, [Cycles(7)], "nothing may be invented");
    }
}

#[test]
fn lines_outside_and_slots_that_lack_are_refused() {
    let mapping = Mapping::anonymous(4096, Backing::Small).expect("4 KiB");
    let mut out = [Cycles(7); 2];
    let outside = [LineAddr(0), LineAddr(64)];
    let far_outside = [LineAddr(0), LineAddr(u64::MAX)];
    for lines in [outside, far_outside] {
        assert!(time_lines(&mapping, &lines, &mut out).is_err());
        assert!(sample_flushed(&mapping, &lines, &mut out).is_err());
        assert!(sample_demoted(&mapping, &lines, &mut out).is_err());
        assert!(sample_evicted(&mapping, &lines, &mapping, 4096, &mut out).is_err());
        assert!(touch(&mapping, &lines).is_err() && flush(&mapping, &lines).is_err());
    }
    let inside = [LineAddr(0), LineAddr(63)];
    assert!(time_lines(&mapping, &inside, &mut out[..1]).is_err());
    assert!(sample_evicted(&mapping, &inside, &mapping, 4097, &mut out).is_err());
    assert_eq!(out, [Cycles(7); 2]);
}

#[test]
fn every_slot_is_written() {
    let mapping = Mapping::anonymous(1 << 20, Backing::Small).expect("1 MiB");
    let lines = one_line_a_page(256);
    let mut out = vec![Cycles(u32::MAX); 256];
    match time_lines(&mapping, &lines, &mut out) {
        Ok(()) => assert!(out.iter().filter(|sample| sample.0 == u32::MAX).count() == 0),
        Err(error) => assert!(error.is_unsupported() && !crate::clock::times_loads(), "{error}"),
    }
}

#[test]
fn a_chase_visits_every_line_of_its_ring_once_and_in_order() {
    let mut mapping = Mapping::anonymous(1 << 20, Backing::Small).expect("1 MiB");
    let order = shuffled(1 << 12);
    let ring = link(&mut mapping, &order).expect("each line once");
    assert_eq!(ring.len(), 1 << 12);
    let mut marked = vec![0_u32; 1 << 14];
    let mut cursor = ring.cursor();
    for &expected in &order {
        assert_eq!(cursor.line(), expected);
        marked[usize::try_from(expected.0).expect("small")] += 1;
        cursor.chase(1);
    }
    assert_eq!(cursor.line(), order[0], "the ring closes");
    assert!(marked[..1 << 12].iter().all(|&marks| marks == 1));
    assert!(marked[1 << 12..].iter().all(|&marks| marks == 0));
}

#[test]
fn long_chases_take_exactly_their_steps() {
    let mut mapping = Mapping::anonymous(1 << 18, Backing::Small).expect("256 KiB");
    let order = shuffled(1 << 10);
    let ring = link(&mut mapping, &order).expect("each line once");
    let mut cursor = ring.cursor();
    let mut place = 0;
    for steps in [0, 1, 7, 8, 9, 64, 1000, 12_345] {
        cursor.chase(steps);
        place = (place + usize::try_from(steps).expect("small")) % order.len();
        assert_eq!(cursor.line(), order[place], "after {steps} steps");
    }
    let mut out = [u64::MAX; 5];
    cursor.chase_many(100, &mut out);
    place = (place + 500) % order.len();
    assert_eq!(cursor.line(), order[place]);
    assert!(out.iter().all(|&cycles| cycles != u64::MAX));
    assert_eq!(ring.line_after(1 << 40), order[0]);
    assert_eq!(ring.line_after(3), order[3]);
}

#[test]
fn threads_share_a_ring() {
    let mut mapping = Mapping::anonymous(1 << 18, Backing::Small).expect("256 KiB");
    let order = shuffled(1 << 10);
    let ring = link(&mut mapping, &order).expect("each line once");
    let ends: Vec<LineAddr> = std::thread::scope(|threads| {
        let walk = |steps| {
            let mut cursor = ring.cursor();
            threads.spawn(move || {
                cursor.chase(steps);
                cursor.line()
            })
        };
        [walk(10), walk(100_000)].map(|thread| thread.join().expect("it walks")).to_vec()
    });
    assert_eq!(ends, [order[10], order[100_000 % 1024]]);
}

#[test]
fn rings_that_would_not_close_are_refused() {
    let mut mapping = Mapping::anonymous(4096, Backing::Small).expect("4 KiB");
    let twice = [LineAddr(1), LineAddr(2), LineAddr(1)];
    for order in [&[][..], &twice[..], &[LineAddr(64)][..]] {
        assert!(link(&mut mapping, order).is_err_and(|e| e.errno == libc::EINVAL));
    }
    let one = link(&mut mapping, &[LineAddr(5)]).expect("a ring of one");
    assert_eq!(one.line_after(3), LineAddr(5));
    let mut shared = Mapping::shared_memfd(4096).expect("4 KiB");
    assert!(link(&mut shared, &[LineAddr(0)]).is_err());
}

#[test]
fn a_chase_of_more_steps_takes_more_cycles() {
    let mut mapping = Mapping::anonymous(1 << 20, Backing::Small).expect("1 MiB");
    let ring = link(&mut mapping, &shuffled(1 << 10)).expect("each line once");
    let (mut short, mut long) = ([0; 101], [0; 101]);
    ring.cursor().chase_many(1000, &mut short);
    ring.cursor().chase_many(4000, &mut long);
    short.sort_unstable();
    long.sort_unstable();
    assert!(long[50] > 2 * short[50], "1000 steps {}, 4000 steps {}", short[50], long[50]);
}
