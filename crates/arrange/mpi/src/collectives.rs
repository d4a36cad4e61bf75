//! The collectives: done in lines, or left to the MPI.
//!
//! Each function returns what the caller's MPI function returns, or nothing where the MPI is to do it.
//! That choice depends on the communicator, the operation, the root and the bytes of the significant
//! arguments, which MPI makes equal on all ranks, and on nothing else.

use crate::abi::{Buffer, Handle, Mpi};
use crate::call::{Call, Done, Failed, NOTHING, Outcome};
use crate::comm::State;
use crate::config::Config;
use crate::payload::Data;
use crate::world::{self, Inner};
use isochrone_cla::live::Kind;
use isochrone_cla::program::{Combine, Rank};
use std::ffi::c_int;

/// A call's arguments before anything is decided.
struct Request<'a> {
    mpi: &'static Mpi,
    inner: &'a mut Inner,
    slot: usize,
    config: &'static Config,
    comm: Handle,
}

impl Request<'_> {
    /// What a caller named; the MPI's where it is nothing valid.
    #[inline]
    fn data(&mut self, buffer: Buffer, count: i64, handle: Handle) -> Result<Data, Failed> {
        let handle = self.mpi.handle(handle);
        let layout = self.inner.layout(self.mpi, handle).ok_or(Failed::Mpis)?;
        let count = usize::try_from(count).map_err(|_| Failed::Mpis)?;
        Ok(Data { buffer, count, handle, layout, comm: self.comm })
    }

    fn rank(&self) -> u16 {
        self.inner.rank(self.slot)
    }

    fn ranks(&self) -> usize {
        usize::from(self.inner.ranks(self.slot))
    }

    /// The call, if its root is a rank and its bytes are few enough, and some: without any an MPI returns at
    /// once, since nobody has to wait for nothing.
    #[inline]
    fn call(&mut self, root: c_int, bytes: usize, combine: Combine) -> Result<Call<'_>, Failed> {
        if bytes == 0 || bytes > self.config.bytes_max {
            return Err(Failed::Mpis);
        }
        self.of_any_size(root, bytes, combine)
    }

    /// The call, if its root is a rank.
    #[inline]
    fn of_any_size(
        &mut self,
        root: c_int,
        bytes: usize,
        combine: Combine,
    ) -> Result<Call<'_>, Failed> {
        let (comm, scratch) = self.inner.comm(self.slot);
        let comm = comm.ok_or(Failed::Mpis)?;
        let root = u16::try_from(root).ok().filter(|root| *root < comm.size);
        let root = Rank(root.ok_or(Failed::Mpis)?);
        Ok(Call { mpi: self.mpi, comm, scratch, root, bytes, combine })
    }
}

/// Enters, works, counts and says what the caller is told.
#[inline]
fn attempt(kind: Kind, comm: Handle, work: impl FnOnce(Request<'_>) -> Outcome) -> Option<c_int> {
    let mpi = world::mpi()?;
    let comm = mpi.handle(comm);
    let (mut inside, slot) = world::enter(mpi, comm, kind)?;
    let config = inside.config();
    let inner = inside.inner();
    if !inner.in_lines(slot) {
        inner.count(kind).mpi += 1;
        return None;
    }
    let failed = match work(Request { mpi, inner, slot, config, comm }) {
        Ok(Done::Lines) => {
            inside.inner().count(kind).lines += 1;
            return Some(0);
        }
        Ok(Done::Across) => {
            inside.inner().count(kind).across += 1;
            return Some(0);
        }
        Err(failed) => failed,
    };
    match failed {
        Failed::Mpis => {
            inside.inner().count(kind).mpi += 1;
            None
        }
        Failed::Refused(code) => Some(code),
        Failed::Gone(error) => {
            let code = inside.inner().error(mpi, &error.to_string());
            drop(inside);
            // SAFETY: the caller's communicator; its handler may end the program, as for any error.
            unsafe { (mpi.functions().comm_call_errhandler)(comm, code) };
            Some(code)
        }
    }
}

impl Call<'_> {
    /// As [`Self::lines`], or with the MPI's help across nodes.
    ///
    /// # Safety
    /// As for [`isochrone_cla::live::Team::call`].
    #[inline]
    unsafe fn anywhere(&mut self, kind: Kind, send: *const u8, receive: *mut u8) -> Outcome {
        if matches!(self.comm.state, State::Across(_)) {
            // SAFETY: the caller vouches for the buffers.
            return unsafe { crate::across::call(self, kind, send, receive) };
        }
        // SAFETY: as above.
        unsafe { self.lines(kind, send, receive) }
    }
}

