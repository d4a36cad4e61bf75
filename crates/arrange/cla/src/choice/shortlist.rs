//! The shortlist: the ways that are compared, each a small number that means the same to all ranks.

use super::form::{DEGREES, Form};
use super::groups::{Groups, LEVELS_MAX};
use super::nested::{Order, nested};
use crate::collectives::{Acks, Collective, Options, Plan, Shape};

/// Lines of the chunks of long messages that are compared with the usual ones.
const CHUNKS: [u32; 3] = [8, 16, 32];

/// One way: a form, within each group and among the groups' first ranks, and how messages flow along it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// The tree of a group's ranks.
    pub form: Form,
    /// The innermost level of groups that counts, and all outside of it; none: all ranks are one group.
    pub level: Option<u8>,
    /// Lines of a chunk, 8, 16 or 32; none: as many as usual.
    pub chunk_lines: Option<u32>,
    /// Whether the children of a broadcasting parent acknowledge on one line, which all add to.
    pub counters: bool,
}

impl Entry {
    /// The usual rule, as if nothing were known.
    pub const USUAL: Self = Self::shaped(Form::Usual, None);

    /// Slots of a ring at least where a way needs fewer of them to have no more lines than the usual one:
    /// with two, each chunk would be acknowledged before the next but one.
    const RING_LEAST: u32 = 4;

    /// A form by groups, with the usual chunks and acknowledgements.
    #[must_use]
    pub const fn shaped(form: Form, level: Option<u8>) -> Self {
        Self { form, level, chunk_lines: None, counters: false }
    }

    /// What travels: the entry as a number.
    #[must_use]
    pub fn code(self) -> u32 {
        let level = self.level.map_or(0, |level| u32::from(level) + 1);
        let chunk = CHUNKS.iter().position(|lines| Some(*lines) == self.chunk_lines);
        let chunk = chunk.map_or(0, |chunk| u32::try_from(chunk).unwrap_or(0) + 1);
        u32::from(self.form.number()) | level << 8 | chunk << 16 | u32::from(self.counters) << 24
    }

    /// The entry of a number; `None` where no version of this shortlist has said it.
    #[must_use]
    pub fn of_code(code: u32) -> Option<Self> {
        let [form, level, chunk, counters] = code.to_le_bytes();
        let form = Form::of_number(u16::from(form))?;
        let chunk_lines = match usize::from(chunk).checked_sub(1) {
            Some(chunk) => Some(*CHUNKS.get(chunk)?),
            None => None,
        };
        let known = usize::from(level) <= LEVELS_MAX && counters <= 1;
        let level = level.checked_sub(1);
        known.then_some(Self { form, level, chunk_lines, counters: counters == 1 })
    }

    /// What the entry means: the options of a plan that needs no more lines than the usual one, `usual`
    /// with its options. `None` where there are no such groups, or it would need more.
    #[must_use]
    pub fn options(self, usual: &Plan, groups: &Groups) -> Option<Options> {
        if self == Self::USUAL {
            return Some(usual.options().clone());
        }
        self.with_shape(usual, groups, self.shape(usual, groups)?)
    }

    /// Whether ranks find one another as usual.
    fn has_usual_shape(self) -> bool {
        (self.form, self.level) == (Form::Usual, None)
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

    /// How ranks find one another; `None` where there are no such groups.
    pub(super) fn shape(self, usual: &Plan, groups: &Groups) -> Option<Shape> {
        if self.has_usual_shape() {
            return Some(usual.options().shape.clone());
        }
        if self.form == Form::Exchange {
            return self.level.is_none().then_some(Shape::Exchange);
        }
        let order = match usual.collective() {
            Collective::Broadcast => Order::FarFirst,
            _ => Order::NearFirst,
        };
        let levels = self.levels(groups)?;
        nested(usual.ranks(), usual.root(), levels, self.form, order).map(Shape::Tree)
    }

    /// The options with this shape.
    pub(super) fn with_shape(self, usual: &Plan, groups: &Groups, shape: Shape) -> Option<Options> {
        let before = usual.options();
        let groups = if self.has_usual_shape() { &before.groups } else { self.lines(groups) };
        let chunk_lines = self.chunk_lines.unwrap_or(before.chunk_lines);
        let (lines, least) = (usual.lines(), before.ring.min(Self::RING_LEAST));
        let mut options = Options {
            shape,
            groups: groups.to_vec(),
            chunk_lines,
            acks: if self.counters { Acks::Counter } else { before.acks },
            ring: self.ring(before),
            ..before.clone()
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

    /// Slots for as many lines as a usual ring has: as many as usual, or more of smaller chunks.
    fn ring(self, before: &Options) -> u32 {
        let chunk_lines = self.chunk_lines.unwrap_or(before.chunk_lines);
        let fitting = (before.ring * before.chunk_lines / chunk_lines).max(1);
        let power = 1 << fitting.ilog2();
        power.min(before.ring.max(Options::RING))
    }
}

/// All shapes of a collective, the usual one first, then from the innermost groups to none.
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
            let entry = Entry::shaped(form, level);
            if entry != Entry::USUAL {
                entries.push(entry);
            }
        }
    }
    if collective == Collective::Allgather {
        entries.push(Entry::shaped(Form::Exchange, None));
    }
    entries
}

/// The same way with other chunks, for messages of several, and with other acknowledgements, where there are any.
#[must_use]
pub fn variants(of: Entry, usual: &Plan) -> Vec<Entry> {
    let options = usual.options();
    let several =
        usual.collective() != Collective::Barrier && usual.bytes() > options.chunk_bytes();
    let chunks = CHUNKS.iter().filter(|&&lines| several && lines != options.chunk_lines);
    let chunks = chunks.map(|&lines| Entry { chunk_lines: Some(lines), ..of });
    let acknowledged = usual.collective() == Collective::Broadcast && options.acks != Acks::Counter;
    let counters = acknowledged.then_some(Entry { counters: true, ..of });
    chunks.chain(counters).collect()
}

/// Whether something is chosen of a collective. Scatter and gather move each block once, whatever the tree.
#[must_use]
pub const fn is_chosen(collective: Collective) -> bool {
    match collective {
        Collective::Broadcast
        | Collective::Barrier
        | Collective::Reduce(_)
        | Collective::Allreduce(_)
        | Collective::Allgather => true,
        // Blocks move once whatever the tree, and each rank reads those that it needs.
        Collective::Scatter
        | Collective::Gather
        | Collective::Alltoall
        | Collective::ReduceScatter(_)
        | Collective::Scan(_)
        | Collective::Exscan(_) => false,
    }
}
