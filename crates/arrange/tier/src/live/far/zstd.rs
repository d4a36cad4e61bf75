//! Zstandard: shorter than LZ4, and slower. Its contexts lie in memory that is mapped for them before the first call
//! (`ZSTD_initStaticCCtx`), so that it never allocates: it works in handlers, also of programs whose `malloc` is ours.

use core::ptr::NonNull;

use isochrone_os::OsError;
use isochrone_os::space::Space;
use zstd_sys::{
    ZSTD_CCtx, ZSTD_DCtx, ZSTD_compressBound, ZSTD_compressCCtx, ZSTD_decompressDCtx,
    ZSTD_estimateCCtxSize, ZSTD_estimateDCtxSize, ZSTD_initStaticCCtx, ZSTD_initStaticDCtx,
    ZSTD_isError,
};

use super::Scratch;
use super::packing::{CORRUPT, Packing};
use crate::pages::Trouble;

/// Zstandard's own scale, of which 1 is the fastest that is not given up to speed alone.
const LEVEL: i32 = 1;

/// include/uapi/asm-generic/errno-base.h
const EINVAL: i32 = 22;

/// Groups are packed by Zstandard.
#[derive(Clone, Copy, Debug)]
pub struct Zstd;

/// What one actor packs and unpacks with.
pub(super) struct Contexts {
    pack: NonNull<ZSTD_CCtx>,
    unpack: NonNull<ZSTD_DCtx>,
    /// Where both are.
    _rooms: [Space; 2],
}

// SAFETY: the contexts lie in memory of this value, are reached through it alone, and know nothing of threads.
unsafe impl Send for Contexts {}

impl Contexts {
    fn new() -> Result<Self, OsError> {
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
}

/// What a call of the library says.
fn outcome(said: usize) -> Result<usize, Trouble> {
    // SAFETY: compares numbers.
    if unsafe { ZSTD_isError(said) } == 0 { Ok(said) } else { Err(CORRUPT) }
}

impl Packing for Zstd {
    fn name(&self) -> &'static str {
        "zstd"
    }

    fn scratch(&self, group_bytes: usize) -> Result<Scratch, OsError> {
        // SAFETY: computes a number.
        let most = unsafe { ZSTD_compressBound(group_bytes) };
        let zstd = Some(Contexts::new()?);
        Ok(Scratch { bytes: vec![0; most], zstd, ..Scratch::default() })
    }

    fn pack(&self, from: &[u8], scratch: &mut Scratch) -> Result<usize, Trouble> {
        let Scratch { bytes, zstd, .. } = scratch;
        let context = zstd.as_mut().ok_or(CORRUPT)?.pack.as_ptr();
        let (to, room) = (bytes.as_mut_ptr().cast(), bytes.len());
        // SAFETY: the context is whole and this actor's alone; both buffers are that long and do not overlap.
        outcome(unsafe {
            ZSTD_compressCCtx(context, to, room, from.as_ptr().cast(), from.len(), LEVEL)
        })
    }

    fn unpack(
        &self,
        stored: &[u8],
        to: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<usize, Trouble> {
        let context = scratch.zstd.as_mut().ok_or(CORRUPT)?.unpack.as_ptr();
        let (into, room) = (to.as_mut_ptr().cast(), to.len());
        // SAFETY: as above; the library checks what it reads and never writes beyond the room.
        outcome(unsafe {
            ZSTD_decompressDCtx(context, into, room, stored.as_ptr().cast(), stored.len())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_did_not_make_is_an_error_and_it_goes_on() {
        let mut scratch = Zstd.scratch(4096).unwrap();
        let page: Vec<u8> = (0_u32..4096).map(|at| (at / 32).to_le_bytes()[0]).collect();
        let packed = Zstd.pack(&page, &mut scratch).unwrap();
        assert!(packed < 1024, "{packed}");
        let mut stored = scratch.bytes[..packed].to_vec();
        let mut to = vec![0; 4096];
        assert_eq!(Zstd.unpack(&stored[..packed / 2], &mut to, &mut scratch), Err(CORRUPT));
        assert_eq!(Zstd.unpack(&stored, &mut to[..100], &mut scratch), Err(CORRUPT));
        assert_eq!(Zstd.unpack(&stored, &mut to, &mut scratch), Ok(4096));
        assert_eq!(to, page);
        stored[0] ^= 1;
        assert_eq!(Zstd.unpack(&stored, &mut to, &mut scratch), Err(CORRUPT));
        assert_eq!(Zstd.pack(&page, &mut Scratch::default()), Err(CORRUPT));
    }
}
