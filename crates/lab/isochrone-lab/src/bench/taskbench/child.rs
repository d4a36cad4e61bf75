//! `isochrone bench taskbench-run`: our own tasks, asked like the peers' programs.

use std::time::Instant;

use anyhow::{Result, ensure};
use isochrone_host::{SysRoot, this_machine};
use isochrone_tasks::live::{Config, Runtime};
use isochrone_tasks::{Regime, Topology};
use isochrone_workloads::taskbench::{
    Empty, Graph, Nested, Overlapping, Points, ThreeRanges, addresses,
};

use crate::args::TaskbenchRun;
use isochrone_console::output::Terminal;

/// Answers one question.
pub(in crate::bench) fn run(question: &TaskbenchRun, terminal: &Terminal) -> Result<()> {
    match *question {
        TaskbenchRun::Graph { pattern, width, steps, turns, workers, runs } => {
            graph(Graph { pattern, width, steps, turns }, workers, runs, terminal)
        }
        TaskbenchRun::Empty { ref ranges, tasks, workers, runs } => {
            empty(ranges, tasks, workers, runs, terminal)
        }
    }
}

fn start(workers: usize) -> Result<Runtime> {
    let topology = Topology::of(&this_machine(&SysRoot::live())?);
    Ok(Runtime::start(Config::new(Regime::Isochrone, workers, topology))?)
}

fn graph(graph: Graph, workers: usize, runs: usize, terminal: &Terminal) -> Result<()> {
    let mut run = start(workers)?;
    let points = Points::new(&mut run, graph)?;
    for _ in 0..runs {
        let begin = Instant::now();
        points.submit(&mut run)?;
        run.wait()?;
        terminal.print(&format!("{:.9}", begin.elapsed().as_secs_f64()))?;
    }
    terminal.print(&format!("result {}", points.result(&mut run)?))
}

fn empty(ranges: &str, tasks: u64, workers: usize, runs: usize, terminal: &Terminal) -> Result<()> {
    let mut run = start(workers)?;
    let lines = run.data(Overlapping::ELEMENTS)?;
    let mut known = run.report();
    for _ in 0..runs {
        let begin = Instant::now();
        if ranges == "nested" {
            run.spawn(Nested(tasks))?;
        }
        for number in (0..tasks).filter(|_| ranges != "nested") {
            let three = ThreeRanges { lines, chosen: addresses(number) };
            match ranges {
                "3dep" => run.spawn(three)?,
                "overlap" => run.spawn(Overlapping(three))?,
                _ => run.spawn(Empty)?,
            }
        }
        run.wait()?;
        let seconds = begin.elapsed().as_secs_f64();
        let report = run.report();
        let own = report.tasks_of[0] - known.tasks_of[0];
        let all = report.tasks - known.tasks;
        known = report;
        ensure!(all == tasks, "{all} tasks ran, not {tasks}");
        let others = (all - own) as f64 / all.max(1) as f64;
        terminal.print(&format!("{seconds:.9} {others:.6}"))?;
    }
    Ok(())
}
