//! The clock behind every sample: the time-stamp counter read in order, its rate, its step, and
//! what timing nothing costs.
//!
//! It never corrects for a changing core clock: the counter runs at one rate ([`is_invariant`]),
//! and callers keep the core warm. On AArch64 the counter is the generic timer's, whose counts are called cycles
//! here too. On CPUs without a counter that this crate knows, it counts the nanoseconds of the system's clock instead.

use crate::affinity::ThreadId;
use crate::arch;
use crate::cache::Features;
use core::sync::atomic::{AtomicU8, Ordering};
use rustix::time::{ClockId, clock_gettime};

/// Reads the counter before something that is timed. What came before is complete, and what
/// follows has not begun.
#[inline(always)]
#[must_use]
pub fn start() -> u64 {
    arch::start()
}

/// Reads the counter after something that is timed; that is complete.
#[inline(always)]
#[must_use]
pub fn stop() -> u64 {
    arch::stop()
}

/// Whether the counter runs at one rate whatever the core does.
#[must_use]
pub fn is_invariant() -> bool {
    Features::detect().invariant_tsc
}

/// Nanoseconds of the system's raw monotonic clock, which no time service slews. By the C library, which has found
/// the kernel's function for it before the program began: this is asked below `malloc`, on stacks of a few KiB.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes a time to the local. The clock is there since Linux 2.6.28, so that it cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &raw mut now) };
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(now.tv_sec) * 1_000_000_000 + part(now.tv_nsec)
}

/// Nanoseconds for which the calling thread has had a core: what a computation costs on a machine that others
/// use too.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    cpu_ns(ClockId::ThreadCPUTime)
}

/// The same of all threads of the process together.
#[must_use]
pub fn process_cpu_ns() -> u64 {
    cpu_ns(ClockId::ProcessCPUTime)
}

/// Nanoseconds for which another thread of this process has had a core; `None` where the kernel does not say, as for
/// a thread that has ended or is of another process.
#[must_use]
pub fn cpu_ns_of(thread: ThreadId) -> Option<u64> {
    /// `CPUCLOCK_SCHED` and `CPUCLOCK_PERTHREAD` (Linux, include/linux/posix-timers.h).
    const THREAD_CLOCK: i32 = 2 | 4;
    // 0 would be the calling thread.
    let number = (thread.0 > 0).then_some(thread.0)?;
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes a time to the local; of a clock that is not there the kernel says so.
    let said = unsafe { libc::clock_gettime(!number << 3 | THREAD_CLOCK, &raw mut now) };
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    (said == 0).then(|| part(now.tv_sec) * 1_000_000_000 + part(now.tv_nsec))
}

fn cpu_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(now.tv_sec) * 1_000_000_000 + part(now.tv_nsec)
}

/// The coarsest step of a counter by which single loads are timed, ns. With 10 ns (an EPYC's 26 cycles, 100 MHz)
/// means over some tens of samples were seen to tell patterns that are 12 cycles high; with 40 (25 MHz) the pattern
/// of a page would be a third of a step.
const STEP_NS_MOST: f64 = 12.5;

/// Whether single loads can be timed: the counter's steps, as measured once, are small enough.
#[must_use]
pub fn times_loads() -> bool {
    /// 0: not known yet. Relaxed: a number that means nothing else; who looks too early measures again.
    static FINE: AtomicU8 = AtomicU8::new(0);
    const NO: u8 = 1;
    const YES: u8 = 2;
    if !arch::TIMED_LOADS || arch::COUNTER_IS_FINE {
        return arch::TIMED_LOADS;
    }
    match FINE.load(Ordering::Relaxed) {
        0 => {
            let hz = arch::nominal_hz().map_or(0.0, as_f64);
            let fine = is_fine(tick(), hz);
            FINE.store(if fine { YES } else { NO }, Ordering::Relaxed);
            fine
        }
        known => known == YES,
    }
}

/// Whether steps of so many counts at this rate are small enough.
fn is_fine(tick: u32, hz: f64) -> bool {
    f64::from(tick) * 1e9 <= STEP_NS_MOST * hz
}

/// What is known of the counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    /// Cycles in a second.
    pub hz: f64,
    /// The rate lies in `hz - hz_error ..= hz + hz_error`: the two clocks were not read at one
    /// instant, and this is the most that it can have cost.
    pub hz_error: f64,
    /// The counter moves in steps of so many cycles, rounded up: a step need not be a whole number.
    pub tick: u32,
    /// Cycles that timing nothing takes, as a mean: a single reading is some steps of the counter.
    pub overhead: f64,
}

