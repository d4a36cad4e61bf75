//! The collectives: done in lines, or left to the MPI.
//!
//! Each function returns what the caller's MPI function returns, or nothing where the MPI is to do it. What all ranks
//! know alike decides that: the communicator, the operation, the root. Bytes are what each rank was given. MPI makes
//! them equal, but a wrong program does not: so they travel with the first line, and a rank that leaves a call to the
//! MPI says so and looks what others do before it goes there.

mod local;
mod ordered;
mod reductions;
mod request;
mod uneven;

pub(crate) use reductions::{allreduce, exscan, reduce_scatter_block, scan};
pub(crate) use request::Elements;
pub(crate) use uneven::{Sides, allgatherv, alltoallv, gatherv, reduce_scatter, scatterv};

use crate::abi::{Buffer, Handle, How, Mpi};
use crate::call::{Call, Done, Failed, NOTHING, Outcome};
use crate::comm::{Comm, State};
use crate::payload::Data;
use crate::tally::{ByMpi, class};
use crate::world::orders;
use isochrone_cla::live::{Kind, TeamError};
use isochrone_cla::program::Rank;
use local::Local;
use request::{Request, Side, attempt};
use std::ffi::c_int;

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

    /// What a call comes to that brought fewer bytes than there was room for: none of their business to MPIs, but for
    /// MPICH's broadcast. What comes after them stays as it was.
    #[inline]
    fn short(&mut self, kind: Kind, done: Outcome, data: &Data) -> Outcome {
        match done {
            Err(Failed::Broken(error)) => self.unlike(kind, error, data),
            done => done,
        }
    }

    #[cold]
    fn unlike(&mut self, kind: Kind, error: Box<TeamError>, data: &Data) -> Outcome {
        let TeamError::Unlike { mine, theirs: Some(theirs) } = *error else {
            return Err(Failed::Broken(error));
        };
        if theirs as usize >= mine {
            return Err(Failed::Broken(error));
        }
        if kind == Kind::Broadcast && self.mpi.looks_at_buffers() {
            return Err(Failed::Short);
        }
        let (mpi, bytes) = (self.mpi, data.bytes());
        let Comm { state, scratch, .. } = &mut *self.comm;
        match state.team() {
            _ if data.layout.plain => {}
            Some(team) if kind == Kind::Gather => {
                let blocks = scratch.receive.chunks_exact_mut(bytes).zip(team.gave());
                for (rank, (block, gave)) in blocks.enumerate() {
                    data.block(mpi, rank).keep(mpi, block, *gave as usize)?;
                }
            }
            _ => data.keep(mpi, &mut scratch.receive[..bytes], theirs as usize)?,
        }
        Ok(Done::Lines(class(bytes)))
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
    attempt(Kind::Broadcast, root, comm, |mut request| {
        let data = request.data(buffer, count, handle)?;
        let mpi = request.mpi;
        let mut call = request.call(root, data.bytes(), NOTHING)?;
        if Rank(call.comm.rank) == call.root {
            if call.is_large() && !data.layout.plain {
                return call.is_the_mpis(Kind::Broadcast);
            }
            let send = data.read(mpi, &mut call.comm.scratch.send)?;
            // SAFETY: the root's bytes are read and nothing is written, by MPI's rules for a broadcast.
            return unsafe { call.anywhere(Kind::Broadcast, send, send.cast_mut()) };
        }
        let receive = data.room(&mut call.comm.scratch.receive);
        // SAFETY: there is room for the bytes, by MPI's rules for a broadcast.
        let done = unsafe { call.anywhere(Kind::Broadcast, receive, receive) };
        let done = call.short(Kind::Broadcast, done, &data)?;
        data.unpack(mpi, &mut call.comm.scratch.receive)?;
        Ok(done)
    })
}

/// `MPI_Barrier`.
#[inline]
pub(crate) fn barrier(comm: Handle) -> Option<c_int> {
    attempt(Kind::Barrier, 0, comm, |request| {
        let none = std::ptr::dangling_mut::<u8>();
        // SAFETY: a barrier moves no bytes.
        unsafe { request.call(0, 0, NOTHING)?.anywhere(Kind::Barrier, none, none) }
    })
}

