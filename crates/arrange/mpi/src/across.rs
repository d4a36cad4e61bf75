//! Communicators over several nodes: lines within a node, and the MPI itself between the first ranks of
//! nodes. There is no transport of our own.

use crate::abi::{Handle, Mpi};
use crate::call::{Call, Done, Failed, NOTHING};
use crate::comm::{Across, NodePlace, State};
use crate::payload::Scratch;
use crate::tally::ByMpi;
use isochrone_cla::live::{Kind, Team, TeamError};
use isochrone_cla::program::{Combine, Element, Rank};
use std::ffi::{c_int, c_void};

/// Within a node, ranks find their first one here.
const LEADER: Rank = Rank(0);

/// One call between nodes.
struct Step<'a> {
    mpi: &'a Mpi,
    team: &'a mut Team,
    leaders: Option<Handle>,
    bytes: usize,
    combine: Combine,
    /// The caller's type and operation, for the leaders; zero where nothing is combined.
    named: (Handle, Handle),
}

impl Step<'_> {
    /// # Safety
    /// As for [`Team::call`].
    unsafe fn within(
        &mut self,
        kind: Kind,
        root: Rank,
        send: *const u8,
        receive: *mut u8,
    ) -> Result<(), Failed> {
        // SAFETY: the caller vouches for the buffers.
        match unsafe { self.team.call(kind, root, self.bytes, self.combine, send, receive) } {
            // Other nodes may have room, and are on their way.
            Err(full @ TeamError::Full { .. }) => Err(Failed::Broken(Box::new(full))),
            done => Ok(done?),
        }
    }

    /// What comes of a step after which others of this node wait for another one of the same call. Where they gave
    /// other bytes this rank leaves it, and what it gives in its next call is not theirs: then no call succeeds any
    /// more.
    fn followed(&mut self, done: Result<(), Failed>) -> Result<(), Failed> {
        if let Err(Failed::Broken(error)) = &done
            && matches!(**error, TeamError::Unlike { .. })
        {
            self.team.stop();
        }
        done
    }

    fn leads(&self) -> bool {
        self.leaders.is_some()
    }

    /// Elements, as the MPI counts them.
    fn elements(&self) -> c_int {
        let each = self.combine.element().bytes() as usize;
        c_int::try_from(self.bytes / each).unwrap_or(0)
    }
}

/// Bcast, barrier, reduce and allreduce across nodes; the others are the MPI's.
///
/// # Safety
/// As for [`Team::call`], over the ranks of the communicator.
pub(crate) unsafe fn call(
    call: &mut Call<'_>,
    kind: Kind,
    send: *const u8,
    receive: *mut u8,
) -> Result<Done, Failed> {
    let (mpi, root, bytes, combine) = (call.mpi, call.root, call.bytes, call.combine);
    let State::Across(across) = &mut call.comm.state else {
        return Err(Failed::Known(ByMpi::Others));
    };
    let Across { team, leaders, places, node } = &mut **across;
    let (node, at) = (*node, places[root.index()]);
    let named = (kind == Kind::Reduce || kind == Kind::Allreduce).then(|| names(mpi, combine));
    let named = named.unwrap_or_default();
    let step = Step { mpi, team, leaders: *leaders, bytes, combine, named };
    match kind {
        // SAFETY: the caller vouches for the buffers.
        Kind::Broadcast => unsafe { broadcast(step, node, at, receive) },
        Kind::Barrier => barrier(step),
        // SAFETY: as above.
        Kind::Reduce => unsafe { reduce(step, node, at, send, receive, &mut call.comm.scratch) },
        // SAFETY: as above.
        Kind::Allreduce => unsafe { allreduce(step, send, receive) },
        _ => Err(Failed::Mpis(ByMpi::Nodes)),
    }?;
    Ok(Done::Across)
}

/// The MPI's names of elements and operation. Which name of several stands for an element matters to
/// nobody: leaders agree on one.
fn names(mpi: &Mpi, combine: Combine) -> (Handle, Handle) {
    let element = match combine.element() {
        Element::I8 => mpi.named(c"ompi_mpi_int8_t", 0x4c00_0137),
        Element::I16 => mpi.named(c"ompi_mpi_int16_t", 0x4c00_0238),
        Element::U8 => mpi.named(c"ompi_mpi_uint8_t", 0x4c00_013b),
        Element::U16 => mpi.named(c"ompi_mpi_uint16_t", 0x4c00_023c),
        Element::I32 => mpi.named(c"ompi_mpi_int32_t", 0x4c00_0439),
        Element::I64 => mpi.named(c"ompi_mpi_int64_t", 0x4c00_083a),
        Element::U32 => mpi.named(c"ompi_mpi_uint32_t", 0x4c00_043d),
        Element::U64 => mpi.named(c"ompi_mpi_uint64_t", 0x4c00_083e),
        Element::F32 => mpi.named(c"ompi_mpi_float", 0x4c00_040a),
        Element::F64 => mpi.named(c"ompi_mpi_double", 0x4c00_080b),
    };
    let operation = match combine {
        Combine::Max(_) => mpi.named(c"ompi_mpi_op_max", 0x5800_0001),
        Combine::Min(_) => mpi.named(c"ompi_mpi_op_min", 0x5800_0002),
        Combine::Sum(_) => mpi.named(c"ompi_mpi_op_sum", 0x5800_0003),
        Combine::Product(_) => mpi.named(c"ompi_mpi_op_prod", 0x5800_0004),
        Combine::And(_) => mpi.named(c"ompi_mpi_op_band", 0x5800_0006),
        Combine::Or(_) => mpi.named(c"ompi_mpi_op_bor", 0x5800_0008),
        Combine::Xor(_) => mpi.named(c"ompi_mpi_op_bxor", 0x5800_000a),
        Combine::Both(_) => mpi.named(c"ompi_mpi_op_land", 0x5800_0005),
        Combine::Either(_) => mpi.named(c"ompi_mpi_op_lor", 0x5800_0007),
        Combine::OneOf(_) => mpi.named(c"ompi_mpi_op_lxor", 0x5800_0009),
    };
    (element, operation)
}

