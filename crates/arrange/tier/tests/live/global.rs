//! Pieces of the area for who asks, and what a program says of ranges.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use std::io::Read;

use isochrone_tier::live::far::{Compressed, Lz4, Memory};
use isochrone_tier::live::{Config, FreeError, Mapped, Mode, Report, Tables, Team, Worker};
use isochrone_tier::pager::Advice;
use isochrone_tier::pages::{Event, Trouble};
use isochrone_tier::policy::PolicyKind;

use super::{Case, case};

pub(super) const CASES: &[Case] = &[
    case("a_piece_has_one_address_in_every_worker", one_address),
    case("a_piece_that_was_given_back_is_zeros_and_takes_no_room", given_back),
    case("a_piece_that_was_pinned_and_given_back_is_zeros", pinned_and_given_back),
    case("a_pin_is_taken_back_by_who_has_it", pins_of_others),
    case("what_is_no_piece_is_refused", refused),
    case("pieces_that_come_and_go_keep_what_they_hold", come_and_go),
    case("what_is_cold_leaves_and_what_is_needed_comes", cold_and_needed),
    case("faults_that_follow_each_other_bring_more_than_others", following),
    case("an_array_without_a_team_serves_all_threads", mapped),
    case("what_is_discarded_reads_as_zeros_and_the_rest_stays", discarded),
];

const PAGE_WORDS: usize = 512;

