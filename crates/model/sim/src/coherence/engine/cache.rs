//! A last-level cache at the grain of units: so many lines, the unit that was not used for the longest time
//! leaves first.

/// No slot.
pub(super) const NO_SLOT: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Slot {
    unit: u32,
    lines: u32,
    newer: u32,
    older: u32,
}

/// One cache.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    slots: Vec<Slot>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
    held: u64,
    limit: u64,
}

impl Cache {
    pub(super) fn new(lines: u32) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            newest: NO_SLOT,
            oldest: NO_SLOT,
            held: 0,
            limit: u64::from(lines),
        }
    }

    /// The unit that must leave so that `lines` more fit.
    pub(super) fn victim_for(&self, lines: u32) -> Option<u32> {
        let full = self.held + u64::from(lines) > self.limit && self.oldest != NO_SLOT;
        full.then(|| self.slots[self.oldest as usize].unit)
    }

    /// Takes a unit in, as the one used last; its slot.
    pub(super) fn insert(&mut self, unit: u32, lines: u32) -> u32 {
        let slot = Slot { unit, lines, newer: NO_SLOT, older: self.newest };
        let at = match self.free.pop() {
            Some(at) => {
                self.slots[at as usize] = slot;
                at
            }
            None => {
                self.slots.push(slot);
                u32::try_from(self.slots.len() - 1).unwrap_or(NO_SLOT)
            }
        };
        self.link_newest(at);
        self.held += u64::from(lines);
        at
    }

    fn link_newest(&mut self, at: u32) {
        match self.newest {
            NO_SLOT => self.oldest = at,
            newest => self.slots[newest as usize].newer = at,
        }
        self.newest = at;
    }

    fn unlink(&mut self, at: u32) {
        let Slot { newer, older, .. } = self.slots[at as usize];
        match newer {
            NO_SLOT => self.newest = older,
            newer => self.slots[newer as usize].older = older,
        }
        match older {
            NO_SLOT => self.oldest = newer,
            older => self.slots[older as usize].newer = newer,
        }
    }

    /// The unit in this slot was used.
    #[inline]
    pub(super) fn used(&mut self, at: u32) {
        if self.newest == at {
            return;
        }
        self.unlink(at);
        let newest = self.newest;
        let slot = &mut self.slots[at as usize];
        (slot.newer, slot.older) = (NO_SLOT, newest);
        self.link_newest(at);
    }

    /// The unit in this slot is gone.
    pub(super) fn remove(&mut self, at: u32) {
        self.unlink(at);
        self.held -= u64::from(self.slots[at as usize].lines);
        self.free.push(at);
    }

    /// The unit in this slot keeps `lines` lines; the rest has become `unit`, whose slot this returns, just
    /// as long ago used.
    pub(super) fn split(&mut self, at: u32, lines: u32, unit: u32) -> u32 {
        let whole = self.slots[at as usize];
        self.slots[at as usize].lines = lines;
        self.held -= u64::from(whole.lines - lines);
        let rest = self.insert(unit, whole.lines - lines);
        // From the newest place to the one just below its other half.
        self.unlink(rest);
        let older = self.slots[at as usize].older;
        let slot = &mut self.slots[rest as usize];
        (slot.newer, slot.older) = (at, older);
        self.slots[at as usize].older = rest;
        match older {
            NO_SLOT => self.oldest = rest,
            older => self.slots[older as usize].newer = rest,
        }
        rest
    }

    /// Lines held.
    #[cfg(test)]
    pub(super) const fn held(&self) -> u64 {
        self.held
    }

    /// Units from the one used last to the one used first.
    #[cfg(test)]
    pub(super) fn order(&self) -> Vec<u32> {
        let mut at = self.newest;
        std::iter::from_fn(|| {
            let slot = self.slots.get(at as usize)?;
            at = slot.older;
            Some(slot.unit)
        })
        .collect()
    }
}
