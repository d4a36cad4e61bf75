//! The shortlist: the ways that are compared, each a small number that means the same to all ranks.

use super::groups::{Groups, LEVELS_MAX};
use crate::collectives::{Collective, Options, Plan, Shape, Tree};
use crate::program::Rank;

/// A family of trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// What the usual rule does: everybody below the root among few, degree four among many.
    Usual,
    /// Everybody below the root.
    Flat,
    /// The binomial tree.
    Binomial,
    /// So many children at most, 2 to 8.
    Degree(u16),
}

/// Ranks up to which the usual rule has everybody below the root.
pub(crate) const FEW: u16 = 8;
/// Children of a rank among many by the usual rule.
pub(crate) const DEGREE: u16 = 4;
/// Degrees of the shortlist.
const DEGREES: std::ops::RangeInclusive<u16> = 2..=8;

impl Form {
    fn number(self) -> u16 {
        match self {
            Self::Usual => 0,
            Self::Flat => 1,
            Self::Binomial => 2,
            Self::Degree(degree) => degree + 1,
        }
    }

    fn of_number(number: u16) -> Option<Self> {
        match number {
            0 => Some(Self::Usual),
            1 => Some(Self::Flat),
            2 => Some(Self::Binomial),
            more => DEGREES.contains(&(more - 1)).then_some(Self::Degree(more - 1)),
        }
    }

    /// The tree of `ranks` ranks in this form.
    fn tree(self, ranks: u16, root: Rank) -> Tree {
        match self {
            Self::Usual if ranks > FEW => Tree::regular(ranks, root, DEGREE),
            Self::Usual | Self::Flat => Tree::flat(ranks, root),
            Self::Binomial => Tree::binomial(ranks, root),
            Self::Degree(degree) => Tree::regular(ranks, root, degree),
        }
    }
}

/// One way: a form, within each group and among the groups' first ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// The tree of a group's ranks.
    pub form: Form,
    /// The innermost level of groups that counts, and all outside of it; none: all ranks are one group.
    pub level: Option<u8>,
}

impl Entry {
    /// The usual rule, as if nothing were known.
    pub const USUAL: Self = Self { form: Form::Usual, level: None };

    /// Slots of a ring at least where a way needs fewer of them to have no more lines than the usual one:
    /// with two, each chunk would be acknowledged before the next but one.
    const RING_LEAST: u32 = 4;

    /// What travels: the entry as a number.
    #[must_use]
    pub fn code(self) -> u32 {
        let level = self.level.map_or(0, |level| u32::from(level) + 1);
        u32::from(self.form.number()) | level << 8
    }

    /// The entry of a number; `None` where no version of this shortlist has said it.
    #[must_use]
    pub fn of_code(code: u32) -> Option<Self> {
        let [form, level, 0, 0] = code.to_le_bytes() else { return None };
        let form = Form::of_number(u16::from(form))?;
        (usize::from(level) <= LEVELS_MAX).then_some(Self { form, level: level.checked_sub(1) })
    }

    /// What the entry means: the options of a plan that needs no more lines than the usual one, `usual`
    /// with its options. `None` where there are no such groups, or it would need more.
    #[must_use]
    pub fn options(self, usual: &Plan, groups: &Groups) -> Option<Options> {
        if self == Self::USUAL {
            return Some(usual.options().clone());
        }
        self.with_tree(usual, groups, self.tree(usual, groups)?)
    }

    /// The levels of groups that count, innermost first; `None` where there is no such level.
    fn levels(self, groups: &Groups) -> Option<&[Vec<u16>]> {
        match self.level {
            Some(level) => groups.levels().get(usize::from(level)..).filter(|l| !l.is_empty()),
            None => Some(&[]),
        }
    }

    /// For which groups a rank writes a line each; none: one line for all.
    pub(super) fn lines(self, groups: &Groups) -> &[u16] {
        self.levels(groups).and_then(<[Vec<u16>]>::first).map_or(&[], Vec::as_slice)
    }

    /// The tree that the entry means; `None` where there are no such groups.
    pub(super) fn tree(self, usual: &Plan, groups: &Groups) -> Option<Tree> {
        let order = match usual.collective() {
            Collective::Broadcast => Order::FarFirst,
            _ => Order::NearFirst,
        };
        nested(usual.ranks(), usual.root(), self.levels(groups)?, self.form, order)
    }

