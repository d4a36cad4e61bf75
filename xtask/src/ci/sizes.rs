//! How large may be what is shipped: command and libraries as they were packed, without symbols.
//!
//! A library that programs load is in the way of nothing but its pages; it grows unseen, by a whole parser at a time.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::say;

/// Something that is shipped.
#[derive(Debug)]
struct Shipped {
    /// Below the tree that was packed.
    path: &'static str,
    /// The most bytes that it may have.
    most: u64,
}

const SHIPPED: &[Shipped] = &[
    Shipped { path: "bin/isochrone", most: 12_000_000 },
    // zstd is 270,000 of it, as it is of the pager's.
    Shipped { path: "lib/libisochrone.so.0", most: 3_200_000 },
    Shipped { path: "lib/libisochrone_mpi.so", most: 2_500_000 },
    Shipped { path: "lib/libisochrone_malloc.so", most: 500_000 },
    Shipped { path: "lib/libisochrone_pager.so", most: 1_000_000 },
];

/// Fails if something that was packed is larger than it may be.
pub(super) fn hold(root: &Path) -> Result<()> {
    let tree = crate::package::packed(root);
    let mut breaches = Vec::new();
    for shipped in SHIPPED {
        let bytes = stripped_bytes(&tree.join(shipped.path))?;
        say(&format!("{}: {bytes} bytes of {} without symbols", shipped.path, shipped.most));
        breaches.extend(judged(shipped, bytes));
    }
    if !breaches.is_empty() {
        bail!("{}", breaches.join("\n"));
    }
    Ok(())
}

/// The length of a program or library without symbols.
fn stripped_bytes(built: &Path) -> Result<u64> {
    let beside = built.with_extension("stripped");
    let strip = Command::new("strip").arg("--strip-all").arg("-o").arg(&beside).arg(built).status();
    ensure!(
        strip.context("strip (binutils) is needed")?.success(),
        "{} is not there",
        built.display()
    );
    let bytes = fs::metadata(&beside).with_context(|| beside.display().to_string())?.len();
    fs::remove_file(&beside).with_context(|| beside.display().to_string())?;
    Ok(bytes)
}

/// What is wrong with a size, if anything is. A limit that is twice the size holds nothing.
fn judged(shipped: &Shipped, bytes: u64) -> Option<String> {
    let Shipped { path, most } = shipped;
    match bytes {
        _ if bytes > *most => Some(format!(
            "{path} has {bytes} bytes, and {most} may be: `nm -S --size-sort -C` names what has grown"
        )),
        _ if bytes < most / 2 => {
            Some(format!("{path} has {bytes} bytes: lower its limit of {most} in ci/sizes.rs"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_is_named_and_so_is_a_limit_that_holds_nothing() {
        let shipped = Shipped { path: "dist/some", most: 1000 };
        assert_eq!(judged(&shipped, 1000), None);
        assert_eq!(judged(&shipped, 500), None);
        let said = judged(&shipped, 1001).expect("one byte too much");
        assert!(said.contains("dist/some has 1001 bytes"), "{said}");
        assert!(judged(&shipped, 499).is_some_and(|said| said.contains("lower its limit")));
    }

    #[test]
    fn symbols_do_not_count_and_what_is_not_there_is_an_error() {
        let folder = std::env::temp_dir().join(format!("isochrone-sizes-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let copy = folder.join("this.so");
        fs::copy(std::env::current_exe().expect("this test"), &copy).expect("a copy");
        let [all, stripped] =
            [fs::metadata(&copy).expect("copied").len(), stripped_bytes(&copy).expect("strip")];
        assert!(stripped < all && stripped > 0, "{stripped} of {all}");
        assert!(stripped_bytes(&folder.join("none.so")).is_err());
        fs::remove_dir_all(&folder).expect("ours");
    }
}
