//! Where pages lie: bound ones, and first touched ones. The kernel is asked, never believed.

use anyhow::{Result, ensure};
use isochrone_os::affinity::pin;
use isochrone_os::mapping::{Backing, Mapping};
use isochrone_units::{CoreId, PAGE_BYTES, PageAddr, RegionId};

const REGIONS: u16 = 16;
const PAGES: u64 = 64;

/// The regions of all pages of a mapping.
fn regions(mapping: &Mapping) -> Result<Vec<Option<RegionId>>> {
    let pages: Vec<PageAddr> = (0..mapping.pages()).map(PageAddr).collect();
    let mut out = vec![None; pages.len()];
    mapping.regions_of(&pages, &mut out)?;
    Ok(out)
}

fn bytes() -> usize {
    usize::try_from(PAGES).unwrap_or(usize::MAX) * PAGE_BYTES
}

/// A mapping bound to each region in turn lies there.
pub(crate) fn bound() -> Result<String> {
    let mapping = Mapping::anonymous(bytes(), Backing::Small)?;
    for region in (0..REGIONS).map(RegionId) {
        mapping.bind(region)?;
        let seen = regions(&mapping)?;
        ensure!(
            seen.iter().all(|place| *place == Some(region)),
            "bound to {region}, but seen in {seen:?}"
        );
    }
    Ok(format!("{PAGES} pages moved through {REGIONS} regions"))
}

/// A thread on a core of each region touches memory first.
pub(crate) fn first_touch() -> Result<String> {
    for region in (0..REGIONS).map(RegionId) {
        let core = CoreId(2 * region.0);
        let touched = std::thread::spawn(move || -> Result<Mapping> {
            pin(core)?;
            Ok(Mapping::anonymous(bytes(), Backing::Small)?)
        });
        let mapping =
            touched.join().map_err(|_| anyhow::anyhow!("the touching thread panicked"))??;
        let seen = regions(&mapping)?;
        ensure!(
            seen.iter().all(|place| *place == Some(region)),
            "touched from {region}, but seen in {seen:?}"
        );
    }
    Ok(format!("{PAGES} pages from a core of each of {REGIONS} regions"))
}
