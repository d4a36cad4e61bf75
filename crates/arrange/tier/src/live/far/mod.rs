//! Where groups are that are not in fast memory.

mod compressed;
mod contexts;
mod file;
mod kind;
mod lz4;
mod memory;
mod packing;
mod slots;
mod sums;
mod zstd;

pub use compressed::Compressed;
pub use file::File;
pub use kind::FarKind;
pub use lz4::Lz4;
pub use memory::Memory;
pub use packing::Packing;
pub use zstd::Zstd;

use isochrone_os::OsError;
use isochrone_os::ring::Ring;
use lz4_flex::block::CompressTable;

use crate::pages::Trouble;

/// A part of the far tier that belongs to the caller for as long as the value lives: the pager owns the
/// directory's entries of its groups, so nobody else reads or writes it meanwhile. Only the pager makes
/// one.
#[derive(Debug)]
pub struct Part {
    at: usize,
    bytes: usize,
}

impl Part {
    /// Only for the owner of the groups that lie there.
    pub(in super::super) const fn owned(at: usize, bytes: usize) -> Self {
        Self { at, bytes }
    }

    /// Its first byte, counted from the start of the area.
    #[must_use]
    pub const fn at(&self) -> usize {
        self.at
    }

    /// Its length: whole groups.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Room that a far tier needs for a call: one actor's own, since nothing is allocated in a handler.
#[derive(Default)]
pub struct Scratch {
    /// Bytes, as many as [`Far::scratch`] asked for.
    pub bytes: Vec<u8>,
    table: Option<CompressTable>,
    zstd: Option<contexts::Contexts>,
    ring: Option<Ring>,
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scratch").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

/// A far tier. Its offsets are those of the area. All processes of a team use one value, copied when they
/// are made, so what it changes must be in shared memory or in files. Calls come from signal handlers:
/// they must not wait for a lock that the interrupted thread may hold.
pub trait Far: std::fmt::Debug + Send + Sync {
    /// The name in figures.
    fn name(&self) -> &'static str;

    /// Whether the store is memory, so that parts have a [`Self::place`].
    fn is_memory(&self) -> bool {
        false
    }

    /// Where a part lies, if the store is memory that can be copied from and to in one step.
    ///
    /// # Errors
    /// [`Trouble`] where the part is not all inside.
    fn place(&self, part: &Part) -> Option<Result<*mut u8, Trouble>> {
        let _ = part;
        None
    }

    /// What an actor has at hand for its calls, made before the first.
    ///
    /// # Errors
    /// [`OsError`] where there is no memory for it.
    fn scratch(&self) -> Result<Scratch, OsError> {
        Ok(Scratch::default())
    }

    /// The descriptor that its calls use, for threads that keep only those which they need.
    fn descriptor(&self) -> Option<i32> {
        None
    }

    /// Reads what was written there before; `to` is as long as the part.
    ///
    /// # Errors
    /// [`Trouble`] where it cannot be read.
    fn read(&self, part: &Part, to: &mut [u8], scratch: &mut Scratch) -> Result<(), Trouble>;

    /// Writes; `from` is as long as the part.
    ///
    /// # Errors
    /// [`Trouble`] where it cannot be written.
    fn write(&self, part: &Part, from: &[u8], scratch: &mut Scratch) -> Result<(), Trouble>;

    /// Writes `from` to the part `out` while it reads another `part` into `to`, where it can: a medium does both
    /// sooner at once than one after the other. The outcome of the write, and whether the other part was read;
    /// where not, nobody tried or it failed, and [`Self::read`] says why.
    fn exchange(
        &self,
        out: &Part,
        from: &[u8],
        part: &Part,
        to: &mut [u8],
        scratch: &mut Scratch,
    ) -> (Result<(), Trouble>, bool) {
        let _ = (part, to);
        (self.write(out, from, scratch), false)
    }

    /// What is there will not be read any more.
    fn forget(&self, part: &Part) {
        let _ = part;
    }

    /// Bytes that it takes of its medium, if it can tell.
    fn used_bytes(&self) -> Option<u64> {
        None
    }
}
