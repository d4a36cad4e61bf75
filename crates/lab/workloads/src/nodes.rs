//! Where nodes come from: the one seam between a program and the allocator under test.
//!
//! A program names the [`Shape`] of its nodes, which may hold pointers of whatever kind the
//! allocator has, and asks [`Nodes`] for them. Calls are resolved at compile time, so a program
//! over a pool is the program that one would have written for that pool.
//!
//! Implementations: [`Boxed`], one call of the program's allocator for each node (the arms of
//! interposed allocators), and [`Slab`], nodes in one vector by index (tests, recordings). The
//! one over the latency-aware typed pool belongs to that pool's crate or beside these two; it
//! implements the same four functions.

use core::cell::{Cell, OnceCell};
use core::fmt;
use core::mem::{align_of, size_of};

use isochrone_units::LINE_BYTES;

/// The node type of a program, for any kind of pointer.
pub trait Shape {
    /// A node whose links are of type `P`.
    type Node<P: Copy + Eq>: Copy;
}

/// An allocator of the nodes of one shape.
pub trait Nodes<S: Shape> {
    /// What names a node.
    type Ptr: Copy + Eq;

    /// A node with this content; `None` when memory is refused.
    #[allow(clippy::wrong_self_convention, reason = "it is the node that is new, as in a language")]
    fn new(&mut self, node: S::Node<Self::Ptr>) -> Option<Self::Ptr>;

    /// Reads a node that was not freed.
    fn read<R>(&self, at: Self::Ptr, with: impl FnOnce(&S::Node<Self::Ptr>) -> R) -> R;

    /// Changes a node that was not freed.
    fn write<R>(&mut self, at: Self::Ptr, with: impl FnOnce(&mut S::Node<Self::Ptr>) -> R) -> R;

    /// Gives a node back; nothing may name it any more.
    fn free(&mut self, at: Self::Ptr);
}

/// Whether a type fills exactly one cache line, as every node here must: what the allocator
/// places is the line. Programs assert it at compile time for the pointers they are used with.
#[must_use]
pub const fn is_one_line<T>() -> bool {
    size_of::<T>() == LINE_BYTES && align_of::<T>() == LINE_BYTES
}

/// Boxes that live as long as their chest, found by nobody but through pointers to them.
///
/// A list of chunks of boxes, each chunk twice as long as the one before. Only what owns: no
/// access to a node ever passes through it.
struct Owned<T> {
    boxes: Box<[OnceCell<Box<T>>]>,
    next: OnceCell<Box<Self>>,
}

impl<T> Owned<T> {
    fn new(boxes: usize) -> Self {
        Self { boxes: (0..boxes).map(|_| OnceCell::new()).collect(), next: OnceCell::new() }
    }
}

type BoxedNode<'a, S> = Cell<<S as Shape>::Node<BoxedPtr<'a, S>>>;

/// Keeps the nodes of a [`Boxed`] alive. Make one, then borrow it for the allocator.
pub struct Chest<'a, S: Shape>(Owned<BoxedNode<'a, S>>);

impl<S: Shape> Chest<'_, S> {
    /// An empty chest.
    #[must_use]
    pub fn new() -> Self {
        Self(Owned::new(FIRST_CHUNK))
    }
}

impl<S: Shape> Default for Chest<'_, S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Shape> fmt::Debug for Chest<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chest").finish_non_exhaustive()
    }
}

/// Boxes in the first chunk of a chest.
const FIRST_CHUNK: usize = 1024;

/// A pointer to a boxed node: one machine word, as in a program without all this.
pub struct BoxedPtr<'a, S: Shape>(&'a BoxedNode<'a, S>);

impl<S: Shape> Clone for BoxedPtr<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Shape> Copy for BoxedPtr<'_, S> {}

impl<S: Shape> PartialEq for BoxedPtr<'_, S> {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self.0, other.0)
    }
}

impl<S: Shape> Eq for BoxedPtr<'_, S> {}

impl<S: Shape> fmt::Debug for BoxedPtr<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Pointer::fmt(&core::ptr::from_ref(self.0), f)
    }
}

/// Nodes from the program's own allocator, each an allocation of 64 bytes aligned to 64.
///
/// A freed node is handed out again, last freed first, before the allocator is asked for
/// another; the memory goes back when the chest does.
pub struct Boxed<'a, S: Shape> {
    chunk: &'a Owned<BoxedNode<'a, S>>,
    used: usize,
    freed: Vec<BoxedPtr<'a, S>>,
}

impl<S: Shape> fmt::Debug for Boxed<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Boxed").field("freed", &self.freed.len()).finish_non_exhaustive()
    }
}

impl<'a, S: Shape> Boxed<'a, S> {
    /// An allocator whose nodes `chest` keeps.
    #[must_use]
    pub fn new(chest: &'a Chest<'a, S>) -> Self {
        Self { chunk: &chest.0, used: 0, freed: Vec::new() }
    }
}

impl<'a, S: Shape> Nodes<S> for Boxed<'a, S> {
    type Ptr = BoxedPtr<'a, S>;

    fn new(&mut self, node: S::Node<Self::Ptr>) -> Option<Self::Ptr> {
        if let Some(ptr) = self.freed.pop() {
            ptr.0.set(node);
            return Some(ptr);
        }
        // A chest lent twice has boxes that are taken: they are passed over.
        let place = loop {
            match self.chunk.boxes.get(self.used) {
                Some(place) if place.get().is_none() => break place,
                Some(_) => self.used += 1,
                None => {
                    let longer = 2 * self.chunk.boxes.len();
                    self.chunk = self.chunk.next.get_or_init(|| Box::new(Owned::new(longer)));
                    self.used = 0;
                }
            }
        };
        self.used += 1;
        Some(BoxedPtr(place.get_or_init(|| Box::new(Cell::new(node)))))
    }