fn run(config: Config, body: impl Fn(&mut Worker<'_>) -> Result<u64, String> + Sync) -> Report {
    let far = Memory::new(config.area_bytes, None).expect("addresses");
    let team = Team::new(config, Box::new(far)).expect("a team");
    team.run(body).expect("a run")
}

fn piece(worker: &Worker<'_>, pages: usize) -> Result<NonNull<u8>, String> {
    worker.malloc_global(pages << 12).ok_or_else(|| "the area is full".to_owned())
}

fn one_address() {
    for tables in [Tables::Separated, Tables::Shared] {
        let config = Config { tables, ..Config::new(64 << 12, 16 << 12, 3) };
        let report = run(config, |worker| {
            let sent = if worker.index() == 0 { piece(worker, 40)?.addr().get() } else { 0 };
            // An address as a number that is far too small to be rounded: so the sum is the address.
            let sum = worker.sum(f64::from_bits(sent as u64)).map_err(|gone| gone.to_string())?;
            let at = usize::try_from(sum.to_bits()).unwrap_or(0);
            let at = NonNull::new(std::ptr::with_exposed_provenance_mut::<u8>(at)).ok_or("0")?;
            let words = worker.global_words(at, 40 * PAGE_WORDS);
            for word in words.iter().step_by(100) {
                word.fetch_add(u64::from(worker.index()) + 1, Ordering::Relaxed);
            }
            worker.barrier().map_err(|gone| gone.to_string())?;
            Ok(words.iter().map(|word| word.load(Ordering::Relaxed)).sum())
        });
        let all = (40 * PAGE_WORDS as u64).div_ceil(100) * 6;
        assert_eq!(report.values(), Ok(vec![all; 3]), "{tables:?}");
    }
}

/// Twenty times the area is taken and given back, on a far tier that could hold it once.
fn given_back() {
    for policy in PolicyKind::ALL {
        let config = Config { policy, ..Config::new(64 << 12, 16 << 12, 1) };
        let far = Compressed::new(&Lz4, 64 << 12, 4096, 60 << 12).expect("memory");
        let team = Team::new(config, Box::new(far)).expect("a team");
        let report = team.run(|worker| {
            let mut random = 0x9e37_79b9_7f4a_7c15_u64;
            for round in 0..20 {
                let at = piece(worker, 60)?;
                for word in worker.global_words(at, 60 * PAGE_WORDS) {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    // What cannot be compressed takes all of its room.
                    if word.swap(random, Ordering::Relaxed) != 0 {
                        return Err(format!("not zeros in round {round}"));
                    }
                }
                worker.free_global(at).map_err(|error| error.to_string())?;
            }
            Ok(0)
        });
        let report = report.expect("a run");
        assert_eq!(report.values(), Ok(vec![0]), "{policy:?}");
        assert_eq!(report.resident_bytes, 0, "{policy:?}: nothing is left in fast memory");
    }
}

/// Some of the pieces' pages are pinned, by two workers; the next who gets them finds zeros, and pins of its own.
fn pinned_and_given_back() {
    for tables in [Tables::Separated, Tables::Shared] {
        let config = Config { tables, ..Config::new(64 << 12, 16 << 12, 2) };
        let report = run(config, |worker| {
            let words = |trouble: Trouble| trouble.to_string();
            let at = if worker.index() == 0 { Some(piece(worker, 20)?) } else { None };
            worker.barrier().map_err(|gone| gone.to_string())?;
            worker.pin(0, 4 << 12).map_err(words)?;
            if let Some(at) = at {
                let all = worker.global_words(at, 20 * PAGE_WORDS);
                all.iter().for_each(|word| word.store(7, Ordering::Relaxed));
                worker.barrier().map_err(|gone| gone.to_string())?;
                worker.free_global(at).map_err(|error| error.to_string())?;
                let again = piece(worker, 20)?;
                if again != at || all.iter().any(|word| word.load(Ordering::Relaxed) != 0) {
                    return Err("the piece is not zeros".to_owned());
                }
                worker.pin(0, 4 << 12).map_err(words)?;
            } else {
                worker.barrier().map_err(|gone| gone.to_string())?;
            }
            worker.barrier().map_err(|gone| gone.to_string())?;
            // Those of before have ended; one of the other's is there.
            let mine = worker.unpin(0, 4 << 12);
            let again = worker.unpin(0, 4 << 12);
            Ok(u64::from(mine.is_ok()) * 10 + u64::from(again == Err(Trouble::NotPinned)))
        });
        assert_eq!(report.values(), Ok(vec![11, 1]), "{tables:?}");
    }
}

/// A worker that has no pin cannot take another's, whose system calls go on; one that ends takes its own along.
fn pins_of_others() {
    for tables in [Tables::Separated, Tables::Shared] {
        let config = Config { tables, ..Config::new(64 << 12, 16 << 12, 2) };
        let report = run(config, |worker| {
            let words = worker.words();
            let fill = || {
                for word in words.iter().step_by(PAGE_WORDS) {
                    word.store(1, Ordering::Relaxed);
                }
            };
            if worker.index() == 0 {
                worker.pin(3 << 12, 2 << 12).map_err(|trouble| trouble.to_string())?;
                // More than was pinned: none of it.
                let more = worker.unpin(3 << 12, 3 << 12);
                if more != Err(Trouble::NotPinned) {
                    return Err(format!("{more:?} for more than was pinned"));
                }
            }
            worker.barrier().map_err(|gone| gone.to_string())?;
            if worker.index() == 1 {
                let refused = worker.unpin(3 << 12, 4096);
                fill();
                worker.barrier().map_err(|gone| gone.to_string())?;
                while !worker.is_gone(0) {
                    std::thread::yield_now();
                }
                // All but the last of 16 frames: there would be no room for a pin that nobody can take back.
                worker.pin(16 << 12, 15 << 12).map_err(|trouble| trouble.to_string())?;
                return Ok(u64::from(refused == Err(Trouble::NotPinned)));
            }
            worker.barrier().map_err(|gone| gone.to_string())?;
            let at = words.as_ptr().cast::<u8>().cast_mut().wrapping_add(3 << 12);
            // SAFETY: pages of the area, which nobody else uses now; a fault in them is the kernel's to have.
            let bytes = unsafe { std::slice::from_raw_parts_mut(at, 2 << 12) };
            let zeros =
                std::fs::File::open("/dev/zero").and_then(|mut file| file.read_exact(bytes));
            zeros.map_err(|error| format!("a pinned page: {error}"))?;
            Ok(1)
        });
        assert_eq!(report.values(), Ok(vec![1, 1]), "{tables:?}");
    }
}

fn refused() {
    let report = run(Config::new(64 << 12, 16 << 12, 1), |worker| {
        let at = piece(worker, 3)?;
        let no_piece = |at| matches!(worker.free_global(at), Err(FreeError::NoPiece(_)));
        let next = |bytes: usize| NonNull::new(at.as_ptr().wrapping_add(bytes)).expect("not 0");
        let mut seen = vec![no_piece(next(4096)), no_piece(next(8)), no_piece(next(100 << 12))];
        seen.push(worker.malloc_global(62 << 12).is_none());
        seen.push(worker.free_global(at).is_ok());
        seen.push(no_piece(at));
        seen.push(worker.malloc_global(64 << 12).is_some());
        Ok(seen.iter().filter(|seen| **seen).count() as u64)
    });
    assert_eq!(report.values(), Ok(vec![7]));
}

/// Four workers take and give back pieces of random lengths; each piece holds its own mark all over. Nobody
/// goes without: each holds at most four pieces of 16 pages, and four times that many pages are there, so that
/// no way of scattering them leaves too short a gap.
fn come_and_go() {
    for tables in [Tables::Separated, Tables::Shared] {
        let mut config = Config { tables, ..Config::new(1024 << 12, 32 << 12, 4) };
        config.movers = 1;
        config.spins = 20;
        config.plan.batch = 4;
        let report = run(config, |worker| {
            let mut random = 0x2545_f491_4f6c_dd1d_u64.wrapping_mul(u64::from(worker.index()) + 1);
            let mut pieces: Vec<(NonNull<u8>, &[AtomicU64], u64)> = Vec::new();
            for mark in 1..200_u64 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let mark = mark << 8 | u64::from(worker.index());
                let pages = usize::try_from(random >> 60).unwrap_or(0) + 1;
                let at = piece(worker, pages)?;
                let words = worker.global_words(at, pages * PAGE_WORDS);
                for word in words.iter().step_by(64) {
                    if word.swap(mark, Ordering::Relaxed) != 0 {
                        return Err("a new piece is not zeros".to_owned());
                    }
                }
                pieces.push((at, words, mark));
                if pieces.len() > 3 {
                    let (at, words, mark) = pieces.remove(0);
                    let other = |word: &&AtomicU64| word.load(Ordering::Relaxed) != mark;
                    let wrong = words.iter().step_by(64).filter(other).count();
                    if wrong > 0 {
                        return Err(format!("{wrong} marks are not those of the piece"));
                    }
                    worker.free_global(at).map_err(|error| error.to_string())?;
                }
            }
            Ok(pieces.len() as u64)
        });
        assert_eq!(report.values(), Ok(vec![3; 4]), "{tables:?}");
    }
}

