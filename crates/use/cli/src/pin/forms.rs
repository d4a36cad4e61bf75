//! An order of cores as others take it: text from numbers. It runs nothing and prints nothing.
//!
//! Sources: taskset(1); numactl(8); the OpenMP API, environment variables `OMP_PROC_BIND` and `OMP_PLACES`; srun(1),
//! `--cpu-bind=map_cpu` and `--mincpus`; mpirun(1) of Open MPI 4.1, "Rankfiles"; the manual of MPICH's Hydra,
//! `-bind-to user:`.

use isochrone_machine::spans;
use isochrone_units::CoreId;

use crate::args::FormName;

/// Where a rankfile is written.
const RANKFILE: &str = "isochrone.rankfile";

/// All of them, in the order in which they are printed.
const ALL: [FormName; 6] = [
    FormName::Taskset,
    FormName::Numactl,
    FormName::Omp,
    FormName::Slurm,
    FormName::Openmpi,
    FormName::Mpich,
];

/// The beginnings of commands by which `cores` are taken, of `all` that the machine has; a line for each form.
pub(super) fn lines(form: FormName, cores: &[CoreId], all: usize) -> Vec<String> {
    match form {
        FormName::All => ALL.iter().map(|form| line(*form, cores, all)).collect(),
        one => vec![line(one, cores, all)],
    }
}

fn line(form: FormName, cores: &[CoreId], all: usize) -> String {
    let count = cores.len();
    match form {
        FormName::Taskset => format!("taskset -c {}", set(cores)),
        FormName::Numactl => numactl(cores),
        // Threads go to consecutive places from that of the first thread on, which is the first.
        FormName::Omp => format!(
            "OMP_NUM_THREADS={count} OMP_PROC_BIND=close OMP_PLACES='{}'",
            listed(cores, |core| format!("{{{core}}}"))
        ),
        // A task is refused on a core that is not the step's own, and Slurm gives a step the first cores, as many as
        // it has tasks. A step that wants all that the node has is given those that are listed too.
        FormName::Slurm => format!(
            "srun --nodes=1 --ntasks={count} --mincpus={all} --cpu-bind=map_cpu:{}",
            listed(cores, |core| core.to_string())
        ),
        FormName::Openmpi => openmpi(cores),
        FormName::Mpich => {
            format!("mpiexec -n {count} -bind-to user:{}", listed(cores, |core| core.to_string()))
        }
        FormName::All => lines(form, cores, all).join("\n"),
    }
}

/// The beginning of a command with a set of cores.
pub(super) fn numactl(cores: &[CoreId]) -> String {
    format!("numactl --physcpubind={}", set(cores))
}

/// A file of one line a rank, written by the shell into which the line is pasted. Its slots are the system's numbers
/// and not hwloc's only where Open MPI is told so.
fn openmpi(cores: &[CoreId]) -> String {
    let ranks = cores.iter().enumerate().map(|(rank, core)| format!(" {rank} {}", core.0));
    format!(
        "printf 'rank %d=localhost slot=%d\\n'{} > {RANKFILE} && mpirun --mca rmaps_rank_file_physical 1 \
         --rankfile {RANKFILE} -np {}",
        ranks.collect::<String>(),
        cores.len()
    )
}

/// A set of cores as ranges.
fn set(cores: &[CoreId]) -> String {
    spans(&cores.iter().map(|core| core.0).collect::<Vec<_>>())
}

/// The cores in their order.
fn listed(cores: &[CoreId], word: impl Fn(u16) -> String) -> String {
    cores.iter().map(|core| word(core.0)).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_ranges_and_orders_are_kept() {
        let cores = [0, 2, 1, 7].map(CoreId);
        assert_eq!(
            lines(FormName::All, &cores, 8),
            [
                "taskset -c 0-2,7",
                "numactl --physcpubind=0-2,7",
                "OMP_NUM_THREADS=4 OMP_PROC_BIND=close OMP_PLACES='{0},{2},{1},{7}'",
                "srun --nodes=1 --ntasks=4 --mincpus=8 --cpu-bind=map_cpu:0,2,1,7",
                "printf 'rank %d=localhost slot=%d\\n' 0 0 1 2 2 1 3 7 > isochrone.rankfile && mpirun --mca \
                 rmaps_rank_file_physical 1 --rankfile isochrone.rankfile -np 4",
                "mpiexec -n 4 -bind-to user:0,2,1,7",
            ]
        );
    }

    #[test]
    fn every_form_alone_is_its_line_of_all() {
        let cores = [3, 1].map(CoreId);
        let all = lines(FormName::All, &cores, 4);
        let alone: Vec<String> = ALL.iter().flat_map(|form| lines(*form, &cores, 4)).collect();
        assert_eq!(alone, all);
        assert!(all.iter().all(|line| !line.contains('\n')), "{all:?}");
    }
}
