//! Collectives whose ranks have different counts: gatherv, scatterv, allgatherv, alltoallv, reduce_scatter.
//!
//! They go the way of those with equal counts, in blocks that are as long as the longest. All ranks must take the same
//! lines, so they have to know alike how long that is. In allgatherv and reduce_scatter each of them is given all
//! counts. In gatherv and scatterv the root alone is: a line of its says it before. In alltoallv nobody is, and all
//! agree on it. Where ranks differ in what they send each other, a block begins with how many bytes it has, and who has
//! room for fewer is told so.

use super::ordered;
use super::reductions::reduced;
use super::request::{Elements, Request, Side, attempt};
use crate::abi::{Buffer, Handle, How, Mpi};
use crate::call::{Call, Failed, NOTHING, Outcome};
use crate::payload::{Data, Scratch};
use crate::tally::ByMpi;
use crate::world::orders;
use isochrone_cla::live::{Kind, TeamError};
use isochrone_cla::program::{Combine, Element};
use std::ffi::c_int;

/// Bytes before a block that say how many it has.
const HEAD: usize = size_of::<u64>();
/// Said instead of the bytes of a block: the MPI does this call.
const BY_THE_MPI: u64 = u64::MAX;
/// Bytes of a block up to which it does not matter how much of it is used.
const SHORT: usize = 504;
/// What goes through the lines at most, as many times what is to be moved.
const WASTE: usize = 4;

/// A number for each rank, as a caller has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    Small(*const c_int),
    Large(*const i64),
}

impl From<*const c_int> for Numbers {
    fn from(first: *const c_int) -> Self {
        Self::Small(first)
    }
}

impl From<*const i64> for Numbers {
    fn from(first: *const i64) -> Self {
        Self::Large(first)
    }
}

impl From<*const isize> for Numbers {
    /// Addresses have 64 bits wherever this library is built.
    fn from(first: *const isize) -> Self {
        Self::Large(first.cast())
    }
}

impl Numbers {
    const fn is_null(self) -> bool {
        match self {
            Self::Small(first) => first.is_null(),
            Self::Large(first) => first.is_null(),
        }
    }

    /// # Safety
    /// There is a number for this rank.
    unsafe fn of(self, rank: usize) -> i64 {
        match self {
            // SAFETY: the caller vouches for it.
            Self::Small(first) => i64::from(unsafe { first.wrapping_add(rank).read() }),
            // SAFETY: as above.
            Self::Large(first) => unsafe { first.wrapping_add(rank).read() },
        }
    }
}

/// One side of a collective that has a block for each rank: buffer, counts, places in elements, type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sides {
    pub(crate) buffer: Buffer,
    pub(crate) counts: Numbers,
    /// None: each block lies behind the last; where that is, is not asked.
    pub(crate) places: Option<Numbers>,
    pub(crate) handle: Handle,
}

/// The blocks of such a side, whose counts are valid.
#[derive(Clone, Copy, Debug)]
struct Blocks {
    sides: Sides,
    /// The whole of it, as many elements as all blocks have.
    data: Data,
    /// From one element to the next, bytes.
    extent: isize,
    /// Bytes of the longest one.
    most: usize,
    /// Whether all have as many.
    even: bool,
}

impl Sides {
    pub(crate) fn of(
        buffer: Buffer,
        counts: impl Into<Numbers>,
        places: impl Into<Numbers>,
        handle: Handle,
    ) -> Self {
        Self { buffer, counts: counts.into(), places: Some(places.into()), handle }
    }

