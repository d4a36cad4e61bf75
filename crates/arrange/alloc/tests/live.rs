//! The classifier on the machine that runs the tests, with an atlas that is measured first. It
//! asserts behaviour, never a time or a distance: on a busy machine every latency may be odd.

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::{Duration, Instant};

    use isochrone_alloc::live::{
        Arena, Classifier, Event, LineMeans, Machine, Plan, Slice, Timing,
    };
    use isochrone_alloc::{CurrentBases, PageCodes};
    use isochrone_atlas::{Atlas, Code};
    use isochrone_atlas_store::contents::{Clock, Contents};
    use isochrone_atlas_store::encode;
    use isochrone_machine::Core;
    use isochrone_os::affinity;
    use isochrone_os::reserve::{Stride, Tail};
    use isochrone_probe::block::{BlockPlan, map_blocks};
    use isochrone_probe::live::{LiveOptions, LiveTarget};
    use isochrone_probe::target::Target;
    use isochrone_probe::watch::Watch;
    use isochrone_units::{CoreId, Cycles, Level, LineAddr, PageAddr, Reading};

    const ARENA_BYTES: usize = 4 << 20;
    const L2_BYTES: usize = 1 << 20;
    /// So long it is tried to compare two decodings: a host that moves a core now lets it be a minute later.
    const PATIENCE: Duration = Duration::from_secs(120);

    struct Patient;

    impl Watch for Patient {
        fn step(&mut self, _: &str) {}

        fn keep_going(&self) -> bool {
            true
        }
    }

    /// An atlas of this machine, from one core; none where nothing can be timed.
    fn atlas_of_this_machine(core: CoreId) -> Option<(Vec<u8>, f32)> {
        let options = LiveOptions {
            bytes: 16 << 20,
            huge: true,
            evict: false,
            cores: vec![core],
            l2_bytes: L2_BYTES,
        };
        let mut target = LiveTarget::new(&options).ok()?;
        let clock = target.calibration();
        let mut plan = BlockPlan::quick(target.pages(), 1);
        plan.memory_pages = 512;
        plan.max_seconds = 3.0;
        let map = map_blocks(&mut target, &plan, &|_| String::new(), &mut Patient).ok()?;
        let contents = Contents {
            complete: true,
            levels: map.levels,
            ..Contents::begun(
                Reading::Measured,
                isochrone_machine::Machine {
                    cores: vec![Core { id: core.0, ..Core::default() }],
                    ..Default::default()
                },
                Clock { hz: clock.hz, tick_cycles: clock.tick, overhead_cycles: clock.overhead },
            )
        };
        #[allow(clippy::cast_possible_truncation, reason = "an overhead is some sixty cycles")]
        let overhead = clock.overhead as f32;
        Some((encode(&contents).expect("what was measured can be written"), overhead))
    }

    /// Decodes the arena once; how it ended, the codes of the pages that are ready, and what the
    /// core had at the end.
    fn decode(
        atlas: Atlas<'_>,
        machine: &mut Machine<Tail<'_>>,
        arena: &Arena,
        seed: u64,
    ) -> (Slice, BTreeMap<u64, PageCodes>, CurrentBases) {
        let plan = Plan { pages_max: arena.pages_max(), seed };
        let mut classifier = Classifier::new(atlas, plan).expect("tables");
        classifier.add(machine, arena.pages());
        let mut ready = BTreeMap::new();
        let mut end = Slice::Paused;
        for _ in 0..20_000 {
            end = classifier.slice(machine, 100_000).expect("loads can be timed: it was mapped");
            while let Some(event) = classifier.next_event() {
                match event {
                    Event::Ready(page, codes) => ready.insert(page.0, codes),
                    Event::Replaced(page) => ready.remove(&page.0),
                };
            }
            if end != Slice::Paused {
                break;
            }
        }
        let current = classifier.current_bases(affinity::current_core());
        classifier.check(machine).expect("as above");
        (end, ready, current)
    }

    /// Says why a test was left out. With `CI=true` what is missing is a failure.
    #[allow(clippy::print_stderr, reason = "a test says why it was skipped")]
    fn skip(why: &str) {
        let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
        assert!(!in_ci, "{why}");
        eprintln!("skipped: {why}");
    }

    /// Decodes the same pages twice and compares the codes. What kept it from being compared, if anything did:
    /// the host may move the core meanwhile.
    fn compare_two_decodings() -> Result<(), &'static str> {
        let core = affinity::current_core();
        let (bytes, overhead) = atlas_of_this_machine(core).ok_or("no atlas could be measured")?;
        affinity::pin(core).map_err(|_| "the thread cannot be pinned")?;
        let atlas = Atlas::open(&bytes).expect("it was just made");
        let arena = Arena::new(ARENA_BYTES, true).expect("4 MiB of address space");
        while arena.grow(Stride::Whole).expect("4 MiB").is_some() {}
        assert_eq!(arena.pages(), ARENA_BYTES / 4096);
        let tick = atlas.clock_tick_cycles();
        let mut machine = Machine::new(&arena, PageAddr(0), L2_BYTES, overhead, tick).with_frames();
        let (first_end, first, before) = decode(atlas, &mut machine, &arena, 1);
        let (second_end, second, after) = decode(atlas, &mut machine, &arena, 2);
        if first_end != Slice::Idle || second_end != Slice::Idle {
            assert!(first.len() < arena.pages() || second.len() < arena.pages());
            return Err("the core has a base that the short map has not seen");
        }
        assert_eq!((first.len(), second.len()), (arena.pages(), arena.pages()));
        let (Some(before), Some(after)) = (before.llc, after.llc) else {
            return Err("no base of the last-level cache is known");
        };
        // Beyond the last class a table has no numbers, which are never equal.
        if !before.iter().zip(&after).all(|(a, b)| a.to_bits() == b.to_bits()) {
            return Err("codes are relative to a base, and the core was moved in between");
        }
        // In memory two decodings of a restless hour may not agree: classes are a third of the
        // noise apart there. In the cache they do.
        let known =
            |page: &&u64| first[*page].llc != Code::UNKNOWN && second[*page].llc != Code::UNKNOWN;
        let both: Vec<&u64> = first.keys().filter(known).collect();
        let same = both.iter().filter(|page| first[**page].llc == second[**page].llc).count();
        assert!(same * 10 >= both.len() * 8, "{same} of {}", both.len());
        Ok(())
    }

    #[test]
    fn two_decodings_of_the_same_pages_agree() {
        let until = Instant::now() + PATIENCE;
        let mut compared = compare_two_decodings();
        while compared.is_err() && Instant::now() < until {
            compared = compare_two_decodings();
        }
        if let Err(why) = compared {
            skip(why);
        }
    }

    #[test]
    fn a_machine_is_late_once_so_many_loads_were_timed() {
        const LATE_NS: u64 = 1 << 50;
        let arena = Arena::new(2 << 20, false).expect("2 MiB of address space");
        arena.grow(Stride::Whole).expect("2 MiB");
        let mut machine = Machine::new(&arena, PageAddr(0), L2_BYTES, 60.0, 1);
        let lines = [LineAddr(3), LineAddr(70)];
        let mut out = [Cycles::default(); 2];
        machine.bound(3, LATE_NS);
        for (loads, is_late) in [(2, false), (4, true)] {
            if let Err(error) = machine.time(Level::Dram, &lines, &mut out) {
                assert!(error.is_unsupported(), "{error}");
                return skip(&error.to_string());
            }
            assert_eq!((machine.loads(), machine.now_ns() >= LATE_NS), (loads, is_late));
        }
        machine.bound(u64::MAX, 0);
        assert!(machine.now_ns() < LATE_NS);
    }

    #[test]
    fn every_line_gets_a_mean() {
        let arena = Arena::new(2 << 20, false).expect("2 MiB of address space");
        arena.grow(Stride::Whole).expect("2 MiB");
        let mut machine = Machine::new(&arena, PageAddr(0), L2_BYTES, 60.0, 1).with_frames();
        let mut means = LineMeans::new(1).expect("tables");
        if affinity::pin(affinity::current_core()).is_err() {
            return skip("the thread cannot be pinned");
        }
        for level in Level::ALL {
            let result = means.measure(&mut machine, level, &[3, 9, 200], 6);
            if let Err(error) = result {
                assert!(error.is_unsupported() || error.errno == 11, "{error}");
                skip(&format!("{level}: {error}"));
                continue;
            }
            let known = (0..3).flat_map(|place| (0..64).map(move |line| (place, line)));
            let count = known.filter(|(place, line)| means.mean(*place, *line).is_some()).count();
            assert!(count > 96, "{level}: {count} of 192 lines have a mean");
        }
    }
}
