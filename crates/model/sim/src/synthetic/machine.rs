//! Where cores, last-level-cache slices and memory controllers sit, and what a load costs there.
//!
//! Latency is a base plus the hops of the route: core to slice and back from the cache; core to
//! slice to controller to core from DRAM (the route that section 2 of the Euro-Par paper
//! describes: "it requests the line from the corresponding DTD and eventually, from the
//! corresponding memory controller"). A slice stands for the home of a line, whether it caches
//! the line (Xeon) or only its tag (Xeon Phi). Nothing here knows addresses.

use isochrone_units::Level;

use crate::synthetic::clusters::Clusters;

/// Units of one kind that a machine may have: their numbers and sums of hops fit 16 bits.
const MOST_UNITS: usize = 4096;

/// The silicon: geometry and the costs that do not depend on place.
#[derive(Clone, Debug, PartialEq)]
pub struct SyntheticMachine {
    /// Where things sit.
    pub geometry: Geometry,
    /// What a last-level-cache hit costs beside its hops; `None` where no such cache exists.
    pub llc_base_cycles: Option<f64>,
    /// What a DRAM load costs beside its hops.
    pub dram_base_cycles: f64,
}

/// A network on chip, or the table of what was measured on one.
#[derive(Clone, Debug, PartialEq)]
pub enum Geometry {
    /// A bidirectional ring.
    Ring(Ring),
    /// A two-dimensional mesh with Manhattan routes.
    Mesh(Mesh),
    /// Cores in clusters, regions and sockets.
    Clusters(Clusters),
    /// Latencies given one by one.
    Tables(Tables),
}

/// Stops on a bidirectional ring; the shorter way round is taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Ring {
    /// Stops on the ring.
    pub stops: u16,
    /// Stop of each physical core.
    pub cores: Vec<u16>,
    /// Stop of each slice or directory.
    pub slices: Vec<u16>,
    /// Stop of each memory controller.
    pub controllers: Vec<u16>,
    /// Cost of one hop.
    pub hop_cycles: f64,
}

/// Places `(column, row)` on a mesh.
#[derive(Clone, Debug, PartialEq)]
pub struct Mesh {
    /// Place of each physical core.
    pub cores: Vec<(u16, u16)>,
    /// Place of each slice or directory.
    pub slices: Vec<(u16, u16)>,
    /// Place of each memory controller.
    pub controllers: Vec<(u16, u16)>,
    /// Cost of one hop, in either direction.
    pub hop_cycles: f64,
}

/// Latencies as tables, all in cycles.
#[derive(Clone, Debug, PartialEq)]
pub struct Tables {
    /// `[physical core][slice]`, added to the LLC base.
    pub llc_cycles: Vec<Vec<f64>>,
    /// `[physical core][controller][slice]`, added to the DRAM base.
    pub dram_cycles: Vec<Vec<Vec<f64>>>,
    /// By how much a line transfer through each slice differs from the mean one.
    pub home_cycles: Vec<f64>,
}

impl SyntheticMachine {
    /// Physical cores.
    #[must_use]
    pub fn cores(&self) -> usize {
        match &self.geometry {
            Geometry::Ring(ring) => ring.cores.len(),
            Geometry::Mesh(mesh) => mesh.cores.len(),
            Geometry::Clusters(clusters) => clusters.cores.len(),
            Geometry::Tables(tables) => tables.llc_cycles.len(),
        }
    }

    /// Slices or directories.
    #[must_use]
    pub fn slices(&self) -> usize {
        match &self.geometry {
            Geometry::Ring(ring) => ring.slices.len(),
            Geometry::Mesh(mesh) => mesh.slices.len(),
            Geometry::Clusters(clusters) => clusters.slices.len(),
            Geometry::Tables(tables) => tables.home_cycles.len(),
        }
    }

    /// Memory controllers (or channels, where pages differ by them).
    #[must_use]
    pub fn controllers(&self) -> usize {
        match &self.geometry {
            Geometry::Ring(ring) => ring.controllers.len(),
            Geometry::Mesh(mesh) => mesh.controllers.len(),
            Geometry::Clusters(clusters) => clusters.controllers.len(),
            Geometry::Tables(tables) => tables.dram_cycles.first().map_or(0, Vec::len),
        }
    }

