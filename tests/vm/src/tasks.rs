//! Tasks on 16 regions: the five benchmarks in every regime, where their pages lie and where tasks ran.
//! Results are compared with a serial program's, places with what the kernel says.

use anyhow::{Context, Result, ensure};
use isochrone_host::{SysRoot, this_machine};
use isochrone_os::affinity::current_core;
use isochrone_tasks::live::{Believed, Config, PagePlace, Runtime};
use isochrone_tasks::{Data, Failure, Footprint, Kernel, Mem, Part, Policy, Regime, Topology};
use isochrone_units::{CoreId, PAGE_BYTES, RegionId};
use isochrone_workloads::dataflow::FirstTouch;
use isochrone_workloads::dataflow::histogram::Image;
use isochrone_workloads::dataflow::jacobi::Grid;
use isochrone_workloads::dataflow::problem::Problem;
use isochrone_workloads::dataflow::streamcluster::Parameters;

const SEED: u64 = 11;
const REGIONS: usize = 16;
/// One in each region: 33 emulated cores on a few real ones keep one another from the locks of the kernel
/// when all of them have something to do.
const WORKERS: usize = REGIONS;
const CORES: u16 = 32;
/// An emulated core that watches takes the time of one that works.
const SPIN_NS: u64 = 20_000;

fn start(regime: Regime, policy: Option<Policy>) -> Result<Runtime> {
    let topology = Topology::of(&this_machine(&SysRoot::live())?);
    ensure!(topology.regions() == REGIONS, "{} regions", topology.regions());
    let mut config = Config::new(regime, WORKERS, topology);
    // The last core is beside two of its region.
    config.cores = Some((0..CORES).map(CoreId).collect());
    config.setup.policy = policy.unwrap_or(config.setup.policy);
    config.spin_ns = SPIN_NS;
    config.setup.seed = SEED;
    Ok(Runtime::start(config)?)
}

pub(crate) fn cholesky() -> Result<String> {
    in_all_regimes(Problem::Cholesky { tiles: 6, width: 32 }, 1.0)
}

pub(crate) fn smi() -> Result<String> {
    in_all_regimes(Problem::Smi { tiles: 4, width: 32 }, 1.0)
}

pub(crate) fn jacobi() -> Result<String> {
    let grid = Grid { blocks: 16, rows: 4, columns: 512 };
    in_all_regimes(Problem::Jacobi { grid, sweeps: 3 }, 1.0)
}

pub(crate) fn histogram() -> Result<String> {
    // The pixels of four blocks share a page, of 100.
    in_all_regimes(Problem::Histogram(Image { blocks: 3, side: 32 }), 0.97)
}

pub(crate) fn streamcluster() -> Result<String> {
    let parameters = Parameters {
        k_min: 2,
        k_max: 4,
        dimensions: 16,
        points: 512,
        chunk: 512,
        centres: 40,
        block: 64,
    };
    // Blocks of its small arrays share pages: who touches such a page first is not known to the task.
    in_all_regimes(Problem::Streamcluster(parameters), 0.9)
}

/// Solves a problem in every regime, and checks the answer and where the pages lie. At least `known` of
/// the pages must live where the runtime believes.
fn in_all_regimes(problem: Problem, known: f64) -> Result<String> {
    let reference = problem.reference(SEED);
    let mut seen = Vec::new();
    for regime in Regime::ALL {
        let mut run = start(regime, None)?;
        let (answer, _) = problem.solve(&mut run, SEED, FirstTouch::Blocks)?;
        let report = run.report();
        let pages = run.page_places()?;
        let checked = problem.check(&mut run, &answer, &reference, SEED)?;
        ensure!(checked.verified, "{regime}: a wrong answer, residual {}", checked.residual);
        let pages: Vec<&[PagePlace]> = pages.iter().map(|(_, pages)| pages.as_slice()).collect();
        let places = match regime {
            Regime::Di => interleaved(&pages),
            _ => believed(&pages, known),
        };
        seen.push(places.with_context(|| regime.to_string())?);
        let far: u64 = report.steals.iter().skip(2).sum();
        ensure!(regime != Regime::Naft || far == 0, "naft: {far} tasks taken from far regions");
        if regime != Regime::Di {
            ensure!(report.spread_bytes == 0 && report.local_bytes() > 0, "{regime}: {report:?}");
        }
    }
    Ok(format!("right in 4 regimes; {}", seen.join(", ")))
}

/// Pages that are named where many lie elsewhere.
const NAMED: usize = 12;
/// Pages below which a check would say little.
const PAGES_MIN: usize = 8;

