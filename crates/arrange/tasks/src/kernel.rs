//! What a task does: a kernel and its plain arguments.

use crate::arena::{ARGUMENT_BYTES, KernelKind};
use crate::failure::Failure;
use crate::footprint::Footprint;
use crate::live::Mem;

/// A kind of task. The value is the arguments of one task: plain, at most [`ARGUMENT_BYTES`], and with
/// names of data instead of addresses.
///
/// `declare` is called when the task is registered, and again by a simulated machine. It must say the
/// same each time: it sees the arguments and nothing else.
pub trait Kernel: Copy + Send + 'static {
    /// What traces, tables and errors call it.
    const NAME: &'static str;

    /// Says which ranges the task uses and how, and its priority.
    fn declare(&self, footprint: &mut Footprint);

    /// Does the work on memory that was declared.
    ///
    /// # Errors
    /// [`Failure`] reaches whoever waits for the task; tasks of the same parent that have not begun by
    /// then are left out.
    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure>;
}

/// What is known of a kernel of this type before it runs.
pub(crate) struct KindOf<K>(core::marker::PhantomData<K>);

impl<K: Kernel> KindOf<K> {
    pub(crate) const KIND: KernelKind = KernelKind {
        name: K::NAME,
        bytes: size_of::<K>(),
        declare: |held, footprint| held.copied::<K>().declare(footprint),
        discard: None,
    };
    /// The same at an address of its own, for tasks that do not run.
    pub(crate) const LASTING: &'static KernelKind = &Self::KIND;
    /// Arguments of a kernel fit into a slot, or the program does not compile.
    pub(crate) const FITS: () = {
        assert!(size_of::<K>() <= ARGUMENT_BYTES, "a kernel's arguments have more than 64 bytes");
        assert!(align_of::<K>() <= 64, "a kernel's arguments ask for more than a line's alignment");
    };
}
