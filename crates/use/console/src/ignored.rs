//! Signals that whoever started this process wants it to ignore: SIGHUP under `nohup`, SIGINT in the background of a
//! script. They are left alone, as every command of a shell does.

use isochrone_host::{SysRoot, ignored_signals};
use nix::sys::signal::{SigSet, Signal};

/// Those signals; none where `/proc` does not say.
pub(crate) fn ignored() -> SigSet {
    ignored_of(ignored_signals(&SysRoot::live()).unwrap_or(0))
}

fn ignored_of(mask: u64) -> SigSet {
    let bit = |signal: Signal| 1 << (signal as i32 - 1);
    Signal::iterator().filter(|signal| mask & bit(*signal) != 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_a_bit_for_each_signal_from_one_on() {
        assert_eq!(ignored_of(0).iter().next(), None);
        let all: Vec<Signal> = ignored_of(0x1003).iter().collect();
        assert_eq!(all, [Signal::SIGHUP, Signal::SIGINT, Signal::SIGPIPE]);
    }
}
