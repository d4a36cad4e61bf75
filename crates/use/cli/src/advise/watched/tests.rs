//! Bounds of runs that are made up, and what is said of them.

use isochrone_console::run::spent::Spent;
use isochrone_host::Disturbance;
use isochrone_machine::{Core, Machine};
use isochrone_units::Reading;

use super::allocations::{Allocations, Lived, OfSize};
use super::bounds::{self, Around, Bound, Says};
use super::job::{Calls, Job, Sized};
use super::looks::Looks;
use super::proc::Pages;
use super::record::Figures;
use super::seen::Seen;
use super::words;
use crate::advise::findings::{Finding, Offer};
use crate::run::program::Fit;

/// One thread for two seconds, of which it was 1.5 in the program and 0.4 in the kernel.
fn seen() -> Seen {
    Seen {
        seconds: 2.0,
        spent: Spent { user_s: 1.5, system_s: 0.4, minor_faults: 100_000, ..Spent::default() },
        looks: Looks {
            threads: 1,
            processes: 1,
            cores: vec![0],
            pages: Some(Pages { anonymous: 64 << 20, file: 1 << 20, ..Pages::default() }),
            ..Looks::default()
        },
        memory_stalls_s: Some(0.0),
        fault_ns: Some(500.0),
        far_fault_us: None,
        disturbance: Disturbance { others: Some(0.0), steal: Some(0.0), ..Disturbance::default() },
        ..Seen::default()
    }
}

fn machine() -> Machine {
    let core = |id, region| Core { id, region, ..Core::default() };
    Machine { cores: vec![core(0, 0), core(1, 1)], ..Machine::default() }
}

fn around<'a>(seen: &'a Seen, machine: &'a Machine) -> Around<'a> {
    let fit = Ok(Fit { allocator: None });
    Around { seen, machine, fit, launches: false }
}

fn offers() -> Vec<Finding> {
    vec![
        Finding::new("near lines", Offer::Gain, "")
            .number(1.25, "times faster", None)
            .command("run"),
        Finding::new("core order", Offer::Depends, "").number(4.0, "times as far", None),
        Finding::new("regions", Offer::Depends, ""),
        Finding::new("collectives", Offer::Depends, ""),
        Finding::new("tier or zram", Offer::Depends, "").number(1e9, "bytes", None),
        Finding::new("huge pages", Offer::Depends, "").command("tunable"),
    ]
}

fn of<'a>(all: &'a [Bound], lever: &str) -> &'a Bound {
    all.iter().find(|of| of.lever == lever).unwrap()
}

fn near(of: &Bound, share: f64) {
    assert!(of.at_most.is_some_and(|found| (found - share).abs() < 1e-9), "{of:?}, not {share}");
}

#[test]
fn what_one_run_does_not_tell_has_no_bound_and_the_trial_that_measures_it() {
    let (seen, machine) = (seen(), machine());
    let all = bounds::all(&offers(), &around(&seen, &machine));
    for (lever, command) in [
        ("near lines", "--only near-lines"),
        ("huge pages", "--only huge-pages"),
        ("allocators", "mimalloc"),
    ] {
        let of = of(&all, lever);
        assert_eq!((of.says, of.at_most, of.reading), (Says::Unknown, None, None), "{lever}");
        assert!(of.command.as_ref().is_some_and(|words| words.contains(command)), "{of:?}");
    }
    assert_eq!(of(&all, "core order").says, Says::Nothing, "one thread");
    assert_eq!(of(&all, "collectives").says, Says::NotApplicable);
    assert_eq!(of(&all, "tier or zram").says, Says::Nothing);
}

#[test]
fn memory_that_lies_in_huge_pages_has_nothing_to_gain_of_them() {
    let mut seen = seen();
    if let Some(pages) = &mut seen.looks.pages {
        pages.huge = pages.anonymous;
    }
    let machine = machine();
    let all = bounds::all(&offers(), &around(&seen, &machine));
    assert_eq!(of(&all, "huge pages").says, Says::Nothing);
}

