//! Interrupts for shootdowns when pages of an area leave fast memory: counted by the kernel, against the
//! number of workers that run meanwhile.

use anyhow::{Context, Result, ensure};
use isochrone_host::{SysRoot, tlb_shootdowns};
use isochrone_tier::live::far::Memory;
use isochrone_tier::live::{Config, Tables, Team, Worker};
use isochrone_tier::pages::Event;
use isochrone_tier::policy::PolicyKind;
use isochrone_units::CoreId;

/// Numbers of workers, each on a core of its own.
const WORKERS: [u16; 5] = [2, 8, 16, 24, 32];
/// Rounds of interrupts for a batch: what leaves is taken out of the process's own tables, and freeing it finds nothing
/// there.
const ROUNDS: f64 = 1.0;
/// The same for tables of another process: permission to write is taken, then the memory.
const ROUNDS_OF_OTHERS: f64 = 2.0;
const PAGE: usize = 4096;
const BATCH: u32 = 16;
const FRAMES: usize = 64;
const BATCHES: usize = 12;
/// Parts of an interrupt in which batches are noted.
const MILLI: u64 = 1000;
/// Time without an interrupt after which all others are at rest, and how often that is waited for.
const QUIET: std::time::Duration = std::time::Duration::from_millis(300);
const MOST_QUIETS: u32 = 20;

fn interrupts() -> Result<u64> {
    tlb_shootdowns(&SysRoot::live()).context("the kernel does not count shootdowns")
}

/// AArch64 has an instruction that reaches the TLBs of all cores: there is no interrupt, and nothing to be counted.
const BROADCAST: bool = cfg!(target_arch = "aarch64");
const LEFT_OUT: &str =
    "left out: this processor tells all TLBs by an instruction, not by interrupts";

/// What one number of workers showed, for one batch: interrupts, and in as much time without evictions. That of
/// batches is their median: a worker that is late, on few real cores, makes the kernel interrupt all others once or
/// twice for its own sake. That without evictions is the mean.
struct Point {
    workers: f64,
    batch: f64,
    idle: f64,
}

/// Worker 0 touches page after page; all others run and touch nothing.
fn evicting(worker: &mut Worker<'_>) -> Result<u64, String> {
    let words = worker.words();
    let touch = |page: usize| {
        words[page * PAGE / 8].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    };
    let meet = |worker: &mut Worker<'_>| worker.barrier().map_err(|gone| gone.to_string());
    if worker.index() > 0 {
        meet(worker)?;
        meet(worker)?;
        return Ok(0);
    }
    let now = || interrupts().map_err(|error| error.to_string());
    (0..FRAMES).for_each(touch);
    meet(worker)?;
    // The first touch after a meeting may still find others on their way: with 32 of them on a few real cores that
    // takes a while.
    touch(FRAMES);
    let mut seen = now()?;
    for _ in 0..MOST_QUIETS {
        let begin = std::time::Instant::now();
        while begin.elapsed() < QUIET {
            std::hint::spin_loop();
        }
        let before = std::mem::replace(&mut seen, now()?);
        if before == seen {
            break;
        }
    }
    let begin = std::time::Instant::now();
    let mut each = Vec::with_capacity(BATCHES);
    for batch in 0..BATCHES - 1 {
        let before = (worker.counters(), now()?);
        let first = FRAMES + 1 + batch * BATCH as usize;
        (first..first + BATCH as usize).for_each(touch);
        let interrupts = now()? - before.1;
        match worker.counters().since(&before.0).events(Event::Batch) {
            0 => {}
            batches => each.push(interrupts * MILLI / batches),
        }
    }
    let took = begin.elapsed();
    each.sort_unstable();
    let first = now()?;
    let begin = std::time::Instant::now();
    while begin.elapsed() < took {
        std::hint::spin_loop();
    }
    let idle = now()? - first;
    worker.note(0, each.get(each.len() / 2).copied().ok_or("nothing was evicted")?);
    worker.note(1, each.len() as u64);
    worker.note(2, idle);
    meet(worker)?;
    Ok(0)
}

fn config(bytes: usize, fast: usize, workers: u16, tables: Tables) -> Config {
    Config {
        tables,
        worker_cores: (0..workers).map(CoreId).collect(),
        policy: PolicyKind::Fifo,
        follow: false,
        ..Config::new(bytes, fast, workers)
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts of some thousands")]
const fn real(count: u64) -> f64 {
    count as f64
}

fn point(workers: u16, tables: Tables) -> Result<Point> {
    let bytes = (FRAMES + BATCHES * BATCH as usize) * PAGE;
    let mut config = config(bytes, FRAMES * PAGE, workers, tables);
    config.plan.batch = BATCH;
    // Who waits runs all the while: a core that sleeps is not interrupted.
    config.spins = u32::MAX;
    let team = Team::new(config, Box::new(Memory::new(bytes, None)?))?;
    let report = team.run(evicting)?;
    report.values().map_err(anyhow::Error::msg)?;
    let notes = &report.notes[0];
    Ok(Point {
        workers: f64::from(workers),
        batch: real(notes[0]) / real(MILLI),
        idle: real(notes[2]) / real(notes[1]),
    })
}

/// The line of least squares: at no worker, and for each.
fn line(points: &[Point]) -> (f64, f64) {
    let count = points.len() as f64;
    let mean = |of: fn(&Point) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|p| p.workers), mean(|p| p.batch));
    let above: f64 = points.iter().map(|p| (p.workers - x) * (p.batch - y)).sum();
    let under: f64 = points.iter().map(|p| (p.workers - x).powi(2)).sum();
    let slope = above / under;
    (y - slope * x, slope)
}

