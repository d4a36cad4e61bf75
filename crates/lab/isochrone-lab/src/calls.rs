//! The calls of a team of two ranks, recorded as the team does them: what bands are predicted for.

use anyhow::Result;
use isochrone_cla::live::{Kind, Settings, Team};
use isochrone_cla::program::{Combine, Element, Rank, Recorded, record};

/// A call of a ring, recorded with the calls before it.
pub(crate) struct Call {
    pub(crate) now: Recorded,
    pub(crate) warm: Vec<Recorded>,
}

/// Every call of a ring between two ranks, with rank 0 as the root and over 64-bit integers: of the plan that such a
/// team chooses by itself. A ring has been gone round twice before.
pub(crate) fn ring(kind: Kind, bytes: usize) -> Result<Vec<Call>> {
    let mut team = Team::threads(2, &Settings::default())?;
    let plan = team[0].plan(kind, Rank(0), bytes)?;
    let whole = u32::try_from(bytes)?;
    let one = |call: u64| {
        record(2, |lines, me| {
            let member = plan.member(me);
            let before = call * member.chunks(whole);
            member.call(lines, before, whole, Combine::Sum(Element::I64))
        })
    };
    let slots = u64::from(plan.options().ring);
    let call = |call: u64| Call { now: one(call), warm: (0..call).map(one).collect() };
    Ok((2 * slots..3 * slots).map(call).collect())
}
