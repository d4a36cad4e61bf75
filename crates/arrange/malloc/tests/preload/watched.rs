//! A process that is only watched has its own malloc, and says of which sizes its objects are and how long they live.

use std::os::unix::process::ExitStatusExt;

use isochrone_malloc::{LIVES_NS, PathBytes, Report, SIZES, Watched, WatchedSize};

use crate::support::{Rig, program, shared_library};

/// Allocations from one that is looked at to the next.
const EVERY: f64 = 256.0;

fn watching() -> Rig {
    Rig::new().with(|config| {
        config.watches = true;
        config.atlas = PathBytes::NONE;
    })
}

/// What was seen of objects of so many bytes.
fn of(watched: &Watched, bytes: usize) -> WatchedSize {
    watched.sizes[SIZES.iter().filter(|most| bytes > **most).count()]
}

/// Objects that were looked at are as many as so many calls come to, by five standard deviations.
#[allow(clippy::cast_precision_loss, reason = "small numbers")]
fn near(seen: u64, calls: f64) {
    let (seen, wanted) = (seen as f64, calls / EVERY);
    assert!((seen - wanted).abs() <= 5.0 * wanted.sqrt(), "{seen}, not {wanted}");
}

/// Of those that are gone, how many lived longer than so.
fn longer(size: &WatchedSize, ns: u64) -> u64 {
    let class = LIVES_NS.iter().filter(|most| ns >= **most).count();
    size.gone[class..].iter().sum()
}

fn gone(size: &WatchedSize) -> u64 {
    size.gone.iter().sum()
}

/// The report of a run of one process.
fn only(rig: &Rig) -> Report {
    let mut reports = rig.reports();
    assert_eq!(reports.len(), 1);
    reports.remove(0)
}

/// What the program does in one process.
fn all_of_it(watched: &Watched) {
    // Beside those of the program there are a few of the C library.
    assert!((350_000..351_000).contains(&watched.calls), "{watched:?}");
    let (brief, kept, slept) = (of(watched, 24), of(watched, 100), of(watched, 600));
    near(brief.objects, 200_000.0);
    near(kept.objects, 100_000.0);
    near(slept.objects, 50_000.0);
    assert_eq!(brief.bytes, brief.objects * 24, "{watched:?}");
    // Objects whose places are taken are not followed.
    assert!(brief.followed * 10 >= brief.objects * 9, "{brief:?}");
    assert_eq!(gone(&brief), brief.followed, "all of them were freed");
    assert!(longer(&brief, 10_000_000) * 2 < gone(&brief), "{brief:?}");
    assert!(kept.followed * 2 > kept.objects && gone(&kept) == 0, "{kept:?}");
    assert_eq!((longer(&slept, 10_000_000), gone(&slept)), (slept.followed, slept.followed));
    assert!(slept.followed > 0);
    let large = watched.sizes[SIZES.len()];
    let bytes: u64 = (0..40).map(|call| 100_000 + call).sum();
    assert_eq!((large.objects, large.bytes, gone(&large)), (40, bytes, large.followed));
}

#[test]
fn sizes_and_lives_are_those_that_the_program_has() {
    for how in ["", "load"] {
        let rig = watching();
        rig.same(program("lives"), |command| {
            command.arg(how);
        });
        let report = only(&rig);
        all_of_it(&report.watched());
        assert!(report.has_ended() && report.placed().objects == 0 && report.arena_bytes() == 0);
    }
}

#[test]
fn a_killed_process_has_left_what_was_seen_of_it() {
    let rig = watching();
    let output = rig.command(program("lives")).arg("killed").output().expect("it runs");
    assert_eq!(output.status.signal(), Some(9));
    let report = only(&rig);
    assert!(!report.has_ended());
    // What came after the last look is not there.
    assert!((349_000..351_000).contains(&report.watched().calls), "{report:?}");
    near(of(&report.watched(), 24).objects, 200_000.0);
}

#[test]
fn a_child_is_seen_by_itself_and_what_it_has_of_its_parent_counts_for_nobody() {
    let rig = watching();
    let child_of = |reports: &[Report]| {
        let is_child = |report: &&Report| of(&report.watched(), 48).objects > 100;
        reports.iter().find(is_child).expect("it left one").watched()
    };
    rig.same(program("lives"), |command| {
        command.arg("fork");
    });
    let reports = rig.reports();
    assert_eq!(reports.len(), 2);
    let child = child_of(&reports);
    let parent = reports.iter().map(Report::watched).find(|watched| *watched != child);
    all_of_it(&parent.expect("it left one"));
    near(of(&child, 48).objects, 50_000.0);
    let inherited = of(&child, 100);
    assert_eq!((inherited.objects, gone(&inherited)), (0, 0), "{child:?}");
    assert_eq!(gone(&of(&child, 48)), of(&child, 48).followed);
}

#[test]
fn threads_are_seen_and_only_their_last_calls_are_missed() {
    let rig = watching();
    rig.same(program("lives"), |command| {
        command.arg("threads");
    });
    let watched = only(&rig).watched();
    assert!((400_000 - 4 * 512..401_000).contains(&watched.calls), "{watched:?}");
    near(of(&watched, 24).objects, 400_000.0);
    assert_eq!(gone(&of(&watched, 24)), of(&watched, 24).followed);
}

#[test]
fn the_malloc_of_a_watched_program_stays() {
    let Some(below) = shared_library("libmimalloc.so.2") else { return };
    let rig = watching();
    rig.same_over(Some(&below), program("lives"), |_| {});
    all_of_it(&only(&rig).watched());
}
