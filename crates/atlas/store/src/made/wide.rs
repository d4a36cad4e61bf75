//! A machine of hundreds of cores, as a full map of it would be: for tests of size, time and looks.
//!
//! Its cores are numbered as Linux numbers them where each has two threads: the second threads come after all first
//! ones, so that no cluster is one range.

use crate::contents::{
    Bandwidth, Base, Cell, Clock, Contents, Fingerprint, Form, LevelMap, LlcShare, Matrix,
    Placement, Quality, RegionMap, TransferMap,
};
use crate::convert::single;
use isochrone_machine::{Cache, CacheKind, Core, Machine, Region, RegionKind};
use isochrone_units::{CoreId, Reading, RegionId};

/// Cores that share a last-level cache: four with two threads each.
const COMPLEX: u16 = 8;
/// Latencies of single lines of one core.
const LINES: u16 = 4096;

/// Where the cores of a wide machine lie.
#[derive(Clone, Copy)]
struct Shape {
    cores: u16,
    regions: u16,
}

impl Shape {
    /// The core without its threads.
    const fn body(self, core: u16) -> u16 {
        core % (self.cores / 2)
    }

    const fn complex(self, core: u16) -> u16 {
        self.body(core) / (COMPLEX / 2)
    }

    const fn region(self, core: u16) -> u16 {
        let complexes = self.cores / COMPLEX;
        self.complex(core) * self.regions / complexes
    }

    /// Two sockets.
    const fn socket(self, region: u16) -> u16 {
        region * 2 / self.regions
    }

    /// Transfer of a line between two cores, ns.
    fn transfer_ns(self, a: u16, b: u16) -> f64 {
        let (from, to) = (self.region(a), self.region(b));
        if self.body(a) == self.body(b) {
            9.0
        } else if self.complex(a) == self.complex(b) {
            25.0
        } else if from == to {
            64.0
        } else if self.socket(from) == self.socket(to) {
            112.0 + f64::from(from.abs_diff(to))
        } else {
            221.0
        }
    }

    /// A load from a region, ns.
    fn load_ns(self, core: u16, region: u16) -> f64 {
        match self.region(core) {
            own if own == region => 96.0,
            own if self.socket(own) == self.socket(region) => 131.0,
            _ => 214.0,
        }
    }
}

/// Numbers without a pattern in [0, 1) (SplitMix64), the same every time.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A cell around `ns`: an interval of about a hundredth, percentiles of some hundredths, and now and then the
    /// long tail that a disturbed pair has.
    fn cell(&mut self, ns: f64, n: u32) -> Cell {
        let median = ns * (1.0 + 0.02 * (self.next() - 0.5));
        let tail = if self.next() < 0.002 { 40.0 } else { 1.0 };
        Cell {
            median,
            lo: median * (1.0 - 0.003 - 0.008 * self.next()),
            hi: median * (1.0 + 0.003 + 0.008 * self.next()),
            p5: median * (1.0 - 0.02 - 0.05 * self.next()),
            p95: median * (1.0 + (0.03 + 0.1 * self.next()) * tail),
            n,
        }
    }
}

