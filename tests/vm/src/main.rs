//! The first process of an emulated machine: with 16 memory regions it runs every check; where the machine has a list
//! of orders it obeys these instead, to try the two programs. It says how each ended, and switches the machine off.
//! `cargo xtask vm` builds it, boots it and reads what it says.
//!
//! Checks here are about places and counts. The machine is emulated, so its times mean nothing.

mod console;
#[cfg(target_arch = "x86_64")]
mod examples;
mod machine;
mod orders;
mod placement;
mod shootdowns;
mod tasks;

use std::panic::UnwindSafe;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};

use console::say;

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
    #[cfg(target_arch = "x86_64")]
    ("examples in C and C++ are right", examples::run_all),
];

fn main() -> Result<()> {
    ensure!(
        std::process::id() == 1,
        "this runs as the first process of an emulated machine: use `cargo xtask vm`"
    );
    let (passed, failed) = match std::fs::read_to_string(orders::PLACE) {
        Ok(orders) => all(orders.lines().map(|line| (line, move || orders::obey(line)))),
        Err(_) => {
            mount_kernel_files()?;
            let only: Vec<String> = std::env::args().skip(1).collect();
            let wanted =
                |check: &&Check| only.is_empty() || only.iter().any(|word| check.0.contains(word));
            all(CHECKS.iter().filter(wanted).copied())
        }
    };
    say(&format!("vm: {passed} passed, {failed} failed"));
    reboot(RebootMode::RB_POWER_OFF).context("cannot switch the machine off")?;
    Ok(())
}

/// One after the other; how many passed, and how many failed.
fn all<'a, F>(checks: impl Iterator<Item = (&'a str, F)>) -> (usize, usize)
where
    F: FnOnce() -> Result<String> + UnwindSafe,
{
    checks.fold((0, 0), |(passed, failed), (name, check)| match passes(name, check) {
        true => (passed + 1, failed),
        false => (passed, failed + 1),
    })
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

fn passes(name: &str, check: impl FnOnce() -> Result<String> + UnwindSafe) -> bool {
    let begin = Instant::now();
    let outcome = std::panic::catch_unwind(check);
    let seconds = begin.elapsed().as_secs_f64();
    say(&match &outcome {
        Ok(Ok(seen)) => format!("vm: ok      {name}: {seen} ({seconds:.1} s)"),
        Ok(Err(error)) => format!("vm: FAILED  {name}: {error:#}"),
        Err(_) => format!("vm: FAILED  {name}: it panicked (see above)"),
    });
    matches!(outcome, Ok(Ok(_)))
}
