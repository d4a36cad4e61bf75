//! `isochrone run --mpi`: MPI programs whose collectives go through shared lines.

use std::process::Command;

use crate::support::{folder, isochrone, json, mpi_library, tool};

const PROGRAM: &str = r#"
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
  int rank, word = 0, sum = 0, wrong = 0;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int round = 0; round < 100000; round++) {
    word = rank == round % 2 ? round : -1;
    MPI_Bcast(&word, 1, MPI_INT, round % 2, MPI_COMM_WORLD);
    MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    wrong += word != round || sum != 2 * round;
    if (round == 0) usleep(200000);
  }
  if (rank == 0) printf("wrong: %d\n", wrong);
  MPI_Finalize();
  return wrong != 0;
}
"#;

#[test]
fn an_mpi_program_runs_in_lines() {
    for mpi in ["openmpi", "mpich"] {
        let Some(compiler) = tool(&format!("mpicc.{mpi}")) else { continue };
        let here = folder(&format!("coll-run-{mpi}"));
        std::fs::write(here.join("program.c"), PROGRAM).expect("a source");
        let built = Command::new(compiler)
            .args(["-O1", "-o", "program", "program.c"])
            .current_dir(&here)
            .output()
            .expect("a compiler");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let output = isochrone(&here)
            .args(["run", "--mpi", "--report", "--json", "job.json", "--preload"])
            .arg(mpi_library())
            .args(["--", &format!("mpirun.{mpi}"), "-n", "2", "./program"])
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
            .env("TMPDIR", &here)
            .output()
            .expect("it runs");
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{mpi}: {err}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "wrong: 0\n", "{mpi}");
        assert!(err.contains("in lines"), "{mpi}: {err}");
        let text = std::fs::read_to_string(here.join("job.json")).expect("it was written");
        let record = json(&text);
        let ranks = record["ranks"].as_array().expect("a list");
        assert_eq!(ranks.len(), 2, "{record}");
        for rank in ranks {
            // The MPI does the first calls, until they would have saved what taking over costs.
            for name in ["bcast", "allreduce"] {
                let done = |by: &str| rank["calls"][name][by].as_u64().unwrap_or(0);
                assert_eq!(done("lines") + done("mpi"), 100_000, "{mpi}: {rank}");
                assert!(done("lines") > 10_000, "{mpi}: {rank}");
            }
        }
    }
}