    /// Latency in cycles of a load by physical `core` of a line with this slice and controller;
    /// `None` where the machine has no such level.
    ///
    /// # Panics
    /// If an index is outside the machine.
    #[must_use]
    pub fn latency(&self, core: u16, level: Level, slice: u16, controller: u16) -> Option<f64> {
        let [core, slice, controller] = [core, slice, controller].map(usize::from);
        match level {
            Level::Llc => self.llc_base_cycles.map(|base| base + self.llc_route(core, slice)),
            Level::Dram => Some(self.dram_base_cycles + self.dram_route(core, slice, controller)),
        }
    }

    fn llc_route(&self, core: usize, slice: usize) -> f64 {
        match &self.geometry {
            Geometry::Tables(tables) => tables.llc_cycles[core][slice],
            Geometry::Clusters(clusters) => clusters.llc_route(core, slice),
            _ => 2.0 * self.core_to_slice(core, slice),
        }
    }

    fn dram_route(&self, core: usize, slice: usize, controller: usize) -> f64 {
        match &self.geometry {
            Geometry::Ring(r) => {
                let [c, s, m] = [r.cores[core], r.slices[slice], r.controllers[controller]];
                r.hop_cycles * f64::from(r.hops(c, s) + r.hops(s, m) + r.hops(m, c))
            }
            Geometry::Mesh(g) => {
                let [c, s, m] = [g.cores[core], g.slices[slice], g.controllers[controller]];
                g.hop_cycles * f64::from(hops(c, s) + hops(s, m) + hops(m, c))
            }
            Geometry::Clusters(clusters) => clusters.dram_route(core, slice, controller),
            Geometry::Tables(tables) => tables.dram_cycles[core][controller][slice],
        }
    }

    /// One way from a core to a slice. Where only round trips are known, half of one.
    fn core_to_slice(&self, core: usize, slice: usize) -> f64 {
        match &self.geometry {
            Geometry::Ring(r) => r.hop_cycles * f64::from(r.hops(r.cores[core], r.slices[slice])),
            Geometry::Mesh(g) => g.hop_cycles * f64::from(hops(g.cores[core], g.slices[slice])),
            Geometry::Clusters(clusters) => clusters.to_home(core, slice),
            Geometry::Tables(tables) => 0.5 * tables.llc_cycles[core][slice],
        }
    }

    fn core_to_core(&self, from: usize, to: usize) -> f64 {
        match &self.geometry {
            Geometry::Ring(r) => r.hop_cycles * f64::from(r.hops(r.cores[from], r.cores[to])),
            Geometry::Mesh(g) => g.hop_cycles * f64::from(hops(g.cores[from], g.cores[to])),
            // A table of loads does not say how far cores are from one another; clusters say it of whole routes.
            Geometry::Tables(_) | Geometry::Clusters(_) => 0.0,
        }
    }

    /// Route of a line that `asker` gets out of `owner`'s cache: to the line's home, on to the
    /// owner, and the data straight back.
    #[must_use]
    pub fn forward_route(&self, owner: u16, asker: u16, slice: u16) -> f64 {
        let [owner, asker, slice] = [owner, asker, slice].map(usize::from);
        if let Geometry::Clusters(clusters) = &self.geometry {
            return clusters.forward_route(owner, asker, slice);
        }
        self.core_to_slice(asker, slice)
            + self.core_to_slice(owner, slice)
            + self.core_to_core(owner, asker)
            + self.home_extra(slice)
    }

    /// Route of a line that its home itself hands to `asker`.
    #[must_use]
    pub fn home_route(&self, asker: u16, slice: u16) -> f64 {
        let [asker, slice] = [asker, slice].map(usize::from);
        2.0 * self.core_to_slice(asker, slice) + self.home_extra(slice)
    }

    fn home_extra(&self, slice: usize) -> f64 {
        match &self.geometry {
            Geometry::Tables(tables) => tables.home_cycles[slice],
            _ => 0.0,
        }
    }

