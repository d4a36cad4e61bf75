//! Kernels without their types, as workers of this machine run them.

use super::mem::Mem;
use crate::arena::arguments::Held;
use crate::arena::{ARGUMENT_BYTES, KernelKind};
use crate::failure::Failure;
use crate::kernel::{Kernel, KindOf};

/// A kernel that can be run. The arena knows it as its kind, which lies at the same address.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Table {
    pub(super) kind: KernelKind,
    /// Runs a task whose arguments were written for this table, which is given as well.
    pub(super) run: fn(&Self, &Held<'_>, &Mem<'_>) -> Result<(), Failure>,
    /// What is behind it, where that is known at run time only.
    pub(super) foreign: Option<Foreign>,
}

impl Table {
    /// The kernel as the arena knows it, from which [`Self::of`] finds this again.
    #[inline]
    pub(super) fn kind(&'static self) -> &'static KernelKind {
        let _ = core::ptr::from_ref(self).expose_provenance();
        &self.kind
    }

    /// The table of a kernel.
    ///
    /// # Safety
    /// [`Self::kind`] gave the kind.
    #[inline]
    pub(super) unsafe fn of(kind: &'static KernelKind) -> &'static Self {
        let address = core::ptr::from_ref(kind).addr();
        // SAFETY: `kind` is the first field of a table that lives as long as the program, as the caller vouches; the
        // table's layout is C's, so both have one address, and `Self::kind` exposed it for the whole table.
        unsafe { &*core::ptr::with_exposed_provenance(address) }
    }
}

/// The table of a kernel.
pub(super) struct Erased<K>(core::marker::PhantomData<K>);

impl<K: Kernel> Erased<K> {
    pub(super) const TABLE: &'static Table = &Table {
        kind: KindOf::<K>::KIND,
        run: |_, held, mem| held.copied::<K>().run(mem),
        foreign: None,
    };
}

/// What such a kernel does with its context, a task's arguments and its memory.
pub type ForeignRun = fn(usize, &[u8; ARGUMENT_BYTES], &Mem<'_>) -> Result<(), Failure>;

/// What is behind such a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Foreign {
    /// What it does.
    pub run: ForeignRun,
    /// What ends the arguments of a task that was left out, where they own something: of a task that ran `run` did.
    pub discard: Option<fn(&[u8; ARGUMENT_BYTES])>,
    /// What `run` is given first.
    pub context: usize,
}
