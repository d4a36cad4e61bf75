//! LZ4: the fastest of what makes pages shorter.

use isochrone_os::OsError;
use lz4_flex::block::{
    CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size,
};

use super::Scratch;
use super::packing::{CORRUPT, Packing};
use crate::pages::Trouble;

/// Groups are packed by LZ4.
#[derive(Clone, Copy, Debug)]
pub struct Lz4;

impl Packing for Lz4 {
    fn name(&self) -> &'static str {
        "lz4"
    }

    fn scratch(&self, group_bytes: usize) -> Result<Scratch, OsError> {
        let small = group_bytes < usize::from(u16::MAX);
        let table = if small { CompressTable::small() } else { CompressTable::large() };
        Ok(Scratch {
            bytes: vec![0; get_maximum_output_size(group_bytes)],
            table: Some(table),
            ..Scratch::default()
        })
    }

    fn pack(&self, from: &[u8], scratch: &mut Scratch) -> Result<usize, Trouble> {
        let Scratch { bytes, table, .. } = scratch;
        let table = table.as_mut().ok_or(CORRUPT)?;
        compress_into_with_table(from, bytes, table).map_err(|_| CORRUPT)
    }

    fn unpack(&self, stored: &[u8], to: &mut [u8], _: &mut Scratch) -> Result<usize, Trouble> {
        decompress_into(stored, to).map_err(|_| CORRUPT)
    }
}
