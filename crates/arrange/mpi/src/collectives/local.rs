//! Reductions whose elements the MPI combines: operands go through the lines, and each rank that gets a result combines
//! them by `MPI_Reduce_local`, in the order of ranks.
//!
//! So are done what lines cannot compute with (complex numbers, `long double`, pairs of a value and a place) and
//! operations of the program's own, whether they commute or not. Operands travel as the bytes of their signature and
//! are laid out here as the MPI has them in memory.
//!
//! So is done what a user wants in the order of ranks, by [`super::ordered`] also where the MPI moves the operands.

use super::request::Request;
use crate::abi::{Handle, Mpi};
use crate::call::{Failed, NOTHING, Outcome};
use crate::payload::{Data, Scratch};
use isochrone_cla::live::Kind;
use std::ffi::{c_int, c_void};
use std::ops::Range;

/// A reduction that the MPI does on operands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Local {
    /// What this rank gives; its first block, where it has one for each rank.
    pub(super) given: Data,
    /// Where its result goes, if it gets one.
    pub(super) got: Option<Data>,
    pub(super) operation: Handle,
    pub(super) root: c_int,
}

impl Local {
    /// Combines the operands of all ranks: at the root, or everywhere.
    pub(super) fn reduce(self, request: Request<'_>, kind: Kind) -> Outcome {
        let ranks = usize::from(request.comm.size);
        let moves = if kind == Kind::Reduce { Kind::Gather } else { Kind::Allgather };
        self.of(request, moves, 0..ranks)
    }

    /// Combines the operands of the first ranks, up to this one or below it.
    pub(super) fn scan(self, request: Request<'_>, kind: Kind) -> Outcome {
        let below = usize::from(request.comm.rank);
        let ranks = 0..below + usize::from(kind == Kind::Scan);
        self.of(request, Kind::Allgather, ranks)
    }

    /// Combines what all ranks have for this one: a block of each rank's operands.
    pub(super) fn scatter(self, request: Request<'_>) -> Outcome {
        let ranks = usize::from(request.comm.size);
        self.of(request, Kind::Alltoall, 0..ranks)
    }

    /// Combines the operands of the first of these ranks up to the last; none: this rank gets nothing.
    fn of(self, request: Request<'_>, moves: Kind, ranks: Range<usize>) -> Outcome {
        let (mpi, bytes) = (request.mpi, self.given.bytes());
        let all = bytes.saturating_mul(usize::from(request.comm.size));
        let mut call = request.call(self.root, bytes, NOTHING)?;
        let blocks = if moves == Kind::Alltoall { usize::from(call.comm.size) } else { 1 };
        let send = self.given.times(blocks).read(mpi, &mut call.comm.scratch.send)?;
        let room = &mut call.comm.scratch.receive;
        if self.got.is_some() {
            room.resize(all, 0);
        }
        let receive = if bytes == 0 { std::ptr::dangling_mut() } else { room.as_mut_ptr() };
        // SAFETY: this rank's operands are read, and whoever gets all of them has room.
        let done = unsafe { call.lines(moves, send, receive) }?;
        if let Some(got) = self.got.filter(|_| bytes > 0 && !ranks.is_empty()) {
            let operands = Operands { mpi, data: got, operation: self.operation };
            operands.fold(&mut call.comm.scratch, ranks)?;
        }
        Ok(done)
    }
}

/// What is combined, and how.
pub(super) struct Operands<'a> {
    pub(super) mpi: &'a Mpi,
    /// Where the result goes: as many elements as each rank gave.
    pub(super) data: Data,
    pub(super) operation: Handle,
}

