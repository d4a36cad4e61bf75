//! Patterns against Task Bench's definitions, and whole graphs against one thread.

use isochrone_tasks::live::{Config, Runtime};
use isochrone_tasks::{Regime, Topology};

use super::{Graph, Pattern, Points, ThreeRanges, addresses, spend};

fn before(pattern: Pattern, step: u32, point: u32) -> Vec<u32> {
    let mut out = Vec::new();
    pattern.before(step, point, 8, |at| out.push(at));
    out
}

#[test]
fn patterns_name_the_points_that_task_bench_has() {
    assert!(Pattern::ALL.iter().all(|pattern| before(*pattern, 0, 3).is_empty()));
    assert!(before(Pattern::Trivial, 5, 3).is_empty());
    assert_eq!(before(Pattern::Stencil1d, 5, 0), [0, 1]);
    assert_eq!(before(Pattern::Stencil1d, 5, 7), [6, 7]);
    assert_eq!(before(Pattern::Nearest, 5, 1), [0, 1, 2, 3]);
    assert_eq!(before(Pattern::Dom, 5, 3), [2, 3]);
    assert_eq!(before(Pattern::Dom, 5, 0), [0]);
    assert_eq!(before(Pattern::Fft, 1, 3), [2, 3, 4]);
    assert_eq!(before(Pattern::Fft, 3, 3), [3, 7]);
    assert_eq!(before(Pattern::Fft, 4, 3), [2, 3, 4]);
    let tree: Vec<u32> = (0..8).flat_map(|point| before(Pattern::Tree, 2, point)).collect();
    assert_eq!(tree, [0, 0, 0, 0, 4, 4, 4, 4]);
    assert_eq!(before(Pattern::Tree, 4, 5), [5]);
}

#[test]
fn every_graph_gives_the_serial_number_on_two_workers() {
    for pattern in Pattern::ALL {
        for (width, steps) in [(1, 3), (8, 40), (13, 21)] {
            let graph = Graph { pattern, width, steps, turns: 3 };
            let config = Config::new(Regime::Dft, 2, Topology::flat(2));
            let mut run = Runtime::start(config).unwrap();
            let points = Points::new(&mut run, graph).unwrap();
            points.submit(&mut run).unwrap();
            run.wait().unwrap();
            assert_eq!(points.result(&mut run).unwrap(), graph.reference(), "{graph:?}");
            assert_eq!(run.report().tasks, graph.tasks());
        }
    }
}

#[test]
fn tasks_with_ranges_choose_among_all_lines() {
    let mut seen = [0; 16];
    for number in 0..1000 {
        addresses(number).into_iter().for_each(|line| seen[usize::from(line)] += 1);
    }
    assert!(seen.iter().all(|count| (100..300).contains(count)), "{seen:?}");
    assert_eq!(ThreeRanges::ELEMENTS, 128);
    assert_ne!(spend(5, 10), spend(5, 11));
}
