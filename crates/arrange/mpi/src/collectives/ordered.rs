//! Reductions by the MPI whose operands are combined in the order of ranks, where a user asks for that: calls that are
//! not done in lines give the same bits as those that are, on any number of nodes.
//!
//! The MPI moves the operands as bytes, and who gets a result combines them as [`super::local`] does. It is slower than
//! what the MPI has for it, so nothing of it is done unasked.

use super::local::Operands;
use super::request::{Elements, Request};
use crate::abi::{Handle, How};
use crate::call::Failed;
use crate::payload::Data;
use crate::tally::ByMpi;
use crate::world;
use isochrone_cla::live::Kind;
use std::ffi::{c_int, c_void};
use std::ops::Range;

/// Bytes of operands of all ranks that a rank has at once, if one element of each is not more.
const ROOM: usize = 1 << 20;

/// `MPI_Reduce`.
#[cold]
pub(super) fn reduce(elements: Elements, root: c_int, comm: Handle) -> Option<c_int> {
    ordered(Kind::Reduce, comm, |mut request| {
        let (given, got) = request.rooted(elements, root)?;
        let ranks = 0..usize::from(request.comm.size);
        if usize::try_from(root).is_ok_and(|root| ranks.contains(&root)) {
            return Ordered::of(request, elements, given)?.combine(given, got, Some(root), &ranks);
        }
        Err(Failed::Wrong)
    })
}

/// Those without a root and with as many elements for each rank.
#[cold]
pub(super) fn reduced(kind: Kind, elements: Elements, comm: Handle) -> Option<c_int> {
    ordered(kind, comm, |mut request| {
        let (given, got) = request.reduced(kind, elements)?;
        let (me, ranks) = request.seat();
        let mut call = Ordered::of(request, elements, got)?;
        match kind {
            Kind::ReduceScatter => {
                let mpi = call.request.mpi;
                let block = |rank| given.block(mpi, rank);
                call.scatter((0..ranks).map(block), got)
            }
            Kind::Scan => call.combine(given, Some(got), None, &(0..me + 1)),
            Kind::Exscan => call.combine(given, Some(got), None, &(0..me)),
            _ => call.combine(given, Some(got), None, &(0..ranks)),
        }
    })
}

/// `MPI_Reduce_scatter`; `parts` says what a rank gives to each one, and where it gets its own.
#[cold]
pub(super) fn reduce_scatter(
    elements: Elements,
    comm: Handle,
    parts: impl FnOnce(&mut Request<'_>) -> Result<(Vec<Data>, Data), Failed>,
) -> Option<c_int> {
    ordered(Kind::ReduceScatter, comm, |mut request| {
        let (blocks, got) = parts(&mut request)?;
        Ordered::of(request, elements, got)?.scatter(blocks.into_iter(), got)
    })
}

/// Does it where it is wanted; nothing where the call is the MPI's as it came.
fn ordered(
    kind: Kind,
    comm: Handle,
    work: impl FnOnce(Request<'_>) -> Result<(), Failed>,
) -> Option<c_int> {
    let mpi = world::mpi()?;
    let (world, handle) = (world::world(mpi), mpi.handle(comm));
    let mut inside = world.enter(mpi, handle)?;
    let comm = inside.comm()?;
    let request = Request { mpi, world, comm, handle, kind, block: None, devices: None };
    if !request.is_ordered() {
        return None;
    }
    match work(request) {
        Ok(()) => {
            inside.comm()?.tallies[kind as usize].in_order += 1;
            Some(0)
        }
        // The MPI has told the communicator's handler.
        Err(Failed::Refused(code)) => Some(code),
        Err(_) => None,
    }
}

/// A reduction in the order of ranks.
struct Ordered<'a> {
    request: Request<'a>,
    operation: Handle,
}

impl<'a> Ordered<'a> {
    /// One of which the result depends on the order: it is left as it came where not.
    fn of(request: Request<'a>, elements: Elements, data: Data) -> Result<Self, Failed> {
        let operation = request.mpi.handle(elements.operation);
        match request.how(operation, data)? {
            How::Local => Ok(Self { request, operation }),
            How::Lines(_) => Err(Failed::Mpis(ByMpi::Operation)),
        }
    }

    /// Each rank gets what all give for it.
    fn scatter(&mut self, blocks: impl Iterator<Item = Data>, got: Data) -> Result<(), Failed> {
        let (me, ranks) = self.request.seat();
        for (rank, block) in blocks.enumerate() {
            let root = c_int::try_from(rank).map_err(|_| Failed::Wrong)?;
            self.combine(block, (rank == me).then_some(got), Some(root), &(0..ranks))?;
        }
        Ok(())
    }

    /// Combines what `ranks` give, in their order, where it is `got`: at `root`, or everywhere.
    fn combine(
        &mut self,
        given: Data,
        got: Option<Data>,
        root: Option<c_int>,
        ranks: &Range<usize>,
    ) -> Result<(), Failed> {
        let mpi = self.request.mpi;
        let each = given.layout.bytes.saturating_mul(self.request.comm.size.into());
        let most = ROOM.checked_div(each).unwrap_or(given.count).max(1);
        for begin in (0..given.count).step_by(most) {
            let count = most.min(given.count - begin);
            self.gather(given.part(mpi, begin, count), got.is_some(), root)?;
            if let Some(got) = got.filter(|_| !ranks.is_empty() && each > 0) {
                let data = got.part(mpi, begin, count);
                let operands = Operands { mpi, data, operation: self.operation };
                operands.fold(&mut self.request.comm.scratch, ranks.clone())?;
            }
        }
        Ok(())
    }

    /// The MPI moves what each rank gives to the root, or to all.
    fn gather(&mut self, given: Data, gets: bool, root: Option<c_int>) -> Result<(), Failed> {
        let Request { mpi, comm, handle, .. } = &mut self.request;
        let (bytes, byte, comm_handle) = (given.bytes(), mpi.byte(), *handle);
        let count = c_int::try_from(bytes).map_err(|_| Failed::Mpis(ByMpi::Bytes))?;
        let send = given.read(mpi, &mut comm.scratch.send)?.cast_mut().cast::<c_void>();
        let room = &mut comm.scratch.receive;
        if gets {
            room.resize(bytes.saturating_mul(comm.size.into()), 0);
        }
        let receive = room.as_mut_ptr().cast::<c_void>();
        let f = mpi.functions();
        let code = match root {
            // SAFETY: all ranks make this call now and give so many bytes; the root has room for those of all.
            Some(root) => unsafe {
                (f.gather)(send, count, byte, receive, count, byte, root, comm_handle)
            },
            // SAFETY: as above, and all have room.
            None => unsafe { (f.allgather)(send, count, byte, receive, count, byte, comm_handle) },
        };
        if code == 0 { Ok(()) } else { Err(Failed::Refused(code)) }
    }
}