impl Clock {
    /// Measures the counter, in about 20 ms of busy waiting on the core that runs this.
    #[must_use]
    pub fn calibrate() -> Self {
        let (hz, error) = rate(CALIBRATION_NS);
        let tick = tick();
        Self { hz, hz_error: error.hz(tick), tick, overhead: overhead(tick) }
    }

    /// Cycles as nanoseconds.
    #[must_use]
    pub fn ns(&self, cycles: f64) -> f64 {
        cycles * 1e9 / self.hz
    }
}

/// How long the rate is watched. Two clock reads lie within some 30 ns of each other, so this
/// gives the rate to a few parts in a million.
const CALIBRATION_NS: u64 = 20_000_000;

/// Successive reads from which the step is found.
const TICK_READS: usize = 512;

/// Empty regions timed for the overhead.
const OVERHEAD_READS: usize = 4096;

/// One instant on both clocks: `cycles` is the middle of a bracket `width` wide.
struct Instant {
    ns: u64,
    cycles: u64,
    width: u64,
}

/// Reads both clocks as near to each other as the best of several tries allows.
fn instant() -> Instant {
    let read = || {
        let before = start();
        let ns = monotonic_ns();
        let width = stop().saturating_sub(before);
        Instant { ns, cycles: before + width / 2, width }
    };
    (0..32).map(|_| read()).min_by_key(|instant| instant.width).unwrap_or_else(read)
}

/// What two instants can be off by.
#[derive(Clone, Copy)]
struct Off {
    /// Widths of both brackets, cycles.
    widths: u64,
    seconds: f64,
}

impl Off {
    /// Of the rate: half of each bracket, and no less than a step of the counter. A coarse one may show brackets of 0.
    fn hz(self, tick: u32) -> f64 {
        (as_f64(self.widths) * 0.5).max(f64::from(tick)) / self.seconds
    }
}

/// Cycles a second, and what that can be off by.
fn rate(interval_ns: u64) -> (f64, Off) {
    let begin = instant();
    while monotonic_ns() < begin.ns + interval_ns {
        core::hint::spin_loop();
    }
    let end = instant();
    let seconds = as_f64(end.ns - begin.ns) * 1e-9;
    let hz = as_f64(end.cycles.saturating_sub(begin.cycles)) / seconds;
    (hz, Off { widths: begin.width + end.width, seconds })
}

/// The step of the counter, found from reads at odd distances.
fn tick() -> u32 {
    let mut differences = [0; TICK_READS];
    let mut waits = Waits::new();
    for difference in &mut differences {
        let before = arch::start();
        waits.wait();
        let elapsed = arch::stop().saturating_sub(before);
        *difference = u32::try_from(elapsed).unwrap_or(0);
    }
    differences.sort_unstable();
    // Two reads within one step tell nothing of its length. Most pairs are that where steps are long.
    let within = differences.partition_point(|&difference| difference == 0);
    common_step(&mut differences[within..])
}

/// The largest step of which 15 differences in 16 are multiples, rounded up. Not of all of them: AMD's counter
/// adds 1 to a read that would repeat the one before, and a thread that goes on on another core
/// meets a counter that need not be whole steps ahead.
fn common_step(differences: &mut [u32]) -> u32 {
    differences.sort_unstable();
    let median = differences.get(differences.len() / 2).copied().unwrap_or(1);
    let enough = |whole: usize| whole * 16 >= differences.len() * 15;
    let is_common = |step: &u32| {
        enough(differences.iter().filter(|&&difference| difference % step == 0).count())
    };
    let whole = (2..=median).rev().find(is_common);
    whole.or_else(|| uneven_step(differences, median)).unwrap_or(1)
}

/// Parts of a cycle by which uneven steps are tried.
const PARTS: u32 = 32;
/// The least uneven step that is looked for: a fifth of all differences lie within a cycle of multiples of ten by
/// chance.
const UNEVEN_LEAST: u32 = 10;

