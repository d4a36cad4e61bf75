//! Contents for tests: a small machine with every kind of section filled in.

use crate::contents::{
    Bandwidth, Base, Cell, Clock, Contents, CostTerm, DriftEvent, Fingerprint, Form, Graded,
    Interaction, LevelMap, Matrix, MultiLineFit, PageBlock, Placement, Provenance, Quality,
    RegionMap, TransferMap,
};
use isochrone_atlas::{Noise, Penalties};
use isochrone_machine::{Cache, CacheKind, Core, Machine, MachineState, Region, RegionKind};
use isochrone_units::{Experiment, Grade, Reading};

pub(crate) fn cell(median: f64) -> Cell {
    let (lo, hi) = (median * 0.998, median * 1.002);
    Cell { median, lo, hi, p5: median * 0.9, p95: median * 1.3, n: 400 }
}

fn core(id: u16) -> Core {
    Core { id, package: Some(0), ..Core::default() }
}

fn cache(level: u8, kind: CacheKind, kib: u64, shared_by: &[u16]) -> Cache {
    Cache {
        level,
        kind,
        bytes: Some(kib << 10),
        line_bytes: Some(64),
        ways: Some(8),
        shared_by: shared_by.to_vec(),
        source: None,
    }
}

pub(crate) fn machine() -> Machine {
    let private = |id: u16| {
        [
            cache(1, CacheKind::Data, 32, &[id]),
            cache(1, CacheKind::Instruction, 32, &[id]),
            cache(2, CacheKind::Unified, 1024, &[id]),
        ]
    };
    let mut caches: Vec<Cache> = (0..2).flat_map(private).collect();
    caches.push(cache(3, CacheKind::Unified, 32768, &[0, 1]));
    Machine {
        name: "pair".to_owned(),
        title: "Two cores & \"one\" region".to_owned(),
        cores: vec![core(0), core(1)],
        regions: vec![Region {
            id: 0,
            kind: RegionKind::Ddr,
            bytes: Some(8 << 30),
            cores: vec![0, 1],
            source: None,
        }],
        caches,
        ..Machine::default()
    }
}

/// A pattern of `period` lines that no key but 0 leaves alike.
pub(crate) fn pattern(period: u16, step: u16, near: f32) -> Vec<f32> {
    (0..period).map(|line| near + f32::from((line * step + 5) % 61) / 3.0).collect()
}

fn quality() -> Quality {
    Quality {
        r2_heldout: Some(0.93),
        lines_per_page: Some(9.4),
        us_breakdown: vec![("loads".to_owned(), 3.1)],
        decoded_pages: 1024,
        heldout_pages: 64,
        histogram_cycles: vec![40.25, 41.5],
        ..Quality::default()
    }
}

pub(crate) fn level(level: &str, classes: u8, near: f32) -> LevelMap {
    let patterns = |step: u16| {
        (0..classes).map(|class| pattern(64, step, near + 16.0 * f32::from(class))).collect()
    };
    LevelMap {
        level: level.to_owned(),
        form: Form::Pattern,
        reason: "explains 0.93 of the variance".to_owned(),
        method: "eviction".to_owned(),
        period: 64,
        classes,
        canonical_key: (0..64).map(|key| key & !1).collect(),
        bases: vec![
            Base { core: 0, patterns: patterns(7), rounds: 20 },
            Base { core: 1, patterns: patterns(11), rounds: 20 },
        ],
        core_base: vec![Some(0), Some(1)],
        probe_lines: vec![3, 17, 40],
        noise_cycles: 12.5,
        code_share: (0..u16::from(classes) * 64).map(|code| f32::from(code % 7)).collect(),
        quality: vec![quality(), Quality::default()],
        lines: Vec::new(),
        penalties: Some(density(12.5)),
    }
}

/// Penalties with the sharp left edge and the long right tail of timed loads.
pub(crate) fn density(noise_cycles: f32) -> Penalties {
    let mut penalties = Penalties::from(Noise::heavy_tailed(noise_cycles));
    for (entry, nats) in penalties.nats.iter_mut().enumerate() {
        *nats += if entry < 100 { 2.0 } else { 0.125 };
    }
    penalties
}

/// Blocks whose LLC codes are hashed and whose DRAM codes are random, as on Zen 4.
pub(crate) fn blocks(first_frames: &[u64]) -> Vec<PageBlock> {
    let mut state = 0x1234_5678_9abc_def1_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        u16::from(state.to_le_bytes()[3])
    };
    first_frames
        .iter()
        .map(|&first_frame| {
            let mut block =
                PageBlock { first_frame, llc: Box::new([0; 512]), dram: Box::new([0; 512]) };
            for (frame, (llc, dram)) in
                (first_frame..).zip(block.llc.iter_mut().zip(block.dram.iter_mut()))
            {
                let hash = (frame ^ (frame >> 3) ^ (frame >> 9)).to_le_bytes()[0] & 63;
                let hash = u16::from(hash);
                *llc = if frame % 100 == 7 { hash ^ 9 } else { hash };
                *dram = random() % 128;
            }
            block
        })
        .collect()
}

