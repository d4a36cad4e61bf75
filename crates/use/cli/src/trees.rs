//! Trees that a user names.

use anyhow::Result;
use isochrone_cla::collectives::Tree;
use isochrone_cla::program::Rank;

use crate::args::TreeAsked;
use isochrone_console::output::WrongUsage;

/// The tree over so many ranks that begins at `root`. One that names all parents has to be so.
pub(crate) fn of(asked: &TreeAsked, ranks: u16, root: Rank) -> Result<Tree> {
    Ok(match asked {
        TreeAsked::Flat => Tree::flat(ranks, root),
        TreeAsked::Binomial => Tree::binomial(ranks, root),
        TreeAsked::Degree(degree) => Tree::regular(ranks, root, *degree),
        TreeAsked::Parents(parents) => {
            let tree = Tree::new(parents)?;
            if tree.ranks() != ranks {
                let named = tree.ranks();
                let why = format!("--tree has {named} ranks, --threads {ranks}");
                return Err(WrongUsage::error(why));
            }
            if tree.root() != root {
                let why = format!("--tree begins at {}, --root is {}", tree.root(), root.0);
                return Err(WrongUsage::error(why));
            }
            tree
        }
    })
}
