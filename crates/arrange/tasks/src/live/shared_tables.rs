//! Tables of an arena in memory that processes share: those that are forked later see the same bytes at
//! the same addresses.

use core::ptr::NonNull;
use std::sync::Arc;

use isochrone_os::OsError;
use isochrone_os::space::Space;

use crate::arena::table::{Table, Zeroed};
use crate::arena::{BYTES_MAX, Provide};

/// What every table begins at: two lines, which a processor may fetch together.
const ALIGNED: usize = 128;

/// Hands out parts of one shared mapping.
#[derive(Debug)]
pub(super) struct SharedTables {
    space: Arc<Space>,
    used: usize,
}

impl SharedTables {
    /// Reserves addresses for as much as tables may take; only what is touched takes memory.
    pub(super) fn new() -> Result<Self, OsError> {
        Ok(Self { space: Arc::new(Space::new(BYTES_MAX, true)?), used: 0 })
    }
}

impl Provide for SharedTables {
    fn table<T: Zeroed + Send + 'static>(&mut self, count: usize) -> Table<T> {
        const { assert!(align_of::<T>() <= ALIGNED) };
        let start = self.used.next_multiple_of(ALIGNED);
        let end = count.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(start));
        let Some(end) = end.filter(|end| *end <= self.space.len()) else {
            // More than any machine has; such tables fail for who uses them, as they would here.
            return Table::heap(count);
        };
        self.used = end;
        let first = self.space.as_ptr().wrapping_add(start).cast::<T>();
        let Some(first) = NonNull::new(first) else { return Table::heap(count) };
        // SAFETY: the part lies inside of the mapping, as was just checked, which is zeroes and aligned to
        // 2 MiB, and no other part overlaps it.
        unsafe { Table::mapped(first, count, Arc::clone(&self.space) as _) }
    }
}
