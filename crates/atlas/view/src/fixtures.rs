//! Atlases for tests, as measuring would have filled them: two cores of a Zen 4 server, a mesh of
//! 64 cores, a machine that follows no form, and a run that was interrupted before anything.

use isochrone_atlas::Code;
use isochrone_atlas_store::contents::{
    Bandwidth, Base, Cell, Clock, Contents, CostTerm, DriftEvent, Fingerprint, Form, Interaction,
    LevelMap, Matrix, MultiLineFit, PageBlock, Placement, Provenance, Quality, RegionMap,
    TransferMap,
};
use isochrone_machine::{
    Cache, CacheKind, Core, Cpu, HugePages, Machine, MachineState, Region, RegionKind,
};
use isochrone_units::Reading;

const HZ: f64 = 2.596e9;
/// Latencies of the eight slices of the Zen 4 server's LLC, cycles.
pub const SLICES: [f32; 8] = [38.0, 33.0, 41.0, 36.0, 44.0, 39.0, 47.0, 42.0];
/// Mean latencies of its three classes of pages in DRAM, cycles.
pub const CLASSES: [f32; 3] = [336.0, 352.0, 363.0];

/// Numbers without a pattern (SplitMix64), the same every time.
pub fn mixed(i: u64) -> u64 {
    let z = i.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678_9abc_def1);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn byte(i: u64) -> u8 {
    mixed(i).to_le_bytes()[2]
}

pub(crate) fn cell(median: f64, n: u32) -> Cell {
    let (lo, hi) = (median * 0.99, median * 1.01);
    Cell { median, lo, hi, p5: median * 0.9, p95: median * 1.2, n }
}

fn cache(level: u8, kind: CacheKind, kib: u64, shared_by: Vec<u16>) -> Cache {
    let (bytes, line_bytes) = (Some(kib << 10), Some(64));
    Cache { level, kind, bytes, line_bytes, ways: Some(16), shared_by, source: None }
}

fn machine(cores: u16, regions: u16, title: &str) -> Machine {
    let region_of = |core: u16| core * regions / cores;
    let members = |r: u16| (0..cores).filter(|c| region_of(*c) == r).collect::<Vec<u16>>();
    let mut caches: Vec<Cache> =
        (0..cores).map(|c| cache(2, CacheKind::Unified, 1024, vec![c])).collect();
    caches.push(cache(3, CacheKind::Unified, 32 << 10, (0..cores).collect()));
    Machine {
        name: "fixture".into(),
        title: title.into(),
        cpu: Some(Cpu { model_name: Some("AMD EPYC".into()), ..Cpu::default() }),
        cores: (0..cores).map(|id| Core { id, region: region_of(id), ..Core::default() }).collect(),
        regions: (0..regions)
            .map(|id| Region {
                id,
                kind: RegionKind::Ddr,
                bytes: Some(8 << 30),
                cores: members(id),
                source: None,
            })
            .collect(),
        memory_bytes: Some(u64::from(regions) << 33),
        caches,
        ..Machine::default()
    }
}

fn state() -> MachineState {
    MachineState {
        hypervisor: Some("KVM".into()),
        kernel: Some("6.18.0".into()),
        clocksource: Some("tsc".into()),
        governors: vec![(0, None), (1, None)],
        thp: Some("madvise".into()),
        huge_pages: vec![HugePages { page_bytes: 2 << 20, total: 8, free: 3 }],
        allowed_cores: Some(vec![0, 1]),
        loadavg: Some([0.5, 0.25, 0.125]),
        ..MachineState::default()
    }
}

fn quality(mean_cycles: f64, near: f64, first: bool) -> Quality {
    let ns = |cycles: f64| Some(cycles * 1e9 / HZ);
    let line = |i: u64| f32::from(byte(i)) / 20.0 + if mean_cycles < 100.0 { 35.0 } else { 345.0 };
    Quality {
        r2_heldout: Some(0.9415),
        r2_ceiling: Some(0.9623),
        r2_train: Some(0.95),
        lines_per_page: first.then_some(4.21),
        samples_per_page: first.then_some(4.37),
        us_per_page: first.then_some(1.71),
        decoding_cores: first.then_some(2),
        us_breakdown: if first { vec![("timed loads".into(), 0.9)] } else { Vec::new() },
        key_accuracy: Some(0.9844),
        near_regret: Some(0.004),
        spread_p90_p10: Some(1.31),
        mean_ns: ns(mean_cycles),
        near_quarter_ns: ns(mean_cycles * near),
        decoded_pages: if first { 4096 } else { 0 },
        heldout_pages: 64,
        histogram_cycles: (0..512).map(line).collect(),
        verified: None,
    }
}