    /// What does not fit together, in words; `None` if all does.
    #[must_use]
    pub fn defect(&self) -> Option<String> {
        if self.cores() == 0 || self.slices() == 0 || self.controllers() == 0 {
            return Some("give at least one core, one slice and one controller".to_owned());
        }
        if self.cores().max(self.slices()).max(self.controllers()) > MOST_UNITS {
            return Some(format!("give at most {MOST_UNITS} cores, slices and controllers each"));
        }
        match &self.geometry {
            Geometry::Ring(ring) => {
                let places = [&ring.cores, &ring.slices, &ring.controllers];
                let off = places.into_iter().flatten().find(|stop| **stop >= ring.stops)?;
                Some(format!("stop {off} is not on a ring of {} stops", ring.stops))
            }
            Geometry::Mesh(_) => None,
            Geometry::Clusters(clusters) => clusters.defect(),
            Geometry::Tables(tables) => {
                let (slices, controllers) = (self.slices(), self.controllers());
                let whole = tables.dram_cycles.len() == tables.llc_cycles.len()
                    && tables.llc_cycles.iter().all(|row| row.len() == slices)
                    && tables.dram_cycles.iter().all(|core| core.len() == controllers)
                    && tables.dram_cycles.iter().flatten().all(|row| row.len() == slices);
                (!whole).then(|| {
                    format!(
                        "give every core {slices} LLC latencies and {controllers} times {slices} \
                         DRAM latencies"
                    )
                })
            }
        }
    }
}

impl Ring {
    fn hops(&self, from: u16, to: u16) -> u16 {
        let way = from.abs_diff(to);
        way.min(self.stops - way)
    }
}

fn hops(from: (u16, u16), to: (u16, u16)) -> u16 {
    from.0.abs_diff(to.0) + from.1.abs_diff(to.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring() -> SyntheticMachine {
        SyntheticMachine {
            geometry: Geometry::Ring(Ring {
                stops: 10,
                cores: vec![0, 5],
                slices: vec![2, 9],
                controllers: vec![6],
                hop_cycles: 3.0,
            }),
            llc_base_cycles: Some(40.0),
            dram_base_cycles: 200.0,
        }
    }

    #[test]
    fn a_ring_takes_the_shorter_way() {
        let ring = ring();
        // Core 0 to slice at 2: two hops each way. To the slice at 9: one hop, over the seam.
        assert_eq!(ring.latency(0, Level::Llc, 0, 0), Some(40.0 + 3.0 * 4.0));
        assert_eq!(ring.latency(0, Level::Llc, 1, 0), Some(40.0 + 3.0 * 2.0));
        // 0 -> 2 -> 6 -> 0: 2 + 4 + 4. 0 -> 9 -> 6 -> 0: 1 + 3 + 4.
        assert_eq!(ring.latency(0, Level::Dram, 0, 0), Some(200.0 + 3.0 * 10.0));
        assert_eq!(ring.latency(0, Level::Dram, 1, 0), Some(200.0 + 3.0 * 8.0));
    }

    #[test]
    fn a_mesh_counts_columns_and_rows() {
        let mesh = SyntheticMachine {
            geometry: Geometry::Mesh(Mesh {
                cores: vec![(0, 0), (3, 1)],
                slices: vec![(1, 2)],
                controllers: vec![(4, 0)],
                hop_cycles: 2.0,
            }),
            llc_base_cycles: None,
            dram_base_cycles: 100.0,
        };
        // (0,0) -> (1,2) -> (4,0) -> (0,0): 3 + 5 + 4.
        assert_eq!(mesh.latency(0, Level::Dram, 0, 0), Some(124.0));
        assert_eq!(mesh.latency(0, Level::Llc, 0, 0), None);
        // Asker (3,1) -> home (1,2) -> owner (0,0) -> asker: 3 + 3 + 4.
        assert_eq!(mesh.forward_route(0, 1, 0), 20.0);
        assert_eq!(mesh.home_route(1, 0), 12.0);
    }

    #[test]
    fn a_stop_off_the_ring_and_a_ragged_table_are_named() {
        let mut machine = ring();
        if let Geometry::Ring(ring) = &mut machine.geometry {
            ring.controllers[0] = 10;
        }
        assert!(machine.defect().unwrap().contains("stop 10"));
        machine.geometry = Geometry::Tables(Tables {
            llc_cycles: vec![vec![1.0, 2.0], vec![1.0]],
            dram_cycles: vec![vec![vec![1.0, 2.0]]; 2],
            home_cycles: vec![0.0; 2],
        });
        assert!(machine.defect().unwrap().contains("every core 2 LLC"));
    }
}
