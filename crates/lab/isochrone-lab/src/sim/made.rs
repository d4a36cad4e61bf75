//! A simulated run is made, and timed on this machine.

use anyhow::Result;
use isochrone_machine::Machine;
use isochrone_os::clock::thread_cpu_ns;
use isochrone_papers::numa_aware::record::{Key, Ready, Record, real};
use isochrone_sim::coherence::NumaSpec;
use isochrone_tasks::Schedule;
use isochrone_workloads::numa::{Case, run};

/// Runs a case.
pub(super) fn make(machine: &Machine, spec: &NumaSpec, key: &Key) -> Result<Record> {
    followed(machine, spec, key, |_| ()).map(|(record, _)| record)
}

/// Runs a case after a last change to it; its schedule as well, where the change asks for it.
pub(super) fn followed(
    machine: &Machine,
    spec: &NumaSpec,
    key: &Key,
    change: impl FnOnce(&mut Case),
) -> Result<(Record, Option<Schedule>)> {
    let Ready { mut case, spec } = key.ready(spec)?;
    change(&mut case);
    spec.validate()?;
    let begin = thread_cpu_ns();
    let mut outcome = run(machine, &spec, &case)?;
    let host_seconds = real(thread_cpu_ns() - begin) / 1e9;
    let schedule = outcome.schedule.take();
    Ok((Record::of(key.clone(), &spec, outcome, host_seconds), schedule))
}
