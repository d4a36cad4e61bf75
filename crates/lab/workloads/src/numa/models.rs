//! What the kernels of the five benchmarks do beside what they declare: how fast they compute, and how often
//! they go to memory for each range.

use std::collections::BTreeMap;
use std::sync::Mutex;

use isochrone_sim::coherence::NumaSpec;
use isochrone_tasks::simulated::{KernelModel, Scratch};

use super::blocked::{Blocked, Traced};

/// Bytes of a core's second level (the paper, section 3.2).
const SECOND_BYTES: u64 = 256 << 10;

/// Kernels on tiles, and what kind of blocked kernel each is.
const TILES: [(&str, Blocked); 12] = [
    ("factor", Blocked::Factor),
    ("solve", Blocked::Solve),
    ("update diagonal", Blocked::UpdateDiagonal),
    ("update", Blocked::Update),
    ("solve negated", Blocked::Solve),
    ("solve left", Blocked::Solve),
    ("add product", Blocked::Update),
    ("invert", Blocked::Factor),
    ("add square", Blocked::UpdateDiagonal),
    ("add transposed", Blocked::Update),
    ("multiply transposed", Blocked::Solve),
    ("square", Blocked::Factor),
];

/// Where passes over tiles come from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Passes {
    /// One blocked kernel, line by line through one core's caches.
    #[default]
    Traced,
    /// The same without the buffers that a kernel packs tiles into.
    TilesOnly,
    /// Every tile once: nothing but what must be moved.
    Once,
    /// So often, every tile: an ablation.
    Uniform(f32),
}

/// The models of all kernels on tiles of `width` rows, where `threads` cores of a node share its cache.
#[must_use]
pub fn kernels(spec: &NumaSpec, width: u64, threads: u64, how: Passes) -> Vec<KernelModel> {
    let llc = spec.nodes.iter().map(|node| u64::from(node.llc_lines) * 64).min().unwrap_or(0);
    let share = llc / threads.max(1);
    let model = |(name, kind): (&'static str, Blocked)| {
        let traced = traced(kind, width, share);
        let scratch = Scratch {
            bytes: traced.packed_bytes,
            written: traced.packed_written,
            read: traced.packed_read,
        };
        let (passes, scratch) = match how {
            // A tile that the core's caches hold already may be fetched less than once; the engine knows
            // itself which tiles are there.
            Passes::Traced => {
                (traced.passes.into_iter().map(|often| often.max(1.0)).collect(), Some(scratch))
            }
            Passes::TilesOnly => {
                (traced.passes.into_iter().map(|often| often.max(1.0)).collect(), None)
            }
            Passes::Once => (vec![1.0; traced.passes.len()], None),
            Passes::Uniform(often) => (vec![often; traced.passes.len()], None),
        };
        KernelModel { name, flops_per_ns: spec.rates.blocked, passes, scratch }
    };
    TILES.into_iter().map(model).collect()
}

/// A traced kernel, traced once in a process for each size.
fn traced(kind: Blocked, width: u64, share: u64) -> Traced {
    type Known = BTreeMap<(Blocked, u64, u64), Traced>;
    static KNOWN: Mutex<Known> = Mutex::new(BTreeMap::new());
    let look = |known: &Known| known.get(&(kind, width, share)).cloned();
    if let Some(found) = KNOWN.lock().ok().as_deref().and_then(look) {
        return found;
    }
    let found = super::blocked::traced(kind, width, SECOND_BYTES, share);
    if let Ok(mut known) = KNOWN.lock() {
        known.insert((kind, width, share), found.clone());
    }
    found
}
