//! Reductions without a root: of all that ranks gave, of a block of it, of what ranks up to this one gave.

use super::local::Local;
use super::ordered;
use super::request::{Elements, Request, attempt};
use crate::abi::{Handle, How};
use crate::call::Outcome;
use crate::payload::Data;
use crate::world::orders;
use isochrone_cla::live::Kind;
use std::ffi::c_int;

/// `MPI_Allreduce`.
#[inline]
pub(crate) fn allreduce(elements: Elements, comm: Handle) -> Option<c_int> {
    whole(Kind::Allreduce, elements, comm)
}

/// `MPI_Reduce_scatter_block`.
pub(crate) fn reduce_scatter_block(elements: Elements, comm: Handle) -> Option<c_int> {
    whole(Kind::ReduceScatter, elements, comm)
}

/// `MPI_Scan`.
pub(crate) fn scan(elements: Elements, comm: Handle) -> Option<c_int> {
    whole(Kind::Scan, elements, comm)
}

/// `MPI_Exscan`.
pub(crate) fn exscan(elements: Elements, comm: Handle) -> Option<c_int> {
    whole(Kind::Exscan, elements, comm)
}

/// One of these, in lines or in the order of ranks, or nothing.
#[inline(always)]
fn whole(kind: Kind, elements: Elements, comm: Handle) -> Option<c_int> {
    let done = attempt(kind, 0, comm, |request| reduced(request, kind, elements));
    if done.is_none() && orders() { ordered::reduced(kind, elements, comm) } else { done }
}

/// A reduction without a root. Inlined, so that each has what is its own.
#[inline(always)]
pub(super) fn reduced(mut request: Request<'_>, kind: Kind, elements: Elements) -> Outcome {
    let (given, got) = request.reduced(kind, elements)?;
    let (mpi, ranks) = (request.mpi, usize::from(request.comm.size));
    let operation = mpi.handle(elements.operation);
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
