//! The stencil as its accesses to pages and the time between them.

use isochrone_sim::paging::Translation;
use isochrone_stats::{Xoshiro256PlusPlus, derive_seed, rng, uniform};

use super::actor::Thread;
use super::case::Part;
use crate::names::{Access, Actor, Group, Space};
use crate::pager::{Caller, Outcome, Pager};
use crate::pages::Trouble;

/// A worker's part of all sweeps.
pub(super) async fn sweep_all(thread: &Thread<'_>, pager: &Pager<'_>) -> Result<(), Trouble> {
    let case = thread.case;
    let number = u16::try_from(thread.number).unwrap_or(0);
    let space = Space(if case.separated { number } else { 0 });
    let caller = Caller { actor: Actor(number), space, worker: u32::from(number) };
    let mut random = rng(derive_seed(case.seed, u64::from(number)));
    let cut = |worker: u32| case.rows * worker / u32::from(case.workers);
    let band = cut(u32::from(number))..cut(u32::from(number) + 1);
    for sweep in 0..=case.sweeps {
        let grid = |second: u32, row: u32, column: u32| {
            Group((second * case.rows + row) * case.width + column)
        };
        let from = sweep % 2;
        for row in band.clone() {
            for column in 0..case.width {
                let last = (row + 1).min(case.rows - 1);
                for near in row.saturating_sub(1)..=last {
                    touch(thread, pager, caller, grid(from, near, column), Access::Read).await?;
                }
                touch(thread, pager, caller, grid(1 - from, row, column), Access::Write).await?;
                compute(thread, &mut random).await;
            }
        }
        thread.meet().await;
    }
    Ok(())
}

/// Arithmetic for a page of each grid.
async fn compute(thread: &Thread<'_>, random: &mut Xoshiro256PlusPlus) {
    let costs = &thread.case.costs;
    let spread = 1.0 + costs.spread * (2.0 * uniform(random) - 1.0);
    thread.work(2.0 * costs.compute * spread, Part::Other).await;
}

/// One access, with the faults that it needs.
async fn touch(
    thread: &Thread<'_>,
    pager: &Pager<'_>,
    caller: Caller,
    group: Group,
    access: Access,
) -> Result<(), Trouble> {
    let write = access == Access::Write;
    let space = caller.space.index();
    loop {
        let found = thread.world.borrow_mut().tables.access(thread.number, space, group.0, write);
        if found == Translation::Hit {
            return Ok(());
        }
        thread.parts.set(Default::default());
        thread.work(thread.case.costs.trap, Part::Other).await;
        let outcome = pager.fault(thread, caller, group, access).await?;
        if outcome == Outcome::Missing {
            let mut world = thread.world.borrow_mut();
            for (sum, part) in world.account.parts.iter_mut().zip(thread.parts.get()) {
                *sum += part;
            }
        }
    }
}