/// The largest step that is no whole number of cycles, rounded up. The counter of an EPYC 7003 with 2.445 GHz shows
/// 100 MHz times 24.45, cut to whole cycles, so that reads are 24, 25, 49, 73 or 74 apart. Differences of many steps
/// are left out: parts of a cycle add up.
fn uneven_step(differences: &[u32], median: u32) -> Option<u32> {
    let within = |step: u32, difference: u32| {
        let (scaled, near) = (u64::from(difference) * u64::from(PARTS), u64::from(step) / 2);
        let off = (scaled + near) % u64::from(step);
        off.abs_diff(near) <= u64::from(PARTS)
    };
    let is_common = |step: &u32| {
        let few = differences.iter().filter(|&&d| u64::from(d) * 2 <= u64::from(*step));
        let (all, whole) = few.fold((0, 0), |(all, whole), &difference| {
            (all + 1, whole + usize::from(within(*step, difference)))
        });
        all * 2 >= differences.len() && whole * 16 >= all * 15
    };
    let step = (UNEVEN_LEAST * PARTS..=median * PARTS).rev().find(is_common)?;
    Some(step.div_ceil(PARTS))
}

/// Short pseudo-random waits. They let what is timed begin anywhere within a step of the counter
/// (dithering), without which a mean would be no finer than a step.
struct Waits {
    state: u64,
}

impl Waits {
    fn new() -> Self {
        Self { state: 0x9e37_79b9_7f4a_7c15 }
    }

    fn wait(&mut self) {
        // Knuth's MMIX generator (The Art of Computer Programming, vol. 2, 3.3.4, table 1).
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005);
        self.state = self.state.wrapping_add(1_442_695_040_888_963_407);
        for _ in 0..self.state >> 58 {
            core::hint::black_box(());
        }
    }
}

/// The mean of empty timed regions.
fn overhead(tick: u32) -> f64 {
    let mut samples = [0; OVERHEAD_READS];
    let mut waits = Waits::new();
    for sample in &mut samples {
        waits.wait();
        *sample = arch::timed_nothing();
    }
    mean_without_outliers(&mut samples, tick)
}

/// The mean of the samples that are at most twice the median, or two steps: an interrupt takes thousands of cycles. A
/// step is less than one empty region, or most regions lie within one and read 0.
fn mean_without_outliers(samples: &mut [u32], tick: u32) -> f64 {
    samples.sort_unstable();
    let limit = samples.get(samples.len() / 2).map_or(0, |median| median.saturating_mul(2));
    let limit = limit.max(tick.saturating_mul(2));
    let kept = samples.partition_point(|&sample| sample <= limit);
    let sum: u64 = samples[..kept].iter().copied().map(u64::from).sum();
    as_f64(sum) / as_f64(kept as u64)
}

