//! One map at a time: two that measure at once measure each other.

use std::time::Duration;

use anyhow::{Result, bail};
use isochrone_host::{SysRoot, Turn};
use isochrone_probe::watch::Watch as _;

use isochrone_console::output::Terminal;
use isochrone_console::progress::Progress;

/// How often it is looked whether the other one has ended: what waits shall take nothing from what measures.
const LOOK: Duration = Duration::from_millis(200);
/// The same of a rank: all of a node have the turn one after another when it is measured, to see that it is.
const LOOK_OF_A_RANK: Duration = Duration::from_millis(50);

/// What is done while somebody else measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// It is refused.
    Refuse,
    /// It waits, and says so.
    Wait,
    /// It sleeps, and says nothing: it is one of many.
    Sleep,
}

/// Waits until nobody else measures this machine, or refuses to. `None` where that cannot be told; then the map goes
/// on.
pub(super) fn take(
    manner: Manner,
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
        if manner == Manner::Refuse {
            bail!("{other} measures this machine now: try again later, or without --no-wait");
        }
        if manner == Manner::Wait && !is_told {
            is_told = true;
            terminal.complain(&format!(
                "isochrone: {other} measures this machine now: waiting for its end (--no-wait refuses)"
            ));
        }
        progress.step(&format!("waiting for {other}, which measures this machine"));
        std::thread::sleep(if manner == Manner::Sleep { LOOK_OF_A_RANK } else { LOOK });
        if !progress.keep_going() {
            bail!(
                "interrupted while waiting for {other}, which measures this machine: nothing was measured"
            );
        }
    }
}
