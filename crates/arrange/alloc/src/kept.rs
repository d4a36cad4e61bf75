//! Slots between a heap and its depots: what cores keep, and what goes home to the cores that had it.

use crate::class::SizeClass;
use crate::depot::{BATCH_SLOTS, Depot};
use crate::heap::Heap;
use crate::slot::Slot;
use crate::sync::Ordering::Relaxed;

impl<'a> Heap<'a> {
    /// The depot of what a core keeps of a class: that of all where the core has no order.
    fn depot(&self, core: u16, class: SizeClass) -> &'a Depot {
        let table = self.core(core).filter(|table| {
            let order = &table.orders[class.unit() as usize];
            order.count.load(Relaxed) > 0
        });
        table.map_or(&self.tables.shared.depot, |table| &table.depot)
    }

    /// Gives slots back that threads of a core would keep, from any thread: to the core's depot
    /// while there is room, else to their bins.
    pub(crate) fn give_to(&self, core: u16, class: SizeClass, slots: &[u32]) {
        let depot = self.depot(core, class);
        for batch in slots.chunks(BATCH_SLOTS) {
            // Not of a checked heap: only bins notice what is freed twice.
            if self.policy.checked || !depot.put(class, batch) {
                self.give_back(class, batch);
            }
        }
    }

    /// Takes slots out of the depot of a core.
    pub(crate) fn take_kept(&self, core: u16, class: SizeClass, out: &mut [u32]) -> usize {
        self.depot(core, class).take(class, out)
    }

    /// Takes slots out of any depot: what is kept for others, where nothing else is free.
    pub(crate) fn take_any_kept(&self, class: SizeClass, out: &mut [u32]) -> usize {
        let cores = self.tables.cores.iter().map(|table| &table.depot);
        let mut depots = core::iter::once(&self.tables.shared.depot).chain(cores);
        depots
            .find_map(|depot| Some(depot.take(class, out)).filter(|&taken| taken > 0))
            .unwrap_or(0)
    }

    /// Gives slots home that the core `from` does not keep: to the depots of the cores that they
    /// were last taken for. What was taken for `from` itself is not near it any more and goes to
    /// its bin, and so does what nobody knows of.
    pub(crate) fn give_home(&self, from: u16, class: SizeClass, slots: &mut [u32]) {
        let owner = |slot: u32| {
            let owner = self.tables.owners.get(Slot(slot).line() as usize);
            let tag = owner.map_or(0, |owner| owner.load(Relaxed));
            // The largest tag is that of all cores that cannot be told apart.
            let core = tag.checked_sub(1).filter(|_| tag < u8::MAX).map(u16::from);
            core.filter(|&core| core != from)
        };
        let mut rest = slots;
        while let Some(&first) = rest.first() {
            let home = owner(first);
            let mut same = 0;
            for place in 0..rest.len() {
                if owner(rest[place]) == home {
                    rest.swap(same, place);
                    same += 1;
                }
            }
            // Owners may change meanwhile; the first is its own at least.
            let (batch, others) = rest.split_at_mut(same.max(1));
            match home.filter(|&core| self.core(core).is_some()) {
                Some(core) => self.give_to(core, class, batch),
                None => {
                    self.give_back(class, batch);
                }
            }
            rest = others;
        }
    }
}