/// Four threads, of which one may be waited for all the time.
fn of_four_threads() -> Seen {
    let mut seen = seen();
    seen.looks.threads = 4;
    seen.spent.user_s = 7.0;
    seen
}

#[test]
fn a_bound_is_what_all_time_in_the_program_would_save() {
    let (seen, machine) = (of_four_threads(), machine());
    assert!((seen.user_share() - 1.0).abs() < 1e-9);
    let all = bounds::all(&offers(), &around(&seen, &machine));
    let order = of(&all, "core order");
    assert_eq!((order.says, order.reading), (Says::AtMost, Some(Reading::Predicted)));
    near(order, 1.0 - 1.0 / 4.0);
}

#[test]
fn what_cannot_be_preloaded_into_is_told_and_the_rest_is_judged() {
    let (seen, machine) = (seen(), machine());
    let fit = Err("it is statically linked".to_owned());
    let all = bounds::all(&offers(), &Around { fit, ..around(&seen, &machine) });
    for lever in ["near lines", "huge pages", "allocators"] {
        assert_eq!(of(&all, lever).says, Says::NotApplicable, "{lever}");
        assert!(of(&all, lever).why.contains("statically"));
    }
    assert_eq!(of(&all, "tier or zram").says, Says::Nothing);
    // An allocator of its own is told.
    let fit = Ok(Fit { allocator: Some("it keeps its own heap") });
    let all = bounds::all(&offers(), &Around { fit, ..around(&seen, &machine) });
    assert!(of(&all, "near lines").why.contains("its own heap"));
}

/// Two ranks whose calls would have saved so many seconds.
fn job(saves_s: f64) -> Job {
    let small = Sized { up_to: Some(56), calls: 90_000 };
    let large = Sized { up_to: None, calls: 10_000 };
    Job {
        reports: 2,
        ranks: 2,
        node_ranks: 2,
        mpi: "An MPI 1.0, built by somebody".to_owned(),
        ended: true,
        collectives: vec![Calls {
            name: "bcast".to_owned(),
            calls: 100_000,
            sizes: vec![small, large],
            in_lines: 90_000,
            saves_s,
            ..Calls::default()
        }],
        saves_s,
        costs_s: 0.01,
        left: vec!["nobody asked".to_owned()],
        ..Job::default()
    }
}

#[test]
fn calls_that_were_counted_are_told_and_what_they_save_is_not() {
    let machine = machine();
    let of_job = |job| {
        let seen = Seen { mpi: job, ..seen() };
        let around = Around { launches: true, ..around(&seen, &machine) };
        of(&bounds::all(&offers(), &around), "collectives").clone()
    };
    let saved = of_job(Some(job(0.21)));
    assert_eq!((saved.says, saved.at_most, saved.about), (Says::Unknown, None, None));
    let why = saved.why.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(why.starts_with("100 000 calls by rank 0, 90 000 of them worth doing"), "{saved:?}");
    assert!(saved.command.as_ref().is_some_and(|c| c.contains("--try --only collectives")));
    // Taking over costs more.
    let lost = of_job(Some(job(0.009)));
    assert_eq!((lost.says, lost.about, lost.reading), (Says::Nothing, None, None));
    assert!(lost.why.ends_with("nobody asked"), "{lost:?}");
    let apart = of_job(Some(Job { node_ranks: 1, ..job(0.21) }));
    assert!(apart.says == Says::Unknown && apart.why.contains("across nodes"), "{apart:?}");
    let none = of_job(Some(Job::default()));
    assert!(none.says == Says::Unknown && none.why.contains("no rank left"), "{none:?}");
    assert!(of_job(None).why.contains("not seen from outside"));
    // Of the machine: one core has nobody to tell.
    let seen = Seen { mpi: Some(job(0.21)), ..seen() };
    let mut offers = offers();
    offers[3] = Finding::new("collectives", Offer::Nothing, "one core");
    let around = Around { launches: true, ..around(&seen, &machine) };
    assert_eq!(of(&bounds::all(&offers, &around), "collectives").says, Says::Nothing);
}

