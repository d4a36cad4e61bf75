//! `isochrone bench lu`: the tiled LU factorisation without pivots, by our tasks and by OpenMP's over the same tile
//! kernels.
//!
//! Tiles are small (64 rows), so that what a system does beside the arithmetic counts. Every factorisation is a
//! process of its own on the same cores, made and checked by the same code; systems take turns.

pub(super) mod child;
mod figures;
mod kernels;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use isochrone_console::written::scratch;

use self::figures::{AGAIN, Asked, Figures, OURS};
use super::budget::Stop;
use super::process::{ask, on_cores};
use super::setting::Setting;
use super::tiled::{heard, openmp};
use crate::args::LuArgs;

/// Blocks unless told otherwise.
const BLOCKS: u32 = 15;
/// A factorisation that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(120);

pub(super) fn measure(args: &LuArgs, setting: &mut Setting<'_>) -> Result<Figures> {
    let cores = setting.cores(args.threads.map_or(usize::MAX, usize::from))?;
    let threads = args.threads.map_or(cores.len(), usize::from);
    let list: Vec<String> = cores.iter().map(|core| core.0.to_string()).collect();
    let (tiles, seed) = (args.rows.div_ceil(args.tile), setting.seed());
    let asked = Asked { tiles, width: args.tile, threads, cores: cores.len(), seed };
    let scratch = scratch()?;
    setting.step("compiling peers");
    let systems = systems(scratch.path(), setting)?;
    let names: Vec<String> = systems.iter().map(|(name, _)| (*name).to_owned()).collect();
    let asker = Asker { asked, cores: list.join(","), stop: setting.stop() };
    let mut worst: f64 = 0.0;
    let blocks = args.common.blocks.unwrap_or(BLOCKS);
    let series = setting.series(&names, "s", blocks, "lu", &mut |arm| {
        let (name, word) = &systems[arm];
        let (seconds, residual) = asker.ask(name, word)?;
        worst = worst.max(residual);
        Ok(seconds)
    })?;
    Ok(Figures::new(asked, worst, series))
}

/// Everybody who can factor here, by what a child is told; what cannot be compiled is noted.
fn systems(scratch: &Path, setting: &mut Setting<'_>) -> Result<Vec<(&'static str, PathBuf)>> {
    std::fs::write(scratch.join("lu.h"), include_str!("peers/lu.h"))?;
    let mut found = vec![(OURS, PathBuf::from(OURS))];
    for recipe in openmp(include_str!("peers/openmp.c")) {
        match recipe.compile(scratch, &setting.stop()) {
            Ok(library) => found.push((recipe.name, library)),
            Err(why) => setting.miss(&recipe.advice(&why)),
        }
    }
    found.push((AGAIN, PathBuf::from(OURS)));
    Ok(found)
}

/// What the parent asks with.
struct Asker {
    asked: Asked,
    cores: String,
    stop: Stop,
}

impl Asker {
    /// Seconds and residual of one factorisation.
    fn ask(&self, name: &str, word: &Path) -> Result<(f64, f64)> {
        let Asked { tiles, width, threads, seed, .. } = self.asked;
        let mut command = on_cores(&self.cores, &std::env::current_exe()?);
        let numbers = [u64::from(tiles), u64::from(width), threads as u64, seed];
        // More threads than cores are bound to none: bound ones wait for one another on a core.
        let bound = threads <= self.asked.cores;
        command
            .args(["bench", "lu-run"])
            .arg(word)
            .args(numbers.map(|number| number.to_string()))
            .env("OMP_PROC_BIND", bound.to_string());
        let question = format!("{tiles} x {tiles} tiles of {width}");
        heard(&ask(&mut command, name, &question, LIMIT, &self.stop)?)
    }
}
