//! Communicators over several nodes: lines within a node, and the MPI itself between the leaders of
//! nodes, each with its part of a long message. There is no transport of our own.

use crate::abi::{Handle, Mpi};
use crate::call::{Call, Done, Failed, NOTHING};
use crate::comm::{Across, NodePlace, State};
use crate::leaders::{Leaders, Part};
use crate::payload::Scratch;
use crate::tally::ByMpi;
use isochrone_cla::live::{Kind, Team, TeamError};
use isochrone_cla::program::{Combine, Element, Rank};
use std::ffi::{c_int, c_void};

/// The first rank of a node, which leads it in what has no parts.
const LEADER: Rank = Rank(0);

/// One call between nodes.
struct Step<'a> {
    mpi: &'a Mpi,
    team: &'a mut Team,
    leaders: &'a Leaders,
    bytes: usize,
    combine: Combine,
    /// The caller's type and operation, for the leaders; zero where nothing is combined.
    named: (Handle, Handle),
}

/// Bytes that a part of a broadcast has several of.
const WORD: usize = 8;

impl<'a> Step<'a> {
    /// The parts of the message, of whole elements or words.
    fn parts(&self, unit: usize) -> impl ExactSizeIterator<Item = Part> + use<'a> {
        self.leaders.parts(self.bytes, unit)
    }

    /// Bytes of an element.
    fn element(&self) -> usize {
        self.combine.element().bytes() as usize
    }

    /// Does a part of it in lines.
    ///
    /// # Safety
    /// As for [`Team::call`], of buffers of which the part is that part.
    unsafe fn within(
        &mut self,
        kind: Kind,
        root: Rank,
        part: &Part,
        send: *const u8,
        receive: *mut u8,
    ) -> Result<(), Failed> {
        let (send, receive) = (send.wrapping_add(part.first), receive.wrapping_add(part.first));
        // SAFETY: the caller vouches for the buffers.
        match unsafe { self.team.call(kind, root, part.bytes, self.combine, send, receive) } {
            // Other nodes may have room, and are on their way.
            Err(full @ TeamError::Full { .. }) => Err(Failed::Broken(Box::new(full))),
            done => Ok(done?),
        }
    }

    /// Each part of what the ranks of this node give is combined at its leader. `more`: whether others wait for further
    /// steps of this call then.
    ///
    /// # Safety
    /// As for [`Self::within`].
    unsafe fn combined(&mut self, send: *const u8, to: *mut u8, more: bool) -> Result<(), Failed> {
        let mut parts = self.parts(self.element());
        while let Some(part) = parts.next() {
            // SAFETY: the caller vouches for the buffers.
            let done = unsafe { self.within(Kind::Reduce, part.leader, &part, send, to) };
            if more || parts.len() > 0 { self.followed(done) } else { done }?;
        }
        Ok(())
    }

    /// Each part goes from its leader to all ranks of this node.
    ///
    /// # Safety
    /// As for [`Self::within`].
    unsafe fn handed_out(&mut self, unit: usize, place: *mut u8) -> Result<(), Failed> {
        self.combine = NOTHING;
        let mut parts = self.parts(unit);
        while let Some(part) = parts.next() {
            // SAFETY: the caller vouches for the buffers.
            let done = unsafe { self.within(Kind::Broadcast, part.leader, &part, place, place) };
            if parts.len() > 0 { self.followed(done) } else { done }?;
        }
        Ok(())
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

    /// Elements of a part, as the MPI counts them.
    fn elements(&self, part: &Part) -> c_int {
        c_int::try_from(part.bytes / self.element()).unwrap_or(0)
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
    let parts = leaders.parts(bytes, 1).len();
    let step = Step { mpi, team, leaders, bytes, combine, named };
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
    Ok(Done::Across { in_parts: parts > 1 })
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
        let whole = Part { first: 0, bytes: step.bytes, leader: Rank(root.rank), comm: None };
        // SAFETY: the caller vouches for the bytes.
        unsafe { step.within(Kind::Broadcast, whole.leader, &whole, place, place) }?;
    }
    for part in step.parts(WORD) {
        let Some(leaders) = part.comm else { continue };
        let (bytes, at) = (c_int::try_from(part.bytes).unwrap_or(0), c_int::from(root.node));
        let first = place.wrapping_add(part.first).cast::<c_void>();
        // SAFETY: the leaders of all nodes make this call now, with room for the bytes.
        let code =
            unsafe { (step.mpi.functions().bcast)(first, bytes, step.mpi.byte(), at, leaders) };
        checked(code)?;
    }
    if node != root.node {
        // SAFETY: as above.
        unsafe { step.handed_out(WORD, place) }?;
    }
    Ok(())
}

