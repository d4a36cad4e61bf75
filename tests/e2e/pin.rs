//! `isochrone pin`: every form, pasted into a shell with a program behind it that says where it runs; Slurm's where
//! this machine is a node of a cluster.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::command;
use crate::support::{folder, isochrone, map, mapped_machine, run, tool};

/// Threads of an OpenMP program, each with the core that it is on.
const THREADS: &str = r#"
#define _GNU_SOURCE
#include <omp.h>
#include <sched.h>
#include <stdio.h>
int main(void) {
  int core[1024], count = 1;
  #pragma omp parallel
  {
    core[omp_get_thread_num()] = sched_getcpu();
    if (omp_get_thread_num() == 0) count = omp_get_num_threads();
  }
  for (int thread = 0; thread < count; thread++) printf("%d\n", core[thread]);
  return 0;
}
"#;

/// The line of a form for all cores that this process may use, by the map of this machine.
fn line(form: &str, order: &str) -> String {
    let words = ["pin", "--form", form, "--order", order];
    let (output, out, err) = run(&map().folder, &words);
    assert!(output.status.success() && out.lines().count() == 1, "{out}{err}");
    out.trim().to_owned()
}

/// What a shell prints into which a line is pasted with a program behind it.
fn pasted(here: &Path, line: &str, program: &str) -> String {
    let output = Command::new("sh")
        .args(["-c", &format!("{line} {program}")])
        .current_dir(here)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line} {program}\n{err}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The numbers that lines end with, in the order of the numbers that they begin with.
fn by_rank(out: &str) -> Vec<String> {
    let mut found: Vec<(u32, String)> = out
        .lines()
        .map(|line| {
            let (rank, cores) = line.split_once(' ').expect("two words");
            (rank.parse().expect("a rank"), cores.to_owned())
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, cores)| cores).collect()
}

/// The cores in their order, as `srun` has them.
fn cores(order: &str) -> Vec<String> {
    let line = line("slurm", order);
    let (_, list) = line.rsplit_once(':').expect("a list");
    list.split(',').map(str::to_owned).collect()
}

#[test]
fn a_set_of_cores_is_what_taskset_and_numactl_bind_to() {
    let (Some(_), Some(_)) = (tool("taskset"), tool("numactl")) else { return };
    let here = folder("pin-sets");
    // As the kernel writes a set of cores.
    let own = r"sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status";
    let all = pasted(&here, "", own);
    for form in ["taskset", "numactl"] {
        for count in 1..=cores("compact").len() {
            let words = ["pin", &count.to_string(), "--form", form];
            let (_, out, _) = run(&map().folder, &words);
            let (_, set) = out.trim().rsplit_once([' ', '=']).expect("a set");
            assert_eq!(pasted(&here, out.trim(), own).trim(), set, "{out}");
        }
    }
    assert_eq!(pasted(&here, &line("taskset", "spread"), own), all);
}

#[test]
fn threads_of_an_openmp_program_are_on_the_cores_in_their_order() {
    let Some(compiler) = tool("cc") else { return };
    let here = folder("pin-omp");
    std::fs::write(here.join("threads.c"), THREADS).expect("a source");
    let built = Command::new(compiler)
        .args(["-fopenmp", "-o", "threads", "threads.c"])
        .current_dir(&here)
        .output()
        .expect("a compiler");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    for order in ["compact", "spread"] {
        let out = pasted(&here, &line("omp", order), "./threads");
        assert_eq!(out.lines().collect::<Vec<_>>(), cores(order), "{order}");
    }
}

#[test]
fn ranks_of_both_mpis_are_on_the_cores_in_their_order() {
    let _machine = mapped_machine();
    for (form, started, named, rank) in [
        ("openmpi", "mpirun ", "mpirun.openmpi ", "OMPI_COMM_WORLD_RANK"),
        ("mpich", "mpiexec ", "mpiexec.mpich ", "PMI_RANK"),
    ] {
        let Some(_) = tool(named.trim()) else { continue };
        let here = folder(&format!("pin-{form}"));
        let own = format!(r#"sh -c 'echo "${rank} $(taskset -cp $$ | sed "s/.*: //")"'"#);
        for order in ["compact", "spread"] {
            // Where both are installed only one has the plain name.
            let line = line(form, order).replace(started, named);
            assert_eq!(by_rank(&pasted(&here, &line, &own)), cores(order), "{line}");
        }
    }
}

/// Whether a cluster gives out this machine, which no package installs.
fn is_a_node() -> bool {
    let asked = Command::new("sinfo").args(["--noheader", "--states=idle"]).output();
    asked.is_ok_and(|out| out.status.success() && !out.stdout.is_empty())
}

#[test]
fn tasks_of_a_slurm_job_are_on_the_cores_in_their_order() {
    let Some(taskset) = tool("taskset") else { return };
    let all = cores("compact");
    let here = folder("pin-slurm");
    let own = r#"sh -c 'echo "$SLURM_PROCID $(taskset -cp $$ | sed "s/.*: //")"'"#;
    let job = |line: &str, cores: &[String]| {
        assert!(line.contains(&format!("--mincpus={} ", all.len())), "{line}");
        if is_a_node() {
            assert_eq!(by_rank(&pasted(&here, line, own)), cores, "{line}");
        }
    };
    for order in ["compact", "spread"] {
        job(&line("slurm", order), &cores(order));
    }
    // A core that is not among the first is given to a step of one task, too.
    for core in &all {
        let words = ["pin", "1", "--form", "slurm"];
        let output = Command::new(&taskset)
            .args(["-c", core])
            .arg(command())
            .args(words)
            .current_dir(&map().folder)
            .output()
            .expect("it runs");
        job(String::from_utf8_lossy(&output.stdout).trim(), std::slice::from_ref(core));
    }
}

#[test]
fn without_an_atlas_cores_are_taken_by_their_numbers_which_is_said() {
    let here = folder("pin-none");
    let output =
        isochrone(&here).arg("pin").env("XDG_CACHE_HOME", &here).output().expect("it runs");
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        err,
        "isochrone: no atlas of this machine: run `isochrone map`; cores are taken by their numbers\n"
    );
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 6);
}

#[test]
fn what_cannot_be_is_refused() {
    let here = &map().folder;
    for wrong in [
        &["0"][..],
        &["-1"],
        &["1025"],
        &["1024"],
        &["two"],
        &["--order", "none"],
        &["--form", "pbs"],
        &["--memory", "--form", "omp"],
    ] {
        let (output, out, err) = run(here, &[&["pin"], wrong].concat());
        assert_eq!((output.status.code(), out.as_str()), (Some(2), ""), "{wrong:?}: {err}");
    }
    let (output, _, err) = run(here, &["pin", "--atlas", "no.atlas"]);
    assert!(output.status.code() == Some(1) && err.contains("no.atlas"), "{err}");
}