/// Eight slices by index bits 0 to 2; `turned` is what the other core sees.
pub fn sliced(turned: bool) -> Vec<f32> {
    let slice = |i: usize| if turned { 80.0 - SLICES[i % 8] } else { SLICES[i % 8] };
    (0..64).map(slice).collect()
}

fn shares(codes: &[(usize, f32)]) -> Vec<f32> {
    let mut all = vec![0.0; 256];
    codes.iter().for_each(|(code, share)| all[*code] = *share);
    all
}

fn llc() -> LevelMap {
    LevelMap {
        level: "llc".into(),
        form: Form::Pattern,
        reason: "the form explains 99 % of what repeats".into(),
        method: "eviction".into(),
        period: 64,
        classes: 1,
        canonical_key: (0..64).map(|key| key & 7).collect(),
        bases: vec![
            Base { core: 0, patterns: vec![sliced(false)], rounds: 96 },
            Base { core: 1, patterns: vec![sliced(true)], rounds: 96 },
        ],
        core_base: vec![Some(0), Some(1)],
        probe_lines: vec![1, 6, 3],
        noise_cycles: 9.7,
        code_share: shares(&[(0, 1.0)]),
        quality: vec![quality(40.0, 0.86, true), quality(40.0, 0.85, false)],
        lines: Vec::new(),
        penalties: None,
    }
}

fn dram() -> LevelMap {
    let patterns = |offset: f32| CLASSES.iter().map(|mean| vec![mean + offset; 64]).collect();
    LevelMap {
        level: "dram".into(),
        method: "clflush".into(),
        classes: 3,
        canonical_key: vec![0; 64],
        bases: vec![
            Base { core: 0, patterns: patterns(0.0), rounds: 96 },
            Base { core: 1, patterns: patterns(5.0), rounds: 96 },
        ],
        code_share: shares(&[(0, 0.25), (64, 0.25), (128, 0.5)]),
        quality: vec![quality(352.0, 0.95, true), quality(357.0, 0.95, false)],
        noise_cycles: 36.6,
        ..llc()
    }
}

/// Blocks whose codes `llc` and `dram` give by frame.
fn blocks(first: &[u64], llc: impl Fn(u64) -> u16, dram: impl Fn(u64) -> u16) -> Vec<PageBlock> {
    let codes = |first: u64, of: &dyn Fn(u64) -> u16| {
        let mut all = Box::new([0; 512]);
        (first..).zip(all.iter_mut()).for_each(|(frame, code)| *code = of(frame));
        all
    };
    let block = |first: &u64| PageBlock {
        first_frame: *first,
        llc: codes(*first, &llc),
        dram: codes(*first, &dram),
    };
    first.iter().map(block).collect()
}

/// The class of a page of the Zen 4 server; one page was not decided.
pub fn dram_code(frame: u64) -> u16 {
    match byte(frame) {
        _ if frame == 0x1005 => Code::UNKNOWN.0,
        0..64 => 0,
        64..128 => 64,
        _ => 128,
    }
}

fn matrix(what: &str, rows: Vec<String>, columns: Vec<String>, cells: Vec<Option<Cell>>) -> Matrix {
    Matrix { what: what.into(), rows, columns, cells }
}

fn names(what: &str, n: u16) -> Vec<String> {
    (0..n).map(|i| format!("{what} {i}")).collect()
}