fn barrier(mut step: Step<'_>) -> Result<(), Failed> {
    let none = std::ptr::dangling_mut::<u8>();
    let all = Part { first: 0, bytes: step.bytes, leader: LEADER, comm: None };
    // SAFETY: a barrier moves no bytes.
    unsafe { step.within(Kind::Barrier, LEADER, &all, none, none) }?;
    if let Some(leaders) = step.leaders.first_comm() {
        // SAFETY: the leaders of all nodes make this call now.
        checked(unsafe { (step.mpi.functions().barrier)(leaders) })?;
    }
    // SAFETY: as above.
    unsafe { step.within(Kind::Barrier, LEADER, &all, none, none) }
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
    let (unit, me) = (step.element(), step.team.rank());
    let at_root_node = node == root.node;
    // What leaders of the root's node have of it, the others of the node get as well: the root has no other way to it.
    let further = at_root_node && step.parts(unit).any(|part| part.leader != Rank(root.rank));
    // Elements that are combined lie as they are, so nobody packs anything meanwhile.
    let room = |room: &mut Vec<u8>| {
        room.resize(step.bytes.max(1), 0);
        room.as_mut_ptr()
    };
    // What is given may be in the scratch for it, and what is got is to be in the other one.
    let (node_sum, sum) = (room(&mut scratch.packed), room(&mut scratch.receive));
    let sum = if at_root_node && me == Rank(root.rank) { receive } else { sum };
    // SAFETY: the caller vouches for `send`; the leaders have room.
    unsafe { step.combined(send, node_sum, further) }?;
    for part in step.parts(unit) {
        let Some(leaders) = part.comm else { continue };
        let (count, at) = (step.elements(&part), c_int::from(root.node));
        let [from, to] = [node_sum, sum].map(|all| all.wrapping_add(part.first).cast::<c_void>());
        let (element, operation) = step.named;
        let function = step.mpi.functions().reduce;
        // SAFETY: the leaders of all nodes make this call now, each with so many elements.
        checked(unsafe { function(from, to, count, element, operation, at, leaders) })?;
    }
    if further {
        // SAFETY: the leaders have their parts; the root and the others have room for them.
        unsafe { step.handed_out(unit, sum) }?;
    }
    Ok(())
}

/// # Safety
/// `send` holds the elements and `receive` has room for them.
unsafe fn allreduce(mut step: Step<'_>, send: *const u8, receive: *mut u8) -> Result<(), Failed> {
    let unit = step.element();
    // SAFETY: the caller vouches for both.
    unsafe { step.combined(send, receive, true) }?;
    for part in step.parts(unit) {
        let Some(leaders) = part.comm else { continue };
        let count = step.elements(&part);
        let (element, operation) = step.named;
        let in_place = step.mpi.in_place();
        let first = receive.wrapping_add(part.first).cast::<c_void>();
        let function = step.mpi.functions().allreduce;
        // SAFETY: the leaders of all nodes make this call now, each with so many elements.
        checked(unsafe { function(in_place, first, count, element, operation, leaders) })?;
    }
    // SAFETY: the caller vouches for `receive`.
    unsafe { step.handed_out(unit, receive) }
}
