//! One map at a time: two that measure at once measure each other.

use std::time::Duration;

use anyhow::{Result, bail};
use isochrone_host::{SysRoot, Turn};
use isochrone_probe::watch::Watch as _;

use isochrone_console::output::Terminal;
use isochrone_console::progress::Progress;

/// How often it is looked whether the other one has ended: what waits shall take nothing from what measures.
const LOOK: Duration = Duration::from_millis(200);

/// Waits until nobody else measures this machine, or refuses to. `None` where that cannot be told; then the map goes
/// on.
pub(super) fn take(
    no_wait: bool,
    progress: &mut Progress,
    terminal: &Terminal,
) -> Result<Option<Turn>> {
    let root = SysRoot::live();
    let mut is_told = false;
    loop {
        match Turn::take(&root) {
            Ok(Some(turn)) => return Ok(Some(turn)),
            Ok(None) => {}
            Err(error) => {
                terminal.complain(&format!(
                    "isochrone: whether somebody else measures this machine cannot be told: {error}"
                ));
                return Ok(None);
            }
        }
        let other = Turn::holder(&root)
            .map_or_else(|| "another process".to_owned(), |process| format!("process {process}"));
        if no_wait {
            bail!("{other} measures this machine now: try again later, or without --no-wait");
        }
        if !is_told {
            is_told = true;
            terminal.complain(&format!(
                "isochrone: {other} measures this machine now: waiting for its end (--no-wait refuses)"
            ));
        }
        progress.step(&format!("waiting for {other}, which measures this machine"));
        std::thread::sleep(LOOK);
        if !progress.keep_going() {
            bail!(
                "interrupted while waiting for {other}, which measures this machine: nothing was measured"
            );
        }
    }
}
