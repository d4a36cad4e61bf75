//! What this kernel allows, what is missing, and the way to mend it.

use std::path::Path;

use isochrone_os::pages::kernel_page_bytes;
use isochrone_os::userfault::{Features, available};
use isochrone_units::PAGE_BYTES;

/// How faults are resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the thread that has one, by a signal.
    Signal,
    /// In a thread of its process that reads them.
    Blocking,
}

impl Mode {
    /// The name in figures.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Signal => "signal",
            Self::Blocking => "blocking",
        }
    }

    /// What is asked of the kernel.
    #[must_use]
    pub const fn features(self) -> Features {
        let both = Features::MISSING_SHMEM.and(Features::MINOR_SHMEM).and(Features::WP_SHMEM);
        match self {
            Self::Signal => both.and(Features::SIGBUS),
            Self::Blocking => both.and(Features::THREAD_ID),
        }
    }
}

/// Something that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// What is missing, in words.
    pub what: String,
    /// What it costs.
    pub costs: &'static str,
    /// How it can be had.
    pub mend: &'static str,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The best mode, `None` where the area cannot be had at all.
    pub mode: Option<Mode>,
    /// What userfaultfd can do.
    pub features: Features,
    /// What is missing, most important first.
    pub missing: Vec<Missing>,
}

/// The kernel that an area needs: shared memory is write-protected since 5.19, and on AArch64 since 6.10
/// (arch/arm64/Kconfig, `HAVE_ARCH_USERFAULTFD_WP`).
const NEWER: &str = if cfg!(target_arch = "aarch64") {
    "use Linux 6.10 or newer"
} else {
    "use Linux 5.19 or newer"
};
const NEWER_AND_ALLOWED: &str = if cfg!(target_arch = "aarch64") {
    "use Linux 6.10 or newer, and allow userfaultfd in the sandbox"
} else {
    "use Linux 5.19 or newer, and allow userfaultfd in the sandbox"
};

/// Asks the kernel, and its files below `sys` (`/sys`).
#[must_use]
pub fn check(sys: &Path) -> Check {
    let mut missing = Vec::new();
    let features = available().unwrap_or_else(|error| {
        missing.push(Missing {
            what: error.to_string(),
            costs: "there is no area without it",
            mend: NEWER_AND_ALLOWED,
        });
        Features(0)
    });
    let mut mode = None;
    if features != Features(0) {
        for candidate in [Mode::Blocking, Mode::Signal] {
            if features.has(candidate.features()) {
                mode = Some(candidate);
            }
        }
        missing.extend(lacking(features));
    }
    if let Some(huge) = huge_pages(sys) {
        missing.push(huge);
        mode = None;
    }
    if let Some(pages) = long_pages(kernel_page_bytes()) {
        missing.insert(0, pages);
        mode = None;
    }
    Check { mode, features, missing }
}

fn lacking(features: Features) -> Vec<Missing> {
    let needs = [
        (
            Features::WP_SHMEM.and(Features::MINOR_SHMEM).and(Features::MISSING_SHMEM),
            "userfaultfd for shared memory (missing, minor and write-protect)",
            "there is no area without it",
            NEWER,
        ),
        (
            Features::SIGBUS,
            "UFFD_FEATURE_SIGBUS",
            "faults are resolved by another thread, some ten times slower",
            "use Linux 4.14 or newer",
        ),
        (
            Features::WP_UNPOPULATED,
            "mapping without permission to write (UFFDIO_CONTINUE_MODE_WP)",
            "pages that are only read are written back too",
            "use Linux 6.4 or newer",
        ),
        (
            Features::POISON,
            "UFFDIO_POISON",
            "in the blocking mode a page that cannot be had ends the program by a signal",
            "use Linux 6.6 or newer",
        ),
    ];
    let lacks = needs.into_iter().filter(|(wanted, ..)| !features.has(*wanted));
    lacks.map(|(_, what, costs, mend)| Missing { what: what.to_owned(), costs, mend }).collect()
}

/// Groups are counted in pages of 4 KiB, and a kernel with longer ones neither maps nor protects a part of one.
fn long_pages(kernel_bytes: usize) -> Option<Missing> {
    (kernel_bytes != PAGE_BYTES).then(|| Missing {
        what: format!("pages of 4 KiB (this kernel's have {} KiB)", kernel_bytes >> 10),
        costs: "there is no area without them",
        mend: "boot a kernel with pages of 4 KiB",
    })
}

/// Huge pages in shared memory: one page that is filled would make 511 others look as if they were there.
fn huge_pages(sys: &Path) -> Option<Missing> {
    let text = std::fs::read_to_string(sys.join("kernel/mm/transparent_hugepage/shmem_enabled"));
    let text = text.ok()?;
    let chosen = text.split('[').nth(1)?.split(']').next()?;
    matches!(chosen, "always" | "force").then(|| Missing {
        what: format!("shared memory in small pages (shmem_enabled is {chosen})"),
        costs: "there is no area with huge pages: a group would bring its neighbours",
        mend: "echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(text: &str) -> Check {
        let sys = tempfile::tempdir().unwrap();
        let folder = sys.path().join("kernel/mm/transparent_hugepage");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("shmem_enabled"), text).unwrap();
        check(sys.path())
    }

    #[test]
    fn huge_pages_in_shared_memory_are_refused_with_the_way_out() {
        let bad = with("[always] within_size advise never deny force");
        assert_eq!(bad.mode, None);
        assert!(bad.missing.iter().any(|missing| missing.mend.contains("echo advise")));
        let good = with("always within_size advise [never] deny force");
        assert!(!good.missing.iter().any(|missing| missing.mend.contains("echo")));
    }

    #[test]
    fn a_kernel_with_longer_pages_has_no_area() {
        assert_eq!(long_pages(4096), None);
        assert!(long_pages(64 << 10).is_some_and(|missing| missing.what.contains("64 KiB")));
    }

    #[test]
    fn each_lacking_feature_is_named_with_its_cost_and_its_cure() {
        let old = Features::MISSING_SHMEM.and(Features::MINOR_SHMEM).and(Features::WP_SHMEM);
        let names: Vec<String> = lacking(old).into_iter().map(|missing| missing.what).collect();
        assert_eq!(names.len(), 3);
        assert!(names[0].contains("SIGBUS"));
        assert!(lacking(Features(u64::MAX)).is_empty());
    }
}
