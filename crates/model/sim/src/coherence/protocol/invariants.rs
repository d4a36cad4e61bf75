//! What must hold after every step, whatever the order of messages.

use super::agents::{Cached, Exported, Pending, State};
use super::line::Line;
use super::message::Word;

/// An invariant that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A cache may write while another has a copy.
    WriterNotAlone,
    /// Two caches forward.
    TwoForward,
    /// A readable copy is not what was written last.
    OldData,
    /// A module has a copy that its home's switch does not list.
    ExportNotListed,
    /// A module may write, and the switch does not know that it is alone.
    OwnerNotListed,
    /// A socket of the home's module has a copy that the memory's bits do not show.
    NearNotListed,
    /// A copy is outside, and the memory's bits do not show it.
    ExportNotInMemory,
    /// Nothing is under way, and somebody waits.
    Stuck,
    /// Nothing is under way, and no copy anywhere has the last data.
    DataLost,
    /// More read requests ended than were asked, or one never did.
    RequestsNotEnded,
}

impl Line<'_> {
    /// Checks the invariants.
    ///
    /// # Errors
    /// The first that does not hold.
    pub fn check(&self) -> Result<(), Violation> {
        self.check_copies()?;
        self.check_directories()?;
        if self.wrong_read {
            return Err(Violation::OldData);
        }
        if self.reads_ended > self.reads_asked {
            return Err(Violation::RequestsNotEnded);
        }
        if self.is_quiet() { self.check_rest() } else { Ok(()) }
    }

    fn check_copies(&self) -> Result<(), Violation> {
        let states = || self.caches.iter().map(|cached| cached.state);
        let copies = states().filter(|state| *state != State::Invalid).count();
        if copies > 1 && states().any(|s| matches!(s, State::Exclusive | State::Modified)) {
            return Err(Violation::WriterNotAlone);
        }
        if states().filter(|state| *state == State::Forward).count() > 1 {
            return Err(Violation::TwoForward);
        }
        let old = |cached: &&Cached| cached.state != State::Invalid && !cached.fresh;
        if self.caches.iter().any(|cached| old(&cached)) {
            return Err(Violation::OldData);
        }
        Ok(())
    }

    fn check_directories(&self) -> Result<(), Violation> {
        for (node, cached) in (0_u8..).zip(&self.caches) {
            if cached.state == State::Invalid || node == self.home_node {
                continue;
            }
            let alone = matches!(cached.state, State::Exclusive | State::Modified);
            if self.is_inside(node) {
                let listed = self.home.near.has(node) && (!alone || self.home.near_alone);
                if !listed {
                    return Err(Violation::NearNotListed);
                }
                continue;
            }
            if !self.topology.beside(self.switch.holders).has(node) {
                return Err(Violation::ExportNotListed);
            }
            if alone && !self.switch.alone {
                return Err(Violation::OwnerNotListed);
            }
            let shown = match alone {
                true => self.home.exported == Exported::Any,
                false => self.home.exported != Exported::No,
            };
            if !shown {
                return Err(Violation::ExportNotInMemory);
            }
        }
        Ok(())
    }

    /// Nothing is under way: nobody waits, and the last data are somewhere.
    fn check_rest(&self) -> Result<(), Violation> {
        let waits = self.caches.iter().any(|cached| cached.pending != Pending::Nothing);
        let busy = self.home.work.is_some()
            || self.switch.work.is_some()
            || self.switch.served.is_some()
            || self.switch.deferred.is_some()
            || !self.home.waiting.is_empty()
            || !self.switch.waiting.is_empty();
        if waits || busy {
            return Err(Violation::Stuck);
        }
        let has = |cached: &Cached| cached.state != State::Invalid && cached.fresh;
        if !self.home.fresh && !self.caches.iter().any(has) {
            return Err(Violation::DataLost);
        }
        if self.reads_asked != self.reads_ended {
            return Err(Violation::RequestsNotEnded);
        }
        Ok(())
    }

    /// Whether a message for somebody carries data that are not the last.
    #[must_use]
    pub fn old_data_under_way(&self) -> bool {
        self.net.iter().any(|message| matches!(message.word, Word::Data { fresh: false, .. }))
    }
}