/// A full map of `cores` cores (a multiple of 8) in `regions` regions: all pairs in all states, all regions from all
/// cores, near lines of a core of each complex. No page codes.
#[must_use]
pub fn wide(cores: u16, regions: u16) -> Contents {
    let shape = Shape { cores, regions };
    let clock = Clock { hz: 2.45e9, tick_cycles: 1, overhead_cycles: 31.0 };
    let mut contents = Contents::begun(Reading::Simulated, machine(shape), clock);
    let mut noise = Noise(u64::from(cores));
    contents.complete = true;
    contents.fingerprint =
        Fingerprint { words: vec![format!("cpu: wide {cores}")], hash: u64::from(cores) << 16 };
    contents.levels =
        vec![level(shape, "llc", 61.0, &mut noise), level(shape, "dram", 240.0, &mut noise)];
    let modes = [("random", 1.0), ("in-order", 0.04), ("stride", 0.9), ("one-class", 0.95)];
    contents.regions = modes.map(|(mode, share)| region(shape, mode, share, &mut noise)).into();
    let states = [("cas", 1.1), ("modified", 1.0), ("exclusive", 0.9), ("shared", 0.8)];
    contents.transfers =
        states.map(|(state, share)| transfers(shape, state, share, &mut noise)).into();
    contents.bandwidth = bandwidth(shape, &mut noise);
    contents.llc_shares = (0..cores)
        .step_by(4)
        .map(|core| LlcShare {
            core,
            bytes: Some(31 << 20),
            curve_ns: (0..20)
                .map(|step| (1 << 20 | step << 18, 30.0 + 90.0 * noise.next()))
                .collect(),
        })
        .collect();
    contents.placement = Some(Placement {
        shape: "cannot tell".into(),
        reason: "the distances fit no plane".into(),
        places: Vec::new(),
        symmetries: String::new(),
        rank_correlation: None,
    });
    contents.provenance.version = "0.1.0".into();
    contents
}

fn machine(shape: Shape) -> Machine {
    let of = |holds: &dyn Fn(u16) -> bool| {
        (0..shape.cores).filter(|core| holds(*core)).collect::<Vec<u16>>()
    };
    let cache = |level, kib: u64, shared_by: Vec<u16>| Cache {
        level,
        kind: CacheKind::Unified,
        bytes: Some(kib << 10),
        line_bytes: Some(64),
        ways: Some(16),
        shared_by,
        source: None,
    };
    let complexes = shape.cores / COMPLEX;
    let near = |body: u16| cache(2, 1024, of(&|core| shape.body(core) == body));
    let last = |complex: u16| cache(3, 32 << 10, of(&|core| shape.complex(core) == complex));
    let distance = |a: u16, b: u16| match (a == b, shape.socket(a) == shape.socket(b)) {
        (true, _) => 10,
        (false, true) => 12,
        (false, false) => 32,
    };
    Machine {
        name: format!("wide-{}", shape.cores),
        title: format!("{} cores in {} regions, made up", shape.cores, shape.regions),
        cores: (0..shape.cores)
            .map(|id| Core {
                id,
                region: shape.region(id),
                package: Some(shape.socket(shape.region(id))),
                ..Core::default()
            })
            .collect(),
        regions: (0..shape.regions)
            .map(|id| Region {
                id,
                kind: RegionKind::Ddr,
                bytes: Some(96 << 30),
                cores: of(&|core| shape.region(core) == id),
                source: None,
            })
            .collect(),
        distances: Some(
            (0..shape.regions)
                .map(|a| (0..shape.regions).map(|b| distance(a, b)).collect())
                .collect(),
        ),
        memory_bytes: Some(u64::from(shape.regions) * (96 << 30)),
        caches: (0..shape.cores / 2).map(near).chain((0..complexes).map(last)).collect(),
        ..Machine::default()
    }
}

fn names<T: ToString>(all: impl Iterator<Item = T>) -> Vec<String> {
    all.map(|one| one.to_string()).collect()
}

fn transfers(shape: Shape, state: &str, share: f64, noise: &mut Noise) -> TransferMap {
    let cores = usize::from(shape.cores);
    let mut cells = vec![None; cores * cores];
    for (owner, row) in (0..shape.cores).zip((0..cores).map(|row| row * cores)) {
        for (asker, column) in (0..shape.cores).zip(0..cores) {
            let other = column * cores + row / cores;
            cells[row + column] = match (owner == asker, state) {
                (true, _) => None,
                // Half a round trip is one figure for both directions.
                (false, "cas") if asker < owner => cells[other],
                (false, _) => Some(noise.cell(share * shape.transfer_ns(owner, asker), 64)),
            };
        }
    }
    TransferMap {
        state: state.to_owned(),
        what: if state == "cas" { "half round trip" } else { "one way" }.to_owned(),
        lines: 64,
        strata: Vec::new(),
        best_line_ns: cells.iter().map(|cell| cell.map(|cell| cell.p5 * 0.99)).collect(),
        latency_ns: Matrix {
            what: format!("line transfer, {state}, median over lines, ns"),
            rows: names((0..shape.cores).map(CoreId)),
            columns: names((0..shape.cores).map(CoreId)),
            cells,
        },
    }
}

