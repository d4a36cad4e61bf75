//! What the machine must be read as: cores, regions and the firmware's distances of a bullion S.

use anyhow::{Result, ensure};
use isochrone_host::{SysRoot, this_machine};

/// Cores, the last one beside two of a region: workers of 32 and one who evicts.
const CORES: usize = 33;
const REGIONS: u16 = 16;

/// The firmware's distance: the region itself, the same module, another module (NumaAware paper, section 6).
const fn distance(a: u16, b: u16) -> u32 {
    if a == b {
        10
    } else if a / 2 == b / 2 {
        15
    } else {
        40
    }
}

/// Reads the machine from its files.
pub(crate) fn as_described() -> Result<String> {
    let machine = this_machine(&SysRoot::live())?;
    ensure!(machine.cores.len() == CORES, "{} cores", machine.cores.len());
    ensure!(machine.regions.len() == usize::from(REGIONS), "{} regions", machine.regions.len());
    for a in 0..REGIONS {
        for b in 0..REGIONS {
            let text =
                std::fs::read_to_string(format!("/sys/devices/system/node/node{a}/distance"))?;
            let seen =
                text.split_whitespace().nth(usize::from(b)).and_then(|word| word.parse().ok());
            ensure!(seen == Some(distance(a, b)), "the kernel says {seen:?} from {a} to {b}");
        }
    }
    Ok(format!("{CORES} cores, {REGIONS} regions, distances 10, 15, 40"))
}
