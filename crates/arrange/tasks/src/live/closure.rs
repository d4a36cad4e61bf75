//! Closures as tasks: boxed, with the box's address for arguments. For threads only, since the address
//! means nothing to another process.

use super::mem::Mem;
use super::table::Table;
use crate::arena::arguments::Held;
use crate::arena::{Discard, KernelKind};
use crate::failure::Failure;

/// The address of a box.
pub(super) type Boxed = usize;

/// Puts a closure on the heap.
pub(super) fn boxed<F>(run: F) -> Boxed {
    Box::into_raw(Box::new(run)).expose_provenance()
}

/// Ends a closure that was never registered.
pub(super) fn unbox<F>(boxed: Boxed) {
    // SAFETY: whoever calls this has it from `boxed`, for the same type, and uses it once.
    drop(unsafe { Box::from_raw(core::ptr::with_exposed_provenance_mut::<F>(boxed)) });
}

struct Closure<F>(core::marker::PhantomData<F>);

impl<F> Closure<F>
where
    F: FnOnce(&Mem<'_>) -> Result<(), Failure> + Send + 'static,
{
    const TABLE: &'static Table = &Table {
        kind: KernelKind {
            name: "closure",
            bytes: size_of::<Boxed>(),
            // Its ranges were said when it was registered; closures are not simulated.
            declare: |_, _| (),
            discard: Some(Discard::Typed(|held: &Held<'_>| unbox::<F>(held.copied()))),
        },
        run: |_, held, mem| {
            let boxed: Boxed = held.copied();
            // SAFETY: the arguments of this table are what `boxed` gave for this type, and a task runs
            // once or is discarded, never both.
            let run = unsafe { Box::from_raw(core::ptr::with_exposed_provenance_mut::<F>(boxed)) };
            run(mem)
        },
        foreign: None,
    };
}

/// The table of a closure's type.
pub(super) fn table<F>() -> &'static Table
where
    F: FnOnce(&Mem<'_>) -> Result<(), Failure> + Send + 'static,
{
    Closure::<F>::TABLE
}
