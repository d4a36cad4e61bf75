//! Two maps with unchanged bases differ in nothing; each real change is named.

use super::*;
use crate::samples::{contents, pattern};

/// The same machine measured again: every number a little different.
fn measured_again() -> Contents {
    let mut again = contents();
    for level in &mut again.levels {
        for (place, base) in level.bases.iter_mut().enumerate() {
            for value in base.patterns.iter_mut().flatten() {
                let wobble = f32::from(
                    u8::try_from(value.to_bits() % 7 + u32::try_from(place).unwrap()).unwrap(),
                );
                *value += wobble / 10.0;
            }
        }
    }
    for cell in again.regions.iter_mut().flat_map(|map| map.latency_ns.cells.iter_mut()).flatten() {
        cell.median *= 1.003;
        cell.lo *= 1.003;
        cell.hi *= 1.003;
    }
    again.clock.overhead_cycles += 3.5;
    again.provenance.seed = 2;
    again.state.as_mut().unwrap().loadavg = Some([1.0, 2.0, 3.0]);
    again
}

#[test]
fn an_atlas_does_not_differ_from_itself() {
    let diff = diff(&contents(), &contents());
    assert!(diff.is_empty());
    // 3 region maps of 2 cells, 3 transfers of 2, q and o of one fit, one term, one bandwidth.
    assert_eq!(diff.cells_compared, 16);
    assert_eq!(diff.lines(), ["no difference (16 cells compared)"]);
}

#[test]
fn measuring_again_is_no_difference_but_the_timer_is_noted() {
    let diff = diff(&contents(), &measured_again());
    assert!(diff.is_empty(), "{:#?}", diff.lines());
    assert_eq!(diff.clock_overhead_cycles, 3.5);
    assert!(
        diff.lines().contains(&"note: the timer costs +3.5 cycles; already taken off".to_owned())
    );
}

#[test]
fn a_core_that_moved_is_named_with_where_it_moved() {
    let mut moved = measured_again();
    moved.levels[0].core_base = vec![Some(1), Some(1)];
    let diff = diff(&contents(), &moved);
    assert_eq!(diff.bases.len(), 1);
    let change = &diff.bases[0];
    assert_eq!((change.core, change.worn_before_by), (0, Some(1)));
    assert!(change.correlation.unwrap() < 0.9);
    let line = change.to_string();
    assert!(line.starts_with("llc: core 0 wears another base (correlation"), "{line}");
    assert!(line.ends_with("the one learnt on core 1: it moved there"), "{line}");
    moved.levels[0].bases[1].patterns[0] = pattern(64, 23, 47.0);
    let strange = super::diff(&contents(), &moved);
    assert_eq!(strange.bases.iter().map(|b| b.worn_before_by).collect::<Vec<_>>(), [None, None]);
}

#[test]
fn a_base_turned_by_a_key_is_the_same_base() {
    let mut turned = contents();
    let base = &mut turned.levels[0].bases[0].patterns[0];
    *base = (0..64_usize).map(|line| base[line ^ 21]).collect();
    for block in &mut turned.pages {
        block.llc.iter_mut().for_each(|code| *code ^= 21);
    }
    for level in &mut turned.levels {
        level.canonical_key = (0..64).collect();
    }
    let mut before = contents();
    for level in &mut before.levels {
        level.canonical_key = (0..64).collect();
    }
    let diff = diff(&before, &turned);
    assert!(diff.is_empty(), "{:#?}", diff.lines());
    assert_eq!(diff.notes, ["llc: core 0's base is turned by key 21"]);
    assert_eq!(diff.pages[0], PageChange { level: "llc".to_owned(), common: 2048, differing: 0 });
}

#[test]
fn classes_numbered_and_turned_otherwise_are_the_same() {
    let of = |patterns: Vec<Vec<f32>>, code: &dyn Fn(usize) -> u16| {
        let mut contents = contents();
        let level = &mut contents.levels[0];
        level.classes = 2;
        level.canonical_key = (0..64).collect();
        level.bases.iter_mut().for_each(|base| base.patterns = patterns.clone());
        for block in &mut contents.pages {
            block.llc.iter_mut().enumerate().for_each(|(page, slot)| *slot = code(page));
        }
        contents
    };
    let (a, b) = (pattern(64, 23, 47.0), pattern(64, 37, 45.0));
    let turned = |pattern: &[f32], key: usize| (0..64).map(|at| pattern[at ^ key]).collect();
    let code = |page: usize| u16::try_from(page % 128).expect("small");
    let before = of(vec![a.clone(), b.clone()], &code);
    let after = of(vec![turned(&b, 9), turned(&a, 30)], &|page| match code(page) {
        key @ 0..64 => 64 + (key ^ 30),
        key => (key - 64) ^ 9,
    });
    let diff = diff(&before, &after);
    assert!(diff.is_empty(), "{:#?}", diff.lines());
    assert_eq!((diff.pages[0].common, diff.pages[0].differing), (2048, 0));
}