/// `MPI_Reduce`.
pub(crate) fn reduce(elements: Elements, root: c_int, comm: Handle) -> Option<c_int> {
    let done = attempt(Kind::Reduce, root, comm, |mut request| {
        let mpi = request.mpi;
        let (given, got) = request.rooted(elements, root)?;
        let operation = mpi.handle(elements.operation);
        let combine = match request.how(operation, given)? {
            How::Lines(combine) => combine,
            How::Local => {
                return Local { given, got, operation, root }.reduce(request, Kind::Reduce);
            }
        };
        let mut call = request.call(root, given.bytes(), combine)?;
        let send = given.read(mpi, &mut call.comm.scratch.send)?;
        // Only the root's is touched.
        let receive = got.unwrap_or(given).room(&mut call.comm.scratch.receive);
        // SAFETY: all ranks give so many elements, and the root has room for them.
        let done = unsafe { call.anywhere(Kind::Reduce, send, receive) }?;
        if let Some(got) = got {
            got.unpack(mpi, &mut call.comm.scratch.receive)?;
        }
        Ok(done)
    });
    if done.is_none() && orders() { ordered::reduce(elements, root, comm) } else { done }
}

/// `MPI_Scatter`.
pub(crate) fn scatter(send: Side, receive: Side, root: c_int, comm: Handle) -> Option<c_int> {
    attempt(Kind::Scatter, root, comm, |mut request| {
        let (mpi, me, ranks) = (request.mpi, request.comm.rank, usize::from(request.comm.size));
        if c_int::from(me) != root {
            let block = request.data(receive.0, receive.1, receive.2)?;
            let mut call = request.call(root, block.bytes(), NOTHING)?;
            let place = block.room(&mut call.comm.scratch.receive);
            // SAFETY: there is room for a block.
            let done = unsafe { call.lines(Kind::Scatter, place, place) };
            let done = call.short(Kind::Scatter, done, &block)?;
            block.unpack(mpi, &mut call.comm.scratch.receive)?;
            return Ok(done);
        }
        let given = request.data(send.0, send.1, send.2)?;
        let stays = mpi.is_in_place(receive.0);
        let own = if stays { None } else { Some(request.data(receive.0, receive.1, receive.2)?) };
        if own.is_some_and(|own| request.is_aliased(Kind::Scatter, &given, &own)) {
            return Err(Failed::Wrong);
        }
        let unlike = own.is_some_and(|own| own.bytes() != given.bytes());
        let mut call = request.call(root, given.bytes(), NOTHING)?;
        if call.is_large() && (unlike || !given.layout.plain) {
            return call.is_the_mpis(Kind::Scatter);
        }
        let all = given.times(ranks).read(mpi, &mut call.comm.scratch.send)?;
        let stays = all.wrapping_add(usize::from(me) * given.bytes());
        let place = match own {
            Some(own) if !unlike => own.room(&mut call.comm.scratch.receive),
            // The root's block stays where it is: it is copied onto itself, which does nothing.
            _ => stays.cast_mut(),
        };
        // SAFETY: the root gives a block for each rank, and has room for its own.
        let done = unsafe { call.lines(Kind::Scatter, all, place) }?;
        match own {
            // SAFETY: the root's block, of so many bytes.
            Some(own) if unlike => unsafe { moved(mpi, stays, given.bytes(), &own) }?,
            Some(own) => own.unpack(mpi, &mut call.comm.scratch.receive)?,
            None => {}
        }
        Ok(done)
    })
}

