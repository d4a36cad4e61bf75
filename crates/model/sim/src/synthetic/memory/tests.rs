//! What a memory promises: determinism, truth under the noise, and events at their time.

use super::*;
use crate::synthetic::{Disturbance, Noise, Scheduled, When};

fn memory(spec: SyntheticSpec) -> SyntheticMemory {
    SyntheticMemory::new(spec.with_pages(1024)).expect("a preset is sound")
}

fn sample(memory: &mut SyntheticMemory, core: u16, level: Level, lines: &[LineAddr]) -> Vec<u32> {
    let mut out = vec![Cycles(0); lines.len()];
    memory.sample(CoreId(core), level, lines, &mut out).expect("a sample");
    out.into_iter().map(|cycles| cycles.0).collect()
}

fn first_lines(count: u64) -> Vec<LineAddr> {
    (0..count).map(LineAddr).collect()
}

/// Truth of the lines as a noise-free timer reads it.
fn readings(memory: &SyntheticMemory, core: u16, level: Level, lines: &[LineAddr]) -> Vec<u32> {
    let overhead = memory.timer().overhead_cycles;
    let read = |line: &LineAddr| {
        let truth = memory.truth_latency(CoreId(core), level, *line).unwrap();
        u32::try_from(crate::number::whole_ticks(truth + overhead + 0.5, 1)).unwrap()
    };
    lines.iter().map(read).collect()
}

#[test]
fn one_seed_replays_bit_for_bit() {
    let run = |seed| {
        let moves = Scheduled::random_moves(CoreId(0), 8, (1e-5, 2e-5), 1.0, 3);
        let mut memory = memory(SyntheticSpec::genoa_like(seed).with_events(moves));
        let dram = sample(&mut memory, 0, Level::Dram, &first_lines(500));
        let llc = sample(&mut memory, 1, Level::Llc, &first_lines(500));
        (dram, llc, memory.seconds().to_bits(), memory.applied().len())
    };
    assert_eq!(run(9), run(9));
    assert_ne!(run(9).0, run(10).0);
    assert!(run(9).3 > 10);
}

#[test]
fn without_noise_samples_are_the_truth() {
    for name in crate::synthetic::presets::NAMES {
        let mut memory = memory(SyntheticSpec::by_name(name, 2).unwrap().noiseless());
        for level in Level::ALL {
            if level == Level::Llc && memory.spec().machine.llc_base_cycles.is_none() {
                continue;
            }
            let lines = first_lines(300);
            let expected = readings(&memory, 1, level, &lines);
            assert_eq!(sample(&mut memory, 1, level, &lines), expected, "{name} {level}");
        }
    }
}

#[test]
fn with_noise_the_mean_is_the_truth_and_readings_are_ticks() {
    let mut spec = SyntheticSpec::genoa_like(2);
    spec.noise = Noise { dram_sd_cycles: 45.0, ..Noise::none() };
    let mut memory = memory(spec);
    let got = sample(&mut memory, 0, Level::Dram, &vec![LineAddr(77); 20_000]);
    assert!(got.iter().all(|cycles| cycles % 26 == 0));
    let mean = got.iter().map(|cycles| f64::from(*cycles)).sum::<f64>() / 20_000.0;
    let truth = memory.truth_latency(CoreId(0), Level::Dram, LineAddr(77)).unwrap();
    assert!((mean - 60.0 - truth).abs() < 1.5, "{mean} {truth}");
}

#[test]
fn llc_misses_show_the_dram_latency() {
    let mut spec = SyntheticSpec::genoa_like(2).noiseless();
    spec.noise.llc_miss_probability = 0.3;
    let mut memory = memory(spec);
    let got = sample(&mut memory, 0, Level::Llc, &vec![LineAddr(5); 10_000]);
    let dram = readings(&memory, 0, Level::Dram, &[LineAddr(5)])[0];
    let hit = readings(&memory, 0, Level::Llc, &[LineAddr(5)])[0];
    let missed = got.iter().filter(|cycles| **cycles == dram).count();
    assert!((2800..3200).contains(&missed), "{missed}");
    assert!(got.iter().all(|cycles| *cycles == dram || *cycles == hit));
}

#[test]
fn lines_of_one_page_in_one_batch_disturb_each_other_and_others_do_not() {
    let mut spec = SyntheticSpec::emerald_rapids_like(2).noiseless();
    let found_at_cycles = 16.0;
    spec.noise.disturbance = Some(Disturbance { window: 4, probability: 1.0, found_at_cycles });
    let mut memory = memory(spec);
    let together = first_lines(4);
    let apart: Vec<LineAddr> = (0..16).map(|page| PageAddr(page % 5).line(9)).collect();
    let expected = readings(&memory, 0, Level::Llc, &together);
    let got = sample(&mut memory, 0, Level::Llc, &together);
    assert_eq!(got, [expected[0], 46, 46, 46], "16 cycles and the overhead of 30");
    let expected = readings(&memory, 0, Level::Llc, &apart);
    assert_eq!(sample(&mut memory, 0, Level::Llc, &apart), expected, "five pages: beyond 4 back");
}

