//! Which calls are simulated where shapes are compared, and by what plan.

use crate::collectives::{Collective, Options, Plan, PlanError};
use crate::program::Line;

/// Chunks of a message at most in the simulator: two show whether they flow.
pub(super) const CHUNKS_MOST: u32 = 2;

/// The plan that is simulated, of chunks of one line, and its calls by number, the last of which counts.
pub(super) fn judged(usual: &Plan, options: Options) -> Result<(Plan, Vec<u64>), PlanError> {
    let chunks = usual.bytes().div_ceil(options.chunk_bytes()).clamp(1, CHUNKS_MOST);
    let bytes = (chunks * Line::PAYLOAD_BYTES).min(usual.bytes());
    let calls = calls(usual.collective(), u64::from(options.ring), u64::from(chunks));
    let options = Options { chunk_lines: 1, ..options };
    let plan = Plan::new(usual.collective(), usual.ranks(), usual.root(), bytes & !7, options)?;
    Ok((plan, calls))
}

/// A call of `chunks` chunks that neither acknowledges nor looks at acknowledgements, in rings of `ring` slots, and
/// before it those that leave its lines as all earlier ones would: the call that used its slots before, and the one
/// just before it, which claimed them. Where rings are too short for that, all calls from the first on.
fn calls(collective: Collective, ring: u64, chunks: u64) -> Vec<u64> {
    // Chunk `s` of a call is looked at where `s = 1` modulo half a ring: these calls have chunks 2, 3 and 4, or
    // 3 to 6.
    let call = match (ring, chunks) {
        (8.., 1) => 2 * ring + 3,
        (16.., 2) => ring + 2,
        // It acknowledges: each call of such a ring does, or looks. What the one before it looks for, the earliest has
        // said.
        (8, 2) => ring + 1,
        _ => return (0..=ring + 1).collect(),
    };
    // A barrier's flags take turns between two lines.
    let earlier = if collective == Collective::Barrier { call - 2 } else { call - ring / chunks };
    vec![earlier, call - 1, call]
}
