//! What it costs to move lines between cores, and to move much memory at once.
//!
//! A transfer follows the line's route through its home; everything else follows a stated
//! formula, so that a fit has a truth to be compared with. It is no coherence protocol: states
//! are what the caller says they are.

use isochrone_units::{CoreId, LineAddr, LineState};

/// Costs of everything between cores.
#[derive(Clone, Debug, PartialEq)]
pub struct TransferCosts {
    /// A transfer, beside its route.
    pub base_cycles: f64,
    /// What a modified line costs beyond a shared one that its home hands out.
    pub modified_cycles: f64,
    /// The same for an exclusive line.
    pub exclusive_cycles: f64,
    /// What every other pair that transfers at the same time adds; 0 where rounds of disjoint
    /// pairs may run in parallel.
    pub parallel_cycles: f64,
    /// Standard deviation of one transfer.
    pub sd_cycles: f64,
    /// Transfers of many lines.
    pub multi_line: MultiLine,
    /// Many cores and few lines.
    pub interactions: InteractionCosts,
    /// What the model of the CLa paper leaves out.
    pub terms: TermCosts,
    /// What one core can move, 10^9 bytes a second.
    pub core_gb_per_s: f64,
    /// What one region's memory can move, 10^9 bytes a second, where the region has no number of its own.
    pub region_gb_per_s: f64,
}

/// Equation (1) of the CLa paper: `T(n, N) = q + oN + cnN` for `N` lines and `n` readers.
#[derive(Clone, Debug, PartialEq)]
pub struct MultiLine {
    /// Start-up, once for all lines.
    pub q_cycles: f64,
    /// Each line.
    pub o_cycles: f64,
    /// Each line and reader.
    pub c_cycles: f64,
}

/// The interactions of section 2 of the CLa paper: one operation by `n` participants beside the
/// owner or poller costs `alone + more * (n - 1)`.
#[derive(Clone, Debug, PartialEq)]
pub struct InteractionCosts {
    /// The operation with one participant (R in the paper).
    pub alone_cycles: f64,
    /// Each further reader of the same line.
    pub contention_cycles: f64,
    /// Each further reader of other lines.
    pub congestion_cycles: f64,
    /// Each further core that polls the line that another one writes.
    pub reader_cycles: f64,
    /// Each further core that writes the line that another one polls.
    pub writer_cycles: f64,
    /// Each further owner of a shared line that is written. Section 2.3: the RFO "costs n R_R
    /// instead of R_R", so this is `alone_cycles` there.
    pub rfo_cycles: f64,
}

/// Costs that the model of the CLa paper leaves out; all of them 0 unless a machine is made to have them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TermCosts {
    /// An operation on a line that the core has itself.
    pub local_cycles: f64,
    /// What a load costs more while another core has the other half of the 128-byte pair.
    pub adjacent_cycles: f64,
    /// A load that misses brings the other half of the pair along.
    pub pair_prefetch: bool,
    /// What a write costs beyond a local one once somebody else has read the line.
    pub left_shared_cycles: f64,
    /// What a read costs beyond a local one once somebody else has read the line.
    pub left_read_cycles: f64,
    /// Each line after the first of loads that do not wait for one another.
    pub overlapped_cycles: f64,
    /// Cores from this one on sit in a second socket.
    pub second_socket: Option<u16>,
    /// What a transfer between sockets costs beyond its route.
    pub socket_cycles: f64,
    /// What a reader in the owner's socket pays more while one in the other socket reads the line too.
    pub remote_reader_cycles: f64,
}

impl TermCosts {
    /// Whether two cores sit in different sockets.
    #[must_use]
    pub fn apart(&self, a: CoreId, b: CoreId) -> bool {
        self.second_socket.is_some_and(|first| (a.0 < first) != (b.0 < first))
    }
}

/// Which interaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Interaction {
    /// Many readers of one line.
    Contention,
    /// Many readers of many lines.
    Congestion,
    /// Readers stealing a line that is written.
    Readers,
    /// Writers stealing a line that is polled.
    Writers,
    /// Writing a line that others share.
    RfoShared,
}

/// One line that `asker` gets from `owner`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The core that has it.
    pub owner: CoreId,
    /// The core that wants it.
    pub asker: CoreId,
    /// The line that is wanted.
    pub line: LineAddr,
    /// Its state at the owner's.
    pub state: LineState,
}

impl MultiLine {
    /// Cycles until `readers` have each got `lines` lines.
    #[must_use]
    pub fn cycles(&self, lines: u32, readers: u32) -> f64 {
        let (lines, readers) = (f64::from(lines), f64::from(readers));
        self.q_cycles + self.o_cycles * lines + self.c_cycles * readers * lines
    }
}

impl InteractionCosts {
    /// Cycles of one operation with `n` participants, 1 or more.
    #[must_use]
    pub fn cycles(&self, kind: Interaction, n: u32) -> f64 {
        let more = match kind {
            Interaction::Contention => self.contention_cycles,
            Interaction::Congestion => self.congestion_cycles,
            Interaction::Readers => self.reader_cycles,
            Interaction::Writers => self.writer_cycles,
            Interaction::RfoShared => self.rfo_cycles,
        };
        self.alone_cycles + more * f64::from(n.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::SyntheticSpec;

    #[test]
    fn formulas_are_the_ones_of_the_paper() {
        // Table 1 has q, o and c by scenario; here only the form matters.
        let multi = MultiLine { q_cycles: 100.0, o_cycles: 20.0, c_cycles: 3.0 };
        assert_eq!(multi.cycles(8, 4), 100.0 + 20.0 * 8.0 + 3.0 * 4.0 * 8.0);
        // Section 2.3: an RFO of a line shared by n costs n R_R, with R_R = 35 ns = 77 cycles.
        let xeon = SyntheticSpec::ring_e5_2660(1);
        let interactions = &xeon.transfers.interactions;
        assert_eq!(interactions.cycles(Interaction::RfoShared, 5), 5.0 * 77.0);
        assert_eq!(interactions.cycles(Interaction::Contention, 7), 77.0);
    }
}
