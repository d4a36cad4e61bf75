//! The systems that are compared: ours, peers that are compiled here from our sources against what the
//! machine has installed, and programs that somebody names. All are asked in one way, as processes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use isochrone_workloads::taskbench::Graph;

use crate::bench::Stop;
use crate::bench::process::{ask, on_cores};
use crate::bench::recipe::Recipe;

/// A run that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(60);

const COMMON: &str = include_str!("peers/common.h");

const RECIPES: [Recipe; 4] = [
    Recipe {
        name: "libgomp",
        package: "gcc",
        compiler: "gcc",
        source: ("openmp.c", include_str!("peers/openmp.c")),
        options: &["-fopenmp"],
    },
    Recipe {
        name: "libomp",
        package: "clang libomp-dev",
        compiler: "clang",
        source: ("openmp.c", include_str!("peers/openmp.c")),
        options: &["-fopenmp"],
    },
    Recipe {
        name: "onetbb",
        package: "g++ libtbb-dev",
        compiler: "g++",
        source: ("onetbb.cpp", include_str!("peers/onetbb.cpp")),
        options: &["-ltbb"],
    },
    Recipe {
        name: "starpu",
        package: "gcc libstarpu-dev",
        compiler: "gcc",
        source: ("starpu.c", include_str!("peers/starpu.c")),
        options: &["-I/usr/include/starpu/1.3", "-lstarpu-1.3", "-lpthread"],
    },
];

/// A system that can be asked.
#[derive(Clone, Debug)]
pub(super) struct System {
    pub(super) name: String,
    program: PathBuf,
    /// What stands before the question.
    before: &'static [&'static str],
    /// Where programs may leave what they find out about the machine.
    home: PathBuf,
    cores: String,
    stop: Stop,
}

/// What `OMP_PROC_BIND` says: each thread has a core, or none has.
const BOUND: &str = "true";
const FREE: &str = "false";

/// The name of our own arm, and of its repetition.
pub(super) const OURS: &str = "isochrone";
pub(super) const AGAIN: &str = "again";

/// What is asked of empty tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ranges {
    None,
    Three,
    /// Three that overlap others in part; only ours knows such.
    Overlapping,
    /// None, in tasks inside of tasks that wait for theirs.
    Nested,
}

/// What a run of empty tasks said: seconds, and the share that others ran.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct EmptyRun {
    pub(super) seconds: f64,
    pub(super) others: f64,
}

/// Ours, and every peer that this machine can compile or that was named; and why others are missing.
pub(super) fn systems(
    scratch: &Path,
    cores: &str,
    named: &[(String, PathBuf)],
    stop: &Stop,
) -> Result<(Vec<System>, Vec<String>)> {
    let system = |name: &str, program: PathBuf, before: &'static [&'static str]| System {
        name: name.to_owned(),
        program,
        before,
        home: scratch.to_path_buf(),
        cores: cores.to_owned(),
        stop: stop.clone(),
    };
    let own = std::env::current_exe()?;
    let ask: &[&str] = &["bench", "taskbench-run"];
    let mut found = vec![system(OURS, own.clone(), ask), system(AGAIN, own, ask)];
    let mut missing = Vec::new();
    std::fs::write(scratch.join("common.h"), COMMON)?;
    for recipe in &RECIPES {
        if named.iter().any(|(name, _)| name == recipe.name) {
            continue;
        }
        match recipe.compile(scratch, stop) {
            Ok(program) => found.push(system(recipe.name, program, &[])),
            Err(why) => missing.push(recipe.advice(&why)),
        }
    }
    for (name, program) in named {
        ensure!(program.is_file(), "--peer {name}={}: there is no such program", program.display());
        found.push(system(name, program.clone(), &[]));
    }
    Ok((found, missing))
}

impl System {
    /// Whether it can be asked this: StarPU's tasks cannot wait for tasks, and programs that are named may know no more
    /// than their description says.
    pub(super) fn answers(&self, ranges: Ranges) -> bool {
        let ours = [OURS, AGAIN].contains(&self.name.as_str());
        match ranges {
            Ranges::None | Ranges::Three => true,
            Ranges::Overlapping => ours,
            Ranges::Nested => ours || ["libgomp", "libomp", "onetbb"].contains(&self.name.as_str()),
        }
    }

    /// Whether it can be asked for more workers than cores: StarPU's are one for each core at most.
    pub(super) fn shares_cores(&self) -> bool {
        self.name != "starpu"
    }

    /// Runs a graph `runs` times after one that does not count: seconds. A wrong result is an error.
    pub(super) fn graph(&self, graph: Graph, workers: usize, runs: usize) -> Result<Vec<f64>> {
        self.run_graph(graph, workers, runs, BOUND)
    }

    /// The same, where the system may leave threads of OpenMP on no core of their own: there are more of them.
    pub(super) fn graph_unbound(
        &self,
        graph: Graph,
        workers: usize,
        runs: usize,
    ) -> Result<Vec<f64>> {
        self.run_graph(graph, workers, runs, FREE)
    }

    fn run_graph(
        &self,
        graph: Graph,
        workers: usize,
        runs: usize,
        binding: &str,
    ) -> Result<Vec<f64>> {
        let question = [
            "graph".to_owned(),
            graph.pattern.to_string(),
            graph.width.to_string(),
            graph.steps.to_string(),
            graph.turns.to_string(),
            workers.to_string(),
            (runs + 1).to_string(),
        ];
        let text = self.ask(&question, binding)?;
        let result = text.lines().find_map(|line| line.strip_prefix("result "));
        let result: u64 = result.context("it ended without a result")?.trim().parse()?;
        let wanted = self.stop.apart(move || Ok(graph.reference()))?;
        ensure!(result == wanted, "{}: {graph:?} ended with {result}, not {wanted}", self.name);
        let seconds = text.lines().filter_map(|line| line.parse().ok());
        Ok(seconds.skip(1).collect())
    }

    /// Runs so many empty tasks, `runs` times after one that does not count.
    pub(super) fn empty(
        &self,
        ranges: Ranges,
        tasks: u64,
        workers: usize,
        runs: usize,
    ) -> Result<Vec<EmptyRun>> {
        let kind = match ranges {
            Ranges::None => "nodep",
            Ranges::Three => "3dep",
            Ranges::Overlapping => "overlap",
            Ranges::Nested => "nested",
        };
        let question = [
            "empty".to_owned(),
            kind.to_owned(),
            tasks.to_string(),
            workers.to_string(),
            (runs + 1).to_string(),
        ];
        let text = self.ask(&question, BOUND)?;
        let parse = |line: &str| {
            let (seconds, others) = line.split_once(' ')?;
            Some(EmptyRun { seconds: seconds.parse().ok()?, others: others.parse().ok()? })
        };
        Ok(text.lines().filter_map(parse).skip(1).collect())
    }

    /// Starts the program on the cores with a question, and waits for the answer.
    fn ask(&self, question: &[String], binding: &str) -> Result<String> {
        let mut command = on_cores(&self.cores, &self.program);
        command
            .args(self.before)
            .args(question)
            .env("OMP_PROC_BIND", binding)
            .env("STARPU_HOME", &self.home)
            .env("STARPU_SILENT", "1");
        ask(&mut command, &self.name, &question.join(" "), LIMIT, &self.stop)
    }
}
