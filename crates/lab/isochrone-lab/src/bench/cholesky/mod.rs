//! `isochrone bench cholesky --peers`: the tiled Cholesky factorisation by our tasks, by OpenMP's and
//! StarPU's over the same tile kernels (faer's and OpenBLAS's), and by OpenBLAS's own threads.
//!
//! Every factorisation is a process of its own on the same cores, made and checked by the same code;
//! systems take turns. Each system has the tile width that was best for it in a sweep.

pub(super) mod child;
mod figures;
mod foreign;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum as _;

use self::figures::{Asked, Figures, SystemFigures};
use super::budget::Stop;
use super::process::{ask, on_cores};
use super::recipe::Recipe;
use super::setting::Setting;
use super::tiled::{LIBRARY, heard, openmp};
use crate::args::{CholeskyArgs, KernelsChoice};
use isochrone_console::output::{self, WrongUsage};
use isochrone_console::written::scratch;

/// Blocks unless told otherwise.
const BLOCKS: u32 = 5;
/// The part of the time in which systems find their tiles.
const SWEEPING: f64 = 0.4;
/// A factorisation that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(120);
/// The variable by which OpenBLAS is told what kind of core it has.
const CORE_TYPE: &str = "OPENBLAS_CORETYPE";

const HEADER: &str = include_str!("peers/tiles.h");

const STARPU: Recipe = Recipe {
    name: "starpu",
    package: "gcc libstarpu-dev",
    compiler: "gcc",
    source: ("starpu.c", include_str!("peers/starpu.c")),
    options: &[LIBRARY[0], LIBRARY[1], "-I/usr/include/starpu/1.3", "-lstarpu-1.3"],
};

/// One that factors, with somebody's kernels.
#[derive(Clone, Debug)]
struct System {
    name: String,
    /// What the child is told.
    word: PathBuf,
    kernels: KernelsChoice,
    ours: bool,
    /// Its tile.
    width: u32,
}

/// What the parent asks with.
struct Asker<'a> {
    args: &'a CholeskyArgs,
    cores: String,
    workers: usize,
    seed: u64,
    scratch: &'a Path,
    core_type: Option<String>,
    stop: Stop,
}

/// What a child answered.
struct Answer {
    seconds: f64,
    residual: f64,
    core: Option<String>,
}

pub(super) fn measure(args: &CholeskyArgs, setting: &mut Setting<'_>) -> Result<Figures> {
    let common = &args.matrix.run;
    if !common.regime.is_empty() || common.check_footprint || common.trace.is_some() {
        let why = "--peers compares systems in one regime: leave --regime, --check-footprint and --trace out";
        return Err(WrongUsage::error(why.to_owned()));
    }
    let cores = setting.cores(common.threads.map_or(usize::MAX, usize::from))?;
    let workers = common.threads.map_or(cores.len(), usize::from);
    let list: Vec<String> = cores.iter().map(|core| core.0.to_string()).collect();
    let scratch = scratch()?;
    setting.step("compiling peers");
    let mut asker = Asker {
        args,
        cores: list.join(","),
        workers,
        seed: setting.seed(),
        scratch: scratch.path(),
        core_type: None,
        stop: setting.stop(),
    };
    let mut core = None;
    let mut systems = systems(scratch.path(), setting)?;
    match asker.best_core_type() {
        Ok(best) => (asker.core_type, core) = best,
        Err(why) => {
            setting.miss(&format!(
                "OpenBLAS has no figures: {why:#}; apt-get install libopenblas0-pthread"
            ));
            systems.retain(|system| system.kernels == KernelsChoice::Faer);
        }
    }
    let wanted = |system: &System| {
        args.only.is_empty() || args.only.iter().any(|word| system.name.contains(word.as_str()))
    };
    systems.retain(wanted);
    ensure!(systems.iter().any(|system| system.ours), "--only leaves none of ours");
    let sweeps = asker.sweep(&mut systems, setting)?;
    // Ours that was fastest is measured twice: what a system is over itself.
    let best =
        sweeps.iter().filter(|sweep| sweep.ours).min_by(|a, b| a.best().total_cmp(&b.best()));
    let again = systems.iter().find(|system| best.is_some_and(|best| best.name == system.name));
    let again = again.cloned().map(|system| System { name: "again".to_owned(), ..system });
    systems.extend(again);
    let names: Vec<String> = systems.iter().map(|system| system.name.clone()).collect();
    let mut residual: f64 = 0.0;
    let blocks = common.common.blocks.unwrap_or(BLOCKS);
    let series = setting.series(&names, "s", blocks, "cholesky", &mut |arm| {
        let answer = asker.ask(&systems[arm])?;
        residual = residual.max(answer.residual);
        Ok(answer.seconds)
    })?;
    let (rows, threads, seed) = (args.matrix.rows, workers, asker.seed);
    let asked = Asked { rows, threads, seed, core, core_type: asker.core_type };
    Ok(Figures::new(asked, sweeps, residual, series))
}