    /// What the caller named; the MPI's own error where it is nothing valid.
    fn read(self, request: &mut Request<'_>) -> Result<Blocks, Failed> {
        if self.counts.is_null() || self.places.is_some_and(Numbers::is_null) {
            return Err(Failed::Wrong);
        }
        let (mut all, mut most, mut least) = (0_usize, 0, usize::MAX);
        let mut begins = false;
        for rank in 0..usize::from(request.comm.size) {
            // SAFETY: MPI asks for a count for each rank wherever it asks for counts.
            let count = usize::try_from(unsafe { self.counts.of(rank) });
            let count = count.map_err(|_| Failed::Wrong)?;
            (all, most, least) = (all.saturating_add(count), most.max(count), least.min(count));
            begins |= count > 0 && self.place(rank) == 0;
        }
        // Where no block lies at the buffer itself, this may be nothing: places are addresses then.
        let looked_at = i64::try_from(if begins { all } else { 0 }).map_err(|_| Failed::Wrong)?;
        let first = request.data(self.buffer, looked_at, self.handle)?;
        let data = Data { count: all, ..first };
        let (even, most) = (most == least, most.saturating_mul(data.layout.bytes));
        Ok(Blocks { sides: self, data, extent: data.extent(request.mpi), most, even })
    }

    /// Where the block of a rank begins, in elements.
    fn place(&self, rank: usize) -> isize {
        // SAFETY: counts were read for all ranks, and MPI asks for as many places.
        let place = self.places.map_or(0, |places| unsafe { places.of(rank) });
        isize::try_from(place).unwrap_or(0)
    }
}

impl Blocks {
    /// The block of a rank.
    fn of(&self, rank: usize) -> Data {
        // SAFETY: counts were read for all ranks, and MPI asks for as many places.
        let count = usize::try_from(unsafe { self.sides.counts.of(rank) }).unwrap_or(0);
        let offset = self.sides.place(rank).saturating_mul(self.extent);
        Data { buffer: self.data.buffer.wrapping_byte_offset(offset), count, ..self.data }
    }

    /// Blocks that lie behind one another, each as long as the longest.
    fn side_by_side(&self, mpi: &Mpi, scratch: &mut Scratch, ranks: usize) -> Result<(), Failed> {
        let Scratch { send: room, packed, .. } = scratch;
        let all = self.data.read(mpi, packed)?;
        room.clear();
        let mut before = 0;
        for rank in 0..ranks {
            let (bytes, begin) = (self.of(rank).bytes(), room.len());
            let first = all.wrapping_add(before);
            // SAFETY: the caller's block, which is behind those before it.
            room.extend_from_slice(unsafe { std::slice::from_raw_parts(first, bytes) });
            room.resize(begin + self.most, 0);
            before += bytes;
        }
        Ok(())
    }

    /// What is said of such blocks: bytes of each with its head, or that the MPI is to move them.
    fn said(&self, ranks: usize) -> u64 {
        said(self.most, self.data.bytes(), ranks)
    }
}

/// What is said of blocks of `most` bytes at most and `all` together: how long each is with its head, or that the MPI
/// is to move them: lines would carry many times as much.
fn said(most: usize, all: usize, ranks: usize) -> u64 {
    let wasted = most > SHORT && most.saturating_mul(ranks) > all.saturating_mul(WASTE);
    // Whole words, so that each head is one.
    let frame = most.saturating_add(HEAD).checked_next_multiple_of(HEAD);
    let frame = frame.filter(|_| !wasted).and_then(|frame| u64::try_from(frame).ok());
    frame.unwrap_or(BY_THE_MPI)
}

