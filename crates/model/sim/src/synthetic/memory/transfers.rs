//! Transfers of lines, interactions and bandwidth, as a synthetic memory times them.

use isochrone_units::{CoreId, Cycles, LineAddr, LineState, RegionId};

use super::{SampleError, SyntheticMemory};
use crate::number::float;
use crate::synthetic::{Interaction, Transfer};

impl SyntheticMemory {
    /// Cycles of one transfer as cores sit now, without noise and overhead. Modified and
    /// exclusive lines are forwarded by their owner, shared ones handed out by their home.
    ///
    /// # Errors
    /// [`SampleError`] when there is no such core or line.
    pub fn truth_transfer(&self, transfer: Transfer) -> Result<f64, SampleError> {
        let Transfer { owner, asker, line, state } = transfer;
        self.check_core(owner)?;
        self.check_core(asker)?;
        self.check_line(line)?;
        if owner == asker {
            return Err(SampleError::SameCore { core: owner });
        }
        let (machine, costs) = (&self.spec.machine, &self.spec.transfers);
        let [from, to] = [owner, asker].map(|core| self.wears[usize::from(core.0)]);
        let slice = self.truth_home(line).map_or(0, |(slice, _)| slice);
        let sockets = f64::from(u8::from(costs.terms.apart(owner, asker)));
        Ok(costs.base_cycles
            + sockets * costs.terms.socket_cycles
            + match state {
                LineState::Modified => {
                    costs.modified_cycles + machine.forward_route(from, to, slice)
                }
                LineState::Exclusive => {
                    costs.exclusive_cycles + machine.forward_route(from, to, slice)
                }
                LineState::Shared => machine.home_route(to, slice),
            })
    }

    /// Median over the arena's first `lines` lines of [`Self::truth_transfer`]: the truth of one
    /// cell of a core-to-core matrix.
    ///
    /// # Errors
    /// [`SampleError`] when there is no such core or line.
    pub fn truth_transfer_median(
        &self,
        owner: CoreId,
        asker: CoreId,
        state: LineState,
        lines: &[LineAddr],
    ) -> Result<f64, SampleError> {
        let mut all = lines
            .iter()
            .map(|line| self.truth_transfer(Transfer { owner, asker, line: *line, state }))
            .collect::<Result<Vec<f64>, _>>()?;
        all.sort_by(f64::total_cmp);
        let middle = all.len() / 2;
        match (all.get(middle), all.len() % 2) {
            (Some(upper), 0) => Ok(0.5 * (upper + all[middle - 1])),
            (Some(median), _) => Ok(*median),
            (None, _) => Err(SampleError::Lengths { lines: 0, out: 1 }),
        }
    }

    /// Times transfers that run at the same time, one for each pair; pairs should be disjoint.
    /// `out[i]` is the raw reading of the asker of `transfers[i]`, overhead included.
    ///
    /// # Errors
    /// As for [`Self::sample`].
    pub fn sample_transfers(
        &mut self,
        transfers: &[Transfer],
        out: &mut [Cycles],
    ) -> Result<(), SampleError> {
        if transfers.len() != out.len() {
            return Err(SampleError::Lengths { lines: transfers.len(), out: out.len() });
        }
        transfers.iter().try_for_each(|transfer| self.truth_transfer(*transfer).map(|_| ()))?;
        self.apply_due();
        let others = float(transfers.len().saturating_sub(1));
        let (parallel, sd) =
            (self.spec.transfers.parallel_cycles * others, self.spec.transfers.sd_cycles);
        let mut longest: f64 = 0.0;
        for (transfer, out) in transfers.iter().zip(out) {
            let truth = self.truth_transfer(*transfer)? + parallel;
            let cycles = self.disturbed(truth, sd);
            let cycles = self.held_up(transfer.asker, cycles);
            longest = longest.max(cycles);
            *out = self.spec.timer.reading(cycles, &mut self.random);
        }
        // The owner first has to get the line into its state: about as long again.
        self.advance(2.0 * longest + self.spec.timer.overhead_cycles);
        let asker = transfers.first().map_or(CoreId(0), |transfer| transfer.asker);
        self.end_of_batch(asker)
    }

    /// Times `trips` round trips of a line between two cores, which go on while both of them run (raw, overhead
    /// included).
    ///
    /// # Errors
    /// As for [`Self::sample`].
    pub fn sample_round_trips(
        &mut self,
        transfer: Transfer,
        trips: u32,
    ) -> Result<Cycles, SampleError> {
        let truth = self.truth_transfer(transfer)?;
        self.apply_due();
        let half = self.disturbed(truth, self.spec.transfers.sd_cycles);
        let alone = 2.0 * f64::from(trips) * half;
        let held = self.held_up(transfer.asker, alone);
        let cycles = self.held_up(transfer.owner, held);
        self.advance(cycles + self.spec.timer.overhead_cycles);
        self.end_of_batch(transfer.asker)?;
        Ok(self.spec.timer.reading(cycles, &mut self.random))
    }

