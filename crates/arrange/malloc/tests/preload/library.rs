//! The shared library from outside: what it exports, and that C programs under it do what they do
//! without it, in every state that a process can be in.

use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use isochrone_malloc::{CLASSES, Reason, Report};

use crate::support::{Rig, library, program, share_since_start};

fn readelf(arguments: &[&str]) -> String {
    let output = Command::new("readelf").args(arguments).arg(library()).output();
    let output = output.expect("binutils come with the C compiler");
    assert!(output.status.success());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn it_exports_the_family_and_what_it_has_to_know_of_and_nothing_else() {
    let symbols = readelf(&["--dyn-syms", "--wide"]);
    let mut names: Vec<&str> = symbols
        .lines()
        .filter(|line| line.contains(" GLOBAL ") && !line.contains(" UND "))
        .filter_map(|line| line.split_whitespace().last())
        .collect();
    names.sort_unstable();
    let family = [
        "__libc_free",
        "__libc_realloc",
        "aligned_alloc",
        "calloc",
        "cfree",
        "dlopen",
        "free",
        "free_aligned_sized",
        "free_sized",
        "malloc",
        "malloc_usable_size",
        "memalign",
        "posix_memalign",
        "prctl",
        "pthread_attr_setaffinity_np",
        "pthread_setaffinity_np",
        "pvalloc",
        "realloc",
        "reallocarray",
        "sched_setaffinity",
        "syscall",
        "valloc",
    ];
    assert_eq!(names, family);
}

#[test]
fn its_thread_local_storage_needs_no_call() {
    let relocations = readelf(&["--relocs", "--wide"]);
    for dynamic in ["DTPMOD", "DTPOFF", "DTPREL", "TLSDESC"] {
        assert!(!relocations.contains(dynamic), "{dynamic}");
    }
    // As the ABIs of x86-64 and of AArch64 call it; readelf cuts the longer name.
    let of_the_thread = if cfg!(target_arch = "aarch64") { "TLS_TPR" } else { "TPOFF" };
    assert!(relocations.contains(of_the_thread), "{relocations}");
    assert!(!readelf(&["--dyn-syms", "--wide"]).contains("__tls_get_addr"));
    let dynamic = readelf(&["--dynamic", "--wide"]);
    // Linkers say it for x86-64 alone.
    assert!(cfg!(target_arch = "aarch64") || dynamic.contains("STATIC_TLS"), "{dynamic}");
    assert!(dynamic.contains("NODELETE"), "{dynamic}");
    // The first call of a lazily bound symbol saves all vector registers on the caller's stack.
    assert!(dynamic.contains("BIND_NOW"), "{dynamic}");
}

/// Runs the questions about semantics under a rig and without: the same answers.
fn answers(rig: &Rig) -> Vec<Report> {
    let output = rig.same(program("semantics"), |_| {});
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.lines().count() > 3000, "{text}");
    for wrong in ["MISALIGNED", "SHORT", "OVERLAP", "LOST", "CHANGED", "TOUCHED", "NOT ZERO"] {
        assert!(!text.contains(wrong), "{text}");
    }
    rig.reports()
}

#[test]
fn every_size_and_alignment_answers_as_glibc_does() {
    let reports = answers(&Rig::new());
    let [report] = &reports[..] else { panic!("{} reports", reports.len()) };
    assert!(report.has_ended());
    assert!(report.placed_share() > Some(0.9), "{report:?}");
    for class in 0..CLASSES {
        assert!(report.placed_of_class(class).objects > 1000, "class {class}");
    }
    assert!(report.delegated(Reason::Size).objects > 0);
    assert!(report.delegated(Reason::Alignment).objects > 0);
}

#[test]
fn a_checking_process_answers_alike() {
    let reports = answers(&Rig::new().with(|config| config.policy.checked = true));
    assert!(reports[0].placed_share() > Some(0.9));
}

#[test]
fn an_arena_of_a_mebibyte_falls_back_and_says_so() {
    let reports = answers(&Rig::new().with(|config| config.arena_bytes_max = 1 << 20));
    let report = &reports[0];
    assert!(report.placed().objects > 1000);
    assert!(report.delegated(Reason::ArenaFull).objects > 1000);
    assert!(report.arena_bytes() <= 1 << 20);
}

#[test]
fn without_an_atlas_everything_is_left_to_glibc_and_it_says_so() {
    let rig = Rig::new().with(|config| {
        config.atlas = isochrone_malloc::PathBytes::new(b"/nonexistent").expect("short");
    });
    let report = answers(&rig).remove(0);
    assert_eq!(report.placed().objects, 0);
    assert_eq!(report.placed_no_more(), Some(Reason::NoAtlas));
    let damaged = Rig::new();
    std::fs::write(std::ffi::OsStr::from_bytes(damaged.config.atlas.as_bytes()), b"ISO")
        .expect("writable");
    let report = answers(&damaged).remove(0);
    assert_eq!(report.placed().objects, 0);
}

#[test]
fn an_atlas_that_was_changed_since_it_was_named_is_not_believed() {
    let rig = Rig::new();
    let file = std::path::Path::new(std::ffi::OsStr::from_bytes(rig.config.atlas.as_bytes()));
    let mut atlas = std::fs::read(file).expect("readable");
    // Of the description, of which nothing but the sum is looked at.
    let words = b"made for a test";
    let at = atlas.windows(words.len()).position(|found| found == words).expect("a reason");
    atlas[at] = b'M';
    std::fs::write(file, atlas).expect("writable");
    let report = answers(&rig).remove(0);
    assert_eq!((report.placed().objects, report.arena_bytes()), (0, 0));
    assert_eq!(report.placed_no_more(), Some(Reason::NoAtlas));
}