fn region(shape: Shape, mode: &str, share: f64, noise: &mut Noise) -> RegionMap {
    let places = (0..shape.cores).flat_map(|core| (0..shape.regions).map(move |to| (core, to)));
    let cells =
        places.map(|(core, to)| Some(noise.cell(share * shape.load_ns(core, to), 116))).collect();
    let cores = (0..shape.cores).map(CoreId);
    let mut map =
        RegionMap::of_chase(mode, 256 << 20, cores, (0..shape.regions).map(RegionId), cells);
    map.stride_bytes = (mode == "stride").then_some(4096);
    map
}

fn level(shape: Shape, name: &str, near: f64, noise: &mut Noise) -> LevelMap {
    let complexes = shape.cores / COMPLEX;
    let first = |complex: u16| complex * (COMPLEX / 2);
    let mut pattern = || (0..64).map(|_| single(near + 30.0 * noise.next())).collect::<Vec<f32>>();
    let bases = (0..complexes)
        .map(|complex| Base { core: first(complex), patterns: vec![pattern()], rounds: 96 })
        .collect();
    let quality = |core: u16, noise: &mut Noise| {
        let sampled = (0..complexes).any(|complex| first(complex) == core);
        let some = |value: f64| sampled.then_some(value);
        Quality {
            r2_heldout: some(0.9 + 0.05 * noise.next()),
            r2_ceiling: some(0.97),
            r2_train: some(0.95),
            key_accuracy: some(0.98),
            near_regret: some(0.004 * noise.next()),
            spread_p90_p10: some(1.3),
            mean_ns: Some((near + 15.0 + noise.next()) / 2.45),
            near_quarter_ns: Some((near + 5.0 + noise.next()) / 2.45),
            heldout_pages: if sampled { 64 } else { 4 },
            histogram_cycles: (0..if sampled { LINES } else { 0 })
                .map(|_| single(near + 30.0 * noise.next()))
                .collect(),
            ..Quality::default()
        }
    };
    LevelMap {
        level: name.to_owned(),
        form: Form::Pattern,
        reason: "the form explains 99 % of what repeats".to_owned(),
        method: if name == "llc" { "cldemote" } else { "clflush" }.to_owned(),
        period: 64,
        classes: 1,
        canonical_key: (0..64).collect(),
        bases,
        core_base: (0..shape.cores).map(|core| Some(shape.complex(core))).collect(),
        probe_lines: vec![3, 17, 40, 5, 60, 22],
        noise_cycles: 11.5,
        code_share: vec![1.0 / 64.0; 64],
        quality: (0..shape.cores).map(|core| quality(core, noise)).collect(),
        lines: Vec::new(),
        penalties: None,
    }
}

fn bandwidth(shape: Shape, noise: &mut Noise) -> Vec<Bandwidth> {
    let local = |region: u16| (0..shape.cores).filter(move |core| shape.region(*core) == region);
    let mut all = Vec::new();
    for region in 0..shape.regions {
        let members: Vec<u16> = local(region).collect();
        for count in [1, 2, 4, members.len() / 2, members.len()] {
            let cores = members.iter().copied().take(count).collect();
            let gb_per_s = noise.cell((11.0 * count as f64).min(38.0), 5);
            all.push(Bandwidth { cores, region, gb_per_s });
        }
        let everybody = (0..shape.cores).collect();
        all.push(Bandwidth { cores: everybody, region, gb_per_s: noise.cell(31.0, 5) });
    }
    all
}