/// Transfers between `n` cores; `latency` says how long from one to another.
fn transfers(n: u16, state: &str, latency: impl Fn(u16, u16) -> Option<f64>) -> TransferMap {
    let pairs = || (0..n).flat_map(|a| (0..n).map(move |b| (a, b)));
    let found = |(a, b)| if a == b { None } else { latency(a, b) };
    let cells: Vec<Option<Cell>> = pairs().map(|p| found(p).map(|v| cell(v, 64))).collect();
    TransferMap {
        state: state.into(),
        what: if state == "cas" { "half round trip" } else { "one way (a timed load)" }.into(),
        lines: 64,
        best_line_ns: cells.iter().map(|c| c.map(|c| c.p5)).collect(),
        strata: Vec::new(),
        latency_ns: matrix("line transfer, ns", names("core", n), names("core", n), cells),
    }
}

fn region(cores: u16, regions: u16, mode: &str, latency: impl Fn(u16, u16) -> f64) -> RegionMap {
    let places = (0..cores).flat_map(|core| (0..regions).map(move |region| (core, region)));
    let cells = places.map(|(c, r)| Some(cell(latency(c, r), 116))).collect();
    RegionMap {
        mode: mode.into(),
        buffer_bytes: 100 << 20,
        stride_bytes: (mode == "stride").then_some(4096),
        left_out: Vec::new(),
        latency_ns: matrix("latency, ns", names("core", cores), names("region", regions), cells),
    }
}

fn interactions(most: u32) -> Vec<Interaction> {
    let one = |kind: &str, n: u32| Interaction {
        kind: kind.into(),
        n,
        ns: (n <= most).then(|| cell(28.0 + f64::from(n), 32)),
        note: if n <= most { "a load of a line".into() } else { format!("needs {} cores", n + 1) },
    };
    ["contention", "rfo-shared"].iter().flat_map(|k| [1, 2, 4].map(|n| one(k, n))).collect()
}

fn terms() -> Vec<CostTerm> {
    let one = |name: &str, ns: Option<f64>| CostTerm {
        name: name.into(),
        what: "a locked write of an own line after another core has read it / has not".into(),
        with_ns: ns.map(|ns| cell(ns + 9.0, 32)),
        without_ns: ns.map(|_| cell(9.0, 32)),
        ns: ns.map(|ns| cell(ns, 32)),
        missing: ns.is_none().then(|| "needs 3 cores, 2 may be used".into()),
    };
    vec![one("rfo-sharer", None), one("left-shared", Some(37.5))]
}

fn event(at_s: f64, core: u16, kind: &str) -> DriftEvent {
    DriftEvent {
        at_s,
        core,
        kind: kind.into(),
        what: format!("core {core} sees another pattern; it is timed again"),
        dropped_samples: 4096,
        repaired_ms: Some(2.5),
    }
}

/// Two virtual cores of a Zen 4 server.
pub fn genoa() -> Contents {
    let shared = TransferMap {
        what: "one way: not measured, it needs 3 cores and 2 may be used".into(),
        ..transfers(2, "shared", |_, _| None)
    };
    Contents {
        reading: Reading::Measured,
        complete: true,
        machine: machine(2, 1, "AMD EPYC, 2 cores"),
        state: Some(state()),
        fingerprint: Fingerprint {
            words: vec!["cpu: AMD EPYC".into(), "odd".into()],
            hash: 0xfeed,
        },
        clock: Clock { hz: HZ, tick_cycles: 26, overhead_cycles: 58.7 },
        levels: vec![llc(), dram()],
        pages_keyed_by: "guest frames".into(),
        pages: blocks(&[0x1000, 0x1200, 0x2000], |_| 0, dram_code),
        regions: vec![
            region(2, 1, "random", |c, _| 165.0 + f64::from(c)),
            region(2, 1, "in-order", |_, _| 2.0),
            region(2, 1, "stride", |_, _| 155.0),
            region(2, 1, "one-class", |_, _| 145.0),
        ],
        transfers: vec![
            transfers(2, "cas", |_, _| Some(27.0)),
            transfers(2, "modified", |a, _| Some(30.0 + f64::from(a))),
            shared,
        ],
        multiline: vec![MultiLineFit {
            what: "core 0 -> core 1".into(),
            q_ns: (21.8, 17.4, 26.2),
            o_ns: (5.32, 5.23, 5.40),
            c_ns: None,
            r2: 0.9997,
            points: vec![(1, 1, 31.7), (4, 1, 35.3), (128, 1, 701.0)],
        }],
        interactions: interactions(1),
        terms: terms(),
        llc_shares: Vec::new(),
        bandwidth: vec![
            Bandwidth { cores: vec![0], region: 0, gb_per_s: cell(15.4, 1) },
            Bandwidth { cores: vec![0, 1], region: 0, gb_per_s: cell(26.4, 5) },
        ],
        placement: Some(Placement {
            shape: "cannot tell".into(),
            reason: "2 cores have no layout: at least 4 are needed".into(),
            places: Vec::new(),
            symmetries: String::new(),
            rank_correlation: None,
        }),
        quality: std::collections::BTreeMap::new(),
        drift: vec![
            event(0.25, 1, "base changed"),
            event(0.5, 0, "thread moved"),
            event(1.5, 0, "base changed"),
            event(3.25, 1, "base changed"),
        ],
        provenance: Provenance {
            version: "0.1.0".into(),
            seed: 7,
            started_unix_s: 1_795_183_684,
            seconds: 42.5,
            options: vec!["--quick".into()],
            missing: vec!["cldemote: this CPU lacks it; lines are evicted instead".into()],
        },
    }
}