/// `MPI_Gather`.
pub(crate) fn gather(send: Side, receive: Side, root: c_int, comm: Handle) -> Option<c_int> {
    attempt(Kind::Gather, root, comm, |mut request| {
        let (mpi, me) = (request.mpi, request.comm.rank);
        if c_int::from(me) != root {
            let block = request.data(send.0, send.1, send.2)?;
            let mut call = request.call(root, block.bytes(), NOTHING)?;
            let given = block.read(mpi, &mut call.comm.scratch.send)?;
            // SAFETY: a block is read; only the root's `Receive` is touched.
            return unsafe { call.lines(Kind::Gather, given, given.cast_mut()) };
        }
        gathered(request, Kind::Gather, send, receive, root)
    })
}

/// `MPI_Allgather`.
pub(crate) fn allgather(send: Side, receive: Side, comm: Handle) -> Option<c_int> {
    attempt(Kind::Allgather, 0, comm, |request| {
        gathered(request, Kind::Allgather, send, receive, 0)
    })
}

/// `MPI_Alltoall`.
pub(crate) fn alltoall(send: Side, receive: Side, comm: Handle) -> Option<c_int> {
    attempt(Kind::Alltoall, 0, comm, |request| gathered(request, Kind::Alltoall, send, receive, 0))
}

/// The part of a rank that gets a block of each.
fn gathered(
    mut request: Request<'_>,
    kind: Kind,
    send: Side,
    receive: Side,
    root: c_int,
) -> Outcome {
    let mpi = request.mpi;
    let (me, ranks) = (usize::from(request.comm.rank), usize::from(request.comm.size));
    let got = request.data(receive.0, receive.1, receive.2)?;
    // Of these it gives one, or to each another.
    let gives = if kind == Kind::Alltoall { ranks } else { 1 };
    // Only where it is asked for: the root of a gather that gives from elsewhere need not know.
    let block = || if kind == Kind::Alltoall { got } else { got.block(mpi, me) };
    let in_place = mpi.is_in_place(send.0);
    let own = if in_place { block() } else { request.data(send.0, send.1, send.2)? };
    let aliased = |got| request.is_aliased(kind, &own, got);
    if !in_place && (aliased(&got) || (kind == Kind::Allgather && aliased(&block()))) {
        return Err(Failed::Wrong);
    }
    let unlike = own.bytes() != got.bytes();
    let mut call = request.call(root, got.bytes(), NOTHING)?;
    // What others copy, or the root of a gather has them write.
    let copied = if kind == Kind::Gather { &got } else { &own };
    if call.is_large() && (unlike || !copied.layout.plain) {
        return call.is_the_mpis(kind);
    }
    if unlike && kind == Kind::Alltoall {
        return Err(Failed::Mpis(ByMpi::Operation));
    }
    let mut fits = Ok(());
    let mut own = own;
    if unlike {
        // What a rank gives itself is its own affair: the others have blocks as it gets them.
        let given = own.read(mpi, &mut call.comm.scratch.send)?;
        let block = block();
        // SAFETY: what it gives, of so many bytes.
        fits = unsafe { moved(mpi, given, own.bytes(), &block) };
        own = block;
    }
    let given = own.times(gives).read(mpi, &mut call.comm.scratch.send)?;
    let all = got.times(ranks);
    let place = all.room(&mut call.comm.scratch.receive);
    // SAFETY: the blocks that it gives are read, and there is room for one of each rank.
    let done = unsafe { call.lines(kind, given, place) };
    let done = if kind == Kind::Gather { call.short(kind, done, &got)? } else { done? };
    all.unpack(mpi, &mut call.comm.scratch.receive)?;
    fits.map(|()| done)
}

/// Moves what a rank gives itself to where it gets it; more than fits is the error that it is by the MPI.
///
/// # Safety
/// There are so many `bytes` at `from`.
#[cold]
unsafe fn moved(mpi: &Mpi, from: *const u8, bytes: usize, to: &Data) -> Result<(), Failed> {
    // SAFETY: the caller vouches for the bytes.
    unsafe { to.fill(mpi, from, bytes) }?;
    if bytes <= to.bytes() {
        return Ok(());
    }
    let theirs = u32::try_from(bytes).unwrap_or(u32::MAX);
    Err(TeamError::Unlike { mine: to.bytes(), theirs: Some(theirs) }.into())
}