#[test]
fn a_flat_level_is_compared_by_its_mean() {
    let flat = |seed: u16| -> Vec<f32> {
        (0..64).map(|line| 361.0 + f32::from((line * seed) % 13) / 10.0).collect()
    };
    let with = |values: Vec<f32>| {
        let mut contents = contents();
        contents.levels[1].classes = 1;
        contents.levels[1].form = crate::contents::Form::Flat;
        contents.levels[1].code_share.truncate(64);
        for base in &mut contents.levels[1].bases {
            base.patterns = vec![values.clone()];
        }
        contents
    };
    assert!(diff(&with(flat(5)), &with(flat(7))).is_empty(), "uncorrelated, but all noise");
    let shifted = flat(5).iter().map(|value| value * 1.2).collect();
    let slower = diff(&with(flat(5)), &with(shifted));
    assert_eq!(slower.bases.len(), 2);
    assert!(slower.bases[0].to_string().contains("the same pattern +72"), "{}", slower.bases[0]);
}

#[test]
fn cells_whose_intervals_are_apart_are_named_with_how_far() {
    let mut slower = contents();
    let cell = slower.regions[1].latency_ns.cells[1].as_mut().unwrap();
    (cell.median, cell.lo, cell.hi) = (150.0, 149.0, 151.0);
    slower.transfers[0].latency_ns.cells[2] = None;
    let diff = diff(&contents(), &slower);
    let lines = diff.lines();
    assert_eq!(diff.cells.len(), 2);
    assert_eq!(lines[0], "modified line transfer, ns: core 1 to core 0: was 51.50, is missing");
    assert_eq!(
        lines[1],
        "random core-to-region latency, ns: core 1 to region 0: 134.75 became 150.00 (+11.3 %), \
         intervals 13.98 apart"
    );
    let back = serde_json::to_string(&diff).unwrap();
    assert_eq!(serde_json::from_str::<Diff>(&back).unwrap(), diff);
}

#[test]
fn one_that_only_one_atlas_has_is_told_as_one() {
    let mut fewer = contents();
    assert!(fewer.bandwidth.pop().is_some() && fewer.bandwidth.is_empty());
    let diff = diff(&contents(), &fewer);
    let said = diff.notes.iter().find(|note| note.ends_with("the first atlas"));
    assert_eq!(
        said.map(String::as_str),
        Some("1 quantity is only in the first atlas"),
        "{:?}",
        diff.notes
    );
}

#[test]
fn a_changed_description_machine_state_or_frame_is_named() {
    let mut other = contents();
    other.fingerprint.words = vec!["quad".to_owned()];
    other.fingerprint.hash = 1;
    other.state.as_mut().unwrap().kernel = Some("6.19".to_owned());
    other.levels[0].form = crate::contents::Form::Flat;
    other.levels.pop();
    other.complete = false;
    for code in other.pages[0].llc.iter_mut() {
        *code ^= 4;
    }
    let diff = diff(&contents(), &other);
    assert_eq!(diff.machine, ["- pair", "+ quad"]);
    assert_eq!(diff.state, ["kernel was \"6.18\", is \"6.19\""]);
    assert_eq!(diff.description, ["llc: form was pattern, is flat", "dram: no longer measured"]);
    assert!(diff.pages[0].moved());
    assert_eq!((diff.pages[0].common, diff.pages[0].differing), (2048, 512));
    assert_eq!(diff.notes, ["the second atlas is incomplete: its run was interrupted"]);
}

#[test]
fn noise_between_equivalent_lines_is_no_difference() {
    // Eight lines that repeat, as on Zen 4, learnt twice with noise a third of the pattern.
    let learnt = |seed: u16| {
        let mut contents = contents();
        let level = &mut contents.levels[0];
        level.canonical_key = (0..64).map(|key| key % 8).collect();
        let noise = |line: u16| f32::from((line * seed) % 17) / 4.0 - 2.0;
        let eight = [3.0, -4.0, 1.5, 5.0, -4.5, 0.0, -2.0, 1.0_f32];
        let value = |line: u16| 44.0 + eight[usize::from(line % 8)] + noise(line);
        level.bases[0].patterns = vec![(0..64).map(value).collect()];
        contents
    };
    let again = diff(&learnt(5), &learnt(7));
    assert!(again.is_empty(), "{:#?}", again.lines());
    let mut moved = learnt(7);
    moved.levels[0].bases[0].patterns[0].rotate_left(3);
    assert_eq!(diff(&learnt(5), &moved).bases.len(), 1);
}
