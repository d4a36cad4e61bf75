//! Placements by made-up atlases of this machine: one whose lines are all alike, so that nothing is timed, one that no
//! core has, and one of another machine.

#![allow(clippy::tests_outside_test_module, reason = "the whole file is tests")]
// Memory without a type is written, read and given back; a child of `fork` is made.
#![allow(unsafe_code)]

use std::alloc::Layout;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use isochrone_atlas_store::contents::{Base, Contents, Fingerprint, Form, LevelMap};
use isochrone_atlas_store::{made, save};
use isochrone_near::{Lists, Mix, Options, OptionsError, Placement, Places, WhyNot, Wrong};
use isochrone_places::Identity;
use isochrone_units::{CoreId, Reading};
use proptest::prelude::*;

/// More cores than any machine that these run on.
const CORES: u16 = 512;

/// What `made` says of every flat line: 100 cycles of a clock of 2 GHz.
const FLAT_NS: f64 = 50.0;

fn contents() -> Contents {
    let us = Identity::of_this_machine().expect("this machine");
    let mut contents = made::lines(CORES, |_, _| None, &[]);
    contents.fingerprint = Fingerprint { words: us.words, hash: us.hash };
    contents.levels = vec![
        made::flat_level("llc", FLAT_NS, &contents),
        made::flat_level("dram", FLAT_NS, &contents),
    ];
    contents
}

/// In the last-level cache one line of eight is a hundred times farther than the others: no core sees that.
fn strange() -> Contents {
    let mut contents = contents();
    let pattern = (0..64).map(|line| if line % 8 == 0 { 4000.0 } else { 40.0 }).collect();
    contents.levels[0] = LevelMap {
        form: Form::Pattern,
        canonical_key: (0..64).map(|key| key % 8).collect(),
        bases: vec![Base { core: 0, patterns: vec![pattern], rounds: 1 }],
        probe_lines: (0..8).collect(),
        code_share: (0..64).map(|key| if key < 8 { 0.125 } else { 0.0 }).collect(),
        ..contents.levels[0].clone()
    };
    contents
}

fn saved(folder: &Path, contents: &Contents) -> PathBuf {
    let path = folder.join("made.atlas");
    save(contents, &path).expect("room");
    path
}

/// Options by these contents.
fn options(folder: &Path, contents: &Contents) -> Options {
    let places = Places { named: Some(saved(folder, contents)), ..Places::default() };
    Options { places, bytes_max: Some(16 << 20), ..Options::default() }
}

/// A placement that places, and what keeps its file.
fn placing(change: impl FnOnce(&mut Options)) -> (Placement, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = Options { force: true, ..options(folder.path(), &contents()) };
    change(&mut options);
    let placement = Placement::open(&options).expect("sound options");
    assert_eq!(placement.why_not(), None);
    (placement, folder)
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, 8).expect("a layout")
}

/// Gives memory back that nobody uses.
fn free(placement: &Placement, at: *mut u8) -> Result<(), Wrong> {
    // SAFETY: the tests give back what they were given, or what is refused.
    unsafe { placement.free(at) }
}

/// Memory that is ordinary, whatever happens.
fn is_ordinary(placement: &Placement) {
    for bytes in [0, 1, 64, 256, 5000] {
        let at = placement.alloc(layout(bytes));
        assert!(!at.is_null());
        assert_eq!(placement.distance(at, CoreId(0)), None);
        assert_eq!(free(placement, at), Ok(()));
    }
}

#[test]
fn without_an_atlas_everything_is_ordinary_and_a_line_says_why() {
    let nowhere = Placement::open(&Options::default()).expect("sound options");
    assert_eq!(nowhere.why_not(), Some(WhyNot::NoAtlas));
    is_ordinary(&nowhere);
    assert_eq!(nowhere.statistics(), Default::default());
    assert_eq!(nowhere.prepare(1 << 20, None), Ok(0.0));
    let places = Places { named: Some("/no/such/file".into()), ..Places::default() };
    let missing = Placement::open(&Options { places, ..Options::default() }).expect("sound");
    let why = missing.why_not().expect("nothing is placed").to_string();
    assert!(why.contains("no/such/file") && why.lines().count() == 1, "{why}");
    is_ordinary(&missing);
}

