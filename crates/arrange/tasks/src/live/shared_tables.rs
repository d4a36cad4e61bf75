//! Tables of an arena in memory that processes share: those that are forked later see the same bytes at
//! the same addresses.

use core::ptr::NonNull;
use std::sync::Arc;

use isochrone_os::space::Space;

use crate::arena::table::{Table, Zeroed};
use crate::arena::{BYTES_MAX, Capacity, Provide};
use crate::error::TaskError;

/// What every table begins at: two lines, which a processor may fetch together.
const ALIGNED: usize = 128;

/// Tables of an arena at most, each of which may begin a little later than the one before ends.
const TABLES_MOST: usize = 64;

/// Hands out parts of one shared mapping, once it is known how large it must be.
#[derive(Debug, Default)]
pub(super) struct SharedTables {
    space: Option<Arc<Space>>,
    used: usize,
}

impl Provide for SharedTables {
    /// Reserves addresses for all tables; only what is touched takes memory.
    fn admits(
        &mut self,
        capacity: Capacity,
        workers: usize,
        queues: usize,
    ) -> Result<(), TaskError> {
        let bytes = capacity.table_bytes(workers, queues).min(BYTES_MAX) + TABLES_MOST * ALIGNED;
        self.space = Some(Arc::new(Space::new(bytes, true)?));
        Ok(())
    }

    fn table<T: Zeroed + Send + 'static>(&mut self, count: usize) -> Table<T> {
        const { assert!(align_of::<T>() <= ALIGNED) };
        let start = self.used.next_multiple_of(ALIGNED);
        let end = count.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(start));
        let fits = |end: &usize| self.space.as_ref().is_some_and(|space| *end <= space.len());
        let (Some(end), Some(space)) = (end.filter(fits), &self.space) else {
            // More than any machine has; such tables fail for who uses them, as they would here.
            debug_assert!(false, "addresses were reserved for all tables");
            return Table::heap(count);
        };
        self.used = end;
        let first = space.as_ptr().wrapping_add(start).cast::<T>();
        let Some(first) = NonNull::new(first) else { return Table::heap(count) };
        // SAFETY: the part lies inside of the mapping, as was just checked, which is zeroes and aligned to
        // 2 MiB, and no other part overlaps it.
        unsafe { Table::mapped(first, count, Arc::clone(space) as _) }
    }
}