fn checked(code: c_int) -> Result<(), Failed> {
    if code == 0 { Ok(()) } else { Err(Failed::Refused(code)) }
}

/// # Safety
/// `place` holds the bytes at the root and has room for them elsewhere.
unsafe fn broadcast(
    mut step: Step<'_>,
    node: u16,
    root: NodePlace,
    place: *mut u8,
) -> Result<(), Failed> {
    step.combine = NOTHING;
    // The root's node gets it from the root, the others from their leaders.
    if node == root.node {
        // SAFETY: the caller vouches for the bytes.
        unsafe { step.within(Kind::Broadcast, Rank(root.rank), place, place) }?;
    }
    if let Some(leaders) = step.leaders {
        let (bytes, at) = (c_int::try_from(step.bytes).unwrap_or(0), c_int::from(root.node));
        let first = place.cast::<c_void>();
        // SAFETY: the leaders of all nodes make this call now, with room for the bytes.
        let code =
            unsafe { (step.mpi.functions().bcast)(first, bytes, step.mpi.byte(), at, leaders) };
        checked(code)?;
    }
    if node != root.node {
        // SAFETY: as above.
        unsafe { step.within(Kind::Broadcast, LEADER, place, place) }?;
    }
    Ok(())
}

fn barrier(mut step: Step<'_>) -> Result<(), Failed> {
    let none = std::ptr::dangling_mut::<u8>();
    // SAFETY: a barrier moves no bytes.
    unsafe { step.within(Kind::Barrier, LEADER, none, none) }?;
    if let Some(leaders) = step.leaders {
        // SAFETY: the leaders of all nodes make this call now.
        checked(unsafe { (step.mpi.functions().barrier)(leaders) })?;
    }
    // SAFETY: as above.
    unsafe { step.within(Kind::Barrier, LEADER, none, none) }
}

/// # Safety
/// `send` holds the elements; `receive` has room for them at the root.
unsafe fn reduce(
    mut step: Step<'_>,
    node: u16,
    root: NodePlace,
    send: *const u8,
    receive: *mut u8,
    scratch: &mut Scratch,
) -> Result<(), Failed> {
    let root_leads = root.rank == LEADER.0;
    let at_root_node = node == root.node;
    // Elements that are combined lie as they are, so nobody packs anything meanwhile.
    let room = |room: &mut Vec<u8>| {
        room.resize(step.bytes.max(1), 0);
        room.as_mut_ptr()
    };
    // What is given may be in the scratch for it, and what is got is to be in the other one.
    let (node_sum, sum) = (room(&mut scratch.packed), room(&mut scratch.receive));
    let sum = if step.leads() && at_root_node && root_leads { receive } else { sum };
    // SAFETY: the caller vouches for `send`; the leader has room.
    let done = unsafe { step.within(Kind::Reduce, LEADER, send, node_sum) };
    if at_root_node && !root_leads { step.followed(done) } else { done }?;
    if let Some(leaders) = step.leaders {
        let (count, at) = (step.elements(), c_int::from(root.node));
        let (from, to) = (node_sum.cast::<c_void>(), sum.cast::<c_void>());
        let (element, operation) = step.named;
        let function = step.mpi.functions().reduce;
        // SAFETY: the leaders of all nodes make this call now, each with so many elements.
        checked(unsafe { function(from, to, count, element, operation, at, leaders) })?;
    }
    if at_root_node && !root_leads {
        let is_root = step.team.rank() == Rank(root.rank);
        let place = if is_root { receive } else { sum };
        step.combine = NOTHING;
        // SAFETY: the leader has the bytes; the root and the others have room for them.
        unsafe { step.within(Kind::Broadcast, LEADER, place, place) }?;
    }
    Ok(())
}

/// # Safety
/// `send` holds the elements and `receive` has room for them.
unsafe fn allreduce(mut step: Step<'_>, send: *const u8, receive: *mut u8) -> Result<(), Failed> {
    // SAFETY: the caller vouches for both.
    let done = unsafe { step.within(Kind::Reduce, LEADER, send, receive) };
    step.followed(done)?;
    if let Some(leaders) = step.leaders {
        let count = step.elements();
        let (element, operation) = step.named;
        let (in_place, first) = (step.mpi.in_place(), receive.cast::<c_void>());
        let function = step.mpi.functions().allreduce;
        // SAFETY: the leaders of all nodes make this call now, each with so many elements.
        checked(unsafe { function(in_place, first, count, element, operation, leaders) })?;
    }
    step.combine = NOTHING;
    // SAFETY: the caller vouches for `receive`.
    unsafe { step.within(Kind::Broadcast, LEADER, receive, receive) }
}