#[test]
fn nothing_is_placed_for_another_machine_for_no_gain_and_for_cores_that_nobody_knows() {
    let folder = tempfile::tempdir().expect("a folder");
    let why = |options: &Options| {
        let placement = Placement::open(options).expect("sound options");
        is_ordinary(&placement);
        placement.why_not().expect("nothing is placed").to_string()
    };
    let options = options(folder.path(), &contents());
    assert_eq!(why(&options), "nothing is placed: the atlas predicts a gain of 1.00");
    let unknown = Options { cores: vec![CoreId(CORES)], force: true, ..options.clone() };
    assert!(why(&unknown).contains("none of the cores"));
    let other = Contents {
        fingerprint: Fingerprint { words: vec!["cpu: of another".into()], hash: 1 },
        ..contents()
    };
    saved(folder.path(), &other);
    let forced = Options { force: true, ..options };
    assert!(why(&forced).contains("another machine"));
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let refused = |options| Placement::open(&options).map(|_| ()).unwrap_err();
    for near in [0.0, -0.5, 1.5, f32::INFINITY] {
        let options = Options { near, ..Options::default() };
        assert_eq!(refused(options), OptionsError::Near(near));
    }
    assert!(matches!(
        refused(Options { near: f32::NAN, ..Options::default() }),
        OptionsError::Near(_)
    ));
    let options = Options { waste: -1.0, ..Options::default() };
    assert_eq!(refused(options), OptionsError::Waste(-1.0));
}

#[test]
fn what_is_placed_is_counted_has_distances_and_comes_back() {
    let (placement, _folder) = placing(|_| ());
    let all: Vec<*mut u8> = (0..1000).map(|_| placement.alloc(layout(48))).collect();
    for at in &all {
        let found = placement.distance(*at, CoreId(3)).expect("it was placed");
        assert_eq!((found.llc_ns, found.dram_ns), (Some(FLAT_NS), Some(FLAT_NS)));
        assert_eq!(found.reading, Reading::Predicted);
        assert_eq!(
            placement.distance(at.wrapping_add(1), CoreId(3)),
            None,
            "no object begins there"
        );
    }
    let large = placement.alloc(layout(257));
    assert_eq!(placement.distance(large, CoreId(3)), None);
    let counts = placement.statistics();
    assert_eq!(
        (counts.placed_objects, counts.placed_bytes, counts.freed_objects),
        (1000, 48_000, 0)
    );
    assert_eq!(counts.ordinary_objects, 1);
    assert!(counts.arena_bytes >= 64_000 && counts.near_share.is_some());
    all.iter().chain([&large]).for_each(|at| assert_eq!(free(&placement, *at), Ok(())));
    assert_eq!(placement.statistics().freed_objects, 1000);
    assert_eq!(free(&placement, std::ptr::null_mut()), Ok(()));
    assert_eq!(placement.distance(all[0], CoreId(3)), None, "it is free");
}

#[test]
fn what_is_not_an_object_is_refused_and_nothing_is_freed() {
    let (placement, _folder) = placing(|_| ());
    let (one, two) = (placement.alloc(layout(64)), placement.alloc(layout(64)));
    assert_eq!(free(&placement, one), Ok(()));
    assert_eq!(free(&placement, one), Err(Wrong::Freed));
    assert_eq!(free(&placement, two.wrapping_add(16)), Err(Wrong::Pointer));
    assert_eq!(free(&placement, two.wrapping_add(1)), Err(Wrong::Pointer));
    assert_eq!(free(&placement, one), Err(Wrong::Freed), "with others in between");
    assert_eq!(free(&placement, two), Ok(()));
    let again: Vec<*mut u8> = (0..200).map(|_| placement.alloc(layout(64))).collect();
    let mut different = again.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), again.len(), "no line twice");
}

#[test]
fn a_full_placement_goes_on_with_ordinary_memory() {
    let (placement, _folder) = placing(|options| options.bytes_max = Some(2 << 20));
    let all: Vec<*mut u8> = (0..40_000).map(|_| placement.alloc(layout(64))).collect();
    assert!(all.iter().all(|at| !at.is_null()));
    let counts = placement.statistics();
    assert_eq!((counts.placed_objects, counts.ordinary_objects), (32_768, 40_000 - 32_768));
    all.into_iter().for_each(|at| assert_eq!(free(&placement, at), Ok(())));
    let again = placement.alloc(layout(64));
    assert!(placement.distance(again, CoreId(0)).is_some(), "there is room again");
}

