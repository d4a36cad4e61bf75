//! The paper's numbers: P. Caheny et al., "Reducing Cache Coherence Traffic with a NUMA-Aware Runtime
//! Approach", IEEE TPDS 2018. Each with the place where it stands.

use isochrone_workloads::numa::Bench;

/// What Tables 3a and 3b say of one benchmark at 288 threads: speed-up, and changes in percent of DWB, DTC,
/// control and total movement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) bench: Bench,
    pub(crate) speedup: f64,
    pub(crate) dwb: f64,
    pub(crate) dtc: f64,
    pub(crate) control: f64,
    pub(crate) total: f64,
}

const fn change(bench: Bench, speedup: f64, [dwb, dtc, control, total]: [f64; 4]) -> Change {
    Change { bench, speedup, dwb, dtc, control, total }
}

/// Table 3a: NAFT against DFT.
pub(crate) const AGAINST_DFT: [Change; 5] = [
    change(Bench::Cholesky, 9.97, [-94.0, -65.0, -63.0, -73.0]),
    change(Bench::Smi, 6.76, [-32.0, -30.0, -34.0, -31.0]),
    change(Bench::Streamcluster, 314.0 / 100.0, [137.0, 63.0, -23.0, 26.0]),
    change(Bench::Jacobi, 4.46, [-99.0; 4]),
    change(Bench::Inthist, 6.19, [-99.0; 4]),
];
/// Table 3b: NAFT against DI.
pub(crate) const AGAINST_DI: [Change; 5] = [
    change(Bench::Cholesky, 2.66, [-98.0, -89.0, -86.0, -91.0]),
    change(Bench::Smi, 1.81, [-74.0, -76.0, -72.0, -75.0]),
    change(Bench::Streamcluster, 1.91, [233.0, -29.0, -27.0, -25.0]),
    change(Bench::Jacobi, 4.57, [-99.0; 4]),
    change(Bench::Inthist, 3.15, [-99.0; 4]),
];

/// Table 2: distance, latency with its extremes (ns), bandwidth with its extremes (GB/s).
pub(crate) const TABLE_2: [(&str, [f64; 3], [f64; 3]); 3] = [
    ("local", [125.6, 124.0, 127.0], [41.3, 41.1, 41.6]),
    ("near", [178.0, 177.0, 180.0], [25.0, 24.5, 25.1]),
    ("far", [416.0, 410.0, 428.0], [4.6, 4.4, 4.8]),
];

/// Most through all switches together, each way, GB/s (section 6.1).
pub(crate) const ALL_SWITCHES: f64 = 275.0;
/// SMI under DI with 288 threads, and about what Jacobi and the histogram have under DI with 96, GB/s, in and
/// out (section 6.2).
pub(crate) const PEAKS: [(Bench, u16, f64); 3] =
    [(Bench::Smi, 288, 455.0), (Bench::Jacobi, 96, 400.0), (Bench::Inthist, 96, 400.0)];

/// Bandwidth and movement of NAFT in percent of DI's, with 96 and with 288 threads (sections 6.2.1 to 6.2.3).
/// Over 100 is all that is said of one cell.
pub(crate) const OF_DI: [(Bench, [f64; 2], [f64; 2]); 3] = [
    (Bench::Cholesky, [17.0, 17.0], [25.0, 9.4]),
    (Bench::Smi, [59.0, 58.0], [45.0, 25.0]),
    (Bench::Streamcluster, [75.0, 66.0], [f64::NAN, 74.0]),
];

/// Most bandwidth and movement of NAFT in percent of DFT's or DI's, at any number of threads (sections 6.2.4
/// and 6.2.5).
pub(crate) const AT_MOST: [(Bench, f64, f64); 2] =
    [(Bench::Jacobi, 1.1, 0.3), (Bench::Inthist, 1.8, 0.8)];

/// The most that NAFT reaches over DFT with 16 threads, and with how many threads (section 6.2).
pub(crate) const NAFT_PEAKS: [(Bench, f64, u16); 5] = [
    (Bench::Cholesky, 7.8, 256),
    (Bench::Smi, 4.9, 192),
    (Bench::Streamcluster, 5.0, 192),
    (Bench::Jacobi, 8.2, 288),
    (Bench::Inthist, 7.1, 160),
];
/// The same of DI: where it is (`None`: not said), how high it is (NaN: not said).
pub(crate) const DI_PEAKS: [(Bench, f64, Option<u16>); 5] = [
    (Bench::Cholesky, f64::NAN, Some(96)),
    (Bench::Smi, f64::NAN, Some(96)),
    (Bench::Streamcluster, 3.9, Some(128)),
    (Bench::Jacobi, 2.0, None),
    (Bench::Inthist, 2.2, Some(128)),
];
/// The most that DFT reaches (section 6.2); of the solvers it is said that they gain nothing beyond 32.
pub(crate) const DFT_AT_MOST: [(Bench, f64); 3] =
    [(Bench::Streamcluster, 1.9), (Bench::Jacobi, 2.0), (Bench::Inthist, 1.4)];
/// Jacobi under NAFT (section 6.2.4).
pub(crate) const JACOBI_NAFT: [(u16, f64); 3] = [(16, 1.9), (96, 6.9), (288, 8.2)];
/// The numbers of threads of the paper: 16, then multiples of 32 (research, section 5).
pub const THREADS: [u16; 10] = [16, 32, 64, 96, 128, 160, 192, 224, 256, 288];
/// Threads of the traffic figures.
pub(crate) const FIGURE_THREADS: [u16; 3] = [16, 96, 288];