#[test]
fn what_a_job_called_is_a_line_and_a_table() {
    let seen = Seen { mpi: Some(job(0.21)), ..seen() };
    let machine = machine();
    let around = Around { launches: true, ..around(&seen, &machine) };
    let levers = bounds::all(&offers(), &around);
    let mut both = levers.clone();
    both.iter_mut().filter(|of| of.lever == "regions").for_each(|of| of.at_most = Some(0.5));
    both.iter_mut().filter(|of| of.lever == "collectives").for_each(|of| of.about = Some(0.1));
    let summary = words::summary(&both);
    assert!(
        summary.starts_with("At most 50.0 % of the time by regions, about 10.0 % by collectives"),
        "{summary}"
    );
    let figures = figures(seen, levers);
    let flat = words::text(&figures, 80).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("rank 0 of 2, An MPI 1.0: 100 000 bcast (90 000 up to 56 B"));
    assert!(flat.contains("takes a trial") && flat.contains("of more)"), "{flat}");
    let page = words::page(&figures).render();
    assert!(page.contains("Calls of rank 0 of 2") && page.contains("would save"));
}

#[test]
fn what_was_allocated_is_a_line_and_a_table() {
    let lived = |at_most_s, objects| Lived { at_most_s, objects };
    let small = OfSize {
        up_to: Some(64),
        calls: 75_000.0,
        bytes: 3e6,
        looked_at: 300,
        followed: 200,
        lived: vec![lived(Some(1e-5), 100), lived(Some(1e-3), 20), lived(None, 30)],
        stayed: 50,
    };
    let large = OfSize { up_to: None, calls: 25_000.0, looked_at: 25_000, ..OfSize::default() };
    let sizes = vec![small, large];
    let all =
        Allocations { processes: 2, calls: 100_000.0, looked_at: 25_300, followed: 200, sizes };
    let (brief, stayed) = all.lives(1e-3).unwrap();
    assert!((brief - 0.6).abs() < 1e-9 && (stayed - 0.25).abs() < 1e-9, "{brief} {stayed}");
    assert_eq!(Allocations::default().lives(1.0), None);
    let seen = Seen { allocations: Some(all), ..seen() };
    let machine = machine();
    let levers = bounds::all(&offers(), &around(&seen, &machine));
    assert!(of(&levers, "allocators").why.contains("hardware counters"));
    let figures = figures(seen, levers);
    let flat = words::text(&figures, 80).split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "100 000 (50 000 a second) in 2 processes, 25 300 looked at: 75.0 % up to 64 B, 25.0 % of more",
        "60.0 % of 200 followed were freed within 1.00 ms, 25.0 % never",
    ] {
        assert!(flat.contains(words), "{flat}");
    }
    let page = words::page(&figures).render();
    assert!(page.contains("how long they lived") && page.contains("longer"));
}

#[test]
fn memory_that_somebody_waited_for_bounds_what_tiering_saves() {
    let mut seen = seen();
    seen.memory_stalls_s = Some(0.5);
    if let Some(pages) = &mut seen.looks.pages {
        pages.swapped = 1 << 20;
    }
    let machine = machine();
    near(of(&bounds::all(&offers(), &around(&seen, &machine)), "tier or zram"), 0.25);
    seen.memory_stalls_s = None;
    assert_eq!(
        of(&bounds::all(&offers(), &around(&seen, &machine)), "tier or zram").says,
        Says::Unknown
    );
}

