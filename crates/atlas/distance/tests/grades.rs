//! Only grades change, and what is handed out changes as they say: nothing of what is below `Grade::USABLE`, and
//! everything else with its grade beside it.

#![allow(clippy::tests_outside_test_module, reason = "an integration test is one")]

use isochrone_atlas::{Atlas, format};
use isochrone_atlas_store::contents::{Bandwidth, Contents, Graded, RegionMap};
use isochrone_atlas_store::encode;
use isochrone_atlas_store::made::{self, cell, flat_level};
use isochrone_distance::{
    Distances, Experiment, FarKind, Fill, Grade, Term, common_level, groups, order,
};
use isochrone_units::{CoreId, RegionId};

/// Eight cores in two groups that are not those of their numbers, with everything that arrangers ask for.
fn contents() -> Contents {
    let transfer_ns = |a: u16, b: u16| {
        let near = if a % 2 == b % 2 { 30.0 } else { 120.0 };
        Some(near + f64::from(a + b) / 10.0)
    };
    let mut contents = made::lines(8, transfer_ns, &[("left-shared", 7.0)]);
    let cores = || (0..8).map(CoreId);
    let ns = (0..8).map(|core| Some(cell(160.0 - 10.0 * f64::from(core)))).collect();
    contents.regions = vec![RegionMap::of_chase("random", 1 << 28, cores(), [RegionId(0)], ns)];
    let bandwidth =
        |cores: &[u16]| Bandwidth { cores: cores.into(), region: 0, gb_per_s: cell(12.0) };
    contents.bandwidth = vec![bandwidth(&[0]), bandwidth(&[0, 1, 2, 3, 4, 5, 6, 7])];
    contents.levels = vec![flat_level("dram", 85.0, &contents)];
    contents
}

/// What an atlas with these contents hands out.
#[derive(Debug, PartialEq)]
struct Answers {
    transfer: bool,
    memory: bool,
    several_lines: bool,
    term: bool,
    region: bool,
    region_bandwidth: bool,
    bandwidth: bool,
    far: bool,
    levels: usize,
    groups: u16,
    compact: [u16; 8],
    near: [u16; 8],
}

const ALL: Answers = Answers {
    transfer: true,
    memory: true,
    several_lines: true,
    term: true,
    region: true,
    region_bandwidth: true,
    bandwidth: true,
    far: true,
    levels: 2,
    groups: 2,
    compact: [0, 2, 4, 6, 1, 3, 5, 7],
    near: [7, 6, 5, 4, 3, 2, 1, 0],
};

fn answers(bytes: &[u8]) -> Answers {
    let atlas = Atlas::open(bytes).expect("a sound file");
    let (own, all) = (CoreId(0), [0, 1, 2, 3, 4, 5, 6, 7].map(CoreId));
    let lines = atlas.line_costs(CoreId(3), CoreId(0));
    let region = atlas.region(own, RegionId(0));
    let filled = |fill| {
        let mut cores = all;
        order(&atlas, fill, &mut cores);
        cores.map(|core| core.0)
    };
    assert_eq!(common_level(&atlas, own, CoreId(2)).is_some(), atlas.levels() > 0);
    Answers {
        transfer: lines.is_some(),
        memory: lines.is_some_and(|lines| lines.memory.is_some()),
        several_lines: lines.is_some_and(|lines| lines.start.is_some() && lines.line.is_some()),
        term: Distances::term(&atlas, Term::LeftShared).is_some(),
        region: region.is_some(),
        region_bandwidth: region
            .is_some_and(|region| region.gb_per_s.is_some() && region.gb_per_s_together.is_some()),
        bandwidth: atlas.bandwidth(&all, RegionId(0)).is_some(),
        far: atlas.far(own, FarKind::Region(RegionId(0))).is_some(),
        levels: atlas.levels(),
        groups: groups(&atlas, 0, &all, &mut [0; 8]),
        compact: filled(Fill::Compact),
        near: filled(Fill::Near(RegionId(0))),
    }
}

fn graded(experiment: Experiment, grade: Grade) -> Vec<u8> {
    let mut contents = contents();
    contents.quality.insert(experiment, Graded { grade, reason: "made up".into() });
    encode(&contents).expect("sound contents")
}

