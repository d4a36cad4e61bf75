//! What a task does: a kernel, its plain arguments, and how both are kept where only bytes are.

use core::fmt;
use core::mem::MaybeUninit;

use crate::footprint::Footprint;
use crate::live::{Foreign, Mem};

/// Bytes that a task's arguments may have.
pub const ARGUMENT_BYTES: usize = 64;

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

/// Why a task could not do its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    text: String,
}

impl Failure {
    /// A failure that says why and what to do about it.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    /// The reason.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<E: core::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(error.to_string())
    }
}

/// Arguments as they lie in a slot.
pub(crate) type Words = [MaybeUninit<u64>; ARGUMENT_BYTES / 8];

/// A kernel without its type.
#[derive(Clone, Copy)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// Bytes of a task's arguments.
    pub(crate) bytes: usize,
    /// Runs a task whose arguments were written for this table, which is given as well.
    pub(crate) run: fn(&Self, &Held<'_>, &Mem<'_>) -> Result<(), Failure>,
    pub(crate) declare: fn(&Held<'_>, &mut Footprint),
    /// Ends arguments that own something; called once for each task, run or left out.
    pub(crate) discard: Option<fn(&Self, &Held<'_>)>,
    /// What is behind it, where that is known at run time only.
    pub(crate) foreign: Option<Foreign>,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {}", self.name)
    }
}

/// A kernel that does nothing, for tests that drive the scheduler themselves.
#[cfg(all(test, any(loom, shuttle)))]
pub(crate) static NOTHING: Table = Table {
    name: "nothing",
    bytes: 0,
    run: |_: &Table, _: &Held<'_>, _: &Mem<'_>| Ok(()),
    declare: |_: &Held<'_>, _: &mut Footprint| (),
    discard: None,
    foreign: None,
};

/// Arguments that were written for a table: only [`crate::arena`] makes one.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    pub(crate) words: &'a Words,
}

/// The table of a kernel.
pub(crate) struct Erased<K>(core::marker::PhantomData<K>);

impl<K: Kernel> Erased<K> {
    pub(crate) const TABLE: &'static Table = &Table {
        name: K::NAME,
        bytes: size_of::<K>(),
        run: |_, held, mem| held.get::<K>().run(mem),
        declare: |held, footprint| held.get::<K>().declare(footprint),
        discard: None,
        foreign: None,
    };
    /// Arguments of a kernel fit into a slot, or the program does not compile.
    pub(crate) const FITS: () = {
        assert!(size_of::<K>() <= ARGUMENT_BYTES, "a kernel's arguments have more than 64 bytes");
        assert!(align_of::<K>() <= 64, "a kernel's arguments ask for more than a line's alignment");
    };
}
