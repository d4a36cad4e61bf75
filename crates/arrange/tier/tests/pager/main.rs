//! Programs in C that know nothing of the pager, run under the preloaded library as it is shipped: they must do what
//! they do alone. Each is killed, with all that it started, after a bound, whatever becomes of it; it reads nothing,
//! and writes into files, so that nothing that it leaves holds a pipe of ours.

#![allow(clippy::tests_outside_test_module, reason = "this whole binary is tests")]
#![allow(clippy::print_stderr, reason = "a test says why it was skipped")]

mod support;

use isochrone_tier::live::far::FarKind;
use isochrone_tier::live::guest::record::{State, Word};
use support::{Rig, alike, tiered};

const MIB: usize = 1 << 20;

#[test]
fn arrays_larger_than_fast_memory_hold_what_was_written() {
    let Some(rig) = Rig::new("memory") else { return };
    for fast in [1, 4, 16] {
        let ran = alike(&rig, &["sweep"], fast * MIB);
        assert!(ran.get(Word::Evicted) > 0, "{ran:?}");
        assert!(ran.get(Word::Peak) <= (fast * MIB) as u64, "{ran:?}");
        assert!(ran.get(Word::Over) == 0 && ran.ended(), "{ran:?}");
    }
}

/// In memory by another compressor, and in a file.
#[test]
fn every_far_tier_holds_what_was_written_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let blanks = folder.path().join("a folder");
    std::fs::create_dir(&blanks).expect("writable");
    for far in [FarKind::Zstd, FarKind::File(blanks.clone())] {
        for (name, case) in [
            ("memory", "sweep"),
            ("memory", "threads"),
            ("mappings", "protect"),
            ("mappings", "give-up"),
            ("forks", "fork"),
            ("calls", "pipe"),
            ("threads", "descriptors"),
        ] {
            let Some(rig) = Rig::new(name) else { return };
            let ran = alike(&rig.with(far.clone()), &[case], 2 * MIB);
            let words = [Word::Evicted, Word::Fetched, Word::Far].map(|word| ran.get(word));
            assert!(words.iter().all(|count| *count > 0), "{far} {case}: {ran:?}");
        }
        let Some(rig) = Rig::new("threads") else { return };
        assert_eq!(rig.with(far).run(&["killed"], Some(2 * MIB)).signal, Some(9));
    }
    assert_eq!(std::fs::read_dir(&blanks).expect("a folder").count(), 0);
}

/// What does not go to the medium stays in memory, and a line says so.
#[test]
fn a_full_medium_loses_nothing_and_is_said_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(rig) = Rig::new("memory") else { return };
    let rig = rig.with(FarKind::File(folder.path().to_owned()));
    let alone = rig.run(&["sweep"], None);
    let ran = rig.with_short_files(&["sweep"], 2 * MIB);
    assert_eq!((ran.code, &ran.out), (Some(0), &alone.out), "{ran:?}");
    assert_eq!(ran.err.matches("beyond the limit").count(), 1, "{ran:?}");
    let record = ran.record.expect("a record");
    assert!(record.get(Word::Over) > 0 && record.get(Word::Evicted) > 0, "{record:?}");
}

/// Tries in vain are paid for by faults: four pages each, and what may be owed.
#[test]
fn a_full_medium_costs_a_bounded_share_and_is_used_when_it_has_room() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(rig) = Rig::new("full") else { return };
    let ran = tiered(&rig.with(FarKind::File(folder.path().to_owned())), &[], 2 * MIB);
    let record = ran.record.expect("a record");
    let (vain, faults) = (record.get(Word::Vain), record.get(Word::Faults));
    assert!(vain > 0 && vain <= 4 * faults + 1024, "{record:?}");
    assert!(record.get(Word::Over) > 12 * MIB as u64, "{record:?}");
    let lines: Vec<&str> = ran.err.lines().collect();
    assert!(
        matches!(lines[..], ["before", said, "after"] if said.contains("beyond the limit")),
        "{ran:?}"
    );
}

#[test]
fn a_medium_that_is_cut_is_a_signal_and_never_zeros() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(rig) = Rig::new("cut") else { return };
    let ran = tiered(&rig.with(FarKind::File(folder.path().to_owned())), &[], 2 * MIB);
    assert!(ran.err.contains("no page at"), "{ran:?}");
}

#[test]
fn threads_that_write_the_same_pages_lose_nothing() {
    let Some(rig) = Rig::new("memory") else { return };
    let ran = alike(&rig, &["threads"], 2 * MIB);
    assert!(ran.get(Word::Evicted) > 0 && ran.get(Word::Fetched) > 0, "{ran:?}");
}

#[test]
fn objects_of_malloc_grow_shrink_and_move() {
    let Some(rig) = Rig::new("memory") else { return };
    let ran = alike(&rig, &["realloc"], 2 * MIB);
    assert!(ran.get(Word::Evicted) > 0, "{ran:?}");
    assert_eq!(ran.get(Word::Mapped), 0, "all was given back: {ran:?}");
}

#[test]
fn mappings_are_cut_moved_emptied_and_mapped_over() {
    let Some(rig) = Rig::new("mappings") else { return };
    for case in ["unmap", "remap", "advise", "give-up", "over"] {
        let ran = alike(&rig, &[case], 2 * MIB);
        assert!(ran.get(Word::Evicted) > 0, "{case}: {ran:?}");
    }
}

#[test]
fn what_may_not_be_touched_is_a_signal_and_what_may_be_read_is_kept() {
    let Some(rig) = Rig::new("mappings") else { return };
    let ran = alike(&rig, &["protect"], 2 * MIB);
    assert!(ran.get(Word::Evicted) > 0, "{ran:?}");
}

