//! A collective on its way in: what a caller named, whether it is done in lines, and what the caller is told.

use crate::abi::{Buffer, Handle, How, Mpi};
use crate::call::{Call, Done, Failed, Outcome};
use crate::comm::{Comm, State};
use crate::devices;
use crate::payload::Data;
use crate::places::Inside;
use crate::tally::ByMpi;
use crate::world::{self, World};
use isochrone_cla::live::{Kind, TeamError};
use isochrone_cla::program::{Combine, Rank};
use std::ffi::c_int;

/// One side of a collective that moves blocks: buffer, count, type.
pub(super) type Side = (Buffer, i64, Handle);

/// What a collective that combines elements is called with, beside its root and communicator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elements {
    pub(crate) send: Buffer,
    pub(crate) receive: Buffer,
    pub(crate) count: i64,
    pub(crate) handle: Handle,
    pub(crate) operation: Handle,
}

/// A call's arguments before anything is decided.
pub(super) struct Request<'a> {
    pub(super) mpi: &'static Mpi,
    pub(super) world: &'static World,
    pub(super) comm: &'a mut Comm,
    pub(super) handle: Handle,
    pub(super) kind: Kind,
    /// Bytes of a block, where what goes first is not the block.
    pub(super) block: Option<usize>,
    /// Whether memory of devices may be among the buffers; none: not yet looked.
    pub(super) devices: Option<bool>,
}

impl<'a> Request<'a> {
    /// What a caller named; the MPI's own error where it is nothing valid.
    #[inline(always)]
    pub(super) fn data(
        &mut self,
        buffer: Buffer,
        count: i64,
        handle: Handle,
    ) -> Result<Data, Failed> {
        let handle = self.mpi.handle(handle);
        let layout = self.comm.layout(self.mpi, &self.world.types, handle).ok_or(Failed::Wrong)?;
        let count = usize::try_from(count).map_err(|_| Failed::Wrong)?;
        let mut data = Data { buffer, count, handle, layout, comm: self.handle };
        if *self.devices.get_or_insert_with(devices::any) && devices::has(buffer) {
            // Nothing here touches it: the MPI packs and unpacks what lies there.
            data.layout.plain = false;
        }
        if self.is_refused(&data) { Err(Failed::Wrong) } else { Ok(data) }
    }

    /// What a rank gives to a reduction, and where the root gets it.
    #[inline(always)]
    pub(super) fn rooted(
        &mut self,
        elements: Elements,
        root: c_int,
    ) -> Result<(Data, Option<Data>), Failed> {
        let Elements { send, receive, count, handle, .. } = elements;
        let at_root = c_int::from(self.comm.rank) == root;
        let in_place = self.mpi.is_in_place(send);
        let got = if at_root { Some(self.data(receive, count, handle)?) } else { None };
        let given = match got {
            Some(got) if in_place => got,
            _ => self.data(send, count, handle)?,
        };
        let aliased = |got: Data| !in_place && self.is_aliased(Kind::Reduce, &given, &got);
        if got.is_some_and(aliased) { Err(Failed::Wrong) } else { Ok((given, got)) }
    }

    /// What a rank gives to a reduction without a root, and where it gets its result.
    #[inline(always)]
    pub(super) fn reduced(
        &mut self,
        kind: Kind,
        elements: Elements,
    ) -> Result<(Data, Data), Failed> {
        let Elements { send, receive, count, handle, .. } = elements;
        let in_place = self.mpi.is_in_place(send);
        let given = self.data(if in_place { receive } else { send }, count, handle)?;
        // The first rank of an exscan gets nothing, and may have no place for it; MPICH wants one all the same.
        let gets = kind != Kind::Exscan || self.comm.rank > 0 || self.mpi.looks_at_buffers();
        let got = if gets { self.data(receive, count, handle)? } else { given };
        if !in_place && self.is_aliased(kind, &given, &Data { buffer: receive, ..given }) {
            return Err(Failed::Wrong);
        }
        Ok((given, got))
    }

    /// This rank, and how many there are.
    pub(super) fn seat(&self) -> (usize, usize) {
        (self.comm.rank.into(), self.comm.size.into())
    }

    /// Whether the MPI refuses a buffer before it tells anybody anything: `MPI_IN_PLACE` where there is no place, and
    /// in MPICH null. Open MPI ends by a signal, and so does a copy in lines.
    #[inline]
    pub(super) fn is_refused(&self, data: &Data) -> bool {
        let null = data.buffer.is_null() && self.mpi.looks_at_buffers();
        self.mpi.is_in_place(data.buffer) || (null && data.layout.named && data.bytes() > 0)
    }

    /// Whether the MPI refuses two buffers that are the same memory: MPICH wherever it sees it, Open MPI at the root
    /// of a reduction.
    #[inline]
    pub(super) fn is_aliased(&self, kind: Kind, given: &Data, got: &Data) -> bool {
        let looks = if self.mpi.looks_at_buffers() {
            self.world.config.looks_for_aliases
        } else {
            kind == Kind::Reduce
        };
        looks && given.buffer == got.buffer && given.bytes() > 0
    }

    /// How a reduction is done.
    #[inline]
    pub(super) fn how(&self, operation: Handle, data: Data) -> Result<How, Failed> {
        let own = |handle| self.mpi.is_own_operation(handle);
        let how = self.world.types.how(operation, data.layout, own);
        let how = how.ok_or(Failed::Mpis(ByMpi::Operation))?;
        match how {
            How::Lines(combine) if self.is_ordered() && combine.element().is_float() => {
                Ok(How::Local)
            }
            how => Ok(how),
        }
    }