/// Latency of a canonical line for a core of the mesh, cycles: the way to one of 64 slices.
pub fn mesh_line(core: u16, line: u16) -> f32 {
    let hops = (core % 8).abs_diff(line % 8) + (core / 8).abs_diff(line / 8);
    60.0 + 3.0 * f32::from(hops)
}

/// A modelled mesh of 8 x 8 cores with four regions, every core with a base of its own.
pub fn mesh() -> Contents {
    let pattern = |core| (0..64).map(|line| mesh_line(core, line)).collect();
    let base = |core| Base { core, patterns: vec![pattern(core)], rounds: 20 };
    let level = LevelMap {
        method: "cldemote".into(),
        canonical_key: (0..64).collect(),
        bases: (0..64).map(base).collect(),
        core_base: (0..64).map(Some).collect(),
        code_share: Vec::new(),
        quality: (0..64_u16).map(|c| quality(81.0, 0.9 - f64::from(c) / 1000.0, c == 0)).collect(),
        ..llc()
    };
    let flat = LevelMap {
        level: "dram".into(),
        form: Form::Flat,
        reason: "two halves of the rounds correlate at 0.003".into(),
        quality: vec![Quality { mean_ns: Some(90.0), ..Quality::default() }; 64],
        ..dram()
    };
    let hops = |a: u16, b: u16| f64::from((a % 8).abs_diff(b % 8) + (a / 8).abs_diff(b / 8));
    let corner = |r: u16| [0, 7, 56, 63][usize::from(r) % 4];
    let mut places: Vec<(String, f64, f64)> =
        (0..64_u16).map(|c| (format!("core {c}"), f64::from(c % 8), f64::from(c / 8))).collect();
    places.push(("region 0".into(), -1.0, 0.0));
    Contents {
        reading: Reading::Simulated,
        machine: machine(64, 4, "A mesh of 64 cores"),
        state: None,
        levels: vec![level, flat],
        pages_keyed_by: "host frames".into(),
        pages: blocks(&[0, 512], |frame| u16::from(byte(frame) & 63), |_| 0),
        regions: vec![region(64, 4, "random", |c, r| 90.0 + 4.0 * hops(c, corner(r)))],
        transfers: vec![transfers(64, "modified", |a, b| Some(40.0 + 5.0 * hops(a, b)))],
        multiline: vec![MultiLineFit {
            what: "core 0 -> up to 2 readers".into(),
            c_ns: Some((0.5, 0.4, 0.6)),
            points: vec![(1, 1, 40.0), (8, 1, 70.0), (1, 2, 42.0), (8, 2, 75.0)],
            ..genoa().multiline[0].clone()
        }],
        interactions: interactions(4),
        bandwidth: (0..64)
            .map(|c| Bandwidth {
                cores: vec![c],
                region: 0,
                gb_per_s: cell(10.0 + f64::from(c) / 64.0, 5),
            })
            .collect(),
        placement: Some(Placement {
            shape: "grid".into(),
            reason: "a grid of 8 by 8 explains 99.1 % of the variance".into(),
            places,
            symmetries: "quarter turns and mirror images fit as well (8 images)".into(),
            rank_correlation: Some(0.98),
        }),
        quality: std::collections::BTreeMap::new(),
        drift: Vec::new(),
        provenance: Provenance { missing: Vec::new(), ..genoa().provenance },
        ..genoa()
    }
}