#[test]
fn moves_take_effect_at_the_named_sample_and_back() {
    let spec = SyntheticSpec::emerald_rapids_like(2).noiseless().with_events([
        Scheduled::core_moves(When::Samples(100), CoreId(0), 3),
        Scheduled::core_moves(When::Samples(150), CoreId(0), 0),
    ]);
    let mut memory = memory(spec);
    let lines = first_lines(200);
    let home = readings(&memory, 0, Level::Llc, &lines);
    let base = memory.truth_base_of(3, Level::Llc).unwrap();
    let away = |line: &LineAddr| {
        let code = memory.truth_code(Level::Llc, line.page()).unwrap();
        crate::synthetic::truth::predict(&base, code, line.index_in_page()).unwrap()
    };
    let away: Vec<f64> = lines.iter().map(away).collect();
    let got = sample(&mut memory, 0, Level::Llc, &lines);
    for i in 0..200 {
        if (100..150).contains(&i) {
            assert!((f64::from(got[i]) - 30.0 - away[i]).abs() <= 0.5, "sample {i}");
        } else {
            assert_eq!(got[i], home[i], "sample {i}");
        }
    }
    assert_eq!(memory.applied().iter().map(|a| a.at_sample).collect::<Vec<_>>(), [100, 150]);
    assert_eq!(memory.truth_wears(CoreId(0)), Some(0));
}

#[test]
fn a_migrated_page_has_another_frame_and_key() {
    let at = When::Seconds(1e-3);
    let pages = [3, 4, 5, 6].map(PageAddr);
    let events = pages.map(|page| Scheduled::page_migrates(at, page));
    let mut memory = memory(SyntheticSpec::emerald_rapids_like(2).with_events(events));
    let state = |memory: &SyntheticMemory| {
        pages.map(|page| (memory.frame(page).unwrap(), memory.truth_key(page).unwrap()))
    };
    let before = state(&memory);
    sample(&mut memory, 0, Level::Dram, &first_lines(64));
    assert!(memory.applied().is_empty(), "not yet: {} s", memory.seconds());
    memory.pass(1e-3);
    sample(&mut memory, 0, Level::Dram, &first_lines(1));
    let after = state(&memory);
    assert_eq!(memory.applied().len(), 4);
    assert!((0..4).all(|i| before[i].0 != after[i].0), "every frame: {before:?} {after:?}");
    assert!((0..4).any(|i| before[i].1 != after[i].1), "keys: {before:?} {after:?}");
}

#[test]
fn a_moved_thread_spoils_its_batch_and_no_other() {
    let found = CoreId(1);
    let spec = SyntheticSpec::genoa_like(2)
        .with_events([Scheduled::thread_moves(When::Samples(150), found)]);
    let mut memory = memory(spec);
    let mut out = vec![Cycles(0); 100];
    let mut batch = || memory.sample(CoreId(0), Level::Dram, &first_lines(100), &mut out);
    let moved = Err(SampleError::Moved { asked: CoreId(0), found });
    assert_eq!([batch(), batch(), batch()], [Ok(()), moved, Ok(())]);
    assert_eq!(memory.samples(), 300, "the spoilt batch took its time too");
    memory.inject(Event::ThreadMoves { found }).unwrap();
    assert!(memory.chase(CoreId(0), Level::Dram, &first_lines(5)).is_err());
    assert!(memory.chase(CoreId(0), Level::Dram, &first_lines(5)).is_ok());
}

#[test]
fn virtual_time_is_the_sum_of_what_was_done() {
    let mut memory = memory(SyntheticSpec::flat(2).noiseless());
    sample(&mut memory, 0, Level::Dram, &first_lines(1000));
    let costs = memory.spec().costs.clone();
    let each = 300.0 + 30.0 + costs.sample_cycles + costs.dram_prepare_cycles;
    let expected = (costs.batch_cycles + 1000.0 * each) / memory.timer().hz;
    assert!((memory.seconds() - expected).abs() < 1e-12);
}

#[test]
fn a_chase_is_the_sum_of_its_loads() {
    let mut memory = memory(SyntheticSpec::ring_knc(2).noiseless());
    let lines = first_lines(640);
    let truth = |line: &LineAddr| memory.truth_latency(CoreId(8), Level::Dram, *line).unwrap();
    let sum = lines.iter().map(truth).sum::<f64>();
    let chased = memory.chase(CoreId(8), Level::Dram, &lines).unwrap();
    assert_eq!(chased, crate::number::whole_ticks(sum + 30.5, 1), "one overhead of 30");
}

#[test]
fn questions_without_an_answer_are_refused_before_any_load() {
    let mut memory = memory(SyntheticSpec::ring_knc(2));
    let mut out = [Cycles(0)];
    let mut ask = |core, level, line| {
        memory.sample(CoreId(core), level, &[LineAddr(line)], &mut out).unwrap_err()
    };
    assert_eq!(ask(0, Level::Llc, 0), SampleError::NoLlc);
    let core = CoreId(60);
    assert_eq!(ask(60, Level::Dram, 0), SampleError::NoSuchCore { core, cores: 60 });
    let (line, lines) = (LineAddr(65_536), 65_536);
    assert_eq!(ask(0, Level::Dram, 65_536), SampleError::OutsideArena { line, lines });
    let uneven = memory.sample(CoreId(0), Level::Dram, &[], &mut out);
    assert_eq!(uneven, Err(SampleError::Lengths { lines: 0, out: 1 }));
    assert_eq!((memory.samples(), memory.seconds()), (0, 0.0));
}

#[test]
fn hidden_frames_stay_hidden() {
    let mut spec = SyntheticSpec::flat(2);
    spec.arena.frames_readable = false;
    let memory = memory(spec);
    assert_eq!(memory.frame(PageAddr(0)), None);
    assert!(memory.truth_frame(PageAddr(0)).is_some());
}
