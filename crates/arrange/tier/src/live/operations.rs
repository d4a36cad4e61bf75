//! What the kernel is asked for: protecting, copying, punching, filling and mapping, and what each of its
//! answers means.
//!
//! Answers that are part of the game: `EEXIST` (the page is there, or mapped), `EAGAIN` (the mapping
//! changes: again), `ESRCH` (that process ended: there is nothing to do for it).

use isochrone_os::userfault::Userfault;
use isochrone_units::PAGE_BYTES;

use super::area::Piece;
use super::context::Context;
use super::far::Part;
use super::process::Process;
use crate::names::{Group, Run, Space};
use crate::pages::{Fetch, Trouble};

/// Zeros to fill with what was never stored.
pub(super) static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

pub(super) const fn refused(what: &'static str, errno: i32) -> Trouble {
    Trouble::Kernel { what, errno }
}

/// include/uapi/asm-generic/errno-base.h
pub(super) mod errno {
    pub(in super::super) const ENOENT: i32 = 2;
    pub(in super::super) const ESRCH: i32 = 3;
    pub(in super::super) const EIO: i32 = 5;
    pub(in super::super) const EAGAIN: i32 = 11;
    pub(in super::super) const ENOMEM: i32 = 12;
    pub(in super::super) const EBUSY: i32 = 16;
    pub(in super::super) const EEXIST: i32 = 17;
    pub(in super::super) const EINVAL: i32 = 22;
    pub(in super::super) const ENOSPC: i32 = 28;
}

pub(super) fn protect(process: &Process, run: Run, space: Space) -> Result<(), Trouble> {
    let Some(table) = process.userfault(space) else { return Ok(()) };
    process.area.pieces(run).try_for_each(|piece| protect_piece(table, &piece))
}

/// What leaves is taken out of this process's own tables at once: then freeing it finds nothing there, and there is one
/// round of interrupts for what two are needed for where it is protected first. The kernel lets nobody do that to
/// another process.
pub(super) fn freeze(process: &Process, run: Run, space: Space) -> Result<(), Trouble> {
    let Some(table) = process.userfault(space) else { return Ok(()) };
    let is_own = process.number.get() == Some(&space.0);
    for piece in process.area.pieces(run) {
        let unmap = || {
            let _alone = process.unmapping();
            process.area.unmap(&piece)
        };
        if !is_own || unmap().is_err() {
            protect_piece(table, &piece)?;
        }
    }
    Ok(())
}

fn protect_piece(table: &Userfault, piece: &Piece<'_>) -> Result<(), Trouble> {
    loop {
        match table.protect(piece.address, piece.bytes, true) {
            Ok(()) | Err(errno::ESRCH) => return Ok(()),
            Err(errno::EAGAIN) => {}
            Err(errno) => return Err(refused("protect pages", errno)),
        }
    }
}

pub(super) fn copy_out(context: &Context<'_>, run: Run) -> Result<(), Trouble> {
    let process = context.process;
    for piece in process.area.pieces(run) {
        let part = Part::owned(piece.at, piece.bytes);
        let place = process.far.place(&part);
        let is_memory = place.is_some();
        let to = place.unwrap_or_else(|| bounce(context, piece.bytes))?;
        // SAFETY: `to` is room for the piece in the far tier, of which the part belongs to the caller, or
        // in the caller's own buffer.
        unsafe { piece.file.read(piece.offset, to, piece.bytes) }
            .map_err(|errno| refused("read pages", errno))?;
        if !is_memory {
            // SAFETY: just written, `bytes` long, and this actor's alone.
            let bytes = unsafe { std::slice::from_raw_parts(to, piece.bytes) };
            write(context, &part, bytes)?;
        }
    }
    Ok(())
}

/// Writes to a far tier that is not memory, and reads what the caller will fetch meanwhile.
fn write(context: &Context<'_>, part: &Part, bytes: &[u8]) -> Result<(), Trouble> {
    let (far, mut scratch) = (&context.process.far, context.scratch.borrow_mut());
    let mut ahead = context.ahead.borrow_mut();
    let Some(run) = ahead.wanted.take() else { return far.write(part, bytes, &mut scratch) };
    let mut pieces = context.process.area.pieces(run);
    // A run in two files is rare, and read when it is fetched.
    let (Some(piece), None) = (pieces.next(), pieces.next()) else {
        return far.write(part, bytes, &mut scratch);
    };
    let coming = Part::owned(piece.at, piece.bytes.min(ahead.buffer.len()));
    // SAFETY: the actor's own buffer, at least so long, which nobody reads before `here` says what is in it.
    let to = unsafe { std::slice::from_raw_parts_mut(ahead.buffer.as_ptr(), coming.bytes()) };
    let (written, read) = far.exchange(part, bytes, &coming, to, &mut scratch);
    ahead.here = Some(run).filter(|_| read && coming.bytes() == piece.bytes);
    written
}

/// This actor's buffer, if so much fits.
fn bounce(context: &Context<'_>, bytes: usize) -> Result<*mut u8, Trouble> {
    if bytes > context.bounce.len() {
        return Err(refused("treat so many pages at once", errno::ENOMEM));
    }
    Ok(context.bounce.as_ptr())
}

pub(super) fn punch(process: &Process, run: Run) -> Result<(), Trouble> {
    for piece in process.area.pieces(run) {
        let _alone = process.unmapping();
        piece
            .file
            .punch(piece.offset, piece.bytes)
            .map_err(|errno| refused("free pages", errno))?;
    }
    Ok(())
}

/// Where the bytes of a piece come from.
pub(super) enum Source {
    /// A copy of all of it, and whether it had to be fetched first.
    Bytes { from: *const u8, bounced: bool },
    /// Nothing was ever stored.
    Zeros,
}