impl Operands<'_> {
    /// Combines what these ranks gave, whose bytes have come, in their order.
    pub(super) fn fold(&self, scratch: &mut Scratch, ranks: Range<usize>) -> Result<(), Failed> {
        let mut result = self.operand(scratch, ranks.start)?;
        for rank in ranks.start + 1..ranks.end {
            let right = self.operand(scratch, rank)?;
            let count = c_int::try_from(self.data.count).unwrap_or(c_int::MAX);
            let function = self.mpi.functions().reduce_local;
            // SAFETY: two operands of so many elements as the MPI lays them out; the right one becomes the result.
            let code = unsafe { function(result, right, count, self.data.handle, self.operation) };
            if code != 0 {
                return Err(Failed::Refused(code));
            }
            result = right;
        }
        let bytes = self.data.bytes();
        if self.data.layout.plain {
            let place = self.data.place();
            // SAFETY: the result has as many bytes, and so has the caller's buffer, which is no scratch.
            unsafe { std::ptr::copy_nonoverlapping(result.cast_const().cast(), place, bytes) };
            return Ok(());
        }
        let packed = Data { buffer: result, ..self.data };
        packed.read(self.mpi, &mut scratch.send)?;
        self.data.unpack_from(self.mpi, &mut scratch.send).map_err(Failed::Refused)
    }

    /// What a rank gave, as the MPI lays it out: where its first element is.
    fn operand(&self, scratch: &mut Scratch, rank: usize) -> Result<*mut c_void, Failed> {
        let bytes = self.data.bytes();
        let came = &mut scratch.receive[rank * bytes..][..bytes];
        if self.data.layout.plain {
            return Ok(came.as_mut_ptr().cast());
        }
        let span = Extent::of(self.mpi, self.data.handle)?.span(self.data.count);
        let room = &mut scratch.operands[rank % 2];
        room.clear();
        room.resize(span.bytes.div_ceil(size_of::<u128>()) + 1, 0);
        let buffer = room.as_mut_ptr().cast::<c_void>().wrapping_byte_offset(span.first);
        let data = Data { buffer, ..self.data };
        data.unpack_from(self.mpi, came).map_err(Failed::Refused)?;
        Ok(buffer)
    }
}

/// How elements of a type lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    /// From one element to the next.
    extent: isize,
    /// From an element's place to its first byte.
    first: isize,
    /// From there to its last byte.
    bytes: isize,
}

/// The memory of some elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MemorySpan {
    /// From its first byte to the place of the first element.
    first: isize,
    bytes: usize,
}

impl Extent {
    fn of(mpi: &Mpi, kind: Handle) -> Result<Self, Failed> {
        let f = mpi.functions();
        let [mut start, mut extent, mut first, mut bytes] = [0_isize; 4];
        // SAFETY: a type of the caller's that the MPI has packed, and places for the answers.
        let failed = unsafe { (f.type_get_extent)(kind, &raw mut start, &raw mut extent) };
        // SAFETY: as above.
        let code =
            failed | unsafe { (f.type_get_true_extent)(kind, &raw mut first, &raw mut bytes) };
        if code == 0 { Ok(Self { extent, first, bytes }) } else { Err(Failed::Refused(code)) }
    }

    /// The memory of `count` elements, which may go backwards.
    const fn span(self, count: usize) -> MemorySpan {
        let steps = count.saturating_sub(1).cast_signed().saturating_mul(self.extent);
        let below = if steps < 0 { steps } else { 0 };
        let bytes = self.bytes.saturating_add(steps.saturating_abs());
        MemorySpan { first: -(self.first + below), bytes: bytes.unsigned_abs() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_elements_holds_all_of_them() {
        let pair = Extent { extent: 16, first: 0, bytes: 12 };
        assert_eq!(pair.span(1), MemorySpan { first: 0, bytes: 12 });
        assert_eq!(pair.span(3), MemorySpan { first: 0, bytes: 44 });
        // Its first byte lies before its place.
        let early = Extent { extent: 8, first: -4, bytes: 8 };
        assert_eq!(early.span(2), MemorySpan { first: 4, bytes: 16 });
        // Elements that go down: the second lies 8 bytes below the first.
        let down = Extent { extent: -8, first: 0, bytes: 4 };
        assert_eq!(down.span(2), MemorySpan { first: 8, bytes: 12 });
        assert_eq!(down.span(0), MemorySpan { first: 0, bytes: 4 });
    }
}
