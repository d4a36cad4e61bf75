//! How much is done in vain where pages cannot leave: on a medium that is full, or under a device. Each page that is
//! taken out, refused and put back costs about as much as a part of a fault, and a program whose medium is full has all
//! its faults yet to come. So tries are paid for by faults, and while they are owed a frame is lent at once.

use core::sync::atomic::{AtomicU32, Ordering};

/// Pages that may be tried in vain for one fault. Each costs a fraction of a fault, so faults get a few times dearer at
/// most. With fewer more is lent: room is still found where one page in so many and one can leave.
pub(super) const IN_VAIN: u32 = 4;
/// What is owed at most, so that room which comes again is used after so many faults by [`IN_VAIN`].
const OWED_MOST: u32 = 1024;

/// Pages that were tried in vain, and that no fault has paid for yet.
#[derive(Debug, Default)]
pub(super) struct Patience(AtomicU32);

impl Patience {
    /// So many pages were to leave, and could not.
    pub(super) fn lose(&self, pages: u32) {
        self.change(|owed| owed.saturating_add(pages).min(OWED_MOST));
    }

    /// A fault pays.
    pub(super) fn pay(&self) {
        if self.is_lost() {
            self.change(|owed| owed.saturating_sub(IN_VAIN));
        }
    }

    /// Nothing more is tried until faults have paid.
    pub(super) fn is_lost(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    fn change(&self, next: impl Fn(u32) -> u32) {
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |owed| Some(next(owed)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_are_paid_for_by_faults_and_come_again() {
        let patience = Patience::default();
        let faults_until_tried = |lost: u32| {
            patience.lose(lost);
            let mut faults = 0;
            while patience.is_lost() {
                patience.pay();
                faults += 1;
            }
            faults
        };
        assert_eq!(faults_until_tried(0), 0);
        assert_eq!(faults_until_tried(1), 1);
        assert_eq!(faults_until_tried(32), 32 / IN_VAIN);
        assert_eq!(faults_until_tried(u32::MAX), OWED_MOST / IN_VAIN);
        assert_eq!(faults_until_tried(32), 32 / IN_VAIN, "nothing is left of before");
    }
}
