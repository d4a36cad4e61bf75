//! The predicted band of each cell, from what lines and the way through the MPI's interface cost in the round of a
//! sample.
//!
//! `T_min` takes the cheapest line that was looked at and half of what a call costs beside its operations,
//! `T_max` the dearest and all of it, as `verify model` does (docs/method/cla-band.md). Calls of a ring differ: some
//! acknowledge. Each is held against the band of its own place in the ring.

use std::collections::BTreeMap;

use anyhow::Result;
use isochrone_cla::live::Kind;
use isochrone_cla::predicted::{Band, Rules, Start, predict};
use isochrone_cla::program::Line;
use isochrone_machine::{ClassCost, LineCosts, PairClass};

use super::yardstick::Transfer;
use crate::calls::{self, Call};

/// A load that hits the first level of cache (see `line_costs`).
const LOCAL_CYCLES: f64 = 5.0;
/// Transfers that differ by less have one band: so each is priced once.
const STEP_NS: f64 = 0.5;
/// The same for several lines at once, as a share: their programs are large.
const STEP: f64 = 0.02;

/// The costs with such a transfer, and with `line_ns` for each line that comes with the one before it.
fn table(transfer_ns: f64, line_ns: f64, local_ns: f64) -> LineCosts {
    // All lines are in caches.
    let class = ClassCost {
        transfer_ns,
        memory_ns: transfer_ns,
        start_ns: 0.0,
        line_ns,
        congestion_ns: 0.0,
    };
    let mut costs = LineCosts::new(2, vec![class], local_ns, |_, _| PairClass(0));
    // Half of a transfer is the request, half the answer.
    costs.added.request_ns = transfer_ns / 2.0;
    costs
}

/// The bands of one collective between two ranks, priced when they are asked for.
pub(super) struct Bands {
    bytes: usize,
    /// Every call of a ring as the library does it.
    ring: Vec<Call>,
    /// Without what a call costs beside its operations, by place in the ring and steps of a transfer and a line.
    known: BTreeMap<(usize, i64, i64), Band>,
}

impl Bands {
    /// With rank 0 as the root, over 64-bit integers.
    pub(super) fn of(kind: Kind, bytes: usize) -> Result<Self> {
        Ok(Self { bytes, ring: calls::ring(kind, bytes)?, known: BTreeMap::new() })
    }

    /// The band of call `number` of a channel, of which each costs `call_ns` beside its operations.
    pub(super) fn band(&mut self, number: u64, transfer: &Transfer, call_ns: f64) -> Result<Band> {
        let place = usize::try_from(number % u64::try_from(self.ring.len())?)?;
        let local_ns = LOCAL_CYCLES * transfer.cycle_ns;
        let [few, many] =
            transfer.message(self.bytes).map_or([transfer.least_ns, transfer.most_ns], |message| {
                message.line_ns(transfer.least_ns)
            });
        let least = self.priced(place, transfer.least_ns, few, local_ns)?;
        let most = self.priced(place, transfer.most_ns, many, local_ns)?;
        Ok(Band { min_ns: least.min_ns + call_ns / 2.0, max_ns: most.max_ns + call_ns })
    }

    fn priced(&mut self, place: usize, ns: f64, line_ns: f64, local_ns: f64) -> Result<Band> {
        let (ns, line_ns, steps) = if self.bytes > Line::PAYLOAD_BYTES as usize {
            let share = |ns: f64| (ns.max(0.1).ln() / STEP).round();
            let back = |steps: f64| (steps * STEP).exp();
            (back(share(ns)), back(share(line_ns)), [share(ns), share(line_ns)])
        } else {
            (ns, line_ns, [(ns / STEP_NS).round(), 0.0])
        };
        #[allow(
            clippy::cast_possible_truncation,
            reason = "transfers are some hundred nanoseconds"
        )]
        let key = (place, steps[0] as i64, steps[1] as i64);
        if let Some(band) = self.known.get(&key) {
            return Ok(*band);
        }
        let Call { now, warm } = &self.ring[place];
        let table = table(ns, line_ns, local_ns);
        let start = Start::AfterEach(warm);
        let band = predict(now, start, &table, &[0, 1], Rules::Timed)?.posted_band();
        self.known.insert(key, band);
        Ok(band)
    }
}
