//! Heat flows along a rod: a stencil by blocks, each step of each block a task, no barrier between steps.
//! Run it with `cargo run --release -p isochrone-tasks --example heat`.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use isochrone_tasks::live::{Config, Runtime};
use isochrone_tasks::{Data, Failure, Footprint, Kernel, Mem, Part, Regime, TaskError, Topology};

const BLOCKS: usize = 64;
const CELLS: usize = 1 << 14;
const STEPS: usize = 100;

/// One step of one block: reads the block and a cell on either side, writes the block's next state.
#[derive(Clone, Copy)]
struct Step {
    old: Data<f64>,
    new: Data<f64>,
    block: usize,
}

impl Step {
    fn reads(&self) -> Part<f64> {
        let first = (self.block * CELLS).saturating_sub(1);
        let end = ((self.block + 1) * CELLS + 1).min(BLOCKS * CELLS);
        self.old.part(first, end - first)
    }

    fn writes(&self) -> Part<f64> {
        self.new.part(self.block * CELLS, CELLS)
    }
}

impl Kernel for Step {
    const NAME: &'static str = "step";

    // Who waits for whom follows from these ranges alone.
    fn declare(&self, footprint: &mut Footprint) {
        footprint.input(self.reads()).output(self.writes());
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        let (old, mut new) = (mem.read(self.reads())?, mem.write(self.writes())?);
        let first = self.reads().first();
        let at = |cell: usize| old[cell - first];
        for (i, new) in new.iter_mut().enumerate() {
            let cell = self.block * CELLS + i;
            let left = at(cell.saturating_sub(1));
            let right = at((cell + 1).min(BLOCKS * CELLS - 1));
            *new = 0.5 * at(cell) + 0.25 * (left + right);
        }
        Ok(())
    }
}

/// Sets a block: the first to touch it, so its memory lies where this task runs.
#[derive(Clone, Copy)]
struct Set(Part<f64>);

impl Kernel for Set {
    const NAME: &'static str = "set";

    fn declare(&self, footprint: &mut Footprint) {
        footprint.output(self.0);
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        let hot = self.0.first() == 0;
        mem.write(self.0)?.fill(if hot { 1.0 } else { 0.0 });
        Ok(())
    }
}

fn main() -> Result<(), TaskError> {
    // Two workers on one region. `Topology::of` takes a machine's cores and regions instead.
    let mut run = Runtime::start(Config::new(Regime::Isochrone, 2, Topology::flat(2)))?;
    let rods: [Data<f64>; 2] = [run.data(BLOCKS * CELLS)?, run.data(BLOCKS * CELLS)?];
    for rod in rods {
        for block in 0..BLOCKS {
            run.spawn(Set(rod.part(block * CELLS, CELLS)))?;
        }
    }
    for step in 0..STEPS {
        for block in 0..BLOCKS {
            run.spawn(Step { old: rods[step % 2], new: rods[(step + 1) % 2], block })?;
        }
    }
    // A few lines beside a kernel may be a closure.
    let last = rods[STEPS % 2];
    run.spawn_fn(
        |footprint| {
            footprint.input(last);
        },
        move |mem| {
            let heat: f64 = mem.read(last.all())?.iter().sum();
            println!("heat {heat:.3}, {CELLS} at first");
            Ok(())
        },
    )?;
    // The first failure of a task comes out here.
    run.wait()?;
    println!("{}", run.report());
    Ok(())
}
