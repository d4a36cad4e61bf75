//! Levers that go by what the system has, and no distance: memory beyond the machine's, and huge pages. Nothing of the
//! system is changed.

use std::path::Path;

use isochrone_machine::MachineState;
use isochrone_os::tlb;
use isochrone_report::fmt;
use isochrone_tier::live::check;

use super::findings::{Finding, Offer};

/// Data that are larger than memory.
pub(super) fn beyond_memory(bytes: Option<u64>) -> Finding {
    const LEVER: &str = "tier or zram";
    let found = check(Path::new("/sys"));
    let beyond = bytes.map_or_else(|| "memory".to_owned(), fmt::bytes);
    let finding = match (found.mode, found.missing.first()) {
        (Some(_), _) => {
            let what = format!(
                "programs with more data than {beyond} alone: in order and with arithmetic an area of tier (programs \
                 ask for it), at random and compressible zram (root sets it up)"
            );
            Finding::new(LEVER, Offer::Depends, what)
                .briefly(format!("data beyond {beyond}"))
                .command("isochrone tier check")
        }
        (None, missing) => {
            let lacks = missing.map_or("this kernel has no area", |missing| missing.what.as_str());
            let what =
                format!("no area of tier ({lacks}); beyond {beyond} zram, which root sets up");
            Finding::new(LEVER, Offer::Nothing, what)
                .briefly("no area of tier here")
                .command("isochrone tier check")
        }
    };
    match bytes {
        Some(bytes) => finding.number(bytes as f64, "bytes", None),
        None => finding,
    }
}

/// What the system has set of huge pages.
pub(super) fn page_sizes(state: &MachineState) -> Finding {
    const LEVER: &str = "huge pages";
    let reach = tlb::reach_bytes(false);
    let beyond = reach.map_or_else(String::new, |bytes| {
        format!("; translations of small pages reach {}", fmt::bytes(bytes))
    });
    let free: u64 = state.huge_pages.iter().map(|pool| pool.free).sum();
    let finding = match (state.thp.as_deref(), free) {
        (Some("always"), _) => Finding::new(
            LEVER,
            Offer::Nothing,
            format!("the system gives them unasked (always){beyond}"),
        )
        .briefly("the system gives them unasked (always)"),
        (Some("madvise"), _) => {
            let what = format!(
                "the system gives them to who asks (madvise), and malloc does not ask by itself{beyond}"
            );
            Finding::new(LEVER, Offer::Depends, what)
                .briefly("malloc has to ask")
                .command("GLIBC_TUNABLES=glibc.malloc.hugetlb=1 CMD")
        }
        (_, 1..) => {
            let what = format!("{free} pages of a pool are free{beyond}");
            Finding::new(LEVER, Offer::Depends, what)
                .briefly("a pool has free ones")
                .command("GLIBC_TUNABLES=glibc.malloc.hugetlb=2 CMD")
        }
        (thp, 0) => {
            let thp = thp.unwrap_or("not known");
            let what = format!(
                "the system gives none (transparent huge pages: {thp}; no page in a pool){beyond}"
            );
            Finding::new(LEVER, Offer::Nothing, what).briefly("the system gives none")
        }
    };
    match reach {
        Some(bytes) => finding.number(bytes as f64, "bytes", None),
        None => finding,
    }
}

#[cfg(test)]
mod tests {
    use isochrone_machine::HugePages;

    use super::*;

    fn pages(thp: Option<&str>, free: u64) -> Finding {
        let pool = HugePages { page_bytes: 2 << 20, total: 8, free };
        let state = MachineState {
            thp: thp.map(str::to_owned),
            huge_pages: vec![pool],
            ..MachineState::default()
        };
        page_sizes(&state)
    }

    #[test]
    fn what_the_system_has_set_of_huge_pages_decides_how_they_are_had() {
        for (thp, free, offer, tunable) in [
            (Some("always"), 4, Offer::Nothing, None),
            (Some("madvise"), 0, Offer::Depends, Some("hugetlb=1")),
            (Some("never"), 3, Offer::Depends, Some("hugetlb=2")),
            (Some("never"), 0, Offer::Nothing, None),
            (None, 0, Offer::Nothing, None),
        ] {
            let found = pages(thp, free);
            assert_eq!(found.offer, offer, "{thp:?} {free}");
            let has =
                |tunable| found.command.as_ref().is_some_and(|command| command.contains(tunable));
            assert_eq!(found.command.is_some(), tunable.is_some(), "{found:?}");
            assert!(tunable.is_none_or(has), "{found:?}");
        }
    }
}
