//! What goes wrong with userfaultfd if one does not take care, each as a test that it does not.

use core::sync::atomic::Ordering;
use std::io::Read;

use isochrone_os::process::{End, Side, end, fork, wait};
use isochrone_tier::live::far::Memory;
use isochrone_tier::live::{Config, Report, Tables, Team, TierError, Worker};
use isochrone_tier::pages::Event;

use super::{Case, case};

pub(super) const CASES: &[Case] = &[
    case("a_child_of_a_worker_has_no_area_to_fill_with_zeros", child_of_a_worker),
    case("who_does_not_work_maps_nothing", bystanders),
    case("the_area_has_small_pages_and_all_kinds_of_faults", flags),
    case("a_fault_maps_one_page_and_not_its_neighbours", no_fault_around),
    case("a_system_call_needs_pinned_pages", pinned),
    case("a_program_with_threads_is_told_to_make_the_team_first", threads_first),
    case("parameters_out_of_bounds_are_named", parameters),
    case("a_thread_that_is_no_worker_may_touch_the_area", guests),
];

const PAGE_WORDS: usize = 512;

fn run(config: Config, body: impl Fn(&mut Worker<'_>) -> Result<u64, String> + Sync) -> Report {
    let far = Memory::new(config.area_bytes, None).expect("addresses");
    let team = Team::new(config, Box::new(far)).expect("a team");
    team.run(body).expect("a run")
}

fn config(workers: u16) -> Config {
    Config::new(64 << 12, 16 << 12, workers)
}

fn child_of_a_worker() {
    let report = run(config(1), |worker| {
        let words = worker.words();
        for page in 0..64 {
            words[page * PAGE_WORDS].store(page as u64 + 1, Ordering::Relaxed);
        }
        // Page 0 left long ago. A child that could read the hole would fill it for everybody.
        let child = match fork().map_err(|error| error.to_string())? {
            Side::Child => {
                let _ = words[0].load(Ordering::Relaxed);
                end(0);
            }
            Side::Parent(child) => child,
        };
        let how = wait(child, true).map_err(|error| error.to_string())?;
        if how != Some(End::Signal(11)) {
            return Err(format!("the child ended by {how:?}"));
        }
        Ok((0..64).map(|page| words[page * PAGE_WORDS].load(Ordering::Relaxed)).sum())
    });
    assert_eq!(report.values(), Ok(vec![64 * 65 / 2]));
}

/// The line of a process's mappings that holds an address, and what follows it in smaps.
fn mapping(process: &str, address: usize) -> Option<(String, String)> {
    let text = std::fs::read_to_string(format!("/proc/{process}/smaps")).ok()?;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some((from, rest)) = line.split_once('-') else { continue };
        let Ok(from) = usize::from_str_radix(from, 16) else { continue };
        let to = usize::from_str_radix(rest.split(' ').next()?, 16).ok()?;
        if (from..to).contains(&address) {
            let flags = lines.find(|line| line.starts_with("VmFlags:"))?;
            return Some((line.to_owned(), flags.to_owned()));
        }
    }
    None
}

fn bystanders() {
    let mut config = config(2);
    config.movers = 1;
    let report = run(config, |worker| {
        let base = worker.words().as_ptr().addr();
        worker.words()[0].fetch_add(1, Ordering::Relaxed);
        let parent = std::os::unix::process::parent_id();
        let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
        let children = children.map_err(|error| error.to_string())?;
        let all = children.split_whitespace().map(str::to_owned).chain([parent.to_string()]);
        let mapped = all.filter(|process| {
            mapping(process, base).is_some_and(|(line, _)| line.contains("rw-s"))
        });
        let mapped = mapped.count() as u64;
        // Nobody ends before all have looked.
        worker.barrier().map_err(|gone| gone.to_string())?;
        Ok(mapped)
    });
    assert_eq!(report.values(), Ok(vec![2, 2]), "two workers; not the mover, not the parent");
}

fn flags() {
    let report = run(config(1), |worker| {
        let base = worker.words().as_ptr().addr();
        let (line, flags) = mapping("self", base).ok_or("no mapping")?;
        // proc_pid_smaps(5): no huge pages, not copied by fork, and userfaultfd's missing, write-protect
        // and minor faults.
        for flag in ["nh", "dc", "um", "uw", "ui"] {
            if !flags.split_whitespace().any(|have| have == flag) {
                return Err(format!("no {flag} in {flags} of {line}"));
            }
        }
        Ok(0)
    });
    assert_eq!(report.values(), Ok(vec![0]));
}