fn cold_and_needed() {
    // Faults are counted one by one.
    let config = Config { follow: false, ..Config::new(64 << 12, 32 << 12, 1) };
    let report = run(config, |worker| {
        let at = piece(worker, 64)?;
        let words = worker.global_words(at, 64 * PAGE_WORDS);
        let touch = |pages: core::ops::Range<usize>| {
            let before = worker.counters().events(Event::Missing);
            pages.for_each(|page| {
                words[page * PAGE_WORDS].fetch_add(1, Ordering::Relaxed);
            });
            worker.counters().events(Event::Missing) - before
        };
        let advise = |pages: core::ops::Range<usize>, advice| {
            let range = pages.start << 12..pages.end << 12;
            worker.advise(range, advice).map_err(|trouble| trouble.to_string())
        };
        let first = touch(0..20);
        let again = touch(0..20);
        advise(4..12, Advice::Cold)?;
        worker.pin(0, 4096).map_err(|trouble| trouble.to_string())?;
        advise(0..2, Advice::Cold)?;
        worker.unpin(0, 4096).map_err(|trouble| trouble.to_string())?;
        let after_cold = touch(0..20);
        advise(40..50, Advice::WillNeed)?;
        let after_needed = touch(40..50);
        let right = words.iter().step_by(PAGE_WORDS).take(20);
        let right = right.filter(|word| word.load(Ordering::Relaxed) == 3).count();
        Ok([first, again, after_cold, after_needed, right as u64]
            .iter()
            .fold(0, |all, one| all * 100 + one))
    });
    // Page 0 was pinned, page 1 left with 4 to 11.
    assert_eq!(report.values(), Ok(vec![20_00_09_00_20]));
}

