//! Collectives without a root that Reduce and Allgather leave open: all to all, and reductions of which each rank gets
//! another part.

use super::local::Local;
use super::request::{Request, Side, attempt};
use crate::abi::{Buffer, Handle, How};
use crate::call::{Failed, NOTHING, Outcome};
use crate::payload::Data;
use crate::tally::ByMpi;
use isochrone_cla::live::Kind;
use std::ffi::c_int;

/// `MPI_Alltoall`.
pub(crate) fn alltoall(send: Side, receive: Side, comm: Handle) -> Option<c_int> {
    attempt(Kind::Alltoall, 0, comm, |mut request| {
        let (mpi, ranks) = (request.mpi, usize::from(request.comm.size));
        let got = request.data(receive.0, receive.1, receive.2)?;
        let in_place = mpi.is_in_place(send.0);
        let own = if in_place { got } else { request.data(send.0, send.1, send.2)? };
        if !in_place && request.is_aliased(Kind::Alltoall, &own, &got) {
            return Err(Failed::Wrong);
        }
        if own.bytes() != got.bytes() {
            return Err(Failed::Mpis(ByMpi::Operation));
        }
        let mut call = request.call(0, got.bytes(), NOTHING)?;
        let given = own.times(ranks).read(mpi, &mut call.comm.scratch.send)?;
        let all = got.times(ranks);
        let place = all.room(&mut call.comm.scratch.receive);
        // SAFETY: a block for each rank is read, and there is room for one of each.
        let done = unsafe { call.lines(Kind::Alltoall, given, place) }?;
        all.unpack(mpi, &mut call.comm.scratch.receive)?;
        Ok(done)
    })
}

/// What a reduction without a root is called with.
#[derive(Clone, Copy)]
struct Elements {
    send: Buffer,
    receive: Buffer,
    count: i64,
    handle: Handle,
    operation: Handle,
}

/// `MPI_Reduce_scatter_block`.
pub(crate) fn reduce_scatter_block(
    send: Buffer,
    receive: Buffer,
    count: i64,
    handle: Handle,
    operation: Handle,
    comm: Handle,
) -> Option<c_int> {
    let elements = Elements { send, receive, count, handle, operation };
    attempt(Kind::ReduceScatter, 0, comm, |request| reduced(request, Kind::ReduceScatter, elements))
}

/// `MPI_Scan`.
pub(crate) fn scan(
    send: Buffer,
    receive: Buffer,
    count: i64,
    handle: Handle,
    operation: Handle,
    comm: Handle,
) -> Option<c_int> {
    let elements = Elements { send, receive, count, handle, operation };
    attempt(Kind::Scan, 0, comm, |request| reduced(request, Kind::Scan, elements))
}

/// `MPI_Exscan`.
pub(crate) fn exscan(
    send: Buffer,
    receive: Buffer,
    count: i64,
    handle: Handle,
    operation: Handle,
    comm: Handle,
) -> Option<c_int> {
    let elements = Elements { send, receive, count, handle, operation };
    attempt(Kind::Exscan, 0, comm, |request| reduced(request, Kind::Exscan, elements))
}

fn reduced(mut request: Request<'_>, kind: Kind, elements: Elements) -> Outcome {
    let Elements { send, receive, count, handle, operation } = elements;
    let (mpi, ranks) = (request.mpi, usize::from(request.comm.size));
    let in_place = mpi.is_in_place(send);
    let given = request.data(if in_place { receive } else { send }, count, handle)?;
    // The first rank of an exscan gets nothing, and may have no place for it; MPICH wants one all the same.
    let gets = kind != Kind::Exscan || request.comm.rank > 0 || mpi.looks_at_buffers();
    let got = if gets { request.data(receive, count, handle)? } else { given };
    if !in_place && request.is_aliased(kind, &given, &Data { buffer: receive, ..given }) {
        return Err(Failed::Wrong);
    }
    let operation = mpi.handle(operation);
    let combine = match request.how(operation, got)? {
        How::Lines(combine) => combine,
        How::Local => {
            let local = Local { given, got: Some(got), operation, root: 0 };
            return match kind {
                Kind::ReduceScatter => local.scatter(request),
                kind => local.scan(request, kind),
            };
        }
    };
    let mut call = request.call(0, got.bytes(), combine)?;
    let blocks = if kind == Kind::ReduceScatter { ranks } else { 1 };
    let all: Data = given.times(blocks);
    let send = all.read(mpi, &mut call.comm.scratch.send)?;
    let receive = got.room(&mut call.comm.scratch.receive);
    // SAFETY: all ranks give so many elements, for each rank where each gets its own, and have room for what they get.
    unsafe { call.lines(kind, send, receive) }
}
