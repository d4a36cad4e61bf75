//! The one-line broadcast of the paper, to the letter.
//!
//! It is single-shot: flags go from 0 to 1 and counters from 0 to the number of children, and nothing
//! sets them back. It stands here to be predicted and drawn beside the paper's figures, and as the
//! program that the checker must refuse to run twice.

use super::tree::Tree;
use crate::program::{Buffer, Compare, Gone, Line, Lines, Rank, Span};

/// Figure 1 of the paper: `OneLineBroadcast` over a tree.
#[derive(Clone, Debug)]
pub struct Figure1<'a> {
    /// Who hands on to whom.
    pub tree: &'a Tree,
    /// Bytes that every rank gets, at most one line.
    pub bytes: u32,
}

impl Figure1<'_> {
    /// The line in which `rank` says that its data are ready (`tree.pflag`).
    #[must_use]
    pub const fn ready(rank: Rank) -> Line {
        Line(3 * rank.0 as u32)
    }

    /// The line in which the children of `rank` say that they have copied (`tree.sflag`).
    #[must_use]
    pub const fn copied(rank: Rank) -> Line {
        Line(3 * rank.0 as u32 + 1)
    }

    /// The line from which the children of `rank` copy (`tree.data`).
    #[must_use]
    pub const fn data(rank: Rank) -> Line {
        Line(3 * rank.0 as u32 + 2)
    }

    /// What `me` does.
    ///
    /// # Errors
    /// [`Gone`] when a rank that is waited for has ended.
    pub fn run<L: Lines>(&self, lines: &mut L, me: Rank) -> Result<(), Gone> {
        let mine = Span::of(
            if me == self.tree.root() { Buffer::Send } else { Buffer::Receive },
            0,
            self.bytes,
        );
        if let Some(parent) = self.tree.parent(me) {
            lines.wait(Self::ready(parent), Compare::Equal, 1)?;
            lines.copy(Self::data(parent).whole(self.bytes), mine);
        }
        let sons = u64::try_from(self.tree.children(me).len()).unwrap_or(u64::MAX);
        if sons > 0 {
            lines.copy(mine, Self::data(me).whole(self.bytes));
            lines.write(Self::ready(me), 1);
            lines.wait(Self::copied(me), Compare::Equal, sons)?;
        }
        if let Some(parent) = self.tree.parent(me) {
            lines.add(Self::copied(parent), 1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Operation, record};

    #[test]
    fn a_leaf_and_the_root_do_what_figure_1_says() {
        let tree = Tree::flat(3, Rank(0));
        let recorded = record(3, |lines, me| Figure1 { tree: &tree, bytes: 64 }.run(lines, me));
        let root = &recorded.ranks[0].operations;
        assert!(matches!(
            root[..],
            [
                Operation::Copy { .. },
                Operation::Write { value: 1, .. },
                Operation::Wait { value: 2, .. }
            ]
        ));
        let leaf = &recorded.ranks[2].operations;
        assert!(matches!(
            leaf[..],
            [
                Operation::Wait { value: 1, .. },
                Operation::Copy { .. },
                Operation::Add { value: 1, .. }
            ]
        ));
        assert_eq!(recorded.lines(), 3, "leaves own no line that anybody uses");
    }
}