#[test]
fn memory_is_learnt_beforehand_and_every_mix_and_list_places() {
    for (mix, lists) in [
        (Mix::ByUse, Lists::NearestParticipant),
        (Mix::Cache, Lists::Nearest),
        (Mix::Memory, Lists::Nearest),
        (Mix::Memory, Lists::NearestParticipant),
    ] {
        let (placement, _folder) = placing(|options| {
            (options.mix, options.lists) = (mix, lists);
            options.prepare_bytes = 1 << 20;
        });
        assert_eq!(
            placement.prepare(1 << 20, None),
            Ok(1.0),
            "nothing has a code where all is alike"
        );
        let node = placement.pool_near::<[u64; 8]>(CoreId(1)).put([7; 8]);
        assert!(node.distance(CoreId(1)).is_some());
        assert_eq!(*node, [7; 8]);
    }
}

#[test]
fn threads_give_each_other_objects_and_none_is_lost_or_doubled() {
    const OBJECTS: usize = 30_000;
    let (placement, _folder) = placing(|options| options.bytes_max = Some(64 << 20));
    let placement = &placement;
    std::thread::scope(|threads| {
        let mut before: Option<mpsc::Receiver<(usize, u64)>> = None;
        for thread in 0..4_u64 {
            let (to, from) = mpsc::channel();
            let freed = before.replace(from);
            threads.spawn(move || {
                for value in 0..OBJECTS {
                    let at = placement.alloc(layout(8 + value * 7 % 240)).cast::<u64>();
                    let value = thread << 32 | value as u64;
                    // SAFETY: so many bytes were just allocated.
                    unsafe { at.write(value) };
                    to.send((at.expose_provenance(), value)).expect("there");
                    if let Some((at, value)) =
                        freed.as_ref().and_then(|freed| freed.try_recv().ok())
                    {
                        check_and_free(placement, at, value);
                    }
                }
                drop(to);
                freed
                    .into_iter()
                    .flatten()
                    .for_each(|(at, value)| check_and_free(placement, at, value));
            });
        }
        before.into_iter().flatten().for_each(|(at, value)| check_and_free(placement, at, value));
    });
    let counts = placement.statistics();
    assert_eq!(counts.placed_objects + counts.ordinary_objects, 4 * OBJECTS as u64);
    assert_eq!(counts.freed_objects, counts.placed_objects);
    assert!(counts.placed_objects > counts.ordinary_objects, "{counts:?}");
}

fn check_and_free(placement: &Placement, at: usize, value: u64) {
    let at = std::ptr::with_exposed_provenance_mut::<u64>(at);
    // SAFETY: whoever sent it wrote it there, and gave it up.
    assert_eq!(unsafe { at.read() }, value);
    assert_eq!(free(placement, at.cast()), Ok(()));
}

#[test]
fn values_are_owned_dropped_once_moved_and_handed_over() {
    thread_local!(static DROPS: Cell<u32> = const { Cell::new(0) });
    struct Counted(#[allow(dead_code, reason = "gives it a size")] [u64; 4]);
    impl Drop for Counted {
        fn drop(&mut self) {
            DROPS.set(DROPS.get() + 1);
        }
    }
    let (placement, _folder) = placing(|_| ());
    let pool = placement.pool::<Counted>();
    drop(pool.put(Counted([1; 4])));
    let moved = pool.put(Counted([2; 4])).move_near(CoreId(1));
    assert_eq!(DROPS.get(), 1);
    assert!(moved.distance(CoreId(1)).is_some());
    drop(moved.into_inner());
    assert_eq!(DROPS.get(), 2);
    let mut text = placement.pool::<String>().put("near".to_owned());
    text.push_str("er");
    assert_eq!(
        std::thread::scope(|threads| threads.spawn(|| text.len()).join().expect("no panic")),
        6
    );
    let (nothing, large) =
        (placement.pool::<()>().put(()), placement.pool::<[u8; 4096]>().put([3; 4096]));
    assert_eq!((nothing.distance(CoreId(0)), large.distance(CoreId(0))), (None, None));
    assert!(large.iter().all(|byte| *byte == 3));
    drop((nothing, large, text));
    let counts = placement.statistics();
    assert_eq!(counts.placed_objects, counts.freed_objects);
}

#[test]
fn a_child_of_fork_keeps_what_was_placed_and_places_nothing() {
    let (placement, _folder) = placing(|_| ());
    let pool = placement.pool::<u64>();
    let (kept, freed) = (pool.put(11), placement.alloc(layout(32)));
    // SAFETY: the child calls what any thread may call, and ends without returning.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let right = placement.why_not() == Some(WhyNot::Forked)
            && *kept == 11
            && kept.distance(CoreId(0)).is_none()
            && free(&placement, freed) == Ok(())
            && free(&placement, freed) == Err(Wrong::Freed);
        let own = placement.alloc(layout(32));
        let right = right && !own.is_null() && placement.distance(own, CoreId(0)).is_none();
        let right = right && free(&placement, own) == Ok(());
        // SAFETY: it ends this process.
        unsafe { libc::_exit(i32::from(!right)) };
    }
    let mut status = 0;
    // SAFETY: the status is ours to be written.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    assert_eq!(placement.why_not(), None);
    assert_eq!(free(&placement, freed), Ok(()), "in the parent it is not free");
}