fn no_fault_around() {
    let report = run(config(2), |worker| {
        let words = worker.words();
        if worker.index() == 0 {
            (0..12).for_each(|page| words[page * PAGE_WORDS].store(5, Ordering::Relaxed));
        }
        worker.barrier().map_err(|gone| gone.to_string())?;
        if worker.index() == 1 {
            return Ok((0..12).map(|page| words[page * PAGE_WORDS].load(Ordering::Relaxed)).sum());
        }
        Ok(0)
    });
    assert_eq!(report.values(), Ok(vec![0, 60]));
    assert_eq!(report.counters[0].events(Event::Missing), 12);
    assert_eq!(report.counters[1].events(Event::Minor), 12, "one fault for each page, none silent");
}

fn pinned() {
    let report = run(config(1), |worker| {
        let words = worker.words();
        let area = words.as_ptr().cast::<u8>().cast_mut();
        let fill =
            || words.iter().step_by(PAGE_WORDS).for_each(|word| word.store(1, Ordering::Relaxed));
        let read_zeros = |page: usize| {
            let at = area.wrapping_add(page << 12);
            // SAFETY: one page of the area, which nobody else uses; a fault in it is the kernel's to have.
            let buffer = unsafe { std::slice::from_raw_parts_mut(at, 4096) };
            std::fs::File::open("/dev/zero").and_then(|mut zeros| zeros.read(buffer))
        };
        fill();
        // Page 3 has left. EFAULT: bad address.
        let refused = read_zeros(3).err().and_then(|error| error.raw_os_error());
        if refused != Some(14) {
            return Err(format!("a missing page was read into: {refused:?}"));
        }
        worker.pin(3 << 12, 4096).map_err(|trouble| trouble.to_string())?;
        fill();
        fill();
        let read = read_zeros(3).map_err(|error| error.to_string())?;
        let value = words[3 * PAGE_WORDS].load(Ordering::Relaxed);
        worker.unpin(3 << 12, 4096).map_err(|trouble| trouble.to_string())?;
        fill();
        fill();
        let gone = read_zeros(3).is_err();
        Ok(u64::from(read == 4096 && value == 0 && gone))
    });
    assert_eq!(report.values(), Ok(vec![1]));
}

fn threads_first() {
    let far = Memory::new(64 << 12, None).expect("addresses");
    let team = Team::new(config(2), Box::new(far)).expect("a team");
    let (stop, waiting) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || waiting.recv());
    let refused = team.run(|_| Ok(0));
    drop(stop);
    let _ = thread.join();
    let words = refused.expect_err("a program with two threads").to_string();
    assert!(words.contains("before any thread"), "{words}");
}

fn parameters() {
    let refused = |config: Config| {
        let far = Memory::new(64 << 12, None).expect("addresses");
        Team::new(config, Box::new(far)).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(refused(Config { group_pages: 3, ..config(1) }).contains("1, 2, 4, 8 or 16 pages"));
    assert!(refused(Config { workers: 0, ..config(1) }).contains("workers"));
    assert!(refused(Config { fast_bytes: 4096, ..config(2) }).contains("fast tier"));
    assert!(matches!(
        Team::new(
            Config { area_bytes: 0, ..config(1) },
            Box::new(Memory::new(4096, None).expect("one"))
        ),
        Err(TierError::Config(_))
    ));
}

fn guests() {
    let mut config = config(2);
    config.tables = Tables::Shared;
    let report = run(config, |worker| {
        let words = worker.words();
        if worker.index() == 1 {
            return Ok(0);
        }
        let write = || {
            words.iter().step_by(PAGE_WORDS).for_each(|word| {
                word.fetch_add(1, Ordering::Relaxed);
            })
        };
        std::thread::scope(|scope| {
            scope.spawn(write);
            scope.spawn(write);
        });
        Ok(words.iter().step_by(PAGE_WORDS).map(|word| word.load(Ordering::Relaxed)).sum())
    });
    assert_eq!(report.values(), Ok(vec![128, 0]));
}
