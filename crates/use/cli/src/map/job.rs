//! Which job of a launcher this process is part of, by what Slurm, Open MPI and MPICH tell their ranks.

use isochrone_console::output::variable;
use isochrone_host::text_hash;

/// How many ranks are on this node, where a launcher says it: Open MPI, MPICH, Slurm (a count, or `1(x64)`).
const RANKS_HERE: [&str; 3] =
    ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_TASKS_PER_NODE"];
/// Variables that together are another one for every job, first those that say most. The second of Open MPI is a random
/// number, since its namespaces repeat.
const JOBS: [&[&str]; 2] = [
    &["PMIX_NAMESPACE", "OMPI_MCA_orte_precondition_transports"],
    &["SLURM_JOB_ID", "SLURM_STEP_ID"],
];
/// What MPICH's launcher tells; it names no job, and all ranks of a node are its children.
const CHILD: &str = "PMI_RANK";

/// A number that all ranks of this job on this node have, and no later one; 0 where this process is alone, or nobody
/// says which job it is.
pub(super) fn hash() -> u64 {
    let text = |name: &str| variable(name).map(|value| value.to_string_lossy().into_owned());
    of(&text, &parent()).map_or(0, |words| text_hash(&words).max(1))
}

/// The words that are the job.
fn of(text: &dyn Fn(&str) -> Option<String>, parent: &str) -> Option<String> {
    let is_alone = |value: String| value == "1" || value.starts_with("1(") && !value.contains(',');
    if RANKS_HERE.into_iter().find_map(text).is_some_and(is_alone) {
        return None;
    }
    for names in JOBS {
        let words: Vec<Option<String>> = names.iter().map(|name| text(name)).collect();
        let is_said = match names[0] {
            // A batch script and what it starts by itself have no step.
            "SLURM_JOB_ID" => words.iter().all(Option::is_some),
            _ => words[0].is_some(),
        };
        if is_said {
            return Some(words.into_iter().flatten().collect::<Vec<_>>().join(" "));
        }
    }
    text(CHILD).map(|_| parent.to_owned())
}

/// The process that started this one, and when it began: numbers of processes repeat.
fn parent() -> String {
    let parent = std::os::unix::process::parent_id();
    let stat = std::fs::read_to_string(format!("/proc/{parent}/stat")).unwrap_or_default();
    // Field 22 of proc(5); the second one is in parentheses and may hold anything.
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    format!("{parent} {}", after.split_whitespace().nth(19).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(variables: &[(&str, &str)]) -> Option<String> {
        let text = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        of(&text, "12 345")
    }

    #[test]
    fn ranks_of_one_job_are_known_by_what_their_launcher_says() {
        let open = [("PMIX_NAMESPACE", "7"), ("OMPI_COMM_WORLD_LOCAL_SIZE", "4")];
        assert_eq!(job(&open), Some("7".to_owned()));
        let slurm = [("SLURM_JOB_ID", "9"), ("SLURM_STEP_ID", "0")];
        assert_eq!(job(&slurm), Some("9 0".to_owned()));
        assert_eq!(job(&slurm[..1]), None, "what a batch script starts is no step");
        assert_eq!(job(&[("PMI_RANK", "3")]), Some("12 345".to_owned()));
        assert_eq!(job(&[]), None);
    }

    #[test]
    fn who_is_alone_on_a_node_has_nobody_to_wait_for() {
        for (variable, value, is_alone) in [
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "1", true),
            ("SLURM_STEP_TASKS_PER_NODE", "1(x64)", true),
            ("SLURM_STEP_TASKS_PER_NODE", "16(x64)", false),
            ("SLURM_STEP_TASKS_PER_NODE", "1(x2),3", false),
            ("MPI_LOCALNRANKS", "2", false),
        ] {
            let found = job(&[(variable, value), ("PMIX_NAMESPACE", "7")]);
            assert_eq!(found.is_none(), is_alone, "{variable}={value}");
        }
    }

    #[test]
    fn the_process_that_started_this_one_is_known_with_its_beginning() {
        let words = parent();
        let mut words = words.split(' ');
        assert!(words.next().is_some_and(|id| id.parse::<u32>().is_ok()));
        assert!(
            words.next().is_some_and(|began| began.parse::<u64>().is_ok_and(|began| began > 0))
        );
    }
}
