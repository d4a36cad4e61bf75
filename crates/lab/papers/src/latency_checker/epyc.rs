//! The two EPYC 7702 of the poster: blocks of sixteen cores around an input-output die in each
//! socket, and a link between the sockets.
//!
//! Three costs are fitted on the near blocks in the row and the column of the memory; the block
//! across and the whole far socket judge them. What crossing the sockets costs is the poster's own
//! number. Cores of one block are one place here: the model says nothing about chiplets.

use anyhow::Context as _;
use isochrone_machine::{Cost, Grid, Machine};

use super::cells::{Cell, GridResult, Printed, Role, extremes};
use super::constants::{self, Constant};
use super::fit;
use super::links;
use super::route::{Home, Network, Place, whole};
use super::simulate::{HomePoints, Scene, measure};
use super::words;

const GRID: &str = "nps4-ddr4";
const CROSSING: &str = "socket crossing";

/// The cores of one region, drawn as one block.
#[derive(Clone, Debug, PartialEq)]
struct Block {
    region: u16,
    package: u16,
    /// Column and row among the blocks.
    place: Place,
    cores: Vec<u16>,
}

/// Where everything is and what it costs.
#[derive(Clone, Debug, PartialEq)]
struct Layout {
    blocks: Vec<Block>,
    /// The region whose memory was timed.
    memory: usize,
    /// The block of the other socket at which its link ends.
    entry: usize,
    network: Network,
    crossing_ns: f64,
}

/// The one grid of the machine.
pub(super) fn grids(machine: &Machine, seed: u64) -> anyhow::Result<Vec<GridResult>> {
    let grid =
        machine.grid(GRID).with_context(|| format!("{} has no grid {GRID}", machine.name))?;
    let layout = Layout::of(machine, grid)?;
    let mut result = GridResult::frame(machine, grid);
    result.cells = GridResult::published(machine, grid);
    result.size = size(&result.cells);
    result.constants = layout.constants(machine);
    let scene = layout.scene(&result.id());
    let found = measure(&scene, seed)?;
    let cores = layout.blocks.iter().flat_map(|block| block.cores.iter().copied());
    let simulated: Vec<_> = cores.zip(found).collect();
    for cell in &mut result.cells {
        let Some(core) = cell.core else { continue };
        cell.simulated = simulated.iter().find(|(id, _)| *id == core).map(|(_, s)| *s);
        if cell.published.is_some() {
            (cell.role, cell.group) = layout.role(core);
        }
    }
    result.score(&layout.groups());
    result.compare_printed(grid);
    result.printed.extend(layout.block_means(&result.cells));
    result.printed.extend(layout.step(&result.cells));
    layout.by_links(&mut result);
    result.notes.extend(layout.notes());
    Ok(vec![result])
}

fn size(cells: &[Cell]) -> (u16, u16) {
    let places = cells.iter().filter_map(|cell| cell.at);
    places.fold((0, 0), |(x, y), at| (x.max(at.0 + 1), y.max(at.1 + 1)))
}

