//! Operations on a structure: built, warmed up and then timed.

use std::time::Instant;

use anyhow::{Context, Result, bail};
use isochrone_workloads::structures::{Outcome, Size, Structure};

use super::request::Request;
use super::seat::{AccountOf, Done, Player};

const REFUSED: &str = "the allocator refused a node; allow more with --arena-limit";

/// See [`super::work::Work`].
pub(super) fn work<N, S: Structure<N>>(
    player: &Player,
    nodes: &mut N,
    account: AccountOf<'_, N>,
    request: &Request,
) -> Result<Option<Request>> {
    let Request::Structure { lines, seed, .. } = request else {
        player.together.wait();
        bail!("only structures have operations");
    };
    let Some(mut structure) = S::build(nodes, Size { lines: *lines, seed: *seed }) else {
        player.together.wait();
        bail!(REFUSED);
    };
    // The survey walks over all lines: once for what was built is enough.
    let mut pool = account(nodes);
    let mut now = request.clone();
    loop {
        let mut done = once(player, nodes, &mut structure, &now)?;
        done.pool = pool.take();
        match player.next(done) {
            Some(next) if next.has_memory_of(request) => now = next,
            other => {
                structure.clear(nodes);
                return Ok(other);
            }
        }
    }
}

fn once<N, S: Structure<N>>(
    player: &Player,
    nodes: &mut N,
    structure: &mut S,
    request: &Request,
) -> Result<Done> {
    let (warm, operations) = match request {
        Request::Structure { warm, operations, .. } => (*warm, *operations),
        _ => (0, 0),
    };
    let nothing = Outcome { operations: 0, checksum: 0 };
    let warmed = if warm > 0 { structure.run(nodes, warm) } else { Some(nothing) };
    player.together.wait();
    let warmed = warmed.context(REFUSED)?;
    let begin = Instant::now();
    let outcome = structure.run(nodes, operations);
    let seconds = begin.elapsed().as_secs_f64();
    let outcome = outcome.context(REFUSED)?;
    Ok(Done {
        seconds,
        operations: outcome.operations,
        checksum: outcome.checksum.rotate_left(1) ^ warmed.checksum,
        pool: None,
    })
}
