//! Zstandard: shorter than LZ4, and slower.

use isochrone_os::OsError;

use super::Scratch;
use super::contexts::{Contexts, room_for};
use super::packing::{CORRUPT, Packing};
use crate::pages::Trouble;

/// Groups are packed by Zstandard.
#[derive(Clone, Copy, Debug)]
pub struct Zstd;

impl Packing for Zstd {
    fn name(&self) -> &'static str {
        "zstd"
    }

    fn scratch(&self, group_bytes: usize) -> Result<Scratch, OsError> {
        let (bytes, zstd) = (vec![0; room_for(group_bytes)], Some(Contexts::new()?));
        Ok(Scratch { bytes, zstd, ..Scratch::default() })
    }

    fn pack(&self, from: &[u8], scratch: &mut Scratch) -> Result<usize, Trouble> {
        let Scratch { bytes, zstd, .. } = scratch;
        zstd.as_mut().and_then(|zstd| zstd.pack(from, bytes)).ok_or(CORRUPT)
    }

    fn unpack(
        &self,
        stored: &[u8],
        to: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<usize, Trouble> {
        scratch.zstd.as_mut().and_then(|zstd| zstd.unpack(stored, to)).ok_or(CORRUPT)
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
