//! A synthetic machine as the plain description that an atlas holds.
//!
//! It tells what a system would tell of a real machine (cores, regions, controllers, joints) and
//! says of every place that it is the synthetic machine's own. Latencies are left out: finding
//! them is the estimator's work.

use isochrone_machine::{
    Cache, CacheKind, Controller, Core, Interconnect, Machine, Place, Region, RingStop, Source,
};
use isochrone_units::{Level, PAGE_BYTES};

use crate::number::{float, narrow, wide};
use crate::synthetic::{Clusters, Geometry, Mesh, RegionUnits, Ring, SyntheticSpec};

/// The one source of everything here.
const SOURCE: &str = "synthetic";
/// Caches of a machine of clusters, which its latencies do not depend on: a core's own, and the cluster's.
const L2_BYTES: u64 = 1 << 20;
const L3_BYTES: u64 = 32 << 20;

impl SyntheticSpec {
    /// What a system would say about this machine.
    #[must_use]
    pub fn description(&self) -> Machine {
        let region_bytes = self.arena.frames_per_region * wide(PAGE_BYTES);
        let cores: Vec<Core> = (0..).zip(&self.wears).map(|(id, on)| self.core(id, *on)).collect();
        let region = |id: u16| Region {
            id,
            bytes: Some(region_bytes),
            cores: cores.iter().filter(|core| core.region == id).map(|core| core.id).collect(),
            source: Some(SOURCE.to_owned()),
            ..Region::default()
        };
        Machine {
            name: self.name.clone(),
            title: format!("synthetic machine {} of seed {}", self.name, self.seed),
            sources: vec![Source {
                id: SOURCE.to_owned(),
                text: "a modelled machine whose truth is known".to_owned(),
            }],
            regions: (0..narrow(wide(self.regions.len()))).map(region).collect(),
            memory_bytes: Some(region_bytes * wide(self.regions.len())),
            interconnect: Some(self.interconnect()),
            caches: match &self.machine.geometry {
                Geometry::Clusters(clusters) => self.caches(clusters),
                Geometry::Ring(_) | Geometry::Mesh(_) | Geometry::Tables(_) => Vec::new(),
            },
            controllers: (0..narrow(wide(self.machine.controllers())))
                .map(|index| self.controller(index))
                .collect(),
            directories: Some(narrow(wide(self.machine.slices()))),
            assumed: vec!["every place and cost: the machine is synthetic".to_owned()],
            cores,
            ..Machine::default()
        }
    }

    fn core(&self, id: u16, physical: u16) -> Core {
        let place = match &self.machine.geometry {
            Geometry::Mesh(mesh) => Some(place(&mesh.cores[usize::from(physical)])),
            Geometry::Ring(_) | Geometry::Tables(_) | Geometry::Clusters(_) => None,
        };
        let package = match &self.machine.geometry {
            Geometry::Clusters(clusters) => {
                clusters.regions[usize::from(clusters.region_of(physical))].group
            }
            Geometry::Ring(_) | Geometry::Mesh(_) | Geometry::Tables(_) => 0,
        };
        let on_same = (0..).zip(&self.wears).filter(|(other, on)| **on == physical && *other != id);
        Core {
            id,
            region: self.nearest_region(physical),
            package: Some(package),
            smt_siblings: on_same.map(|(other, _)| other).collect(),
            place,
            ..Core::default()
        }
    }