/// `MPI_Bcast`.
#[inline]
pub(crate) fn bcast(
    buffer: Buffer,
    count: i64,
    handle: Handle,
    root: c_int,
    comm: Handle,
) -> Option<c_int> {
    attempt(Kind::Broadcast, comm, |mut request| {
        let data = request.data(buffer, count, handle)?;
        let mpi = request.mpi;
        let mut call = request.call(root, data.bytes(), NOTHING)?;
        if Rank(call.comm.rank) == call.root {
            let send = data.read(mpi, &mut call.scratch.send)?;
            // SAFETY: the root's bytes are read and nothing is written, by MPI's rules for a broadcast.
            return unsafe { call.anywhere(Kind::Broadcast, send, send.cast_mut()) };
        }
        let receive = data.room(&mut call.scratch.receive);
        // SAFETY: there is room for the bytes, by MPI's rules for a broadcast.
        let done = unsafe { call.anywhere(Kind::Broadcast, receive, receive) }?;
        data.unpack(mpi, &mut call.scratch.receive)?;
        Ok(done)
    })
}

/// `MPI_Barrier`.
#[inline]
pub(crate) fn barrier(comm: Handle) -> Option<c_int> {
    attempt(Kind::Barrier, comm, |mut request| {
        let none = std::ptr::dangling_mut::<u8>();
        // SAFETY: a barrier moves no bytes.
        unsafe { request.of_any_size(0, 0, NOTHING)?.anywhere(Kind::Barrier, none, none) }
    })
}

/// `MPI_Reduce`.
pub(crate) fn reduce(
    send: Buffer,
    receive: Buffer,
    count: i64,
    handle: Handle,
    operation: Handle,
    root: c_int,
    comm: Handle,
) -> Option<c_int> {
    attempt(Kind::Reduce, comm, |mut request| {
        let mpi = request.mpi;
        let data = request.data(send, count, handle)?;
        let combine = request.inner.types.combine(mpi.handle(operation), data.layout);
        let combine = combine.ok_or(Failed::Mpis)?;
        let mut call = request.call(root, data.bytes(), combine)?;
        let at_root = Rank(call.comm.rank) == call.root;
        let result = if at_root { Data { buffer: receive, ..data } } else { data };
        let send = if mpi.is_in_place(send) { result } else { data };
        let send = send.read(mpi, &mut call.scratch.send)?;
        // Only the root's is touched.
        let receive = result.room(&mut call.scratch.receive);
        // SAFETY: all ranks give so many elements, and the root has room for them.
        unsafe { call.anywhere(Kind::Reduce, send, receive) }
    })
}

/// `MPI_Allreduce`.
#[inline]
pub(crate) fn allreduce(
    send: Buffer,
    receive: Buffer,
    count: i64,
    handle: Handle,
    operation: Handle,
    comm: Handle,
) -> Option<c_int> {
    attempt(Kind::Allreduce, comm, |mut request| {
        let mpi = request.mpi;
        let result = request.data(receive, count, handle)?;
        let combine = request.inner.types.combine(mpi.handle(operation), result.layout);
        let combine = combine.ok_or(Failed::Mpis)?;
        let mut call = request.call(0, result.bytes(), combine)?;
        let data = if mpi.is_in_place(send) { result } else { Data { buffer: send, ..result } };
        let send = data.read(mpi, &mut call.scratch.send)?;
        let receive = result.room(&mut call.scratch.receive);
        // SAFETY: all ranks give so many elements and have room for them.
        unsafe { call.anywhere(Kind::Allreduce, send, receive) }
    })
}

