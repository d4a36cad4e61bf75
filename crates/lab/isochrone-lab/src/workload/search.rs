//! A* from the start to its budget of nodes, again and again, each search with memory of its own.
//!
//! What is timed is what the paper timed: the search with its allocations, without giving them
//! back.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use isochrone_workloads::Nodes;
use isochrone_workloads::astar::{
    Ended, Found, Hashed, HashedShape, Linear, LinearShape, Puzzle, korf,
};

use super::request::Request;
use super::seat::{AccountOf, Done, Player};

/// One search; what it found and how long it took.
type Search<'a, N> = &'a mut dyn FnMut(&mut N, Puzzle, usize) -> Option<(Ended, Found, Duration)>;

macro_rules! shape {
    ($name:ident, $shape:ident, $search:ident) => {
        /// See [`super::work::Work`].
        pub(super) fn $name<N: Nodes<$shape>>(
            player: &Player,
            nodes: &mut N,
            account: AccountOf<'_, N>,
            request: &Request,
        ) -> Result<Option<Request>> {
            let mut one = |nodes: &mut N, board: Puzzle, budget: usize| {
                let begin = Instant::now();
                let mut search = $search::start(nodes, board, budget)?;
                let ended = search.run(nodes, &mut (), u64::MAX);
                let took = begin.elapsed();
                let found = search.found();
                search.clear(nodes);
                Some((ended, found, took))
            };
            work(player, nodes, account, request, &mut one)
        }
    };
}

shape!(hashed, HashedShape, Hashed);
shape!(linear, LinearShape, Linear);

/// A request of searches, then the next request, whatever it is.
fn work<N>(
    player: &Player,
    nodes: &mut N,
    account: AccountOf<'_, N>,
    request: &Request,
    one: Search<'_, N>,
) -> Result<Option<Request>> {
    let plan = Plan::of(request, player.place);
    player.together.wait();
    let mut done = plan?.searched(nodes, one)?;
    done.pool = account(nodes);
    Ok(player.next(done))
}

/// Which board, how many nodes, how often.
struct Plan {
    board: Puzzle,
    budget: usize,
    searches: u32,
}

impl Plan {
    fn of(request: &Request, place: usize) -> Result<Self> {
        let Request::Astar { budget, instances, searches, .. } = request else {
            anyhow::bail!("only A* searches boards");
        };
        let number = *instances.get(place).context("there are fewer instances than cores")?;
        let instance = korf(number)
            .with_context(|| format!("Korf has no instance {number}: there are 1 to 100"))?;
        let board = Puzzle::new(&instance.board)
            .with_context(|| format!("instance {number} is no board"))?;
        Ok(Self { board, budget: *budget, searches: *searches })
    }

    fn searched<N>(&self, nodes: &mut N, one: Search<'_, N>) -> Result<Done> {
        let mut done = Done { seconds: 0.0, operations: 0, checksum: 0, pool: None };
        for _ in 0..self.searches {
            let (ended, found, took) = one(nodes, self.board, self.budget)
                .context("the allocator refused the first node; allow more with --arena-limit")?;
            ensure!(
                matches!(ended, Ended::Solved | Ended::Budget),
                "a search ended early ({ended:?}); allow more memory with --arena-limit"
            );
            done.seconds += took.as_secs_f64();
            done.operations += found.expanded;
            done.checksum ^= found.checksum.rotate_left(1) ^ found.held;
        }
        Ok(done)
    }
}