    fn nearest_region(&self, physical: u16) -> u16 {
        if let Geometry::Clusters(clusters) = &self.machine.geometry {
            return clusters.region_of(physical);
        }
        let mean = |units: &RegionUnits| {
            let pairs = units.slices.iter().flat_map(|slice| {
                units.controllers.iter().map(move |controller| (*slice, *controller))
            });
            let latency = |(slice, controller)| {
                self.machine.latency(physical, Level::Dram, slice, controller).unwrap_or(0.0)
            };
            let count = units.slices.len() * units.controllers.len();
            pairs.map(latency).sum::<f64>() / float(count)
        };
        let means = (0..).zip(self.regions.iter().map(mean));
        means.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(region, _)| region)
    }

    /// Of each core and of each cluster.
    fn caches(&self, clusters: &Clusters) -> Vec<Cache> {
        let cache = |level: u8, bytes: u64, shared_by: Vec<u16>| Cache {
            level,
            kind: CacheKind::Unified,
            bytes: Some(bytes),
            line_bytes: None,
            ways: None,
            shared_by,
            source: Some(SOURCE.to_owned()),
        };
        let cores =
            || (0..).zip(&self.wears).map(|(id, on)| (id, clusters.cores[usize::from(*on)].group));
        let own = cores().map(|(id, _)| cache(2, L2_BYTES, vec![id]));
        let of = |cluster: u16| cores().filter(move |(_, of)| *of == cluster).map(|(id, _)| id);
        let all = (0..narrow(wide(clusters.clusters.len()))).map(|cluster| of(cluster).collect());
        let shared = all.filter(|cores: &Vec<u16>| !cores.is_empty());
        own.chain(shared.map(|cores| cache(3, L3_BYTES, cores))).collect()
    }

    fn controller(&self, index: u16) -> Controller {
        let serves = |units: &RegionUnits| units.controllers.contains(&index);
        Controller {
            name: format!("controller {index}"),
            region: (0..).zip(&self.regions).find(|(_, units)| serves(units)).map(|(id, _)| id),
            place: match &self.machine.geometry {
                Geometry::Mesh(mesh) => Some(place(&mesh.controllers[usize::from(index)])),
                Geometry::Ring(_) | Geometry::Tables(_) | Geometry::Clusters(_) => None,
            },
            source: Some(SOURCE.to_owned()),
        }
    }

    fn interconnect(&self) -> Interconnect {
        let source = SOURCE.to_owned();
        match &self.machine.geometry {
            Geometry::Ring(ring) => Interconnect::Ring {
                bidirectional: true,
                stops: stops(ring, &self.wears),
                order_assumed: None,
                source,
            },
            Geometry::Mesh(mesh) => Interconnect::Mesh {
                columns: extent(mesh, |place| place.0),
                rows: extent(mesh, |place| place.1),
                size_assumed: None,
                source,
            },
            Geometry::Clusters(_) => {
                let what = "clusters of cores in regions, regions in sockets".to_owned();
                Interconnect::Other { what, source }
            }
            Geometry::Tables(_) => {
                let what = "none: latencies are given by tables".to_owned();
                Interconnect::Other { what, source }
            }
        }
    }
}

fn place(cell: &(u16, u16)) -> Place {
    let (column, row) = *cell;
    Place { x: f64::from(column), y: f64::from(row) }
}

fn extent(mesh: &Mesh, along: impl Fn(&(u16, u16)) -> u16) -> u16 {
    let all = [&mesh.cores, &mesh.slices, &mesh.controllers];
    all.into_iter().flatten().map(along).max().map_or(0, |last| last + 1)
}

/// Logical cores, directories and controllers in the order of their stops.
fn stops(ring: &Ring, wears: &[u16]) -> Vec<RingStop> {
    let cores = (0..).zip(wears).map(|(id, on)| (ring.cores[usize::from(*on)], RingStop::Core(id)));
    let slices = (0..).zip(&ring.slices).map(|(id, stop)| (*stop, RingStop::Directory(id)));
    let controllers =
        (0..).zip(&ring.controllers).map(|(id, stop)| (*stop, RingStop::Controller(id)));
    let mut all: Vec<(u16, RingStop)> = cores.chain(slices).chain(controllers).collect();
    all.sort_by_key(|(stop, _)| *stop);
    all.into_iter().map(|(_, what)| what).collect()
}

#[cfg(test)]
mod tests {
    use isochrone_units::{CoreId, RegionId};

    use super::*;

    #[test]
    fn knm_cores_belong_to_their_quadrant() {
        let machine = SyntheticSpec::mesh_knm_snc4(1).description();
        let sizes: Vec<usize> = machine.regions.iter().map(|region| region.cores.len()).collect();
        assert_eq!(sizes, [18, 18, 16, 16]);
        assert_eq!(machine.region_of(CoreId(0)), Some(RegionId(0)));
        assert_eq!(machine.controllers.iter().filter(|c| c.region == Some(3)).count(), 2);
        assert!(machine.cores.iter().all(|core| core.place.is_some()));
        assert!(machine.cores[6].smt_siblings.is_empty(), "tile mates are cores of their own");
    }

    #[test]
    fn a_ring_lists_all_its_stops_in_order() {
        let machine = SyntheticSpec::ring_knc(1).description();
        let Some(Interconnect::Ring { stops, .. }) = machine.interconnect else {
            panic!("a ring");
        };
        assert_eq!(stops.len(), 60 + 64 + 8);
        assert_eq!(stops[..3], [RingStop::Core(0), RingStop::Directory(0), RingStop::Core(1)]);
        assert_eq!(stops[131], RingStop::Controller(7));
    }

    #[test]
    fn tables_have_no_places() {
        let machine = SyntheticSpec::genoa_like(1).description();
        assert_eq!(machine.cores.len(), 2);
        assert!(machine.cores.iter().all(|core| core.place.is_none()));
    }
}