/// Pages of two cores that follow no form: measured line by line.
pub fn per_line() -> Contents {
    let lines = |frame: u64, core: u16| {
        let line = |i: u64| 40.0 + f32::from(byte(frame * 64 + i + u64::from(core))) / 16.0;
        (frame, core, (0..64).map(line).collect::<Vec<f32>>())
    };
    let level = LevelMap {
        form: Form::PerLine,
        reason: "the form explains only 31 % of what repeats".into(),
        lines: vec![lines(9, 0), lines(8, 0), lines(8, 1), lines(9, 1)],
        quality: vec![Quality { mean_ns: Some(17.0), ..Quality::default() }; 2],
        ..llc()
    };
    Contents { levels: vec![level], pages: Vec::new(), ..genoa() }
}

/// One pattern over 16 KiB, with keys of eight bits.
pub fn long_period() -> Contents {
    let pattern = |step: usize| (0..256).map(|i| 50.0 + ((i * step) % 251) as f32 / 10.0).collect();
    let level = LevelMap {
        period: 256,
        canonical_key: (0..=255).collect(),
        bases: vec![
            Base { core: 0, patterns: vec![pattern(7)], rounds: 9 },
            Base { core: 1, patterns: vec![pattern(11)], rounds: 9 },
        ],
        code_share: Vec::new(),
        ..llc()
    };
    let code = |frame: u64| u16::from(byte(frame / 4).min(200));
    Contents { levels: vec![level], pages: blocks(&[0x4000], code, |_| 0), ..genoa() }
}

/// A run that was interrupted before anything was measured, on a machine that says nothing.
pub fn empty() -> Contents {
    let clock = Clock { hz: 0.0, tick_cycles: 0, overhead_cycles: 0.0 };
    Contents::begun(Reading::Measured, Machine::default(), clock)
}

/// Levels and matrices that were begun and hold nothing yet, or nothing that is a number.
pub fn hollow() -> Contents {
    let level = |form| LevelMap {
        form,
        reason: String::new(),
        method: String::new(),
        canonical_key: Vec::new(),
        bases: vec![Base { core: 0, patterns: vec![vec![f32::NAN; 64], Vec::new()], rounds: 0 }],
        core_base: vec![Some(0), Some(9)],
        code_share: vec![f32::NAN],
        quality: vec![Quality::default()],
        noise_cycles: f64::NAN,
        ..llc()
    };
    let odd = Cell { median: f64::NAN, lo: f64::NAN, hi: f64::NAN, p5: 0.0, p95: 0.0, n: 0 };
    let cut = matrix("cut short", names("core", 2), names("region", 1), vec![Some(odd)]);
    Contents {
        levels: vec![level(Form::Pattern), level(Form::PerLine), level(Form::Flat)],
        pages: Vec::new(),
        regions: vec![RegionMap { latency_ns: cut, ..region(2, 1, "random", |_, _| 1.0) }],
        transfers: vec![transfers(2, "modified", |_, _| None)],
        multiline: vec![MultiLineFit { points: Vec::new(), ..genoa().multiline[0].clone() }],
        interactions: interactions(0),
        placement: genoa().placement.map(|p| Placement { shape: "grid".into(), ..p }),
        quality: std::collections::BTreeMap::new(),
        drift: vec![DriftEvent { repaired_ms: None, dropped_samples: 0, ..event(0.0, 9, "x") }],
        ..genoa()
    }
}

/// All of them.
pub fn all() -> Vec<(&'static str, Contents)> {
    vec![
        ("wide", isochrone_atlas_store::made::wide(128, 2)),
        ("genoa", genoa()),
        ("mesh", mesh()),
        ("per line", per_line()),
        ("long period", long_period()),
        ("empty", empty()),
        ("hollow", hollow()),
    ]
}
