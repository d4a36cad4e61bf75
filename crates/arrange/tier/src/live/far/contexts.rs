//! What one actor packs and unpacks with by Zstandard, in memory that is mapped for it before the first call
//! (`ZSTD_initStaticCCtx`), so that nothing is allocated later: it works in handlers, also of programs whose `malloc`
//! is ours.

use core::ptr::NonNull;

use isochrone_os::OsError;
use isochrone_os::space::Space;
use zstd_sys::{
    ZSTD_CCtx, ZSTD_DCtx, ZSTD_compressBound, ZSTD_compressCCtx, ZSTD_decompressDCtx,
    ZSTD_estimateCCtxSize, ZSTD_estimateDCtxSize, ZSTD_initStaticCCtx, ZSTD_initStaticDCtx,
    ZSTD_isError,
};

/// Zstandard's own scale, of which 1 is the fastest that is not given up to speed alone.
const LEVEL: i32 = 1;
/// include/uapi/asm-generic/errno-base.h
const EINVAL: i32 = 22;

/// Contexts of one actor.
pub(super) struct Contexts {
    pack: NonNull<ZSTD_CCtx>,
    unpack: NonNull<ZSTD_DCtx>,
    /// Where both are.
    _rooms: [Space; 2],
}

// SAFETY: the contexts lie in memory of this value, are reached through it alone, and know nothing of threads.
unsafe impl Send for Contexts {}

impl Contexts {
    pub(super) fn new() -> Result<Self, OsError> {
        let none = || OsError {
            what: "no room for zstd's contexts",
            errno: EINVAL,
            advice: "take another far tier, and report it",
        };
        // SAFETY: computes a number.
        let pack = Space::new(unsafe { ZSTD_estimateCCtxSize(LEVEL) }, false)?;
        // SAFETY: computes a number.
        let unpack = Space::new(unsafe { ZSTD_estimateDCtxSize() }, false)?;
        let (pack_at, unpack_at) = (pack.as_ptr().cast(), unpack.as_ptr().cast());
        // SAFETY: the space is new, that long, aligned to pages, and lives as long as the context.
        let packer = unsafe { ZSTD_initStaticCCtx(pack_at, pack.len()) };
        // SAFETY: as above.
        let unpacker = unsafe { ZSTD_initStaticDCtx(unpack_at, unpack.len()) };
        Ok(Self {
            pack: NonNull::new(packer).ok_or_else(none)?,
            unpack: NonNull::new(unpacker).ok_or_else(none)?,
            _rooms: [pack, unpack],
        })
    }

    /// Packs, and says how many bytes of `to` it takes; nothing where they do not suffice.
    pub(super) fn pack(&mut self, from: &[u8], to: &mut [u8]) -> Option<usize> {
        let (context, into, room) = (self.pack.as_ptr(), to.as_mut_ptr().cast(), to.len());
        // SAFETY: the context is whole and this value's; both buffers are that long and do not overlap.
        done(unsafe {
            ZSTD_compressCCtx(context, into, room, from.as_ptr().cast(), from.len(), LEVEL)
        })
    }

    /// Unpacks, and says how many bytes there were; nothing where it is not what was packed, or too long.
    pub(super) fn unpack(&mut self, from: &[u8], to: &mut [u8]) -> Option<usize> {
        let (context, into, room) = (self.unpack.as_ptr(), to.as_mut_ptr().cast(), to.len());
        // SAFETY: as above; the library checks what it reads and never writes beyond the room.
        done(unsafe { ZSTD_decompressDCtx(context, into, room, from.as_ptr().cast(), from.len()) })
    }
}

/// Bytes that suffice for what so many are packed to.
pub(super) fn room_for(bytes: usize) -> usize {
    // SAFETY: computes a number.
    unsafe { ZSTD_compressBound(bytes) }
}

/// What a call of the library says.
fn done(said: usize) -> Option<usize> {
    // SAFETY: compares numbers.
    (unsafe { ZSTD_isError(said) } == 0).then_some(said)
}
