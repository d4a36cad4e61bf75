//! Tests of the line engine.

use isochrone_machine::{ClassCost, LineCosts, PairClass};

use super::{Change, Program, Step, Touch, Until};

mod exhaustive;
mod orders;
mod random;
mod timing;

/// Two Sandy Bridge sockets: section 2.1 and Table 1 of the CLa paper.
fn sandy_bridge(each: usize) -> LineCosts {
    let near = ClassCost {
        transfer_ns: 35.0,
        memory_ns: 70.0,
        start_ns: 63.4,
        line_ns: 11.1,
        congestion_ns: 0.0,
    };
    let far = ClassCost {
        transfer_ns: 94.0,
        memory_ns: 107.0,
        start_ns: 180.65,
        line_ns: 7.5,
        congestion_ns: 3.0,
    };
    let class = |a: usize, b: usize| PairClass(u8::from(a / each != b / each));
    LineCosts::new(2 * each, vec![near, far], 2.3, class)
}

fn touch(lines: impl IntoIterator<Item = Touch>) -> Step {
    Step::Touch { lines: lines.into_iter().collect(), private: 0 }
}

fn read(line: u32) -> Step {
    touch([Touch { line, change: None }])
}

fn write(line: u32, value: u64) -> Step {
    let change = Some(Change::Set(value));
    touch([Touch { line, change }])
}

fn add(line: u32) -> Step {
    let change = Some(Change::Add(1));
    touch([Touch { line, change }])
}

fn wait(line: u32, value: u64) -> Step {
    Step::Wait { line, until: Until::Equal(value) }
}

fn many(lines: std::ops::Range<u32>) -> Step {
    touch(lines.map(|line| Touch { line, change: None }))
}

/// The program in which core `n` does the `n`th list.
fn program(cores: Vec<Vec<Step>>) -> Program {
    Program { cores }
}