    /// The options with this tree.
    pub(super) fn with_tree(self, usual: &Plan, groups: &Groups, tree: Tree) -> Option<Options> {
        let lines = usual.lines();
        let least = usual.options().ring.min(Self::RING_LEAST);
        let mut options = Options {
            shape: Shape::Tree(tree),
            groups: self.lines(groups).to_vec(),
            ..usual.options().clone()
        };
        while options.ring >= least {
            let (ranks, root) = (usual.ranks(), usual.root());
            let plan = Plan::new(usual.collective(), ranks, root, usual.bytes(), options).ok()?;
            if plan.lines() <= lines {
                return Some(plan.options().clone());
            }
            options = Options { ring: plan.options().ring / 2, ..plan.options().clone() };
        }
        None
    }
}

/// In which order a rank serves its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// What goes farthest leaves first.
    FarFirst,
    /// What comes from near is read first: it is there first.
    NearFirst,
}

/// The tree in which ranks hang below the first of their innermost group, these below the first of the next
/// one outside, and so on: in each group by `form`.
fn nested(ranks: u16, root: Rank, levels: &[Vec<u16>], form: Form, order: Order) -> Option<Tree> {
    if levels.is_empty() {
        return Some(form.tree(ranks, root));
    }
    let mut parents = vec![None; usize::from(ranks)];
    // All but the root, in each group in the order in which they are served.
    let mut hung: Vec<Rank> = Vec::new();
    let mut leaders: Vec<Rank> = (0..ranks).map(Rank).collect();
    // The root leads wherever it is; others by rank.
    leaders.sort_by_key(|rank| (*rank != root, rank.0));
    let all = vec![0; usize::from(ranks)];
    for level in levels.iter().chain([&all]) {
        let mut members: Vec<(u16, Vec<Rank>)> = Vec::new();
        for &leader in &leaders {
            let group = *level.get(leader.index())?;
            match members.iter_mut().find(|(known, _)| *known == group) {
                Some((_, of)) => of.push(leader),
                None => members.push((group, vec![leader])),
            }
        }
        for (_, of) in &members {
            let tree = form.tree(u16::try_from(of.len()).ok()?, Rank(0));
            for place in tree.preorder().into_iter().skip(1) {
                let parent = tree.parent(place)?;
                parents[of[place.index()].index()] = Some(of[parent.index()]);
                hung.push(of[place.index()]);
            }
        }
        leaders = members.into_iter().map(|(_, of)| of[0]).collect();
    }
    // They were hung from the innermost level outwards.
    if order == Order::FarFirst {
        let level_of = |rank: Rank| {
            let parent = parents[rank.index()].unwrap_or(rank);
            let same = |level: &Vec<u16>| level[rank.index()] == level[parent.index()];
            levels.iter().position(same).unwrap_or(levels.len())
        };
        hung.sort_by_key(|rank| std::cmp::Reverse(level_of(*rank)));
    }
    Tree::served_in(&parents, &hung).ok()
}

/// All ways of a collective, the usual one first, then from the innermost groups to none.
#[must_use]
pub fn shortlist(collective: Collective, groups: &Groups) -> Vec<Entry> {
    let mut entries = vec![Entry::USUAL];
    if !is_chosen(collective) {
        return entries;
    }
    let levels = (0..groups.levels().len()).filter_map(|level| u8::try_from(level).ok());
    for level in levels.map(Some).chain([None]) {
        let forms = [Form::Usual, Form::Flat, Form::Binomial].into_iter();
        for form in forms.chain(DEGREES.map(Form::Degree)) {
            let entry = Entry { form, level };
            if entry != Entry::USUAL {
                entries.push(entry);
            }
        }
    }
    entries
}

/// Whether the shape of a collective is chosen. Scatter and gather move each block once, and in allgather everybody
/// reads every block, whatever the tree: the best one of 16 ranks gained 11 %, of 64 ranks 4 %.
#[must_use]
pub const fn is_chosen(collective: Collective) -> bool {
    matches!(
        collective,
        Collective::Broadcast
            | Collective::Barrier
            | Collective::Reduce(_)
            | Collective::Allreduce(_)
    )
}
