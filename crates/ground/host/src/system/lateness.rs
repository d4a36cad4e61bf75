//! How late the system lets this process run.

use super::SysRoot;

/// How many times as long as alone takes what this process does: what its first thread has run and waited for a
/// processor so far, over what it has run. `None` where the system does not say (sched-stats in the kernel's
/// documentation).
#[must_use]
pub fn lateness(root: &SysRoot) -> Option<f64> {
    of(&root.text("proc/self/schedstat")?)
}

fn of(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let mut next = || words.next()?.parse::<f64>().ok();
    let (ran_ns, waited_ns) = (next()?, next()?);
    (ran_ns > 0.0).then(|| (ran_ns + waited_ns) / ran_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_makes_late() {
        assert_eq!(of("2000 0 7\n"), Some(1.0));
        assert_eq!(of("2000 28000 7\n"), Some(15.0));
        assert_eq!((of("0 0 0"), of(""), of("1")), (None, None, None));
        let here = lateness(&SysRoot::live());
        assert!(here.is_none_or(|late| late >= 1.0), "{here:?}");
    }
}