/// Exact below 2^53, which is a month of cycles.
#[allow(clippy::cast_precision_loss, reason = "no count here reaches 2^53")]
fn as_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn differences_are_some_steps() {
        std::thread::spawn(|| {
            // Between the counters of two cores there may be any difference.
            crate::affinity::pin(crate::affinity::current_core()).expect("it runs there");
            let tick = tick();
            let mut waits = Waits::new();
            let mut reads = Vec::new();
            for _ in 0..1000 {
                waits.wait();
                reads.push(start());
            }
            // A step may be up to a cycle shorter than the whole number that is told, and reads are cut to cycles.
            let is_near = |elapsed: u64| {
                let steps = elapsed.div_ceil(u64::from(tick));
                steps * u64::from(tick) - elapsed <= steps + 1
            };
            let near = reads.windows(2).filter(|pair| is_near(pair[1] - pair[0])).count();
            assert!(near >= 900, "{near} of 999 differences are some steps of {tick}");
            let empty = (0..1000).filter(|_| is_near(u64::from(arch::timed_nothing()))).count();
            assert!(empty >= 900, "{empty} of 1000 empty regions are some steps of {tick}");
        })
        .join()
        .expect("no assertion failed");
    }

    #[test]
    fn the_step_is_found_in_spite_of_interrupts_and_moves() {
        let steps = |step: u32, odd: &[u32]| {
            let mut all: Vec<u32> = (0..512).map(|i| step * (2 + i * i % 7)).collect();
            all[..odd.len()].copy_from_slice(odd);
            common_step(&mut all)
        };
        assert_eq!(steps(26, &[]), 26);
        assert_eq!(steps(26, &[25, 51, 100_003, 0, 79]), 26);
        assert_eq!(steps(2, &[4_000_000_001]), 2);
        assert_eq!(steps(1, &[]), 1);
        assert_eq!(common_step(&mut [0; 8]), 1);
        assert_eq!(common_step(&mut []), 1);
    }

    #[test]
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "half a million cycles"
    )]
    fn a_step_that_is_no_whole_number_of_cycles_is_found() {
        for (step, told) in [(24.45, 25), (26.5, 27), (36.7, 37), (12.3, 13)] {
            let read = |at: f64| (((at / step).floor() * step).floor()) as u32;
            let mut waits = Waits::new();
            let mut all: Vec<u32> = (0..512)
                .map(|i| {
                    waits.wait();
                    let begin = f64::from(i) * 1013.7;
                    read(begin + 60.0 + (waits.state >> 57) as f64) - read(begin)
                })
                .collect();
            assert_eq!(common_step(&mut all), told, "{step}");
        }
        let mut any: Vec<u32> = (0..512).map(|i| 60 + i * 37 % 101).collect();
        assert_eq!(common_step(&mut any), 1);
    }

    #[test]
    fn the_time_of_another_thread_is_its_own() {
        let (said, number) = std::sync::mpsc::channel();
        let (go_on, waits) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let begin = thread_cpu_ns();
            while thread_cpu_ns() < begin + 2_000_000 {
                core::hint::spin_loop();
            }
            said.send((crate::affinity::gettid(), thread_cpu_ns())).expect("somebody waits");
            let _ = waits.recv();
        });
        let (number, at_least) = number.recv().expect("it says");
        let seen = cpu_ns_of(number).expect("it is there");
        assert!(seen >= at_least && seen < at_least + 1_000_000_000, "{seen} after {at_least}");
        drop(go_on);
        thread.join().expect("it ends");
        assert_eq!(cpu_ns_of(ThreadId(0)), None);
        let parent = i32::try_from(std::os::unix::process::parent_id()).expect("a number");
        assert_eq!(cpu_ns_of(ThreadId(parent)), None, "of another process");
    }

    #[test]
    fn steps_decide_whether_loads_are_timed() {
        assert!(is_fine(1, 1e9) && is_fine(1, 100e6) && is_fine(26, 2.6e9));
        assert!(!is_fine(1, 62.5e6) && !is_fine(1, 25e6));
        assert!(!is_fine(40, 1e9), "a counter of 1 GHz that goes by forties is one of 25 MHz");
        assert!(!is_fine(1, 0.0), "nobody says the rate");
    }

    #[test]
    fn a_rate_is_never_more_certain_than_a_step() {
        let off = |widths| Off { widths, seconds: 0.02 };
        assert!((off(0).hz(1) - 50.0).abs() < 1e-9);
        assert!((off(400).hz(26) - 10_000.0).abs() < 1e-9);
    }

    #[test]
    fn the_overhead_lies_among_the_empty_regions() {
        let clock = Clock::calibrate();
        let mut empty: Vec<u32> = (0..1001).map(|_| arch::timed_nothing()).collect();
        empty.sort_unstable();
        let tick = f64::from(clock.tick);
        let (least, most) = (f64::from(empty[0]) - tick, f64::from(empty[900]) + tick);
        assert!((least..=most).contains(&clock.overhead), "{clock:?}, not in {least}..={most}");
    }

    #[test]
    fn the_rate_is_the_same_twice_within_its_stated_error() {
        let (a, b) = (Clock::calibrate(), Clock::calibrate());
        assert!(a.hz_error > 0.0 && a.hz_error < a.hz * 1e-2, "{a:?}");
        // A virtual machine may be stopped between the two reads of an instant's best try.
        assert!((a.hz - b.hz).abs() <= 4.0 * (a.hz_error + b.hz_error), "{a:?} {b:?}");
        assert!((a.ns(a.hz) - 1e9).abs() < 1.0);
    }

    #[test]
    fn outliers_leave_the_mean_alone() {
        let mut samples = [52, 78, 52, 52, 90_000, 78, 52, 52, 52, 78];
        let expected = (6.0 * 52.0 + 3.0 * 78.0) / 9.0;
        assert!((mean_without_outliers(&mut samples, 26) - expected).abs() < 1e-9);
        let mut coarse = [0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 4000, 0];
        let mean = mean_without_outliers(&mut coarse, 1);
        assert!((mean - 2.0 / 11.0).abs() < 1e-9, "{mean}: regions that meet a step count");
    }

    #[test]
    fn reads_are_ordered() {
        let times: Vec<u64> = (0..100).map(|_| start()).collect();
        assert!(times.is_sorted(), "{times:?}");
        assert!(stop() >= times[99]);
    }
}
