//! What goes over the machine, by kind.

use super::message::Kind;

/// Messages of a run. Each is counted where it is sent; what stays inside one core is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Requests to read or own.
    pub requests: u64,
    /// Snoops: a core is asked for its copy.
    pub snoops: u64,
    /// Answers to snoops.
    pub responses: u64,
    /// Lines from one core to another.
    pub transfers: u64,
    /// Those that went from one socket to another.
    pub far_transfers: u64,
    /// Lines from memory.
    pub fetches: u64,
}

impl Traffic {
    pub(super) fn count(&mut self, kind: Kind, far: bool) {
        match kind {
            Kind::Request(_) => self.requests += 1,
            Kind::SnoopRead | Kind::SnoopOwn { .. } => self.snoops += 1,
            Kind::Response { supplied, .. } => {
                self.responses += 1;
                self.transfers += u64::from(supplied);
                self.far_transfers += u64::from(supplied && far);
            }
            Kind::Memory { .. } => self.fetches += 1,
            _ => {}
        }
    }
}