/// Consecutive pages lie in consecutive regions.
fn interleaved(pages: &[&[PagePlace]]) -> Result<String> {
    let mut count = 0;
    for pages in pages {
        for (i, pair) in pages.windows(2).enumerate() {
            let [Some(one), Some(next)] = [pair[0].seen, pair[1].seen] else { continue };
            let wanted = (usize::from(one.0) + 1) % REGIONS;
            ensure!(usize::from(next.0) == wanted, "pages {i} and {}: {one}, {next}", i + 1);
            ensure!(pair[0].believed == Believed::Spread, "page {i}: {:?}", pair[0].believed);
            count += 1;
        }
    }
    ensure!(count >= PAGES_MIN, "only {count} pairs of pages");
    Ok(format!("{count} pages interleaved"))
}

/// Pages lie where the runtime believes.
fn believed(pages: &[&[PagePlace]], known: f64) -> Result<String> {
    let touched = || pages.iter().flat_map(|pages| pages.iter()).filter(|page| page.seen.is_some());
    let right = touched().filter(|page| page.seen.map(Believed::Region) == Some(page.believed));
    let (right, all) = (right.count(), touched().count());
    ensure!(all >= PAGES_MIN, "only {all} pages");
    let wrong = || touched().filter(|page| page.seen.map(Believed::Region) != Some(page.believed));
    ensure!(
        right as f64 >= known * all as f64,
        "{right} of {all} pages are where it believes; others: {:?}",
        wrong().take(NAMED).collect::<Vec<_>>()
    );
    let mut regions: Vec<Option<RegionId>> = touched().map(|page| page.seen).collect();
    regions.sort_unstable();
    regions.dedup();
    Ok(format!("{right} of {all} pages known, in {} regions", regions.len()))
}

/// One task touches everything: all pages lie in one region.
pub(crate) fn serial_touch() -> Result<String> {
    let mut run = start(Regime::Dft, None)?;
    let grid = Grid { blocks: 32, rows: 4, columns: 512 };
    Problem::Jacobi { grid, sweeps: 1 }.solve(&mut run, SEED, FirstTouch::Serial)?;
    let mut regions = Vec::new();
    for (data, pages) in run.page_places()? {
        let first = pages.first().and_then(|page| page.seen);
        ensure!(pages.iter().all(|page| page.seen == first), "{data}: {pages:?}");
        regions.extend(first.map(|region| format!("{data} in {region}")));
    }
    Ok(regions.join(", "))
}

/// Words of a block: whole pages.
const WORDS: usize = 2 * PAGE_BYTES / 8;
const BLOCKS: usize = 32;
const ROUNDS: usize = 4;

/// Says in word `round` of a block in which region it runs: of the worker, and of the core.
#[derive(Clone, Copy)]
struct Say {
    block: Part<u64>,
    round: usize,
}

impl Kernel for Say {
    const NAME: &'static str = "say";

    fn declare(&self, footprint: &mut Footprint) {
        match self.round {
            0 => footprint.output(self.block),
            _ => footprint.inout(self.block),
        };
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        let mut words = mem.write(self.block)?;
        if self.round == 0 {
            words.fill(0);
        }
        words[self.round] = (u64::from(current_core().0) / 2) << 32 | mem.region() as u64;
        Ok(())
    }
}

/// Tasks run in the region of their pages, or in the nearest one where it took them.
pub(crate) fn tasks_by_their_data() -> Result<String> {
    let mut seen = Vec::new();
    for policy in [Policy::NANOS, Policy::PAPER] {
        let mut run = start(Regime::Naft, Some(policy))?;
        let data: Data<u64> = run.data(BLOCKS * WORDS)?;
        let block = |at: usize| data.part(at * WORDS, WORDS);
        (0..BLOCKS).try_for_each(|at| run.spawn(Say { block: block(at), round: 0 }))?;
        run.wait()?;
        let before: u64 = run.report().steals.iter().sum();
        for round in 1..=ROUNDS {
            (0..BLOCKS).try_for_each(|at| run.spawn(Say { block: block(at), round }))?;
        }
        run.wait()?;
        let stolen: u64 = run.report().steals.iter().sum::<u64>() - before;
        let homes = run.regions_of(data)?;
        let mut near = 0;
        for at in 0..BLOCKS {
            let home = homes[at * WORDS * 8 / PAGE_BYTES].context("a page is not there")?;
            for word in &run.read(block(at))?[1..=ROUNDS] {
                let (core, worker) = (word >> 32, word & 0xffff_ffff);
                ensure!(core == worker, "a worker of region {worker} ran on a core of {core}");
                let home = u64::from(home.0);
                ensure!(worker / 2 == home / 2, "{}: {worker} ran a task of {home}", policy.name);
                near += u64::from(worker != home);
            }
        }
        ensure!(near == stolen, "{near} tasks ran in the next region, {stolen} were taken there");
        ensure!(policy != Policy::NANOS || near == 0, "{near} tasks left their region");
        seen.push(format!("{}: {near} of {} in the next region", policy.name, BLOCKS * ROUNDS));
    }
    Ok(seen.join(", "))
}
