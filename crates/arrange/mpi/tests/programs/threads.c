/* A program that asked for MPI_THREAD_MULTIPLE on one rank only: nobody takes part, nobody hangs. */
#include "check.h"

int main(int argc, char **argv) {
    int provided, me = getenv("OMPI_COMM_WORLD_RANK") ? atoi(getenv("OMPI_COMM_WORLD_RANK"))
                                                      : atoi(getenv("PMI_RANK"));
    MPI_Init_thread(&argc, &argv, me == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int call = 0; call < 50; call++) {
        int total = 0;
        MPI_Allreduce(&rank, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(total == ranks * (ranks - 1) / 2);
    }
    printf("done %d\n", rank);
    MPI_Finalize();
    return 0;
}