    /// Times one interaction of `n` participants on one of them (raw, overhead included). The truth is
    /// [`crate::synthetic::InteractionCosts::cycles`] of the spec.
    pub fn sample_interaction(&mut self, core: CoreId, kind: Interaction, n: u32) -> Cycles {
        let truth = self.spec.transfers.interactions.cycles(kind, n);
        self.sample_cycles(core, truth)
    }

    /// Times something on a core that takes `truth` cycles (raw, overhead included).
    pub fn sample_cycles(&mut self, core: CoreId, truth: f64) -> Cycles {
        self.apply_due();
        let cycles = self.disturbed(truth, self.spec.transfers.sd_cycles);
        let cycles = self.held_up(core, cycles);
        self.advance(cycles + self.spec.timer.overhead_cycles);
        self.spec.timer.reading(cycles, &mut self.random)
    }

    /// 10^9 bytes a second that `cores` together move to and from a region: what the cores can
    /// do, limited by what the region can.
    #[must_use]
    pub fn truth_bandwidth(&self, cores: &[CoreId], region: RegionId) -> Option<f64> {
        let costs = &self.spec.transfers;
        let own = self.spec.regions.get(usize::from(region.0))?.gb_per_s;
        let most = own.unwrap_or(costs.region_gb_per_s);
        Some((float(cores.len()) * costs.core_gb_per_s).min(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::SyntheticSpec;

    fn ring() -> SyntheticMemory {
        SyntheticMemory::new(SyntheticSpec::ring_knc(1).with_pages(64).noiseless()).unwrap()
    }

    fn transfer(owner: u16, asker: u16, line: u64, state: LineState) -> Transfer {
        Transfer { owner: CoreId(owner), asker: CoreId(asker), line: LineAddr(line), state }
    }

    #[test]
    fn transfers_follow_the_ring_through_the_home() {
        let ring = ring();
        let machine = &ring.spec().machine;
        let costs = &ring.spec().transfers;
        for line in 0..64 {
            let (slice, _) = ring.truth_home(LineAddr(line)).unwrap();
            let modified = ring.truth_transfer(transfer(3, 30, line, LineState::Modified)).unwrap();
            let route = machine.forward_route(3, 30, slice);
            assert_eq!(modified, costs.base_cycles + costs.modified_cycles + route);
        }
        let near = ring.truth_transfer_median(
            CoreId(3),
            CoreId(4),
            LineState::Modified,
            &(0..64).map(LineAddr).collect::<Vec<_>>(),
        );
        let far = ring.truth_transfer_median(
            CoreId(3),
            CoreId(33),
            LineState::Modified,
            &(0..64).map(LineAddr).collect::<Vec<_>>(),
        );
        assert!(near.unwrap() < far.unwrap());
    }

    #[test]
    fn noise_free_samples_are_the_truth_in_parallel_too() {
        let mut ring = ring();
        let all: Vec<Transfer> =
            (0..30).map(|i| transfer(i, 59 - i, u64::from(i), LineState::Exclusive)).collect();
        let mut out = vec![Cycles(0); all.len()];
        ring.sample_transfers(&all, &mut out).unwrap();
        let overhead = ring.timer().overhead_cycles;
        for (transfer, reading) in all.iter().zip(out) {
            let truth = ring.truth_transfer(*transfer).unwrap();
            assert!((f64::from(reading.0) - overhead - truth).abs() <= 0.5);
        }
    }

    #[test]
    fn interference_between_pairs_shows_when_it_is_switched_on() {
        let mut spec = SyntheticSpec::ring_knc(1).with_pages(64).noiseless();
        spec.transfers.parallel_cycles = 10.0;
        let mut ring = SyntheticMemory::new(spec).unwrap();
        let pair = transfer(0, 1, 5, LineState::Modified);
        let mut alone = [Cycles(0)];
        ring.sample_transfers(&[pair], &mut alone).unwrap();
        let mut both = [Cycles(0); 2];
        let other = transfer(2, 3, 5, LineState::Modified);
        ring.sample_transfers(&[pair, other], &mut both).unwrap();
        assert_eq!(both[0].0, alone[0].0 + 10);
    }

    #[test]
    fn a_line_is_not_transferred_to_its_owner() {
        let same = transfer(4, 4, 0, LineState::Shared);
        let refused = ring().truth_transfer(same);
        assert_eq!(refused, Err(SampleError::SameCore { core: CoreId(4) }));
    }

    #[test]
    fn bandwidth_grows_with_cores_until_the_region_is_full() {
        let ring = ring();
        let cores: Vec<CoreId> = (0..60).map(CoreId).collect();
        let costs = ring.spec().transfers.clone();
        let of = |n: usize| ring.truth_bandwidth(&cores[..n], RegionId(0)).unwrap();
        assert_eq!(of(2), 2.0 * costs.core_gb_per_s);
        assert_eq!(of(60), costs.region_gb_per_s);
        assert_eq!(ring.truth_bandwidth(&cores, RegionId(1)), None);
    }
}