/// What is left where an experiment is not to be gone by.
fn without(experiment: Experiment) -> Answers {
    match experiment {
        // A chase in the nearest region stands in for lines from memory.
        Experiment::Block => ALL,
        // Groups come from transfers: without them cores are told apart by their numbers alone.
        Experiment::Transfer => Answers {
            transfer: false,
            memory: false,
            several_lines: false,
            levels: 0,
            groups: 0,
            compact: [0, 1, 2, 3, 4, 5, 6, 7],
            ..ALL
        },
        Experiment::Multiline => Answers { several_lines: false, ..ALL },
        Experiment::Terms => Answers { term: false, ..ALL },
        Experiment::Region => {
            Answers { region: false, region_bandwidth: false, far: false, near: ALL.compact, ..ALL }
        }
        Experiment::Bandwidth => Answers { region_bandwidth: false, bandwidth: false, ..ALL },
        Experiment::Placement => ALL,
    }
}

#[test]
fn what_is_quiet_disturbed_or_not_graded_is_handed_out() {
    let plain = encode(&contents()).expect("sound contents");
    assert_eq!(answers(&plain), ALL);
    for experiment in Experiment::ALL {
        for grade in Grade::ALL.into_iter().filter(|grade| *grade >= Grade::USABLE) {
            assert_eq!(answers(&graded(experiment, grade)), ALL, "{experiment:?} {grade}");
        }
    }
}

#[test]
fn what_is_unusable_counts_as_not_measured_and_nothing_else_does() {
    for experiment in Experiment::ALL {
        let bytes = graded(experiment, Grade::Unusable);
        assert_eq!(answers(&bytes), without(experiment), "{experiment:?}");
    }
}

#[test]
fn how_far_each_may_be_believed_is_handed_on() {
    for experiment in Experiment::ALL {
        for grade in Grade::ALL {
            let bytes = graded(experiment, grade);
            let atlas = Atlas::open(&bytes).expect("a sound file");
            for other in Experiment::ALL {
                let expected = (other == experiment).then_some(grade);
                assert_eq!(atlas.quality(other), expected, "{experiment:?} {grade} {other:?}");
            }
        }
    }
}

#[test]
fn a_grade_of_what_the_atlas_does_not_have_makes_nothing_appear() {
    let mut nothing = made::lines(8, |_, _| None, &[]);
    nothing.multiline.clear();
    let all = Experiment::ALL
        .map(|experiment| (experiment, Graded { grade: Grade::Quiet, reason: "made up".into() }));
    nothing.quality = all.into();
    let expected = Answers {
        memory: false,
        several_lines: false,
        term: false,
        bandwidth: false,
        near: [0, 1, 2, 3, 4, 5, 6, 7],
        ..without(Experiment::Transfer)
    };
    let expected = Answers { region: false, region_bandwidth: false, far: false, ..expected };
    assert_eq!(answers(&encode(&nothing).expect("sound contents")), expected);
}

/// The bytes of a file in which every experiment is graded, changed where the grades are.
fn forged(change: impl FnOnce(&mut [[u8; format::GRADE_BYTES]])) -> Vec<u8> {
    let mut contents = contents();
    for experiment in Experiment::ALL {
        let graded = Graded { grade: Grade::Quiet, reason: "made up".into() };
        contents.quality.insert(experiment, graded);
    }
    let mut bytes = encode(&contents).expect("sound contents");
    let table = bytes[format::HEADER_BYTES..].as_chunks().0;
    let mut entries = table.iter().map(format::SectionEntry::from_bytes);
    let grades = entries.find(|entry| entry.kind == format::Section::Grades as u32);
    let grades = grades.expect("they are there");
    let at = usize::try_from(grades.offset).unwrap();
    let length = usize::try_from(grades.length).unwrap();
    change(bytes[at..at + length].as_chunks_mut().0);
    let sum = format::checksum(&bytes);
    bytes[format::CHECKSUM_AT].copy_from_slice(&sum.to_le_bytes());
    bytes
}

#[test]
fn of_two_grades_the_worse_counts_and_a_grade_that_is_none_is_the_worst() {
    let transfer = Experiment::Transfer as u8;
    for place in [0, Experiment::COUNT - 1] {
        let twice = forged(|grades| grades[place] = [transfer, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(answers(&twice).levels, 0, "{place}");
    }
    let unknown = forged(|grades| grades.fill([transfer, 9, 0, 0, 0, 0, 0, 0]));
    assert_eq!(answers(&unknown), without(Experiment::Transfer));
}

#[test]
fn grades_of_experiments_that_nobody_knows_say_nothing() {
    let later = forged(|grades| grades.fill([200, 0, 255, 255, 255, 255, 255, 255]));
    assert_eq!(answers(&later), ALL);
    let atlas = Atlas::open(&later).expect("a sound file");
    assert!(Experiment::ALL.iter().all(|experiment| atlas.quality(*experiment).is_none()));
}