    fn read<R>(&self, at: Self::Ptr, with: impl FnOnce(&S::Node<Self::Ptr>) -> R) -> R {
        with(&at.0.get())
    }

    fn write<R>(&mut self, at: Self::Ptr, with: impl FnOnce(&mut S::Node<Self::Ptr>) -> R) -> R {
        let mut node = at.0.get();
        let result = with(&mut node);
        at.0.set(node);
        result
    }

    fn free(&mut self, at: Self::Ptr) {
        self.freed.push(at);
    }
}

/// A place in a [`Slab`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlabPtr(pub u32);

/// Nodes in one vector, named by index; a freed place is handed out again, last freed first.
pub struct Slab<S: Shape> {
    nodes: Vec<S::Node<SlabPtr>>,
    freed: Vec<SlabPtr>,
    most: usize,
}

impl<S: Shape> fmt::Debug for Slab<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nodes, freed, most } = self;
        f.debug_struct("Slab")
            .field("nodes", &nodes.len())
            .field("freed", &freed.len())
            .field("most", most)
            .finish()
    }
}

impl<S: Shape> Slab<S> {
    /// An empty slab that refuses to hold more than `most` nodes at once.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { nodes: Vec::new(), freed: Vec::new(), most }
    }

    /// Nodes that are in use.
    #[must_use]
    pub fn live(&self) -> usize {
        self.nodes.len() - self.freed.len()
    }
}

impl<S: Shape> Nodes<S> for Slab<S> {
    type Ptr = SlabPtr;

    fn new(&mut self, node: S::Node<SlabPtr>) -> Option<SlabPtr> {
        if let Some(ptr) = self.freed.pop() {
            self.nodes[place(ptr)] = node;
            return Some(ptr);
        }
        if self.nodes.len() == self.most {
            return None;
        }
        let ptr = SlabPtr(u32::try_from(self.nodes.len()).ok()?);
        self.nodes.push(node);
        Some(ptr)
    }

    fn read<R>(&self, at: SlabPtr, with: impl FnOnce(&S::Node<SlabPtr>) -> R) -> R {
        with(&self.nodes[place(at)])
    }

    fn write<R>(&mut self, at: SlabPtr, with: impl FnOnce(&mut S::Node<SlabPtr>) -> R) -> R {
        with(&mut self.nodes[place(at)])
    }

    fn free(&mut self, at: SlabPtr) {
        debug_assert!(self.freed.last() != Some(&at), "freed twice: {at:?}");
        self.freed.push(at);
    }
}

fn place(ptr: SlabPtr) -> usize {
    ptr.0 as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Pair;

    #[derive(Clone, Copy)]
    #[repr(align(64))]
    struct PairNode<P> {
        value: u64,
        other: Option<P>,
    }

    impl Shape for Pair {
        type Node<P: Copy + Eq> = PairNode<P>;
    }

    fn links_are_followed<N: Nodes<Pair>>(nodes: &mut N) {
        let first = nodes.new(PairNode { value: 1, other: None }).unwrap();
        let second = nodes.new(PairNode { value: 2, other: Some(first) }).unwrap();
        nodes.write(first, |node| node.other = Some(second));
        let back = nodes.read(second, |node| node.other).unwrap();
        assert!(back == first && back != second);
        assert_eq!(nodes.read(back, |node| (node.value, node.other == Some(second))), (1, true));
        nodes.free(second);
        let third = nodes.new(PairNode { value: 3, other: None }).unwrap();
        assert!(third == second, "the last freed is the first to be used again");
        assert_eq!(nodes.read(third, |node| node.value), 3);
    }

    #[test]
    fn both_allocators_keep_what_is_written() {
        links_are_followed(&mut Slab::new(10));
        let chest = Chest::new();
        links_are_followed(&mut Boxed::new(&chest));
    }

    #[test]
    fn a_slab_refuses_beyond_its_limit() {
        let mut slab = Slab::<Pair>::new(2);
        let node = PairNode { value: 0, other: None };
        let first = slab.new(node).unwrap();
        assert!(slab.new(node).is_some() && slab.new(node).is_none());
        slab.free(first);
        assert!(slab.live() == 1 && slab.new(node) == Some(first));
    }

    #[test]
    fn boxes_grow_past_a_chunk_are_lines_and_a_second_borrower_gets_others() {
        let chest = Chest::<Pair>::new();
        let mut nodes = Boxed::new(&chest);
        let node = |value| PairNode { value, other: None };
        let all: Vec<_> = (0..5000).map(|i| nodes.new(node(i)).unwrap()).collect();
        assert!((0..).zip(&all).all(|(i, ptr)| nodes.read(*ptr, |node| node.value) == i));
        assert!(all.iter().all(|ptr| core::ptr::from_ref(ptr.0).addr() % LINE_BYTES == 0));
        let other = Boxed::new(&chest).new(node(9)).unwrap();
        assert!(!all.contains(&other));
        assert_eq!(size_of::<Option<BoxedPtr<'_, Pair>>>(), 8);
        const { assert!(is_one_line::<PairNode<SlabPtr>>()) };
    }
}
