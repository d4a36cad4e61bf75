//! How often `fleet outliers` finds a node that is well, and how small a fault it finds: fleets of 64 pretended nodes,
//! with the noise of the maps in `docs/results/maps` and a fault in one node. `docs/results/fleet.md` has what it
//! prints.

#![allow(clippy::print_stdout, reason = "figures for people")]

mod faults;
mod maps;

use std::path::Path;

use anyhow::Result;

use faults::{Drawn, Fault};

/// Nodes of a fleet.
const NODES: usize = 64;
/// Fleets behind each share.
const FLEETS: u64 = 100;
/// How often a fault shall be found.
const POWER: f64 = 0.9;

fn main() -> Result<()> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/results/maps");
    let maps = maps::read(Path::new(folder))?;
    println!("simulated: {FLEETS} fleets of {NODES} nodes for each share");
    println!(
        "{} recorded maps, {} left out: interrupted, or cores elsewhere",
        maps.nodes.len(),
        maps.elsewhere
    );
    for experiment in maps::COMPARED {
        let (quiet, sd) = (maps.quiet(experiment).len(), maps::scatter(&maps, experiment));
        let percent = 100.0 * sd.unwrap_or(f64::NAN);
        println!("{}: {quiet} quiet maps, scatter {percent:.1} %", experiment.title());
    }
    let drawn = Drawn { maps: &maps, nodes: NODES, seed: 1 };
    let alarms = drawn.false_alarms(FLEETS);
    let any = alarms.iter().filter(|nodes| **nodes > 0).count();
    let all: usize = alarms.iter().sum();
    println!("false alarms: {all} nodes in {FLEETS} fleets; {any} fleets have any");
    for fault in Fault::ALL {
        let smallest = if fault.has_size() { drawn.smallest(fault, POWER, FLEETS) } else { None };
        let found = 100.0 * drawn.power(fault, smallest.unwrap_or(fault.most()), FLEETS);
        match smallest {
            Some(share) => {
                println!("{}: from {:.0} % on ({found:.0} %)", fault.words(), 100.0 * share)
            }
            None => println!("{}: found in {found:.0} %", fault.words()),
        }
    }
    Ok(())
}