#[test]
fn locked_pages_stay() {
    let Some(rig) = Rig::new("mappings") else { return };
    let ran = alike(&rig, &["lock"], 4 * MIB);
    assert!(ran.get(Word::Evicted) > 0, "{ran:?}");
    // More than may be locked is refused, as the kernel refuses what is beyond a limit of its own.
    tiered(&rig, &["lock-much"], 4 * MIB);
}

#[test]
fn what_is_no_mapping_of_ours_or_too_much_changes_nothing() {
    let Some(rig) = Rig::new("mappings") else { return };
    for case in ["hole", "much", "guard"] {
        let ran = alike(&rig, &[case], 2 * MIB);
        assert!(ran.get(Word::Evicted) > 0, "{case}: {ran:?}");
    }
}

#[test]
fn children_have_what_their_parent_had() {
    let Some(rig) = Rig::new("forks") else { return };
    for case in ["fork", "again", "daemon", "vfork", "spawn", "busy"] {
        let ran = alike(&rig, &[case], 2 * MIB);
        assert!(ran.get(Word::Evicted) > 0, "{case}: {ran:?}");
        let forks = matches!(case, "fork" | "again" | "daemon" | "busy");
        assert_eq!(ran.get(Word::Forks) > 0, forks, "{case}: {ran:?}");
        assert_eq!(ran.get(Word::Over) > 0, forks, "{case}: {ran:?}");
    }
}

#[test]
fn a_child_loses_nothing_whatever_others_do_when_it_is_made() {
    let Some(rig) = Rig::new("forks") else { return };
    for case in ["chased", "registered", "interrupted"] {
        let ran = alike(&rig, &[case], 2 * MIB);
        assert!(ran.get(Word::Evicted) > 0 && ran.get(Word::Forks) > 0, "{case}: {ran:?}");
    }
}

#[test]
fn a_child_behind_the_back_of_the_c_library_never_reads_zeros() {
    let Some(rig) = Rig::new("forks") else { return };
    tiered(&rig, &["bare"], 2 * MIB);
}

#[test]
fn system_calls_touch_absent_pages() {
    let Some(rig) = Rig::new("calls") else { return };
    for case in ["pipe", "file"] {
        let ran = alike(&rig, &[case], 2 * MIB);
        assert!(ran.get(Word::Evicted) > 0, "{case}: {ran:?}");
    }
}

#[test]
fn what_a_device_writes_while_pages_leave_is_not_lost() {
    let Some(rig) = Rig::new("calls") else { return };
    // A file system may have no direct access; the program says so, and reads through the cache.
    let ran = alike(&rig, &["direct"], 2 * MIB);
    assert!(ran.get(Word::Evicted) > 0, "{ran:?}");
}

/// Buffers that the kernel has while the program goes on; where there is no io_uring the program says so, and nothing
/// else.
#[test]
fn what_rings_read_and_write_while_pages_leave_is_not_lost() {
    let Some(rig) = Rig::new("rings") else { return };
    for case in ["plain", "registered", "aio"] {
        let ran = alike(&rig, &[case], 2 * MIB);
        assert!(ran.get(Word::Evicted) > 0, "{case}: {ran:?}");
    }
}

#[test]
fn a_program_ends_when_its_own_threads_have_and_signals_are_its_own() {
    let Some(rig) = Rig::new("threads") else { return };
    for case in ["exit", "signals", "descriptors", "handler", "stacks", "joins", "locks"] {
        let ran = alike(&rig, &[case], 2 * MIB);
        assert!(ran.get(Word::Evicted) > 0, "{case}: {ran:?}");
    }
    // It has no name of ours among its threads before its first large mapping, and then ours are known by it.
    tiered(&rig, &["names"], 2 * MIB);
}

#[test]
fn the_first_large_objects_of_many_threads_are_all_paged() {
    let Some(rig) = Rig::new("threads") else { return };
    let ran = alike(&rig, &["race"], MIB);
    assert_eq!(ran.get(Word::MappedPeak), 16 * MIB as u64, "{ran:?}");
    assert!(ran.get(Word::Peak) <= MIB as u64, "{ran:?}");
}

/// Never silent: it is paged, or its record or a line says that it is not.
#[test]
fn a_program_with_little_is_paged_or_says_that_it_is_not() {
    let Some(rig) = Rig::new("limits") else { return };
    for case in ["files", "data", "addresses", "threads"] {
        let ran = tiered(&rig, &[case], 2 * MIB);
        let record = ran.record.filter(|record| record.state() == State::Tiered);
        let paged = record.is_some_and(|record| record.get(Word::Evicted) > 0);
        let refused = ran.record.is_some_and(|record| record.get(Word::Errno) > 0);
        assert!(paged || refused || ran.err.contains("record"), "{case}: {ran:?}");
    }
}

#[test]
fn a_process_that_is_killed_leaves_what_it_counted() {
    let Some(rig) = Rig::new("threads") else { return };
    let ran = rig.run(&["killed"], Some(2 * MIB));
    assert_eq!(ran.signal, Some(9));
    let record = ran.record.expect("a record");
    assert!(record.get(Word::Evicted) > 0 && !record.ended(), "{record:?}");
}

#[test]
fn few_addresses_make_a_small_window_or_none_and_lose_nothing() {
    let Some(rig) = Rig::new("memory") else { return };
    for kib in [8 << 20, 1 << 20, 150 << 10] {
        let ran = rig.limited(&["sweep"], 2 * MIB, kib);
        assert_eq!(ran.code, Some(0), "{kib}: {ran:?}");
        assert_eq!(ran.out, rig.run(&["sweep"], None).out, "{kib}");
    }
}