fn matrix(what: &str, rows: &[&str], columns: &[&str], cells: &[Option<f64>]) -> Matrix {
    let words = |labels: &[&str]| labels.iter().map(|&label| label.to_owned()).collect();
    Matrix {
        what: what.to_owned(),
        rows: words(rows),
        columns: words(columns),
        cells: cells.iter().map(|value| value.map(cell)).collect(),
    }
}

fn regions() -> Vec<RegionMap> {
    let map = |mode: &str, near: f64| RegionMap {
        mode: mode.to_owned(),
        buffer_bytes: 100 << 20,
        stride_bytes: (mode == "stride").then_some(256),
        left_out: Vec::new(),
        latency_ns: matrix(
            "core-to-region latency, ns",
            &["core 0", "core 1"],
            &["region 0"],
            &[Some(near), Some(near + 3.5)],
        ),
    };
    vec![map("in-order", 9.5), map("random", 131.25), map("stride", 77.0)]
}

fn transfers() -> Vec<TransferMap> {
    let map = |state: &str, ns: f64| TransferMap {
        state: state.to_owned(),
        what: "one way".to_owned(),
        lines: 64,
        latency_ns: matrix(
            "line transfer, ns",
            &["core 0", "core 1"],
            &["core 0", "core 1"],
            &[None, Some(ns), Some(ns + 1.0), None],
        ),
        best_line_ns: vec![None, Some(ns - 5.0), None, None],
        strata: Vec::new(),
    };
    vec![map("modified", 50.5), map("shared", 41.0), map("cas", 60.0)]
}

fn graded() -> Graded {
    Graded { grade: Grade::Disturbed, reason: "beside a build".to_owned() }
}

pub(crate) fn contents() -> Contents {
    Contents {
        reading: Reading::Measured,
        complete: true,
        machine: machine(),
        state: Some(MachineState { kernel: Some("6.18".to_owned()), ..MachineState::default() }),
        fingerprint: Fingerprint { words: vec!["pair".to_owned()], hash: 0xfeed_beef_0bad_cafe },
        clock: Clock { hz: 2.6e9, tick_cycles: 26, overhead_cycles: 58.7 },
        levels: vec![level("llc", 1, 44.0), level("dram", 2, 360.0)],
        pages_keyed_by: "guest frames".to_owned(),
        pages: blocks(&[512, 1024, 1536, 2048]),
        regions: regions(),
        transfers: transfers(),
        multiline: vec![MultiLineFit {
            what: "core 0 -> core 1".to_owned(),
            q_ns: (12.0, 11.0, 13.0),
            o_ns: (4.5, 4.4, 4.6),
            c_ns: None,
            r2: 0.99,
            points: vec![(1, 1, 55.0), (2, 1, 60.0)],
        }],
        interactions: vec![Interaction {
            kind: "contention".to_owned(),
            n: 2,
            ns: None,
            note: "needs three cores".to_owned(),
        }],
        terms: vec![term("left-shared", Some(31.0)), term("rfo-sharer", None)],
        llc_shares: Vec::new(),
        bandwidth: vec![Bandwidth { cores: vec![0, 1], region: 0, gb_per_s: cell(21.0) }],
        placement: Some(Placement {
            shape: "cannot tell".to_owned(),
            reason: "two cores".to_owned(),
            places: vec![("core 0".to_owned(), 0.0, 0.0)],
            symmetries: "all".to_owned(),
            rank_correlation: None,
        }),
        quality: [(Experiment::Transfer, graded())].into(),
        drift: vec![DriftEvent {
            at_s: 3.25,
            core: 1,
            kind: "base changed".to_owned(),
            what: "the vCPU moved, measured again".to_owned(),
            dropped_samples: 4096,
            repaired_ms: Some(4.5),
        }],
        provenance: Provenance { version: "0.1.0".to_owned(), seed: 1, ..Provenance::default() },
    }
}

fn term(name: &str, ns: Option<f64>) -> CostTerm {
    CostTerm {
        name: name.to_owned(),
        what: "a locked write of an own line".to_owned(),
        with_ns: ns.map(|ns| cell(ns + 8.0)),
        without_ns: ns.map(|_| cell(8.0)),
        ns: ns.map(cell),
        missing: ns.is_none().then(|| "needs 3 cores, 2 may be used".to_owned()),
    }
}

/// The same machine, lines measured one by one in the LLC.
pub(crate) fn per_line() -> Contents {
    let mut contents = contents();
    let level = &mut contents.levels[0];
    level.form = Form::PerLine;
    level.bases.clear();
    level.core_base = vec![None, None];
    let mut gap = pattern(64, 9, 50.0);
    gap[3] = f32::NAN;
    level.lines = vec![(7, 0, pattern(64, 5, 40.0)), (9, 0, gap), (7, 1, pattern(64, 3, 41.0))];
    contents
}
