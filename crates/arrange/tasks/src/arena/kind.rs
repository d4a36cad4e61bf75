//! What is known of a kernel where its tasks are ordered: everything but how it runs.

use core::fmt;

use super::arguments::{ARGUMENT_BYTES, Held};
use crate::footprint::Footprint;

/// A kernel as the arena and the scheduler know it. Its address is what tasks name it by.
#[derive(Clone, Copy)]
pub(crate) struct KernelKind {
    pub(crate) name: &'static str,
    /// Bytes of a task's arguments.
    pub(crate) bytes: usize,
    pub(crate) declare: fn(&Held<'_>, &mut Footprint),
    /// Ends arguments that own something; called once for each task that is left out.
    pub(crate) discard: Option<Discard>,
}

/// How arguments that own something are ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Discard {
    /// By a function that knows their type.
    Typed(fn(&Held<'_>)),
    /// By one of another language, which is given all bytes.
    Bytes(fn(&[u8; ARGUMENT_BYTES])),
}

impl Discard {
    /// Ends them.
    pub(crate) fn end(self, held: &Held<'_>) {
        match self {
            Self::Typed(discard) => discard(held),
            Self::Bytes(discard) => discard(&held.copied::<Bytes>().0),
        }
    }
}

/// Arguments of other languages, in a slot.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Bytes(pub(crate) [u8; ARGUMENT_BYTES]);

impl fmt::Debug for KernelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {}", self.name)
    }
}

/// A kernel that does nothing, for tests that drive the scheduler themselves.
#[cfg(all(test, any(loom, shuttle)))]
pub(crate) static NOTHING: KernelKind = KernelKind {
    name: "nothing",
    bytes: 0,
    declare: |_: &Held<'_>, _: &mut Footprint| (),
    discard: None,
};