/// Everybody who can factor here; what cannot be compiled is noted.
fn systems(scratch: &Path, setting: &mut Setting<'_>) -> Result<Vec<System>> {
    std::fs::write(scratch.join("tiles.h"), HEADER)?;
    let mut found = vec![("isochrone", PathBuf::from("isochrone"))];
    for recipe in openmp(include_str!("peers/openmp.c")).into_iter().chain([STARPU]) {
        match recipe.compile(scratch, &setting.stop()) {
            Ok(library) => found.push((recipe.name, library)),
            Err(why) => setting.miss(&recipe.advice(&why)),
        }
    }
    let with = |kernels: KernelsChoice| {
        let of = if kernels == KernelsChoice::Faer { "faer" } else { "OpenBLAS" };
        found.iter().map(move |(name, word)| System {
            name: format!("{name}, {of} kernels"),
            word: word.clone(),
            kernels,
            ours: *name == "isochrone",
            width: 0,
        })
    };
    let mut all: Vec<System> = with(KernelsChoice::Faer).collect();
    all.extend(with(KernelsChoice::Openblas));
    all.push(System {
        name: "OpenBLAS threads".to_owned(),
        word: PathBuf::from("openblas"),
        kernels: KernelsChoice::Openblas,
        ours: false,
        width: 0,
    });
    Ok(all)
}

impl Asker<'_> {
    /// Tiles along one side.
    fn tiles(&self, width: u32) -> u32 {
        self.args.matrix.rows.div_ceil(width)
    }

    fn ask(&self, system: &System) -> Result<Answer> {
        self.ask_for(system, self.tiles(system.width), self.core_type.as_deref())
    }

    fn ask_for(&self, system: &System, tiles: u32, core_type: Option<&str>) -> Result<Answer> {
        let mut command = on_cores(&self.cores, &std::env::current_exe()?);
        let kernels = system.kernels.to_possible_value();
        command
            .args(["bench", "cholesky-run"])
            .arg(&system.word)
            .arg(kernels.as_ref().map_or("faer", |value| value.get_name()))
            .args([tiles.to_string(), system.width.to_string(), self.workers.to_string()])
            .arg(self.seed.to_string())
            .env("OMP_PROC_BIND", "true")
            .env("STARPU_HOME", self.scratch)
            .env("STARPU_SILENT", "1");
        if let Some(core_type) = core_type {
            command.env(CORE_TYPE, core_type);
        }
        let question = format!("{tiles} x {tiles} tiles of {}", system.width);
        let text = ask(&mut command, &system.name, &question, LIMIT, &self.stop)?;
        let (seconds, residual) = heard(&text)?;
        let core = text.lines().find_map(|line| line.strip_prefix("core ")).map(str::to_owned);
        Ok(Answer { seconds, residual, core })
    }

    /// What to tell OpenBLAS of the core, and what it then takes it for: what the user says, else the
    /// faster of its own choice and the newest kind of core that old releases know.
    fn best_core_type(&self) -> Result<(Option<String>, Option<String>)> {
        const ROWS: u32 = 1024;
        let threads = System {
            name: "OpenBLAS threads".to_owned(),
            word: PathBuf::from("openblas"),
            kernels: KernelsChoice::Openblas,
            ours: false,
            width: 256,
        };
        let try_one = |core_type: Option<&str>| {
            let answer = self.ask_for(&threads, ROWS / threads.width, core_type)?;
            Ok::<_, anyhow::Error>((answer.seconds, core_type.map(str::to_owned), answer.core))
        };
        if output::variable(CORE_TYPE).is_some() {
            let (_, _, core) = try_one(None)?;
            return Ok((None, core));
        }
        let mut all = vec![try_one(None)?];
        // Not every core can run that: a failure says so.
        all.extend(try_one(Some("SkylakeX")));
        let best = all.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
        best.map(|(_, core_type, core)| (core_type, core)).context("no run of OpenBLAS")
    }

    /// Gives every system its best tile; what was tried. Every system has its first tile before one tries a second, and
    /// those that there is no time for are left out.
    fn sweep(
        &self,
        systems: &mut Vec<System>,
        setting: &mut Setting<'_>,
    ) -> Result<Vec<SystemFigures>> {
        let time = self.stop.part(SWEEPING);
        let mut tried: Vec<Vec<(u32, f64)>> = vec![Vec::new(); systems.len()];
        let mut failed = vec![false; systems.len()];
        for (turn, width) in self.args.tiles.iter().enumerate() {
            for (at, system) in systems.iter_mut().enumerate() {
                // OpenBLAS has blocks of its own.
                let once = system.word.as_os_str() == "openblas";
                if failed[at] || (once && turn > 0) {
                    continue;
                }
                let over = if turn == 0 { self.stop.is_set() } else { time.is_set() };
                if over {
                    break;
                }
                setting.step(&format!("{}, tiles of {width}", system.name));
                system.width = *width;
                match self.ask(system) {
                    Ok(answer) => tried[at].push((*width, answer.seconds)),
                    Err(_) if self.stop.is_set() => {}
                    Err(why) if system.ours => return Err(why),
                    Err(why) => {
                        setting.miss(&format!("{why:#}"));
                        failed[at] = true;
                    }
                }
            }
        }
        let mut all = Vec::new();
        for (system, tried) in systems.iter_mut().zip(&tried) {
            let best = tried.iter().min_by(|a, b| a.1.total_cmp(&b.1));
            if let Some((width, _)) = best {
                system.width = *width;
                let once = system.word.as_os_str() == "openblas";
                let widths = if once { 1 } else { self.args.tiles.len() };
                let wanted = u32::try_from(widths).unwrap_or(u32::MAX);
                setting.did(&system.name, tried.len(), wanted, "tiles");
                all.push(SystemFigures::new(
                    &system.name,
                    system.ours,
                    system.width,
                    tried.clone(),
                ));
            }
        }
        let mut found = tried.iter().map(|tried| !tried.is_empty());
        systems.retain(|_| found.next().unwrap_or(false));
        Ok(all)
    }
}