/// By default, in both modes: a sweep has few faults, each page comes once, and what is touched anyhow comes alone.
fn following() {
    for mode in [Mode::Signal, Mode::Blocking] {
        let config = Config { mode: Some(mode), ..Config::new(512 << 12, 128 << 12, 1) };
        let report = run(config, |worker| {
            let words = worker.global_words(piece(worker, 512)?, 512 * PAGE_WORDS);
            let counts = || {
                let seen = worker.counters();
                [Event::Missing, Event::Prefetched].map(|event| seen.events(event))
            };
            let touch = |page: usize| words[page * PAGE_WORDS].fetch_add(1, Ordering::Relaxed);
            (0..1024).for_each(|page| _ = touch(page % 512));
            let [faults, beside] = counts();
            // Who serves a fault counts it when its thread may be on already.
            let is_few = (1020..=1024).contains(&(faults + beside)) && faults < 128;
            // Every other page, so that none follows one.
            (0..256_usize).for_each(|step| _ = touch(step * 194 % 512));
            let [all, more] = counts();
            let right = words.iter().step_by(PAGE_WORDS).enumerate();
            let right = right
                .filter(|(page, word)| word.load(Ordering::Relaxed) == 3 - *page as u64 % 2)
                .count()
                == 512;
            let alone = more < beside + 16 && all > faults + 128;
            if is_few && alone && right {
                Ok(0)
            } else {
                Err(format!("{faults} {beside} {all} {more} {right}"))
            }
        });
        assert_eq!(report.values(), Ok(vec![0]), "{mode:?}");
    }
}

/// Three threads sweep over an array of which a quarter fits, in groups of 16 KiB; then another is mapped.
fn mapped() {
    for round in 1..3_usize {
        let config = Config { group_pages: 4, ..Config::new(256 << 12, 64 << 12, 1) };
        let far = || Box::new(Memory::new(256 << 12, None).expect("addresses"));
        let array = Mapped::new(config.clone(), far()).expect("an array");
        assert!(Mapped::new(config, far()).is_err(), "one at a time");
        assert_eq!(array.len(), 256 << 12);
        let first = array.as_ptr().cast::<AtomicU64>();
        // SAFETY: the array is that long, aligned to pages, readable and writable while `array` lives, and
        // nobody has anything but these atomic words of it.
        let words = unsafe { std::slice::from_raw_parts(first, array.len() / 8) };
        std::thread::scope(|scope| {
            for thread in 0..3 {
                scope.spawn(move || {
                    for _ in 0..round {
                        for word in words[thread..].iter().step_by(64) {
                            word.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        let sum: u64 = words.iter().map(|word| word.load(Ordering::Relaxed)).sum();
        assert_eq!(sum, 3 * (256 << 12) / 512 * round as u64, "round {round}");
        asked_for(&array, words);
    }
}

/// A system call writes into what is pinned, whatever else comes and goes; what is discarded is zeros.
fn asked_for(array: &Mapped, words: &[AtomicU64]) {
    let wanted = 5000..60_000;
    array.pin(wanted.clone()).expect("a quarter fits");
    words.iter().step_by(PAGE_WORDS).for_each(|word| word.store(1, Ordering::Relaxed));
    // SAFETY: inside of the array, whose bytes are initialised; no other thread is left, and `words` is not used
    // while this is.
    let bytes = unsafe {
        std::slice::from_raw_parts_mut(array.as_ptr().wrapping_add(wanted.start), wanted.len())
    };
    let zeros = std::fs::File::open("/dev/zero").and_then(|mut file| file.read_exact(bytes));
    zeros.expect("all of it is mapped and writable");
    array.unpin(wanted.clone()).expect("it was pinned");
    assert_eq!(array.unpin(wanted), Err(Trouble::NotPinned));
    let sum = || words.iter().map(|word| word.load(Ordering::Relaxed)).sum::<u64>();
    assert!(sum() > 0);
    array.advise(0..array.len(), Advice::Cold).expect("it leaves");
    assert!(sum() > 0, "what left comes back");
    array.advise(0..array.len(), Advice::Discard).expect("it is forgotten");
    assert_eq!(sum(), 0);
}

fn discarded() {
    let report = run(Config::new(64 << 12, 16 << 12, 1), |worker| {
        let at = piece(worker, 64)?;
        let words = worker.global_words(at, 64 * PAGE_WORDS);
        words.iter().for_each(|word| word.store(1, Ordering::Relaxed));
        // Pages 11 to 59: only whole pages of the range; some are in memory and some are not.
        let range = (10 << 12) + 8..(60 << 12) + 8;
        worker.advise(range, Advice::Discard).map_err(|trouble| trouble.to_string())?;
        Ok(words.iter().map(|word| word.load(Ordering::Relaxed)).sum())
    });
    assert_eq!(report.values(), Ok(vec![(64 - 49) * 512]));
}
