//! Random programs on many cores: nothing is lost, and memory keeps what was written last.

use isochrone_stats as stats;

use super::{add, program, read, sandy_bridge, write};
use crate::lines::{Engine, Jitter, Lookup, Protocol, Step};

/// Cores and lines of a random run.
const CORES: usize = 16;
const LINES: u64 = 5;

fn random_steps(random: &mut stats::Xoshiro256PlusPlus, core: u64) -> Vec<Step> {
    let steps = 1 + stats::below(random, 40);
    (0..steps)
        .map(|n| {
            let line = u32::try_from(stats::below(random, LINES)).unwrap();
            match stats::below(random, 5) {
                0 => read(line),
                1 => Step::Drop { line },
                2 => write(100 + line, core * 1000 + n),
                _ => add(line),
            }
        })
        .collect()
}

#[test]
fn adds_are_counted_and_the_last_write_stays() {
    let costs = sandy_bridge(8);
    let cores: Vec<usize> = (0..CORES).collect();
    for seed in 0..60 {
        let protocol = if seed % 2 == 0 { Protocol::Mesif } else { Protocol::Mesi };
        let lookup = if seed % 4 < 2 { Lookup::Directory } else { Lookup::HomeSnoop };
        let mut random = stats::rng(seed);
        let steps: Vec<_> = (0..CORES as u64).map(|c| random_steps(&mut random, c)).collect();
        let mut engine = Engine::new(&costs, &cores, protocol, lookup);
        let jitter = Jitter { seed, begin_ns: 100.0, poll_ns: 0.0 };
        engine.run(&program(steps.clone()), &jitter).unwrap();
        for line in 0..u32::try_from(LINES).unwrap() {
            let adds = steps.iter().flatten().filter(|&step| *step == add(line)).count();
            assert_eq!(engine.word(line), adds as u64, "seed {seed}, line {line}");
            let written: Vec<u64> =
                steps.iter().filter_map(|s| last_write(s, 100 + line)).collect();
            let word = engine.word(100 + line);
            assert!(written.contains(&word) || (word == 0 && written.is_empty()), "seed {seed}");
        }
    }
}

/// What a core writes last to a line: any other of its writes would have been followed by this one.
fn last_write(steps: &[Step], line: u32) -> Option<u64> {
    steps.iter().rev().find_map(|step| match step {
        Step::Touch { lines, .. } if lines[0].line == line => match lines[0].change {
            Some(crate::lines::Change::Set(value)) => Some(value),
            _ => None,
        },
        _ => None,
    })
}