impl Layout {
    fn of(machine: &Machine, grid: &Grid) -> anyhow::Result<Self> {
        let blocks = blocks(machine)?;
        let crossing_ns = machine
            .cost(CROSSING)
            .and_then(Cost::number)
            .with_context(|| format!("{} has no cost \"{CROSSING}\"", machine.name))?;
        let mean = |block: &Block| {
            let ns: Vec<f64> =
                grid.readings().filter(|(c, _)| block.cores.contains(&c.0)).map(|r| r.1).collect();
            isochrone_stats::mean(&ns)
        };
        let nearest = |package: Option<u16>| {
            let means = blocks.iter().enumerate().filter_map(|(index, block)| {
                let wanted = package.is_none_or(|p| block.package != p);
                Some((index, mean(block).filter(|_| wanted)?))
            });
            means.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(index, _)| index)
        };
        let memory = nearest(None).context("no cell of the grid is readable")?;
        let entry = nearest(Some(blocks[memory].package))
            .context("no cell of the other socket is readable")?;
        let home = home(blocks[memory].place);
        let cells: Vec<(Place, f64)> = grid
            .readings()
            .filter_map(|(core, ns)| {
                let block = blocks.iter().find(|b| b.cores.contains(&core.0))?;
                for_fitting(block, &blocks[memory]).then_some((block.place, ns))
            })
            .collect();
        let (network, _) = fit::costs(&cells, None, std::slice::from_ref(&home))
            .context("the near blocks give no costs of 0 or more")?;
        Ok(Self { blocks, memory, entry, network, crossing_ns })
    }

    fn role(&self, core: u16) -> (Role, Option<usize>) {
        let Some(block) = self.blocks.iter().find(|b| b.cores.contains(&core)) else {
            return (Role::Unused, None);
        };
        let memory = &self.blocks[self.memory];
        if block.region == self.blocks[self.entry].region {
            // Which block it is was chosen by its own cells, so they judge nothing.
            (Role::Fitted, Some(2))
        } else if block.package != memory.package {
            (Role::HeldOut, Some(3))
        } else if for_fitting(block, memory) {
            (Role::Fitted, Some(0))
        } else {
            (Role::HeldOut, Some(1))
        }
    }

    fn groups(&self) -> [(String, Role); 4] {
        let memory = &self.blocks[self.memory];
        let near = |fitted: bool| {
            let blocks = self.blocks.iter().filter(|b| b.package == memory.package);
            let wanted = blocks.filter(|b| for_fitting(b, memory) == fitted);
            isochrone_machine::spans(&wanted.map(|b| b.region).collect::<Vec<_>>())
        };
        let entry = self.blocks[self.entry].region;
        [
            (format!("near, regions {}", near(true)), Role::Fitted),
            (format!("near, region {}", near(false)), Role::HeldOut),
            (format!("far, region {entry}"), Role::Fitted),
            (format!("far, without region {entry}"), Role::HeldOut),
        ]
    }

    /// Every block as a point: near ones where they are drawn, those of the other socket beyond
    /// the link, which ends at one of them.
    fn scene(&self, name: &str) -> Scene {
        let memory = &self.blocks[self.memory];
        let at = self.network.point_ns(memory.place);
        let entry = self.blocks[self.entry].place;
        let point = |block: &Block| {
            if block.package == memory.package {
                return self.network.point_ns(block.place);
            }
            let (x, y) = self
                .network
                .point_ns(((block.place.0 - entry.0).abs(), (block.place.1 - entry.1).abs()));
            // A load crosses twice, there and back.
            (at.0 + self.crossing_ns / 2.0 + x, at.1 + y)
        };
        let cores = self.blocks.iter().flat_map(|b| b.cores.iter().map(move |_| point(b)));
        Scene {
            name: name.to_owned(),
            cores: cores.collect(),
            homes: vec![HomePoints { directories: vec![at], controllers: vec![at] }],
            base_ns: self.network.base_ns,
        }
    }

    /// Means of the readable cells of each block, and of the same cells simulated.
    fn block_means(&self, cells: &[Cell]) -> Vec<Printed> {
        let of = |block: &Block| {
            let own = cells.iter().filter(|c| c.core.is_some_and(|id| block.cores.contains(&id)));
            let both: Vec<(f64, f64)> =
                own.filter_map(|c| Some((c.published?, c.simulated?.ns))).collect();
            let (published, simulated): (Vec<f64>, Vec<f64>) = both.into_iter().unzip();
            let role = self.role(*block.cores.first()?).0;
            Some(Printed {
                what: format!("mean of region {}", block.region),
                note: format!("over {} readable cells; {}", published.len(), role.as_str()),
                published: isochrone_stats::mean(&published),
                simulated: isochrone_stats::mean(&simulated),
                role,
                is_difference: false,
            })
        };
        self.blocks.iter().filter_map(of).collect()
    }

    /// From the nearest core of the near socket to the nearest of the far one.
    fn step(&self, cells: &[Cell]) -> Option<Printed> {
        let least = |near: bool| {
            let package = self.blocks[self.memory].package;
            let wanted = |id: u16| {
                let block = self.blocks.iter().find(|b| b.cores.contains(&id));
                block.is_some_and(|b| (b.package == package) == near)
            };
            let own = cells.iter().filter(|c| c.core.is_some_and(wanted));
            extremes(own.filter_map(|c| Some(c.simulated?.ns))).map(|range| range.0)
        };
        Some(Printed {
            what: "crossing the sockets".to_owned(),
            published: Some(self.crossing_ns),
            simulated: Some(least(false)? - least(true)?),
            note: "an input of the model, so no test".to_owned(),
            role: Role::Unused,
            is_difference: true,
        })
    }

    /// What the best of all sets of links between quadrants makes of the far socket.
    fn by_links(&self, result: &mut GridResult) {
        let memory = &self.blocks[self.memory];
        let mean = |block: &Block| {
            let own =
                result.cells.iter().filter(|c| c.core.is_some_and(|id| block.cores.contains(&id)));
            isochrone_stats::mean(&own.filter_map(|cell| cell.published).collect::<Vec<f64>>())
        };
        let (near, far): (Vec<&Block>, Vec<&Block>) =
            self.blocks.iter().partition(|block| block.package == memory.package);
        let near: Vec<Place> = near.iter().map(|block| block.place).collect();
        let known: Vec<(&Block, f64)> =
            far.into_iter().filter_map(|block| Some((block, mean(block)?))).collect();
        let places: Vec<(Place, f64)> =
            known.iter().map(|(block, ns)| (block.place, *ns)).collect();
        let nearest_ns = self.network.base_ns + self.crossing_ns;
        let found = links::best(&self.network, memory.place, &near, &places, nearest_ns);
        let Some(found) = found else { return };
        result.notes.push(format!(
            "Links between quadrants at the near socket's costs, shortest ways: of {} sets of one to four \
             links between the sockets the best one has {} and misses the far blocks by {:.1} ns rms. Blocks \
             side by side are {:.1} ns apart at most by any links; the poster has the nearest far block and \
             the one beside it {:.1} ns apart.",
            found.tried,
            found.links.len(),
            found.rms_ns,
            2.0 * self.network.column_ns,
            self.beside_entry(&known).unwrap_or(f64::NAN),
        ));
        let rows = known.iter().zip(&found.ns).map(|((block, published), ours)| Printed {
            what: format!("region {} by the best set of links", block.region),
            published: Some(*published),
            simulated: Some(*ours),
            note: format!("the set was chosen by these regions, of {}", found.tried),
            role: Role::Fitted,
            is_difference: false,
        });
        result.printed.extend(rows);
    }

    /// How far the block beside the one where the link ends is from it.
    fn beside_entry(&self, known: &[(&Block, f64)]) -> Option<f64> {
        let entry = self.blocks[self.entry].place;
        let of = |wanted: &dyn Fn(Place) -> bool| {
            known.iter().find(|(block, _)| wanted(block.place)).map(|(_, ns)| *ns)
        };
        let beside =
            of(&|place| whole(place.1) == whole(entry.1) && whole(place.0) != whole(entry.0))?;
        Some(beside - of(&|place| place == entry)?)
    }

    fn constants(&self, machine: &Machine) -> Vec<Constant> {
        let source = machine.cost(CROSSING).and_then(Cost::known);
        let source = source.map_or("not published", |known| known.source.as_str());
        let there_and_back = |ns: f64| words::ns(2.0 * ns);
        vec![
            constants::fitted(
                "latency in the memory's own block",
                words::ns(self.network.base_ns),
                1,
            ),
            constants::fitted(
                "one block to the side, there and back",
                there_and_back(self.network.column_ns),
                1,
            ),
            constants::fitted(
                "one block up or down, there and back",
                there_and_back(self.network.row_ns),
                1,
            ),
            constants::fitted(
                "whose memory was timed (block with the least mean)",
                format!("region {}", self.blocks[self.memory].region),
                1,
            ),
            constants::fitted(
                "where the link ends (far block with the least mean)",
                format!("region {}", self.blocks[self.entry].region),
                1,
            ),
            constants::published("crossing the sockets", words::ns(self.crossing_ns), source),
            constants::assumed(
                "directories",
                "at the controller".to_owned(),
                "the text says nothing of the way inside a socket",
            ),
        ]
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "Cores of one block have one place in the model, so differences within a block are \
             not explained."
                .to_owned(),
            "What is tested is the block across in the near socket, and the far socket under the \
             costs of the near one."
                .to_owned(),
        ]
    }
}

