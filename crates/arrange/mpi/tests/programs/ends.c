/* So many allreduces as the second word says, or 300, and as many barriers; then, as the first one says, one rank is
   killed or aborts, or all exit without MPI_Finalize. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    int rank, one = 1, sum = 0;
    const char *how = argc > 1 ? argv[1] : "";
    int calls = argc > 2 ? atoi(argv[2]) : 300;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int call = 0; call < calls; call++) {
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (!strcmp(how, "killed") && rank == 1) raise(SIGKILL);
    if (!strcmp(how, "aborted") && rank == 1) MPI_Abort(MPI_COMM_WORLD, 3);
    if (!strcmp(how, "exit")) exit(0);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("done %d\n", sum);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