impl Call<'_> {
    /// Goes on with blocks as long as was `said`.
    fn frames(&mut self, said: u64) -> Result<usize, Failed> {
        let frame = usize::try_from(said).ok().filter(|&frame| frame <= self.bytes_max + HEAD);
        self.bytes = frame.ok_or(Failed::Mpis(ByMpi::Bytes))?;
        self.combine = NOTHING;
        Ok(self.bytes)
    }

    /// The same for all ranks, by what the root says.
    fn frames_of_root(&mut self, said: u64) -> Result<usize, Failed> {
        let mut said = said;
        let word = (&raw mut said).cast::<u8>();
        // SAFETY: a word of this rank's, which a broadcast of as many bytes reads at the root and writes elsewhere.
        unsafe { self.lines(Kind::Broadcast, word, word) }?;
        self.frames(said)
    }

    /// The same by the longest block and the most bytes that any rank gives or gets.
    fn frames_of_all(&mut self, most: usize, all: usize) -> Result<usize, Failed> {
        let (mine, mut agreed) = ([most as u64, all as u64], [0_u64; 2]);
        let (send, receive) = ((&raw const mine).cast(), (&raw mut agreed).cast());
        // SAFETY: two words of this rank's each, as all ranks have.
        unsafe { self.lines(Kind::Allreduce, send, receive) }?;
        let [most, all] = agreed.map(|word| usize::try_from(word).unwrap_or(usize::MAX));
        self.frames(said(most, all, usize::from(self.comm.size)))
    }

    /// What this rank gives, each block behind its head.
    fn put(&mut self, frame: usize, blocks: impl Iterator<Item = Data>) -> Result<(), Failed> {
        let Scratch { send, packed, .. } = &mut self.comm.scratch;
        send.clear();
        for data in blocks {
            let bytes = data.bytes();
            let first = data.read(self.mpi, packed)?;
            let begin = send.len();
            send.extend_from_slice(&(bytes as u64).to_ne_bytes());
            // Who has less room is told; what does not fit is not even looked at.
            let fits = bytes.min(frame - HEAD);
            // SAFETY: the caller's bytes, or those that were packed.
            send.extend_from_slice(unsafe { std::slice::from_raw_parts(first, fits) });
            send.resize(begin + frame, 0);
        }
        Ok(())
    }

    /// Moves blocks as long as was agreed on. `gets`: how many come to this rank.
    fn moved(&mut self, kind: Kind, gets: usize) -> Outcome {
        let Scratch { send, receive, .. } = &mut self.comm.scratch;
        receive.resize(self.bytes * gets.max(1), 0);
        let (given, place) = (send.as_ptr(), receive.as_mut_ptr());
        // SAFETY: as many blocks as such a collective reads were put there, and there is room for those that come.
        unsafe { self.lines(kind, given, place) }
    }

    /// What came to this rank: each block goes where its data are to be.
    fn take(&mut self, blocks: impl Iterator<Item = Option<Data>>) -> Result<(), Failed> {
        let frames = self.comm.scratch.receive.chunks_exact_mut(self.bytes);
        let mut taken = Ok(());
        // One that is too long keeps none of the others away.
        for (frame, data) in frames.zip(blocks) {
            taken = taken.and(data.map_or(Ok(()), |data| taken_one(self.mpi, frame, &data)));
        }
        taken
    }
}

/// One block that came becomes data.
fn taken_one(mpi: &Mpi, frame: &mut [u8], data: &Data) -> Result<(), Failed> {
    let (head, bytes) = frame.split_at_mut(HEAD);
    let came = u64::from_ne_bytes(head.try_into().unwrap_or_default());
    let (came, room) = (usize::try_from(came).unwrap_or(usize::MAX), data.bytes());
    if came > room.min(bytes.len()) {
        let theirs = u32::try_from(came).ok();
        return Err(Failed::Broken(Box::new(TeamError::Unlike { mine: room, theirs })));
    }
    if came == 0 {
        return Ok(());
    }
    // Fewer bytes than there is room for are no error.
    if data.layout.plain || !came.is_multiple_of(data.layout.bytes) {
        // SAFETY: so many came.
        return Ok(unsafe { data.fill(mpi, bytes.as_ptr(), came) }?);
    }
    let fewer = Data { count: came / data.layout.bytes, ..*data };
    Ok(fewer.unpack_from(mpi, &mut bytes[..came])?)
}

/// Whether the MPI refuses what a rank gives because it lies where its own block is to be: it looks where types are the
/// same, and reckons with their sizes.
fn is_its_place(request: &Request<'_>, kind: Kind, own: &Data, block: &Data) -> bool {
    let looks = own.handle == block.handle && own.layout.plain && block.count > 0;
    looks && request.is_aliased(kind, own, block)
}

