//! What a task is: from what C says of one to its kernel, arguments and footprint.

use super::kernels::List;
use super::slice;
use crate::status::Failure;
use isochrone_tasks::live::{ForeignKernel, Task};
use isochrone_tasks::{ARGUMENT_BYTES, DataId, Footprint, Mode, Op, Range, TaskError};
use std::ffi::c_void;

/// A range of a task, `isochrone_range` in C.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct IsochroneRange {
    /// The data's number.
    pub data: u32,
    /// How the range is used.
    pub mode: u32,
    /// First byte.
    pub start: u64,
    /// How many.
    pub bytes: u64,
}

/// Modes by their numbers in C.
const MODES: [Mode; 7] = [
    Mode::In,
    Mode::Out,
    Mode::InOut,
    Mode::Commutative,
    Mode::Reduce(Op::Sum),
    Mode::Reduce(Op::Min),
    Mode::Reduce(Op::Max),
];

/// What a C program gives with a task.
pub(super) struct Given {
    pub(super) arguments: *const c_void,
    pub(super) bytes: usize,
    pub(super) ranges: *const IsochroneRange,
    /// How many ranges.
    pub(super) count: usize,
}

/// The arguments of a task, and zeros.
///
/// # Safety
/// As `isochrone.h` says of `isochrone_tasks_spawn`.
unsafe fn argued(given: &Given) -> Result<[u8; ARGUMENT_BYTES], Failure> {
    let &Given { arguments, bytes, .. } = given;
    let mut kept = [0; ARGUMENT_BYTES];
    let room = kept.get_mut(..bytes).ok_or_else(|| {
        Failure::argument(format!(
            "{bytes} bytes of arguments; a task has {ARGUMENT_BYTES} at most"
        ))
    })?;
    // SAFETY: the caller vouches for the arguments.
    room.copy_from_slice(unsafe { slice(arguments.cast::<u8>(), bytes, "arguments") }?);
    Ok(kept)
}

/// Puts the ranges and the priority of a task into its footprint, which is empty.
///
/// # Safety
/// As `isochrone.h` says of `isochrone_tasks_spawn`.
#[inline]
pub(super) unsafe fn described(
    footprint: &mut Footprint,
    priority: i32,
    ranges: *const IsochroneRange,
    count: usize,
) -> Result<(), Failure> {
    footprint.priority(priority);
    // SAFETY: the caller vouches for the ranges.
    for range in unsafe { slice(ranges, count, "ranges") }? {
        let mode = usize::try_from(range.mode).ok().and_then(|mode| MODES.get(mode));
        let mode = mode.ok_or_else(|| {
            Failure::argument(format!("{} is no mode; isochrone.h names them", range.mode))
        })?;
        if range.bytes == 0 {
            return Err(Failure::argument("a range of no bytes; leave it out"));
        }
        footprint.access(bytes_of(range.data, range.start, range.bytes), *mode);
    }
    Ok(())
}

pub(super) const fn bytes_of(data: u32, start: u64, bytes: u64) -> Range {
    Range { data: DataId(data), start, bytes }
}

/// Registers a task of the kernel with this number: `register` enters it.
///
/// # Safety
/// As `isochrone.h` says of `isochrone_tasks_spawn`.
pub(super) unsafe fn spawned(
    list: &List,
    kernel: u32,
    priority: i32,
    given: &Given,
    register: impl FnOnce(ForeignKernel, [u8; ARGUMENT_BYTES], &Footprint) -> Result<Task, TaskError>,
) -> Result<(), Failure> {
    let kernel = list.kernel(kernel)?;
    let mut footprint = Footprint::new();
    // SAFETY: the caller vouches for arguments and ranges.
    let arguments = unsafe { argued(given) }?;
    // SAFETY: as above.
    unsafe { described(&mut footprint, priority, given.ranges, given.count) }?;
    register(kernel, arguments, &footprint)?;
    Ok(())
}
