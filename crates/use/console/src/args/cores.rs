//! Lists of cores, and whether this process may run on them.

use anyhow::{Context, Result};
use isochrone_machine::spans;
use isochrone_os::affinity::CoreSet;
use isochrone_units::CoreId;

use crate::wrong::WrongUsage;

/// Cores that an option names: ascending, each once, one at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreList(Vec<u16>);

/// Cores: `0,2-5` as numbers, ascending, each once; `0-12:4` is every fourth of them, as maps write it.
///
/// # Errors
/// In words, where it is no list of cores.
pub fn parse_cores(text: &str) -> Result<Vec<u16>, String> {
    // A list may name all of them over and over, and takes no more room for that.
    let mut named = vec![false; 1 << u16::BITS];
    for part in text.split(',') {
        let (part, step) = match part.split_once(':') {
            Some((run, step)) if run.contains('-') => (run, step),
            _ => (part, "1"),
        };
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let number = |t: &str| {
            t.trim().parse::<u16>().map_err(|_| format!("`{t}` in `{text}` is not a core number"))
        };
        let (from, to, step) = (number(from)?, number(to)?, number(step)?);
        if from > to {
            return Err(format!("`{part}` runs backwards"));
        }
        if step == 0 {
            return Err(format!("`{part}:{step}` never gets on"));
        }
        (from..=to).step_by(usize::from(step)).for_each(|core| named[usize::from(core)] = true);
    }
    Ok((0..=u16::MAX).filter(|core| named[usize::from(*core)]).collect())
}

/// The same for an option.
///
/// # Errors
/// As [`parse_cores`].
pub fn parse_core_list(text: &str) -> Result<CoreList, String> {
    parse_cores(text).map(CoreList)
}

impl CoreList {
    /// The cores, ascending.
    pub fn cores(&self) -> impl Iterator<Item = CoreId> + '_ {
        self.0.iter().copied().map(CoreId)
    }

    /// The cores, where this process may run on all of them.
    ///
    /// # Errors
    /// [`WrongUsage`] with those on which it may not, and those on which it may.
    pub fn usable(&self) -> Result<Vec<CoreId>> {
        let allowed =
            CoreSet::of_this_thread().context("the cores of this process are not known")?;
        let allowed: Vec<u16> = allowed.iter().map(|core| core.0).collect();
        self.among(&allowed)
    }

    fn among(&self, allowed: &[u16]) -> Result<Vec<CoreId>> {
        let not: Vec<u16> = self.0.iter().copied().filter(|core| !allowed.contains(core)).collect();
        if not.is_empty() {
            return Ok(self.cores().collect());
        }
        Err(WrongUsage::error(format!(
            "--cores {self}: this process may not run on {}; it may run on {}",
            spans(&not),
            spans(allowed)
        )))
    }
}

impl std::fmt::Display for CoreList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&spans(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_ascend_and_what_is_none_is_refused() {
        assert_eq!(parse_cores("0,2-4,3"), Ok(vec![0, 2, 3, 4]));
        assert_eq!(parse_cores("0-9:4,3,20-20:7"), Ok(vec![0, 3, 4, 8, 20]));
        assert_eq!(parse_cores("3,0-65535,1-65535").map(|list| list.len()), Ok(65536));
        for text in [
            "",
            ",",
            "a",
            "4-2",
            "0-",
            "-1",
            "0-4294967295",
            "65536",
            "0:1",
            "0-4:0",
            "0-4:",
            "0-4:1:1",
        ] {
            assert!(parse_cores(text).is_err(), "{text}");
        }
    }

    #[test]
    fn cores_on_which_this_process_may_not_run_are_wrong_usage() {
        let list = parse_core_list("0,6-8").unwrap();
        assert_eq!(list.among(&[0, 6, 7, 8]).unwrap().len(), 4);
        let refused = list.among(&[0, 1]).unwrap_err();
        assert!(refused.is::<WrongUsage>(), "{refused}");
        let words = refused.to_string();
        for part in ["--cores 0,6-8", "may not run on 6-8", "may run on 0-1"] {
            assert!(words.contains(part), "{words}");
        }
    }
}