#[test]
fn a_short_program_is_only_counted() {
    let rig = Rig::new().with(|config| config.start_bytes = 1 << 30);
    let report = answers(&rig).remove(0);
    assert_eq!((report.placed().objects, report.arena_bytes()), (0, 0));
    let counted = report.delegated(Reason::BeforeStart);
    assert!(counted.objects > 40_000, "{counted:?}");
}

#[test]
fn without_a_configuration_it_is_transparent() {
    let program = program("semantics");
    let plain = Command::new(&program).output().expect("it runs");
    for config in [None, Some("/nonexistent"), Some("/dev/null"), Some("")] {
        let mut command = Command::new(&program);
        command.env("LD_PRELOAD", library());
        if let Some(config) = config {
            command.env(isochrone_malloc::CONFIG_VARIABLE, config);
        }
        let output = command.output().expect("it runs");
        assert!(output.status.success() && output.stderr.is_empty());
        assert!(output.stdout == plain.stdout, "{config:?}");
    }
}

/// Runs the stress program under a rig; it checks itself.
fn stress(rig: &Rig, arguments: &[&str], signals: bool) -> Vec<Report> {
    let mut command = rig.command(program("stress"));
    command.args(arguments);
    if signals {
        command.env("WITH_SIGNALS", "1");
    }
    let output = command.output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} {text} {complaint}", output.status);
    assert!(text.starts_with("ok "), "{text} {complaint}");
    rig.reports()
}

#[test]
fn threads_forks_exits_and_foreign_frees_lose_nothing() {
    let reports = stress(&Rig::new(), &["8", "20000", "4"], false);
    let parent = reports.iter().max_by_key(|report| report.placed().objects).expect("one");
    assert!(parent.has_ended());
    // Who begins may lose its core while threads of the first generation come and go, and count.
    assert!(parent.threads() >= 24, "{}", parent.threads());
    assert!(share_since_start(parent) > 0.9, "{parent:?}");
    assert!(parent.delegated(Reason::DeadThread).objects > 0, "destructors of the last round");
    let children: Vec<_> =
        reports.iter().filter(|report| report.process() != parent.process()).collect();
    assert!(children.iter().any(|child| child.inherited_bytes() > 0));
    for child in children {
        assert!(share_since_start(child) > 0.9, "{child:?}");
    }
}

#[test]
fn a_checking_process_finds_nothing_wrong_with_a_right_program() {
    let rig = Rig::new().with(|config| config.policy.checked = true);
    let reports = stress(&rig, &["4", "10000", "2"], false);
    assert!(reports.iter().all(|report| report.delegated(Reason::Nested).objects == 0));
}

#[test]
fn a_full_arena_is_shared_by_many_threads_without_loss() {
    // What the threads share alone is more, in whatever order they run.
    let rig = Rig::new().with(|config| config.arena_bytes_max = 1 << 19);
    let reports = stress(&rig, &["8", "20000", "2"], false);
    assert!(reports.iter().any(|report| report.delegated(Reason::ArenaFull).objects > 0));
}

#[test]
fn signal_handlers_come_in_between() {
    let reports = stress(&Rig::new(), &["2", "20000", "1"], true);
    let parent = reports.iter().max_by_key(|report| report.placed().objects).expect("one");
    assert!(share_since_start(parent) > 0.9, "{parent:?}");
}

#[test]
fn every_mode_and_binding_works() {
    use isochrone_alloc::Mode;
    use isochrone_malloc::Pin;
    for (mode, pin) in
        [(Mode::Aware, Pin::Compact), (Mode::Oblivious, Pin::Spread), (Mode::Aware, Pin::None)]
    {
        let rig = Rig::new().with(|config| (config.policy.mode, config.pin) = (mode, pin));
        let reports = stress(&rig, &["4", "5000", "2"], false);
        assert!(reports.iter().all(|report| report.mode() == Some(mode)));
    }
}

#[test]
fn arms_of_experiments_are_no_modes_of_the_library() {
    for mode in [isochrone_alloc::Mode::Adversarial, isochrone_alloc::Mode::Oracle] {
        let rig = Rig::new().with(|config| config.policy.mode = mode);
        let reports = stress(&rig, &["2", "5000", "1"], false);
        assert!(reports.iter().all(|report| report.placed().objects == 0), "{mode:?}");
    }
}

#[test]
fn a_killed_process_leaves_its_report() {
    let rig = Rig::new();
    let mut child = rig
        .command("sh")
        .args(["-c", "exec \"$0\" 4 1000000 100", program("stress").to_str().expect("text")])
        .stdout(Stdio::null())
        .spawn()
        .expect("it runs");
    while !rig.seen().iter().any(|report| report.placed().objects > 1000) {
        assert!(child.try_wait().expect("it is ours").is_none(), "it ended too soon");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("it runs still");
    child.wait().expect("it was killed");
    let reports = rig.reports();
    let killed = reports.iter().find(|report| report.placed().objects > 1000);
    let killed = killed.expect("it had placed something");
    assert!(!killed.has_ended());
    // The shell had the same number, and a report of its own.
    assert_eq!(reports.iter().filter(|r| r.process() == killed.process()).count(), 2);
}

#[test]
fn a_process_that_only_starts_another_takes_no_arena() {
    let rig = Rig::new();
    let output = rig.command("sh").args(["-c", "true; true; true"]).output().expect("it runs");
    assert!(output.status.success());
    assert!(rig.reports().iter().all(|report| report.arena_bytes() == 0));
}
