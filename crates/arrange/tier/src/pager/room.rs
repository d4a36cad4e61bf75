//! A frame for a group that is to come. While there is none and nothing can leave the caller waits, for as
//! long as somebody who lives may give one back: also for one that is stopped. Only where every frame is
//! pinned nothing will ever leave, and that is an error.

use super::{Caller, Pager};
use crate::directory::State;
use crate::names::{Group, Run};
use crate::pages::{Pages, Trouble};

/// Batches that may fail, one after the other, before the program is told: others may be clean.
const FAILURES: u32 = 4;
/// Waits without a frame before all entries are looked at: a look goes through the whole directory.
const WAITS: u32 = 4;
/// Looks that must agree that every frame is pinned: entries change while they are looked at.
const AGREEING: u32 = 2;
/// The same where somebody died, who may have had frames in hand that nobody gives back, or groups that
/// stand on no list. Somebody who lives needs far less to give back or to list them.
const AGREEING_BESIDE_DEAD: u32 = 20;

/// What the directory lets one hope for who waits for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outlook {
    /// Somebody can give a frame back, or a group can leave.
    Hopeful,
    /// Every frame holds a group that is pinned.
    Pinned,
    /// What is in memory is pinned, and the other frames are in nobody's entries: in the hands of
    /// somebody who is about to give them back, or of the dead.
    InHand,
}

/// How often one after the other the outlook was the same.
#[derive(Clone, Copy, Debug)]
struct Looks {
    outlook: Outlook,
    alike: u32,
}

impl Looks {
    fn add(&mut self, outlook: Outlook) {
        self.alike = if self.outlook == outlook { self.alike.saturating_add(1) } else { 1 };
        self.outlook = outlook;
    }
}

impl Pager<'_> {
    /// Takes a frame, and makes one free if there is none.
    ///
    /// # Errors
    /// [`Trouble::Pinned`] where every frame is; the far tier's or the kernel's, where nothing could leave.
    pub(super) async fn frame<P: Pages>(&self, pages: &P, caller: Caller) -> Result<(), Trouble> {
        let (mut failures, mut waits, mut announced) = (0, 0, None);
        let mut looks = Looks { outlook: Outlook::Hopeful, alike: 0 };
        loop {
            if self.frames.take(1) == 1 {
                return Ok(());
            }
            match self.evict(pages, caller, self.plan.batch).await {
                Ok(0) => {}
                Ok(freed) => {
                    self.give(pages, freed - 1);
                    return Ok(());
                }
                Err(trouble) => {
                    failures += 1;
                    if failures == FAILURES {
                        return Err(trouble);
                    }
                    continue;
                }
            }
            // A victim may have come between the look and the sleep: so it is announced, looked for once
            // more, and only then slept.
            let Some(value) = announced.take() else {
                announced = self.frames.announce();
                continue;
            };
            pages.wait(self.frames.0, value).await;
            waits += 1;
            if waits % WAITS == 0 {
                looks.add(self.outlook(pages, caller).await);
                match looks {
                    Looks { outlook: Outlook::Pinned, alike: AGREEING.. } => {
                        return Err(Trouble::Pinned);
                    }
                    Looks { alike: AGREEING_BESIDE_DEAD, outlook } if pages.somebody_died() => {
                        if outlook == Outlook::InHand {
                            return Err(Trouble::Pinned);
                        }
                        self.list_all(pages, caller).await;
                        looks.alike = 0;
                    }
                    _ => {}
                }
            }
        }
    }

    /// Looks at every entry, and takes over what the dead own: a frame may be among it.
    async fn outlook<P: Pages>(&self, pages: &P, caller: Caller) -> Outlook {
        let mut pinned = 0;
        for group in (0..self.shape.groups).map(Group) {
            let seen = self.directory.look(group);
            match seen.state() {
                State::Absent | State::Seeking => {}
                State::Resident if self.directory.is_pinned(group) => pinned += 1,
                State::Resident => return Outlook::Hopeful,
                _ => {
                    if pages.is_dead(seen.owner()) {
                        // What cannot be had is told to who touches it.
                        let _ = self.rescue(pages, caller, group, seen).await;
                    }
                    return Outlook::Hopeful;
                }
            }
        }
        if pinned >= self.shape.frames { Outlook::Pinned } else { Outlook::InHand }
    }

    /// Lists what is in memory and may stand on no list, because who brought it died.
    async fn list_all<P: Pages>(&self, pages: &P, caller: Caller) {
        for group in (0..self.shape.groups).map(Group) {
            if self.directory.look(group).state() == State::Resident {
                self.enlist(pages, caller, Run::of(group)).await;
            }
        }
    }
}