impl Source {
    pub(super) const fn is_bounced(&self) -> bool {
        matches!(self, Self::Bytes { bounced: true, .. })
    }

    /// The bytes from an offset of the piece on, and how many there are at most.
    fn from(&self, offset: usize, bytes: usize) -> (*const u8, usize) {
        match self {
            Self::Bytes { from, .. } => (from.wrapping_add(offset), bytes),
            Self::Zeros => (ZEROS.as_ptr(), bytes.min(ZEROS.len())),
        }
    }
}

pub(super) fn source(
    context: &Context<'_>,
    piece: &Piece<'_>,
    run: Run,
    fetch: Fetch,
) -> Result<Source, Trouble> {
    if !fetch.stored {
        return Ok(Source::Zeros);
    }
    let ahead = context.ahead.borrow();
    let is_here = |here: &Run| here.first == run.first && here.groups >= run.groups;
    if fetch.foreseen && ahead.here.as_ref().is_some_and(is_here) {
        // Such a run lies in one file, so the piece is all of what is fetched.
        return Ok(Source::Bytes { from: ahead.buffer.as_ptr(), bounced: true });
    }
    let part = Part::owned(piece.at, piece.bytes);
    if let Some(place) = context.process.far.place(&part) {
        return Ok(Source::Bytes { from: place?, bounced: false });
    }
    let to = bounce(context, piece.bytes)?;
    // SAFETY: the actor's own buffer, which is that long.
    let bytes = unsafe { std::slice::from_raw_parts_mut(to, piece.bytes) };
    context.process.far.read(&part, bytes, &mut context.scratch.borrow_mut())?;
    Ok(Source::Bytes { from: to, bounced: true })
}

/// Puts a piece into memory, and into a table if one is named.
pub(super) fn put(
    process: &Process,
    piece: &Piece<'_>,
    source: &Source,
    fetch: Fetch,
) -> Result<(), Trouble> {
    let table = fetch.into.and_then(|space| process.userfault(space));
    let Some(table) = table else { return put_in_file(piece, source, 0) };
    let mut done = 0;
    while done < piece.bytes {
        let (from, most) = source.from(done, piece.bytes - done);
        let to = piece.address + done;
        // SAFETY: the source has `most` bytes more; the groups belong to the caller, and their bytes are
        // what they held when they left.
        let (copied, error) = unsafe { table.copy(to, from, most, fetch.protect) };
        done += copied;
        match error {
            None | Some(errno::EAGAIN) => {}
            // Somebody who died brought it: it stays as it is, and is mapped.
            Some(errno::EEXIST) => {
                map_page(table, piece.address + done, fetch.protect)?;
                done += PAGE_BYTES;
            }
            Some(errno::ESRCH) => return put_in_file(piece, source, done),
            Some(errno) if errno == errno::ENOMEM || errno == errno::ENOSPC => {
                return Err(refused("give memory to the fast tier", errno));
            }
            Some(errno) => return Err(refused("fill pages", errno)),
        }
    }
    Ok(())
}

fn put_in_file(piece: &Piece<'_>, source: &Source, from: usize) -> Result<(), Trouble> {
    let mut done = from;
    while done < piece.bytes {
        // Page by page where somebody who died may have brought one: it stays as it is.
        if piece.file.holds(piece.offset + done) {
            done += PAGE_BYTES;
            continue;
        }
        let (bytes, most) = source.from(done, piece.bytes - done);
        let most =
            if piece.file.holds_within(piece.offset + done, most) { PAGE_BYTES } else { most };
        // SAFETY: the source has `most` bytes more; the groups belong to the caller, and their bytes are
        // what they held when they left.
        unsafe { piece.file.write(piece.offset + done, bytes, most) }
            .map_err(|errno| refused("give memory to the fast tier", errno))?;
        done += most;
    }
    Ok(())
}

/// Maps a group that is in memory; where it is mapped already its permission is set.
pub(super) fn map(
    process: &Process,
    group: Group,
    space: Space,
    protect: bool,
) -> Result<(), Trouble> {
    let Some(table) = process.userfault(space) else { return Ok(()) };
    let (address, bytes) = (process.area.address_of(group), process.area.group_bytes());
    let (mut done, mut was_mapped) = (0, false);
    while done < bytes {
        let (mapped, error) = table.map(address + done, bytes - done, protect);
        done += mapped;
        match error {
            None | Some(errno::EAGAIN) => {}
            Some(errno::EEXIST) => {
                was_mapped = true;
                done += PAGE_BYTES;
            }
            Some(errno::ESRCH) => return Ok(()),
            Some(errno) => return Err(refused("map a page", errno)),
        }
    }
    if was_mapped && !protect {
        allow_writes(table, address, bytes)?;
    }
    Ok(())
}

fn map_page(table: &Userfault, address: usize, protect: bool) -> Result<(), Trouble> {
    loop {
        return match table.map(address, PAGE_BYTES, protect).1 {
            None | Some(errno::ESRCH) => Ok(()),
            Some(errno::EEXIST) if protect => Ok(()),
            Some(errno::EEXIST) => allow_writes(table, address, PAGE_BYTES),
            Some(errno::EAGAIN) => continue,
            Some(errno) => Err(refused("map a page", errno)),
        };
    }
}

fn allow_writes(table: &Userfault, address: usize, bytes: usize) -> Result<(), Trouble> {
    loop {
        match table.protect(address, bytes, false) {
            Ok(()) | Err(errno::ESRCH) => return Ok(()),
            Err(errno::EAGAIN) => {}
            Err(errno) => return Err(refused("let pages be written", errno)),
        }
    }
}
