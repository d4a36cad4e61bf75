//! How much memory a core reaches without a page walk, by what its maker publishes: a hypervisor
//! need not tell the truth about TLBs (one was seen to tell of 128 entries where 4096 were measured).
//!
//! It never measures and never guesses: of a processor that is not listed it says nothing.

use crate::arch;
use crate::cache::Features;
use crate::mapping::HUGE_PAGE_BYTES;
use crate::processor::Signature;
use isochrone_units::PAGE_BYTES;

/// Memory whose translations the second-level data TLB of one core holds, bytes, where the pages
/// that it holds are small (`huge` false) or of 2 MiB. A guest's TLB holds what guest and host
/// agree on, and hosts were seen to back huge pages of guests with small ones (a knee at 4096
/// entries of 4 KiB on an EPYC 9005, at 2048 on a Granite Rapids), so in a guest all are small.
/// `None` for a processor that is not listed.
#[must_use]
pub fn reach_bytes(huge: bool) -> Option<u64> {
    let entries = entries(&arch::signature()?)?;
    let huge = huge && !Features::detect().hypervisor;
    let page = if huge { HUGE_PAGE_BYTES } else { PAGE_BYTES };
    Some(u64::from(entries) * page as u64)
}

/// Entries of the second-level data TLB for pages of 4 KiB, which serve 2 MiB too on all of these.
/// As AMD's software optimization guides (families 17h, 19h, 1Ah) and Intel's optimization reference manual
/// (the STLB of Skylake server, Ice Lake and Golden Cove; those after them have as many) have it. Knees of a
/// chase were measured for two: 4096 on Zen 5 and 2048 on Granite Rapids; the others were not checked here.
fn entries(of: &Signature) -> Option<u32> {
    match (&of.vendor, of.family, of.model) {
        (b"AuthenticAMD", 0x17, 0x30..) => Some(2048),
        (b"AuthenticAMD", 0x17, _) => Some(1536),
        (b"AuthenticAMD", 0x19, 0x10..=0x1f | 0x60..=0x7f | 0xa0..=0xaf) => Some(3072),
        (b"AuthenticAMD", 0x19, _) => Some(2048),
        (b"AuthenticAMD", 0x1a, _) => Some(4096),
        (b"GenuineIntel", 6, 0x55) => Some(1536),
        (b"GenuineIntel", 6, 0x6a | 0x6c | 0x8f | 0xcf | 0xad | 0xae) => Some(2048),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_processors_have_what_is_published_and_others_nothing() {
        let of = |vendor: &[u8; 12], family, model| {
            entries(&Signature { vendor: *vendor, family, model })
        };
        assert_eq!(of(b"AuthenticAMD", 0x1a, 0x02), Some(4096), "EPYC 9005");
        assert_eq!(of(b"AuthenticAMD", 0x19, 0x11), Some(3072), "EPYC 9004");
        assert_eq!(of(b"AuthenticAMD", 0x19, 0x01), Some(2048), "EPYC 7003");
        assert_eq!(of(b"GenuineIntel", 6, 0xad), Some(2048), "Granite Rapids");
        assert_eq!(of(b"GenuineIntel", 6, 0x55), Some(1536), "Skylake and Cascade Lake servers");
        assert_eq!(of(b"GenuineIntel", 15, 0x02), None);
        assert_eq!(of(b"CentaurHauls", 6, 0x55), None);
    }

    #[test]
    fn a_guest_reaches_small_pages_only() {
        let (small, huge) = (reach_bytes(false), reach_bytes(true));
        assert_eq!(small.is_some(), huge.is_some());
        if let (Some(small), Some(huge)) = (small, huge) {
            let guest = Features::detect().hypervisor;
            assert_eq!(huge / small, if guest { 1 } else { 512 });
        }
    }
}
