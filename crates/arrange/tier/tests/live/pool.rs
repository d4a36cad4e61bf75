//! A pool: parts on the side that they are preferred on, reductions, and an end that is clean whatever happens.

use core::sync::atomic::{AtomicU64, Ordering};

use isochrone_cla::live::Reduction;
use isochrone_os::area::Words;
use isochrone_os::process::end;
use isochrone_tier::live::far::Memory;
use isochrone_tier::live::pool::{CallError, PoolError};
use isochrone_tier::live::{Config, Pool, Side, Tables};

use super::{Case, case};

pub(super) const CASES: &[Case] = &[
    case("parts_run_where_they_are_preferred_and_reduce", parts),
    case("a_part_that_fails_is_named_and_nobody_waits_for_it", failing),
    case("a_worker_that_ends_is_named_and_the_rest_end_clean", ended),
    case("a_program_that_panics_leaves_nobody_behind", panicking),
];

fn config(tables: Tables) -> Config {
    let mut config = Config { tables, ..Config::new(128 << 12, 48 << 12, 3) };
    config.movers = 1;
    config.spins = 20;
    config.habit.window = 8;
    config
}

fn far() -> Box<Memory> {
    Box::new(Memory::new(128 << 12, None).expect("addresses"))
}

/// Fills 100 pages on the workers, doubles them everywhere, adds them up on the host.
fn parts() {
    for tables in [Tables::Separated, Tables::Shared] {
        let mut pool = Pool::new();
        let fill = pool.part(|me, [at, words, value, _]| {
            let all = me.global_words(at, words)?;
            let mine = me.share(all.len());
            all[mine.clone()].iter().for_each(|word| word.store(value, Ordering::Relaxed));
            let (mut sum, mut first) = ([0], [u64::from(me.index()) + 7]);
            me.allreduce(Reduction::Sum, &[mine.len() as u64], &mut sum)?;
            me.broadcast(&mut first, 0)?;
            if first != [7] {
                return Err(format!("{first:?} was sent"));
            }
            Ok(sum[0] + u64::from(me.members()))
        });
        let double = pool.part(|me, [at, words, ..]| {
            let all = me.global_words(at, words)?;
            me.barrier()?;
            let twice =
                |word: &AtomicU64| word.fetch_add(word.load(Ordering::Relaxed), Ordering::Relaxed);
            all[me.share(all.len())].iter().for_each(|word| {
                twice(word);
            });
            Ok(me.share(all.len()).len() as u64)
        });
        let add_up = pool.part(|me, [at, words, ..]| {
            let all = me.global_words(at, words)?;
            Ok(all[me.share(all.len())].iter().map(|word| word.load(Ordering::Relaxed)).sum())
        });
        let (seen, report) = pool
            .run(config(tables), far(), |host| {
                let words = 100 * 512;
                let at = host.malloc_global(100 << 12).ok_or("full")?;
                let arguments = [at.addr().get() as u64, words, 3, 0];
                let filled = host.call(fill, arguments, Side::Workers)?;
                let doubled = host.call(double, arguments, Side::All)?;
                let sum = host.call(add_up, arguments, Side::Host)?;
                host.free_global(at).map_err(|error| error.to_string())?;
                Ok((filled, doubled.iter().sum::<u64>(), sum))
            })
            .expect("a pool");
        let words = 100 * 512;
        assert_eq!(seen, (vec![words + 2; 2], words, vec![6 * words]), "{tables:?}");
        assert_eq!(
            report.values(),
            Ok(vec![0, 2, 2]),
            "both workers ended clean, with two orders each"
        );
    }
}

fn failing() {
    for tables in [Tables::Separated, Tables::Shared] {
        let mut pool = Pool::new();
        let fails = pool.part(|me, [who, ..]| {
            if u64::from(me.index()) == who {
                return Err("there is no more paper".to_owned());
            }
            me.barrier().map(|()| 0)
        });
        let well = pool.part(|me, _| Ok(u64::from(me.index())));
        let (seen, _) = pool
            .run(config(tables), far(), |host| {
                let failed = host.call(fails, [1, 0, 0, 0], Side::Workers);
                Ok((failed, host.call(well, [0; 4], Side::All)))
            })
            .expect("a pool");
        let words = |error: CallError| error.to_string();
        let failed = seen.0.map_err(words).expect_err("one failed");
        // Its neighbour fails too, because it could not go on; either may be first.
        assert!(failed.starts_with("worker 1: ") || failed.contains("no more paper"), "{failed}");
        assert_eq!(seen.1, Ok(vec![0, 1, 2]), "{tables:?}: parts without a barrier go on");
    }
}

fn ended() {
    let mut pool = Pool::new();
    let ends = pool.part(|me, _| {
        if me.index() == 1 {
            end(9);
        }
        me.sum(1.0).map(f64::to_bits)
    });
    let (seen, report) = pool
        .run(config(Tables::Separated), far(), |host| Ok(host.call(ends, [0; 4], Side::All)))
        .expect("a pool");
    assert_eq!(seen, Err(CallError::Gone(1)));
    assert_eq!(report.workers.len(), 3);
}

fn panicking() {
    let told = Words::new(1).expect("shared words");
    let mut pool = Pool::new();
    let count = pool.part(|_, _| Ok(u64::from(told.as_slice()[0].fetch_add(1, Ordering::Relaxed))));
    let outcome: Result<((), _), _> = pool.run(config(Tables::Separated), far(), |host| {
        host.call(count, [0; 4], Side::Workers)?;
        panic!("on purpose");
    });
    assert!(
        matches!(&outcome, Err(PoolError::Program(words)) if words.contains("panicked")),
        "{outcome:?}"
    );
    assert_eq!(told.as_slice()[0].load(Ordering::Relaxed), 2);
}