#[test]
fn where_no_base_is_recognised_placing_ends_for_good() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options { force: true, ..options(folder.path(), &strange()) };
    let placement = Placement::open(&options).expect("sound options");
    let mut placed = Vec::new();
    while placement.why_not().is_none() {
        placed.push(placement.alloc(layout(64)));
        if placed.len() > 10_000 {
            placed.drain(..).for_each(|at| assert_eq!(free(&placement, at), Ok(())));
        }
    }
    let why = placement.why_not();
    assert!(matches!(why, Some(WhyNot::UnknownBase | WhyNot::Refused(_))), "{why:?}");
    assert_eq!(placement.statistics().placed_objects, 0, "nothing before a base is recognised");
    placed.into_iter().for_each(|at| assert_eq!(free(&placement, at), Ok(())));
    is_ordinary(&placement);
}

#[test]
fn a_placement_may_be_opened_and_closed_many_times() {
    for round in 0..20_u64 {
        let (placement, _folder) = placing(|_| ());
        let values = placement.pool::<u64>();
        let all: Vec<_> = (0..100).map(|value| values.put(round + value)).collect();
        assert!(all.iter().zip(round..).all(|(kept, value)| **kept == value));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Whatever is asked for and given back, memory is aligned, as long as was asked for, and nobody else's.
    #[test]
    fn operations_agree_with_a_map(
        operations in prop::collection::vec(
            (0..600_usize, 0..9_u32, any::<u8>(), any::<prop::sample::Index>()),
            1..800,
        ),
    ) {
        let (placement, _folder) = placing(|options| options.bytes_max = Some(2 << 20));
        let mut reference: BTreeMap<usize, (usize, u8)> = BTreeMap::new();
        for (bytes, align, fill, which) in operations {
            if bytes % 3 == 0 && !reference.is_empty() {
                let at = *reference.keys().nth(which.index(reference.len())).expect("there");
                let (bytes, fill) = reference.remove(&at).expect("there");
                let at = std::ptr::with_exposed_provenance_mut::<u8>(at);
                // SAFETY: so many bytes were allocated there and written.
                let kept = unsafe { std::slice::from_raw_parts(at, bytes) };
                prop_assert!(kept.iter().all(|byte| *byte == fill));
                prop_assert_eq!(free(&placement, at), Ok(()));
                continue;
            }
            let layout = Layout::from_size_align(bytes, 1 << align).expect("a layout");
            let at = placement.alloc(layout);
            prop_assert!(!at.is_null() && at.addr() % layout.align() == 0);
            // SAFETY: so many bytes were just allocated.
            unsafe { at.write_bytes(fill, bytes) };
            prop_assert_eq!(reference.insert(at.expose_provenance(), (bytes, fill)), None);
        }
        for (at, (bytes, fill)) in reference {
            let at = std::ptr::with_exposed_provenance_mut::<u8>(at);
            // SAFETY: as above.
            let kept = unsafe { std::slice::from_raw_parts(at, bytes) };
            prop_assert!(kept.iter().all(|byte| *byte == fill));
            prop_assert_eq!(free(&placement, at), Ok(()));
        }
    }
}