    /// Whether it matters that operands are taken in the order of ranks: two are the same either way round.
    #[inline]
    pub(super) fn is_ordered(&self) -> bool {
        self.world.config.orders() && self.comm.intra && self.comm.size > 2
    }

    /// The call, if its root is a rank and its bytes are few enough.
    #[inline(always)]
    pub(super) fn call(
        self,
        root: c_int,
        bytes: usize,
        combine: Combine,
    ) -> Result<Call<'a>, Failed> {
        let root = u16::try_from(root).ok().filter(|root| *root < self.comm.size);
        let root = Rank(root.ok_or(Failed::Wrong)?);
        let bytes_max = self.comm.bytes_max[self.kind as usize];
        let goes = bytes <= bytes_max || self.comm.is_single(self.kind, bytes);
        if !self.comm.in_lines() || !goes {
            self.comm.asked = Some(self.block.unwrap_or(bytes));
            return Err(Failed::Mpis(ByMpi::Bytes));
        }
        Ok(Call { mpi: self.mpi, comm: self.comm, root, bytes, bytes_max, combine })
    }
}

/// Enters, works, counts and says what the caller is told.
#[inline(always)]
pub(super) fn attempt(
    kind: Kind,
    root: c_int,
    handle: Handle,
    work: impl Fn(Request<'_>) -> Outcome,
) -> Option<c_int> {
    let mpi = world::mpi()?;
    let world = world::world(mpi);
    let handle = mpi.handle(handle);
    let mut inside = world.enter(mpi, handle)?;
    let comm = inside.comm()?;
    let mut counted = comm.is_counted();
    if !(counted || comm.in_lines() && world.does(kind)) {
        if comm.leave(kind) {
            world.note(mpi, comm);
        }
        return None;
    }
    // In one place, so that the compiler has it here and nowhere else. Where calls are counted, it goes as far as to
    // say whether the MPI refuses this one.
    let failed = loop {
        let comm = inside.comm()?;
        let failed =
            match work(Request { mpi, world, comm, handle, kind, block: None, devices: None }) {
                Ok(done) => {
                    let comm = inside.comm()?;
                    let tally = &mut comm.tallies[kind as usize];
                    let doubled = match done {
                        Done::Lines(class) => tally.in_lines(class),
                        Done::Once => tally.once(),
                        Done::Across { in_parts } => tally.across(in_parts),
                    };
                    if doubled {
                        world.note(mpi, comm);
                    }
                    return Some(0);
                }
                Err(failed) => failed,
            };
        if !counted {
            break failed;
        }
        let comm = inside.comm()?;
        if comm.watched.is_some() {
            world.see(mpi, comm, kind);
            return None;
        }
        // A call that the MPI refuses on this rank alone is none to the others, so it does not count. One that ranks
        // agree at is in lines already: what a wrong one leaves behind in the MPI, ranks in lines would never take.
        if matches!(failed, Failed::Wrong) || !world.count(mpi, handle, comm, kind) {
            if comm.leave(kind) {
                world.note(mpi, comm);
            }
            return None;
        }
        counted = false;
    };
    failed_one(mpi, world, inside, handle, kind, root, failed)
}

/// What the caller is told of a call in lines that did not end well.
#[cold]
fn failed_one(
    mpi: &'static Mpi,
    world: &'static World,
    mut inside: Inside,
    handle: Handle,
    kind: Kind,
    root: c_int,
    failed: Failed,
) -> Option<c_int> {
    let (failed, left) = match failed {
        Failed::Mpis(left) => (inside.comm()?.tell(kind, root), left),
        Failed::Known(left) => (Failed::Known(left), left),
        Failed::Wrong => (Failed::Wrong, ByMpi::Wrong),
        failed => (failed, ByMpi::Others),
    };
    let code = match failed {
        Failed::Mpis(_) | Failed::Known(_) | Failed::Wrong => {
            let comm = inside.comm()?;
            if comm.tallies[kind as usize].left(left) {
                world.note(mpi, comm);
            }
            return None;
        }
        Failed::Refused(code) => return Some(code),
        Failed::Short => mpi.other_error(),
        Failed::Broken(error) if matches!(*error, TeamError::Unlike { .. }) => mpi.truncated(),
        Failed::Broken(error) => {
            let words = error.to_string();
            world.broke(mpi, inside.comm()?, &words);
            world.error(mpi, &words)
        }
    };
    drop(inside);
    // SAFETY: the caller's communicator; its handler may end the program, as for any error.
    unsafe { (mpi.functions().comm_call_errhandler)(handle, code) };
    Some(code)
}

impl Comm {
    /// Counts a call that is the MPI's for what its communicator is, as [`crate::tally::Tally::left`].
    #[inline]
    fn leave(&mut self, kind: Kind) -> bool {
        let left = match self.state {
            State::Counting(_) => ByMpi::SoFar,
            State::Refused => ByMpi::Comm,
            State::Inside(_) | State::Across(_) => ByMpi::Told,
        };
        self.tallies[kind as usize].left(left)
    }

    /// Tells the ranks of a call in lines that this one leaves it to the MPI, as they must.
    #[cold]
    fn tell(&mut self, kind: Kind, root: c_int) -> Failed {
        let root = Rank(u16::try_from(root).unwrap_or(0));
        match &mut self.state {
            State::Inside(team) => match team.by_other_means(kind, root) {
                Ok(()) => Failed::Known(ByMpi::Others),
                Err(error) => error.into(),
            },
            // Over nodes each rank goes by its own bytes.
            _ => Failed::Known(ByMpi::Others),
        }
    }
}
