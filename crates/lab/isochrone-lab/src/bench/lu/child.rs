//! `isochrone bench lu-run`: one factorisation by one system, timed and checked.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use isochrone_console::output::Terminal;
use isochrone_host::{SysRoot, this_machine};
use isochrone_tasks::live::{Config, Runtime};
use isochrone_tasks::{Failure, Footprint, Kernel, Mem, Regime, Topology};
use isochrone_workloads::dataflow::lu::{Square, Step, What, residual, steps};
use isochrone_workloads::dataflow::residual::RESIDUAL_MAX;

use super::kernels::{FAER, Kernels};
use crate::args::LuRun;
use crate::bench::tiled::{Peer, said};

/// Tiles along one side of the matrix that is factored first and does not count.
const WARM_TILES: u32 = 4;

/// Who factors.
enum System {
    Ours,
    Peer(Peer<Kernels>),
}

/// Answers one question: seconds and residual.
pub(in crate::bench) fn run(args: &LuRun, terminal: &Terminal) -> Result<()> {
    let topology = Topology::of(&this_machine(&SysRoot::live())?);
    let mut config = Config::new(Regime::Isochrone, args.workers, topology);
    let system = match args.system.as_str() {
        "isochrone" => System::Ours,
        path => System::Peer(Peer::start(Path::new(path), args.workers)?),
    };
    // Other systems place their threads themselves, and leave ours idle.
    config.pin = matches!(system, System::Ours);
    let mut run = Runtime::start(config)?;
    solve(&mut run, &system, WARM_TILES.min(args.tiles), args)?;
    let (seconds, residual) = solve(&mut run, &system, args.tiles, args)?;
    terminal.print(&said(seconds, residual))
}

fn solve(run: &mut Runtime, system: &System, tiles: u32, args: &LuRun) -> Result<(f64, f64)> {
    let matrix = Square::new(run, tiles, args.width)?;
    matrix.fill(run, args.seed)?;
    run.wait()?;
    let begin = match system {
        System::Ours => {
            let begin = Instant::now();
            steps(tiles, |step| run.spawn(OnTile { matrix, step }))?;
            run.wait()?;
            begin
        }
        System::Peer(peer) => {
            let values = run.write(matrix.all())?;
            let begin = Instant::now();
            peer.solve(values, tiles as usize, matrix.width(), &FAER)?;
            begin
        }
    };
    let seconds = begin.elapsed().as_secs_f64();
    let residual = residual(run.read(matrix.all())?, tiles, args.seed);
    ensure!(residual < RESIDUAL_MAX, "wrong factors: residual {residual}");
    matrix.free(run)?;
    Ok((seconds, residual))
}

/// A step with the kernels that peers get.
#[derive(Clone, Copy)]
struct OnTile {
    matrix: Square,
    step: Step,
}

impl Kernel for OnTile {
    const NAME: &'static str = "step of LU";

    fn declare(&self, footprint: &mut Footprint) {
        let Step { what, i, j, k } = self.step;
        let tile = |i, j| self.matrix.tile(i, j);
        match what {
            What::Factor => footprint.priority(2),
            What::Right | What::Below => footprint.input(tile(k, k)).priority(1),
            What::Update => footprint.input(tile(i, k)).input(tile(k, j)),
        };
        footprint.inout(tile(i, j));
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        let Step { what, i, j, k } = self.step;
        let n = self.matrix.width();
        let read = |i, j| mem.read(self.matrix.tile(i, j));
        let mut c = mem.write(self.matrix.tile(i, j))?;
        match what {
            What::Factor if FAER.factor(&mut c, n) => {}
            What::Factor => return Err(Failure::new("a pivot is zero")),
            What::Right => FAER.right(&read(k, k)?, &mut c, n),
            What::Below => FAER.below(&read(k, k)?, &mut c, n),
            What::Update => FAER.update(&read(i, k)?, &read(k, j)?, &mut c, n),
        }
        Ok(())
    }
}