#[test]
fn faults_times_what_the_pager_takes_for_one_are_a_number() {
    let mut seen = seen();
    (seen.memory_stalls_s, seen.spent.major_faults) = (Some(0.5), 10_000);
    let machine = machine();
    let tier = |seen: &Seen| {
        let all = bounds::all(&offers(), &around(seen, &machine));
        let tier = of(&all, "tier or zram");
        (tier.says, tier.about, tier.why.clone())
    };
    seen.far_fault_us = Some(10.0);
    let (says, about, why) = tier(&seen);
    assert_eq!(says, Says::About, "{why}");
    assert!((about.unwrap() - 0.4 / seen.seconds).abs() < 1e-9, "{about:?}: {why}");
    seen.far_fault_us = Some(60.0);
    let (says, about, why) = tier(&seen);
    assert_eq!((says, about), (Says::Nothing, None), "{why}");
    assert!(why.contains("zram"), "{why}");
}

#[test]
fn beside_other_work_waits_for_memory_are_no_number_and_no_end_of_it() {
    let mut seen = seen();
    (seen.memory_stalls_s, seen.spent.major_faults) = (Some(0.5), 10_000);
    (seen.spent.user_s, seen.spent.system_s) = (0.1 * seen.seconds, 0.0);
    seen.disturbance.others = Some(0.9);
    let machine = machine();
    for far_fault_us in [10.0, 60.0] {
        seen.far_fault_us = Some(far_fault_us);
        let all = bounds::all(&offers(), &around(&seen, &machine));
        let tier = of(&all, "tier or zram");
        near(tier, 0.9);
        assert!(tier.why.contains("other work"), "{tier:?}");
    }
    // With both of its cores in use it waited no more than is counted.
    seen.spent.user_s = 2.0 * seen.seconds;
    near(of(&bounds::all(&offers(), &around(&seen, &machine)), "tier or zram"), 0.25);
}

#[test]
fn pages_of_other_regions_are_counted() {
    let mut seen = seen();
    if let Some(pages) = &mut seen.looks.pages {
        pages.by_region = [(0, 3 << 20), (1, 1 << 20)].into();
    }
    let machine = machine();
    let all = bounds::all(&offers(), &around(&seen, &machine));
    let regions = of(&all, "regions");
    assert!(
        regions.says == Says::Unknown && regions.why.starts_with("1 MiB of 4 MiB"),
        "{regions:?}"
    );
}

#[test]
fn nothing_comes_first_where_no_lever_is_worth_a_trial() {
    let (seen, machine) = (of_four_threads(), machine());
    let all = bounds::all(&offers(), &around(&seen, &machine));
    assert!(
        words::summary(&all).starts_with("At most 75.0 % of the time by core order"),
        "{}",
        words::summary(&all)
    );
    let nothing: Vec<Bound> = all
        .iter()
        .filter(|of| of.says == Says::Nothing || of.says == Says::NotApplicable)
        .cloned()
        .collect();
    assert!(words::summary(&nothing).starts_with("Nothing here for you: "));
    let unknown: Vec<Bound> = all.iter().filter(|of| of.says == Says::Unknown).cloned().collect();
    let summary = words::summary(&unknown);
    assert!(
        summary.starts_with("Nothing here for you, as far as") && summary.contains("allocators")
    );
}

fn figures(seen: Seen, levers: Vec<Bound>) -> Figures {
    Figures {
        program: "solver".to_owned(),
        arguments: None,
        machine: "a machine".to_owned(),
        atlas: None,
        summary: words::summary(&levers),
        remarks: vec!["a remark ".repeat(20)],
        seen,
        levers,
    }
}

#[test]
fn no_line_is_wider_than_the_terminal_and_each_number_has_its_reading() {
    let (seen, machine) = (seen(), machine());
    let levers = bounds::all(&offers(), &around(&seen, &machine));
    let figures = figures(seen, levers);
    for width in [60, 80, 120] {
        let text = words::text(&figures, width);
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            flat.contains("solver (measured): 2.00 s") && flat.contains("(predicted; no atlas)"),
            "{text}"
        );
    }
    assert!(words::page(&figures).render().contains("What solver could gain at most"));
}
