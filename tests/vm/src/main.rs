//! The first process of an emulated machine with 16 memory regions: runs every check, says how each
//! ended, and switches the machine off. `cargo xtask vm` builds it, boots it and reads what it says.
//!
//! Checks here are about places and counts. The machine is emulated, so its times mean nothing.

#![allow(clippy::print_stdout, reason = "the console is the way out of the machine")]

mod machine;
mod placement;
mod shootdowns;
mod tasks;

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};

/// A check's name and what it does; it returns what it saw, in a few words.
type Check = (&'static str, fn() -> Result<String>);

const CHECKS: &[Check] = &[
    ("the machine is read as it was described", machine::as_described),
    ("bound pages lie in their region", placement::bound),
    ("first touch places a page where its thread runs", placement::first_touch),
    ("an evicted batch interrupts all workers of one address space", shootdowns::shared),
    ("an evicted batch interrupts nobody who does not map it", shootdowns::separated),
    ("a stencil with a queue for each core interrupts nobody but at halos", shootdowns::stencil),
    ("tasks run where their data live, or in the nearest region", tasks::tasks_by_their_data),
    ("one task that touches everything has it in its region", tasks::serial_touch),
    ("cholesky is right and its pages lie where each regime says", tasks::cholesky),
    ("smi is right and its pages lie where each regime says", tasks::smi),
    ("jacobi is right and its pages lie where each regime says", tasks::jacobi),
    ("inthist is right and its pages lie where each regime says", tasks::histogram),
    ("streamcluster is right and its pages lie where each regime says", tasks::streamcluster),
];

fn main() -> Result<()> {
    ensure!(
        std::process::id() == 1,
        "this runs as the first process of an emulated machine: use `cargo xtask vm`"
    );
    mount_kernel_files()?;
    let only: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |check: &&Check| only.is_empty() || only.iter().any(|word| check.0.contains(word));
    let checks: Vec<&Check> = CHECKS.iter().filter(wanted).collect();
    let failed = checks.iter().filter(|check| !passes(check)).count();
    println!("vm: {} passed, {failed} failed", checks.len() - failed);
    reboot(RebootMode::RB_POWER_OFF).context("cannot switch the machine off")?;
    Ok(())
}

fn mount_kernel_files() -> Result<()> {
    for (kind, place) in
        [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/tmp")]
    {
        std::fs::create_dir_all(place)?;
        mount(Some(kind), place, Some(kind), MsFlags::empty(), None::<&str>).context(place)?;
    }
    Ok(())
}

fn passes((name, check): &Check) -> bool {
    let begin = Instant::now();
    let outcome = std::panic::catch_unwind(check);
    let seconds = begin.elapsed().as_secs_f64();
    match &outcome {
        Ok(Ok(seen)) => println!("vm: ok      {name}: {seen} ({seconds:.1} s)"),
        Ok(Err(error)) => println!("vm: FAILED  {name}: {error:#}"),
        Err(_) => println!("vm: FAILED  {name}: it panicked (see above)"),
    }
    matches!(outcome, Ok(Ok(_)))
}