/// `MPI_Gatherv`.
pub(crate) fn gatherv(send: Side, receive: Sides, root: c_int, comm: Handle) -> Option<c_int> {
    attempt(Kind::Gather, root, comm, |mut request| {
        let (me, ranks) = request.seat();
        let is_root = c_int::from(request.comm.rank) == root;
        let got = if is_root { Some(receive.read(&mut request)?) } else { None };
        let in_place = is_root && request.mpi.is_in_place(send.0);
        let own = match &got {
            Some(got) if in_place => got.of(me),
            _ => request.data(send.0, send.1, send.2)?,
        };
        if got
            .is_some_and(|got| !in_place && is_its_place(&request, Kind::Gather, &own, &got.of(me)))
        {
            return Err(Failed::Wrong);
        }
        request.block = Some(got.as_ref().map_or(own.bytes(), |got| got.most));
        let mut call = request.call(root, HEAD, NOTHING)?;
        let frame = call.frames_of_root(got.map_or(0, |got| got.said(ranks)))?;
        call.put(frame, std::iter::once(own))?;
        let done = call.moved(Kind::Gather, if is_root { ranks } else { 0 })?;
        if let Some(got) = got {
            call.take((0..ranks).map(|rank| (!(in_place && rank == me)).then(|| got.of(rank))))?;
        }
        Ok(done)
    })
}

/// `MPI_Scatterv`.
pub(crate) fn scatterv(send: Sides, receive: Side, root: c_int, comm: Handle) -> Option<c_int> {
    attempt(Kind::Scatter, root, comm, |mut request| {
        let (me, ranks) = request.seat();
        let is_root = c_int::from(request.comm.rank) == root;
        let given = if is_root { Some(send.read(&mut request)?) } else { None };
        let in_place = is_root && request.mpi.is_in_place(receive.0);
        let own =
            if in_place { None } else { Some(request.data(receive.0, receive.1, receive.2)?) };
        if let (Some(given), Some(own)) = (&given, &own)
            && is_its_place(&request, Kind::Scatter, &given.of(me), own)
        {
            return Err(Failed::Wrong);
        }
        let most = given.as_ref().map(|given| given.most);
        request.block = most.or(own.as_ref().map(Data::bytes));
        let mut call = request.call(root, HEAD, NOTHING)?;
        let frame = call.frames_of_root(given.map_or(0, |given| given.said(ranks)))?;
        if let Some(given) = given {
            call.put(frame, (0..ranks).map(|rank| given.of(rank)))?;
        }
        let done = call.moved(Kind::Scatter, 1)?;
        call.take(std::iter::once(own))?;
        Ok(done)
    })
}

/// `MPI_Allgatherv`.
pub(crate) fn allgatherv(send: Side, receive: Sides, comm: Handle) -> Option<c_int> {
    attempt(Kind::Allgather, 0, comm, |mut request| {
        let (me, ranks) = request.seat();
        let got = receive.read(&mut request)?;
        let in_place = request.mpi.is_in_place(send.0);
        let own = if in_place { got.of(me) } else { request.data(send.0, send.1, send.2)? };
        if !in_place && is_its_place(&request, Kind::Allgather, &own, &got.of(me)) {
            return Err(Failed::Wrong);
        }
        request.block = Some(got.most);
        let mut call = request.call(0, 0, NOTHING)?;
        let frame = call.frames(got.said(ranks))?;
        call.put(frame, std::iter::once(own))?;
        let done = call.moved(Kind::Allgather, ranks)?;
        call.take((0..ranks).map(|rank| (!(in_place && rank == me)).then(|| got.of(rank))))?;
        Ok(done)
    })
}