/// One side of a collective that moves blocks: buffer, count, type.
pub(crate) type Side = (Buffer, i64, Handle);

/// `MPI_Scatter`.
pub(crate) fn scatter(send: Side, receive: Side, root: c_int, comm: Handle) -> Option<c_int> {
    attempt(Kind::Scatter, comm, |mut request| {
        let (mpi, me, ranks) = (request.mpi, request.rank(), request.ranks());
        if c_int::from(me) != root {
            let block = request.data(receive.0, receive.1, receive.2)?;
            let mut call = request.call(root, block.bytes(), NOTHING)?;
            let place = block.room(&mut call.scratch.receive);
            // SAFETY: there is room for a block.
            let done = unsafe { call.lines(Kind::Scatter, place, place) }?;
            block.unpack(mpi, &mut call.scratch.receive)?;
            return Ok(done);
        }
        let given = request.data(send.0, send.1, send.2)?;
        let stays = mpi.is_in_place(receive.0);
        let own = if stays { None } else { Some(request.data(receive.0, receive.1, receive.2)?) };
        let mut call = request.call(root, given.bytes(), NOTHING)?;
        let all = given.times(ranks).read(mpi, &mut call.scratch.send)?;
        let place = match own {
            Some(own) => own.room(&mut call.scratch.receive),
            // The root's block stays where it is: it is copied onto itself, which does nothing.
            None => all.cast_mut().wrapping_add(usize::from(me) * given.bytes()),
        };
        // SAFETY: the root gives a block for each rank, and has room for its own.
        let done = unsafe { call.lines(Kind::Scatter, all, place) }?;
        if let Some(own) = own {
            own.unpack(mpi, &mut call.scratch.receive)?;
        }
        Ok(done)
    })
}

/// `MPI_Gather`.
pub(crate) fn gather(send: Side, receive: Side, root: c_int, comm: Handle) -> Option<c_int> {
    attempt(Kind::Gather, comm, |mut request| {
        let (mpi, me) = (request.mpi, request.rank());
        if c_int::from(me) != root {
            let block = request.data(send.0, send.1, send.2)?;
            let mut call = request.call(root, block.bytes(), NOTHING)?;
            let given = block.read(mpi, &mut call.scratch.send)?;
            // SAFETY: a block is read; only the root's `Receive` is touched.
            return unsafe { call.lines(Kind::Gather, given, given.cast_mut()) };
        }
        gathered(&mut request, Kind::Gather, send, receive, root)
    })
}

/// `MPI_Allgather`.
pub(crate) fn allgather(send: Side, receive: Side, comm: Handle) -> Option<c_int> {
    attempt(Kind::Allgather, comm, |mut request| {
        gathered(&mut request, Kind::Allgather, send, receive, 0)
    })
}

/// The part of a rank that gets all blocks.
fn gathered(
    request: &mut Request<'_>,
    kind: Kind,
    send: Side,
    receive: Side,
    root: c_int,
) -> Outcome {
    let (mpi, me, ranks) = (request.mpi, request.rank(), request.ranks());
    let got = request.data(receive.0, receive.1, receive.2)?;
    let own = if mpi.is_in_place(send.0) {
        got.block(mpi, usize::from(me))
    } else {
        request.data(send.0, send.1, send.2)?
    };
    let mut call = request.call(root, got.bytes(), NOTHING)?;
    let given = own.read(mpi, &mut call.scratch.send)?;
    let all = got.times(ranks);
    let place = all.room(&mut call.scratch.receive);
    // SAFETY: a block is read, and there is room for one of each rank.
    let done = unsafe { call.lines(kind, given, place) }?;
    all.unpack(mpi, &mut call.scratch.receive)?;
    Ok(done)
}
