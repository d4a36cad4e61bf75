//! Mesh machines: the Xeon Phi 7285 of the poster in SNC4 mode, a 28-core Xeon, and the mesh on
//! which no form holds.
//!
//! Which tiles are disabled differs from chip to chip, and hop costs are not published: places
//! are assumed, hop and base of the Xeon Phi are chosen so that its gradation is the poster's.

use crate::synthetic::{AddressHash, Geometry, Mesh, RegionUnits, SyntheticMachine, SyntheticSpec};

/// Columns of the Xeon Phi's mesh.
const KNM_COLUMNS: u16 = 6;
/// Rows of the Xeon Phi's tiles: 1 to 7, between the rows of MCDRAM controllers.
const KNM_TILE_ROWS: core::ops::RangeInclusive<u16> = 1..=7;
/// Places without a tile: two DDR controllers and the I/O controller (assumed).
const KNM_NO_TILE: [(u16, u16); 4] = [(0, 4), (5, 4), (2, 1), (3, 1)];
/// Tiles whose cores are disabled, one a quadrant (assumed); their directories work.
const KNM_NO_CORES: [(u16, u16); 4] = [(1, 3), (4, 2), (0, 6), (5, 5)];

impl SyntheticSpec {
    /// Xeon Phi 7285 in SNC4 mode: 68 cores in 34 tiles, 38 directories, 8 MCDRAM controllers,
    /// four quadrants that are regions. From one quadrant's memory the poster reads 161.1 to
    /// 176.6 ns. Directories of a quadrant (9 or 10) are a permuted base sequence.
    #[must_use]
    pub fn mesh_knm_snc4(seed: u64) -> Self {
        let mut spec = Self::from_machine("mesh_knm_snc4", seed, knm());
        let Geometry::Mesh(mesh) = &spec.machine.geometry else { return spec };
        let within = |places: &[(u16, u16)], wanted| {
            (0..).zip(places).filter(|(_, p)| quadrant(**p) == wanted).map(|(i, _)| i).collect()
        };
        spec.regions = (0..4)
            .map(|q| RegionUnits {
                slices: within(&mesh.slices, q),
                controllers: within(&mesh.controllers, q),
                gb_per_s: None,
            })
            .collect();
        spec.timer.hz = 1.3e9; // Intel ARK, Xeon Phi 7285: 1.30 GHz.
        spec.transfers.base_cycles = 150.0;
        spec
    }

    /// A 28-core Xeon: 28 LLC slices (no power of two) on a mesh of 6 by 5, two memory
    /// controllers of three channels; a permuted base sequence of 64 lines.
    #[must_use]
    pub fn mesh_xeon(seed: u64) -> Self {
        Self::from_machine("mesh_xeon", seed, xeon())
    }

    /// The same mesh with random homes: lines differ, and the form does not hold.
    #[must_use]
    pub fn irregular(seed: u64) -> Self {
        let mut spec = Self::from_machine("irregular", seed, xeon()).with_cores(2);
        spec.slice_hash = AddressHash::Irregular { seed };
        spec.controller_hash = AddressHash::Irregular { seed: !seed };
        spec
    }
}

fn quadrant(place: (u16, u16)) -> u16 {
    2 * u16::from(place.1 > 4) + u16::from(place.0 >= KNM_COLUMNS / 2)
}

fn knm() -> SyntheticMachine {
    let mut tiles: Vec<(u16, u16)> = KNM_TILE_ROWS
        .flat_map(|row| (0..KNM_COLUMNS).map(move |column| (column, row)))
        .filter(|place| !KNM_NO_TILE.contains(place))
        .collect();
    tiles.sort_by_key(|place| quadrant(*place));
    let cores = tiles.iter().filter(|place| !KNM_NO_CORES.contains(place));
    SyntheticMachine {
        geometry: Geometry::Mesh(Mesh {
            cores: cores.flat_map(|place| [*place, *place]).collect(),
            slices: tiles.clone(),
            controllers: [0, 8].into_iter().flat_map(|y| [0, 1, 4, 5].map(|x| (x, y))).collect(),
            hop_cycles: 1.22,
        }),
        llc_base_cycles: None,
        dram_base_cycles: 201.3,
    }
}

fn xeon() -> SyntheticMachine {
    let controllers = [(0, 2), (5, 2)];
    let tiles: Vec<(u16, u16)> = (0..5)
        .flat_map(|row| (0..6).map(move |column| (column, row)))
        .filter(|place| !controllers.contains(place))
        .collect();
    SyntheticMachine {
        geometry: Geometry::Mesh(Mesh {
            cores: tiles.clone(),
            slices: tiles,
            controllers: controllers.into_iter().flat_map(|place| [place; 3]).collect(),
            hop_cycles: 2.0,
        }),
        llc_base_cycles: Some(44.0),
        dram_base_cycles: 180.0,
    }
}

#[cfg(test)]
mod tests {
    use isochrone_units::{CoreId, RegionId};

    use super::*;
    use crate::synthetic::SyntheticMemory;

    #[test]
    fn knm_has_its_parts_and_the_gradation_of_the_poster() {
        let spec = SyntheticSpec::mesh_knm_snc4(1).with_pages(2048);
        let machine = &spec.machine;
        assert_eq!((machine.cores(), machine.slices(), machine.controllers()), (68, 38, 8));
        let sizes: Vec<_> =
            spec.regions.iter().map(|r| (r.slices.len(), r.controllers.len())).collect();
        assert_eq!(sizes, [(10, 2), (10, 2), (9, 2), (9, 2)]);
        let memory = SyntheticMemory::new(spec).unwrap();
        let of = |core| memory.truth_region_latency(CoreId(core), RegionId(1)).unwrap() / 1.3;
        let all: Vec<f64> = (0..68).map(of).collect();
        let nearest = all.iter().copied().fold(f64::INFINITY, f64::min);
        let farthest = all.iter().copied().fold(0.0, f64::max);
        assert!((nearest - 161.1).abs() < 1.0, "the poster has 161.1 ns: {nearest}");
        assert!((farthest - nearest - 15.5).abs() < 1.0, "and 15.5 ns more: {nearest} {farthest}");
        assert!((0..68).step_by(2).all(|core| of(core) == of(core + 1)), "tile mates agree");
    }
}