fn scale(tables: Tables) -> Result<(f64, String)> {
    let points: Result<Vec<Point>> = WORKERS.iter().map(|n| point(*n, tables)).collect();
    let points = points?;
    let (a, b) = line(&points);
    let each = points
        .iter()
        .map(|p| format!("{}: {:.2} (idle {:.2})", p.workers, p.batch, p.idle))
        .collect::<Vec<_>>()
        .join(", ");
    Ok((b, format!("interrupts a batch = {a:.2} + {b:.3} N; {each}")))
}

/// Workers in one address space.
pub(crate) fn shared() -> Result<String> {
    if BROADCAST {
        return Ok(LEFT_OUT.to_owned());
    }
    let (slope, words) = scale(Tables::Shared)?;
    ensure!((slope / ROUNDS - 1.0).abs() <= 0.05, "{words}");
    Ok(words)
}

/// Workers with tables of their own.
pub(crate) fn separated() -> Result<String> {
    if BROADCAST {
        return Ok(LEFT_OUT.to_owned());
    }
    let (slope, words) = scale(Tables::Separated)?;
    ensure!(slope.abs() <= 0.05 * ROUNDS, "{words}");
    Ok(words)
}

/// Rows of each of two grids, a page each, and sweeps over them.
const ROWS: usize = 1024;
const SWEEPS: usize = 3;

/// What a row holds at first.
const fn initial(row: usize) -> u64 {
    (row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// What it holds after a sweep: its neighbours and itself, mixed.
fn mixed(grid: impl Fn(usize) -> u64, row: usize) -> u64 {
    let near = row.saturating_sub(1)..=(row + 1).min(ROWS - 1);
    near.fold(1, |sum: u64, row| sum.wrapping_mul(31).wrapping_add(grid(row)))
}

/// The last grid's sum, on plain memory.
fn expected() -> u64 {
    let mut grid: Vec<u64> = (0..ROWS).map(initial).collect();
    for _ in 0..SWEEPS {
        grid = (0..ROWS).map(|row| mixed(|near| grid[near], row)).collect();
    }
    grid.into_iter().fold(0, u64::wrapping_add)
}

/// A stencil of rows in static bands; each worker's part of the sum.
fn diffusing(worker: &mut Worker<'_>) -> Result<u64, String> {
    use std::sync::atomic::Ordering::Relaxed;
    let words = worker.words();
    let at = |grid: usize, row: usize| &words[(grid * ROWS + row) * PAGE / 8];
    let cut = |worker: u16, workers: u16| ROWS * usize::from(worker) / usize::from(workers);
    let (me, all) = (worker.index(), worker.workers());
    let band = cut(me, all)..cut(me + 1, all);
    band.clone().for_each(|row| at(0, row).store(initial(row), Relaxed));
    for sweep in 0..SWEEPS {
        worker.barrier().map_err(|gone| gone.to_string())?;
        let from = sweep % 2;
        for row in band.clone() {
            let value = mixed(|near| at(from, near).load(Relaxed), row);
            at(1 - from, row).store(value, Relaxed);
        }
    }
    Ok(band.fold(0, |sum: u64, row| sum.wrapping_add(at(SWEEPS % 2, row).load(Relaxed))))
}

/// A stencil, in which only rows at the borders of bands are mapped by two workers.
pub(crate) fn stencil() -> Result<String> {
    let bytes = 2 * ROWS * PAGE;
    let mut config = config(bytes, bytes / 2, 8, Tables::Separated);
    config.policy = PolicyKind::CoreFifo;
    let team = Team::new(config, Box::new(Memory::new(bytes, None)?))?;
    let first = if BROADCAST { 0 } else { interrupts()? };
    let report = team.run(diffusing)?;
    let seen = if BROADCAST { 0 } else { interrupts()? - first };
    let sum = report.values().map_err(anyhow::Error::msg)?.into_iter().fold(0, u64::wrapping_add);
    ensure!(sum == expected(), "the result is wrong");
    let all = report.of_workers();
    let (evicted, shared) = (all.events(Event::Evicted), all.events(Event::EvictedShared));
    if BROADCAST {
        ensure!(evicted > 4000, "{evicted} evictions");
        return Ok(format!("the result is right after {evicted} evictions; interrupts {LEFT_OUT}"));
    }
    // Each halo group costs its other worker one interrupt a round.
    let halos = ROUNDS_OF_OTHERS * real(shared);
    let rest = (real(seen) - halos).max(0.0) / real(evicted - shared).max(1.0);
    let words = format!(
        "{seen} interrupts for {evicted} evictions, {shared} of them at halos: {rest:.3} an eviction \
         away from halos"
    );
    ensure!(evicted > 4000 && rest <= 0.05, "{words}");
    Ok(words)
}
