//! What is done with nodes of each shape: operations on a structure, or searches of boards.

use anyhow::Result;
use isochrone_workloads::astar::{HashedShape, LinearShape};
use isochrone_workloads::structures::{
    BarnesHut, BarnesHutShape, Chase, ChaseShape, Em3d, Em3dShape, Lru, LruShape, Mcts, MctsShape,
    SearchTree, SkipList, SkipListShape, TreeShape,
};
use isochrone_workloads::{Boxed, Chest, Nodes, Shape};

use super::request::Request;
use super::seat::{AccountOf, Player};
use super::{search, structure};

/// What is done with nodes of a shape. Every request waits for the other threads exactly once,
/// failed or not, since these wait as well.
pub(super) trait Work: Shape + Sized {
    /// Does the request and all that follows on what it has built; returns the first that does
    /// not.
    fn work<N: Nodes<Self>>(
        player: &Player,
        nodes: &mut N,
        account: AccountOf<'_, N>,
        request: &Request,
    ) -> Result<Option<Request>>;

    /// The same with a box for each node. For each shape by name: only then is it known that
    /// dropping a chest looks at no node.
    fn boxed(player: &Player, request: &Request) -> Result<Option<Request>>;
}

macro_rules! works {
    ($($shape:ident => $($work:ident)::+ $(of $structure:ident)?;)+) => {$(
        impl Work for $shape {
            fn work<N: Nodes<Self>>(
                player: &Player,
                nodes: &mut N,
                account: AccountOf<'_, N>,
                request: &Request,
            ) -> Result<Option<Request>> {
                $($work)::+$(::<N, $structure<N::Ptr>>)?(player, nodes, account, request)
            }

            fn boxed(player: &Player, request: &Request) -> Result<Option<Request>> {
                let chest = Chest::<Self>::new();
                Self::work(player, &mut Boxed::new(&chest), &|_| None, request)
            }
        }
    )+};
}

works! {
    ChaseShape => structure::work of Chase;
    LruShape => structure::work of Lru;
    TreeShape => structure::work of SearchTree;
    SkipListShape => structure::work of SkipList;
    Em3dShape => structure::work of Em3d;
    BarnesHutShape => structure::work of BarnesHut;
    MctsShape => structure::work of Mcts;
    HashedShape => search::hashed;
    LinearShape => search::linear;
}