/// `MPI_Alltoallv`.
pub(crate) fn alltoallv(send: Sides, receive: Sides, comm: Handle) -> Option<c_int> {
    attempt(Kind::Alltoall, 0, comm, |mut request| {
        let (_, ranks) = request.seat();
        let got = receive.read(&mut request)?;
        let in_place = request.mpi.is_in_place(send.buffer);
        let own = if in_place { got } else { send.read(&mut request)? };
        let alike = own.data.handle == got.data.handle && own.sides.counts == got.sides.counts;
        if !in_place && alike && request.is_aliased(Kind::Alltoall, &own.data, &got.data) {
            return Err(Failed::Wrong);
        }
        let most = own.most.max(got.most);
        request.block = Some(most);
        let mut call = request.call(0, 2 * HEAD, Combine::Max(Element::U64))?;
        let frame = call.frames_of_all(most, own.data.bytes().max(got.data.bytes()))?;
        call.put(frame, (0..ranks).map(|rank| own.of(rank)))?;
        let done = call.moved(Kind::Alltoall, ranks)?;
        call.take((0..ranks).map(|rank| Some(got.of(rank))))?;
        Ok(done)
    })
}

/// `MPI_Reduce_scatter`: all ranks are given all counts.
pub(crate) fn reduce_scatter(elements: Elements, counts: Numbers, comm: Handle) -> Option<c_int> {
    let done = attempt(Kind::ReduceScatter, 0, comm, |mut request| {
        let (mpi, (me, ranks)) = (request.mpi, request.seat());
        let blocks = combined(&mut request, elements, counts)?;
        if blocks.even {
            let count = i64::try_from(blocks.of(me).count).unwrap_or(i64::MAX);
            return reduced(request, Kind::ReduceScatter, Elements { count, ..elements });
        }
        let got = result(&mut request, elements, &blocks)?;
        let operation = mpi.handle(elements.operation);
        let How::Lines(combine) = request.how(operation, blocks.data)? else {
            return Err(Failed::Mpis(ByMpi::Operation));
        };
        if blocks.said(ranks) == BY_THE_MPI {
            return Err(Failed::Mpis(ByMpi::Bytes));
        }
        let mut call = request.call(0, blocks.most, combine)?;
        blocks.side_by_side(mpi, &mut call.comm.scratch, ranks)?;
        let done = call.moved(Kind::ReduceScatter, 1)?;
        if !got.layout.plain {
            got.unpack_from(mpi, &mut call.comm.scratch.receive)?;
            return Ok(done);
        }
        let result = call.comm.scratch.receive.as_ptr();
        // SAFETY: so many bytes came, and the caller has room for them, which is no scratch.
        unsafe { std::ptr::copy_nonoverlapping(result, got.place(), got.bytes()) };
        Ok(done)
    });
    if done.is_none() && orders() {
        return ordered::reduce_scatter(elements, comm, |request| parts(request, elements, counts));
    }
    done
}

/// What a rank gives to the others, for each of them.
fn combined(
    request: &mut Request<'_>,
    elements: Elements,
    counts: Numbers,
) -> Result<Blocks, Failed> {
    let Elements { send, receive, handle, .. } = elements;
    let buffer = if request.mpi.is_in_place(send) { receive } else { send };
    Sides { buffer, counts, places: None, handle }.read(request)
}

/// Where it gets its own block of the result.
fn result(request: &mut Request<'_>, elements: Elements, blocks: &Blocks) -> Result<Data, Failed> {
    let Elements { send, receive, handle, .. } = elements;
    let count = blocks.of(request.comm.rank.into()).count;
    let got = request.data(receive, i64::try_from(count).unwrap_or(i64::MAX), handle)?;
    let all = Data { buffer: receive, ..blocks.data };
    let in_place = request.mpi.is_in_place(send);
    let aliased = !in_place && request.is_aliased(Kind::ReduceScatter, &blocks.data, &all);
    if aliased { Err(Failed::Wrong) } else { Ok(got) }
}

/// What a rank gives to each one, and where it gets its own.
fn parts(
    request: &mut Request<'_>,
    elements: Elements,
    counts: Numbers,
) -> Result<(Vec<Data>, Data), Failed> {
    let blocks = combined(request, elements, counts)?;
    let got = result(request, elements, &blocks)?;
    let mut before = 0;
    let part = |rank| {
        let part = blocks.data.part(request.mpi, before, blocks.of(rank).count);
        before += part.count;
        part
    };
    Ok(((0..request.comm.size.into()).map(part).collect(), got))
}
