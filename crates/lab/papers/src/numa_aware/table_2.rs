//! Table 2 out of the model.

use isochrone_sim::coherence::{Distance, NumaSpec};
use isochrone_workloads::numa::table2::{Range, Triad, latency_ns, triad_gbs, triad_over_switches};

/// Table 2 out of the model.
#[derive(Clone, Debug)]
pub(crate) struct Table2 {
    /// Latency and bandwidth, local, near and far.
    pub(crate) by_distance: Vec<(Range, Range)>,
    /// STREAM over all switches.
    pub(crate) switches: Triad,
}

impl Table2 {
    pub(super) fn of(spec: &NumaSpec) -> Self {
        let distances = [Distance::Local, Distance::Near, Distance::Far];
        let both = |distance| Some((latency_ns(spec, distance)?, triad_gbs(spec, distance)?));
        Self {
            by_distance: distances.into_iter().filter_map(both).collect(),
            switches: triad_over_switches(spec),
        }
    }
}
