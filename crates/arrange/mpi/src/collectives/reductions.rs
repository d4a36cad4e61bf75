//! Reductions without a root: of all that ranks gave, of a block of it, of what ranks up to this one gave.

use super::local::Local;
use super::request::{Elements, Request, attempt};
use crate::abi::{Handle, How};
use crate::call::{Failed, Outcome};
use crate::payload::Data;
use isochrone_cla::live::Kind;
use std::ffi::c_int;

/// `MPI_Allreduce`.
#[inline]
pub(crate) fn allreduce(elements: Elements, comm: Handle) -> Option<c_int> {
    attempt(Kind::Allreduce, 0, comm, |request| reduced(request, Kind::Allreduce, elements))
}

/// `MPI_Reduce_scatter_block`.
pub(crate) fn reduce_scatter_block(elements: Elements, comm: Handle) -> Option<c_int> {
    attempt(Kind::ReduceScatter, 0, comm, |request| reduced(request, Kind::ReduceScatter, elements))
}

/// `MPI_Scan`.
pub(crate) fn scan(elements: Elements, comm: Handle) -> Option<c_int> {
    attempt(Kind::Scan, 0, comm, |request| reduced(request, Kind::Scan, elements))
}

/// `MPI_Exscan`.
pub(crate) fn exscan(elements: Elements, comm: Handle) -> Option<c_int> {
    attempt(Kind::Exscan, 0, comm, |request| reduced(request, Kind::Exscan, elements))
}

/// A reduction without a root. Inlined, so that each has what is its own.
#[inline(always)]
pub(super) fn reduced(mut request: Request<'_>, kind: Kind, elements: Elements) -> Outcome {
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
                Kind::Allreduce => local.reduce(request, kind),
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
    let done = unsafe { call.anywhere(kind, send, receive) }?;
    if kind != Kind::Exscan || call.comm.rank > 0 {
        got.unpack(mpi, &mut call.comm.scratch.receive)?;
    }
    Ok(done)
}
