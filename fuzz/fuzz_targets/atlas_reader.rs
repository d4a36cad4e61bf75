//! The atlas reader on arbitrary bytes: it opens or refuses them, answers every question or says
//! that it does not know, and never panics. `crates/atlas/store/src/damage.rs` replays the stored
//! corpus.
//!
//! Almost no random file has the right checksum, so each input is also tried with header and
//! checksum corrected: what a writer with a fault would produce.

#![no_main]

use isochrone_atlas::Atlas;
use isochrone_atlas::format::{
    BYTE_ORDER, CHECKSUM_AT, HEADER_BYTES, Header, MAGIC, MAJOR, RegionMode, TermTag, TransferKind,
    checksum,
};
use isochrone_units::{CoreId, Level, LineAddr, RegionId};
use libfuzzer_sys::fuzz_target;

fn ask_everything(bytes: &[u8]) {
    let Ok(atlas) = Atlas::open(bytes) else { return };
    let mut lines = vec![LineAddr(0), LineAddr(u64::MAX), LineAddr(1 << 36)];
    for block in atlas.blocks() {
        let first = block.first_frame.wrapping_mul(64);
        lines.extend([LineAddr(first), LineAddr(first.wrapping_add(511 * 64 + 63))]);
    }
    for record in atlas.measured_lines() {
        lines.push(LineAddr(record.frame.wrapping_mul(64)));
    }
    lines.truncate(64);
    let cores = atlas.cores().take(4).chain([CoreId(0), CoreId(u16::MAX)]);
    for core in cores {
        for level in Level::ALL {
            for &line in &lines {
                let cycles = atlas.latency(core, level, line);
                assert!(cycles.is_none_or(|cycles| !cycles.is_nan()));
                let mask = atlas.lines_below_quantile(line.page(), core, level, 0.25);
                assert!(mask.is_none_or(|mask| mask.count_ones() == 16));
                let _ = atlas.nearest_core(line, level);
                let _ = atlas.code(line.page(), level);
            }
            let _ = atlas.base(level, usize::MAX);
        }
        let _ = atlas.transfer(core, CoreId(1), TransferKind::Modified);
        let _ = atlas.means(core, Level::Dram);
        let _ = atlas.region_latency(core, RegionId(0), RegionMode::Random);
    }
    for matrix in atlas.packed_matrices() {
        for (row, column) in [(0, 0), (1, 0), (matrix.rows(), 1), (matrix.rows() / 2, 3)] {
            let _ = matrix.cell(row, column);
        }
    }
    atlas.histograms().for_each(|found| found.cycles().for_each(drop));
    atlas.fits().for_each(drop);
    atlas.bandwidths().for_each(|found| found.cores().for_each(drop));
    for term in TermTag::ALL {
        let _ = atlas.term(term);
    }
    for level in atlas.group_levels() {
        assert!((0..70_000).filter_map(|at| level.group(at)).all(|group| group < level.groups));
    }
}

fuzz_target!(|bytes: &[u8]| {
    ask_everything(bytes);
    let mut corrected = bytes.to_vec();
    if let Some(head) = corrected.first_chunk::<HEADER_BYTES>() {
        let header = Header {
            magic: MAGIC,
            byte_order: BYTE_ORDER,
            major: MAJOR,
            length: bytes.len() as u64,
            ..Header::from_bytes(head)
        };
        corrected[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
        let sum = checksum(&corrected);
        corrected[CHECKSUM_AT].copy_from_slice(&sum.to_le_bytes());
        ask_everything(&corrected);
    }
});