/// Blocks by region, placed by the upper left core of each.
fn blocks(machine: &Machine) -> anyhow::Result<Vec<Block>> {
    let places = |cores: &[u16]| -> Option<Vec<Place>> {
        let place = |id: &u16| machine.cores.iter().find(|c| c.id == *id)?.place;
        cores.iter().map(|id| place(id).map(|p| (p.x, p.y))).collect()
    };
    let mut found = Vec::new();
    for region in machine.regions.iter().filter(|region| !region.cores.is_empty()) {
        let at = places(&region.cores)
            .with_context(|| format!("{} gives no places of its cores", machine.name))?;
        let corner = at
            .iter()
            .fold((f64::INFINITY, f64::INFINITY), |least, p| (least.0.min(p.0), least.1.min(p.1)));
        let far = at.iter().fold((0.0_f64, 0.0_f64), |most, p| (most.0.max(p.0), most.1.max(p.1)));
        let side = (far.0 - corner.0 + 1.0, far.1 - corner.1 + 1.0);
        let package = machine.cores.iter().find(|c| region.cores.contains(&c.id));
        found.push(Block {
            region: region.id,
            package: package.and_then(|core| core.package).unwrap_or(0),
            place: ((corner.0 / side.0).floor(), (corner.1 / side.1).floor()),
            cores: region.cores.clone(),
        });
    }
    anyhow::ensure!(found.len() > 1, "{} has fewer than two blocks", machine.name);
    Ok(found)
}

fn home(place: Place) -> Home {
    Home { directories: vec![place], controllers: vec![place] }
}

/// Near blocks in the memory's row or column give the costs; the one across judges them.
fn for_fitting(block: &Block, memory: &Block) -> bool {
    block.package == memory.package
        && (whole(block.place.0) == whole(memory.place.0)
            || whole(block.place.1) == whole(memory.place.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        isochrone_host::find_machine("epyc-7702-2s-nps4").expect("bundled")
    }

    fn layout(machine: &Machine) -> Layout {
        Layout::of(machine, machine.grid(GRID).expect("its grid")).expect("a layout")
    }

    #[test]
    fn regions_are_blocks_of_sixteen_in_two_sockets() {
        let layout = layout(&machine());
        assert_eq!(layout.blocks.len(), 8);
        assert!(layout.blocks.iter().all(|block| block.cores.len() == 16));
        let places: Vec<Place> = layout.blocks.iter().map(|block| block.place).collect();
        let row = |y: f64, xs: [f64; 2]| xs.map(|x| (x, y));
        assert_eq!(places[..4], [row(0.0, [0.0, 1.0]), row(1.0, [0.0, 1.0])].concat());
        assert_eq!(places[4..], [row(0.0, [2.0, 3.0]), row(1.0, [2.0, 3.0])].concat());
        assert_eq!(
            (layout.blocks[layout.memory].region, layout.blocks[layout.entry].region),
            (0, 6)
        );
        assert_eq!(layout.crossing_ns, 110.0);
    }

    #[test]
    fn costs_come_from_three_near_blocks_alone() {
        let before = layout(&machine());
        let mut changed = machine();
        let grid = changed.grids.iter_mut().find(|grid| grid.name == GRID).unwrap();
        for (core, cell) in grid.cores.iter().zip(&mut grid.cells) {
            // The block across and the far socket but its nearest block.
            let held_out = core.is_some_and(|id| before.role(id).0 == Role::HeldOut);
            *cell = cell.map(|ns| if held_out { ns + 9.0 } else { ns });
        }
        assert_eq!(before, layout(&changed));
        let published = (170.6 - 150.7, 164.1 - 142.3);
        assert!((2.0 * before.network.row_ns - published.1).abs() < 0.2);
        assert!((published.0 - published.1).abs() < 3.0, "the poster's rows cost alike");
    }

    #[test]
    fn a_block_of_the_other_socket_is_beyond_the_link() {
        let layout = layout(&machine());
        let scene = layout.scene("epyc");
        let home = &scene.homes[0].controllers[0];
        let way = |core: usize| {
            let at = scene.cores[core];
            2.0 * ((at.0 - home.0).abs() + (at.1 - home.1).abs())
        };
        assert!(way(0).abs() < 1e-9, "the memory's own block");
        assert!((way(96) - 110.0).abs() < 1e-9, "the far block at the end of the link");
        assert!((way(64) - 110.0 - way(32)).abs() < 1e-9, "one block up from there");
        assert!((way(80) - 110.0 - way(48)).abs() < 1e-9, "and one aside");
    }
}
